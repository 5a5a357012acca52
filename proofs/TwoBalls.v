(** Sums of products of which both factors are known only up to a ball: [dot_ball], and averages that are divided
    by the sum of their weights at the end, [average_ball]; in real numbers. For: core/balls.py dot;
    core/averages.py weighed_alike. The radii as computed are the subject of Averages.v. *)

From Coq Require Import Reals ZArith List Permutation Lra Lia.
From Flocq Require Import Core.
From Onelayer Require Import Arithmetic Rounding DotError Radius.
Import ListNotations.
Open Scope R_scope.

(** A product of x, in the ball (mx, rx), and y, in the ball (my, ry). *)
Record pair := Pair { px : R; mx : R; rx : R; py : R; my : R; ry : R }.

Definition inside (p : pair) : Prop := Rabs (px p - mx p) <= rx p /\ Rabs (py p - my p) <= ry p.

(** The product as the arithmetic sees it, with x multiplied by D; and as the checker does. *)
Definition scaled (D : R) (p : pair) : term := Prod (D * px p) (py p).
Definition middle (p : pair) : term := Prod (mx p) (my p).

(** What the product adds to R of the code. *)
Definition apart (p : pair) : R := Rabs (mx p) * ry p + rx p * (Rabs (my p) + ry p).

Lemma pair_sums (l : list pair) : (forall p, In p l -> inside p) ->
  Rabs (sum value (map (scaled 1) l) - sum value (map middle l)) <= sum apart l /\
  size (map (scaled 1) l) <= size (map middle l) + sum apart l.
Proof.
  unfold size. induction l as [|p l IH]; intros H; simpl; [rewrite Rminus_0_r, Rabs_R0; lra|].
  destruct IH as [I J]; [intros; apply H; now right|]. destruct (H p (or_introl eq_refl)) as [X Y].
  rewrite !Rmult_1_l in *. destruct p as [x m r y n q]. simpl in *.
  change (apart _) with (Rabs m * q + r * (Rabs n + q)).
  assert (D : Rabs (x * y - m * n) <= Rabs m * q + r * (Rabs n + q)).
  { replace (x * y - m * n) with (m * (y - n) + (x - m) * y) by ring.
    apply Rle_trans with (1 := Rabs_triang _ _). rewrite !Rabs_mult.
    assert (B : Rabs y <= Rabs n + q).
    { pose proof (Rabs_triang n (y - n)) as T. replace (n + (y - n)) with y in T by ring. lra. }
    pose proof (Rabs_pos (x - m)). pose proof (Rabs_pos y).
    apply Rplus_le_compat; [apply Rmult_le_compat_l; [apply Rabs_pos|exact Y]|apply Rmult_le_compat; lra]. }
  split.
  - set (a := sum value (map (scaled 1) l)) in *. set (c := sum value (map middle l)) in *.
    replace (x * y + a - (m * n + c)) with ((x * y - m * n) + (a - c)) by ring.
    pose proof (Rabs_triang (x * y - m * n) (a - c)). lra.
  - pose proof (Rabs_triang (m * n) (x * y - m * n)). replace (m * n + (x * y - m * n)) with (x * y) in * by ring.
    lra.
Qed.

Lemma apart_nonneg (l : list pair) : (forall p, In p l -> inside p) -> 0 <= sum apart l.
Proof.
  intros H. destruct (pair_sums l H) as [B _].
  pose proof (Rabs_pos (sum value (map (scaled 1) l) - sum value (map middle l))). lra.
Qed.

Lemma scaled_sums D l : 0 <= D ->
  sum value (map (scaled D) l) = D * sum value (map (scaled 1) l) /\
    size (map (scaled D) l) = D * size (map (scaled 1) l).
Proof.
  intros P. unfold size. induction l as [|p l IH]; simpl; [lra|]. destruct IH as [-> ->].
  rewrite Rmult_1_l, !Rabs_mult, (Rabs_pos_eq D P). split; ring.
Qed.

(** The largest sum of the sizes of two factors, and of their midpoints. *)
Definition within (reach : R) (p : pair) : Prop :=
  Rabs (px p) + Rabs (py p) <= reach /\ Rabs (mx p) + Rabs (my p) <= reach.

Lemma scaled_loss D reach l : 1 <= D -> (forall p, In p l -> within reach p) ->
  sum loss (map (scaled D) l) <= D * (INR (length l) * reach).
Proof.
  intros P. induction l as [|p l IH]; intros H; [simpl; lra|]. change (length (p :: l)) with (S (length l)).
  rewrite S_INR. specialize (IH ltac:(intros; apply H; now right)). destruct (H p (or_introl eq_refl)) as [W _].
  simpl. rewrite Rabs_mult, (Rabs_pos_eq D) by lra. pose proof (Rabs_pos (py p)).
  assert (D * (Rabs (px p) + Rabs (py p)) <= D * reach) by (apply Rmult_le_compat_l; lra).
  assert (1 * Rabs (py p) <= D * Rabs (py p)) by (apply Rmult_le_compat_r; lra). lra.
Qed.

Section Dot.
Variable A : arithmetic.

(** The radius that is needed: R + own S + model (S + R), and what is lost; S and R are [sizes] and [radii]. *)
Definition dot_radius (own model sizes radii reach : R) (k extra : nat) : R :=
  radii + own * sizes + model * (sizes + radii) + 3 * INR (k + 1 + extra) * (absolute A + least) * (2 + reach).

(** From a sum of products to a number near it. *)
Lemma dot_from (l : list pair) (s mid own model reach : R) (k extra : nat) :
  (forall p, In p l -> inside p) -> 0 <= model ->
  Rabs (s - sum value (map (scaled 1) l)) <=
    model * size (map (scaled 1) l) + 3 * INR (k + 1 + extra) * absolute A * (2 + reach) ->
  Rabs (mid - sum value (map middle l)) <=
    own * size (map middle l) + 3 * INR (k + 1 + extra) * least * (2 + reach) ->
  Rabs (s - mid) <= dot_radius own model (size (map middle l)) (sum apart l) reach k extra.
Proof.
  intros H Pm E1 E2. destruct (pair_sums l H) as [D1 D2]. unfold dot_radius.
  set (a := sum value (map (scaled 1) l)) in *. set (c := sum value (map middle l)) in *.
  assert (M : model * size (map (scaled 1) l) <= model * (size (map middle l) + sum apart l)).
  { now apply Rmult_le_compat_l. }
  assert (Q : Rabs (s - mid) <= Rabs (s - a) + Rabs (a - c) + Rabs (mid - c)).
  { replace (s - mid) with ((s - a) + (a - c) + (- (mid - c))) by ring.
    pose proof (Rabs_triang ((s - a) + (a - c)) (- (mid - c))). pose proof (Rabs_triang (s - a) (a - c)).
    rewrite Rabs_Ropp in *. lra. }
  lra.
Qed.

(** Averages. The weights e_j = D x_j are not yet divided by their sum D, which is at least 1 as the largest of
    them is exactly 1; the quotients x_j lie in the balls of the weights; the products are added in any order,
    and the sum is divided by D. With D = 1 and without the division this is a plain sum of products, [dot_ball]. *)
Lemma average_error (l : list pair) (D s0 s reach : R) (k : nat) :
  1 <= D -> 0 <= reach -> (forall p, In p l -> within reach p) -> (length l <= k)%nat ->
  dots A false (map (scaled D) l) s0 -> result A (s0 / D) s ->
  INR (k + 1) * relative A <= 1 / 4 ->
  Rabs (s - sum value (map (scaled 1) l)) <=
    gamma (INR (k + 1)) (relative A) * size (map (scaled 1) l) +
    4 / 3 * absolute A * (2 * INR k + 1 + INR k * reach).
Proof.
  intros PD Pr W Len H R Hx. destruct (dots_count A _ _ _ H) as (k' & m & E & K & M).
  assert (E' := any_order_error A _ _ _ _ E).
  destruct (scaled_sums D l ltac:(lra)) as [V S]. rewrite V, S in E'. assert (L := scaled_loss D reach l PD W).
  pose proof (absolute_nonneg A) as T. pose proof (flushed_absolute A) as T'. pose proof (relative_bounds A) as Vb.
  assert (Ln : (lives (map (scaled D) l) <= k)%nat).
  { apply Nat.le_trans with (1 := lives_length _). now rewrite map_length. }
  destruct (gamma_sound (k + 1) (relative A) ltac:(lra) Hx) as [[G1 G2] G3].
  assert (B0 := pow_mono A k' k' (le_n _)). assert (B1 := pow_mono A (1 + k') (k + 1) ltac:(lia)).
  set (sum1 := sum value (map (scaled 1) l)) in *. set (size1 := size (map (scaled 1) l)) in *.
  assert (S1 : 0 <= size1) by apply size_nonneg.
  set (g := (1 + relative A) ^ k') in *. change ((1 + relative A) ^ (1 + k')) with ((1 + relative A) * g) in B1.
  set (h := (1 + relative A) ^ (k + 1)) in *.
  set (Z := absolute A * (2 * INR k) + absolute A * (INR k * reach)).
  assert (PZ : 0 <= Z).
  { unfold Z. pose proof (pos_INR k). assert (0 <= INR k * reach) by (apply Rmult_le_pos; lra).
    assert (0 <= absolute A * (2 * INR k)) by (apply Rmult_le_pos; lra).
    assert (0 <= absolute A * (INR k * reach)) by (now apply Rmult_le_pos). lra. }
  assert (Lo : lost A m (map (scaled D) l) <= D * Z).
  { unfold lost, Z. assert (INR m <= 2 * INR k).
    { replace (2 * INR k) with (INR (2 * k)) by (rewrite mult_INR; reflexivity). apply le_INR. lia. }
    pose proof (pos_INR m). pose proof (pos_INR k).
    assert (absolute A * INR m <= D * (absolute A * (2 * INR k))).
    { apply Rle_trans with (1 * (absolute A * (2 * INR k))).
      - rewrite Rmult_1_l. apply Rmult_le_compat_l; lra.
      - apply Rmult_le_compat_r; [apply Rmult_le_pos|]; lra. }
    assert (INR (length l) * reach <= INR k * reach) by (apply Rmult_le_compat_r; [lra|apply le_INR; lia]).
    assert (flushed A * sum loss (map (scaled D) l) <= absolute A * (D * (INR k * reach))).
    { apply Rmult_le_compat; [lra|apply loss_nonneg|lra|]. apply Rle_trans with (1 := L).
      apply Rmult_le_compat_l; lra. }
    lra. }
  assert (Q : Rabs (s0 / D - sum1) <= (g - 1) * size1 + g * Z).
  { replace (s0 / D - sum1) with ((s0 - D * sum1) * / D) by (field; lra). rewrite Rabs_mult.
    rewrite (Rabs_pos_eq (/ D)) by (left; apply Rinv_0_lt_compat; lra).
    apply Rmult_le_reg_r with D; [lra|]. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
    apply Rle_trans with (1 := E'). assert (g * lost A m (map (scaled D) l) <= g * (D * Z)).
    { apply Rmult_le_compat_l; [lra|exact Lo]. } lra. }
  assert (F := one_step A g size1 Z (absolute A) sum1 (s0 / D) s ltac:(lra) S1 PZ T (sum_abs value _) Q
    (result_error A _ _ R)).
  assert (((1 + relative A) * g - 1) * size1 <= gamma (INR (k + 1)) (relative A) * size1)
    by (apply Rmult_le_compat_r; lra).
  assert ((1 + relative A) * g * (Z + absolute A) <= 4 / 3 * (Z + absolute A)) by (apply Rmult_le_compat_r; lra).
  unfold Z in *. lra.
Qed.

Lemma dot_error (l : list pair) (s reach : R) (k : nat) :
  0 <= reach -> (forall p, In p l -> within reach p) -> (length l <= k)%nat ->
  dots A false (map (scaled 1) l) s -> INR k * relative A <= 1 / 4 ->
  Rabs (s - sum value (map (scaled 1) l)) <=
    gamma (INR k) (relative A) * size (map (scaled 1) l) +
    4 / 3 * absolute A * (2 * INR k + 1 + INR k * reach).
Proof.
  intros Pr W Len H Hx. pose proof (absolute_nonneg A) as T. pose proof (flushed_absolute A) as T'.
  assert (Ln : (lives (map (scaled 1) l) <= k)%nat).
  { apply Nat.le_trans with (1 := lives_length _). now rewrite map_length. }
  assert (E := linear_error A false (map (scaled 1) l) s k H ltac:(simpl; lia) Hx). apply Rle_trans with (1 := E).
  apply Rplus_le_compat_l.
  unfold lost. rewrite mult_INR. change (INR 2) with 2. assert (L := scaled_loss 1 reach l ltac:(lra) W).
  assert (INR (length l) * reach <= INR k * reach) by (apply Rmult_le_compat_r; [lra|apply le_INR; lia]).
  assert (INR (lives (map (scaled 1) l)) <= INR k) by (now apply le_INR).
  assert (flushed A * sum loss (map (scaled 1) l) <= absolute A * (INR k * reach)).
  { apply Rmult_le_compat; [lra|apply loss_nonneg|lra|lra]. }
  assert (absolute A * (2 * INR (lives (map (scaled 1) l))) <= absolute A * (2 * INR k))
    by (apply Rmult_le_compat_l; lra).
  lra.
Qed.

(** A value that an average may have: weights are divided first, or their products' sum is at the end. *)
Definition averages (l : list pair) (s : R) : Prop :=
  dots A false (map (scaled 1) l) s \/
  exists D s0, 1 <= D /\ dots A false (map (scaled D) l) s0 /\ result A (s0 / D) s.

Lemma gamma_mono (k1 k2 : nat) (q : R) : 0 <= q -> (k1 <= k2)%nat -> gamma (INR k1) q <= gamma (INR k2) q.
Proof.
  intros Q K. apply le_INR in K. pose proof (pos_INR k1). unfold gamma.
  assert (0 <= INR k1 * q <= INR k2 * q) by (split; [apply Rmult_le_pos|apply Rmult_le_compat_r]; lra).
  apply Rmult_le_compat; lra.
Qed.

Lemma lost_room (k extra : nat) (reach : R) : 0 <= reach ->
  4 / 3 * (2 * INR k + 1 + INR k * reach) <= 3 * INR (k + 1 + extra) * (2 + reach) /\
  4 / 3 * (2 * INR k * (1 + reach) + 1) <= 3 * INR (k + 1 + extra) * (2 + reach).
Proof.
  intros P. rewrite !plus_INR. change (INR 1) with 1. pose proof (pos_INR k). pose proof (pos_INR extra).
  assert (0 <= INR k * reach) by (apply Rmult_le_pos; lra).
  assert (0 <= INR extra * reach) by (apply Rmult_le_pos; lra).
  split; lra.
Qed.

Lemma averages_error (l : list pair) (s model reach : R) (k extra : nat) :
  0 <= reach -> (forall p, In p l -> within reach p) -> (length l <= k)%nat ->
  INR (k + 2 + extra) * relative A <= 1 / 4 -> gamma (INR (k + 2 + extra)) (relative A) <= model -> averages l s ->
  Rabs (s - sum value (map (scaled 1) l)) <=
    model * size (map (scaled 1) l) + 3 * INR (k + 1 + extra) * absolute A * (2 + reach).
Proof.
  intros Pr W Len Hx Hm H. pose proof (relative_bounds A) as V. pose proof (absolute_nonneg A) as T.
  destruct (lost_room k extra reach Pr) as [L _]. apply (Rmult_le_compat_l (absolute A)) in L; [|exact T].
  assert (Small : forall j, (j <= k + 2 + extra)%nat -> INR j * relative A <= 1 / 4).
  { intros j J. apply le_INR in J. apply Rle_trans with (2 := Hx). apply Rmult_le_compat_r; lra. }
  assert (S0 := size_nonneg (map (scaled 1) l)).
  destruct H as [H|(D & s0 & PD & H & R)].
  - assert (E := dot_error l s reach k Pr W Len H (Small k ltac:(lia))).
    assert (G := gamma_mono k (k + 2 + extra) (relative A) ltac:(lra) ltac:(lia)).
    assert (gamma (INR k) (relative A) * size (map (scaled 1) l) <= model * size (map (scaled 1) l)) by
      (apply Rmult_le_compat_r; lra). lra.
  - assert (E := average_error l D s0 s reach k PD Pr W Len H R (Small (k + 1)%nat ltac:(lia))).
    assert (G := gamma_mono (k + 1) (k + 2 + extra) (relative A) ltac:(lra) ltac:(lia)).
    assert (gamma (INR (k + 1)) (relative A) * size (map (scaled 1) l) <= model * size (map (scaled 1) l)) by
      (apply Rmult_le_compat_r; lra). lra.
Qed.

(** Sums of products of two balls, and averages, as a ball. For: core/balls.py dot. *)
Theorem dot_ball (l : list pair) (s mid own model reach : R) (k extra : nat) :
  (forall p, In p l -> inside p) -> (forall p, In p l -> within reach p) -> 0 <= reach -> (length l <= k)%nat ->
  INR (k + 2 + extra) * relative A <= 1 / 4 -> gamma (INR (k + 2 + extra)) (relative A) <= model ->
  INR (k + 2) * U <= 1 / 4 -> gamma (INR (k + 2)) U <= own ->
  averages l s -> dots checker false (map middle l) mid ->
  Rabs (s - mid) <= dot_radius own model (size (map middle l)) (sum apart l) reach k extra.
Proof.
  intros Hi W Pr Len Hx Hm Hu Ho H Hmid. pose proof (relative_bounds A) as V. pose proof U_pos as Up.
  pose proof least_pos as Lp.
  apply dot_from; [exact Hi| |now apply averages_error|].
  - apply Rle_trans with (2 := Hm). apply gamma_nonneg; [apply pos_INR|lra].
  - assert (Ln : (lives (map middle l) <= k)%nat).
    { apply Nat.le_trans with (1 := lives_length _). now rewrite map_length. }
    assert (K : INR k * U <= 1 / 4).
    { apply Rle_trans with (2 := Hu). apply Rmult_le_compat_r; [lra|]. apply le_INR. lia. }
    assert (E := linear_error checker false (map middle l) mid k Hmid ltac:(simpl; lia) K).
    change (relative checker) with U in E. assert (G := gamma_mono k (k + 2) U ltac:(lra) ltac:(lia)).
    assert (S0 := size_nonneg (map middle l)).
    assert (gamma (INR k) U * size (map middle l) <= own * size (map middle l)) by (apply Rmult_le_compat_r; lra).
    assert (Lo : lost checker (2 * lives (map middle l)) (map middle l) <= least * (2 * INR k)).
    { unfold lost. change (absolute checker) with least. change (flushed checker) with 0. rewrite mult_INR.
      change (INR 2) with 2. rewrite Rmult_0_l, Rplus_0_r. apply le_INR in Ln. apply Rmult_le_compat_l; lra. }
    destruct (lost_room k extra reach Pr) as [L _]. apply (Rmult_le_compat_l least) in L; [|lra].
    pose proof (pos_INR k). assert (0 <= least * (INR k * reach)) by (repeat apply Rmult_le_pos; lra).
    lra.
Qed.

(** The same where all weights lie in one ball (c, _): the midpoint is c times the sum of the other midpoints. For:
    core/averages.py weighed_alike. *)
Theorem alike_ball (l : list pair) (s mid total c own model reach : R) (k extra : nat) :
  (forall p, In p l -> inside p) -> (forall p, In p l -> within reach p) -> 0 <= reach -> (length l <= k)%nat ->
  (forall p, In p l -> mx p = c) -> Rabs c <= reach ->
  INR (k + 2 + extra) * relative A <= 1 / 4 -> gamma (INR (k + 2 + extra)) (relative A) <= model ->
  INR (k + 2) * U <= 1 / 4 -> gamma (INR (k + 2)) U <= own ->
  averages l s -> dots checker false (map (fun p => Bias (my p)) l) total -> rounds (c * total) mid ->
  Rabs (s - mid) <= dot_radius own model (size (map middle l)) (sum apart l) reach k extra.
Proof.
  intros Hi W Pr Len Hc Pc Hx Hm Hu Ho H Ht Hmid. pose proof (relative_bounds A) as V. pose proof U_pos as Up.
  pose proof least_pos as Lp.
  apply dot_from; [exact Hi| |now apply averages_error|].
  - apply Rle_trans with (2 := Hm). apply gamma_nonneg; [apply pos_INR|lra].
  - set (b := map (fun p => Bias (my p)) l) in *.
    assert (Eq : sum value (map middle l) = c * sum value b /\ size (map middle l) = Rabs c * size b).
    { unfold b, size. clear - Hc. induction l as [|p l IH]; simpl; [lra|].
      destruct IH as [-> ->]; [intros; apply Hc; now right|]. rewrite (Hc p (or_introl eq_refl)), Rabs_mult. lra. }
    destruct Eq as [-> Es]. rewrite Es.
    destruct (dots_count checker _ _ _ Ht) as (k' & m & E & K & M).
    assert (E' := any_order_error checker _ _ _ _ E).
    assert (Ln : (lives b <= k)%nat).
    { apply Nat.le_trans with (1 := lives_length _). unfold b. now rewrite map_length. }
    assert (B0 := pow_mono checker k' k' (le_n _)). assert (B1 := pow_mono checker (1 + k') (k + 1) ltac:(lia)).
    assert (K1 : INR (k + 1) * U <= 1 / 4).
    { apply Rle_trans with (2 := Hu). apply Rmult_le_compat_r; [lra|]. apply le_INR. lia. }
    destruct (gamma_sound (k + 1) U ltac:(lra) K1) as [[G1 G2] G3].
    assert (G := gamma_mono (k + 1) (k + 2) U ltac:(lra) ltac:(lia)).
    change (relative checker) with U in *. set (g := (1 + U) ^ k') in *.
    change ((1 + U) ^ (1 + k')) with ((1 + U) * g) in B1. set (h := (1 + U) ^ (k + 1)) in *.
    assert (Lo : lost checker m b <= least * (2 * INR k)).
    { unfold lost. change (absolute checker) with least. change (flushed checker) with 0.
      rewrite Rmult_0_l, Rplus_0_r. apply Rmult_le_compat_l; [lra|].
      replace (2 * INR k) with (INR (2 * k)) by (rewrite mult_INR; reflexivity). apply le_INR. lia. }
    pose proof (Rabs_pos c) as C0. assert (S0 := size_nonneg b). assert (P0 := sum_abs value b).
    fold (size b) in P0.
    assert (Q : Rabs (c * total - c * sum value b) <=
      (g - 1) * (Rabs c * size b) + g * (Rabs c * (least * (2 * INR k)))).
    { replace (c * total - c * sum value b) with (c * (total - sum value b)) by ring. rewrite Rabs_mult.
      apply Rle_trans with (Rabs c * ((g - 1) * size b + g * (least * (2 * INR k)))); [|right; ring].
      apply Rmult_le_compat_l; [exact C0|]. apply Rle_trans with (1 := E'). apply Rplus_le_compat_l.
      apply Rmult_le_compat_l; lra. }
    pose proof (pos_INR k) as Pk. assert (Z0 : 0 <= least * (2 * INR k)) by (apply Rmult_le_pos; lra).
    assert (F := one_step checker g (Rabs c * size b) (Rabs c * (least * (2 * INR k))) least (c * sum value b)
      (c * total)
      mid ltac:(lra) ltac:(now apply Rmult_le_pos) ltac:(now apply Rmult_le_pos) ltac:(lra)
      ltac:(rewrite Rabs_mult; now apply Rmult_le_compat_l) Q (result_error checker _ _ (rounds_once_of _ _ Hmid))).
    change (relative checker) with U in F.
    assert (((1 + U) * g - 1) * (Rabs c * size b) <= own * (Rabs c * size b)).
    { apply Rmult_le_compat_r; [now apply Rmult_le_pos|lra]. }
    assert ((1 + U) * g * (Rabs c * (least * (2 * INR k)) + least) <=
      4 / 3 * (Rabs c * (least * (2 * INR k)) + least)).
    { apply Rmult_le_compat_r; [|lra]. assert (0 <= Rabs c * (least * (2 * INR k))) by (now apply Rmult_le_pos).
      lra. }
    assert (Rabs c * (least * (2 * INR k)) <= reach * (least * (2 * INR k))) by (now apply Rmult_le_compat_r).
    destruct (lost_room k extra reach Pr) as [_ L]. apply (Rmult_le_compat_l least) in L; [|lra].
    lra.
Qed.

(** Where every product has a factor that is exactly zero, the sum is exactly zero. For: core/balls.py dot, where
    the radius is set to 0. *)
Theorem dot_zero (l : list pair) (s mid : R) :
  (forall p, In p l -> inside p) -> (forall p, In p l -> (mx p = 0 /\ rx p = 0) \/ (my p = 0 /\ ry p = 0)) ->
  averages l s -> dots checker false (map middle l) mid -> s = 0 /\ mid = 0.
Proof.
  intros Hi Z H Hm.
  assert (D : forall D t, In t (map (scaled D) l) -> dead t).
  { intros D t I. apply in_map_iff in I. destruct I as (p & <- & I). destruct (Hi p I) as [X Y]. simpl.
    destruct (Z p I) as [[E1 E2]|[E1 E2]].
    - left. rewrite E1, E2, Rminus_0_r in X. pose proof (Rabs_pos (px p)).
      rewrite (Rabs_eq_R0 (px p)) by lra. ring.
    - right. rewrite E1, E2, Rminus_0_r in Y. pose proof (Rabs_pos (py p)). apply Rabs_eq_R0. lra. }
  assert (Dm : forall t, In t (map middle l) -> dead t).
  { intros t I. apply in_map_iff in I. destruct I as (p & <- & I). simpl.
    destruct (Z p I) as [[E _]|[E _]]; tauto. }
  split; [|now apply (dots_none checker false (map middle l)); [|apply lives_dead]].
  destruct H as [H|(q & s0 & P & H & R)].
  - apply (dots_none A false _ _ H). apply lives_dead. apply D.
  - rewrite (dots_none A false _ _ H) in R by (apply lives_dead; apply D).
    replace (0 / q) with 0 in R by (field; lra). apply (result_exact A); [apply in_format_0|now left|exact R].
Qed.

End Dot.
