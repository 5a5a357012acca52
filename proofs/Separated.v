(** Samples of different classes are apart: near different whole numbers, or along the order of a coordinate.

    For: core/separated.py _apart, _on_lattice, _packed, _along. *)

From Coq Require Import Reals ZArith List Lra Lia Bool.
From Flocq Require Import Core.
From Onelayer Require Import Arithmetic ExactSums ExactProducts Cells Thresholds Judge.
Import ListNotations.
Open Scope R_scope.

#[local] Instance prec64 : Prec_gt_0 53.
Proof. reflexivity. Qed.

(** * The size of coordinates *)

(** [size] of _apart: the size of the midpoint plus the radius, rounded up. It bounds every value of the ball.
    For: core/separated.py _apart. *)
Theorem size_covers (m r t : R) :
  number binary64 m -> number binary64 r -> 0 <= r -> Rabs (t - m) <= r ->
  Rabs t <= rn (rn (Rabs m + r) * UP).
Proof.
  intros Fm Fr P B. assert (S := sum_up (Rabs m) r (generic_format_abs _ _ _ Fm) Fr). pose proof (Rabs_pos m).
  assert (N : 0 <= rn (Rabs m + r)) by (apply (rnd_ge binary64 (Rabs m + r)); [apply solid_0|lra|apply rn_rnd]).
  rewrite (Rabs_pos_eq (rn _)) in S by exact N. rewrite Rabs_pos_eq in S by lra.
  replace t with (m + (t - m)) by ring. pose proof (Rabs_triang m (t - m)). lra.
Qed.

(** * Near whole numbers *)

(** The difference of a number below 2^52 and the nearest whole number is computed without rounding. *)
Lemma to_nearest_exact (m : R) : number binary64 m -> Rabs m < bpow radix2 52 ->
  number binary64 (m - IZR (ZnearestE m)).
Proof.
  intros F L. destruct (Rle_lt_dec (Rabs m) (/ 2)) as [S|S].
  - assert (Z : ZnearestE m = 0%Z \/ Rabs m = / 2).
    { destruct (Rle_lt_or_eq_dec _ _ S) as [Q|Q]; [left|now right]. apply Znearest_imp. now rewrite Rminus_0_r. }
    destruct Z as [Z|Z]; [rewrite Z; now rewrite Rminus_0_r|].
    assert (E : m = / 2 \/ m = - / 2) by (revert Z; unfold Rabs; destruct (Rcase_abs m); lra).
    assert (H : ZnearestE m = 0%Z).
    { destruct E as [-> | ->]; unfold Znearest.
      - rewrite (Zfloor_imp 0) by (simpl; lra). rewrite Rcompare_Eq by lra. reflexivity.
      - rewrite (Zfloor_imp (-1)) by (simpl; lra). rewrite Rcompare_Eq by lra. simpl.
        rewrite (Zceil_imp 0) by (simpl; lra). reflexivity. }
    rewrite H. now rewrite Rminus_0_r.
  - assert (N := Znearest_half (fun n => negb (Z.even n)) m). set (n := ZnearestE m) in *.
    set (e := cexp radix2 exp64 m).
    assert (E : m = IZR (Ztrunc (scaled_mantissa radix2 exp64 m)) * bpow radix2 e) by exact F.
    set (k := Ztrunc _) in E.
    assert (M : (mag radix2 m <= 52)%Z) by (apply mag_le_bpow; [intros Z; rewrite Z, Rabs_R0 in S; lra|exact L]).
    assert (M0 : (0 <= mag radix2 m)%Z).
    { apply mag_ge_bpow. simpl. lra. }
    assert (He : e = (mag radix2 m - 53)%Z) by (unfold e, cexp, exp64, FLT_exp; lia).
    assert (Hn : IZR n = IZR (n * 2 ^ (- e)) * bpow radix2 e).
    { rewrite mult_IZR. change 2%Z with (radix_val radix2). rewrite IZR_Zpower by lia.
      rewrite Rmult_assoc, <- bpow_plus. replace (- e + e)%Z with 0%Z by lia. simpl. ring. }
    apply generic_format_FLT. exists (Defs.Float radix2 (k - n * 2 ^ (- e)) e).
    + unfold F2R. cbn [Fnum Fexp]. rewrite minus_IZR, Rmult_minus_distr_r, <- Hn, <- E. reflexivity.
    + cbn [Fnum]. apply lt_IZR. rewrite abs_IZR, minus_IZR. change (radix2 ^ prec binary64)%Z with (radix2 ^ 53)%Z.
      rewrite IZR_Zpower by easy. apply (Rmult_lt_reg_r (bpow radix2 e)); [apply bpow_gt_0|].
      rewrite <- (Rabs_pos_eq (bpow radix2 e)) at 1 by apply bpow_ge_0.
      rewrite <- Rabs_mult, Rmult_minus_distr_r, <- E, <- Hn, <- bpow_plus.
      apply Rle_lt_trans with (1 := N). apply Rlt_le_trans with (1 := S).
      apply Rlt_le. replace (53 + e)%Z with (mag radix2 m : Z) by lia. apply bpow_mag_gt.
    + change (emin binary64) with (-1074)%Z. cbn [Fexp]. lia.
Qed.

(** [off] of _on_lattice: every coordinate is within off of the whole number that is nearest to its midpoint.
    For: core/separated.py _on_lattice (off). *)
Theorem near_a_whole_number (m r t off : R) :
  number binary64 m -> number binary64 r -> 0 <= r -> Rabs m < bpow radix2 52 ->
  rn (rn (Rabs (rn (m - IZR (ZnearestE m))) + r) * UP) <= off ->
  Rabs (t - m) <= r -> Rabs (t - IZR (ZnearestE m)) <= off.
Proof.
  intros Fm Fr P L H B. assert (F := to_nearest_exact m Fm L). rewrite (rn_of_number _ F) in H.
  set (n := IZR (ZnearestE m)) in *.
  assert (S := sum_up (Rabs (m - n)) r (generic_format_abs _ _ _ F) Fr). pose proof (Rabs_pos (m - n)).
  assert (N : 0 <= rn (Rabs (m - n) + r)).
  { apply (rnd_ge binary64 (Rabs (m - n) + r)); [apply solid_0|lra|apply rn_rnd]. }
  rewrite (Rabs_pos_eq (rn _)) in S by exact N. rewrite Rabs_pos_eq in S by lra.
  replace (t - n) with ((t - m) + (m - n)) by ring. pose proof (Rabs_triang (t - m) (m - n)). lra.
Qed.

(** [certain] of _on_lattice, if it is positive, is at most 1 - 2 off. *)
Lemma certain_lowered (off : R) : number binary64 (2 * off) ->
  0 < rn (rn (1 - 2 * off) / UP) -> rn (rn (1 - 2 * off) / UP) <= 1 - 2 * off.
Proof.
  intros F P. pose proof (tiny_pos binary64) as T. pose proof up_pos as Up.
  assert (Inv : / UP < 1) by (rewrite <- Rinv_1; apply Rinv_lt_contravar; lra).
  assert (Inv0 : 0 < / UP) by (apply Rinv_0_lt_compat; lra).
  set (x := 1 - 2 * off) in *. assert (Fo : number binary64 (- (2 * off))) by now apply number_opp.
  assert (X : 0 < x).
  { apply Rnot_le_lt. intros C.
    assert (rn x <= 0) by (apply (rnd_le binary64 x); [apply solid_0|exact C|apply rn_rnd]).
    assert (rn (rn x / UP) <= 0); [|lra]. apply (rnd_le binary64 (rn x / UP)); [apply solid_0| |apply rn_rnd].
    unfold Rdiv. nra. }
  destruct (Rlt_le_dec x (tiny binary64)) as [L|L].
  - assert (Fx : number binary64 x).
    { apply (sum_small 1 (- (2 * off))); [apply (solid_1 binary64)|exact Fo|]. fold x.
      rewrite Rabs_pos_eq; unfold x in *; lra. }
    rewrite (rn_of_number x Fx). apply Rle_trans with (rn x); [|right; now apply rn_of_number].
    apply rn_monotone. unfold Rdiv. nra.
  - set (v := bpow radix2 (-52)). assert (V : 0 < v) by apply bpow_gt_0.
    assert (U40 : UP = 1 + 4096 * v).
    { unfold UP, v. change 4096 with (bpow radix2 12). now rewrite <- bpow_plus. }
    assert (K1 := rn_le_normal x L). fold v in K1.
    assert (K2 : rn x / UP <= x * (1 - v)).
    { apply (Rmult_le_reg_r UP); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra. rewrite U40.
      assert (1 + v <= (1 - v) * (1 + 4096 * v)) by nra. nra. }
    destruct (Rle_lt_dec (tiny binary64) (rn x / UP)) as [N|N].
    + pose proof (rn_le_normal _ N) as Q. fold v in Q. nra.
    + assert (rn (rn x / UP) <= tiny binary64); [|lra].
      apply (rnd_le binary64 (rn x / UP)); [apply solid_tiny|lra|apply rn_rnd].
Qed.

(** Coordinates that are within off of different whole numbers are at least 1 - 2 off apart, and so at least delta.
    For: core/separated.py _on_lattice. *)
Theorem lattice_apart (n n' : Z) (t t' off delta : R) :
  number binary64 (2 * off) -> 0 < delta -> delta <= rn (rn (1 - 2 * off) / UP) ->
  Rabs (t - IZR n) <= off -> Rabs (t' - IZR n') <= off -> n <> n' -> delta <= Rabs (t - t').
Proof.
  intros F P D H H' N. assert (C := certain_lowered off F). apply Rabs_le_inv in H, H'.
  assert (W : 1 <= Rabs (IZR n - IZR n')).
  { rewrite <- minus_IZR, <- abs_IZR. apply IZR_le. lia. }
  revert W. unfold Rabs. destruct (Rcase_abs (IZR n - IZR n')), (Rcase_abs (t - t')); lra.
Qed.

(** ** Samples that are near the same whole numbers *)

(** Two columns of whole numbers are packed into one, which tells them apart. For: core/separated.py _packed. *)
Theorem packed_tells_apart (a b a' b' span : Z) :
  (0 <= b < span)%Z -> (0 <= b' < span)%Z -> (a * span + b = a' * span + b')%Z -> a = a' /\ b = b'.
Proof. intros B B' E. assert (a = a') by nia. subst. lia. Qed.

(** In a sorted order, samples with equal keys stand together. If neighbours with equal keys are of one class,
    and being of one class is an equivalence, all samples with equal keys are of one class.
    For: core/separated.py _on_lattice ("neighbours are enough"). *)
Theorem neighbours_are_enough {K : Type} (le : K -> K -> Prop) (same : nat -> nat -> Prop) (key : nat -> K)
    (n : nat) :
  (forall x y, le x y -> le y x -> x = y) -> (forall x y z, le x y -> le y z -> le x z) -> (forall x, le x x) ->
  (forall i, same i i) -> (forall i j k, same i j -> same j k -> same i k) -> (forall i j, same i j -> same j i) ->
  (forall i, (S i < n)%nat -> le (key i) (key (S i))) ->
  (forall i, (S i < n)%nat -> key i = key (S i) -> same i (S i)) ->
  forall i j, (i < n)%nat -> (j < n)%nat -> key i = key j -> same i j.
Proof.
  intros Anti Trans Refl Sr St Ss Sorted Near.
  assert (Up : forall d i, (i + d < n)%nat -> le (key i) (key (i + d)%nat)).
  { induction d as [|d IH]; intros i L; [rewrite Nat.add_0_r; apply Refl|].
    apply Trans with (key (i + d)%nat); [apply IH; lia|]. replace (i + S d)%nat with (S (i + d)) by lia.
    apply Sorted. lia. }
  assert (Run : forall d i, (i + d < n)%nat -> key i = key (i + d)%nat -> same i (i + d)%nat).
  { induction d as [|d IH]; intros i L E; [rewrite Nat.add_0_r; apply Sr|].
    assert (M : key i = key (i + d)%nat).
    { apply Anti; [apply Up; lia|]. rewrite E. replace (i + S d)%nat with (S (i + d)) by lia. apply Sorted. lia. }
    apply St with (i + d)%nat; [apply IH; [lia|exact M]|]. replace (i + S d)%nat with (S (i + d)) in * by lia.
    apply Near; [lia|]. congruence. }
  intros i j I J E. destruct (Nat.le_ge_cases i j) as [L|L].
  - replace j with (i + (j - i))%nat in * by lia. apply Run; [lia|exact E].
  - replace i with (j + (i - j))%nat in * by lia. apply Ss. apply Run; [lia|now symmetry].
Qed.

(** * Along a coordinate *)

(** [apart] of _along: how far two intervals are apart for certain, rounded down. *)
Definition gap (low high low' high' : R) := down (Rmax (rn (low' - high)) (rn (low - high'))).

(** If the gap is at least delta > 0, one interval lies at least delta beyond the other. *)
Lemma gap_sound low high low' high' delta :
  0 < delta -> delta <= gap low high low' high' -> delta <= low' - high \/ delta <= low - high'.
Proof.
  intros P G. unfold gap, Rmax in G. destruct (Rle_dec (rn (low' - high)) (rn (low - high'))).
  - right. apply Rle_trans with (1 := G). apply down_rn.
  - left. apply Rle_trans with (1 := G). apply down_rn.
Qed.

Section Along.
Variables (n : nat) (delta : R) (coordinates : nat) (t low high : nat -> nat -> R).
Variable same : nat -> nat -> Prop.
Hypothesis positive : 0 < delta.

(** Coordinate c of sample a lies between its ends; samples are sorted by the lower end of coordinate 0. *)
Hypothesis enclosed : forall c a, low c a <= t c a <= high c a.
Hypothesis sorted : forall a b, (a <= b < n)%nat -> low 0%nat a <= low 0%nat b.
Hypothesis some : (0 < coordinates)%nat.

Let far c a b := delta <= gap (low c a) (high c a) (low c b) (high c b).

(** Samples a and b are apart along some coordinate, or are of one class. *)
Definition separated a b := (exists c, (c < coordinates)%nat /\ delta <= Rabs (t c a - t c b)) \/ same a b.

(** The walk from sample a: b = a + 1, a + 2, ..., until b is far along coordinate 0. Each b before that is far
    along another coordinate, or of one class with a. *)
Inductive walked (a : nat) : nat -> Prop :=
| walk_ends b : (n <= b)%nat -> walked a b
| walk_far b : (b < n)%nat -> far 0 a b -> walked a b
| walk_on b :
    (b < n)%nat -> (exists c, (c < coordinates)%nat /\ far c a b) \/ same a b -> walked a (S b) -> walked a b.

Lemma far_apart c a b : far c a b -> delta <= Rabs (t c a - t c b).
Proof.
  intros F. apply gap_sound in F; [|exact positive]. pose proof (enclosed c a). pose proof (enclosed c b).
  unfold Rabs. destruct (Rcase_abs (t c a - t c b)); lra.
Qed.

(** If the walk from every sample ends well, any two samples are apart by delta, or of one class.
    For: core/separated.py _along. *)
Theorem along_sound : (forall a, (a < n)%nat -> walked a (S a)) ->
  forall a b, (a < b < n)%nat -> separated a b.
Proof.
  intros W a b [L B]. assert (G : forall s, walked a s -> (a < s)%nat -> (s <= b)%nat -> separated a b).
  { intros s H. induction H as [s Ls|s Ls F|s Ls C H IH]; intros La Lb.
    - lia.
    - left. exists 0%nat. split; [exact some|]. apply gap_sound in F; [|exact positive].
      pose proof (enclosed 0%nat a). pose proof (enclosed 0%nat b). pose proof (enclosed 0%nat s).
      pose proof (sorted a s ltac:(lia)). pose proof (sorted s b ltac:(lia)).
      unfold Rabs. destruct (Rcase_abs (t 0%nat a - t 0%nat b)); lra.
    - destruct (Nat.eq_dec s b) as [->|N]; [|apply IH; lia]. destruct C as [(c & Lc & F)|C]; [left|now right].
      exists c. split; [exact Lc|]. now apply far_apart. }
  apply (G (S a)); [apply W; lia|lia|lia].
Qed.

End Along.
