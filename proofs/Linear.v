(** The ball that core/balls.py linear returns, as a statement about real numbers: [linear_ball] where something is
    rounded, [linear_kept] where nothing is, and [residual_stream] for one sum with a ball among its terms.

    The rounding of the radius itself is the subject of Radius.v, overflow that of Overflow.v. *)

From Coq Require Import Reals ZArith List Permutation Lra Lia.
From Flocq Require Import Core.
From Onelayer Require Import Arithmetic Rounding DotError.
Import ListNotations.
Open Scope R_scope.

(** A term of a column: an input x in the ball (m, r), times a weight w; or a term b of its own, in the ball (m,
    r). A bias is a ball of radius 0. *)
Inductive entry := Input (x m r w : R) | Own (b m r : R).

(** The term as the arithmetic sees it, and as the checker does, which takes midpoints. *)
Definition actual (e : entry) : term := match e with Input x m r w => Prod x w | Own b m r => Bias b end.
Definition at_mid (e : entry) : term := match e with Input x m r w => Prod m w | Own b m r => Bias m end.

Definition in_ball (e : entry) : Prop :=
  match e with Input x m r w => Rabs (x - m) <= r | Own b m r => Rabs (b - m) <= r end.

(** What the term adds to R of the code; its share of S is [size] at the midpoint. *)
Definition spread (e : entry) : R := match e with Input x m r w => r * Rabs w | Own b m r => r end.

(** The operands are at most [reach] and [widest]. *)
Definition bounded (reach widest : R) (e : entry) : Prop :=
  match e with Input x m r w => Rabs x <= reach /\ Rabs m <= reach /\ Rabs w <= widest | Own b m r => True end.

(** Not known to be exactly zero: what [live_terms] and [present] count. *)
Definition live (e : entry) : Prop :=
  match e with Input x m r w => (m <> 0 \/ r <> 0) /\ w <> 0 | Own b m r => m <> 0 \/ r <> 0 end.

Lemma live_dec e : {live e} + {~ live e}.
Proof.
  destruct e as [x m r w|b m r]; simpl; destruct (Req_EM_T m 0), (Req_EM_T r 0); try destruct (Req_EM_T w 0); tauto.
Qed.

(** [terms + present] of the code is at least this. *)
Definition count (l : list entry) : nat := length (filter (fun e => if live_dec e then true else false) l).

Lemma dead_actual e : in_ball e -> ~ live e -> dead (actual e).
Proof.
  destruct e as [x m r w|b m r]; simpl; intros I N.
  - destruct (Req_EM_T w 0) as [->|W]; [now right|]. left.
    destruct (Req_EM_T m 0) as [->|M]; [|tauto]. destruct (Req_EM_T r 0) as [->|R]; [|tauto].
    rewrite Rminus_0_r in I. apply Rabs_eq_R0. pose proof (Rabs_pos x). lra.
  - destruct (Req_EM_T m 0) as [->|M]; [|tauto]. destruct (Req_EM_T r 0) as [->|R]; [|tauto].
    rewrite Rminus_0_r in I. apply Rabs_eq_R0. pose proof (Rabs_pos b). lra.
Qed.

Lemma dead_at_mid e : ~ live e -> dead (at_mid e).
Proof.
  destruct e as [x m r w|b m r]; simpl; intros N.
  - destruct (Req_EM_T w 0) as [->|W]; [now right|]. destruct (Req_EM_T m 0) as [->|M]; [now left|tauto].
  - destruct (Req_EM_T m 0) as [->|M]; [reflexivity|tauto].
Qed.

(** The code's count is at least the number of terms that are not zero, at midpoints and anywhere in the balls. *)
Lemma count_lives (l : list entry) : (forall e, In e l -> in_ball e) ->
  (lives (map actual l) <= count l)%nat /\ (lives (map at_mid l) <= count l)%nat.
Proof.
  unfold lives, count. induction l as [|e l IH]; intros H; [split; apply le_n|].
  destruct IH as [I J]; [intros; apply H; now right|]. assert (B := H e (or_introl eq_refl)). simpl.
  destruct (live_dec e) as [L|N].
  - split; [destruct (dead_dec (actual e))|destruct (dead_dec (at_mid e))]; simpl; lia.
  - destruct (dead_dec (actual e)) as [_|D]; [|elim D; now apply dead_actual].
    destruct (dead_dec (at_mid e)) as [_|D]; [|elim D; now apply dead_at_mid]. now split.
Qed.

(** Values in the balls differ from those at midpoints by at most R. *)
Lemma ball_sums (l : list entry) : (forall e, In e l -> in_ball e) ->
  Rabs (sum value (map actual l) - sum value (map at_mid l)) <= sum spread l /\
  size (map actual l) <= size (map at_mid l) + sum spread l.
Proof.
  unfold size. induction l as [|e l IH]; intros H; simpl; [rewrite Rminus_0_r, Rabs_R0; lra|].
  destruct IH as [I J]; [intros; apply H; now right|]. specialize (H e (or_introl eq_refl)).
  assert (D : Rabs (value (actual e) - value (at_mid e)) <= spread e).
  { destruct e as [x m r w|b m r]; simpl in *; [|exact H].
    replace (x * w - m * w) with ((x - m) * w) by ring. rewrite Rabs_mult.
    apply Rmult_le_compat_r; [apply Rabs_pos|exact H]. }
  set (a := value (actual e)) in *. set (c := value (at_mid e)) in *. split.
  - replace (a + sum value (map actual l) - (c + sum value (map at_mid l))) with
      ((a - c) + (sum value (map actual l) - sum value (map at_mid l))) by ring.
    pose proof (Rabs_triang (a - c) (sum value (map actual l) - sum value (map at_mid l))). lra.
  - pose proof (Rabs_triang c (a - c)). replace (c + (a - c)) with a in * by ring. lra.
Qed.

Lemma spread_nonneg (l : list entry) : (forall e, In e l -> in_ball e) -> 0 <= sum spread l.
Proof.
  intros H. destruct (ball_sums l H) as [B _].
  pose proof (Rabs_pos (sum value (map actual l) - sum value (map at_mid l))). lra.
Qed.

(** Flushed operands and underflow cost at most 2 (n + 1) [absolute] (2 + widest + reach). *)
Lemma lost_bound (A : arithmetic) (l : list entry) (n : nat) (reach widest : R) :
  (forall e, In e l -> bounded reach widest e) -> 0 <= reach -> 0 <= widest -> (length l <= n + 1)%nat ->
  let most := 3 / 2 * (INR n + 1) * (2 + widest + reach) * absolute A in
  lost A (2 * lives (map actual l)) (map actual l) <= most /\
  lost A (2 * lives (map at_mid l)) (map at_mid l) <= most.
Proof.
  intros H Pr Pw Len most.
  assert (B : sum loss (map actual l) <= INR (length l) * (1 + widest + reach) /\
              sum loss (map at_mid l) <= INR (length l) * (1 + widest + reach)).
  { clear Len. induction l as [|e l IH]; [simpl; lra|].
    destruct IH as [I J]; [intros; apply H; now right|]. specialize (H e (or_introl eq_refl)).
    change (length (e :: l)) with (S (length l)). rewrite S_INR.
    destruct e as [x m r w|b m r]; simpl in *; lra. }
  assert (N : INR (length l) <= INR n + 1).
  { replace (INR n + 1) with (INR (n + 1)) by (rewrite plus_INR; reflexivity). now apply le_INR. }
  pose proof (absolute_nonneg A) as T. pose proof (flushed_absolute A) as T'. pose proof (pos_INR n) as Pn.
  assert (G : forall k, (lives k <= length l)%nat -> sum loss k <= INR (length l) * (1 + widest + reach) ->
    lost A (2 * lives k) k <= most).
  { intros k L S. unfold lost, most. rewrite mult_INR. change (INR 2) with 2.
    assert (L' : INR (lives k) <= INR n + 1) by (apply le_INR in L; lra). pose proof (loss_nonneg k) as P.
    assert (K : INR (length l) * (1 + widest + reach) <= (INR n + 1) * (1 + widest + reach)).
    { apply Rmult_le_compat_r; lra. }
    assert (F : flushed A * sum loss k <= absolute A * ((INR n + 1) * (1 + widest + reach))).
    { apply Rmult_le_compat; lra. }
    assert (Q : absolute A * (2 * INR (lives k)) <= absolute A * (2 * (INR n + 1))) by (apply Rmult_le_compat_l;
      lra).
    assert (0 <= (INR n + 1) * (widest + reach) * absolute A) by (apply Rmult_le_pos; [apply Rmult_le_pos|]; lra).
    lra. }
  split; (apply G; [|tauto]).
  - rewrite <- (map_length actual l). apply lives_length.
  - rewrite <- (map_length at_mid l). apply lives_length.
Qed.

Section Linear.
Variable A : arithmetic.

(** The radius that is needed, in real numbers: [sizes] and [radii] are S and R of the code. *)
Definition linear_radius (n steps : nat) (reach widest sizes radii : R) : R :=
  sizes * gamma (INR steps) (U + relative A) + radii * (1 + gamma (INR steps) (U + relative A)) +
  2 * (INR n + 1) * (absolute A + least) * (2 + widest + reach).

(** A value s of the arithmetic at inputs in their balls, and the midpoint that the checker computes in float64,
    both in any order, fused or not, differ by at most [linear_radius]. Here n is the number of inputs, and
    [steps] is at least that of the code: the number of terms not known to be zero, less one if all weights are
    powers of two (or there is no product). For: core/balls.py linear, the case [loses]. *)
Theorem linear_ball (powers : bool) (l : list entry) (s mid reach widest : R) (n steps : nat) :
  (forall e, In e l -> in_ball e) -> (forall e, In e l -> bounded reach widest e) ->
  0 <= reach -> 0 <= widest -> (length l <= n + 1)%nat ->
  (count l - (if powers then 1 else 0) <= steps)%nat -> INR steps * (U + relative A) <= 1 / 4 ->
  dots A powers (map actual l) s -> dots checker powers (map at_mid l) mid ->
  Rabs (s - mid) <= linear_radius n steps reach widest (size (map at_mid l)) (sum spread l).
Proof.
  intros Hb Hw Pr Pw Len Cnt K Hs Hm. unfold linear_radius. set (S := size (map at_mid l)). set (R := sum spread l).
  destruct (ball_sums l Hb) as [D1 D2]. fold S in D2. fold R in D1, D2. destruct (count_lives l Hb) as [C1 C2].
  assert (U0 : 0 <= U) by apply bpow_ge_0. pose proof (relative_bounds A) as V. pose proof (pos_INR steps) as Ps.
  assert (K1 : INR steps * relative A <= 1 / 4) by nra. assert (K2 : INR steps * U <= 1 / 4) by nra.
  assert (E1 := linear_error A powers _ s steps Hs ltac:(lia) K1).
  assert (E2 := linear_error checker powers _ mid steps Hm ltac:(lia) K2).
  change (relative checker) with U in E2. fold S in E2.
  destruct (lost_bound A l n reach widest Hw Pr Pw Len) as [L1 _].
  destruct (lost_bound checker l n reach widest Hw Pr Pw Len) as [_ L2].
  pose proof (absolute_nonneg A) as T. assert (T0 : 0 <= least) by apply bpow_ge_0.
  assert (S0 : 0 <= S) by apply size_nonneg. assert (R0 : 0 <= R) by (now apply spread_nonneg).
  assert (G := gamma_adds (INR steps) U (relative A) Ps U0 ltac:(lra)).
  assert (G1 := gamma_nonneg (INR steps) (relative A) Ps ltac:(lra)).
  assert (G2 := gamma_nonneg (INR steps) U Ps U0).
  set (ga := gamma (INR steps) (relative A)) in *. set (gu := gamma (INR steps) U) in *.
  set (g := gamma (INR steps) (U + relative A)) in *.
  assert (M : ga * size (map actual l) <= ga * (S + R)) by (apply Rmult_le_compat_l; lra).
  assert (M1 : S * (ga + gu) <= S * g) by (apply Rmult_le_compat_l; lra).
  assert (M2 : R * ga <= R * g) by (apply Rmult_le_compat_l; lra).
  set (a := sum value (map actual l)) in *. set (c := sum value (map at_mid l)) in *.
  assert (Q : Rabs (s - mid) <= Rabs (s - a) + Rabs (a - c) + Rabs (mid - c)).
  { replace (s - mid) with ((s - a) + (a - c) + (- (mid - c))) by ring.
    pose proof (Rabs_triang ((s - a) + (a - c)) (- (mid - c))). pose proof (Rabs_triang (s - a) (a - c)).
    rewrite Rabs_Ropp in *. lra. }
  change (absolute checker) with least in L2. lra.
Qed.

(** The code's test that nothing is lost ([loses] is false), in real numbers: the term is zero, or it is solid. *)
Definition keeps (e : entry) : Prop :=
  match e with
  | Input x m r w => in_format A x /\ power_of_two w /\ flushed A <= Rabs x /\ flushed A <= Rabs w /\
      smallest A <= Rabs (x * w) /\ number binary64 m /\ NORMAL <= Rabs (m * w)
  | Own b m r => flushed A <= Rabs b
  end.

(** Where at most one term is not zero, and that one is a product by a power of two, or a term of its own, far
    enough from 0, nothing is rounded or lost: the radius is R. For: core/balls.py linear, where [loses] is
    false. *)
Theorem linear_kept (powers : bool) (l : list entry) (s mid : R) :
  (forall e, In e l -> in_ball e) -> (count l <= 1)%nat -> (forall e, In e l -> ~ live e \/ keeps e) ->
  dots A powers (map actual l) s -> dots checker powers (map at_mid l) mid ->
  Rabs (s - mid) <= sum spread l.
Proof.
  intros Hb C K Hs Hm. destruct (ball_sums l Hb) as [D _]. destruct (count_lives l Hb) as [C1 C2].
  rewrite (one_term_kept A powers _ s Hs); [|lia|].
  - rewrite (one_term_kept checker powers _ mid Hm); [exact D|lia|].
    intros t I. apply in_map_iff in I. destruct I as (e & <- & I).
    destruct (K e I) as [N|Q]; [left; now apply dead_at_mid|].
    destruct e as [x m r w|b m r]; simpl in *.
    + right. pose proof (Rabs_pos m). pose proof (Rabs_pos w). repeat split; tauto.
    + right. apply Rabs_pos.
  - intros t I. apply in_map_iff in I. destruct I as (e & <- & I).
    destruct (K e I) as [N|Q]; [left; apply dead_actual; [now apply Hb|exact N]|right].
    destruct e as [x m r w|b m r]; simpl in *; [repeat split|]; tauto.
Qed.

(** ** One sum with all heads

    [gathers parts s]: the sums of the parts are computed, each in any order, and then put together in any order and
    bracketing: one head after the other is added to the stream, or all heads are added to each other first. *)
Inductive gathers (powers : bool) : list (list term) -> R -> Prop :=
| gathers_part l s : dots A powers l s -> gathers powers [l] s
| gathers_join parts p1 p2 x y s : Permutation parts (p1 ++ p2) -> gathers powers p1 x -> gathers powers p2 y ->
    joins A (concat p1) x (concat p2) y s -> gathers powers parts s.

Lemma concat_perm {T} (p q : list (list T)) : Permutation p q -> Permutation (concat p) (concat q).
Proof.
  induction 1 as [|a p q P IH|a b p|p q r P IH Q IH']; simpl; [reflexivity|now rewrite IH| |now rewrite IH].
  rewrite !app_assoc. apply Permutation_app_tail. apply Permutation_app_comm.
Qed.

Lemma dots_perm powers l k s : Permutation l k -> dots A powers k s -> dots A powers l s.
Proof. intros P H. apply (dots_skip A powers l k []); [now rewrite app_nil_r|easy|exact H]. Qed.

(** Whatever the parts are, this is an evaluation of one sum. *)
Lemma gathers_dots powers parts s : gathers powers parts s -> dots A powers (concat parts) s.
Proof.
  induction 1 as [l s H|parts p1 p2 x y s P H1 IH1 H2 IH2 J]; [simpl; now rewrite app_nil_r|].
  apply dots_perm with (concat (p1 ++ p2)); [now apply concat_perm|]. rewrite concat_app.
  now apply (dots_joins A powers _ _ x y).
Qed.

(** The residual stream after attention: the stream h, in its ball, and the products of all components of all
    heads with W_O are the terms of one sum. An accumulator that begins with the stream is a part that contains
    it. For: core/graph.py attend, core/balls.py linear with a ball for b. *)
Theorem residual_stream (powers : bool) (h m r : R) (heads : list (list entry)) (parts : list (list term))
    (s mid reach widest : R) (n steps : nat) :
  let l := Own h m r :: concat heads in
  (forall e, In e l -> in_ball e) -> (forall e, In e l -> bounded reach widest e) ->
  0 <= reach -> 0 <= widest -> (length (concat heads) <= n)%nat ->
  (count l - (if powers then 1 else 0) <= steps)%nat -> INR steps * (U + relative A) <= 1 / 4 ->
  Permutation (concat parts) (map actual l) -> gathers powers parts s ->
  dots checker powers (map at_mid l) mid ->
  Rabs (s - mid) <= linear_radius n steps reach widest (size (map at_mid l)) (sum spread l).
Proof.
  intros l Hb Hw Pr Pw Len Cnt K P G Hm.
  apply (linear_ball powers l); trivial; [unfold l; simpl; lia|].
  apply dots_perm with (concat parts); [now apply Permutation_sym|now apply gathers_dots].
Qed.

End Linear.
