(** Sums that no order of evaluation can round.

    For: core/exactness.py sums_fit, whole_products, add_numbers, and the whole-number case of exact_products;
    search/operations.py Sums.fit. *)

From Coq Require Import Reals ZArith List Permutation Lra Lia.
From Flocq Require Import Core.
From Onelayer Require Import Arithmetic.
Import ListNotations.
Open Scope R_scope.

(** * Sums whose terms are replaced or put in another order *)

(** If every value of a term is a value of the term that takes its place, every value of the sum is one of the
    new sum. *)
Lemma sums_replaced (f : format) {A B} (va : A -> R -> Prop) (vb : B -> R -> Prop) (la : list A) (lb : list B) s :
  Forall2 (fun a b => forall v, va a v -> vb b v) la lb -> sums f va la s -> sums f vb lb s.
Proof.
  intros E H. revert lb E. induction H as [|a v L|l l1 l2 x y P H1 IH1 H2 IH2|l x y H IH R]; intros lb E.
  - inversion E. apply sums_zero.
  - inversion E as [|? c ? ? K T]. inversion T. apply sums_leaf. now apply K.
  - destruct (Permutation_Forall2 P E) as (g & Q & E').
    apply Forall2_app_inv_l in E'. destruct E' as (g1 & g2 & E1 & E2 & ->).
    apply (sums_add f _ lb g1 g2); [exact Q|now apply IH1|now apply IH2].
  - eapply sums_rnd; [now apply IH|exact R].
Qed.

Lemma sums_perm (f : format) {A} (va : A -> R -> Prop) (l l' : list A) s :
  Permutation l l' -> sums f va l s -> sums f va l' s.
Proof.
  intros Q H. revert l' Q. induction H as [|a v L|l l1 l2 x y P H1 IH1 H2 IH2|l x y H IH R]; intros l' Q.
  - apply Permutation_nil in Q. subst. apply sums_zero.
  - apply Permutation_length_1_inv in Q. subst. now apply sums_leaf.
  - apply (sums_add f _ l' l1 l2); trivial. now rewrite <- Q.
  - eapply sums_rnd; [now apply IH|exact R].
Qed.

Lemma same_length {A B} {P : A -> B -> Prop} {l l'} : Forall2 P l l' -> length l = length l'.
Proof. induction 1; simpl; congruence. Qed.

(** * Whole numbers *)

Definition whole (x : R) := exists n : Z, x = IZR n.

(** A term that is a whole number: both factors are, or one of them is zero. *)
Definition whole_term (t : term) :=
  match t with Prod x w => x = 0 \/ w = 0 \/ (whole x /\ whole w) | Bias b => whole b end.

Lemma whole_0 : whole 0.
Proof. now exists 0%Z. Qed.

Lemma whole_1 : whole 1.
Proof. now exists 1%Z. Qed.

Lemma whole_plus x y : whole x -> whole y -> whole (x + y).
Proof. intros [m ->] [n ->]. exists (m + n)%Z. now rewrite plus_IZR. Qed.

Lemma whole_mult x y : whole x -> whole y -> whole (x * y).
Proof. intros [m ->] [n ->]. exists (m * n)%Z. now rewrite mult_IZR. Qed.

Lemma whole_abs x : whole x -> whole (Rabs x).
Proof. intros [n ->]. exists (Z.abs n). now rewrite abs_IZR. Qed.

(** A whole number that is not zero is at least 1 in size. *)
Lemma whole_size x : whole x -> x = 0 \/ 1 <= Rabs x.
Proof.
  intros [n ->]. destruct (Z.eq_dec n 0) as [->|N]; [now left|right]. rewrite <- abs_IZR. apply IZR_le. lia.
Qed.

Lemma whole_sum {A} (c : A -> R) l : (forall a, In a l -> whole (c a)) -> whole (sum c l).
Proof.
  induction l as [|a l IH]; intros H; [apply whole_0|].
  apply whole_plus; [apply H; now left|apply IH; intros; apply H; now right].
Qed.

Lemma whole_value t : whole_term t -> whole (value t).
Proof.
  destruct t as [x w|b]; simpl; [|easy]. intros [->|[->|[X W]]]; [|  |now apply whole_mult].
  - rewrite Rmult_0_l. apply whole_0.
  - rewrite Rmult_0_r. apply whole_0.
Qed.

Section Exact.
Variable f : format.

Lemma solid_small (x : R) : whole x -> Rabs x <= bpow radix2 (prec f) -> solid f x.
Proof. intros [n ->]. apply solid_whole. Qed.

Lemma solid_limit : solid f (bpow radix2 (prec f)).
Proof.
  assert (E : bpow radix2 (prec f) = IZR (2 ^ prec f)) by (rewrite <- IZR_Zpower; [reflexivity|];
    pose proof (prec_pos f); lia).
  apply solid_small; [rewrite E; now eexists|]. rewrite Rabs_pos_eq; [apply Rle_refl|apply bpow_ge_0].
Qed.

(** A whole operand, however large, is never flushed. *)
Lemma reads_whole x y : whole x -> reads f x y -> y = x.
Proof.
  intros W [R|[R ->]]; [exact R|]. destruct (whole_size x W) as [->|L]; [reflexivity|].
  pose proof (tiny_le_1 f). lra.
Qed.

(** Every partial sum of whole numbers whose sizes add up to at most 2^prec is a number that nothing rounds. *)
Lemma whole_partial_sums {A} (c : A -> R) l :
  (forall a, In a l -> whole (c a)) -> sum (fun a => Rabs (c a)) l <= bpow radix2 (prec f) ->
  forall l1 l2, Permutation l (l1 ++ l2) -> solid f (sum c l1).
Proof.
  intros W S l1 l2 P. apply solid_small.
  - apply whole_sum. intros a I. apply W. apply (Permutation_in a (Permutation_sym P)). apply in_or_app. now left.
  - eapply Rle_trans; [apply sum_abs|]. eapply Rle_trans; [|exact S].
    rewrite (sum_perm _ _ _ P), sum_app. pose proof (sum_abs_nonneg c l2). lra.
Qed.

(** * Sums of whole numbers *)

(** If all terms are whole numbers and their sizes add up to at most 2^prec, then every value that the sum may
    have (in any order and bracketing, rounded in this format or wider ones, subnormal numbers flushed or not)
    is the exact sum.
    For: core/exactness.py add_numbers. *)
Theorem any_order_sum_exact (l : list R) (s : R) :
  (forall x, In x l -> whole x) ->
  sum Rabs l <= bpow radix2 (prec f) ->
  sums f (reads f) l s -> s = sum (fun x => x) l.
Proof.
  intros W S. apply sums_exact; [|exact (whole_partial_sums (fun x => x) l W S)].
  intros x v I. apply reads_whole. now apply W.
Qed.

(** A product of whole numbers that is at most 2^prec in size has one value, fused or not. *)
Lemma whole_leaf t v : whole_term t -> Rabs (value t) <= bpow radix2 (prec f) -> leaf f t v -> v = value t.
Proof.
  intros W S. assert (V := solid_small _ (whole_value t W) S). destruct t as [x w|b]; simpl in *.
  - intros (x' & w' & X & Y & R). apply (rnd_solid f); [exact V|]. replace (x * w) with (x' * w'); [exact R|].
    destruct W as [->|[->|[Wx Ww]]].
    + apply (reads_solid f) in X; [|apply solid_0]. subst. ring.
    + apply (reads_solid f) in Y; [|apply solid_0]. subst. ring.
    + apply reads_whole in X, Y; trivial. now subst.
  - now apply reads_whole.
Qed.

Lemma size_of_one {A} (c : A -> R) l a : In a l -> Rabs (c a) <= sum (fun b => Rabs (c b)) l.
Proof.
  intros I. apply in_split in I. destruct I as (k1 & k2 & ->). rewrite sum_app. simpl.
  pose proof (sum_abs_nonneg c k1). pose proof (sum_abs_nonneg c k2). lra.
Qed.

(** The same for a component of a layer, x W + b: all terms are products of whole numbers, or products with
    zero, and their sizes and that of the bias add up to at most 2^prec. One-hots are a special case.
    For: core/exactness.py exact_products (whole numbers), whole_products. *)
Theorem any_order_product_exact (l : list term) (s : R) :
  (forall t, In t l -> whole_term t) ->
  sum (fun t => Rabs (value t)) l <= bpow radix2 (prec f) ->
  sums f (leaf f) l s -> s = sum value l.
Proof.
  intros W S. apply sums_exact.
  - intros t v I. apply whole_leaf; [now apply W|]. apply Rle_trans with (2 := S). now apply (size_of_one value).
  - apply (whole_partial_sums value); [|exact S]. intros. now apply whole_value, W.
Qed.

(** * Sums with one term that is not zero *)

(** How many terms are not zero. *)
Fixpoint nonzeros (l : list term) : nat :=
  match l with [] => 0%nat | t :: l => ((if Req_EM_T (value t) 0 then 0 else 1) + nonzeros l)%nat end.

Lemma nonzeros_app l1 l2 : nonzeros (l1 ++ l2) = (nonzeros l1 + nonzeros l2)%nat.
Proof. induction l1; simpl; lia. Qed.

Lemma nonzeros_perm l1 l2 : Permutation l1 l2 -> nonzeros l1 = nonzeros l2.
Proof. induction 1; simpl; lia. Qed.

Lemma nonzeros_none l : nonzeros l = 0%nat -> sum value l = 0.
Proof.
  induction l as [|t l IH]; simpl; [easy|]. destruct (Req_EM_T (value t) 0) as [E|E]; [|lia].
  intros H. rewrite E, (IH H). ring.
Qed.

(** If every term has one value, which is zero or normal, and at most one of them is not zero, the sum is that
    term, in any order. For: core/exactness.py exact_products (one term); search/parts.py _is_exact (one term). *)
Theorem one_term_exact (l : list term) (s : R) :
  (forall t v, In t l -> leaf f t v -> v = value t) ->
  (forall t, In t l -> solid f (value t)) ->
  (nonzeros l <= 1)%nat ->
  sums f (leaf f) l s -> s = sum value l.
Proof.
  intros E S O. apply sums_exact; [exact E|]. intros l1 l2 P.
  assert (O1 : (nonzeros l1 <= 1)%nat) by (rewrite (nonzeros_perm _ _ P), nonzeros_app in O; lia).
  assert (S1 : forall t, In t l1 -> solid f (value t)).
  { intros t I. apply S. apply (Permutation_in t (Permutation_sym P)). apply in_or_app. now left. }
  clear E S O P. induction l1 as [|a l1 IH]; [apply solid_0|]. simpl in *.
  destruct (Req_EM_T (value a) 0) as [Z|Z].
  - rewrite Z, Rplus_0_l. apply IH; [lia|]. intros t I. apply S1. now right.
  - rewrite (nonzeros_none l1) by lia. rewrite Rplus_0_r. apply S1. now left.
Qed.

(** * Zeros add nothing *)

(** A product with zero, or a bias that is zero. *)
Definition zero_term (t : term) := match t with Prod x w => x = 0 \/ w = 0 | Bias b => b = 0 end.

(** The only value of a zero term is 0, whatever the other (finite) factor is. *)
Lemma zero_leaf t v : zero_term t -> leaf f t v -> v = 0.
Proof.
  destruct t as [x w|b]; simpl.
  - intros Z (x' & w' & Rx & Rw & R). apply (rnd_solid f); [apply solid_0|].
    replace 0 with (x' * w'); [exact R|]. destruct Z as [->| ->].
    + apply (reads_solid f) in Rx; [|apply solid_0]. subst. ring.
    + apply (reads_solid f) in Rw; [|apply solid_0]. subst. ring.
  - intros ->. apply reads_solid, solid_0.
Qed.

Lemma zero_value t : zero_term t -> value t = 0.
Proof. destruct t; simpl; [intros [->| ->]; ring|easy]. Qed.

Lemma zero_sums l : (forall t, In t l -> zero_term t) -> forall s, sums f (leaf f) l s -> s = 0.
Proof.
  intros Z s H. induction H as [|t v H|l l1 l2 x y P H1 IH1 H2 IH2|l x y H IH R].
  - reflexivity.
  - apply (zero_leaf t); [apply Z; now left|exact H].
  - rewrite IH1, IH2; [ring| |]; intros t I; apply Z; apply (Permutation_in t (Permutation_sym P)); apply in_or_app;
      [now right|now left].
  - rewrite (IH Z) in R. apply (rnd_solid f); [apply solid_0|exact R].
Qed.

(** A list that is split in two ways is split in four. *)
Lemma permutation_split {A} (k1 k2 l0 l1 : list A) : Permutation (k1 ++ k2) (l0 ++ l1) ->
  exists a0 a1 b0 b1, Permutation k1 (a0 ++ a1) /\ Permutation k2 (b0 ++ b1) /\
    Permutation l0 (a0 ++ b0) /\ Permutation l1 (a1 ++ b1).
Proof.
  revert l0 l1. induction k1 as [|a k1 IH]; intros l0 l1 D; simpl in D.
  - exists [], [], l0, l1. simpl. repeat split; auto.
  - assert (I : In a (l0 ++ l1)) by (apply (Permutation_in a D); now left).
    apply in_app_or in I. destruct I as [I|I]; apply in_split in I; destruct I as (m1 & m2 & ->).
    + destruct (IH (m1 ++ m2) l1) as (a0 & a1 & b0 & b1 & P & Q & C & E).
      { apply (Permutation_cons_inv (a := a)). rewrite D, <- !app_assoc. simpl. now rewrite <- Permutation_middle. }
      exists (a :: a0), a1, b0, b1. simpl. repeat split; auto. now rewrite <- Permutation_middle, C.
    + destruct (IH l0 (m1 ++ m2)) as (a0 & a1 & b0 & b1 & P & Q & C & E).
      { apply (Permutation_cons_inv (a := a)). rewrite D, !app_assoc. now rewrite <- Permutation_middle. }
      exists a0, (a :: a1), b0, b1. repeat split; auto; simpl; [now rewrite P, <- Permutation_middle|].
      now rewrite <- Permutation_middle, E.
Qed.

(** Leaving zero terms out, or putting them in, changes no value that a sum may have: units that are exactly 0
    need not be evaluated by the layers that read them.
    For: core/layers.py run_stack (kept); search/builder.py full, within, constants; search/parts.py ("units
    that no part names are exactly 0"). *)
Theorem zeros_add_nothing (l : list term) (s : R) :
  sums f (leaf f) l s ->
  forall l0 l1, Permutation l (l0 ++ l1) -> (forall t, In t l0 -> zero_term t) -> sums f (leaf f) l1 s.
Proof.
  intros H. induction H as [|t v H|l k1 k2 x y P H1 IH1 H2 IH2|l x y H IH R]; intros l0 l1 Q Z.
  - apply Permutation_nil in Q. apply app_eq_nil in Q. destruct Q as [-> ->]. apply sums_zero.
  - destruct l0 as [|a l0].
    + simpl in Q. apply Permutation_length_1_inv in Q. subst. now apply sums_leaf.
    + apply Permutation_length_1_inv in Q. injection Q as -> Q. apply app_eq_nil in Q. destruct Q as [-> ->].
      rewrite (zero_leaf t v); [apply sums_zero|apply Z; now left|exact H].
  - destruct (permutation_split k1 k2 l0 l1) as (a0 & a1 & b0 & b1 & A & B & C & E); [now rewrite <- P|].
    apply (sums_add f _ l1 a1 b1); [exact E| |].
    + apply (IH1 a0 a1 A). intros t I. apply Z. rewrite C. apply in_or_app. now left.
    + apply (IH2 b0 b1 B). intros t I. apply Z. rewrite C. apply in_or_app. now right.
  - eapply sums_rnd; [now apply (IH l0 l1)|exact R].
Qed.

(** * The size of a sum, as the checker computes it *)

(** A computed sum of whole numbers that are not negative is exact, or it is at least 2^prec: what reaches
    2^prec once stays there. So, if it is below 2^prec, it is exact. [f] is binary64 in the checker.
    For: core/exactness.py sums_fit. *)
Theorem computed_size_exact (l : list term) (s : R) :
  (forall t, In t l -> whole_term t /\ 0 <= value t) ->
  sums f (leaf f) l s -> s < bpow radix2 (prec f) -> s = sum value l.
Proof.
  intros W H. enough (G : 0 <= s /\ (s = sum value l \/ bpow radix2 (prec f) <= s)) by lra.
  assert (K : forall x y, whole x -> 0 <= x -> rnd f x y ->
            0 <= y /\ (y = x \/ bpow radix2 (prec f) <= y)).
  { intros x y Wx Px R. split; [apply (rnd_ge f x); [apply solid_0|exact Px|exact R]|].
    destruct (Rle_lt_dec x (bpow radix2 (prec f))) as [L|L].
    - left. apply (rnd_solid f); [|exact R]. apply solid_small; [exact Wx|]. now rewrite Rabs_pos_eq.
    - right. apply (rnd_ge f x); [apply solid_limit|lra|exact R]. }
  induction H as [|t v H|l l1 l2 x y P H1 IH1 H2 IH2|l x y H IH R].
  - simpl. lra.
  - destruct (W t (or_introl eq_refl)) as [Wt Pt]. simpl. rewrite Rplus_0_r. destruct t as [x w|b].
    + destruct H as (x' & w' & X & Y & R).
      assert (E : x' * w' = value (Prod x w)).
      { simpl in *. destruct Wt as [->|[->|[Wx Ww]]].
        - apply (reads_solid f) in X; [|apply solid_0]. subst. ring.
        - apply (reads_solid f) in Y; [|apply solid_0]. subst. ring.
        - apply reads_whole in X, Y; trivial. now subst. }
      rewrite E in R. apply K; [now apply whole_value|exact Pt|exact R].
    + simpl in *. apply reads_whole in H; [|exact Wt]. lra.
  - rewrite (sum_perm _ _ _ P), sum_app.
    destruct IH1 as [P1 G1]; [intros t I; apply W; rewrite P; apply in_or_app; now left|].
    destruct IH2 as [P2 G2]; [intros t I; apply W; rewrite P; apply in_or_app; now right|]. lra.
  - destruct (IH W) as [Px G]. destruct G as [G|G].
    + assert (Wx : whole x) by (rewrite G; apply whole_sum; intros t I; now apply whole_value, W).
      destruct (K x y Wx Px R) as [Py Q]. split; [exact Py|]. rewrite <- G. exact Q.
    + assert (bpow radix2 (prec f) <= y) by (apply (rnd_ge f x); [apply solid_limit|exact G|exact R]).
      pose proof (bpow_ge_0 radix2 (prec f)). lra.
Qed.

(** An expression of sums and products of whole numbers that are not negative, and what may be computed for it. *)
Inductive expression := Number (x : R) | Plus (a b : expression) | Times (a b : expression).

Fixpoint exact_value (e : expression) : R :=
  match e with
  | Number x => x
  | Plus a b => exact_value a + exact_value b
  | Times a b => exact_value a * exact_value b
  end.

Inductive computed : expression -> R -> Prop :=
| computed_number x : computed (Number x) x
| computed_plus a b x y z : computed a x -> computed b y -> rnd f (x + y) z -> computed (Plus a b) z
| computed_times a b x y z : computed a x -> computed b y -> rnd f (x * y) z -> computed (Times a b) z.

Fixpoint of_wholes (e : expression) : Prop :=
  match e with Number x => whole x /\ 0 <= x | Plus a b | Times a b => of_wholes a /\ of_wholes b end.

Lemma of_wholes_value e : of_wholes e -> whole (exact_value e) /\ 0 <= exact_value e.
Proof.
  induction e as [x|a IHa b IHb|a IHa b IHb]; simpl; [easy| |].
  - intros [Wa Wb]. destruct (IHa Wa), (IHb Wb). split; [now apply whole_plus|lra].
  - intros [Wa Wb]. destruct (IHa Wa), (IHb Wb). split; [now apply whole_mult|now apply Rmult_le_pos].
Qed.

(** The same for such an expression: where the computed number is below 2^prec, it is exact.
    For: search/operations.py Sums.fit (bounds that are multiplied and added). *)
Theorem computed_expression_exact (e : expression) (s : R) :
  of_wholes e -> computed e s -> s < bpow radix2 (prec f) -> s = exact_value e.
Proof.
  intros W H. pose proof (bpow_gt_0 radix2 (prec f)) as B0.
  enough (G : 0 <= s /\ (s = exact_value e \/ bpow radix2 (prec f) <= s)) by lra.
  assert (K : forall x y q, q = x \/ bpow radix2 (prec f) <= x -> 0 <= x -> 0 <= q -> whole q -> rnd f x y ->
            0 <= y /\ (y = q \/ bpow radix2 (prec f) <= y)).
  { intros x y q C Px Pq Wq R. split; [apply (rnd_ge f x); [apply solid_0|exact Px|exact R]|].
    destruct (Rle_lt_dec x (bpow radix2 (prec f))) as [L|L].
    - destruct C as [<-|C].
      + left. apply (rnd_solid f); [|exact R]. apply solid_small; [exact Wq|]. now rewrite Rabs_pos_eq.
      + right. apply (rnd_ge f x); [apply solid_limit|exact C|exact R].
    - right. apply (rnd_ge f x); [apply solid_limit|lra|exact R]. }
  induction H as [x|a b x y z Ha IHa Hb IHb R|a b x y z Ha IHa Hb IHb R]; simpl in *.
  - lra.
  - destruct W as [Wa Wb]. destruct (IHa Wa) as [Px Gx], (IHb Wb) as [Py Gy].
    destruct (of_wholes_value a Wa), (of_wholes_value b Wb).
    apply (K (x + y)); [lra|lra|lra|now apply whole_plus|exact R].
  - destruct W as [Wa Wb]. destruct (IHa Wa) as [Px Gx], (IHb Wb) as [Py Gy].
    destruct (of_wholes_value a Wa) as [Va Na], (of_wholes_value b Wb) as [Vb Nb].
    apply (K (x * y)); [|now apply Rmult_le_pos|now apply Rmult_le_pos|now apply whole_mult|exact R].
    assert (One : forall q, whole q -> 0 <= q -> q = 0 \/ 1 <= q).
    { intros q Wq Pq. destruct (whole_size q Wq) as [E|E]; [now left|]. rewrite Rabs_pos_eq in E; auto. }
    assert (B1 : 1 <= bpow radix2 (prec f)).
    { change 1 with (bpow radix2 0). apply bpow_le. pose proof (prec_pos f). lia. }
    destruct Gx as [->|Gx], Gy as [->|Gy]; [now left| | |right; nra].
    + destruct (One _ Va Na) as [E|E]; [left; rewrite E; ring|right; nra].
    + destruct (One _ Vb Nb) as [E|E]; [left; rewrite E; ring|right; nra].
Qed.

End Exact.

(** * Instances *)

(** Sizes of terms. *)
Definition size_term (t : term) := match t with Prod x w => Prod (Rabs x) (Rabs w) | Bias b => Bias (Rabs b) end.

Lemma size_term_value t : value (size_term t) = Rabs (value t).
Proof. destruct t; simpl; [symmetry; apply Rabs_mult|reflexivity]. Qed.

Lemma size_term_whole t : whole_term t -> whole_term (size_term t).
Proof.
  destruct t as [x w|b]; simpl; [|apply whole_abs]. intros [->|[->|[X W]]]; rewrite ?Rabs_R0; auto.
  right; right. split; now apply whole_abs.
Qed.

Lemma sum_map {A B} (g : A -> B) (c : B -> R) l : sum c (map g l) = sum (fun a => c (g a)) l.
Proof. induction l; simpl; [reflexivity|now rewrite IHl]. Qed.

Lemma sum_ext {A} (c d : A -> R) l : (forall a, In a l -> c a = d a) -> sum c l = sum d l.
Proof.
  induction l as [|a l IH]; intros H; simpl; [reflexivity|]. rewrite (H a (or_introl eq_refl)), IH; [reflexivity|].
  intros b I. apply H. now right.
Qed.

(** What sums_fit establishes: the sizes of all terms of a sum, added up by the checker in any order, give a
    number below 2^prec for the arithmetic's precision (24 or 53 bits). Then the sum of the terms has one value
    in the arithmetic f, and the checker's own sum is that value, too.
    For: core/exactness.py sums_fit, whole_products, exact_products (whole numbers). *)
Theorem sums_fit_exact (f : format) (l : list term) (size s m : R) :
  (prec f <= 53)%Z ->
  (forall t, In t l -> whole_term t) ->
  sums binary64 (leaf binary64) (map size_term l) size -> size < bpow radix2 (prec f) ->
  sums f (leaf f) l s -> sums binary64 (leaf binary64) l m ->
  s = sum value l /\ m = sum value l.
Proof.
  intros Hp W Hsize Fit Hs Hm.
  assert (L : bpow radix2 (prec f) <= bpow radix2 53) by now apply bpow_le.
  assert (E : size = sum (fun t => Rabs (value t)) l).
  { assert (F : size < bpow radix2 (prec binary64)) by now apply Rlt_le_trans with (1 := Fit).
    rewrite (computed_size_exact binary64 (map size_term l) size); [|  |exact Hsize|exact F].
    - rewrite sum_map. apply sum_ext. intros t _. apply size_term_value.
    - intros t I. apply in_map_iff in I. destruct I as (q & <- & I). split; [now apply size_term_whole, W|].
      rewrite size_term_value. apply Rabs_pos. }
  assert (B : sum (fun t => Rabs (value t)) l <= bpow radix2 (prec f)) by (rewrite <- E; now left).
  split; [now apply (any_order_product_exact f)|apply (any_order_product_exact binary64); trivial].
  now apply Rle_trans with (1 := B).
Qed.

(** * Positive and negative terms *)

(** What the positive parts of numbers add up to, which bounds every partial sum from above. *)
Definition positive (x : R) := (Rabs x + x) / 2.

Lemma positive_bounds x : 0 <= positive x /\ x <= positive x.
Proof. unfold positive. pose proof (Rle_abs x). pose proof (Rle_abs (- x)). rewrite Rabs_Ropp in *. lra. Qed.

Lemma sum_positive {A} (c : A -> R) l :
  sum (fun a => positive (c a)) l = (sum (fun a => Rabs (c a)) l + sum c l) / 2.
Proof. induction l as [|a l IH]; simpl; [lra|]. rewrite IH. unfold positive. lra. Qed.

Lemma sum_below_positive {A} (c : A -> R) l : 0 <= sum (fun a => positive (c a)) l /\ sum c l <= sum (fun a => positive (c a)) l.
Proof. induction l as [|a l IH]; simpl; [lra|]. pose proof (positive_bounds (c a)). lra. Qed.

Lemma partial_below {A} (c : A -> R) l l1 l2 : Permutation l (l1 ++ l2) ->
  sum c l1 <= (sum (fun a => Rabs (c a)) l + sum c l) / 2.
Proof.
  intros P. rewrite <- sum_positive, (sum_perm _ _ _ P), sum_app.
  pose proof (sum_below_positive c l1). pose proof (sum_below_positive c l2). lra.
Qed.

Lemma sum_opposite {A} (c : A -> R) l : sum (fun a => - c a) l = - sum c l.
Proof. induction l as [|a l IH]; simpl; [lra|]. rewrite IH. lra. Qed.

(** A partial sum is at most what the positive terms add up to, and at least what the negative ones do. *)
Lemma partial_between {A} (c : A -> R) l l1 l2 : Permutation l (l1 ++ l2) ->
  Rabs (sum c l1) <= (sum (fun a => Rabs (c a)) l + Rabs (sum c l)) / 2.
Proof.
  intros P. pose proof (partial_below c l l1 l2 P) as U. pose proof (partial_below (fun a => - c a) l l1 l2 P) as L.
  rewrite !sum_opposite in L. rewrite (sum_ext (fun a => Rabs (- c a)) (fun a => Rabs (c a))) in L
    by (intros; apply Rabs_Ropp).
  pose proof (Rle_abs (sum c l)). pose proof (Rle_abs (- sum c l)). rewrite Rabs_Ropp in *.
  apply Rabs_le. lra.
Qed.

(** If neither the positive nor the negative terms of a sum of products of whole numbers add up to more than
    2^prec, the sum has one value in every order. *)
Theorem signed_product_exact (f : format) (l : list term) (s : R) :
  (forall t, In t l -> whole_term t) ->
  (sum (fun t => Rabs (value t)) l + Rabs (sum value l)) / 2 <= bpow radix2 (prec f) ->
  sums f (leaf f) l s -> s = sum value l.
Proof.
  intros W S. apply sums_exact.
  - intros t v I. apply whole_leaf; [now apply W|]. apply Rle_trans with (2 := S).
    apply in_split in I. destruct I as (k1 & k2 & E).
    assert (P : Permutation l ([t] ++ (k1 ++ k2))) by (rewrite E; simpl; symmetry; apply Permutation_middle).
    pose proof (partial_between value l [t] (k1 ++ k2) P) as B. simpl in B. now rewrite Rplus_0_r in B.
  - intros l1 l2 P. apply solid_small.
    + apply whole_sum. intros t I. apply whole_value, W. apply (Permutation_in t (Permutation_sym P)).
      apply in_or_app. now left.
    + apply Rle_trans with (2 := S). now apply (partial_between value l l1 l2).
Qed.

(** What sums_fit establishes with the computed sum m: sizes below 2^53, so that size and m are exact, and
    size + |m| at most 2^(prec + 1).
    For: core/exactness.py sums_fit, whole_products, exact_products (whole numbers). *)
Theorem signed_sums_fit_exact (f : format) (l : list term) (size s m : R) :
  (forall t, In t l -> whole_term t) ->
  sums binary64 (leaf binary64) (map size_term l) size -> size < bpow radix2 53 ->
  sums binary64 (leaf binary64) l m -> size + Rabs m <= 2 * bpow radix2 (prec f) ->
  sums f (leaf f) l s ->
  s = sum value l /\ m = sum value l.
Proof.
  intros W Hsize Below Hm Fit Hs.
  destruct (sums_fit_exact binary64 l size m m) as [E _]; trivial; [simpl; lia|].
  assert (F : size = sum (fun t => Rabs (value t)) l).
  { rewrite (computed_size_exact binary64 (map size_term l) size); [|  |exact Hsize|exact Below].
    - rewrite sum_map. apply sum_ext. intros t _. apply size_term_value.
    - intros t I. apply in_map_iff in I. destruct I as (q & <- & I). split; [now apply size_term_whole, W|].
      rewrite size_term_value. apply Rabs_pos. }
  split; [|exact E]. apply (signed_product_exact f); trivial. rewrite <- F, <- E. lra.
Qed.

(** Sums of whole numbers are exact below 2^24 in float32. *)
Corollary float32_sum_exact (l : list R) (s : R) :
  (forall x, In x l -> whole x) -> sum Rabs l <= 16777216 -> sums binary32 (reads binary32) l s ->
  s = sum (fun x => x) l.
Proof. intros W S. apply any_order_sum_exact; [exact W|]. simpl. lra. Qed.

(** Sums of whole numbers are exact below 2^53 in float64. *)
Corollary float64_sum_exact (l : list R) (s : R) :
  (forall x, In x l -> whole x) -> sum Rabs l <= 9007199254740992 -> sums binary64 (reads binary64) l s ->
  s = sum (fun x => x) l.
Proof. intros W S. apply any_order_sum_exact; [exact W|]. simpl. lra. Qed.

(** The bound has to be strict: 3 * 3002399751580331 = 2^53 + 1 is rounded to 2^53, so a computed size of 2^53
    does not mean that the sizes add up to at most 2^53. *)
Theorem fit_has_to_be_strict :
  exists t size, whole_term t /\ sums binary64 (leaf binary64) [size_term t] size /\
    size <= bpow radix2 53 /\ bpow radix2 53 < sum (fun t => Rabs (value t)) [t].
Proof.
  exists (Prod 3 3002399751580331), (bpow radix2 53). repeat split.
  - right; right. split; [now exists 3%Z|now exists 3002399751580331%Z].
  - apply sums_leaf. exists 3, 3002399751580331.
    replace (Rabs 3) with 3 by (rewrite Rabs_pos_eq; lra).
    replace (Rabs 3002399751580331) with 3002399751580331 by (rewrite Rabs_pos_eq; lra).
    split; [now left|split; [now left|]].
    apply (rnd_nearest binary64 _ _ 53 (-1074) (fun n => negb (Z.even n))); [discriminate|discriminate|].
    unfold round, scaled_mantissa, cexp.
    assert (M : mag radix2 (3 * 3002399751580331) = 54%Z :> Z).
    { apply mag_unique_pos. simpl. lra. }
    rewrite M. replace (FLT_exp (-1074) 53 54) with 1%Z by reflexivity.
    replace (3 * 3002399751580331 * bpow radix2 (- (1))) with (IZR 4503599627370496 + / 2) by (simpl; lra).
    replace (Znearest _ _) with 4503599627370496%Z; [unfold F2R; simpl; lra|].
    unfold Znearest. rewrite (Zfloor_imp 4503599627370496) by (simpl; lra).
    replace (IZR 4503599627370496 + / 2 - IZR 4503599627370496) with (/ 2) by ring.
    rewrite Rcompare_Eq by reflexivity. reflexivity.
  - lra.
  - simpl. rewrite Rabs_pos_eq by lra. lra.
Qed.
