(** The small operations on balls, with the radii as float64 computes them: [add_encloses], [add_kept],
    [relu_encloses], [around_encloses], [low_high]. A ball (m, r) contains x if |x - m| <= r. *)

From Coq Require Import Reals ZArith List Lra Lia.
From Flocq Require Import Core Relative Plus_error.
From Onelayer Require Import Arithmetic Rounding DotError Radius.
Import ListNotations.
Open Scope R_scope.

(** * Addition *)

(** The sum of two numbers, each perhaps flushed as it is read, is off by at most u |x + y| and four times tiny. *)
Theorem add_error (A : arithmetic) (x y x' y' s : R) :
  reading A x x' -> reading A y y' -> result A (x' + y') s ->
  Rabs (s - (x + y)) <= relative A * Rabs (x + y) + 29 / 8 * absolute A.
Proof.
  intros Rx Ry R. apply result_error in R. apply reading_error in Rx, Ry.
  pose proof (absolute_nonneg A) as T. pose proof (flushed_absolute A). pose proof (relative_bounds A) as V.
  set (u := relative A) in *. set (t := absolute A) in *.
  assert (D : Rabs (x' + y' - (x + y)) <= 2 * t).
  { replace (x' + y' - (x + y)) with ((x' - x) + (y' - y)) by ring. pose proof (Rabs_triang (x' - x) (y' - y)).
    lra. }
  assert (B : Rabs (x' + y') <= Rabs (x + y) + 2 * t).
  { replace (x' + y') with ((x + y) + (x' + y' - (x + y))) by ring.
    pose proof (Rabs_triang (x + y) (x' + y' - (x + y))). lra. }
  assert (C : Rabs (s - (x + y)) <= Rabs (s - (x' + y')) + Rabs (x' + y' - (x + y))).
  { replace (s - (x + y)) with ((s - (x' + y')) + (x' + y' - (x + y))) by ring. apply Rabs_triang. }
  apply (Rmult_le_compat_l u) in B; [|lra]. assert (u * t <= 5 / 16 * t) by (apply Rmult_le_compat_r; lra). lra.
Qed.

(** The radius that add computes: (R (1 + u) + |m| (U + u)) up2 + (4 tiny + TINY), with up2 = UP * UP. *)
Definition add_radius (A : arithmetic) (m spread up2 : R) : expr :=
  Plus (Times (Plus (Times (Known spread) (Plus (Known 1) (Known (relative A))))
                    (Times (Known (Rabs m)) (Plus (Known U) (Known (relative A)))))
              (Known up2))
       (Plus (Times (Known 4) (Known (absolute A))) (Known TINY)).

(** Whatever x and y are in their balls, and however they are read and added, the sum is in the ball that add
    returns, whose midpoint is m = mx + my and whose radius is as computed. For: core/balls.py add. *)
Theorem add_encloses (A : arithmetic) (x y x' y' s mx rx my ry m spread up2 r : R) :
  Rabs (x - mx) <= rx -> Rabs (y - my) <= ry ->
  number binary64 mx -> number binary64 my -> number binary64 rx -> number binary64 ry ->
  number binary64 (relative A) -> number binary64 (absolute A) ->
  reading A x x' -> reading A y y' -> result A (x' + y') s ->
  rounds (mx + my) m -> rounds (rx + ry) spread -> rounds (UP * UP) up2 ->
  computed (add_radius A m spread up2) r ->
  Rabs (s - m) <= r.
Proof.
  intros Bx By Fmx Fmy Frx Fry Fu Ft Rx Ry R Hm Hs Hu Hr.
  pose proof (relative_bounds A) as V. pose proof (absolute_nonneg A) as T.
  pose proof U_pos as Up. destruct U_small as [E Us]. pose proof least_pos as Lp.
  pose proof (Rabs_pos (x - mx)). pose proof (Rabs_pos (y - my)). pose proof (Rabs_pos m) as Pm.
  assert (S1 := sum_low rx ry spread Frx Fry ltac:(lra) Hs).
  assert (Ps : 0 <= spread) by (apply rounds_nonneg with (rx + ry); [lra|exact Hs]).
  pose proof TINY_pos as T0.
  assert (Nu : NORMAL <= 1) by (rewrite NORMAL_eq; change 1 with (bpow radix2 0); now apply bpow_le).
  assert (L2 := normal_low (UP * UP) up2 ltac:(nra) Hu).
  assert (Fu2 := rounds_number _ _ Hu).
  assert (H2 : up2 <= 2) by (apply (rounds_le 2 (UP * UP)); [now apply (number_whole 2)|nra|exact Hu]).
  assert (P2 : 0 <= up2) by nra.
  set (u := relative A) in *. set (t := absolute A) in *.
  assert (M1 := sum_rounded mx my m Fmx Fmy Hm).
  assert (M2 : Rabs (mx + my) <= Rabs m + U * Rabs m).
  { replace (mx + my) with (m + - (m - (mx + my))) by ring. pose proof (Rabs_triang m (- (m - (mx + my)))) as Tr.
    rewrite Rabs_Ropp in Tr. lra. }
  set (need := (rx + ry) * (1 + u) + Rabs m * (U + u + U * u) + 29 / 8 * t).
  assert (Need : Rabs (s - m) <= need).
  { assert (Q := add_error A x y x' y' s Rx Ry R). fold u t in Q.
    assert (D : Rabs (x + y - (mx + my)) <= rx + ry).
    { replace (x + y - (mx + my)) with ((x - mx) + (y - my)) by ring.
      pose proof (Rabs_triang (x - mx) (y - my)). lra. }
    assert (B : Rabs (x + y) <= Rabs m + U * Rabs m + (rx + ry)).
    { replace (x + y) with ((mx + my) + (x + y - (mx + my))) by ring.
      pose proof (Rabs_triang (mx + my) (x + y - (mx + my))). lra. }
    apply (Rmult_le_compat_l u) in B; [|lra].
    replace (s - m) with ((s - (x + y)) + (x + y - (mx + my)) + - (m - (mx + my))) by ring.
    pose proof (Rabs_triang ((s - (x + y)) + (x + y - (mx + my))) (- (m - (mx + my)))).
    pose proof (Rabs_triang (s - (x + y)) (x + y - (mx + my))). rewrite Rabs_Ropp in *. unfold need. lra. }
  apply Rle_trans with (1 := Need).
  apply (covered (add_radius A m spread up2)); [|exact Hr|simpl; lra| |apply Rle_trans with (2 := Need), Rabs_pos|].
  - simpl. fold u t. repeat split; try lra; auto using number_abs, number_1, number_U, number_UP, number_TINY.
    + now apply (rounds_number (rx + ry)).
    + apply number_abs. now apply (rounds_number (mx + my)).
    + now apply (number_whole 4).
  - simpl. fold u t. pose proof TINY_least. nra.
  - simpl. fold u t. unfold need. set (q := rx + ry) in *. assert (Pq : 0 <= q) by (unfold q; lra).
    set (k := UP) in *. assert (K1 : k = 1 + 8192 * U) by lra.
    assert (K2 : k * (1 + 8000 * U) <= up2) by (apply Rle_trans with (2 := L2);
      assert (1 + 8000 * U <= k * (1 - U)) by (rewrite K1; nra); nra).
    assert (Q1 : q * (1 + u) * k <= spread * (1 + u) * up2).
    { apply Rle_trans with (spread * (1 + u) * (k * (1 + 8000 * U))); [|apply Rmult_le_compat_l; nra].
      replace (spread * (1 + u) * (k * (1 + 8000 * U))) with (spread * (1 + 8000 * U) * ((1 + u) * k)) by ring.
      rewrite Rmult_assoc. apply Rmult_le_compat_r; [apply Rmult_le_pos; lra|].
      apply Rle_trans with (q * (1 - U) * (1 + 8000 * U)); [|apply Rmult_le_compat_r; lra].
      assert (1 <= (1 - U) * (1 + 8000 * U)) by nra. nra. }
    assert (Q2 : Rabs m * (U + u + U * u) * k <= Rabs m * (U + u) * up2).
    { rewrite !Rmult_assoc. apply Rmult_le_compat_l; [lra|].
      apply Rle_trans with ((U + u) * (k * (1 + 8000 * U))); [|apply Rmult_le_compat_l; lra].
      replace ((U + u) * (k * (1 + 8000 * U))) with ((U + u) * (1 + 8000 * U) * k) by ring.
      apply Rmult_le_compat_r; nra. }
    assert (Q3 : 29 / 8 * t * k <= 4 * t) by nra. nra.
Qed.

(** What the test [a - r >= 2 c] of two computed numbers says: a - r is at least c. *)
Lemma test_at_least (a r d c : R) :
  number binary64 c -> 0 < c -> rounds (a - r) d -> 2 * c <= d -> c <= a - r.
Proof.
  intros F P H L. apply Rnot_lt_le. intros Lt. assert (d <= c) by (apply (rounds_le c (a - r)); trivial; lra). lra.
Qed.

(** Adding an exact zero to y, whose ball is (m, r), keeps that ball if m is 0 or the ball is away from 0, where
    nothing is flushed. For: core/balls.py add, [kept]; there |m| - r >= 2 tiny, see [test_at_least]. *)
Theorem add_kept (A : arithmetic) (y y' s m r : R) :
  Rabs (y - m) <= r -> in_format A y -> m = 0 \/ flushed A <= Rabs m - r ->
  reading A y y' -> result A (0 + y') s -> Rabs (s - m) <= r.
Proof.
  intros B F K Ry R. rewrite Rplus_0_l in R. pose proof (Rabs_pos (y - m)).
  assert (C : s = y \/ (Rabs y < flushed A /\ s = 0)).
  { destruct (reading_cases A y y' Ry) as [->|[L ->]]; [now apply result_number|].
    right. split; [exact L|]. apply (result_exact A); [apply in_format_0|now left|exact R]. }
  destruct C as [->|[L ->]]; [exact B|]. destruct K as [->|K].
  - rewrite Rminus_0_r, Rabs_R0. lra.
  - exfalso. pose proof (Rabs_triang y (m - y)). replace (y + (m - y)) with m in * by ring.
    rewrite (Rabs_minus_sym m y) in *. lra.
Qed.

(** * ReLU *)

(** The ball of max(x, 0): midpoint max(m, 0), radius max(min(m, 0) + r, 0) UP, as float64 computes them. For:
    core/balls.py relu. *)
Theorem relu_encloses (x m r t r' : R) :
  Rabs (x - m) <= r -> number binary64 m -> number binary64 r ->
  rounds (Rmin m 0 + r) t -> rounds (Rmax t 0 * UP) r' ->
  Rabs (Rmax x 0 - Rmax m 0) <= r'.
Proof.
  intros B Fm Fr Ht Hr. pose proof (Rabs_pos (x - m)). pose proof U_pos as Up. destruct U_small as [E Us].
  assert (Ft := rounds_number _ _ Ht).
  assert (F0 : number binary64 (Rmax t 0)) by (unfold Rmax; destruct (Rle_dec t 0); [apply number_0|exact Ft]).
  assert (P0 : 0 <= Rmax t 0) by apply Rmax_r.
  assert (Keep : Rmax t 0 <= r') by (apply (rounds_ge _ (Rmax t 0 * UP)); trivial; nra).
  destruct (Rle_lt_dec 0 m) as [P|P].
  - rewrite Rmin_right in Ht by lra. rewrite Rplus_0_l in Ht. rewrite (rounds_exact r t Fr Ht) in *.
    rewrite (Rmax_left r 0) in Keep by lra. rewrite (Rmax_left m 0) by lra. apply Rle_trans with (2 := Keep).
    apply Rle_trans with (2 := B). unfold Rmax. destruct (Rle_dec x 0); unfold Rabs;
      destruct (Rcase_abs (0 - m)), (Rcase_abs (x - m)); try lra; destruct (Rcase_abs (x - m)); lra.
  - rewrite Rmin_left in Ht by lra. rewrite (Rmax_right m 0) by lra. rewrite Rminus_0_r.
    rewrite (Rabs_pos_eq (Rmax x 0)) by apply Rmax_r.
    assert (X : x <= m + r) by (revert B; unfold Rabs; destruct (Rcase_abs (x - m)); lra).
    destruct (Rle_lt_dec (m + r) 0) as [L|L]; [rewrite Rmax_right by lra; lra|].
    apply Rle_trans with (m + r); [apply Rmax_lub; lra|].
    destruct (Rle_lt_dec (m + r) (2 * NORMAL)) as [S|S].
    + assert (F : number binary64 (m + r)).
      { apply (@FLT_format_plus_small radix2 (-1074) 53); trivial; [easy|]. rewrite Rabs_pos_eq by lra.
        apply Rle_trans with (1 := S). rewrite NORMAL_eq. change 2 with (bpow radix2 1). rewrite <- bpow_plus.
        now apply bpow_le. }
      rewrite (rounds_exact _ _ F Ht) in Keep. rewrite Rmax_left in Keep by lra. exact Keep.
    + assert (T := sum_low m r t Fm Fr ltac:(lra) Ht). pose proof NORMAL_pos as Np.
      assert (Tn : NORMAL <= t) by nra. rewrite Rmax_left in Hr by lra.
      assert (R := normal_low (t * UP) r' ltac:(nra) Hr). apply Rle_trans with (2 := R).
      apply Rle_trans with ((m + r) * (1 - U) * UP * (1 - U)).
      * replace ((m + r) * (1 - U) * UP * (1 - U)) with ((m + r) * ((1 - U) * (1 - U) * UP)) by ring.
        assert (1 <= (1 - U) * (1 - U) * UP); [|nra]. replace UP with (1 + 8192 * U) by lra.
        assert ((1 - 2 * U) * (1 + 8192 * U) <= (1 - U) * (1 - U) * (1 + 8192 * U)) by nra. nra.
      * apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat_r; lra.
Qed.

(** * Ends *)

(** The ends of a ball, one number further outward than computed, are outside. For: core/balls.py Ball.low,
    Ball.high. *)
Theorem low_high (x m r low high : R) :
  Rabs (x - m) <= r -> rounds (m - r) low -> rounds (m + r) high ->
  pred radix2 (FLT_exp (-1074) 53) low <= x <= succ radix2 (FLT_exp (-1074) 53) high.
Proof.
  intros B [tl ->] [th ->]. assert (V : Valid_exp (FLT_exp (-1074) 53)) by (now apply FLT_exp_valid).
  assert (X : m - r <= x <= m + r) by (revert B; unfold Rabs; destruct (Rcase_abs (x - m)); lra). split.
  - apply Rle_trans with (2 := proj1 X). apply pred_round_le_id; [exact V|apply valid_rnd_N].
  - apply Rle_trans with (1 := proj2 X). apply succ_round_ge_id; [exact V|apply valid_rnd_N].
Qed.

(** * Real tokens *)

Local Notation fexp := (FLT_exp (-1074) 53).

(** Of two numbers of which y is at most x in size, s = x + y as computed and x differ by a number. *)
Lemma difference_number (x y s : R) :
  number binary64 x -> number binary64 y -> Rabs y <= Rabs x -> rounds (x + y) s -> number binary64 (s - x).
Proof.
  intros Fx Fy L Hs. assert (Vf : Valid_exp fexp) by (now apply FLT_exp_valid).
  destruct (Req_dec (x + y) s) as [E|E]; [subst; replace (x + y - x) with y by ring; exact Fy|].
  destruct (Req_dec x 0) as [Z|NZ].
  { subst. rewrite Rabs_R0 in L. assert (y = 0) by (apply Rabs_eq_R0; pose proof (Rabs_pos y); lra). subst.
    elim E. symmetry. apply rounds_exact; [rewrite Rplus_0_r; apply number_0|exact Hs]. }
  destruct (Req_dec y 0) as [Zy|NZy].
  { subst. elim E. symmetry. apply rounds_exact; [rewrite Rplus_0_r; exact Fx|exact Hs]. }
  (* integers *)
  set (e := cexp radix2 fexp y). set (ex := cexp radix2 fexp x).
  assert (Ee : (e <= ex)%Z).
  { unfold e, ex, cexp, FLT_exp. assert (mag radix2 y <= mag radix2 x)%Z by (now apply mag_le_abs). lia. }
  assert (Ix : exists a, x = IZR a * bpow radix2 e).
  { exists (Ztrunc (scaled_mantissa radix2 fexp x) * 2 ^ (ex - e))%Z. rewrite Fx at 1. unfold F2R. cbn [Fnum Fexp].
    change (cexp radix2 (FLT_exp (emin binary64) (prec binary64)) x) with ex.
    rewrite mult_IZR, Rmult_assoc. f_equal. rewrite (IZR_Zpower radix2) by lia. rewrite <- bpow_plus. f_equal.
    lia. }
  assert (Iy : exists b, y = IZR b * bpow radix2 e).
  { exists (Ztrunc (scaled_mantissa radix2 fexp y)). exact Fy. }
  destruct Ix as [a Ea], Iy as [b Eb].
  assert (Bb : (Z.abs b <= 2 ^ 53 - 1)%Z).
  { assert (M : Rabs y < bpow radix2 (53 + e)).
    { apply Rlt_le_trans with (bpow radix2 (mag radix2 y)); [apply bpow_mag_gt|].
      apply bpow_le. unfold e, cexp, FLT_exp. lia. }
    rewrite Eb, Rabs_mult, (Rabs_pos_eq (bpow radix2 e)), bpow_plus in M by apply bpow_ge_0.
    apply Rmult_lt_reg_r in M; [|apply bpow_gt_0]. rewrite <- abs_IZR in M.
    change (bpow radix2 53) with (IZR (2 ^ 53)) in M.
    apply lt_IZR in M. lia. }
  destruct Hs as [ties Hs]. unfold nearest in Hs. set (es := cexp radix2 fexp (x + y)) in *.
  assert (Is : exists c, s = IZR c * bpow radix2 es).
  { exists (Znearest ties (scaled_mantissa radix2 fexp (x + y))). rewrite Hs. reflexivity. }
  destruct Is as [c Es].
  assert (Ges : (e + 1 <= es)%Z).
  { destruct (Z_lt_le_dec e es) as [G|G]; [lia|]. elim E. rewrite Hs. symmetry.
    apply round_generic; [apply valid_rnd_N|].
    replace (x + y) with (F2R (Float radix2 (a + b) e)) by
      (unfold F2R; cbn [Fnum Fexp]; rewrite plus_IZR, Ea, Eb; ring).
    apply generic_format_F2R. intros _. unfold F2R; cbn [Fnum Fexp].
    replace (IZR (a + b) * bpow radix2 e) with (x + y) by (rewrite plus_IZR, Ea, Eb; ring). exact G. }
  assert (Near : Rabs (s - (x + y)) <= Rabs y).
  { rewrite Hs. now apply plus_error_le_r. }
  assert (Far : Rabs (s - x) <= 2 * Rabs y).
  { replace (s - x) with ((s - (x + y)) + y) by ring. apply Rle_trans with (1 := Rabs_triang _ _). lra. }
  assert (By : Rabs y = IZR (Z.abs b) * bpow radix2 e).
  { rewrite Eb, Rabs_mult, (Rabs_pos_eq (bpow radix2 e)), abs_IZR by apply bpow_ge_0. reflexivity. }
  assert (Em : (-1074 <= e)%Z) by (unfold e, cexp, FLT_exp; lia).
  assert (Made : forall m k, (-1074 <= k)%Z -> (Z.abs m <= 2 ^ 53)%Z -> number binary64 (IZR m * bpow radix2 k)).
  { intros m k K M. destruct (Z.eq_dec (Z.abs m) (2 ^ 53)) as [P|P].
    - assert (G : number binary64 (bpow radix2 53 * bpow radix2 k)).
      { rewrite <- bpow_plus. apply generic_format_FLT_bpow; [easy|]. change (-1074 <= 53 + k)%Z. lia. }
      destruct (Z.abs_eq_or_opp m) as [A|A]; rewrite A in P.
      + rewrite P. exact G.
      + replace m with (- 2 ^ 53)%Z by lia. rewrite opp_IZR, Ropp_mult_distr_l_reverse. now apply number_opp.
    - apply generic_format_FLT. exists (Float radix2 m k); [reflexivity| |exact K]. change (Z.abs m < 2 ^ 53)%Z.
      lia. }
  destruct (Z_lt_le_dec e ex) as [G|G].
  - (* both s and x are multiples of 2^(e + 1) *)
    assert (Ix2 : exists a', x = IZR a' * bpow radix2 (e + 1)).
    { exists (Ztrunc (scaled_mantissa radix2 fexp x) * 2 ^ (ex - e - 1))%Z. rewrite Fx at 1. unfold F2R.
      cbn [Fnum Fexp].
      change (cexp radix2 (FLT_exp (emin binary64) (prec binary64)) x) with ex.
      rewrite mult_IZR, Rmult_assoc. f_equal. rewrite (IZR_Zpower radix2) by lia. rewrite <- bpow_plus. f_equal.
      lia. }
    destruct Ix2 as [a' Ea'].
    assert (D : s - x = IZR (c * 2 ^ (es - e - 1) - a') * bpow radix2 (e + 1)).
    { rewrite minus_IZR, mult_IZR, (IZR_Zpower radix2) by lia.
      rewrite Rmult_minus_distr_r, Rmult_assoc, <- bpow_plus.
      replace (es - e - 1 + (e + 1))%Z with es by lia. rewrite Es, Ea'. reflexivity. }
    rewrite D in *. set (m := (c * 2 ^ (es - e - 1) - a')%Z) in *. apply Made; [lia|].
    rewrite Rabs_mult, (Rabs_pos_eq (bpow radix2 (e + 1))), By, bpow_plus, <- abs_IZR in Far by apply bpow_ge_0.
    change (bpow radix2 1) with 2 in Far. pose proof (bpow_gt_0 radix2 e) as Pe.
    assert (M : IZR (Z.abs m) <= IZR (Z.abs b)).
    { apply Rmult_le_reg_r with (bpow radix2 e * 2); [lra|]. lra. }
    apply le_IZR in M. lia.
  - (* x and y have the same exponent, and s the next one *)
    assert (Ex : ex = e) by lia.
    assert (Bx : Rabs x < bpow radix2 (53 + e)).
    { apply Rlt_le_trans with (bpow radix2 (mag radix2 x)); [apply bpow_mag_gt|].
      apply bpow_le. rewrite <- Ex. unfold ex, cexp, FLT_exp. lia. }
    assert (Bs : (es <= e + 1)%Z).
    { unfold es, cexp, FLT_exp. assert (mag radix2 (x + y) <= 54 + e)%Z; [|lia].
      apply mag_le_bpow; [intros Z; rewrite Z in E; apply E; rewrite Hs, Z; symmetry; apply round_0;
        apply valid_rnd_N|].
      apply Rle_lt_trans with (1 := Rabs_triang _ _). replace (54 + e)%Z with (1 + (53 + e))%Z by lia.
      rewrite bpow_plus.
      change (bpow radix2 1) with 2. lra. }
    assert (Es1 : es = (e + 1)%Z) by lia.
    assert (Half : Rabs (s - (x + y)) <= bpow radix2 e).
    { rewrite Hs. apply Rle_trans with (/ 2 * ulp radix2 fexp (x + y)); [now apply error_le_half_ulp|].
      rewrite ulp_neq_0 by (intros Z; apply E; rewrite Hs, Z; symmetry; apply round_0; apply valid_rnd_N).
      fold es. rewrite Es1, bpow_plus. change (bpow radix2 1) with 2. lra. }
    assert (D : s - x = IZR (c * 2 - a) * bpow radix2 e).
    { rewrite minus_IZR, mult_IZR, Es, Ea, Es1, bpow_plus. change (bpow radix2 1) with 2. ring. }
    rewrite D in *. apply Made; [exact Em|].
    assert (M : Rabs (IZR (c * 2 - a) * bpow radix2 e) <= (IZR (Z.abs b) + 1) * bpow radix2 e).
    { rewrite <- D. replace (s - x) with ((s - (x + y)) + y) by ring. apply Rle_trans with (1 := Rabs_triang _ _).
      lra. }
    rewrite Rabs_mult, (Rabs_pos_eq (bpow radix2 e)), <- abs_IZR in M by apply bpow_ge_0.
    apply Rmult_le_reg_r in M; [|apply bpow_gt_0]. rewrite <- plus_IZR in M. apply le_IZR in M. lia.
Qed.

(** A sum that gives back both of its terms is exact: one of the two differences is computed without rounding. For:
    core/balls.py around, the tests of [between]. *)
Theorem sum_given_back (x y s d d' : R) :
  number binary64 x -> number binary64 y -> rounds (x + y) s ->
  rounds (s - x) d -> rounds (s - y) d' -> d = y -> d' = x -> s = x + y.
Proof.
  intros Fx Fy Hs Hd Hd' E E'. destruct (Rle_lt_dec (Rabs y) (Rabs x)) as [L|L].
  - rewrite (rounds_exact (s - x) d) in E; [lra|now apply (difference_number x y)|exact Hd].
  - rewrite (rounds_exact (s - y) d') in E'; [lra| |exact Hd'].
    apply (difference_number y x); trivial; [lra|now rewrite Rplus_comm].
Qed.

Section Around.
Variable f : format.

(** A real number x that lies between two numbers a <= b of the format is rounded to a number between them; if it is
    flushed instead, so might a number between them be. *)
Theorem around_between (x s a b : R) :
  number f a -> number f b -> a <= x <= b -> number f s -> operation f x s ->
  exists s0, number f s0 /\ a <= s0 <= b /\ reads f s0 s.
Proof.
  intros Fa Fb X Fs (y & W & S).
  assert (V : Valid_exp (FLT_exp (emin f) (prec f))) by (apply FLT_exp_valid; apply (prec_pos f)).
  assert (Y : a <= y <= b).
  { destruct W as [->|p e ties Hp He ->]; [exact X|]. unfold nearest.
    assert (V' : Valid_exp (FLT_exp e p)).
    { apply FLT_exp_valid. unfold Prec_gt_0. pose proof (prec_pos f). lia. }
    split; [apply round_ge_generic|apply round_le_generic]; try apply valid_rnd_N; try tauto;
      apply (wider f); trivial; pose proof (prec_pos f); lia. }
  destruct S as [->|t ->|L ->].
  - exists y. repeat split; [exact Fs|tauto|tauto|now left].
  - exists (nearest (prec f) (emin f) t y). repeat split; [apply number_nearest| | |now left].
    + apply round_ge_generic; [exact V|apply valid_rnd_N|exact Fa|tauto].
    + apply round_le_generic; [exact V|apply valid_rnd_N|exact Fb|tauto].
  - destruct (Rle_lt_dec a 0) as [Na|Pa], (Rle_lt_dec 0 b) as [Pb|Nb].
    + exists 0. repeat split; [apply number_0|lra|lra|now left].
    + exists b. repeat split; [exact Fb|lra|lra|right]. split; [|reflexivity].
      revert L. unfold Rabs. destruct (Rcase_abs y), (Rcase_abs b); lra.
    + exists a. repeat split; [exact Fa|lra|lra|right]. split; [|reflexivity].
      revert L. unfold Rabs. destruct (Rcase_abs y), (Rcase_abs a); lra.
    + lra.
Qed.

(** The radius that around computes if x + radius or x - radius is not a number: (r + (|m| + r) u) UP + tiny. *)
Definition around_radius (m r : R) : expr :=
  Plus (Times (Plus (Known r) (Times (Plus (Known (Rabs m)) (Known r)) (Known (v f)))) (Known UP)) (Known (tiny f)).

Lemma flushed_number (x : R) : Rabs x < tiny f ->
  exists s0, number f s0 /\ Rabs s0 <= Rabs x /\ Rabs (s0 - x) <= tiny f / 2.
Proof.
  intros L. assert (V : Valid_exp (FLT_exp (emin f) (prec f))) by (apply FLT_exp_valid; apply (prec_pos f)).
  exists (round radix2 (FLT_exp (emin f) (prec f)) Ztrunc x). repeat split.
  - now apply generic_format_round; [exact V|apply valid_rnd_ZR].
  - destruct (Rle_lt_dec 0 x) as [P|P].
    + rewrite round_ZR_DN by exact P.
      assert (H := round_DN_pt radix2 (FLT_exp (emin f) (prec f)) x). destruct H as (_ & H & G).
      specialize (G 0 (generic_format_0 _ _) P). rewrite !Rabs_pos_eq; lra.
    + rewrite round_ZR_UP by lra.
      assert (H := round_UP_pt radix2 (FLT_exp (emin f) (prec f)) x). destruct H as (_ & H & G).
      specialize (G 0 (generic_format_0 _ _) ltac:(lra)). rewrite !Rabs_left1; lra.
  - apply Rle_trans with (ulp radix2 (FLT_exp (emin f) (prec f)) x).
    + apply error_le_ulp; [exact V|apply valid_rnd_ZR].
    + rewrite ulp_FLT_small; [pose proof (least_le_tiny f (emin f) (Z.le_refl _)); lra|apply (prec_pos f)|].
      apply Rlt_trans with (1 := L). apply bpow_lt. lia.
Qed.

(** What the arithmetic makes of a real number x in the ball (m, r), is a number in the ball that around returns,
    or such a number flushed, which whoever reads it accounts for. For: core/balls.py around, where it is not
    between. *)
Theorem around_encloses (x s m r r' : R) :
  Rabs (x - m) <= r -> number binary64 m -> number binary64 r ->
  number binary64 (v f) -> number binary64 (tiny f) ->
  NORMAL <= tiny f -> number f s -> operation f x s -> computed (around_radius m r) r' ->
  exists s0, number f s0 /\ Rabs (s0 - m) <= r' /\ reads f s0 s.
Proof.
  intros B Fm Fr Fv Ft Nt Fs H Hr.
  pose proof (v_bounds f) as V. pose proof (u_pos f) as U0. pose proof (tiny_pos f) as T.
  pose proof U_pos as Up. destruct U_small as [E Us]. pose proof least_pos as Lp.
  pose proof (Rabs_pos (x - m)). pose proof (Rabs_pos m) as Pm.
  set (need := r + v f * (Rabs m + r) + 9 / 16 * tiny f).
  assert (C : need <= r').
  { assert (F : fair (around_radius m r)).
    { simpl. repeat split; try lra; auto using number_abs, number_UP. }
    assert (L := radius_low _ _ F Hr). apply Rle_trans with (2 := L). unfold need.
    assert (SL : slip (around_radius m r) <= 4 * least) by (simpl; nra).
    change (exactly (around_radius m r)) with ((r + (Rabs m + r) * v f) * UP + tiny f).
    change (operations (around_radius m r)) with 5%nat.
    assert (Q := bernoulli 5). set (q := (1 - U) ^ 5) in *. change (INR 5) with (1 + 1 + 1 + 1 + 1) in Q.
    set (k := r + (Rabs m + r) * v f). assert (Pk : 0 <= k) by (unfold k; nra).
    assert (1 <= UP * q).
    { replace UP with (1 + 8192 * U) by lra. apply Rle_trans with ((1 + 8192 * U) * (1 - 5 * U)); [nra|].
      apply Rmult_le_compat_l; lra. }
    assert (k <= k * UP * q) by (rewrite Rmult_assoc; rewrite <- (Rmult_1_r k) at 1; now apply Rmult_le_compat_l).
    assert (tiny f * (31 / 32) <= tiny f * q) by (apply Rmult_le_compat_l; lra).
    assert (N64 : 64 * least <= NORMAL) by apply NORMAL_least.
    replace ((k * UP + tiny f) * q) with (k * UP * q + tiny f * q) by ring.
    replace (v f * (Rabs m + r)) with ((Rabs m + r) * v f) by ring. unfold k in *. lra. }
  assert (X : Rabs x <= Rabs m + r).
  { pose proof (Rabs_triang m (x - m)). replace (m + (x - m)) with x in * by ring. lra. }
  assert (Near : forall s0, Rabs (s0 - x) <= v f * Rabs x + 9 / 16 * tiny f -> Rabs (s0 - m) <= r').
  { intros s0 D. apply Rle_trans with (2 := C). apply (Rmult_le_compat_l (v f)) in X; [|lra].
    replace (s0 - m) with ((s0 - x) + (x - m)) by ring. pose proof (Rabs_triang (s0 - x) (x - m)). unfold need.
    lra. }
  destruct (operation_cases f x s H) as [[L ->]|D].
  - destruct (flushed_number x L) as (s0 & F0 & L0 & D0). exists s0. repeat split; [exact F0| |right; split; lra].
    apply Near. pose proof (Rabs_pos x). nra.
  - exists s. repeat split; [exact Fs|now apply Near|now left].
Qed.

End Around.
