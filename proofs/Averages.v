(** The balls that core/balls.py dot and core/averages.py weighed_alike return, with radii as float64 computes them,
    contain every value of the arithmetic: [dot_encloses], [weighed_alike_encloses]. *)

From Coq Require Import Reals ZArith List Permutation Lra Lia.
From Flocq Require Import Core.
From Onelayer Require Import Arithmetic Rounding DotError Radius Enclosures TwoBalls.
Import ListNotations.
Open Scope R_scope.

(** What dot and weighed_alike add for underflow and flushing: 4 (k + 1 + extra) (tiny + NORMAL) (2 + reach) +
    TINY. *)
Definition lost_expr (j : nat) (normal reach : R) : expr :=
  Plus (Times (Times (Known (4 * INR j)) (Known normal)) (Plus (Known 2) (Known reach))) (Known TINY).

(** It leaves room for what is lost in computing the radius itself. *)
Lemma lost_computed (t normal reach c : R) (j : nat) :
  0 <= t -> 0 <= reach -> (1 <= j)%nat -> number binary64 (4 * INR j) -> number binary64 reach ->
  rounds (t + NORMAL) normal -> computed (lost_expr j normal reach) c ->
  number binary64 c /\ 0 <= c /\ 27 / 8 * INR j * (t + least) * (2 + reach) + 100 * INR j * least * (2 + reach) <=
    c * (3 / 4 + 1 / 8).
Proof.
  intros T Pr J Fj Fr Hn Hc. pose proof U_pos as Up. destruct U_small as [E Us]. pose proof NORMAL_pos as Np.
  pose proof least_pos as Lp. pose proof NORMAL_big as N64. pose proof TINY_pos as Tp. pose proof TINY_least as T64.
  apply le_INR in J. change (INR 1) with 1 in J.
  assert (N := normal_low (t + NORMAL) normal ltac:(lra) Hn). assert (Fn := rounds_number _ _ Hn).
  assert (Pn : 0 <= normal) by (apply rounds_nonneg with (t + NORMAL); [lra|exact Hn]).
  assert (F : fair (lost_expr j normal reach)).
  { simpl. repeat split; try lra; auto using number_TINY. now apply (number_whole 2). }
  destruct (computed_fair _ _ F Hc) as [Fc Pc]. split; [exact Fc|]. split; [exact Pc|].
  assert (L := radius_low _ _ F Hc). change (operations (lost_expr j normal reach)) with 4%nat in L.
  change (exactly (lost_expr j normal reach)) with (4 * INR j * normal * (2 + reach) + TINY) in L.
  assert (SL : slip (lost_expr j normal reach) <= least + least * (2 + reach)) by (simpl; lra).
  assert (Q := bernoulli 4). change (INR 4) with (1 + 1 + 1 + 1) in Q. set (q := (1 - U) ^ 4) in *.
  set (B := INR j * (2 + reach)).
  assert (PB : 2 + reach <= B) by (unfold B; rewrite <- (Rmult_1_l (2 + reach)) at 1; apply Rmult_le_compat_r; lra).
  assert (Nq : (t + NORMAL) * (127 / 128) <= normal * q).
  { apply Rle_trans with ((t + NORMAL) * (1 - U) * q); [|apply Rmult_le_compat_r; lra]. rewrite Rmult_assoc.
    apply Rmult_le_compat_l; [lra|]. destruct (product_bounds (255 / 256) (511 / 512) 1 1 (1 - U) q); lra. }
  assert (M : 4 * B * ((t + NORMAL) * (127 / 128)) <= 4 * INR j * normal * (2 + reach) * q).
  { replace (4 * INR j * normal * (2 + reach) * q) with (4 * B * (normal * q)) by (unfold B; ring).
    apply Rmult_le_compat_l; lra. }
  assert (TQ : 0 <= TINY * q) by (apply Rmult_le_pos; lra).
  assert (LB : least * (2 + reach) <= least * B) by (apply Rmult_le_compat_l; lra).
  assert (L2 : least * 2 <= least * B) by (apply Rmult_le_compat_l; lra).
  assert (NB : 1024 * least * B <= NORMAL * B) by (apply Rmult_le_compat_r; lra).
  assert (TB : 0 <= t * B) by (apply Rmult_le_pos; lra).
  replace (27 / 8 * INR j * (t + least) * (2 + reach)) with (27 / 8 * (t + least) * B) by (unfold B; ring).
  replace (100 * INR j * least * (2 + reach)) with (100 * least * B) by (unfold B; ring).
  lra.
Qed.

(** The same for what the computed number [reach] stands for, which may have been rounded down. *)
Lemma lost_covers (t normal far reach c : R) (j : nat) :
  0 <= t -> 0 <= far <= reach * (9 / 8) -> (1 <= j)%nat -> number binary64 (4 * INR j) -> number binary64 reach ->
  rounds (t + NORMAL) normal -> computed (lost_expr j normal reach) c ->
  number binary64 c /\ 0 <= c /\
  3 * INR j * (t + least) * (2 + far) + 88 * INR j * least * (2 + far) <= c * (3 / 4 + 1 / 8).
Proof.
  intros T F J Fj Fr Hn Hc. pose proof least_pos as Lp.
  destruct (lost_computed t normal reach c j T ltac:(lra) J Fj Fr Hn Hc) as (Fc & Pc & L).
  split; [exact Fc|]. split; [exact Pc|]. apply Rle_trans with (2 := L). pose proof (pos_INR j) as Pj.
  assert (A : INR j * (2 + far) <= INR j * (2 + reach) * (9 / 8)).
  { rewrite Rmult_assoc. apply Rmult_le_compat_l; lra. }
  assert (0 <= INR j * (2 + far)) by (apply Rmult_le_pos; lra).
  assert (B : (t + least) * (INR j * (2 + far)) <= (t + least) * (INR j * (2 + reach) * (9 / 8))).
  { apply Rmult_le_compat_l; lra. }
  assert (C : least * (INR j * (2 + far)) <= least * (INR j * (2 + reach) * (9 / 8))) by (apply Rmult_le_compat_l;
    lra).
  assert (0 <= least * (INR j * (2 + far))) by (apply Rmult_le_pos; lra). lra.
Qed.

(** A computed sum of terms that are not negative is not far above the exact one either. *)
Lemma positive_high (powers : bool) (l : list term) (s : R) (k : nat) :
  dots checker powers l s -> (forall t, In t l -> positive t) -> (length l <= k)%nat -> INR k * U <= 1 / 4 ->
  s <= sum value l + gamma (INR k) U * sum value l + 3 * INR k * least.
Proof.
  intros H Pos Len K. pose proof least_pos as Lp. pose proof (lives_length l) as Lv.
  assert (E := linear_error checker powers l s k H ltac:(destruct powers; lia) K).
  change (relative checker) with U in E. rewrite (positive_size l Pos) in E.
  assert (L : lost checker (2 * lives l) l <= 2 * INR k * least).
  { unfold lost. change (absolute checker) with least. change (flushed checker) with 0. rewrite mult_INR.
    change (INR 2) with 2. assert (INR (lives l) <= INR k) by (apply le_INR; lia).
    rewrite Rmult_0_l, Rplus_0_r, (Rmult_comm least). apply Rmult_le_compat_r; lra. }
  pose proof (pos_INR k). assert (0 <= INR k * least) by (apply Rmult_le_pos; lra).
  pose proof (Rle_abs (s - sum value l)). lra.
Qed.

(** * dot *)

(** For each product the code computes c = a |my| + b ry and d = b (|my| + ry), where a and b are (own + model)
    inflate and (1 + model) inflate. *)
Record work := Work { of : pair; c : R; d : R }.

Definition worked (a b : R) (w : work) : Prop :=
  let p := of w in
  number binary64 (mx p) /\ number binary64 (rx p) /\ number binary64 (my p) /\ number binary64 (ry p) /\
  computed (Plus (Times (Known a) (Known (Rabs (my p)))) (Times (Known b) (Known (ry p)))) (c w) /\
  exists y, rounds (Rabs (my p) + ry p) y /\ rounds (b * y) (d w).

Lemma worked_low a b w : number binary64 a -> number binary64 b -> 0 <= a -> 0 <= b -> inside (of w) ->
worked a b w ->
  0 <= c w /\ 0 <= d w /\ (a * Rabs (my (of w)) + b * ry (of w)) * (1 - U) ^ 3 - 2 * least <= c w /\
  b * (Rabs (my (of w)) + ry (of w)) * (1 - U) ^ 3 - least <= d w.
Proof.
  intros Fa Fb Pa Pb [_ Y] (Fmx & Frx & Fmy & Fry & Hc & y & Hy & Hd). set (p := of w) in *.
  pose proof (Rabs_pos (py p - my p)). pose proof (Rabs_pos (my p)) as Pm. pose proof U_pos.
  destruct U_small as [_ Us].
  assert (F : fair (Plus (Times (Known a) (Known (Rabs (my p)))) (Times (Known b) (Known (ry p))))).
  { simpl. repeat split; try lra; auto using number_abs. }
  assert (C := radius_low _ _ F Hc). simpl exactly in C. simpl slip in C. change (operations _) with 3%nat in C.
  destruct (computed_fair _ _ F Hc) as [_ Pc].
  assert (Y0 : 0 <= y) by (apply rounds_nonneg with (Rabs (my p) + ry p); [lra|exact Hy]).
  assert (Yl := sum_low _ _ y (number_abs _ Fmy) Fry ltac:(lra) Hy).
  assert (D0 : 0 <= b * y) by (now apply Rmult_le_pos). assert (Dl := product_low (b * y) (d w) D0 Hd).
  split; [exact Pc|]. split; [apply rounds_nonneg with (b * y); trivial|]. split; [lra|].
  apply Rle_trans with (2 := Dl). apply Rplus_le_compat_r.
  apply Rle_trans with (b * ((Rabs (my p) + ry p) * (1 - U)) * (1 - U)).
  - replace (b * ((Rabs (my p) + ry p) * (1 - U)) * (1 - U)) with
      (b * (Rabs (my p) + ry p) * ((1 - U) ^ 2 * 1)) by ring.
    apply Rmult_le_compat_l; [apply Rmult_le_pos; lra|]. replace ((1 - U) ^ 3) with ((1 - U) ^ 2 * (1 - U)) by ring.
    apply Rmult_le_compat_l; [apply pow_le; lra|lra].
  - apply Rmult_le_compat_r; [lra|]. now apply Rmult_le_compat_l.
Qed.

Definition first (w : work) : term := Prod (Rabs (mx (of w))) (c w).
Definition second (w : work) : term := Prod (rx (of w)) (d w).

(** What the two products of the code add up to, exactly. *)
Lemma works_low (a b reach : R) (l : list work) :
  number binary64 a -> number binary64 b -> 0 <= a -> 0 <= b ->
  (forall w, In w l -> inside (of w) /\ worked a b w /\ Rabs (mx (of w)) + rx (of w) <= reach) ->
  (a * size (map middle (map of l)) + b * sum apart (map of l)) * (1 - U) ^ 3 -
    2 * (INR (length l) * reach * least) <=
  sum value (map first l) + sum value (map second l).
Proof.
  intros Fa Fb Pa Pb H. unfold size. pose proof least_pos as Lp. induction l as [|w l IH]; [simpl; lra|].
  specialize (IH ltac:(intros; apply H; now right)). destruct (H w (or_introl eq_refl)) as (I & W & R).
  destruct (worked_low a b w Fa Fb Pa Pb I W) as (Pc & Pd & C & D).
  change (length (w :: l)) with (S (length l)). rewrite S_INR. destruct w as [p cw dw]. simpl in *.
  rewrite Rabs_mult. destruct I as [X Y]. pose proof (Rabs_pos (px p - mx p)). pose proof (Rabs_pos (mx p)) as Pm.
  change (apart p) with (Rabs (mx p) * ry p + rx p * (Rabs (my p) + ry p)).
  set (q := (1 - U) * ((1 - U) * ((1 - U) * 1))) in *.
  apply (Rmult_le_compat_l (Rabs (mx p))) in C; [|exact Pm]. apply (Rmult_le_compat_l (rx p)) in D; [|lra].
  assert (0 <= rx p) by lra.
  assert (2 * least * (Rabs (mx p) + rx p) <= 2 * least * reach) by (apply Rmult_le_compat_l; lra).
  assert (0 <= rx p * least) by (apply Rmult_le_pos; lra). lra.
Qed.

(** The ball that dot returns contains every value of the arithmetic, with [extra] for a division at the end;
    reach bounds the factors, and reachc is that as computed, perhaps rounded down. For:
    core/balls.py dot. *)
Theorem dot_encloses (A : arithmetic) (l : list work) (k extra : nat)
    (s mid own model reach reachc a0 a b0 b i0 i1 infl normal P1 P2 lostc t r : R) (p1 p2 : bool) :
  let pairs := map of l in
  (forall w, In w l -> inside (of w) /\ worked a b w /\ Rabs (mx (of w)) + rx (of w) <= reach) ->
  (forall p, In p pairs -> within reach p) -> 0 <= reach <= reachc * (9 / 8) -> (length l <= k)%nat ->
  INR (k + 2 + extra) * relative A <= 1 / 4 -> gamma (INR (k + 2 + extra)) (relative A) <= model ->
  INR (k + 2) * U <= 1 / 4 -> gamma (INR (k + 2)) U <= own ->
  averages A pairs s -> dots checker false (map middle pairs) mid ->
  number binary64 own -> number binary64 model -> number binary64 reachc ->
  number binary64 (4 * INR (k + 1 + extra)) ->
  4 * (INR k + 2) * U <= 1 / 2 -> rounds (1 + 4 * (INR k + 2) * U) i0 -> rounds (i0 * UP) i1 ->
  rounds (i1 * UP) infl ->
  rounds (own + model) a0 -> rounds (a0 * infl) a -> rounds (1 + model) b0 -> rounds (b0 * infl) b ->
  rounds (absolute A + NORMAL) normal -> computed (lost_expr (k + 1 + extra) normal reachc) lostc ->
  dots checker p1 (map first l) P1 -> dots checker p2 (map second l) P2 -> number binary64 P1 ->
  number binary64 P2 ->
  rounds (P2 + lostc) t -> rounds (P1 + t) r ->
  Rabs (s - mid) <= r.
Proof.
  intros pairs Hw Hr Pr Len Hx Hm Hu Ho Hs Hmid Fo Fm Fr Fj Hn H0 H1 H2 Ha0 Ha Hb0 Hb Hnorm Hl.
  intros HP1 HP2 FP1 FP2 Ht Hrr.
  assert (Hi : forall p, In p pairs -> inside p).
  { intros p I. apply in_map_iff in I. destruct I as (w & <- & I). now apply Hw. }
  apply Rle_trans with (1 := dot_ball A pairs s mid own model reach k extra Hi Hr (proj1 Pr)
    ltac:(unfold pairs; now rewrite map_length) Hx Hm Hu Ho Hs Hmid).
  unfold dot_radius. pose proof U_pos as Up. destruct U_small as [E Us]. pose proof least_pos as Lp.
  pose proof (relative_bounds A) as V. pose proof (absolute_nonneg A) as T. pose proof NORMAL_pos as Np.
  assert (Gu : U <= own).
  { apply Rle_trans with (2 := Ho). unfold gamma. assert (1 <= INR (k + 2)) by (apply (le_INR 1); lia).
    assert (1 * U <= INR (k + 2) * U) by (apply Rmult_le_compat_r; lra). nra. }
  assert (Gm : 0 <= model) by (apply Rle_trans with (2 := Hm); apply gamma_nonneg; [apply pos_INR|lra]).
  destruct (inflate_low k i0 i1 infl Hn H0 H1 H2) as (I1 & Fi & I2). destruct (I2 k ltac:(lia)) as [K1 I3].
  assert (NU : NORMAL <= U) by (apply U_normal).
  assert (A0 := normal_low (own + model) a0 ltac:(lra) Ha0). assert (Fa0 := rounds_number _ _ Ha0).
  assert (A0n : NORMAL <= a0) by (apply (rounds_ge NORMAL (own + model)); [apply number_NORMAL|lra|exact Ha0]).
  assert (Aa := normal_low (a0 * infl) a ltac:(nra) Ha). assert (Fa := rounds_number _ _ Ha).
  assert (B0 := normal_low (1 + model) b0 ltac:(pose proof U_normal; lra) Hb0).
  assert (Fb0 := rounds_number _ _ Hb0).
  assert (B0n : 1 <= b0) by (apply (rounds_ge 1 (1 + model)); [apply number_1|lra|exact Hb0]).
  assert (Ab := normal_low (b0 * infl) b ltac:(nra) Hb). assert (Fb := rounds_number _ _ Hb).
  assert (Pa : 0 <= a) by (apply rounds_nonneg with (a0 * infl); [nra|exact Ha]).
  assert (Pb : 0 <= b) by (apply rounds_nonneg with (b0 * infl); [nra|exact Hb]).
  assert (Wl := works_low a b reach l Fa Fb Pa Pb Hw). fold pairs in Wl.
  set (S := size (map middle pairs)) in *. set (R := sum apart pairs) in *.
  assert (S0 : 0 <= S) by apply size_nonneg. assert (R0 : 0 <= R) by (now apply apart_nonneg).
  assert (Pos1 : forall x, In x (map first l) -> positive x).
  { intros x I. apply in_map_iff in I. destruct I as (w & <- & I). destruct (Hw w I) as (J1 & J2 & _).
    destruct (worked_low a b w Fa Fb Pa Pb J1 J2) as (Pc & _). split; [apply Rabs_pos|exact Pc]. }
  assert (Pos2 : forall x, In x (map second l) -> positive x).
  { intros x I. apply in_map_iff in I. destruct I as (w & <- & I). destruct (Hw w I) as (J1 & J2 & _).
    destruct (worked_low a b w Fa Fb Pa Pb J1 J2) as (_ & Pd & _). destruct J1 as [X _].
    pose proof (Rabs_pos (px (of w) - mx (of w))). split; [simpl; lra|exact Pd]. }
  assert (L1 := positive_low p1 _ _ k HP1 Pos1 ltac:(now rewrite map_length) K1).
  assert (L2 := positive_low p2 _ _ k HP2 Pos2 ltac:(now rewrite map_length) K1).
  assert (Q1 := dots_nonneg _ _ _ HP1 Pos1). assert (Q2 := dots_nonneg _ _ _ HP2 Pos2).
  set (gk := gamma (INR k) U) in *. set (S1 := sum value (map first l)) in *.
  set (S2 := sum value (map second l)) in *.
  assert (J1 : (1 <= k + 1 + extra)%nat) by lia.
  destruct (lost_covers (absolute A) normal reach reachc lostc (k + 1 + extra) T Pr J1 Fj Fr Hnorm Hl)
    as (Fl & Pl & Ll).
  assert (T1 := sum_low P2 lostc t FP2 Fl ltac:(lra) Ht). assert (Ft := rounds_number _ _ Ht).
  assert (T0 : 0 <= t) by (apply rounds_nonneg with (P2 + lostc); [lra|exact Ht]).
  assert (R1 := sum_low P1 t r FP1 Ft ltac:(lra) Hrr).
  (* all together *)
  set (need := R + own * S + model * (S + R)).
  assert (Need : need = (own + model) * S + (1 + model) * R) by (unfold need; ring).
  assert (Pn : 0 <= need) by (rewrite Need; assert (0 <= (own + model) * S) by (apply Rmult_le_pos; lra);
    assert (0 <= (1 + model) * R) by (apply Rmult_le_pos; lra); lra).
  assert (Gk : 0 <= gk <= 1).
  { split; [apply gamma_nonneg; [apply pos_INR|lra]|]. apply Rnot_lt_le. intros Lt.
    assert ((1 - gk) * infl <= 0 * infl) by (apply Rmult_le_compat_r; lra).
    assert (0 < UP * (1 + 8000 * U)) by (apply Rmult_lt_0_compat; lra). lra. }
  set (q := (1 - U) ^ 2).
  assert (Qq : 1 - 2 * U <= q <= 1) by (assert (H3 := bernoulli 2); simpl INR in H3; unfold q; lra).
  assert (AB : need * infl * q <= a * S + b * R).
  { rewrite Need. assert ((own + model) * infl * q <= a).
    { apply Rle_trans with (2 := Aa).
      replace ((own + model) * infl * q) with ((own + model) * (1 - U) * infl * (1 - U)) by
        (unfold q; ring). apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat_r; lra. }
    assert ((1 + model) * infl * q <= b).
    { apply Rle_trans with (2 := Ab).
      replace ((1 + model) * infl * q) with ((1 + model) * (1 - U) * infl * (1 - U)) by
        (unfold q; ring). apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat_r; lra. }
    assert ((own + model) * infl * q * S <= a * S) by (apply Rmult_le_compat_r; lra).
    assert ((1 + model) * infl * q * R <= b * R) by (apply Rmult_le_compat_r; lra). lra. }
  set (c3 := (1 - U) ^ 3) in *. assert (Q3 : 1 - 3 * U <= c3 <= 1).
  { assert (H3 := bernoulli 3). simpl INR in H3. unfold c3. lra. }
  set (J := INR (length l) * reach * least) in *. assert (Jk : J <= INR k * reach * least).
  { unfold J. apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat_r; [lra|now apply le_INR]. }
  pose proof (pos_INR k) as Pk. pose proof (pos_INR (length l)) as Pl'.
  assert (J0 : 0 <= J) by (unfold J; repeat apply Rmult_le_pos; lra).
  assert (X1 : (a * S + b * R) * c3 * (1 - gk) - 2 * J <= (S1 + S2) * (1 - gk)).
  { apply (Rmult_le_compat_r (1 - gk)) in Wl; [|lra].
    assert (2 * J * (1 - gk) <= 2 * J * 1) by (apply Rmult_le_compat_l; lra). lra. }
  assert (X2 : need <= (a * S + b * R) * c3 * (1 - gk) * q).
  { apply Rle_trans with (need * infl * q * c3 * (1 - gk) * q).
    - replace (need * infl * q * c3 * (1 - gk) * q) with (need * ((1 - gk) * infl * (q * c3 * q))) by ring.
      rewrite <- (Rmult_1_r need) at 1. apply Rmult_le_compat_l; [exact Pn|].
      assert (C3 : 1 - 7 * U <= q * c3 * q).
      { apply Rle_trans with ((1 - 2 * U) * (1 - 3 * U) * (1 - 2 * U)).
        - assert (U * U <= U * (1 / 1024)) by (apply Rmult_le_compat_l; lra).
          assert (0 <= U * U) by (apply Rmult_le_pos; lra).
          assert (U * (U * U) <= U * (U * (1 / 1024))) by (apply Rmult_le_compat_l; lra). lra.
        - apply Rmult_le_compat; [apply Rmult_le_pos; lra|lra|apply Rmult_le_compat; lra|lra]. }
      apply Rle_trans with (UP * (1 + 8000 * U) * (1 - 7 * U)).
      + apply Rle_trans with (1 * (1 + 8000 * U) * (1 - 7 * U)).
        * assert (U * U <= U * (1 / 1024)) by (apply Rmult_le_compat_l; lra). lra.
        * apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat_r; lra.
      + apply Rmult_le_compat; [apply Rmult_le_pos; lra|lra|exact I3|exact C3].
    - apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat_r; [lra|exact AB]. }
  assert (R2 : (P1 + P2 + lostc) * q <= r).
  { apply Rle_trans with (2 := R1).
    replace ((P1 + P2 + lostc) * q) with ((P1 + (P2 + lostc)) * (1 - U) * (1 - U)) by
      (unfold q; ring). apply Rmult_le_compat_r; [lra|].
    assert (P1 * (1 - U) <= P1 * 1) by (apply Rmult_le_compat_l; lra). lra. }
  assert (X3 : (P1 + P2) * q + (2 * J + 6 * INR k * least) >= need).
  { assert (Y : (a * S + b * R) * c3 * (1 - gk) <= P1 + P2 + (2 * J + 6 * INR k * least)) by lra.
    apply (Rmult_le_compat_r q) in Y; [|lra].
    assert (0 <= INR k * least) by (apply Rmult_le_pos; lra).
    assert ((2 * J + 6 * INR k * least) * q <= (2 * J + 6 * INR k * least) * 1) by (apply Rmult_le_compat_l; lra).
    lra. }
  assert (X4 : lostc * (7 / 8) <= lostc * q) by (apply Rmult_le_compat_l; lra).
  assert (Jj : INR k <= INR (k + 1 + extra)) by (apply le_INR; lia). set (j := INR (k + 1 + extra)) in *.
  assert (J1' : INR k * least <= j * least) by (apply Rmult_le_compat_r; lra).
  assert (J2' : INR k * reach * least <= j * least * reach).
  { replace (INR k * reach * least) with (INR k * least * reach) by ring. apply Rmult_le_compat_r; lra. }
  assert (0 <= j * least * reach) by (repeat apply Rmult_le_pos; lra).
  assert (0 <= INR k * least) by (apply Rmult_le_pos; lra). lra.
Qed.

(** * weighed_alike *)

(** The radius of weighed_alike: (|c| ((own + model) S + (1 + model) R) + rx (1 + model) (S + R)) inflate + lost,
    with S and R the sums of |my| and ry. *)
Definition alike_expr (c rad om opm sizes radii infl lostc : R) : expr :=
  Plus (Times (Plus (Times (Known c) (Plus (Times (Known om) (Known sizes)) (Times (Known opm) (Known radii))))
                    (Times (Times (Known rad) (Known opm)) (Plus (Known sizes) (Known radii)))) (Known infl))
       (Known lostc).

(** The ball that weighed_alike returns contains every value of the arithmetic. For: core/averages.py
    weighed_alike. *)
Theorem weighed_alike_encloses (A : arithmetic) (l : list pair) (k extra : nat)
    (s mid total c rad own model reach reachc om opm i0 i1 infl normal Sh Rh lostc r : R) (p1 p2 : bool) :
  (forall p, In p l -> inside p) -> (forall p, In p l -> within reach p) -> 0 <= reach <= reachc * (9 / 8) ->
  (length l <= k)%nat ->
  (forall p, In p l -> mx p = c /\ rx p = rad /\ Rabs (my p) + ry p <= reach) -> Rabs c <= reach ->
  0 <= rad <= reach ->
  number binary64 c -> number binary64 rad ->
  INR (k + 2 + extra) * relative A <= 1 / 4 -> gamma (INR (k + 2 + extra)) (relative A) <= model <= 1 / 2 ->
  INR (k + 2) * U <= 1 / 4 -> gamma (INR (k + 2)) U <= own <= 1 / 2 ->
  averages A l s -> dots checker false (map (fun p => Bias (my p)) l) total -> rounds (c * total) mid ->
  number binary64 own -> number binary64 model -> number binary64 reachc ->
  number binary64 (4 * INR (k + 1 + extra)) ->
  4 * (INR k + 2) * U <= 1 / 2 -> rounds (1 + 4 * (INR k + 2) * U) i0 -> rounds (i0 * UP) i1 ->
  rounds (i1 * UP) infl ->
  rounds (own + model) om -> rounds (1 + model) opm ->
  rounds (absolute A + NORMAL) normal -> computed (lost_expr (k + 1 + extra) normal reachc) lostc ->
  dots checker p1 (map (fun p => Bias (Rabs (my p))) l) Sh -> dots checker p2 (map (fun p => Bias (ry p)) l) Rh ->
  number binary64 Sh -> number binary64 Rh -> computed (alike_expr (Rabs c) rad om opm Sh Rh infl lostc) r ->
  Rabs (s - mid) <= r.
Proof.
  intros Hi Hr Pr Len Hc Pc Prad Fc Frad Hx Hm Hu Ho Hs Ht Hmid Fo Fm Fr Fj Hn H0 H1 H2 Hom Hopm Hnorm Hl.
  intros HS HR FS FR Hrr.
  apply Rle_trans with (1 := alike_ball A l s mid total c own model reach k extra Hi Hr (proj1 Pr) Len
    (fun p I => proj1 (Hc p I))
    Pc Hx (proj1 Hm) Hu (proj1 Ho) Hs Ht Hmid).
  unfold dot_radius. pose proof U_pos as Up. destruct U_small as [E Us]. pose proof least_pos as Lp.
  pose proof (relative_bounds A) as V. pose proof (absolute_nonneg A) as T. pose proof NORMAL_pos as Np.
  assert (Gu : U <= own).
  { apply Rle_trans with (2 := proj1 Ho). unfold gamma. assert (1 <= INR (k + 2)) by (apply (le_INR 1); lia).
    assert (1 * U <= INR (k + 2) * U) by (apply Rmult_le_compat_r; lra). nra. }
  assert (Gm : 0 <= model) by (apply Rle_trans with (2 := proj1 Hm); apply gamma_nonneg; [apply pos_INR|lra]).
  destruct (inflate_low k i0 i1 infl Hn H0 H1 H2) as (I1 & Fi & I2). destruct (I2 k ltac:(lia)) as [K1 I3].
  pose proof U_normal as NU.
  assert (A0 := normal_low (own + model) om ltac:(lra) Hom). assert (Fom := rounds_number _ _ Hom).
  assert (B0 := normal_low (1 + model) opm ltac:(lra) Hopm). assert (Fopm := rounds_number _ _ Hopm).
  assert (Pom : 0 <= om) by (apply rounds_nonneg with (own + model); [lra|exact Hom]).
  assert (Popm : 0 <= opm) by (apply rounds_nonneg with (1 + model); [lra|exact Hopm]).
  assert (Uom : om <= 1) by (apply (rounds_le 1 (own + model)); [apply number_1|lra|exact Hom]).
  assert (Uopm : opm <= 2) by (apply (rounds_le 2 (1 + model)); [now apply (number_whole 2)|lra|exact Hopm]).
  set (bs := map (fun p => Bias (Rabs (my p))) l) in *. set (br := map (fun p => Bias (ry p)) l) in *.
  assert (PosS : forall x, In x bs -> positive x).
  { intros x I. apply in_map_iff in I. destruct I as (p & <- & _). apply Rabs_pos. }
  assert (PosR : forall x, In x br -> positive x).
  { intros x I. apply in_map_iff in I. destruct I as (p & <- & I). destruct (Hi p I) as [_ Y]. simpl.
    pose proof (Rabs_pos (py p - my p)). lra. }
  assert (LS := positive_low p1 bs Sh k HS PosS ltac:(unfold bs; now rewrite map_length) K1).
  assert (LR := positive_low p2 br Rh k HR PosR ltac:(unfold br; now rewrite map_length) K1).
  assert (PS := dots_nonneg _ _ _ HS PosS). assert (PR := dots_nonneg _ _ _ HR PosR).
  assert (Eq : size (map middle l) = Rabs c * sum value bs /\
               sum apart l = Rabs c * sum value br + rad * (sum value bs + sum value br)).
  { unfold bs, br, size. clear - Hc. induction l as [|p l IH]; simpl; [lra|].
    destruct IH as [-> ->]; [intros; apply Hc; now right|]. destruct (Hc p (or_introl eq_refl)) as (E1 & E2 & _).
    change (apart p) with (Rabs (mx p) * ry p + rx p * (Rabs (my p) + ry p)). rewrite E1, E2, Rabs_mult. lra. }
  destruct Eq as [-> ->]. pose proof (Rabs_pos c) as C0.
  assert (S0 : 0 <= sum value bs) by (rewrite <- (positive_size bs PosS); apply size_nonneg).
  assert (R0 : 0 <= sum value br) by (rewrite <- (positive_size br PosR); apply size_nonneg).
  set (S := sum value bs) in *. set (R := sum value br) in *.
  destruct (lost_covers (absolute A) normal reach reachc lostc (k + 1 + extra) T Pr ltac:(lia) Fj Fr Hnorm Hl)
    as (Fl & Pl & Ll).
  assert (F : fair (alike_expr (Rabs c) rad om opm Sh Rh infl lostc)).
  { simpl. repeat split; try lra; auto using number_abs. }
  assert (L := radius_low _ _ F Hrr). apply Rle_trans with (2 := L).
  change (operations (alike_expr (Rabs c) rad om opm Sh Rh infl lostc)) with 10%nat.
  change (exactly (alike_expr (Rabs c) rad om opm Sh Rh infl lostc)) with
    ((Rabs c * (om * Sh + opm * Rh) + rad * opm * (Sh + Rh)) * infl + lostc).
  assert (SRk : S + R <= INR k * reach).
  { apply Rle_trans with (INR (length l) * reach); [|apply Rmult_le_compat_r; [exact (proj1 Pr)|now apply le_INR]].
    unfold S, R, bs, br. clear - Hc. induction l as [|p l IH]; [simpl; lra|].
    change (length (p :: l)) with (S (length l)).
    rewrite S_INR. destruct (Hc p (or_introl eq_refl)) as (_ & _ & W). simpl.
    specialize (IH ltac:(intros; apply Hc; now right)). lra. }
  assert (HS2 := positive_high p1 bs Sh k HS PosS ltac:(unfold bs; now rewrite map_length) K1). fold S in HS2.
  assert (HR2 := positive_high p2 br Rh k HR PosR ltac:(unfold br; now rewrite map_length) K1). fold R in HR2.
  set (gk := gamma (INR k) U) in *. pose proof (pos_INR k) as Pk.
  assert (Gk : 0 <= gk <= 1).
  { split; [apply gamma_nonneg; lra|]. apply Rnot_lt_le. intros Lt.
    assert ((1 - gk) * infl <= 0 * infl) by (apply Rmult_le_compat_r; lra).
    assert (0 < UP * (1 + 8000 * U)) by (apply Rmult_lt_0_compat; lra). lra. }
  set (j := INR (k + 1 + extra)) in *.
  assert (Jj : INR k + 1 <= j).
  { unfold j. replace (INR k + 1) with (INR (k + 1)) by (rewrite plus_INR; reflexivity). apply le_INR. lia. }
  set (B := j * (2 + reach)) in *. assert (PB : 2 + reach <= B).
  { unfold B. rewrite <- (Rmult_1_l (2 + reach)) at 1. apply Rmult_le_compat_r; lra. }
  assert (KB : INR k * reach <= B /\ INR k <= B /\ INR k + 1 <= B).
  { unfold B. assert (0 <= j * reach) by (apply Rmult_le_pos; lra).
    assert (INR k * reach <= j * reach) by (apply Rmult_le_compat_r; lra). lra. }
  assert (SRh : Sh + Rh <= 2 * B + 6 * least * B).
  { assert (gk * S <= 1 * S) by (apply Rmult_le_compat_r; lra).
    assert (gk * R <= 1 * R) by (apply Rmult_le_compat_r; lra).
    assert (INR k * least <= B * least) by (apply Rmult_le_compat_r; lra). lra. }
  assert (L1 : least <= 1 / 8) by (pose proof NORMAL_least; lra).
  assert (LB : 0 <= least * B) by (apply Rmult_le_pos; lra).
  assert (SRl : least * (Sh + Rh) <= 3 * (least * B)).
  { apply Rle_trans with (least * (3 * B)); [|lra]. apply Rmult_le_compat_l; [lra|].
    assert (6 * least * B <= 1 * B) by (apply Rmult_le_compat_r; lra). lra. }
  assert (SL : slip (alike_expr (Rabs c) rad om opm Sh Rh infl lostc) <= 20 * (least * B)).
  { simpl. assert (least * Rabs c <= least * B) by (apply Rmult_le_compat_l; lra).
    assert (least * 2 <= least * B) by (apply Rmult_le_compat_l; lra).
    assert (X : 0 <= 2 * (least * Rabs c) + 2 * least + least * (Sh + Rh)).
    { assert (0 <= least * Rabs c) by (apply Rmult_le_pos; lra).
      assert (0 <= least * (Sh + Rh)) by (apply Rmult_le_pos; lra).
      lra. }
    assert ((2 * (least * Rabs c) + 2 * least + least * (Sh + Rh)) * infl <=
            (2 * (least * Rabs c) + 2 * least + least * (Sh + Rh)) * 2) by (apply Rmult_le_compat_l; lra).
    lra. }
  assert (Q := bernoulli 10). change (INR 10) with (1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1) in Q.
  set (q := (1 - U) ^ 10) in *.
  set (need := Rabs c * R + rad * (S + R) + own * (Rabs c * S) +
    model * (Rabs c * S + (Rabs c * R + rad * (S + R)))).
  set (N := fun x y => Rabs c * (om * x + opm * y) + rad * opm * (x + y)).
  assert (Need : need = Rabs c * S * (own + model) + (Rabs c * R + rad * (S + R)) * (1 + model)) by (unfold need;
    ring).
  assert (CS : 0 <= Rabs c * S) by (now apply Rmult_le_pos).
  assert (CR : 0 <= Rabs c * R) by (now apply Rmult_le_pos).
  assert (RS : 0 <= rad * (S + R)) by (apply Rmult_le_pos; lra).
  assert (Pn : 0 <= need).
  { rewrite Need. assert (0 <= Rabs c * S * (own + model)) by (apply Rmult_le_pos; lra).
    assert (0 <= (Rabs c * R + rad * (S + R)) * (1 + model)) by (apply Rmult_le_pos; lra). lra. }
  assert (N1 : need * (1 - U) <= N S R).
  { unfold N. rewrite Need.
    assert (Rabs c * S * ((own + model) * (1 - U)) <= Rabs c * S * om) by (apply Rmult_le_compat_l; lra).
    assert ((Rabs c * R + rad * (S + R)) * ((1 + model) * (1 - U)) <= (Rabs c * R + rad * (S + R)) * opm).
    { apply Rmult_le_compat_l; lra. }
    lra. }
  assert (N2 : N S R * (1 - gk) - 21 * (INR k * least * reach) <= N Sh Rh).
  { assert (M : forall x y a b, x <= a -> y <= b -> N x y <= N a b).
    { intros x y a b X Y. unfold N. assert (om * x <= om * a) by (now apply Rmult_le_compat_l).
      assert (opm * y <= opm * b) by (now apply Rmult_le_compat_l).
      assert (Rabs c * (om * x + opm * y) <= Rabs c * (om * a + opm * b)) by (apply Rmult_le_compat_l; lra).
      assert (rad * opm * (x + y) <= rad * opm * (a + b)) by (apply Rmult_le_compat_l; [now apply Rmult_le_pos|
        lra]). lra. }
    apply Rle_trans with (2 := M _ _ _ _ LS LR).
    assert (KL : 0 <= INR k * least) by (apply Rmult_le_pos; lra). set (e := INR k * least) in *.
    replace (N (S * (1 - gk) - 3 * INR k * least) (R * (1 - gk) - 3 * INR k * least)) with
      (N S R * (1 - gk) - 3 * e * (Rabs c * (om + opm) + 2 * (rad * opm))) by (unfold N, e; ring).
    assert (Rabs c * (om + opm) <= reach * 3) by (apply Rmult_le_compat; lra).
    assert (rad * opm <= reach * 2) by (apply Rmult_le_compat; lra).
    assert (3 * e * (Rabs c * (om + opm) + 2 * (rad * opm)) <= 3 * e * (7 * reach)) by (apply Rmult_le_compat_l;
      lra).
    lra. }
  assert (Z0 : 0 <= infl * q <= 2) by (destruct (product_bounds 0 0 2 1 infl q); lra).
  assert (N3 : need <= N S R * (1 - gk) * (infl * q)).
  { apply Rle_trans with (need * (1 - U) * (1 - gk) * (infl * q)).
    - replace (need * (1 - U) * (1 - gk) * (infl * q)) with (need * ((1 - gk) * infl * ((1 - U) * q))) by ring.
      rewrite <- (Rmult_1_r need) at 1. apply Rmult_le_compat_l; [exact Pn|].
      assert (U2 : 0 <= U * U <= U * (1 / 1024)) by (split; [apply Rmult_le_pos|apply Rmult_le_compat_l]; lra).
      assert (C3 : 1 - 12 * U <= (1 - U) * q).
      { apply Rle_trans with ((1 - U) * (1 - 10 * U)); [lra|apply Rmult_le_compat_l; lra]. }
      apply Rle_trans with (UP * (1 + 8000 * U) * (1 - 12 * U)).
      + apply Rle_trans with (1 * (1 + 8000 * U) * (1 - 12 * U)); [lra|].
        apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat_r; lra.
      + apply Rmult_le_compat; [apply Rmult_le_pos; lra|lra|exact I3|exact C3].
    - apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat_r; [lra|exact N1]. }
  assert (KL : INR k * least * reach <= least * B).
  { replace (INR k * least * reach) with (least * (INR k * reach)) by ring. apply Rmult_le_compat_l; lra. }
  assert (KL0 : 0 <= INR k * least * reach) by (repeat apply Rmult_le_pos; lra).
  assert (N4 : need - 42 * (least * B) <= N Sh Rh * infl * q).
  { apply (Rmult_le_compat_r (infl * q)) in N2; [|lra].
    assert (21 * (INR k * least * reach) * (infl * q) <= 21 * (INR k * least * reach) * 2).
    { apply Rmult_le_compat_l; lra. }
    lra. }
  assert (X4 : lostc * (7 / 8) <= lostc * q) by (apply Rmult_le_compat_l; lra).
  replace (3 * j * (absolute A + least) * (2 + reach)) with (3 * (absolute A + least) * B) in * by (unfold B; ring).
  replace (88 * j * least * (2 + reach)) with (88 * (least * B)) in Ll by (unfold B; ring).
  fold (N Sh Rh). replace ((N Sh Rh * infl + lostc) * q) with (N Sh Rh * infl * q + lostc * q) by ring.
  lra.
Qed.
