(** Products that no arithmetic rounds or flushes, and layers that consist of them.

    For: core/exactness.py exact_products, normal, whole_products, add_numbers; core/balls.py is_power. *)

From Coq Require Import Reals ZArith List Permutation Lra Lia.
From Flocq Require Import Core Mult_error.
From Onelayer Require Import Arithmetic ExactSums.
Import ListNotations.
Open Scope R_scope.

(** Plus or minus a power of two. *)
Definition power (w : R) := exists k : Z, w = bpow radix2 k \/ w = - bpow radix2 k.

(** Zero, or at least the smallest normal number in size: nothing flushes it. *)
Definition normal (f : format) (x : R) := x = 0 \/ tiny f <= Rabs x.

(** [inside f]: every number of f is a number of the checker's float64, and every normal one a normal one. *)
Definition inside (f : format) := (prec f <= 53 /\ -1074 <= emin f /\ -1022 <= emin f + prec f - 1)%Z.

Lemma inside32 : inside binary32.
Proof. repeat split; discriminate. Qed.

Lemma inside64 : inside binary64.
Proof. repeat split; discriminate. Qed.

Lemma inside_number f x : inside f -> number f x -> number binary64 x.
Proof. intros (P & E & _). apply (wider f 53 (-1074)); assumption. Qed.

Lemma inside_tiny f : inside f -> tiny binary64 <= tiny f.
Proof. intros (_ & _ & T). now apply bpow_le. Qed.

(** * One product *)

Section Product.
Variable f : format.

Lemma reads_normal x y : normal f x -> reads f x y -> y = x.
Proof. intros [->|N] [->|[L ->]]; trivial. lra. Qed.

Lemma number_power_pos x k : number f x -> normal f (x * bpow radix2 k) -> number f (x * bpow radix2 k).
Proof.
  intros F [N|N]; [rewrite N; apply number_0|]. apply mult_bpow_exact_FLT; [exact F|].
  destruct (Req_dec x 0) as [->|Z].
  - rewrite Rmult_0_l, Rabs_R0 in N. pose proof (tiny_pos f). lra.
  - assert (M : (emin f + prec f - 1 < mag radix2 (x * bpow radix2 k))%Z) by now apply mag_gt_bpow.
    rewrite mag_mult_bpow in M by exact Z. lia.
Qed.

(** A number times a power of two is a number, unless it is subnormal. *)
Lemma number_power x w : number f x -> power w -> normal f (x * w) -> number f (x * w).
Proof.
  intros F [k [->| ->]] N; [now apply number_power_pos|].
  replace (x * - bpow radix2 k) with (- (x * bpow radix2 k)) in * by ring.
  apply number_opp. apply number_power_pos; [exact F|].
  destruct N as [N|N]; [left; lra|right]. now rewrite Rabs_Ropp in N.
Qed.

(** If the exact product is a number of the format, and it and both factors are zero or normal, it has one value. *)
Lemma normal_leaf x w v : normal f x -> normal f w -> solid f (x * w) -> leaf f (Prod x w) v -> v = x * w.
Proof.
  intros X W S (x' & w' & Rx & Rw & R). apply reads_normal in Rx, Rw; trivial. subst. now apply (rnd_solid f).
Qed.

(** If x is a number of the format, w is plus or minus a power of two, and x, w and x w are each zero or normal,
    then x w has one value in every arithmetic of the profile: the exact product, which is a number of the
    format. *)
Theorem exact_product_power (x w v : R) :
  number f x -> power w -> normal f x -> normal f w -> normal f (x * w) ->
  leaf f (Prod x w) v -> v = x * w /\ solid f (x * w).
Proof.
  intros F P X W N L. assert (S : solid f (x * w)) by (split; [now apply number_power|exact N]).
  split; [now apply normal_leaf|exact S].
Qed.

(** A product with an exact zero is exactly zero, whatever the other (finite) factor is. *)
Theorem exact_product_zero (x w v : R) : x = 0 \/ w = 0 -> leaf f (Prod x w) v -> v = 0.
Proof. exact (zero_leaf f (Prod x w) v). Qed.

(** A product of whole numbers that is at most 2^prec in size is exact. *)
Theorem exact_product_whole (x w v : R) :
  whole x -> whole w -> Rabs (x * w) <= bpow radix2 (prec f) -> leaf f (Prod x w) v -> v = x * w.
Proof. intros X W S. apply (whole_leaf f (Prod x w)); [|exact S]. simpl. now right; right. Qed.

(** * What the checker computes of sizes *)

(** [normal] of core/exactness.py compares a computed number p with 4 (tiny + NORMAL). Whatever rounding did to
    p, the exact number q is then above 2 tiny.
    For: core/exactness.py normal. *)
Theorem normal_as_computed (q p : R) : inside f -> rnd binary64 q p -> 4 * tiny f <= p -> 2 * tiny f < q.
Proof.
  intros (P & E & N) R G. pose proof (tiny_pos f) as T. apply Rnot_le_lt. intros L.
  assert (S : solid binary64 (2 * tiny f)).
  { replace (2 * tiny f) with (bpow radix2 (1 + (emin f + prec f - 1))) by (rewrite bpow_plus; reflexivity).
    split.
    - apply generic_format_FLT_bpow; [reflexivity|]. change (emin binary64) with (-1074)%Z. lia.
    - right. rewrite Rabs_pos_eq by apply bpow_ge_0. apply bpow_le.
      change (emin binary64 + prec binary64 - 1)%Z with (-1022)%Z. lia. }
  assert (p <= 2 * tiny f) by now apply (rnd_le binary64 q). lra.
Qed.

(** The test of exact_products: with [least] at most 1 and at most |w|, the computed min(|x|, 1) least is at least
    4 (tiny + NORMAL). Then x, w and x w are all normal.
    For: core/exactness.py exact_products (smallest, faint). *)
Theorem exact_products_guard (x w least p : R) :
  inside f -> 0 < least -> least <= 1 -> least <= Rabs w ->
  rnd binary64 (Rmin (Rabs x) 1 * least) p -> 4 * tiny f <= p ->
  normal f x /\ normal f w /\ normal f (x * w).
Proof.
  intros I L0 L1 Lw R G. apply (normal_as_computed _ _ I R) in G. clear R I p.
  pose proof (tiny_pos f) as T. pose proof (Rmin_l (Rabs x) 1) as Mx. pose proof (Rmin_r (Rabs x) 1) as M1.
  pose proof (Rabs_pos x) as Px. set (m := Rmin (Rabs x) 1) in *.
  assert (0 < m) by (destruct (Rlt_dec 0 m); [easy|]; assert (m * least <= 0) by nra; lra).
  repeat split; right.
  - nra.
  - nra.
  - rewrite Rabs_mult. nra.
Qed.

(** A layer with one live weight that is a power of two, no bias, and nothing subnormal rounds nothing, whatever the
    inputs with weight zero are. For: core/balls.py linear (steps = 0, not small). *)
Theorem single_power_exact (x w : R) (zs : list R) (s : R) :
  number f x -> power w -> normal f x -> normal f w -> normal f (x * w) ->
  sums f (leaf f) (Prod x w :: map (fun z => Prod z 0) zs) s -> s = x * w.
Proof.
  intros F P X W N H.
  assert (H1 : sums f (leaf f) [Prod x w] s).
  { apply (zeros_add_nothing f _ s H (map (fun z => Prod z 0) zs)); [apply Permutation_cons_append|].
    intros t I. apply in_map_iff in I. destruct I as (z & <- & _). now right. }
  assert (S : solid f (x * w)) by (split; [now apply number_power|exact N]).
  rewrite (sums_exact f (leaf f) value [Prod x w] s); [simpl; ring| | |exact H1].
  - intros t v [<-|[]]. now apply normal_leaf.
  - intros l1 l2 Q. apply Permutation_length_1_inv in Q.
    destruct l1 as [|a l1]; [apply solid_0|]. injection Q as -> Q. apply app_eq_nil in Q. destruct Q as [-> _].
    simpl. now rewrite Rplus_0_r.
Qed.

End Product.

(** * A component of a layer *)

(** An input x with its ball and its weight: x is within r of m. *)
Record input := Input { x_of : R; m_of : R; r_of : R; w_of : R }.

Definition in_ball (i : input) := Rabs (x_of i - m_of i) <= r_of i.

(** The terms of the arithmetic's sum, and those of the checker's, which reads midpoints. *)
Definition actual (is : list input) (b : R) := map (fun i => Prod (x_of i) (w_of i)) is ++ [Bias b].
Definition at_midpoints (is : list input) (b : R) := map (fun i => Prod (m_of i) (w_of i)) is ++ [Bias b].

(** Names of core/exactness.py: a ball that is a point; a weight that is not zero; an input that may differ from
    0. *)
Definition point (i : input) := r_of i = 0.
Definition used (i : input) := w_of i <> 0.
Definition live (i : input) := ~ point i \/ m_of i <> 0.
Definition is_power (a : R) := a = 0 \/ power a.

Lemma midpoint i : in_ball i -> point i -> x_of i = m_of i.
Proof.
  unfold in_ball, point. intros H E. rewrite E in H. destruct (Req_dec (x_of i - m_of i) 0) as [D|N]; [lra|].
  apply Rabs_pos_lt in N. lra.
Qed.

(** Where every input that is used is known, the arithmetic and the checker add the same numbers. *)
Lemma same_sum is b : (forall i, In i is -> in_ball i) -> (forall i, In i is -> used i -> point i) ->
  sum value (actual is b) = sum value (at_midpoints is b).
Proof.
  intros B P. unfold actual, at_midpoints. rewrite !sum_app, !sum_map. f_equal. apply sum_ext. intros i I. simpl.
  destruct (Req_EM_T (w_of i) 0) as [->|U]; [ring|]. now rewrite (midpoint i (B i I) (P i I U)).
Qed.

Section Layer.
Variable f : format.

(** The case of whole numbers. Weights and bias are whole, every input that is used is a known whole number, and
    the sizes of all terms, which the checker adds up in any order, give a number below 2^prec. Then every value
    that the arithmetic allows, and the checker's own, is the exact sum.
    For: core/exactness.py exact_products (whole), whole_products. *)
Theorem exact_products_whole (is : list input) (b size s m : R) :
  inside f ->
  (forall i, In i is -> in_ball i) ->
  (forall i, In i is -> whole (w_of i)) -> whole b ->
  (forall i, In i is -> used i -> point i /\ whole (m_of i)) ->
  sums binary64 (leaf binary64) (map size_term (at_midpoints is b)) size -> size < bpow radix2 (prec f) ->
  sums f (leaf f) (actual is b) s -> sums binary64 (leaf binary64) (at_midpoints is b) m ->
  s = sum value (actual is b) /\ m = sum value (actual is b).
Proof.
  intros F B Ww Wb N Hsize Fit Hs Hm.
  assert (V := same_sum is b B (fun i I U => proj1 (N i I U))).
  assert (E : Forall2 (fun a c => forall v, leaf f a v -> leaf f c v) (actual is b) (at_midpoints is b)).
  { unfold actual, at_midpoints. apply Forall2_app; [|constructor; [intros v L; exact L|constructor]].
    clear V Hsize Hs Hm. induction is as [|i is IH]; [constructor|]. simpl. constructor.
    - intros v L. destruct (Req_EM_T (w_of i) 0) as [Z|U].
      + rewrite Z in *. rewrite (exact_product_zero f (x_of i) 0 v); [|now right|exact L].
        exists (m_of i), 0. repeat split; [now left|now left|]. rewrite Rmult_0_r. now apply rnd_kept.
      + assert (I : In i (i :: is)) by now left. now rewrite (midpoint i (B i I) (proj1 (N i I U))) in L.
    - apply IH; intros; [apply B|apply Ww|apply N]; trivial; now right. }
  assert (Hs' := sums_replaced f _ _ _ _ s E Hs).
  rewrite V. apply (sums_fit_exact f (at_midpoints is b) size s m); trivial; [apply F|].
  intros t I. apply in_app_or in I. destruct I as [I|[<-|[]]]; [|exact Wb].
  apply in_map_iff in I. destruct I as (i & <- & I). simpl.
  destruct (Req_EM_T (w_of i) 0) as [Z|U]; [now right; left|]. right; right. split; [now apply N|now apply Ww].
Qed.

(** How many terms may differ from zero: [terms] of exact_products. *)
Definition live_used (i : input) : nat :=
  if Req_EM_T (w_of i) 0 then 0%nat
  else if Req_EM_T (r_of i) 0 then if Req_EM_T (m_of i) 0 then 0%nat else 1%nat
  else 1%nat.

Definition terms (is : list input) (b : R) : nat :=
  (list_sum (map live_used is) + (if Req_EM_T b 0 then 0 else 1))%nat.

(** The case of one term. At most one term differs from zero, bias included. Every input that is used is known;
    if it is not zero, it or its weight is plus or minus a power of two, and min(|x|, 1) times the smallest
    weight is computed to be at least 4 (tiny + NORMAL); the bias is zero, or at least that. Then every value
    that the arithmetic allows is the exact sum. The checker's own sum is one of these values for binary64.
    For: core/exactness.py exact_products (one: terms, rounds, faint, smallest). *)
Theorem exact_products_one (is : list input) (b least s : R) :
  inside f ->
  (forall i, In i is -> in_ball i /\ number f (x_of i) /\ number f (w_of i)) -> number f b ->
  0 < least <= 1 -> (forall i, In i is -> used i -> least <= Rabs (w_of i)) ->
  (terms is b <= 1)%nat ->
  (forall i, In i is -> live i -> is_power (m_of i) \/ is_power (w_of i)) ->
  (b = 0 \/ 4 * tiny f <= Rabs b) ->
  (forall i, In i is -> used i -> point i /\
     (live i -> exists p, rnd binary64 (Rmin (Rabs (m_of i)) 1 * least) p /\ 4 * tiny f <= p)) ->
  sums f (leaf f) (actual is b) s -> s = sum value (actual is b).
Proof.
  intros F B Nb [L0 L1] Lw T Pw Fb G. pose proof (tiny_pos f) as T0.
  assert (K : forall i, In i is -> solid f (x_of i * w_of i) /\
            forall v, leaf f (Prod (x_of i) (w_of i)) v -> v = x_of i * w_of i).
  { intros i I. destruct (B i I) as (Bi & Xi & Wi).
    destruct (Req_EM_T (w_of i) 0) as [Z|U].
    - rewrite Z, Rmult_0_r. split; [apply solid_0|]. intros v. apply exact_product_zero. now right.
    - destruct (G i I U) as [Pi Q]. assert (E := midpoint i Bi Pi). rewrite E in *.
      destruct (Req_EM_T (m_of i) 0) as [Z|M].
      + rewrite Z, Rmult_0_l. split; [apply solid_0|]. intros v. apply exact_product_zero. now left.
      + assert (Li : live i) by now right. destruct (Q Li) as (p & R & C).
        destruct (exact_products_guard f (m_of i) (w_of i) least p) as (Nx & Nw & Np); auto.
        assert (S : solid f (m_of i * w_of i)).
        { split; [|exact Np]. destruct (Pw i I Li) as [[Z|P]|[Z|P]]; [contradiction| |contradiction|].
          - rewrite Rmult_comm in *. now apply number_power.
          - now apply number_power. }
        split; [exact S|]. intros v. now apply normal_leaf. }
  assert (Sb : solid f b) by (split; [exact Nb|destruct Fb as [->|Fb]; [now left|right; lra]]).
  apply (one_term_exact f).
  - intros t v I L. apply in_app_or in I. destruct I as [I|[<-|[]]].
    + apply in_map_iff in I. destruct I as (i & <- & I). now apply K.
    + now apply (reads_solid f).
  - intros t I. apply in_app_or in I. destruct I as [I|[<-|[]]]; [|exact Sb].
    apply in_map_iff in I. destruct I as (i & <- & I). now apply K.
  - unfold actual. rewrite nonzeros_app. simpl. revert T. unfold terms.
    assert (C : (nonzeros (map (fun i => Prod (x_of i) (w_of i)) is) <= list_sum (map live_used is))%nat).
    { clear - B G. induction is as [|i is IH]; [apply le_n|]. cbn [map nonzeros value].
      change (list_sum (live_used i :: map live_used is)) with (live_used i + list_sum (map live_used is))%nat.
      assert (J := IH (fun i I => B i (or_intror I)) (fun i I => G i (or_intror I))).
      destruct (Req_EM_T (x_of i * w_of i) 0) as [Z|Z]; [lia|].
      set (rest := list_sum _) in *. unfold live_used.
      destruct (Req_EM_T (w_of i) 0) as [W|U]; [exfalso; apply Z; rewrite W; ring|].
      destruct (Req_EM_T (r_of i) 0) as [Pi|Pi]; [|lia]. destruct (Req_EM_T (m_of i) 0) as [M|M]; [|lia].
      exfalso. apply Z. rewrite (midpoint i); [rewrite M; ring|apply B; now left|exact Pi]. }
    lia.
Qed.

(** A number and a number that is added to it: if both are known whole numbers, and their sizes, as the checker
    adds them, are below 2^prec, their sum is exact. For: core/exactness.py add_numbers. *)
Theorem add_numbers_exact (x y size s m : R) :
  inside f -> whole x -> whole y ->
  rnd binary64 (Rabs x + Rabs y) size -> size < bpow radix2 (prec f) ->
  sums f (reads f) [x; y] s -> rnd binary64 (x + y) m ->
  s = x + y /\ m = x + y.
Proof.
  intros (P & _) X Y R Fit Hs Hm.
  assert (E : size = Rabs x + Rabs y).
  { apply (computed_expression_exact binary64 (Plus (Number (Rabs x)) (Number (Rabs y)))).
    - simpl. repeat split; try apply Rabs_pos; now apply whole_abs.
    - eapply computed_plus; [apply computed_number|apply computed_number|exact R].
    - apply Rlt_le_trans with (1 := Fit). now apply bpow_le. }
  assert (S : Rabs x + Rabs y <= bpow radix2 (prec f)) by lra. split.
  - rewrite (any_order_sum_exact f [x; y] s); [simpl; ring| |simpl; lra|exact Hs].
    intros z [<-|[<-|[]]]; assumption.
  - apply (rnd_solid binary64); [|exact Hm]. apply solid_small; [now apply whole_plus|].
    apply Rle_trans with (1 := Rabs_triang x y). apply Rle_trans with (1 := S). now apply bpow_le.
Qed.

End Layer.

(** * Both factors have to be normal *)

(** It does not suffice that the product is normal: in binary32, x = 2^124 and w = 2^-127 (a power of two, but
    subnormal) have the product 2^-3, and an arithmetic that reads subnormal operands as zero gives 0. *)
Theorem exact_product_as_coded_is_unsound :
  exists x w v, number binary32 x /\ power w /\ 4 * tiny binary32 <= Rabs (x * w) /\
    leaf binary32 (Prod x w) v /\ v <> x * w.
Proof.
  exists (bpow radix2 124), (bpow radix2 (-127)), 0. rewrite <- bpow_plus.
  assert (P : 0 < bpow radix2 (124 + -127)) by apply bpow_gt_0.
  repeat split.
  - apply generic_format_FLT_bpow; [now unfold Prec_gt_0|discriminate].
  - exists (-127)%Z. now left.
  - rewrite Rabs_pos_eq by lra. unfold tiny. change 4 with (bpow radix2 2). rewrite <- bpow_plus. now apply bpow_le.
  - exists (bpow radix2 124), 0. repeat split; [now left| |apply rnd_kept; ring].
    right. split; [|reflexivity]. rewrite Rabs_pos_eq by apply bpow_ge_0. now apply bpow_lt.
  - lra.
Qed.

(** The mirror image: a subnormal input x and a large power of two w. *)
Theorem exact_product_subnormal_operand_is_unsound :
  exists x w v, number binary32 x /\ power w /\ tiny binary32 <= Rabs w /\ 4 * tiny binary32 <= Rabs (x * w) /\
    leaf binary32 (Prod x w) v /\ v <> x * w.
Proof.
  exists (bpow radix2 (-127)), (bpow radix2 124), 0. rewrite <- bpow_plus.
  assert (P : 0 < bpow radix2 (-127 + 124)) by apply bpow_gt_0.
  repeat split.
  - apply generic_format_FLT_bpow; [now unfold Prec_gt_0|discriminate].
  - exists 124%Z. now left.
  - rewrite Rabs_pos_eq by apply bpow_ge_0. now apply bpow_le.
  - rewrite Rabs_pos_eq by lra. unfold tiny. change 4 with (bpow radix2 2). rewrite <- bpow_plus. now apply bpow_le.
  - exists 0, (bpow radix2 124). repeat split; [|now left|apply rnd_kept; ring].
    right. split; [|reflexivity]. rewrite Rabs_pos_eq by apply bpow_ge_0. now apply bpow_lt.
  - lra.
Qed.
