(** The comparison of an enclosed answer with a stored one.

    For: core/judge.py _answers; core/meaning.py (classes have eps below 1/2). *)

From Coq Require Import Reals ZArith List Lra Lia.
From Flocq Require Import Core Relative.
From Onelayer Require Import Arithmetic ExactSums ExactProducts Thresholds.
Open Scope R_scope.

#[local] Instance prec64 : Prec_gt_0 53.
Proof. reflexivity. Qed.

(** * Sums of two numbers *)

(** A sum of two numbers that is subnormal is a number: additions do not underflow. *)
Lemma sum_small x y : number binary64 x -> number binary64 y -> Rabs (x + y) < tiny binary64 ->
  number binary64 (x + y).
Proof.
  intros Fx Fy L. destruct (multiple x Fx) as [k E], (multiple y Fy) as [l G]. subst x y.
  rewrite <- Rmult_plus_distr_r, <- plus_IZR in *. set (n := (k + l)%Z) in *.
  apply generic_format_FLT. exists (Defs.Float radix2 n (-1074)); [reflexivity| |apply Z.le_refl].
  cbn [Fnum]. apply lt_IZR. rewrite abs_IZR. change (radix2 ^ prec binary64)%Z with (2 ^ 53)%Z.
  rewrite Rabs_mult, (Rabs_pos_eq (bpow radix2 (-1074))) in L by apply bpow_ge_0.
  assert (T : tiny binary64 = bpow radix2 52 * bpow radix2 (-1074)) by (rewrite <- bpow_plus; reflexivity).
  rewrite T in L. apply Rmult_lt_reg_r in L; [|apply bpow_gt_0].
  apply Rlt_trans with (1 := L). change (2 ^ 53)%Z with (radix2 ^ 53)%Z. rewrite IZR_Zpower by easy.
  now apply bpow_lt.
Qed.

Lemma rn_abs x : rn (Rabs x) = Rabs (rn x).
Proof. unfold rn, exp64. apply round_NE_abs. now apply FLT_exp_valid. Qed.

(** A computed sum, times UP, is at least the exact one in size. *)
Lemma sum_up x y : number binary64 x -> number binary64 y -> Rabs (x + y) <= rn (Rabs (rn (x + y)) * UP).
Proof.
  intros Fx Fy. pose proof (tiny_pos binary64) as T.
  destruct (Rlt_le_dec (Rabs (x + y)) (tiny binary64)) as [L|L].
  - assert (F := sum_small x y Fx Fy L). rewrite (rn_of_number _ F). apply times_up; [|apply Rabs_pos].
    now apply generic_format_abs.
  - rewrite <- rn_abs. set (d := Rabs (x + y)) in *.
    assert (D : tiny binary64 <= rn d).
    { apply (rnd_ge binary64 d); [|exact L|apply rn_rnd]. split; [|right; rewrite Rabs_pos_eq; lra].
      apply generic_format_FLT_bpow; [reflexivity|easy]. }
    apply Rle_trans with (1 := up_rn d). rewrite <- (rn_of_number (up (rn d))).
    + apply rn_monotone. unfold up. rewrite succ_eq_pos by lra.
      assert (U : ulp radix2 exp64 (rn d) <= rn d * bpow radix2 (-40)).
      { apply Rle_trans with (rn d * bpow radix2 (1 - 53)).
        - rewrite <- (Rabs_pos_eq (rn d)) at 2 by lra. apply (ulp_FLT_le radix2 (-1074) 53).
          rewrite Rabs_pos_eq by lra. exact D.
        - apply Rmult_le_compat_l; [lra|]. now apply bpow_le. }
      unfold UP. lra.
    + apply generic_format_succ; [now apply FLT_exp_valid|apply rn_number].
Qed.

(** * Proved *)

(** [error] and [bound] of _answers: the difference of midpoint and answer, and that plus the radius, both
    rounded up. *)
Definition error (m a : R) := rn (Rabs (rn (m - a)) * UP).
Definition bound (m r a : R) := rn (rn (error m a + r) * UP).

Lemma error_covers m a : number binary64 m -> number binary64 a -> Rabs (m - a) <= error m a.
Proof. intros Fm Fa. apply (sum_up m (- a)); [exact Fm|now apply number_opp]. Qed.

(** If the bound is at most eps, every value of the ball is within eps of the answer.
    For: core/judge.py _answers (bound <= eps). *)
Theorem judge_proved (m r a eps v : R) :
  number binary64 m -> number binary64 r -> number binary64 a -> 0 <= r ->
  bound m r a <= eps -> Rabs (v - m) <= r -> Rabs (v - a) <= eps.
Proof.
  intros Fm Fr Fa P L V. assert (E := error_covers m a Fm Fa). pose proof (Rabs_pos (m - a)).
  assert (S := sum_up (error m a) r (rn_number _) Fr).
  assert (N : 0 <= rn (error m a + r)).
  { apply (rnd_ge binary64 (error m a + r)); [apply solid_0|lra|apply rn_rnd]. }
  rewrite (Rabs_pos_eq (rn _)) in S by exact N. rewrite Rabs_pos_eq in S by lra. unfold bound in L.
  replace (v - a) with ((v - m) + (m - a)) by ring. pose proof (Rabs_triang (v - m) (m - a)). lra.
Qed.

(** A ball that is a point, and is the answer, has the answer as its only value.
    For: core/judge.py _answers ("all of them exactly"). *)
Theorem judge_exact (m r a v : R) : m = a -> r = 0 -> Rabs (v - m) <= r -> v = a.
Proof.
  intros -> -> V. destruct (Req_dec (v - a) 0) as [E|N]; [lra|]. apply Rabs_pos_lt in N. lra.
Qed.

(** * Refuted *)

Lemma rn_le_normal x : tiny binary64 <= x -> rn x <= x * (1 + bpow radix2 (-52)).
Proof.
  intros L. pose proof (tiny_pos binary64).
  assert (D : Rabs (rn x - x) <= bpow radix2 (-52) * Rabs x).
  { apply Rle_trans with (/ 2 * bpow radix2 (- 53 + 1) * Rabs x).
    - apply relative_error_N_FLT; [reflexivity|]. rewrite Rabs_pos_eq by lra. exact L.
    - apply Rmult_le_compat_r; [apply Rabs_pos|]. pose proof (bpow_gt_0 radix2 (-52)). simpl (- 53 + 1)%Z. lra. }
  rewrite (Rabs_pos_eq x) in D by lra. apply Rabs_le_inv in D. lra.
Qed.

Lemma half_place : bpow radix2 (-1075) = / 2 * bpow radix2 (-1074).
Proof. change (-1075)%Z with (-1 + -1074)%Z. now rewrite bpow_plus. Qed.

Lemma rn_le_small x y : number binary64 y -> 0 <= y < tiny binary64 -> x < y + bpow radix2 (-1075) -> rn x <= y.
Proof.
  intros F [P L] H. destruct (multiple y F) as [k E].
  pose proof half_place as B.
  assert (U : ulp radix2 exp64 y = bpow radix2 (-1074)).
  { apply ulp_FLT_small; [reflexivity|]. rewrite Rabs_pos_eq by exact P.
    apply Rlt_trans with (1 := L). now apply bpow_lt. }
  apply (round_N_le_midp radix2 exp64); [exact F|]. rewrite succ_eq_pos by exact P. rewrite U. lra.
Qed.

(** Dividing [error] by UP twice makes up for all roundings: what is left is at most the exact difference. *)
Lemma error_lowered m a : number binary64 m -> number binary64 a -> rn (rn (error m a / UP) / UP) <= Rabs (m - a).
Proof.
  intros Fm Fa. unfold error. rewrite <- rn_abs. set (d := Rabs (m - a)). pose proof (tiny_pos binary64) as T.
  pose proof up_pos as Up. assert (Pd : 0 <= d) by apply Rabs_pos.
  assert (Pn : forall x, 0 <= x -> 0 <= rn x).
  { intros x P. apply (rnd_ge binary64 x); [apply solid_0|exact P|apply rn_rnd]. }
  assert (Inv : / UP < 1) by (rewrite <- Rinv_1; apply Rinv_lt_contravar; lra).
  assert (Inv0 : 0 < / UP) by (apply Rinv_0_lt_compat; lra).
  destruct (Rlt_le_dec d (tiny binary64)) as [L|L].
  - (* Subnormal: the difference is a number, and halves of the last place are lost again by dividing. *)
    assert (F : number binary64 d).
    { apply generic_format_abs. apply (sum_small m (- a)); [exact Fm|now apply number_opp|exact L]. }
    rewrite (rn_of_number d F).
    pose proof half_place as B.
    assert (B0 : 0 < bpow radix2 (-1075)) by apply bpow_gt_0.
    assert (E : rn (d * UP) <= d * UP + bpow radix2 (-1075)).
    { assert (G := error_le_half_ulp radix2 exp64 (fun n => negb (Z.even n)) (d * UP)). fold (rn (d * UP)) in G.
      assert (U : ulp radix2 exp64 (d * UP) = bpow radix2 (-1074)).
      { apply ulp_FLT_small; [reflexivity|]. rewrite Rabs_pos_eq by nra.
        replace (bpow radix2 (-1074 + 53)) with (2 * tiny binary64); [nra|].
        change 2 with (bpow radix2 1). unfold tiny. rewrite <- bpow_plus. reflexivity. }
      rewrite U in G. apply Rabs_le_inv in G. lra. }
    assert (E2 : rn (rn (d * UP) / UP) <= d).
    { apply rn_le_small; [exact F|lra|]. apply Rle_lt_trans with (d + bpow radix2 (-1075) * / UP); [|nra].
      apply Rle_trans with ((d * UP + bpow radix2 (-1075)) * / UP); [apply Rmult_le_compat_r; lra|].
      right. field. lra. }
    assert (P2 : 0 <= rn (rn (d * UP) / UP)).
    { apply Pn. apply Rmult_le_pos; [apply Pn; nra|lra]. }
    apply Rle_trans with (rn d); [|right; now apply rn_of_number].
    apply rn_monotone. apply Rle_trans with (2 := E2).
    set (z := rn (rn (d * UP) / UP)) in *. unfold Rdiv. nra.
  - (* Normal: three roundings upward are less than one division by UP. *)
    assert (K : forall x c, 0 <= x -> d <= c -> x <= c -> rn x <= c * (1 + bpow radix2 (-52))).
    { intros x c P C X. assert (V : 0 < bpow radix2 (-52)) by apply bpow_gt_0.
      destruct (Rle_lt_dec (tiny binary64) x) as [N|N]; [pose proof (rn_le_normal x N); nra|].
      assert (rn x <= tiny binary64); [|nra].
      apply (rnd_le binary64 x); [apply Cells.solid_tiny|lra|apply rn_rnd]. }
    set (v := bpow radix2 (-52)) in *. assert (V : 0 < v) by apply bpow_gt_0.
    assert (U40 : UP = 1 + 4096 * v).
    { unfold UP, v. change 4096 with (bpow radix2 12). now rewrite <- bpow_plus. }
    assert (V1 : 4096 * v < 1) by lra.
    assert (K1 := K d d Pd (Rle_refl d) (Rle_refl d)).
    assert (K2 : rn (rn d * UP) <= d * (1 + v) * UP * (1 + v)).
    { assert (d <= d * (1 + v)) by nra.
      assert (d * (1 + v) <= d * (1 + v) * UP) by (set (q := d * (1 + v)) in *; nra).
      apply K; [apply Rmult_le_pos; [now apply Pn|lra]|lra|]. apply Rmult_le_compat_r; [lra|exact K1]. }
    assert (K3 : rn (rn (rn d * UP) / UP) <= d * (1 + v) * (1 + v) * (1 + v)).
    { apply K; [apply Rmult_le_pos; [apply Pn; apply Rmult_le_pos; [now apply Pn|lra]|lra]| |].
      { assert (0 <= d * (v * (2 + v))) by (apply Rmult_le_pos; nra). lra. }
      unfold Rdiv. apply Rle_trans with (d * (1 + v) * UP * (1 + v) * / UP); [apply Rmult_le_compat_r; lra|].
      right. field. lra. }
    set (x := rn (rn (rn d * UP) / UP)) in *.
    assert (Px : 0 <= x) by (apply Pn, Rmult_le_pos; [apply Pn, Rmult_le_pos; [now apply Pn|lra]|lra]).
    assert (K4 : x / UP <= d * (1 - v)).
    { apply Rle_trans with (d * (1 + v) * (1 + v) * (1 + v) * / UP); [apply Rmult_le_compat_r; lra|].
      apply (Rmult_le_reg_r UP); [lra|]. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra. rewrite U40.
      assert ((1 + v) * (1 + v) * (1 + v) <= (1 - v) * (1 + 4096 * v)) by nra. nra. }
    destruct (Rle_lt_dec (tiny binary64) (x / UP)) as [N|N].
    + pose proof (rn_le_normal (x / UP) N) as Q. fold v in Q. nra.
    + assert (rn (x / UP) <= tiny binary64); [|lra].
      apply (rnd_le binary64 (x / UP)); [apply Cells.solid_tiny|lra|apply rn_rnd].
Qed.

(** If the difference, lowered, minus the radius, raised, is above eps as computed, every value of the ball is
    further than eps from the answer. For: core/judge.py _answers (refuted). *)
Theorem judge_refuted (m r a eps v : R) :
  number binary64 m -> number binary64 r -> number binary64 a -> number binary64 eps -> 0 <= r ->
  eps < rn (rn (rn (error m a / UP) / UP) - rn (r * UP)) -> Rabs (v - m) <= r -> eps < Rabs (v - a).
Proof.
  intros Fm Fr Fa Fe P L V. assert (E := error_lowered m a Fm Fa). assert (R := times_up r Fr P).
  assert (D : eps < rn (rn (error m a / UP) / UP) - rn (r * UP)).
  { apply Rnot_le_lt. intros C. apply rn_monotone in C. rewrite (rn_of_number eps Fe) in C. lra. }
  replace (m - a) with ((v - a) - (v - m)) in E by ring. pose proof (Rabs_triang (v - a) (- (v - m))).
  rewrite Rabs_Ropp in *. unfold Rminus in *. lra.
Qed.

(** * Classes *)

(** Where answers are classes and eps is below 1/2, rounding any value to the nearest whole number gives the class,
    however ties are broken. For: core/meaning.py; docs/certificate-v2.md, section 5. *)
Theorem classes_are_told_apart (c : Z) (eps v : R) (ties : Z -> bool) :
  eps < / 2 -> Rabs (v - IZR c) <= eps -> Znearest ties v = c.
Proof. intros E V. apply Znearest_imp. lra. Qed.
