(** The rounding of the radii themselves. A radius is computed in float64 from numbers that are not negative:
    each operation makes it smaller by at most a factor 1 - 2^-53, and a product by at most 2^-1074 more, if it
    underflows. [UP] = 1 + 2^-40 makes up for 4,000 of the former ([up_covers]), [TINY] = 2^-1000 for the latter
    ([covered]).

    For: core/balls.py UP, TINY, gamma, and the factor [inflate] of linear and dot. *)

From Coq Require Import Reals ZArith List Lra Lia.
From Flocq Require Import Core Relative Plus_error.
From Onelayer Require Import Arithmetic Rounding DotError.
Import ListNotations.
Open Scope R_scope.

Definition UP : R := 1 + bpow radix2 (-40).
Definition TINY : R := bpow radix2 (-1000).

(** [rounds x y]: float64 gives y where the exact result is x. *)
Definition rounds (x y : R) : Prop := exists ties, y = nearest 53 (-1074) ties x.

Lemma rounds_number x y : rounds x y -> number binary64 y.
Proof. intros [ties ->]. apply (number_nearest binary64). Qed.

(** Rounding is monotone: what is at least a number of float64 stays so. *)
Lemma rounds_ge c x y : number binary64 c -> c <= x -> rounds x y -> c <= y.
Proof.
  intros F L [ties ->]. apply round_ge_generic; [now apply FLT_exp_valid|apply valid_rnd_N|exact F|exact L].
Qed.

Lemma rounds_le c x y : number binary64 c -> x <= c -> rounds x y -> y <= c.
Proof.
  intros F L [ties ->]. apply round_le_generic; [now apply FLT_exp_valid|apply valid_rnd_N|exact F|exact L].
Qed.

Lemma rounds_nonneg x y : 0 <= x -> rounds x y -> 0 <= y.
Proof. apply rounds_ge. apply number_0. Qed.

Lemma rounds_exact x y : number binary64 x -> rounds x y -> y = x.
Proof. intros F [ties ->]. now apply (nearest_number binary64). Qed.

Lemma rounds_once_of x y : rounds x y -> rounds_once x y.
Proof. intros H. now right. Qed.

Lemma U_pos : 0 < U. Proof. apply bpow_gt_0. Qed.
Lemma least_pos : 0 < least. Proof. apply bpow_gt_0. Qed.

Lemma U_small : 8192 * U = UP - 1 /\ 8192 * U <= 1 / 1024.
Proof.
  unfold U, UP. replace 8192 with (bpow radix2 13) by (simpl; lra). rewrite <- bpow_plus.
  replace (13 + -53)%Z with (-40)%Z by lia. split; [ring|].
  replace (1 / 1024) with (bpow radix2 (-10)) by (simpl; lra). now apply bpow_le.
Qed.

(** A sum of two numbers is never below 1 - U times the exact one: sums do not underflow. *)
Lemma sum_low x y z : number binary64 x -> number binary64 y -> 0 <= x + y -> rounds (x + y) z ->
  (x + y) * (1 - U) <= z.
Proof.
  intros Fx Fy P [ties ->].
  destruct (@FLT_plus_error_N_ex radix2 (-1074) 53 eq_refl ties x y Fx Fy) as (d & D & E). unfold nearest.
  rewrite E.
  apply Rmult_le_compat_l; [exact P|].
  assert (u_ro radix2 53 / (1 + u_ro radix2 53) <= U).
  { apply Rle_trans with (1 := u_rod1pu_ro_le_u_ro radix2 53). unfold u_ro, U.
    change (/ 2) with (bpow radix2 (-1)). rewrite <- bpow_plus. now apply bpow_le. }
  revert D. unfold Rabs. destruct (Rcase_abs d); lra.
Qed.

(** A product, or anything else, is at least that, less what underflow costs. *)
Lemma product_low x z : 0 <= x -> rounds x z -> x * (1 - U) - least <= z.
Proof.
  intros P H. apply rounds_once_of, rounds_once_error in H. rewrite (Rabs_pos_eq x P) in H.
  pose proof least_pos. revert H. unfold Rabs. destruct (Rcase_abs (z - x)); lra.
Qed.

(** And nothing underflows that is at least the smallest normal number. *)
Lemma normal_low x z : NORMAL <= x -> rounds x z -> x * (1 - U) <= z.
Proof.
  intros P [ties ->]. assert (N : 0 < NORMAL) by apply bpow_gt_0.
  assert (H := relative_error_N_FLT radix2 (-1074) 53 eq_refl ties x). fold (nearest 53 (-1074) ties x) in H.
  rewrite (Rabs_pos_eq x) in H by lra. specialize (H P).
  assert (E : / 2 * bpow radix2 (-53 + 1) = U).
  { change (/ 2) with (bpow radix2 (-1)). unfold U. rewrite <- bpow_plus. reflexivity. }
  change (- (53) + 1)%Z with (-53 + 1)%Z in H. rewrite E in H.
  revert H. unfold Rabs. destruct (Rcase_abs (nearest 53 (-1074) ties x - x)); lra.
Qed.

(** n operations, each of which loses at most a factor 1 - U, lose at most a factor 1 - n U. *)
Lemma bernoulli (n : nat) : 1 - INR n * U <= (1 - U) ^ n <= 1.
Proof.
  pose proof U_pos. pose proof U_small. induction n as [|n IH]; [simpl; lra|]. rewrite S_INR. simpl.
  pose proof (pos_INR n). assert (0 <= INR n * (U * U)) by (apply Rmult_le_pos; nra).
  assert (0 <= (1 - U) ^ n) by (apply pow_le; lra). nra.
Qed.

(** [UP] makes up for 4,000 roundings: if a is at least r (1 - U)^4000, then r <= a UP. *)
Theorem up_covers (r a : R) (n : nat) : INR n <= 4000 -> 0 <= r -> r * (1 - U) ^ n <= a -> r <= a * UP.
Proof.
  intros N P H. pose proof U_pos as V. destruct U_small as [E S]. destruct (bernoulli n) as [B _].
  pose proof (pos_INR n).
  assert (Q : 1 - 4000 * U <= (1 - U) ^ n) by nra.
  assert (r * (1 - 4000 * U) <= a) by (apply Rle_trans with (2 := H); apply Rmult_le_compat_l; lra).
  assert (1 <= (1 - 4000 * U) * (1 + 8192 * U)) by nra.
  apply Rle_trans with (r * (1 - 4000 * U) * (1 + 8192 * U)); [nra|]. replace UP with (1 + 8192 * U) by lra.
  apply Rmult_le_compat_r; lra.
Qed.

(** * Expressions

    A radius is an expression of sums and products over known numbers that are not negative. *)

Inductive expr := Known (c : R) | Plus (a b : expr) | Times (a b : expr).

Fixpoint exactly (e : expr) : R :=
  match e with Known c => c | Plus a b => exactly a + exactly b | Times a b => exactly a * exactly b end.

Fixpoint operations (e : expr) : nat :=
  match e with Known _ => 0 | Plus a b | Times a b => S (operations a + operations b) end.

(** Known numbers are numbers of float64, and not negative. *)
Fixpoint fair (e : expr) : Prop :=
  match e with Known c => number binary64 c /\ 0 <= c | Plus a b | Times a b => fair a /\ fair b end.

Inductive computed : expr -> R -> Prop :=
| computed_known c : computed (Known c) c
| computed_plus a b x y z : computed a x -> computed b y -> rounds (x + y) z -> computed (Plus a b) z
| computed_times a b x y z : computed a x -> computed b y -> rounds (x * y) z -> computed (Times a b) z.

(** What underflow of products may cost. *)
Fixpoint slip (e : expr) : R :=
  match e with
  | Known _ => 0
  | Plus a b => slip a + slip b
  | Times a b => slip a * exactly b + slip b * exactly a + least
  end.

Lemma exactly_nonneg e : fair e -> 0 <= exactly e.
Proof.
  induction e as [c|a IHa b IHb|a IHa b IHb]; simpl; intros [Fa Fb]; [exact Fb| |];
    specialize (IHa Fa); specialize (IHb Fb); [lra|now apply Rmult_le_pos].
Qed.

Lemma slip_nonneg e : fair e -> 0 <= slip e.
Proof.
  pose proof least_pos. induction e as [c|a IHa b IHb|a IHa b IHb]; simpl; intros [Fa Fb]; [lra| |];
    specialize (IHa Fa); specialize (IHb Fb); [lra|].
  pose proof (exactly_nonneg a Fa). pose proof (exactly_nonneg b Fb).
  assert (0 <= slip a * exactly b) by (now apply Rmult_le_pos).
  assert (0 <= slip b * exactly a) by (now apply Rmult_le_pos). lra.
Qed.

Lemma computed_fair e x : fair e -> computed e x -> number binary64 x /\ 0 <= x.
Proof.
  intros F H. induction H as [c|a b x y z H1 IH1 H2 IH2 R|a b x y z H1 IH1 H2 IH2 R]; [exact F| |].
  - destruct F as [Fa Fb]. specialize (IH1 Fa). specialize (IH2 Fb). split; [now apply rounds_number with (x + y)|].
    apply rounds_nonneg with (x + y); [lra|exact R].
  - destruct F as [Fa Fb]. specialize (IH1 Fa). specialize (IH2 Fb). split; [now apply rounds_number with (x * y)|].
    apply rounds_nonneg with (x * y); [apply Rmult_le_pos; tauto|exact R].
Qed.

(** The value of an expression, as computed, is not much below the exact one. *)
Theorem radius_low (e : expr) (x : R) :
  fair e -> computed e x -> exactly e * (1 - U) ^ operations e - slip e <= x.
Proof.
  pose proof U_pos as Up. destruct U_small as [_ Us]. pose proof least_pos as Lp. intros F H.
  induction H as [c|a b x y z H1 IH1 H2 IH2 R|a b x y z H1 IH1 H2 IH2 R]; [simpl; lra| |];
    destruct F as [Fa Fb]; specialize (IH1 Fa); specialize (IH2 Fb);
    destruct (computed_fair a x Fa H1) as [Nx Px], (computed_fair b y Fb H2) as [Ny Py];
    pose proof (exactly_nonneg a Fa) as Ea; pose proof (exactly_nonneg b Fb) as Eb;
    pose proof (slip_nonneg a Fa) as Sa; pose proof (slip_nonneg b Fb) as Sb;
    assert (Qa := bernoulli (operations a)); assert (Qb := bernoulli (operations b));
    assert (Pa : 0 <= (1 - U) ^ operations a) by (apply pow_le; lra);
    assert (Pb : 0 <= (1 - U) ^ operations b) by (apply pow_le; lra); simpl; rewrite pow_add;
    set (qa := (1 - U) ^ operations a) in *; set (qb := (1 - U) ^ operations b) in *.
  - apply sum_low in R; trivial; [|lra].
    assert (exactly a * (qa * qb) <= exactly a * qa) by (apply Rmult_le_compat_l; nra).
    assert (exactly b * (qa * qb) <= exactly b * qb) by (apply Rmult_le_compat_l; nra).
    assert (T : (exactly a * (qa * qb) + exactly b * (qa * qb) - slip a - slip b) <= x + y) by lra.
    apply Rle_trans with (2 := R). apply (Rmult_le_compat_r (1 - U)) in T; [|lra].
    apply Rle_trans with (2 := T). nra.
  - apply product_low in R; [|now apply Rmult_le_pos].
    set (p := exactly a * qa) in *. set (q := exactly b * qb) in *.
    assert (Pp : 0 <= p <= exactly a) by (unfold p; nra). assert (Pq : 0 <= q <= exactly b) by (unfold q; nra).
    assert (T : p * q - slip a * exactly b - slip b * exactly a <= x * y).
    { apply Rle_trans with (p * q - slip a * q - slip b * p); [nra|].
      destruct (Rle_lt_dec (slip a) p) as [La|La], (Rle_lt_dec (slip b) q) as [Lb|Lb].
      - apply Rle_trans with ((p - slip a) * (q - slip b)); [nra|apply Rmult_le_compat; lra].
      - assert (0 <= x * y) by (now apply Rmult_le_pos). nra.
      - assert (0 <= x * y) by (now apply Rmult_le_pos). nra.
      - assert (0 <= x * y) by (now apply Rmult_le_pos). nra. }
    apply Rle_trans with (2 := R). apply (Rmult_le_compat_r (1 - U)) in T; [|lra].
    replace (exactly a * exactly b * ((1 - U) * (qa * qb))) with (p * q * (1 - U)) by (unfold p, q; ring).
    assert (0 <= slip a * exactly b) by (now apply Rmult_le_pos).
    assert (0 <= slip b * exactly a) by (now apply Rmult_le_pos). nra.
Qed.

(** If the exact value of an expression is at least UP times what is needed, and TINY more, the computed one is at
    least what is needed. *)
Theorem covered (e : expr) (x need : R) :
  fair e -> computed e x -> INR (operations e) <= 4000 -> slip e <= TINY / 2 -> 0 <= need ->
  need * UP + TINY <= exactly e -> need <= x.
Proof.
  intros F H N S P L. assert (B := radius_low e x F H). destruct (bernoulli (operations e)) as [Q Q1].
  pose proof (pos_INR (operations e)) as O. pose proof U_pos. destruct U_small as [E Us].
  assert (T : 0 < TINY) by apply bpow_gt_0.
  assert (Q2 : 1 - 4000 * U <= (1 - U) ^ operations e) by nra. set (q := (1 - U) ^ operations e) in *.
  assert (U4 : 1 / 2 <= 1 - 4000 * U) by nra.
  assert (need * UP * q + TINY * q <= exactly e * q).
  { rewrite <- Rmult_plus_distr_r. apply Rmult_le_compat_r; lra. }
  assert (need <= need * UP * q).
  { assert (1 <= UP * q); [|nra]. replace UP with (1 + 8192 * U) by lra.
    apply Rle_trans with ((1 + 8192 * U) * (1 - 4000 * U)); [nra|]. apply Rmult_le_compat_l; lra. }
  assert (TINY / 2 <= TINY * q) by (unfold Rdiv; apply Rmult_le_compat_l; lra).
  lra.
Qed.

(** * gamma *)

(** What gamma computes, from a whole number k and q, is at least the real number gamma k q, if x = k q is below
    1/4. Its test of that is as good as the exact one. For: core/balls.py gamma. *)
Theorem gamma_computed (k q x y z t g : R) :
  1 <= k -> U <= q ->
  rounds (k * q) x -> x < 1 / 4 -> rounds (2 * x) y -> rounds (1 + y) z -> rounds (x * z) t -> rounds (t * UP) g ->
  k * q <= 1 / 4 /\ gamma k q <= g.
Proof.
  intros Pk Pq Hx Small Hy Hz Ht Hg. pose proof U_pos as Up. destruct U_small as [E Us].
  assert (K : U <= k * q) by nra.
  assert (Nu : 4 * NORMAL <= U).
  { replace 4 with (bpow radix2 2) by reflexivity. unfold NORMAL, U. rewrite <- bpow_plus. now apply bpow_le. }
  assert (N0 : 0 < NORMAL) by apply bpow_gt_0.
  assert (F14 : number binary64 (1 / 4)).
  { replace (1 / 4) with (bpow radix2 (-2)) by (simpl; lra). now apply generic_format_FLT_bpow. }
  assert (B : k * q <= 1 / 4).
  { apply Rnot_lt_le. intros L. apply (Rlt_not_le _ _ Small). apply (rounds_ge (1 / 4) (k * q)); trivial. lra. }
  split; [exact B|]. unfold gamma. set (w := k * q) in *.
  assert (X := normal_low w x ltac:(lra) Hx). assert (Xp : 2 * NORMAL <= x) by nra.
  assert (Y := normal_low (2 * x) y ltac:(lra) Hy).
  assert (Yp : 0 <= y) by (apply rounds_nonneg with (2 * x); [lra|exact Hy]).
  assert (Z := normal_low (1 + y) z ltac:(lra) Hz).
  assert (Zp : 1 <= z).
  { apply (rounds_ge 1 (1 + y)); [apply solid_1|lra|exact Hz]. }
  assert (T := normal_low (x * z) t ltac:(nra) Ht).
  assert (Tp : NORMAL <= t).
  { apply (rounds_ge NORMAL (x * z)); [now apply generic_format_FLT_bpow|nra|exact Ht]. }
  assert (Uu : 1 <= UP <= 2) by lra.
  assert (G := normal_low (t * UP) g ltac:(nra) Hg).
  assert (Z1 : (1 + 2 * w) * (1 - U) ^ 3 <= z).
  { apply Rle_trans with (2 := Z). apply Rle_trans with ((1 + 2 * w * (1 - U) * (1 - U)) * (1 - U)).
    - replace ((1 + 2 * w * (1 - U) * (1 - U)) * (1 - U)) with (1 - U + 2 * w * (1 - U) ^ 3) by ring.
      assert ((1 - U) ^ 3 <= (1 - U) * 1); [|lra].
      change ((1 - U) ^ 3) with ((1 - U) * (1 - U) ^ 2). apply Rmult_le_compat_l; [lra|]. apply (bernoulli 2).
    - apply Rmult_le_compat_r; [lra|]. assert (2 * w * (1 - U) * (1 - U) <= 2 * x * (1 - U)); [|lra].
      apply Rmult_le_compat_r; lra. }
  assert (T1 : w * (1 + 2 * w) * (1 - U) ^ 5 <= t).
  { apply Rle_trans with (2 := T). replace (w * (1 + 2 * w) * (1 - U) ^ 5) with
      (w * (1 - U) * ((1 + 2 * w) * (1 - U) ^ 3) * (1 - U)) by ring.
    apply Rmult_le_compat_r; [lra|]. assert (0 <= (1 - U) ^ 3) by (apply pow_le; lra).
    apply Rmult_le_compat; [apply Rmult_le_pos; lra|apply Rmult_le_pos; lra|exact X|exact Z1]. }
  apply Rle_trans with (2 := G).
  apply Rle_trans with (w * (1 + 2 * w) * (1 - U) ^ 5 * UP * (1 - U)).
  - destruct (bernoulli 6) as [Q _]. simpl INR in Q.
    replace (w * (1 + 2 * w) * (1 - U) ^ 5 * UP * (1 - U)) with (w * (1 + 2 * w) * ((1 - U) ^ 6 * UP)) by ring.
    assert (1 <= (1 - U) ^ 6 * UP).
    { apply Rle_trans with ((1 - 8 * U) * UP); [|apply Rmult_le_compat_r; lra].
      replace UP with (1 + 8192 * U) by lra.
      assert (U * U <= U * (1 / 1024)) by (apply Rmult_le_compat_l; lra). lra. }
    assert (0 <= w * (1 + 2 * w)) by (apply Rmult_le_pos; lra). nra.
  - apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat_r; [lra|exact T1].
Qed.

(** * The constants are numbers of float64 *)

Lemma number_bpow k : (-1074 <= k)%Z -> number binary64 (bpow radix2 k).
Proof. intros K. now apply generic_format_FLT_bpow. Qed.

Lemma number_whole n : (Z.abs n <= 2 ^ 53)%Z -> number binary64 (IZR n).
Proof.
  intros H. apply (solid_whole binary64). rewrite <- abs_IZR.
  change (bpow radix2 (prec binary64)) with (IZR (2 ^ 53)).
  now apply IZR_le.
Qed.

Lemma number_UP : number binary64 UP.
Proof.
  apply generic_format_FLT. exists (Float radix2 (2 ^ 40 + 1) (-40)); [|easy|easy].
  unfold UP, F2R. cbn [Fnum Fexp]. rewrite plus_IZR, Rmult_plus_distr_r.
  replace (IZR (2 ^ 40)) with (bpow radix2 40) by reflexivity. rewrite <- bpow_plus. simpl bpow at 2. ring.
Qed.

Lemma number_abs x : number binary64 x -> number binary64 (Rabs x).
Proof. apply generic_format_abs. Qed.

Lemma TINY_least : 64 * least <= TINY / 2.
Proof.
  unfold least, TINY. replace 64 with (bpow radix2 6) by (simpl; lra). rewrite <- bpow_plus.
  replace (bpow radix2 (-1000) / 2) with (bpow radix2 (-1000) * bpow radix2 (-1)) by (simpl; lra).
  rewrite <- bpow_plus. now apply bpow_le.
Qed.

Lemma TINY_pos : 0 < TINY.
Proof. apply bpow_gt_0. Qed.

Lemma NORMAL_pos : 0 < NORMAL.
Proof. apply bpow_gt_0. Qed.

Lemma NORMAL_eq : NORMAL = bpow radix2 (-1022).
Proof. reflexivity. Qed.

Lemma NORMAL_least : 64 * least <= NORMAL.
Proof.
  unfold least, NORMAL. replace 64 with (bpow radix2 6) by (simpl; lra). rewrite <- bpow_plus. now apply bpow_le.
Qed.

Lemma NORMAL_big : 1024 * least <= NORMAL.
Proof.
  unfold least, NORMAL. replace 1024 with (bpow radix2 10) by (simpl; lra). rewrite <- bpow_plus. now apply bpow_le.
Qed.

Lemma U_normal : NORMAL <= U.
Proof. now apply bpow_le. Qed.

Lemma U_numeric : U <= / 1000000000000000 /\ 1000 * least <= U.
Proof.
  assert (E : U = / 9007199254740992) by reflexivity. split; [rewrite E; apply Rinv_le_contravar; lra|].
  unfold least, U. apply Rle_trans with (bpow radix2 10 * bpow radix2 (-1074)).
  - apply Rmult_le_compat_r; [apply bpow_ge_0|simpl; lra].
  - rewrite <- bpow_plus. now apply bpow_le.
Qed.

Lemma U_eq : U = bpow radix2 (-53).
Proof. reflexivity. Qed.

Lemma least_cube : least <= U * U * U.
Proof. unfold least, U. rewrite <- !bpow_plus. now apply bpow_le. Qed.

Lemma number_U : number binary64 U.
Proof. now apply number_bpow. Qed.

Lemma number_TINY : number binary64 TINY.
Proof. now apply number_bpow. Qed.

Lemma number_NORMAL : number binary64 NORMAL.
Proof. now apply number_bpow. Qed.

Lemma number_1 : number binary64 1.
Proof. now apply (number_whole 1). Qed.

Lemma u_ro_U : u_ro radix2 53 = U.
Proof. unfold u_ro, U. change (/ 2) with (bpow radix2 (-1)). rewrite <- bpow_plus. reflexivity. Qed.

(** A sum of two numbers is m (1 + d), where m is what float64 computes and |d| <= U. *)
Lemma sum_rounded x y m : number binary64 x -> number binary64 y -> rounds (x + y) m ->
  Rabs (m - (x + y)) <= U * Rabs m.
Proof.
  intros Fx Fy [ties ->].
  destruct (@FLT_plus_error_N_round_ex radix2 (-1074) 53 eq_refl ties x y Fx Fy) as (d & D & Q).
  fold (nearest 53 (-1074) ties (x + y)) in Q. set (m := nearest 53 (-1074) ties (x + y)) in *. rewrite Q.
  rewrite u_ro_U in D. replace (m - m * (1 + d)) with (- (d * m)) by ring. rewrite Rabs_Ropp, Rabs_mult.
  apply Rmult_le_compat_r; [apply Rabs_pos|exact D].
Qed.

(** From here on, only what is known of these numbers matters, not how they are written. *)
Global Opaque U least NORMAL UP TINY.

(** What gamma computes is at most 1/2. *)
Lemma gamma_half (x y z t g : R) :
  0 <= x < 1 / 4 -> rounds (2 * x) y -> rounds (1 + y) z -> rounds (x * z) t -> rounds (t * UP) g ->
  0 <= g <= 1 / 2.
Proof.
  intros X Hy Hz Ht Hg. destruct U_small as [E Us]. pose proof U_pos.
  assert (F : forall m e, (Z.abs m < 2 ^ 53)%Z -> (-1074 <= e)%Z -> number binary64 (IZR m * bpow radix2 e)).
  { intros m e Hm He. apply generic_format_FLT. exists (Float radix2 m e); [reflexivity|exact Hm|exact He]. }
  assert (F1 : number binary64 (1 / 2)) by (replace (1 / 2) with (IZR 1 * bpow radix2 (-1)) by (simpl; lra);
    now apply F).
  assert (F2 : number binary64 (3 / 2)) by (replace (3 / 2) with (IZR 3 * bpow radix2 (-1)) by (simpl; lra);
    now apply F).
  assert (F3 : number binary64 (3 / 8)) by (replace (3 / 8) with (IZR 3 * bpow radix2 (-3)) by (simpl; lra);
    now apply F).
  assert (Y : 0 <= y <= 1 / 2).
  { split; [apply rounds_nonneg with (2 * x)|apply (rounds_le (1 / 2) (2 * x))]; trivial; lra. }
  assert (Z : 0 <= z <= 3 / 2).
  { split; [apply rounds_nonneg with (1 + y)|apply (rounds_le (3 / 2) (1 + y))]; trivial; lra. }
  assert (P : 0 <= x * z <= 3 / 8) by nra.
  assert (T : 0 <= t <= 3 / 8).
  { split; [apply rounds_nonneg with (x * z)|apply (rounds_le (3 / 8) (x * z))]; trivial; lra. }
  assert (Q : 0 <= t * UP <= 1 / 2) by nra.
  split; [apply rounds_nonneg with (t * UP)|apply (rounds_le (1 / 2) (t * UP))]; trivial; lra.
Qed.
