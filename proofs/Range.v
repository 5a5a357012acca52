(** Nothing overflows in the units and groups that a search decides without evaluating them.

    For: search/steps.py within_range. *)

From Coq Require Import Reals ZArith List Permutation Lra Lia.
From Flocq Require Import Core Relative.
From Onelayer Require Import Arithmetic ExactSums ExactProducts Cells Thresholds Judge.
Import ListNotations.
Open Scope R_scope.

#[local] Instance prec64 : Prec_gt_0 53.
Proof. reflexivity. Qed.

Section Range.
Variable f : format.

Lemma solid_multiple (k : nat) (e : Z) : INR k <= bpow radix2 (prec f) -> (emin f + prec f - 1 <= e)%Z ->
  solid f (INR k * bpow radix2 e).
Proof.
  intros L E. rewrite INR_IZR_INZ in *. pose proof (prec_pos f) as P. split.
  - destruct (Rle_lt_or_eq_dec _ _ L) as [Q|Q].
    + apply generic_format_FLT. exists (Defs.Float radix2 (Z.of_nat k) e); [reflexivity| |simpl; lia].
      cbn [Fnum]. apply lt_IZR. rewrite abs_IZR, IZR_Zpower by lia.
      rewrite Rabs_pos_eq by (apply IZR_le; lia). exact Q.
    + rewrite Q, <- bpow_plus. apply generic_format_FLT_bpow; [exact P|lia].
  - destruct k as [|k]; [left; simpl; ring|right].
    rewrite Rabs_mult, (Rabs_pos_eq (bpow radix2 e)) by apply bpow_ge_0.
    apply Rle_trans with (1 * bpow radix2 e); [rewrite Rmult_1_l; now apply bpow_le|].
    apply Rmult_le_compat_r; [apply bpow_ge_0|]. rewrite Rabs_pos_eq by (apply IZR_le; lia).
    apply IZR_le. lia.
Qed.

Lemma solid_bpow (e : Z) : (emin f + prec f - 1 <= e)%Z -> solid f (bpow radix2 e).
Proof.
  intros E. rewrite <- (Rmult_1_l (bpow radix2 e)). apply (solid_multiple 1); [|exact E]. simpl.
  change 1 with (bpow radix2 0). apply bpow_le. pose proof (prec_pos f). lia.
Qed.

(** Every number that occurs while a sum is evaluated is a value of a sum of some of its terms. *)
Definition occurs {A} (lf : A -> R -> Prop) (l : list A) (s : R) :=
  exists l1 l2, Permutation l (l1 ++ l2) /\ sums f lf l1 s.

Lemma occurs_map {A B} (g : A -> B) lf l s : occurs lf (map g l) s -> occurs (fun a => lf (g a)) l s.
Proof.
  intros (l1 & l2 & Q & Hs). apply Permutation_sym, Permutation_map_inv in Q. destruct Q as (l3 & Q & P3).
  symmetry in Q. apply map_eq_app in Q. destruct Q as (k1 & k2 & -> & <- & <-).
  exists k1, k2. split; [exact P3|]. now apply sums_map.
Qed.

(** Terms that are at most c 2^e, for a count c of each, give sums of at most the sum of counts times 2^e, as
    long as that is not more than 2^prec: whatever is rounded, multiples of 2^e are not. *)
(** Zero terms may be left out: no other number occurs because of them. *)
Lemma occurs_without_zeros (l0 l1 : list term) s : (forall t, In t l0 -> zero_term t) ->
  occurs (leaf f) (l0 ++ l1) s -> occurs (leaf f) l1 s.
Proof.
  intros Z (k1 & k2 & P & Hs).
  destruct (permutation_split k1 k2 l0 l1 (Permutation_sym P)) as (a0 & a1 & b0 & b1 & A & B & C & E).
  exists a1, b1. split; [exact E|]. apply (zeros_add_nothing f k1 s Hs a0 a1 A).
  intros t I. apply Z. rewrite C. apply in_or_app. now left.
Qed.

Section Bounds.
Context {A : Type}.
Variables (lf : A -> R -> Prop) (l : list A) (c : A -> nat) (e : Z).
Hypothesis e_normal : (emin f + prec f - 1 <= e)%Z.
Hypothesis not_too_many : INR (list_sum (map c l)) <= bpow radix2 (prec f).

Let counted k := INR (list_sum (map c k)).

Let counted_sum k : sum (fun a => INR (c a) * bpow radix2 e) k = counted k * bpow radix2 e.
Proof.
  unfold counted. induction k as [|a k IH]; [simpl; ring|]. simpl sum.
  change (list_sum (map c (a :: k))) with (c a + list_sum (map c k))%nat. rewrite plus_INR, IH. ring.
Qed.

Let counted_part l1 l2 k1 k2 : Permutation l (l1 ++ l2) -> Permutation l1 (k1 ++ k2) -> counted k1 <= counted l.
Proof.
  intros P Q. apply le_INR.
  assert (C : forall a b, Permutation a b -> list_sum (map c a) = list_sum (map c b)).
  { induction 1; simpl in *; lia. }
  rewrite (C _ _ P), map_app, list_sum_app, (C _ _ Q), map_app, list_sum_app. lia.
Qed.

Lemma occurs_le s : (forall a v, In a l -> lf a v -> v <= INR (c a) * bpow radix2 e) ->
  occurs lf l s -> s <= INR (list_sum (map c l)) * bpow radix2 e.
Proof.
  intros H (l1 & l2 & P & Hs). pose proof (bpow_ge_0 radix2 e) as B.
  apply Rle_trans with (sum (fun a => INR (c a) * bpow radix2 e) l1).
  - apply (sums_le f lf); [| |exact Hs].
    + intros a v I. apply H. rewrite P. apply in_or_app. now left.
    + intros k1 k2 Q. rewrite counted_sum. apply solid_multiple; [|exact e_normal].
      apply Rle_trans with (2 := not_too_many). now apply (counted_part l1 l2 k1 k2).
  - rewrite counted_sum. apply Rmult_le_compat_r; [exact B|]. apply (counted_part l1 l2 l1 []); [exact P|].
    now rewrite app_nil_r.
Qed.

Lemma occurs_ge s : (forall a v, In a l -> lf a v -> - (INR (c a) * bpow radix2 e) <= v) ->
  occurs lf l s -> - (INR (list_sum (map c l)) * bpow radix2 e) <= s.
Proof.
  intros H (l1 & l2 & P & Hs). pose proof (bpow_ge_0 radix2 e) as B.
  assert (Opp : forall k, sum (fun a => - (INR (c a) * bpow radix2 e)) k = - (counted k * bpow radix2 e)).
  { intros k. rewrite <- counted_sum. induction k; simpl; lra. }
  apply Rle_trans with (sum (fun a => - (INR (c a) * bpow radix2 e)) l1).
  - rewrite Opp. apply Ropp_le_contravar. apply Rmult_le_compat_r; [exact B|].
    apply (counted_part l1 l2 l1 []); [exact P|]. now rewrite app_nil_r.
  - apply (sums_ge f lf); [| |exact Hs].
    + intros a v I. apply H. rewrite P. apply in_or_app. now left.
    + intros k1 k2 Q. rewrite Opp. apply solid_opp. apply solid_multiple; [|exact e_normal].
      apply Rle_trans with (2 := not_too_many). now apply (counted_part l1 l2 k1 k2).
Qed.

End Bounds.

(** A unit reads a coordinate of size at most [widest] with a weight of size at most [steepest], and has a bias of
    size at most [largest] >= 1. Let 2^e be at least widest steepest, and at least [largest]. While the unit is
    evaluated no number above 2 * 2^e occurs. For: search/steps.py within_range (a unit). *)
Theorem unit_in_range (a : unit) (widest steepest largest : R) (e : Z) (s : R) :
  well_formed a -> 1 <= largest -> Rabs (t_of a) <= widest -> Rabs (slope a) <= steepest ->
  Rabs (bias a) <= largest -> widest * steepest <= bpow radix2 e -> largest <= bpow radix2 e ->
  occurs (leaf f) (unit_terms a) s -> Rabs s <= 2 * bpow radix2 e.
Proof.
  intros F L1 T W B E El O. pose proof (bpow_gt_0 radix2 e) as B0.
  assert (E0 : (0 <= e)%Z) by (apply (le_bpow radix2); apply Rle_trans with (2 := El); simpl; lra).
  assert (Ee : (emin f + prec f - 1 <= e)%Z) by (pose proof (one_normal f); lia).
  assert (Se := solid_bpow e Ee).
  assert (Reads : forall x x', reads f x x' -> Rabs x' <= Rabs x).
  { intros x x' [->|[_ ->]]; [apply Rle_refl|rewrite Rabs_R0; apply Rabs_pos]. }
  assert (Rnd : forall x y, Rabs x <= bpow radix2 e -> rnd f x y -> Rabs y <= bpow radix2 e).
  { intros x y H R. apply Rabs_le_inv in H. apply Rabs_le. split.
    - apply (rnd_ge f x); [now apply solid_opp|lra|exact R].
    - apply (rnd_le f x); [exact Se|lra|exact R]. }
  assert (Bb : Rabs (bias a) <= bpow radix2 e) by lra.
  assert (Product : forall x w x' w', reads f x x' -> reads f w w' -> Rabs x * Rabs w <= bpow radix2 e ->
            Rabs (x' * w') <= bpow radix2 e).
  { intros x w x' w' Rx Rw H. rewrite Rabs_mult. apply Rle_trans with (2 := H).
    apply Rmult_le_compat; try apply Rabs_pos; now apply Reads. }
  pose (tagged := (Prod (t_of a) (slope a), 1%nat) :: (own a, 1%nat) :: map (fun t => (t, 0%nat)) (others a)).
  assert (U : unit_terms a = map fst tagged).
  { unfold unit_terms, tagged. simpl. rewrite map_map. simpl. now rewrite map_id. }
  rewrite U in O. apply occurs_map in O.
  assert (N : list_sum (map snd tagged) = 2%nat).
  { unfold tagged. simpl. rewrite map_map. simpl. clear. induction (others a); [reflexivity|exact IHl]. }
  assert (Bd : forall q v, In q tagged -> leaf f (fst q) v -> Rabs v <= INR (snd q) * bpow radix2 e).
  { intros q v [<-|[<-|I]]; cbn [fst snd INR]; intros L; rewrite ?Rmult_1_l.
    - destruct L as (x' & w' & Rx & Rw & R). apply (Rnd (x' * w')); [|exact R].
      apply (Product (t_of a) (slope a)); trivial. apply Rle_trans with (2 := E).
      apply Rmult_le_compat; trivial; apply Rabs_pos.
    - destruct F as [[Q|Q] _]; rewrite Q in L.
      + apply Rle_trans with (2 := Bb). now apply Reads.
      + destruct L as (x' & b' & Rx & Rb & R). apply (Rnd (x' * b')); [|exact R].
        apply (Product 1 (bias a)); trivial. now rewrite Rabs_R1, Rmult_1_l.
    - apply in_map_iff in I. destruct I as (t & <- & I). simpl in *.
      rewrite (zero_leaf f t v); [rewrite Rabs_R0; lra|now apply F|exact L]. }
  assert (N2 : INR (list_sum (map snd tagged)) <= bpow radix2 (prec f)).
  { rewrite N. simpl. apply Rle_trans with (bpow radix2 1); [simpl; lra|].
    apply bpow_le. pose proof (prec_ok f). lia. }
  assert (Hi := occurs_le _ tagged snd e Ee N2 s (fun q v I L => proj2 (Rabs_le_inv _ _ (Bd q v I L))) O).
  assert (Lo := occurs_ge _ tagged snd e Ee N2 s (fun q v I L => proj1 (Rabs_le_inv _ _ (Bd q v I L))) O).
  rewrite N in Hi, Lo. simpl in Hi, Lo. apply Rabs_le. lra.
Qed.

(** A group of n units that are at most 2 * 2^e in size, with n at most 2^prec: while it is evaluated, no number
    above 2 n 2^e occurs. For: search/steps.py within_range (a group). *)
Theorem group_in_range (zs : list R) (e : Z) (s : R) :
  (0 <= e)%Z -> (1 <= length zs)%nat -> INR (length zs) <= bpow radix2 (prec f) ->
  (forall z, In z zs -> Rabs z <= 2 * bpow radix2 e) ->
  occurs (leaf f) (Bias 1 :: map (fun z => Prod (relu z) (-1)) zs) s ->
  Rabs s <= 2 * INR (length zs) * bpow radix2 e.
Proof.
  intros E0 N1 N Z O. pose proof (one_normal f) as On. pose proof (prec_pos f) as Pf.
  pose proof (tiny_le_1 f) as T1.  pose proof (tiny_pos f) as T0.
  assert (Nm : normal f (-1)) by (right; rewrite Rabs_left; lra).
  assert (Neg : forall z v, leaf f (Prod (relu z) (-1)) v -> v <= 0).
  { intros z v (r' & w' & Rr & Rw & R). apply reads_normal in Rw; [|exact Nm]. subst.
    apply (rnd_le f (r' * -1)); [apply solid_0| |exact R].
    assert (0 <= r') by (destruct Rr as [->|[_ ->]]; [apply Rmax_r|lra]). lra. }
  pose (tagged := (Bias 1, (1%nat, 0%nat)) :: map (fun z => (Prod (relu z) (-1), (0%nat, 1%nat))) zs).
  assert (U : Bias 1 :: map (fun z => Prod (relu z) (-1)) zs = map fst tagged).
  { unfold tagged. simpl. rewrite map_map. reflexivity. }
  rewrite U in O. apply occurs_map in O.
  assert (C1 : list_sum (map (fun q => fst (snd q)) tagged) = 1%nat).
  { unfold tagged. simpl. rewrite map_map. simpl. clear. induction zs; [reflexivity|exact IHzs]. }
  assert (C2 : list_sum (map (fun q => snd (snd q)) tagged) = length zs).
  { unfold tagged. simpl. rewrite map_map. simpl. clear. induction zs; [reflexivity|simpl; now f_equal]. }
  assert (S1 : solid f (bpow radix2 (e + 1))) by (apply solid_bpow; lia).
  assert (B1 : bpow radix2 (e + 1) = 2 * bpow radix2 e) by (rewrite bpow_plus; change (bpow radix2 1) with 2; ring).
  assert (Hi : s <= INR (list_sum (map (fun q => fst (snd q)) tagged)) * bpow radix2 (e + 1)).
  { apply (occurs_le (fun q => leaf f (fst q))); [lia| | |exact O].
    - rewrite C1. simpl. change 1 with (bpow radix2 0). apply bpow_le. lia.
    - intros q v [<-|I] L.
      + apply (reads_solid f) in L; [|apply solid_1]. subst. simpl. rewrite Rmult_1_l.
        change 1 with (bpow radix2 0). apply bpow_le. lia.
      + apply in_map_iff in I. destruct I as (z & <- & I). simpl in *. specialize (Neg z v L). lra. }
  assert (Lo : - (INR (list_sum (map (fun q => snd (snd q)) tagged)) * bpow radix2 (e + 1)) <= s).
  { apply (occurs_ge (fun q => leaf f (fst q))); [lia|now rewrite C2| |exact O].
    intros q v [<-|I] L.
    - apply (reads_solid f) in L; [|apply solid_1]. subst. simpl. lra.
    - apply in_map_iff in I. destruct I as (z & <- & I). simpl in L |- *. rewrite Rmult_1_l.
      destruct L as (r' & w' & Rr & Rw & R). apply reads_normal in Rw; [|exact Nm]. subst.
      apply (rnd_ge f (r' * -1)); [now apply solid_opp| |exact R]. rewrite B1.
      specialize (Z z I). apply Rabs_le_inv in Z. pose proof (bpow_gt_0 radix2 e).
      assert (r' <= 2 * bpow radix2 e); [|lra].
      destruct Rr as [->|[_ ->]]; [unfold relu; apply Rmax_lub; lra|lra]. }
  rewrite C1, B1 in Hi. rewrite C2, B1 in Lo. simpl in Hi. pose proof (bpow_gt_0 radix2 e).
  assert (N1' : 1 <= INR (length zs)) by (apply (le_INR 1); exact N1).
  apply Rabs_le. nra.
Qed.

(** A step is a group in which one unit has a slope, and the others are never above 0, so that ReLU makes them
    exactly 0: they count for nothing. For: search/steps.py within_range (of Steps and RowSteps). *)
Theorem step_in_range (z : R) (flat : list R) (e : Z) (s : R) :
  (0 <= e)%Z -> Rabs z <= 2 * bpow radix2 e -> (forall y, In y flat -> y <= 0) ->
  occurs (leaf f) (map (fun z => Prod (relu z) (-1)) flat ++ [Bias 1; Prod (relu z) (-1)]) s ->
  Rabs s <= 2 * bpow radix2 e.
Proof.
  intros E Z F O. apply occurs_without_zeros in O.
  - assert (G := group_in_range [z] e s E (le_n 1)). simpl INR in G. rewrite Rmult_1_r in G. apply G; trivial.
    + change 1 with (bpow radix2 0). apply bpow_le. pose proof (prec_pos f). lia.
    + intros y [<-|[]]. exact Z.
  - intros t I. apply in_map_iff in I. destruct I as (y & <- & I). left. apply Rmax_right. now apply F.
Qed.

End Range.

(** * The test, as computed *)

Lemma rn_not_much_less x : tiny binary64 <= x -> x <= rn x * (33 / 32).
Proof.
  intros L. pose proof (tiny_pos binary64).
  assert (D : Rabs (rn x - x) <= / 64 * Rabs x).
  { apply Rle_trans with (/ 2 * bpow radix2 (- 53 + 1) * Rabs x).
    - apply relative_error_N_FLT; [reflexivity|]. rewrite Rabs_pos_eq by lra. exact L.
    - apply Rmult_le_compat_r; [apply Rabs_pos|]. replace (/ 64) with (bpow radix2 (-6)) by (simpl; lra).
      change (/ 2) with (bpow radix2 (-1)). rewrite <- bpow_plus. now apply bpow_le. }
  rewrite (Rabs_pos_eq x) in D by lra. apply Rabs_le_inv in D. lra.
Qed.

(** within_range: units times widest steepest, and units times [largest], computed in float64, are below a fifth of
    [big]. Then, in a group of that many units (at most 2^prec of them), every number that occurs in a unit or in
    the group is below [big].
    For: search/steps.py within_range. *)
Theorem within_range_sound (f : format) (us : list unit) (zs : list R) (widest steepest largest big : R) :
  (1 <= length us)%nat -> INR (length us) <= bpow radix2 (prec f) -> 1 <= largest -> 0 <= widest -> 0 <= steepest ->
  rn (INR (length us) * rn (widest * steepest)) < big / 5 -> rn (INR (length us) * largest) < big / 5 ->
  (forall a, In a us -> well_formed a /\ Rabs (t_of a) <= widest /\
     Rabs (slope a) <= steepest /\ Rabs (bias a) <= largest) ->
  Forall2 (unit_value f) us zs ->
  (forall a s, In a us -> occurs f (leaf f) (unit_terms a) s -> Rabs s < big) /\
  (forall s, occurs f (leaf f) (Bias 1 :: map (fun z => Prod (relu z) (-1)) zs) s -> Rabs s < big).
Proof.
  intros N1 N L P Q C1 C2 Us V. pose proof (tiny_le_1 binary64) as T1.
  set (n := INR (length us)) in *. assert (Pn : 1 <= n) by (apply (le_INR 1); exact N1).
  set (x := Rmax (widest * steepest) largest).
  assert (X1 : 1 <= x) by (unfold x; apply Rle_trans with (1 := L); apply Rmax_r).
  assert (L2 : 1 <= n * largest) by nra. assert (A2 := rn_not_much_less (n * largest) ltac:(lra)).
  assert (E1 : n * x < big / 4).
  { unfold x. destruct (Rle_lt_dec (widest * steepest) largest) as [G|G]; [rewrite Rmax_right by exact G; lra|].
    rewrite Rmax_left by lra. assert (A1 := rn_not_much_less (widest * steepest) ltac:(lra)).
    assert (R1 : 1 <= rn (widest * steepest)).
    { apply (rnd_ge binary64 (widest * steepest)); [apply solid_1|lra|apply rn_rnd]. }
    assert (A3 := rn_not_much_less (n * rn (widest * steepest)) ltac:(nra)).
    assert (n * (widest * steepest) <= n * (rn (widest * steepest) * (33 / 32))) by (apply Rmult_le_compat_l; lra).
    lra. }
  (* The least power of two that is at least x is at most twice as large. *)
  set (e := Z.max 0 (mag radix2 x)).
  assert (Ex : x <= bpow radix2 e).
  { apply Rle_trans with (bpow radix2 (mag radix2 x)); [|apply bpow_le; lia]. left.
    assert (M := bpow_mag_gt radix2 x). now rewrite (Rabs_pos_eq x) in M by lra. }
  assert (Ey : bpow radix2 e <= 2 * x).
  { unfold e. destruct (Z.max_spec 0 (mag radix2 x)) as [[_ ->]|[_ ->]]; [|simpl; lra].
    apply Rle_trans with (2 * bpow radix2 (mag radix2 x - 1)).
    - change 2 with (bpow radix2 1). rewrite <- bpow_plus. apply bpow_le. lia.
    - apply Rmult_le_compat_l; [lra|]. assert (M := bpow_mag_le radix2 x ltac:(lra)).
      now rewrite (Rabs_pos_eq x) in M by lra. }
  assert (Bound : 2 * n * bpow radix2 e < big).
  { assert (2 * n * bpow radix2 e <= 4 * (n * x)) by nra. lra. }
  pose proof (bpow_gt_0 radix2 e) as B0.
  assert (Ep : widest * steepest <= bpow radix2 e) by (apply Rle_trans with (2 := Ex); apply Rmax_l).
  assert (Eb : largest <= bpow radix2 e) by (apply Rle_trans with (2 := Ex); apply Rmax_r).
  assert (U1 : forall a s, In a us -> occurs f (leaf f) (unit_terms a) s -> Rabs s <= 2 * bpow radix2 e).
  { intros a s I O. destruct (Us a I) as (F & T & W & B).
    now apply (unit_in_range f a widest steepest largest e s). }
  split; [intros a s I O; specialize (U1 a s I O); nra|]. intros s O.
  assert (Lz : length us = length zs) by apply (same_length V).
  assert (Z : forall z, In z zs -> Rabs z <= 2 * bpow radix2 e).
  { clear - V U1. induction V as [|a z us zs H V IH]; [easy|]. intros y [<-|I].
    - apply (U1 a z (or_introl eq_refl)). exists (unit_terms a), []. split; [now rewrite app_nil_r|exact H].
    - apply IH; [|exact I]. intros b s Ib. apply U1. now right. }
  apply Rle_lt_trans with (2 * INR (length zs) * bpow radix2 e); [|rewrite <- Lz; exact Bound].
  apply (group_in_range f zs e s); trivial; [unfold e; lia|lia|now rewrite <- Lz].
Qed.
