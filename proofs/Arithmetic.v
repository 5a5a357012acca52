(** The profile ieee-any-order/1 of docs/certificate-v2.md, section 4, as relations between real numbers.

    A number of a format is a real number here, and exponents are unbounded above: overflow, NaN and infinity
    are not modelled. The checker excludes overflow by tests of its own. Both zeros are one number. *)

From Coq Require Import Reals ZArith List Permutation Lra Lia.
From Flocq Require Import Core.
Import ListNotations.
Open Scope R_scope.

(** * Definitions *)

(** A binary format: [prec] bits, and 2^emin is the least positive number. Its unit of roundoff is a normal
    number, as it is in float16, bfloat16, float32 and float64; then 1 is normal, too. *)
Record format := Format {
  prec : Z;
  emin : Z;
  prec_ok : (1 < prec)%Z;
  u_normal : (emin + prec - 1 <= - prec)%Z }.

Definition binary32 : format := Format 24 (-149) eq_refl ltac:(discriminate).
Definition binary64 : format := Format 53 (-1074) eq_refl ltac:(discriminate).
Definition binary16 : format := Format 11 (-24) eq_refl ltac:(discriminate).
Definition bfloat16 : format := Format 8 (-133) eq_refl ltac:(discriminate).

Section Arithmetic.
Variable f : format.

(** [number x]: x is a number of the format, normal or subnormal. *)
Definition number (x : R) := generic_format radix2 (FLT_exp (emin f) (prec f)) x.

(** The smallest normal number, which is [A.tiny] of core/balls.py. *)
Definition tiny : R := bpow radix2 (emin f + prec f - 1).

(** The unit of roundoff of one rounding to the format. ([A.u] of core/balls.py is u (1 + 2^-11): two roundings.) *)
Definition u : R := bpow radix2 (- prec f).

(** [rnd x y]: where the exact number is x, the arithmetic may go on with y. It is x rounded to nearest, with
    any rule for ties, in the format or in any wider one; or x itself, as in a fused operation; or 0, flushed,
    as |x| is below the smallest normal number. Two roundings, first to a wider format and then to this one, are
    [rnd] twice. *)
Inductive rnd (x y : R) : Prop :=
| rnd_nearest (p e : Z) (ties : Z -> bool) :
    (prec f <= p)%Z -> (e <= emin f)%Z -> y = round radix2 (FLT_exp e p) (Znearest ties) x -> rnd x y
| rnd_kept : y = x -> rnd x y
| rnd_flushed : Rabs x < tiny -> y = 0 -> rnd x y.

(** [reads x y]: an operand x may be read as y, which is x, or 0 if x is subnormal. *)
Definition reads (x y : R) := y = x \/ (Rabs x < tiny /\ y = 0).

(** [sums leaf l s]: s is a value that the sum of the terms l may have, in some order and bracketing, where
    [leaf a v] says that the term a may have the value v. An addition gives the exact sum; [sums_rnd] rounds,
    flushes or converts it, and may do so any number of times, and anywhere. So the theorems hold for more than
    the profile allows. An accumulator may begin with zero. *)
Inductive sums {A : Type} (leaf : A -> R -> Prop) : list A -> R -> Prop :=
| sums_zero : sums leaf [] 0
| sums_leaf a v : leaf a v -> sums leaf [a] v
| sums_add l l1 l2 x y : Permutation l (l1 ++ l2) -> sums leaf l1 x -> sums leaf l2 y -> sums leaf l (x + y)
| sums_rnd l x y : sums leaf l x -> rnd x y -> sums leaf l y.

(** A term of a linear layer: the product of an input and a weight, or a bias. *)
Inductive term := Prod (x w : R) | Bias (b : R).

(** The values that a term may have: operands are read, perhaps flushed; the product is rounded, or not if it is
    fused with an addition. *)
Definition leaf (t : term) (v : R) : Prop :=
  match t with
  | Prod x w => exists x' w', reads x x' /\ reads w w' /\ rnd (x' * w') v
  | Bias b => reads b v
  end.

(** The exact value of a term. *)
Definition value (t : term) : R := match t with Prod x w => x * w | Bias b => b end.

(** [solid c]: c is a number of the format that nothing can round or flush: it is zero or normal. *)
Definition solid (c : R) := number c /\ (c = 0 \/ tiny <= Rabs c).

(** The exact sum of c over a list. *)
Definition sum {A : Type} (c : A -> R) (l : list A) : R := fold_right (fun a s => c a + s) 0 l.

(** * Basic facts *)

Lemma prec_pos : (0 < prec f)%Z.
Proof. pose proof (prec_ok f); lia. Qed.

Lemma one_normal : (emin f + prec f - 1 <= 0)%Z.
Proof. pose proof (u_normal f); pose proof (prec_ok f); lia. Qed.

Lemma tiny_pos : 0 < tiny.
Proof. apply bpow_gt_0. Qed.

Lemma u_pos : 0 < u.
Proof. apply bpow_gt_0. Qed.

Lemma tiny_le_u : tiny <= u.
Proof. apply bpow_le. apply u_normal. Qed.

Lemma tiny_le_1 : tiny <= 1.
Proof. change 1 with (bpow radix2 0). apply bpow_le. apply one_normal. Qed.

Lemma number_0 : number 0.
Proof. apply generic_format_0. Qed.

Lemma number_opp x : number x -> number (- x).
Proof. apply generic_format_opp. Qed.

(** A number of the format is a number of every wider format. *)
Lemma wider (p e : Z) x : (prec f <= p)%Z -> (e <= emin f)%Z -> number x -> generic_format radix2 (FLT_exp e p) x.
Proof. intros Hp He. apply generic_inclusion_mag. intros _. unfold FLT_exp. lia. Qed.

Lemma reads_rnd x y : reads x y -> rnd x y.
Proof. intros [H|[H K]]; [now apply rnd_kept|now apply rnd_flushed]. Qed.

(** Rounding is monotone: what is at most a solid number c stays at most c, whatever the arithmetic does. *)
Lemma rnd_le x y c : solid c -> x <= c -> rnd x y -> y <= c.
Proof.
  intros [Fc Sc] Hx [p e ties Hp He ->| -> |Hs ->]; [|exact Hx|].
  - apply round_le_generic; [|apply valid_rnd_N|now apply wider|exact Hx].
    apply FLT_exp_valid. unfold Prec_gt_0. pose proof prec_pos. lia.
  - destruct Sc as [->|Sc]; [lra|]. pose proof tiny_pos. revert Hs Sc. unfold Rabs.
    destruct (Rcase_abs x), (Rcase_abs c); lra.
Qed.

(** The same below. *)
Lemma rnd_ge x y c : solid c -> c <= x -> rnd x y -> c <= y.
Proof.
  intros [Fc Sc] Hx [p e ties Hp He ->| -> |Hs ->]; [|exact Hx|].
  - apply round_ge_generic; [|apply valid_rnd_N|now apply wider|exact Hx].
    apply FLT_exp_valid. unfold Prec_gt_0. pose proof prec_pos. lia.
  - destruct Sc as [->|Sc]; [lra|]. pose proof tiny_pos. revert Hs Sc. unfold Rabs.
    destruct (Rcase_abs x), (Rcase_abs c); lra.
Qed.

(** A solid number goes through every rounding unchanged. *)
Lemma rnd_solid c y : solid c -> rnd c y -> y = c.
Proof. intros S H. apply Rle_antisym; [eapply rnd_le|eapply rnd_ge]; eauto; apply Rle_refl. Qed.

(** A solid operand is read as it is. *)
Lemma reads_solid c y : solid c -> reads c y -> y = c.
Proof. intros S H. apply rnd_solid; [exact S|now apply reads_rnd]. Qed.

Lemma solid_0 : solid 0.
Proof. split; [apply number_0|now left]. Qed.

Lemma solid_opp c : solid c -> solid (- c).
Proof. intros [F S]. split; [now apply number_opp|]. rewrite Rabs_Ropp. destruct S; [left; lra|now right]. Qed.

(** Whole numbers up to 2^prec are solid. *)
Lemma solid_whole (n : Z) : Rabs (IZR n) <= bpow radix2 (prec f) -> solid (IZR n).
Proof.
  intros H. pose proof one_normal as N. pose proof prec_pos as P. split.
  - destruct (Rle_lt_or_eq_dec _ _ H) as [L|E].
    + apply generic_format_FLT. exists (Float radix2 n 0).
      * unfold F2R; simpl. ring.
      * apply lt_IZR. rewrite IZR_Zpower by lia. cbn [Fnum]. rewrite abs_IZR. exact L.
      * simpl. lia.
    + assert (G : number (bpow radix2 (prec f))) by (apply generic_format_FLT_bpow; [exact P|lia]).
      revert E. unfold Rabs. destruct (Rcase_abs (IZR n)); intros E; [|now rewrite E].
      replace (IZR n) with (- bpow radix2 (prec f)) by lra. now apply number_opp.
  - destruct (Z.eq_dec n 0) as [->|Z]; [now left|right]. apply Rle_trans with 1; [apply tiny_le_1|].
    rewrite <- abs_IZR. apply IZR_le. lia.
Qed.

Lemma solid_1 : solid 1.
Proof.
  apply (solid_whole 1). rewrite Rabs_R1. change 1 with (bpow radix2 0). apply bpow_le. pose proof prec_pos; lia.
Qed.

Lemma sum_app {A} (c : A -> R) l1 l2 : sum c (l1 ++ l2) = sum c l1 + sum c l2.
Proof. induction l1 as [|a l IH]; simpl; [ring|rewrite IH; ring]. Qed.

Lemma sum_perm {A} (c : A -> R) l1 l2 : Permutation l1 l2 -> sum c l1 = sum c l2.
Proof. induction 1; simpl; lra. Qed.

Lemma sum_abs_nonneg {A} (c : A -> R) l : 0 <= sum (fun a => Rabs (c a)) l.
Proof. induction l as [|a l IH]; simpl; [lra|]. pose proof (Rabs_pos (c a)). lra. Qed.

Lemma sum_abs {A} (c : A -> R) l : Rabs (sum c l) <= sum (fun a => Rabs (c a)) l.
Proof.
  induction l as [|a l IH]; simpl; [rewrite Rabs_R0; lra|].
  pose proof (Rabs_triang (c a) (sum c l)). lra.
Qed.

(** * Majorants

    If each term is at most c, and all partial sums of the c are solid, then every value of the sum is at most
    the sum of the c, in any order: this takes the place of error analysis wherever an answer is exact. *)

Section Majorants.
Context {A : Type}.
Variables (value_of : A -> R -> Prop) (c : A -> R).

Let solid_sums l := forall l1 l2, Permutation l (l1 ++ l2) -> solid (sum c l1).

Let left_sums l l1 l2 : Permutation l (l1 ++ l2) -> solid_sums l -> solid_sums l1.
Proof. intros P H k1 k2 Q. apply (H k1 (k2 ++ l2)). rewrite P, Q. now rewrite app_assoc. Qed.

Let right_sums l l1 l2 : Permutation l (l1 ++ l2) -> solid_sums l -> solid_sums l2.
Proof. intros P. apply (left_sums l l2 l1). rewrite P. apply Permutation_app_comm. Qed.

Let left_in l l1 l2 (a : A) : Permutation l (l1 ++ l2) -> In a l1 -> In a l.
Proof. intros P I. apply (Permutation_in a (Permutation_sym P)). apply in_or_app. now left. Qed.

Let right_in l l1 l2 (a : A) : Permutation l (l1 ++ l2) -> In a l2 -> In a l.
Proof. intros P I. apply (Permutation_in a (Permutation_sym P)). apply in_or_app. now right. Qed.

(** A sum whose terms are at most c is at most the sum of the c. *)
Theorem sums_le l s :
  (forall a v, In a l -> value_of a v -> v <= c a) ->
  (forall l1 l2, Permutation l (l1 ++ l2) -> solid (sum c l1)) ->
  sums value_of l s -> s <= sum c l.
Proof.
  intros Hl Hs H. induction H as [|a v H|l l1 l2 x y P H1 IH1 H2 IH2|l x y H IH R].
  - apply Rle_refl.
  - simpl. pose proof (Hl a v (or_introl eq_refl) H). lra.
  - rewrite (sum_perm c _ _ P), sum_app. apply Rplus_le_compat.
    + apply IH1; [intros a v I; apply Hl; now apply (left_in l l1 l2)|now apply (left_sums l l1 l2)].
    + apply IH2; [intros a v I; apply Hl; now apply (right_in l l1 l2)|now apply (right_sums l l1 l2)].
  - apply (rnd_le x); [|now apply IH|exact R]. apply (Hs l []). now rewrite app_nil_r.
Qed.

(** A sum whose terms are at least c is at least the sum of the c. *)
Theorem sums_ge l s :
  (forall a v, In a l -> value_of a v -> c a <= v) ->
  (forall l1 l2, Permutation l (l1 ++ l2) -> solid (sum c l1)) ->
  sums value_of l s -> sum c l <= s.
Proof.
  intros Hl Hs H. induction H as [|a v H|l l1 l2 x y P H1 IH1 H2 IH2|l x y H IH R].
  - apply Rle_refl.
  - simpl. pose proof (Hl a v (or_introl eq_refl) H). lra.
  - rewrite (sum_perm c _ _ P), sum_app. apply Rplus_le_compat.
    + apply IH1; [intros a v I; apply Hl; now apply (left_in l l1 l2)|now apply (left_sums l l1 l2)].
    + apply IH2; [intros a v I; apply Hl; now apply (right_in l l1 l2)|now apply (right_sums l l1 l2)].
  - apply (rnd_ge x); [|now apply IH|exact R]. apply (Hs l []). now rewrite app_nil_r.
Qed.

(** If each term can only have the value c, and all partial sums of the c are solid, the sum has one value. *)
Theorem sums_exact l s :
  (forall a v, In a l -> value_of a v -> v = c a) ->
  (forall l1 l2, Permutation l (l1 ++ l2) -> solid (sum c l1)) ->
  sums value_of l s -> s = sum c l.
Proof.
  intros Hl Hs H. apply Rle_antisym.
  - apply sums_le; [|exact Hs|exact H]. intros a v I L. right. now apply Hl.
  - apply sums_ge; [|exact Hs|exact H]. intros a v I L. right. symmetry. now apply Hl.
Qed.

End Majorants.

End Arithmetic.
