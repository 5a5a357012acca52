(** The balls that core/balls.py linear and dot return, with midpoint and radius as float64 computes them,
    contain every value of the arithmetic: [linear_encloses], [dot_encloses], [weighed_alike_encloses]. *)

From Coq Require Import Reals ZArith List Permutation Lra Lia.
From Flocq Require Import Core.
From Onelayer Require Import Arithmetic Rounding DotError Linear Radius.
Import ListNotations.
Open Scope R_scope.

Lemma product_bounds a b c d x y : 0 <= a <= x -> 0 <= b <= y -> x <= c -> y <= d -> a * b <= x * y <= c * d.
Proof. intros A B C D. split; apply Rmult_le_compat; lra. Qed.

(** * Sums of terms that are not negative, as the checker computes them *)

Lemma checker_nonneg x y : 0 <= x -> result checker x y -> 0 <= y.
Proof. intros P [->|H]; [exact P|now apply rounds_nonneg with x]. Qed.

Definition positive (t : term) : Prop := match t with Prod x w => 0 <= x /\ 0 <= w | Bias b => 0 <= b end.

Lemma dots_nonneg powers l s : dots checker powers l s -> (forall t, In t l -> positive t) -> 0 <= s.
Proof.
  induction 1 as [l D|x w x' w' y X W Rx Rw R P|b b' B F R|l l1 l2 x y s P H1 IH1 H2 IH2 L1 L2 R|l l1 l2 x P D H IH|
    l x y H IH B]; intros Pos.
  - lra.
  - destruct (Pos _ (or_introl eq_refl)) as [A B]. simpl in Rx, Rw. subst.
    apply checker_nonneg with (x * w); [|exact R].
    now apply Rmult_le_pos.
  - simpl in R. subst. apply (Pos _ (or_introl eq_refl)).
  - apply checker_nonneg with (x + y); [|exact R].
    assert (0 <= x); [|assert (0 <= y); [|lra]].
    + apply IH1. intros t I. apply Pos. apply (Permutation_in t (Permutation_sym P)). apply in_or_app. now left.
    + apply IH2. intros t I. apply Pos. apply (Permutation_in t (Permutation_sym P)). apply in_or_app. now right.
  - apply IH. intros t I. apply Pos. apply (Permutation_in t (Permutation_sym P)). apply in_or_app. now left.
  - simpl in B. subst. now apply IH.
Qed.

Lemma positive_size l : (forall t, In t l -> positive t) -> size l = sum value l.
Proof.
  unfold size. induction l as [|t l IH]; intros H; [reflexivity|]. simpl.
  rewrite IH by (intros; apply H; now right).
  rewrite Rabs_pos_eq; [reflexivity|]. specialize (H t (or_introl eq_refl)).
  destruct t as [x w|b]; simpl in *; [now apply Rmult_le_pos|exact H].
Qed.

(** Such a sum of at most k terms is not far below the exact one. *)
Lemma positive_low (powers : bool) (l : list term) (s : R) (k : nat) :
  dots checker powers l s -> (forall t, In t l -> positive t) -> (length l <= k)%nat -> INR k * U <= 1 / 4 ->
  sum value l * (1 - gamma (INR k) U) - 3 * INR k * least <= s.
Proof.
  intros H Pos Len K. pose proof least_pos as Lp. pose proof (lives_length l) as Lv.
  assert (E := linear_error checker powers l s k H ltac:(destruct powers; lia) K).
  change (relative checker) with U in E. rewrite (positive_size l Pos) in E.
  assert (L : lost checker (2 * lives l) l <= 2 * INR k * least).
  { unfold lost. change (absolute checker) with least. change (flushed checker) with 0. rewrite mult_INR.
    change (INR 2) with 2. assert (INR (lives l) <= INR k) by (apply le_INR; lia). nra. }
  pose proof (pos_INR k). assert (0 <= INR k * least) by (apply Rmult_le_pos; lra).
  revert E. unfold Rabs. destruct (Rcase_abs (s - sum value l)); lra.
Qed.

(** * The factor inflate *)

(** inflate = (1 + 4 (n + 2) U) UP UP, computed, makes up for the rounding of sums of up to n + 1 terms, and for a
    factor UP, and 8,000 roundings more. For: core/balls.py linear, dot; core/averages.py weighed_alike. *)
Theorem inflate_low (n : nat) (i0 i1 infl : R) :
  4 * (INR n + 2) * U <= 1 / 2 -> rounds (1 + 4 * (INR n + 2) * U) i0 -> rounds (i0 * UP) i1 ->
  rounds (i1 * UP) infl ->
  1 <= infl <= 2 /\ number binary64 infl /\
  forall k, (k <= n + 1)%nat -> INR k * U <= 1 / 4 /\ UP * (1 + 8000 * U) <= (1 - gamma (INR k) U) * infl.
Proof.
  intros Hn H0 H1 H2. pose proof U_pos as Up. destruct U_small as [E Us]. pose proof (pos_INR n) as Pn.
  assert (Nn : NORMAL <= 1) by (rewrite NORMAL_eq; change 1 with (bpow radix2 0); now apply bpow_le).
  set (a := 4 * (INR n + 2) * U) in *. assert (Pa : 0 <= a) by (unfold a; apply Rmult_le_pos; lra).
  assert (A0 := normal_low (1 + a) i0 ltac:(lra) H0).
  assert (B0 : 1 <= i0) by (apply (rounds_ge 1 (1 + a)); [apply number_1|lra|exact H0]).
  assert (C0 : i0 <= 3 / 2).
  { apply (rounds_le (3 / 2) (1 + a)); [|lra|exact H0].
    replace (3 / 2) with (IZR 3 * bpow radix2 (-1)) by (simpl; lra).
    apply generic_format_FLT. now exists (Float radix2 3 (-1)). }
  assert (A1 := normal_low (i0 * UP) i1 ltac:(nra) H1).
  assert (B1 : 1 <= i1) by (apply (rounds_ge 1 (i0 * UP)); [apply number_1|nra|exact H1]).
  assert (C1 : i1 <= 7 / 4).
  { apply (rounds_le (7 / 4) (i0 * UP)); [|nra|exact H1].
    replace (7 / 4) with (IZR 7 * bpow radix2 (-2)) by (simpl; lra).
    apply generic_format_FLT. now exists (Float radix2 7 (-2)). }
  assert (A2 := normal_low (i1 * UP) infl ltac:(nra) H2).
  assert (B2 : 1 <= infl) by (apply (rounds_ge 1 (i1 * UP)); [apply number_1|nra|exact H2]).
  assert (C2 : infl <= 2) by (apply (rounds_le 2 (i1 * UP)); [now apply (number_whole 2)|nra|exact H2]).
  split; [now split|]. split; [now apply rounds_number with (i1 * UP)|]. intros k Hk.
  assert (K : INR k <= INR n + 1).
  { replace (INR n + 1) with (INR (n + 1)) by (rewrite plus_INR; reflexivity). now apply le_INR. }
  pose proof (pos_INR k) as Pk. set (x := INR k * U). assert (X : 0 <= x <= a / 4).
  { unfold x, a. split; [apply Rmult_le_pos; lra|]. nra. }
  split; [lra|]. unfold gamma. fold x.
  assert (L : (1 + a) * (UP * UP * (1 - 3 * U)) <= infl).
  { apply Rle_trans with (2 := A2). apply Rle_trans with (i0 * UP * (1 - U) * UP * (1 - U)).
    - apply Rle_trans with ((1 + a) * (1 - U) * UP * (1 - U) * UP * (1 - U)).
      + replace ((1 + a) * (1 - U) * UP * (1 - U) * UP * (1 - U)) with
          ((1 + a) * (UP * UP * ((1 - U) * (1 - U) * (1 - U))))
          by ring.
        apply Rmult_le_compat_l; [lra|]. apply Rmult_le_compat_l; [nra|]. destruct (bernoulli 3) as [Q _].
        simpl in Q. lra.
      + repeat (apply Rmult_le_compat_r; [lra|]). exact A0.
    - repeat (apply Rmult_le_compat_r; [lra|]). exact A1. }
  assert (G : 1 <= (1 - x * (1 + 2 * x)) * (1 + a)).
  { assert (X2 : 0 <= x * x <= x * (1 / 8)) by (split; [apply Rmult_le_pos|apply Rmult_le_compat_l]; lra).
    assert (X3 : x * (x * x) <= x * (x * (1 / 8))) by (apply Rmult_le_compat_l; lra).
    apply Rle_trans with ((1 - x * (1 + 2 * x)) * (1 + 4 * x)); [lra|]. apply Rmult_le_compat_l; lra. }
  assert (V : 1 + 8000 * U <= UP * (1 - 3 * U)) by (replace UP with (1 + 8192 * U) by lra; nra).
  assert (G0 : 0 <= 1 - x * (1 + 2 * x)).
  { assert (x * x <= x * (1 / 8)) by (apply Rmult_le_compat_l; lra). lra. }
  apply Rle_trans with ((1 - x * (1 + 2 * x)) * ((1 + a) * (UP * UP * (1 - 3 * U)))); [|
    now apply Rmult_le_compat_l].
  rewrite <- Rmult_assoc.
  apply Rle_trans with (1 * (UP * UP * (1 - 3 * U))); [|apply Rmult_le_compat_r; [|exact G]].
  - rewrite Rmult_1_l, Rmult_assoc. apply Rmult_le_compat_l; [lra|exact V].
  - apply Rmult_le_pos; [nra|lra].
Qed.

(** * linear *)

(** The terms of S and of R. *)
Definition sizes (e : entry) : term :=
  match e with Input x m r w => Prod (Rabs m) (Rabs w) | Own b m r => Bias (Rabs m) end.
Definition radii (e : entry) : term := match e with Input x m r w => Prod r (Rabs w) | Own b m r => Bias r end.

Lemma sizes_sum l : size (map at_mid l) = sum value (map sizes l).
Proof.
  unfold size. induction l as [|e l IH]; [reflexivity|]. simpl. rewrite IH. f_equal.
  destruct e as [x m r w|b m r]; simpl; [apply Rabs_mult|reflexivity].
Qed.

Lemma radii_sum l : sum spread l = sum value (map radii l).
Proof. induction l as [|e l IH]; [reflexivity|]. simpl. rewrite IH. now destruct e. Qed.

(** The radius that linear computes where something may be lost. *)
Definition linear_expr (n : nat) (sizes_sum radii_sum inflate rounded normal widest reach : R) : expr :=
  Plus (Plus (Times (Times (Known sizes_sum) (Known inflate)) (Known rounded))
             (Times (Times (Known radii_sum) (Known inflate)) (Plus (Known 1) (Known rounded))))
       (Plus (Times (Times (Known (4 * (INR n + 1))) (Known normal))
                    (Plus (Plus (Known 2) (Known widest)) (Known reach)))
             (Known TINY)).

(** A computed sum times inflate makes up for its own rounding. *)
Lemma inflated (exact low junk computed c factor : R) :
  0 <= exact -> 0 <= junk -> 0 <= factor -> 0 <= c <= 2 -> 1 <= (1 - low) * c ->
  (exact * (1 - low) - junk) * factor <= computed * factor ->
  exact * factor - 2 * junk * factor <= computed * c * factor.
Proof.
  intros Pe Pj Pf Pc C H. apply (Rmult_le_compat_r c) in H; [|lra].
  apply Rle_trans with ((exact * (1 - low) - junk) * factor * c); [|lra].
  assert (exact * factor * 1 <= exact * factor * ((1 - low) * c)).
  { apply Rmult_le_compat_l; [now apply Rmult_le_pos|exact C]. }
  assert (junk * factor * c <= junk * factor * 2) by (apply Rmult_le_compat_l; [now apply Rmult_le_pos|lra]).
  lra.
Qed.

(** The ball that linear returns contains every value of the arithmetic. The sums S and R are computed in any
    order, or left out where they do not matter; [far] bounds the operands, and reach is that as computed,
    perhaps rounded down. For: core/balls.py linear, where [loses] is true. *)
Theorem linear_encloses (A : arithmetic) (powers p1 p2 : bool) (l : list entry) (n steps : nat)
    (s mid far reach widest i0 i1 infl normal g Sh Rh r : R) :
  (forall e, In e l -> in_ball e) -> (forall e, In e l -> bounded far widest e) ->
  0 <= far <= reach * (9 / 8) -> 0 <= widest -> (length l <= n + 1)%nat ->
  (count l - (if powers then 1 else 0) <= steps)%nat -> INR steps * (U + relative A) <= 1 / 4 ->
  dots A powers (map actual l) s -> dots checker powers (map at_mid l) mid ->
  number binary64 reach -> number binary64 widest -> number binary64 (4 * (INR n + 1)) -> number binary64 Sh ->
  number binary64 Rh -> number binary64 g ->
  4 * (INR n + 2) * U <= 1 / 2 -> rounds (1 + 4 * (INR n + 2) * U) i0 -> rounds (i0 * UP) i1 ->
  rounds (i1 * UP) infl ->
  rounds (absolute A + NORMAL) normal -> gamma (INR steps) (U + relative A) <= g <= 1 / 2 ->
  dots checker p1 (map sizes l) Sh \/ (steps = 0%nat /\ Sh = 0) ->
  dots checker p2 (map radii l) Rh \/ (sum spread l = 0 /\ Rh = 0) ->
  computed (linear_expr n Sh Rh infl g normal widest reach) r ->
  Rabs (s - mid) <= r.
Proof.
  intros Hb Hw Pr Pw Len Cnt K Hs Hm Freach Fwidest Fn FS FR Fg Hn H0 H1 H2 Hnorm G HS HR Hr.
  apply Rle_trans with (1 := linear_ball A powers l s mid far widest n steps Hb Hw (proj1 Pr) Pw Len Cnt K Hs Hm).
  unfold linear_radius. set (gm := gamma (INR steps) (U + relative A)) in *.
  pose proof U_pos as Up. destruct U_small as [E Us]. pose proof least_pos as Lp. pose proof NORMAL_pos as Np.
  pose proof TINY_pos as Tp. pose proof (relative_bounds A) as V. pose proof (absolute_nonneg A) as T.
  pose proof (pos_INR n) as Pn. pose proof NORMAL_least as N64. pose proof TINY_least as T64.
  destruct (inflate_low n i0 i1 infl Hn H0 H1 H2) as (I1 & Fi & I2). destruct (I2 (n + 1)%nat (le_n _)) as [K1 I3].
  assert (Gm : 0 <= gm) by (apply gamma_nonneg; [apply pos_INR|lra]).
  assert (N1 : INR (n + 1) = INR n + 1) by (rewrite plus_INR; reflexivity). rewrite N1 in *.
  set (gu := gamma (INR n + 1) U) in *. assert (Gu : 0 <= gu) by (apply gamma_nonneg; lra).
  assert (HS' : 0 <= Sh /\ (size (map at_mid l) * (1 - gu) - 3 * (INR n + 1) * least) * gm <= Sh * gm).
  { destruct HS as [HS|[-> ->]].
    - assert (P : forall t, In t (map sizes l) -> positive t).
      { intros t I. apply in_map_iff in I. destruct I as (e & <- & _).
        destruct e as [x m q w|b m q]; simpl; [split|]; apply Rabs_pos. }
      split; [now apply dots_nonneg with p1 (map sizes l)|]. apply Rmult_le_compat_r; [exact Gm|].
      rewrite sizes_sum.
      assert (L := positive_low p1 _ _ (n + 1) HS P ltac:(now rewrite map_length) ltac:(now rewrite N1)).
      rewrite N1 in L. exact L.
    - replace gm with 0; [lra|]. unfold gm, gamma. simpl. ring. }
  assert (HR' : 0 <= Rh /\ sum spread l * (1 - gu) - 3 * (INR n + 1) * least <= Rh).
  { destruct HR as [HR|[-> ->]].
    - assert (P : forall t, In t (map radii l) -> positive t).
      { intros t I. apply in_map_iff in I. destruct I as (e & <- & I). specialize (Hb e I).
        destruct e as [x m q w|b m q]; simpl in *.
        - pose proof (Rabs_pos (x - m)). split; [lra|apply Rabs_pos].
        - pose proof (Rabs_pos (b - m)). lra. }
      split; [now apply dots_nonneg with p2 (map radii l)|]. rewrite radii_sum.
      assert (L := positive_low p2 _ _ (n + 1) HR P ltac:(now rewrite map_length) ltac:(now rewrite N1)).
      rewrite N1 in L. exact L.
    - assert (0 <= (INR n + 1) * least) by (apply Rmult_le_pos; lra). lra. }
  destruct HS' as [PS LS], HR' as [PR LR].
  assert (S0 := size_nonneg (map at_mid l)). assert (R0 := spread_nonneg l Hb).
  set (S := size (map at_mid l)) in *. set (R := sum spread l) in *.
  assert (Fnorm := rounds_number _ _ Hnorm).
  assert (Nm := normal_low (absolute A + NORMAL) normal ltac:(lra) Hnorm). set (t := absolute A) in *.
  assert (Pnm : 0 <= normal) by (apply rounds_nonneg with (t + NORMAL); [lra|exact Hnorm]).
  set (W := 2 + widest + reach). assert (PW : 2 <= W) by (unfold W; lra).
  assert (F : fair (linear_expr n Sh Rh infl g normal widest reach)).
  { simpl. repeat split; try lra; auto using number_1, number_TINY. now apply (number_whole 2). }
  assert (L := radius_low _ _ F Hr). apply Rle_trans with (2 := L).
  change (operations (linear_expr n Sh Rh infl g normal widest reach)) with 12%nat.
  change (exactly (linear_expr n Sh Rh infl g normal widest reach)) with
    (Sh * infl * g + Rh * infl * (1 + g) + (4 * (INR n + 1) * normal * W + TINY)).
  assert (SL : slip (linear_expr n Sh Rh infl g normal widest reach) <= 6 * least + least * W).
  { simpl. fold W. assert (least * g <= least * (1 / 2)) by (apply Rmult_le_compat_l; lra). lra. }
  assert (Q := bernoulli 12). change (INR 12) with (1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1) in Q.
  set (q := (1 - U) ^ 12) in *. assert (Q1 : 1 - 12 * U <= q <= 1) by lra.
  assert (Uq : 1 <= UP * (1 + 8000 * U) * q).
  { assert (U * U <= U * (1 / 1024)) by (apply Rmult_le_compat_l; lra).
    apply Rle_trans with (1 * (1 + 8000 * U) * (1 - 12 * U)); [lra|].
    apply Rmult_le_compat; [lra|lra|apply Rmult_le_compat_r; lra|lra]. }
  (* What S and R contribute *)
  assert (J : 0 <= (INR n + 1) * least) by (apply Rmult_le_pos; lra).
  assert (C0 : 0 <= infl * q <= 2) by (destruct (product_bounds 0 0 2 1 infl q); lra).
  assert (C1 : 1 <= (1 - gu) * (infl * q)).
  { apply Rle_trans with (1 := Uq). rewrite <- Rmult_assoc. apply Rmult_le_compat_r; [lra|exact I3]. }
  assert (ES := inflated S gu (3 * (INR n + 1) * least) Sh (infl * q) gm S0 ltac:(lra) Gm C0 C1 LS).
  assert (ER := inflated R gu (3 * (INR n + 1) * least) Rh (infl * q) (1 + gm) R0 ltac:(lra) ltac:(lra) C0 C1
    ltac:(apply Rmult_le_compat_r; lra)).
  assert (FSg : Sh * (infl * q) * gm <= Sh * (infl * q) * g) by (apply Rmult_le_compat_l; [apply Rmult_le_pos|];
    lra).
  assert (FRg : Rh * (infl * q) * (1 + gm) <= Rh * (infl * q) * (1 + g)).
  { apply Rmult_le_compat_l; [apply Rmult_le_pos|]; lra. }
  assert (Jg : (INR n + 1) * least * gm <= (INR n + 1) * least * (1 / 2)) by (apply Rmult_le_compat_l; lra).
  (* What lost contributes *)
  set (B := (INR n + 1) * W). assert (PB : W <= B /\ 2 * (INR n + 1) <= B).
  { unfold B. split.
    - rewrite <- (Rmult_1_l W) at 1. apply Rmult_le_compat_r; lra.
    - rewrite (Rmult_comm 2). apply Rmult_le_compat_l; lra. }
  assert (LB : 3 * (t + NORMAL) * B <= 4 * (INR n + 1) * normal * W * q).
  { replace (4 * (INR n + 1) * normal * W * q) with (4 * (normal * q) * B) by (unfold B; ring).
    apply Rmult_le_compat_r; [lra|].
    assert ((t + NORMAL) * (3 / 4) <= normal * q); [|lra].
    apply Rle_trans with ((t + NORMAL) * (1 - U) * q); [|apply Rmult_le_compat_r; lra].
    rewrite Rmult_assoc. apply Rmult_le_compat_l; [lra|].
    destruct (product_bounds (7 / 8) (7 / 8) 1 1 (1 - U) q); lra. }
  assert (LL : least * (2 * (INR n + 1)) <= least * B) by (apply Rmult_le_compat_l; lra).
  assert (LW : least * W <= least * B) by (apply Rmult_le_compat_l; lra).
  assert (L2 : least * 2 <= least * B) by (apply Rmult_le_compat_l; lra).
  assert (NB : 64 * least * B <= NORMAL * B) by (apply Rmult_le_compat_r; lra).
  assert (TB : 0 <= t * B) by (apply Rmult_le_pos; lra).
  assert (TQ : 0 <= TINY * q) by (apply Rmult_le_pos; lra).
  assert (Bf : (INR n + 1) * (2 + widest + far) <= B * (9 / 8)).
  { unfold B. rewrite Rmult_assoc. apply Rmult_le_compat_l; [lra|unfold W; lra]. }
  apply (Rmult_le_compat_l (2 * (t + least))) in Bf; [|lra].
  lra.
Qed.

(** What the computed test [min(|m| - r, 1) least >= 2 normal] says: nothing here is as small as tiny + NORMAL. *)
Lemma small_test (t m r lw normal d p : R) :
  0 <= t -> 0 <= r -> number binary64 m -> number binary64 r -> 0 <= lw <= 1 ->
  rounds (t + NORMAL) normal -> rounds (Rabs m - r) d -> rounds (Rmin d 1 * lw) p -> 2 * normal <= p ->
  t + NORMAL <= Rmin (Rabs m - r) 1 * lw.
Proof.
  intros T Pr Fm Fr Lw Hn Hd Hp Test. pose proof U_pos as Up. destruct U_small as [E Us].
  pose proof NORMAL_pos as Np.
  pose proof NORMAL_least as N64. pose proof least_pos as Lp.
  assert (N := normal_low (t + NORMAL) normal ltac:(lra) Hn). set (T1 := t + NORMAL) in *.
  assert (PT : 0 < T1) by (unfold T1; lra).
  assert (N2 : T1 * (7 / 8) <= normal).
  { apply Rle_trans with (2 := N). apply Rmult_le_compat_l; lra. }
  assert (Pe : 0 < Rmin d 1 * lw).
  { apply Rnot_le_lt. intros L. assert (p <= 0) by (apply (rounds_le 0 (Rmin d 1 * lw)); trivial; apply number_0).
    lra. }
  assert (Pd : 0 < Rmin d 1) by (apply Rnot_le_lt; intros L; nra).
  assert (D0 : 0 < d) by (apply Rlt_le_trans with (1 := Pd); apply Rmin_l).
  assert (Pup := rounds_once_error _ _ (rounds_once_of _ _ Hp)).
  rewrite (Rabs_pos_eq (Rmin d 1 * lw)) in Pup by lra.
  assert (Eb : T1 * (3 / 2) <= Rmin d 1 * lw).
  { assert (p - Rmin d 1 * lw <= U * (Rmin d 1 * lw) + least / 2).
    { apply Rle_trans with (2 := Pup). apply Rle_abs. }
    assert (U * (Rmin d 1 * lw) <= 1 / 1024 * (Rmin d 1 * lw)) by (apply Rmult_le_compat_r; lra).
    assert (least <= T1 / 64) by (unfold T1; lra). lra. }
  assert (A : d * (1 - U) <= Rabs m - r).
  { assert (S := sum_rounded (Rabs m) (- r) d (number_abs _ Fm) (number_opp binary64 _ Fr) Hd).
    rewrite (Rabs_pos_eq d) in S by lra. assert (d - (Rabs m + - r) <= U * d).
    { apply Rle_trans with (2 := S). apply Rle_abs. } lra. }
  apply Rle_trans with (Rmin d 1 * (7 / 8) * lw).
  - lra.
  - apply Rmult_le_compat_r; [lra|]. assert (Rmin d 1 <= d) by apply Rmin_l. assert (Rmin d 1 <= 1) by apply Rmin_r.
    apply Rmin_glb; [|lra]. apply Rle_trans with (2 := A).
    apply Rle_trans with (d * (7 / 8)); [lra|apply Rmult_le_compat_l; lra].
Qed.

(** What the code asks of a term if nothing is to be lost. For an input: the weight is a power of two, and neither
    operands nor products, nor the radius times the weight, are small; lw is the smallest weight that is not 0. *)
Definition passes (A : arithmetic) (lw normal : R) (e : entry) : Prop :=
  match e with
  | Input x m r w =>
      in_format A x /\ power_of_two w /\ number binary64 m /\ number binary64 r /\ lw <= Rabs w /\
      (exists d p, rounds (Rabs m - r) d /\ rounds (Rmin d 1 * lw) p /\ 2 * normal <= p) /\
      (r = 0 \/ exists p, rounds (r * lw) p /\ 2 * normal <= p)
  | Own b m r => number binary64 r /\ exists d, rounds (Rabs m - r) d /\ 2 * absolute A <= d
  end.

Lemma ball_far (x m r : R) : Rabs (x - m) <= r -> Rabs m - r <= Rabs x.
Proof. intros B. pose proof (Rabs_triang x (m - x)) as T. replace (x + (m - x)) with m in T by ring.
  rewrite (Rabs_minus_sym m x) in T. lra. Qed.

Lemma power_abs w : power_of_two w -> power_of_two (Rabs w).
Proof.
  intros [k E]. exists k. left. pose proof (bpow_gt_0 radix2 k).
  destruct E as [->| ->]; [|rewrite Rabs_Ropp]; apply Rabs_pos_eq; lra.
Qed.

(** Where the code finds that nothing is lost, the ball with midpoint mid and radius R inflate contains every value.
    For: core/balls.py linear, where [loses] is false. *)
Theorem linear_kept_encloses (A : arithmetic) (powers : bool) (l : list entry) (s mid lw normal infl Rh r : R) :
  smallest A <= absolute A -> number binary64 (absolute A) -> 0 <= lw <= 1 -> rounds (absolute A + NORMAL) normal ->
  (forall e, In e l -> in_ball e) -> (count l <= 1)%nat -> (forall e, In e l -> ~ live e \/ passes A lw normal e) ->
  dots A powers (map actual l) s -> dots checker powers (map at_mid l) mid ->
  dots checker true (map radii l) Rh -> number binary64 Rh -> 1 <= infl -> rounds (Rh * infl) r ->
  Rabs (s - mid) <= r.
Proof.
  intros Sm Ft Lw Hn Hb C K Hs Hm HR FR I Hr. pose proof NORMAL_pos as Np. pose proof (absolute_nonneg A) as T.
  pose proof (flushed_absolute A) as Fa.
  assert (Far : forall x m r w, In (Input x m r w) l -> passes A lw normal (Input x m r w) ->
    absolute A + NORMAL <= Rabs x /\ absolute A + NORMAL <= Rabs w /\ absolute A + NORMAL <= Rabs (x * w) /\
    absolute A + NORMAL <= Rabs (m * w)).
  { intros x m q w In1 (Fx & P & Fm & Fq & Lq & (d & p & Hd & Hp & Test) & _). assert (B := Hb _ In1). simpl in B.
    pose proof (Rabs_pos (x - m)). assert (M := small_test _ m q lw normal d p T ltac:(lra) Fm Fq Lw Hn Hd Hp Test).
    assert (X := ball_far x m q B). set (a := Rabs m - q) in *.
    assert (M1 : Rmin a 1 <= a) by apply Rmin_l. assert (M2 : Rmin a 1 <= 1) by apply Rmin_r.
    assert (M0 : 0 < Rmin a 1) by (apply Rnot_le_lt; intros L; nra).
    assert (Rmin a 1 * lw <= Rmin a 1 * 1) by (apply Rmult_le_compat_l; lra).
    assert (Rmin a 1 * lw <= 1 * lw) by (apply Rmult_le_compat_r; lra).
    assert (Rmin a 1 * lw <= a * Rabs w) by (apply Rmult_le_compat; lra).
    rewrite !Rabs_mult.
    assert (a * Rabs w <= Rabs x * Rabs w) by (apply Rmult_le_compat_r; [apply Rabs_pos|exact X]).
    assert (a * Rabs w <= Rabs m * Rabs w) by (apply Rmult_le_compat_r; [apply Rabs_pos|unfold a; lra]). lra. }
  assert (D : Rabs (s - mid) <= sum spread l).
  { apply (linear_kept A powers l s mid Hb C); trivial. intros e In1. destruct (K e In1) as [N|Q]; [now left|right].
    destruct e as [x m q w|b m q].
    - destruct (Far x m q w In1 Q) as (X & W & XW & MW). destruct Q as (Fx & P & Fm & _). simpl.
      repeat split; trivial; lra.
    - destruct Q as (_ & d & Hd & Test). assert (B := Hb _ In1). simpl in *. assert (X := ball_far b m q B).
      destruct (Req_dec (absolute A) 0) as [Z|Z]; [pose proof (Rabs_pos b); lra|].
      assert (absolute A <= Rabs m - q); [|lra].
      apply Rnot_lt_le. intros L. assert (d <= absolute A) by (apply (rounds_le _ (Rabs m - q)); trivial; lra).
      lra. }
  apply Rle_trans with (1 := D). rewrite radii_sum.
  replace (sum value (map radii l)) with Rh.
  - apply (rounds_ge Rh (Rh * infl)); trivial.
    assert (0 <= Rh); [|nra]. apply dots_nonneg with true (map radii l); [exact HR|]. intros t It.
    apply in_map_iff in It. destruct It as (e & <- & It). specialize (Hb e It).
    destruct e as [x m q w|b m q]; simpl in *.
    + pose proof (Rabs_pos (x - m)). split; [lra|apply Rabs_pos].
    + pose proof (Rabs_pos (b - m)). lra.
  - apply (one_term_kept checker true); [exact HR| |].
    + apply Nat.le_trans with (2 := C). unfold lives, count. clear - Hb. induction l as [|e l IH]; [apply le_n|].
      assert (IH' := IH ltac:(intros; apply Hb; now right)). simpl.
      destruct (live_dec e) as [L|L]; [destruct (dead_dec (radii e)); simpl; lia|].
      destruct (dead_dec (radii e)) as [_|N]; [exact IH'|]. elim N.
      destruct e as [x m q w|b m q]; simpl in *.
      * destruct (Req_EM_T w 0) as [->|W]; [right; apply Rabs_R0|]. left.
        destruct (Req_EM_T q 0) as [Z|Z]; [exact Z|]. elim L. split; [now right|exact W].
      * destruct (Req_EM_T q 0) as [Z|Z]; [exact Z|]. elim L. now right.
    + intros t It. apply in_map_iff in It. destruct It as (e & <- & It). destruct (K e It) as [N|Q].
      * left. destruct e as [x m q w|b m q]; simpl in *.
        -- destruct (Req_EM_T w 0) as [->|W]; [right; apply Rabs_R0|]. left.
           destruct (Req_EM_T q 0) as [Z|Z]; [exact Z|]. elim N. split; [now right|exact W].
        -- destruct (Req_EM_T q 0) as [Z|Z]; [exact Z|]. elim N. now right.
      * destruct e as [x m q w|b m q]; [|right; simpl; apply Rabs_pos].
        destruct (Far x m q w It Q) as (_ & W & _ & _).
        destruct Q as (Fx & P & Fm & Fq & Lq & _ & [->|(p & Hp & Test)]); [left; now left|right].
        assert (B := Hb _ It). simpl in *. pose proof (Rabs_pos (x - m)).
        split; [exact Fq|]. split; [now apply power_abs|]. split; [apply Rabs_pos|]. split; [apply Rabs_pos|].
        rewrite Rabs_mult, Rabs_Rabsolu. rewrite (Rabs_pos_eq q) by lra.
        pose proof U_pos. destruct U_small as [_ Us].
        assert (Nl := normal_low (absolute A + NORMAL) normal ltac:(lra) Hn).
        assert (NORMAL <= q * lw); [|assert (q * lw <= q * Rabs w) by (apply Rmult_le_compat_l; lra); lra].
        apply Rnot_lt_le. intros Lt.
        assert (p <= NORMAL) by (apply (rounds_le NORMAL (q * lw)); [apply number_NORMAL|lra|exact Hp]).
        assert ((absolute A + NORMAL) * (7 / 8) <= (absolute A + NORMAL) * (1 - U)) by (apply Rmult_le_compat_l;
          lra).
        lra.
Qed.
