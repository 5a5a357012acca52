(** One operation of docs/certificate-v2.md, section 4, and how far it may be off: [operation_error].

    An operation with the exact result x gives x itself, or x rounded to nearest in a format with at least 11
    more bits and exponents that reach at least as far down; that number may be kept, rounded to the format, or
    flushed if it is below the smallest normal number, at once or at any time before it is used again. This takes
    at most two roundings, which together are off by at most v |x|, v = u (1 + 2^-11), and what underflow costs. *)

From Coq Require Import Reals ZArith List Lra Lia.
From Flocq Require Import Core Relative Mult_error.
From Onelayer Require Import Arithmetic.
Import ListNotations.
Open Scope R_scope.

(** * Roundings *)

Section Rounding.
Variable f : format.

(** x rounded to nearest in the format with p bits and least positive number 2^e; [ties] says where ties go. *)
Definition nearest (p e : Z) (ties : Z -> bool) (x : R) : R := round radix2 (FLT_exp e p) (Znearest ties) x.

(** [settles x y]: between two operations a number x may become y. It is kept, rounded to the format, or flushed. *)
Inductive settles (x y : R) : Prop :=
| settles_kept : y = x -> settles x y
| settles_rounded (ties : Z -> bool) : y = nearest (prec f) (emin f) ties x -> settles x y
| settles_flushed : Rabs x < tiny f -> y = 0 -> settles x y.

(** [widens x y]: an operation with the exact result x first gives y: x itself, or x rounded in a wider format. *)
Inductive widens (x y : R) : Prop :=
| widens_kept : y = x -> widens x y
| widens_rounded (p e : Z) (ties : Z -> bool) :
    (prec f + 11 <= p)%Z -> (e <= emin f)%Z -> y = nearest p e ties x -> widens x y.

(** [operation x z]: an operation with the exact result x may give z. *)
Definition operation (x z : R) : Prop := exists y, widens x y /\ settles y z.

(** The relative error of two roundings: [A.u] of core/balls.py. *)
Definition v : R := u f * (1 + bpow radix2 (-11)).

Lemma u_le_quarter : u f <= 1 / 4.
Proof.
  unfold u. replace (1 / 4) with (bpow radix2 (-2)) by (simpl; lra). apply bpow_le. pose proof (prec_ok f). lia.
Qed.

Lemma v_bounds : u f <= v <= 5 / 16.
Proof.
  unfold v. pose proof (u_pos f). pose proof u_le_quarter.
  assert (0 < bpow radix2 (-11) <= 1 / 16).
  { split; [apply bpow_gt_0|]. replace (1 / 16) with (bpow radix2 (-4)) by (simpl; lra). now apply bpow_le. }
  nra.
Qed.

(** Half of the least positive number, twice, is at most half of the smallest normal number. *)
Lemma least_le_tiny e : (e <= emin f)%Z -> 2 * bpow radix2 e <= tiny f.
Proof.
  intros He. change 2 with (bpow radix2 1). rewrite <- bpow_plus. apply bpow_le. pose proof (prec_ok f). lia.
Qed.

(** What is at least the smallest normal number stays so when it is rounded. *)
Lemma nearest_normal p e ties x :
  (prec f <= p)%Z -> (e <= emin f)%Z -> tiny f <= Rabs x -> tiny f <= Rabs (nearest p e ties x).
Proof.
  intros Hp He L. unfold nearest.
  assert (P : Prec_gt_0 p) by (unfold Prec_gt_0; pose proof (prec_pos f); lia).
  assert (V : Valid_exp (FLT_exp e p)) by (now apply FLT_exp_valid).
  apply abs_round_ge_generic; [exact V|apply valid_rnd_N| |exact L].
  apply generic_format_FLT_bpow; [exact P|]. pose proof (prec_pos f). lia.
Qed.

Lemma nearest_number ties x : number f x -> nearest (prec f) (emin f) ties x = x.
Proof. apply round_generic. apply valid_rnd_N. Qed.

Lemma number_nearest ties x : number f (nearest (prec f) (emin f) ties x).
Proof. apply generic_format_round; [apply FLT_exp_valid; apply (prec_pos f)|apply valid_rnd_N]. Qed.

Lemma nearest_0 p e ties : nearest p e ties 0 = 0.
Proof. apply round_0. apply valid_rnd_N. Qed.

Lemma settles_refl x : settles x x.
Proof. now apply settles_kept. Qed.

(** However often a number settles, it does so once. *)
Lemma settles_trans x y z : settles x y -> settles y z -> settles x z.
Proof.
  intros [->|t ->|S ->] H; [exact H| |].
  - destruct H as [->|t' ->|S' ->].
    + now apply settles_rounded with t.
    + rewrite nearest_number by apply number_nearest. now apply settles_rounded with t.
    + apply settles_flushed; [|reflexivity]. apply Rnot_le_lt. intros L. apply (Rlt_not_le _ _ S').
      now apply nearest_normal; [lia|lia|].
  - replace z with 0; [now apply settles_flushed|]. destruct H as [->|t ->|_ ->]; trivial.
    now rewrite nearest_0.
Qed.

(** So an operation may be said to include all that happens to its result. *)
Lemma operation_settles x y z : operation x y -> settles y z -> operation x z.
Proof. intros (w & W & S) H. exists w. split; [exact W|now apply settles_trans with y]. Qed.

Lemma operation_kept x : operation x x.
Proof. exists x. split; [now apply widens_kept|apply settles_refl]. Qed.

(** One rounding, in this format or a wider one, flushed or not, is off by at most u |x| + tiny. *)
Theorem rnd_error x y : rnd f x y -> Rabs (y - x) <= u f * Rabs x + tiny f.
Proof.
  pose proof (tiny_pos f) as T. pose proof (u_pos f) as U. pose proof (Rabs_pos x) as X.
  intros [p e ties Hp He ->| -> |Hs ->].
  - assert (P : (0 < p)%Z) by (pose proof (prec_pos f); lia).
    destruct (error_N_FLT radix2 e p P ties x) as (eps & eta & B1 & B2 & _ & ->).
    replace (x * (1 + eps) + eta - x) with (x * eps + eta) by ring.
    apply Rle_trans with (Rabs (x * eps) + Rabs eta); [apply Rabs_triang|]. rewrite Rabs_mult.
    assert (C : / 2 * bpow radix2 (- p + 1) <= u f).
    { change (/ 2) with (bpow radix2 (-1)). rewrite <- bpow_plus. apply bpow_le. lia. }
    pose proof (least_le_tiny e He). pose proof (bpow_gt_0 radix2 e). pose proof (Rabs_pos eps). nra.
  - replace (x - x) with 0 by ring. rewrite Rabs_R0. nra.
  - replace (0 - x) with (- x) by ring. rewrite Rabs_Ropp. nra.
Qed.

(** The error of rounding to the format, in the sharp form u / (1 + u). *)
Lemma nearest_sharp p e ties x : (0 < p)%Z -> exists d h : R,
  Rabs d * (1 + bpow radix2 (- p)) <= bpow radix2 (- p) /\ Rabs h <= bpow radix2 e / 2 /\
  nearest p e ties x = x * (1 + d) + h.
Proof.
  intros P. destruct (relative_error_N_FLT'_ex radix2 e p P ties x) as (d & h & D & H & _ & E).
  exists d, h. split; [|split; [lra|exact E]]. pose proof (bpow_gt_0 radix2 (- p)) as B.
  assert (R : u_ro radix2 p = bpow radix2 (- p)).
  { unfold u_ro. change (/ 2) with (bpow radix2 (-1)). rewrite <- bpow_plus. f_equal. lia. }
  rewrite R in D. apply (Rmult_le_compat_r (1 + bpow radix2 (- p))) in D; [|lra].
  replace (bpow radix2 (- p) / (1 + bpow radix2 (- p)) * (1 + bpow radix2 (- p))) with (bpow radix2 (- p)) in D;
    [exact D|field; lra].
Qed.

(** Either a small number was flushed, or the two roundings are off by v |x| and little more than half a tiny. *)
Lemma operation_cases x z :
  operation x z -> (Rabs x < tiny f /\ z = 0) \/ Rabs (z - x) <= v * Rabs x + 9 / 16 * tiny f.
Proof.
  pose proof (tiny_pos f) as T. pose proof (u_pos f) as U. pose proof (Rabs_pos x) as X. pose proof v_bounds as V.
  pose proof u_le_quarter as U4.
  pose proof (least_le_tiny (emin f) (Z.le_refl _)) as L0. pose proof (bpow_gt_0 radix2 (emin f)) as B0.
  assert (One : forall ties, Rabs (nearest (prec f) (emin f) ties x - x) <= v * Rabs x + 9 / 16 * tiny f).
  { intros ties. destruct (nearest_sharp (prec f) (emin f) ties x (prec_pos f)) as (d & h & D & H & ->).
    fold (u f) in D. replace (x * (1 + d) + h - x) with (x * d + h) by ring.
    apply Rle_trans with (1 := Rabs_triang _ _). rewrite Rabs_mult. pose proof (Rabs_pos d).
    assert (Rabs d <= v) by nra. nra. }
  intros (y & [->|p e ties Hp He ->] & S).
  - destruct S as [->|t ->|S ->]; [|right; apply One|now left].
    right. replace (x - x) with 0 by ring. rewrite Rabs_R0. nra.
  - assert (P : (0 < p)%Z) by (pose proof (prec_pos f); lia).
    pose proof (least_le_tiny e He) as Le. pose proof (bpow_gt_0 radix2 e) as Be.
    assert (W : bpow radix2 (- p) <= u f * bpow radix2 (-11)).
    { unfold u. rewrite <- bpow_plus. apply bpow_le. lia. }
    pose proof (bpow_gt_0 radix2 (- p)) as Wp.
    assert (W2 : bpow radix2 (-11) <= 1) by (change 1 with (bpow radix2 0); now apply bpow_le).
    pose proof (bpow_gt_0 radix2 (-11)) as W3.
    destruct (nearest_sharp p e ties x P) as (d & h & D & H & E).
    pose proof (Rabs_pos d). assert (Dw : Rabs d <= u f * bpow radix2 (-11)) by nra.
    destruct S as [->|t ->|S ->].
    + right. rewrite E. replace (x * (1 + d) + h - x) with (x * d + h) by ring.
      apply Rle_trans with (1 := Rabs_triang _ _). rewrite Rabs_mult. unfold v. nra.
    + right.
      destruct (nearest_sharp (prec f) (emin f) t (nearest p e ties x) (prec_pos f)) as (d' & h' & D' & H' & ->).
      fold (u f) in D'. rewrite E. pose proof (Rabs_pos d').
      replace ((x * (1 + d) + h) * (1 + d') + h' - x) with (x * (d + d' * (1 + d)) + (h * (1 + d') + h')) by ring.
      apply Rle_trans with (1 := Rabs_triang _ _). rewrite Rabs_mult.
      assert (A : Rabs (d + d' * (1 + d)) <= v).
      { apply Rle_trans with (1 := Rabs_triang _ _). rewrite Rabs_mult.
        assert (Rabs (1 + d) <= 1 + u f).
        { apply Rle_trans with (1 := Rabs_triang _ _). rewrite Rabs_R1. nra. }
        assert (Rabs d' * Rabs (1 + d) <= u f) by (apply Rle_trans with (2 := D'); apply Rmult_le_compat_l; lra).
        unfold v. lra. }
      assert (B : Rabs (h * (1 + d') + h') <= 9 / 16 * tiny f).
      { apply Rle_trans with (1 := Rabs_triang _ _). rewrite Rabs_mult.
        assert (Rabs (1 + d') <= 5 / 4).
        { apply Rle_trans with (1 := Rabs_triang _ _). rewrite Rabs_R1. nra. }
        pose proof (Rabs_pos h). pose proof (Rabs_pos (1 + d')). nra. }
      nra.
    + left. split; [|reflexivity]. apply Rnot_le_lt. intros L. apply (Rlt_not_le _ _ S).
      apply nearest_normal; trivial. lia.
Qed.

(** An operation, rounded once or twice, flushed or not, is off by at most v |x| + tiny. For: core/balls.py
    Arithmetic.u, Arithmetic.tiny. *)
Theorem operation_error x z : operation x z -> Rabs (z - x) <= v * Rabs x + tiny f.
Proof.
  pose proof (tiny_pos f) as T. pose proof (Rabs_pos x) as X. pose proof v_bounds as V. pose proof (u_pos f) as U.
  intros H. destruct (operation_cases x z H) as [[S ->]|B]; [|nra].
  replace (0 - x) with (- x) by ring. rewrite Rabs_Ropp. nra.
Qed.

(** Below the smallest normal number nothing is lost but that. *)
Lemma operation_small x z : Rabs x < tiny f -> operation x z -> Rabs (z - x) <= tiny f.
Proof.
  pose proof (tiny_pos f) as T. pose proof (Rabs_pos x) as X. pose proof v_bounds as V. pose proof (u_pos f) as U.
  intros L H. destruct (operation_cases x z H) as [[S ->]|B]; [|nra].
  replace (0 - x) with (- x) by ring. rewrite Rabs_Ropp. nra.
Qed.

(** An operation is at most two steps of [rnd]: what is proved of [sums] holds for it. *)
Lemma operation_rnd x z : operation x z -> exists y, rnd f x y /\ rnd f y z.
Proof.
  intros (y & W & S). exists y. split.
  - destruct W as [->|p e ties Hp He ->]; [now apply rnd_kept|].
    apply (rnd_nearest f x _ p e ties); [pose proof (prec_pos f); lia|exact He|reflexivity].
  - destruct S as [->|t ->|S ->]; [now apply rnd_kept| |now apply rnd_flushed].
    now apply (rnd_nearest f y _ (prec f) (emin f) t); [lia|lia|].
Qed.

(** A number of the format goes through every operation unchanged, unless it is flushed. *)
Lemma operation_number x z : number f x -> operation x z -> z = x \/ (Rabs x < tiny f /\ z = 0).
Proof.
  intros F (y & W & S).
  assert (y = x) as ->.
  { destruct W as [->|p e ties Hp He ->]; [reflexivity|]. unfold nearest. apply round_generic; [apply valid_rnd_N|].
    apply (wider f); [pose proof (prec_pos f); lia|exact He|exact F]. }
  destruct S as [->|t ->|S ->]; [now left|left; now apply nearest_number|now right].
Qed.

(** A number that is zero or normal goes through every operation unchanged. *)
Lemma operation_solid c z : solid f c -> operation c z -> z = c.
Proof.
  intros S H. destruct (operation_rnd c z H) as (y & A & B).
  apply (rnd_solid f) in A; [|exact S]. subst. now apply (rnd_solid f).
Qed.

End Rounding.

(** * Arithmetics

    What the theorems about sums need to know of an arithmetic. [relative] and [absolute] are A.u and A.tiny of
    core/balls.py; numbers of the format that are 0 or at least [smallest] are not rounded, and those that are at
    least [flushed] not flushed. *)

(** Plus or minus a power of two: core/balls.py is_power, without zero. *)
Definition power_of_two (w : R) : Prop := exists k : Z, w = bpow radix2 k \/ w = - bpow radix2 k.

Record arithmetic := Arith {
  relative : R;
  absolute : R;
  smallest : R;
  flushed : R;
  in_format : R -> Prop;
  reading : R -> R -> Prop;  (** an operand x may be read as y *)
  result : R -> R -> Prop;   (** an operation with the exact result x may give y *)
  between : R -> R -> Prop;  (** a number x may become y until it is used *)
  relative_bounds : 0 <= relative <= 5 / 16;
  absolute_nonneg : 0 <= absolute;
  flushed_absolute : 0 <= flushed <= absolute;
  flushed_smallest : flushed <= smallest;
  reading_cases : forall x y, reading x y -> y = x \/ (Rabs x < flushed /\ y = 0);
  result_error : forall x y, result x y -> Rabs (y - x) <= relative * Rabs x + absolute;
  result_power : forall x w y, in_format x -> power_of_two w -> result (x * w) y -> Rabs (y - x * w) <= absolute;
  result_number : forall x y, in_format x -> result x y -> y = x \/ (Rabs x < flushed /\ y = 0);
  in_format_0 : in_format 0;
  in_format_power : forall x w, in_format x -> power_of_two w -> smallest <= Rabs (x * w) -> in_format (x * w);
  between_0 : forall y, between 0 y -> y = 0;
  between_refl : forall x, between x x;
  between_trans : forall x y z, between x y -> between y z -> between x z;
  result_between : forall x y z, result x y -> between y z -> result x z;
  reading_between : forall x y z, in_format x -> reading x y -> between y z -> reading x z }.

Lemma number_power f x w : number f x -> power_of_two w -> tiny f <= Rabs (x * w) -> number f (x * w).
Proof.
  intros F [k E] N.
  assert (G : number f (x * bpow radix2 k)).
  { apply mult_bpow_exact_FLT; [exact F|]. destruct (Req_dec x 0) as [->|Z].
    - rewrite Rmult_0_l, Rabs_R0 in N. pose proof (tiny_pos f). lra.
    - assert (M : (emin f + prec f - 1 < mag radix2 (x * bpow radix2 k))%Z).
      { apply mag_gt_bpow. destruct E as [->| ->]; [exact N|].
        replace (x * - bpow radix2 k) with (- (x * bpow radix2 k)) in N by ring. now rewrite Rabs_Ropp in N. }
      rewrite mag_mult_bpow in M by exact Z. lia. }
  destruct E as [->| ->]; [exact G|].
  replace (x * - bpow radix2 k) with (- (x * bpow radix2 k)) by ring. now apply number_opp.
Qed.

(** Real arithmetic: every operation is exact. For: core/balls.py REAL. *)
Definition real : arithmetic.
Proof.
  refine (Arith 0 0 0 0 (fun _ => True) (fun x y => y = x) (fun x y => y = x) (fun x y => y = x)
    _ _ _ _ _ _ _ _ _ _ _ _ _ _ _); try easy; try lra; intros.
  - now left.
  - subst. rewrite Rminus_diag_eq by reflexivity. rewrite Rabs_R0. pose proof (Rabs_pos x). lra.
  - subst. rewrite Rminus_diag_eq by reflexivity. rewrite Rabs_R0. lra.
  - now left.
  - now subst.
  - now subst.
  - now subst.
Defined.

(** The profile ieee-any-order/1 for a format. For: core/balls.py FLOAT32, FLOAT64. *)
Definition any_order (f : format) : arithmetic.
Proof.
  refine (Arith (v f) (tiny f) (tiny f) (tiny f) (number f) (reads f) (operation f) (settles f)
    _ _ _ _ _ _ _ _ _ _ _ _ _ _ _).
  - pose proof (v_bounds f). pose proof (u_pos f). lra.
  - left. apply tiny_pos.
  - pose proof (tiny_pos f). lra.
  - lra.
  - intros x y R. exact R.
  - intros x y. apply operation_error.
  - intros x w y F P R. destruct (Rle_lt_dec (tiny f) (Rabs (x * w))) as [L|L]; [|now apply operation_small].
    rewrite (operation_solid f (x * w) y); [| |exact R].
    + rewrite Rminus_diag_eq by reflexivity. rewrite Rabs_R0. left. apply tiny_pos.
    + split; [now apply number_power|now right].
  - intros x y. apply operation_number.
  - apply number_0.
  - intros x w. apply number_power.
  - intros y [->|t ->|_ ->]; trivial. now rewrite nearest_0.
  - apply settles_refl.
  - apply settles_trans.
  - apply operation_settles.
  - intros x y z F [->|[S ->]] H.
    + destruct H as [->|t ->|L ->]; [now left| |now right]. left. now apply nearest_number.
    + right. split; [exact S|]. destruct H as [->|t ->|_ ->]; trivial. now rewrite nearest_0.
Defined.

(** The float64 of the checker itself: each operation is rounded once to nearest, or not if it is fused, and
    nothing is flushed (the machine is probed for that): it is off by at most 2^-53 |x| + 2^-1074. *)
Definition U : R := bpow radix2 (-53).
Definition least : R := bpow radix2 (-1074).
Definition NORMAL : R := bpow radix2 (-1022).

Definition rounds_once (x y : R) : Prop := y = x \/ exists ties, y = nearest 53 (-1074) ties x.

Lemma rounds_once_error x y : rounds_once x y -> Rabs (y - x) <= U * Rabs x + least / 2.
Proof.
  assert (B : 0 < U) by apply bpow_gt_0. assert (C : 0 < least) by apply bpow_gt_0. pose proof (Rabs_pos x).
  intros [->|[ties ->]]; [rewrite Rminus_diag_eq by reflexivity; rewrite Rabs_R0; nra|].
  destruct (nearest_sharp 53 (-1074) ties x eq_refl) as (d & h & D & H1 & ->). fold least in H1.
  change (- (53))%Z with (-53)%Z in D. fold U in D.
  replace (x * (1 + d) + h - x) with (x * d + h) by ring. apply Rle_trans with (1 := Rabs_triang _ _).
  rewrite Rabs_mult. pose proof (Rabs_pos d). assert (Rabs d <= U) by nra. nra.
Qed.

Definition checker : arithmetic.
Proof.
  refine (Arith U least NORMAL 0 (number binary64) (fun x y => y = x) rounds_once (fun x y => y = x)
    _ _ _ _ _ _ _ _ _ _ _ _ _ _ _).
  - split; [apply bpow_ge_0|]. apply Rle_trans with (1 / 4); [|lra].
    replace (1 / 4) with (bpow radix2 (-2)) by (simpl; lra). now apply bpow_le.
  - apply bpow_ge_0.
  - split; [lra|apply bpow_ge_0].
  - apply bpow_ge_0.
  - intros x y R. now left.
  - intros x y R. apply rounds_once_error in R. assert (C : 0 < least) by apply bpow_gt_0. lra.
  - intros x w y F P R. assert (C : 0 < least) by apply bpow_gt_0.
    destruct (Rle_lt_dec NORMAL (Rabs (x * w))) as [L|L].
    + replace y with (x * w); [rewrite Rminus_diag_eq by reflexivity; rewrite Rabs_R0; lra|].
      destruct R as [->|[ties ->]]; [reflexivity|]. symmetry. apply (nearest_number binary64).
      apply number_power; trivial.
    + destruct R as [->|[ties ->]]; [rewrite Rminus_diag_eq by reflexivity; rewrite Rabs_R0; lra|].
      apply Rle_trans with (/ 2 * ulp radix2 (FLT_exp (-1074) 53) (x * w));
        [apply error_le_half_ulp; now apply FLT_exp_valid|].
      rewrite ulp_FLT_small; [fold least; lra|easy|].
      apply Rlt_trans with (1 := L). now apply bpow_lt.
  - intros x y F [->|[ties ->]]; left; [reflexivity|]. now apply (nearest_number binary64).
  - apply number_0.
  - intros x w. apply number_power.
  - intros y ->. reflexivity.
  - reflexivity.
  - intros x y z -> ->. reflexivity.
  - intros x y z H ->. exact H.
  - intros x y z _ -> ->. reflexivity.
Defined.

(** Nothing changes a number that is 0, or far enough from it. *)
Lemma result_exact A x y : in_format A x -> x = 0 \/ flushed A <= Rabs x -> result A x y -> y = x.
Proof.
  intros F S R. destruct (result_number A x y F R) as [->|[L ->]]; [reflexivity|].
  destruct S as [->|S]; [reflexivity|lra].
Qed.
