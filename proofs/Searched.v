(** Sums of a search that are not exact: the radius of what is looked up and added, and the slack of a gate.

    For: search/parts.py added; search/operations.py Gate.live. *)

From Coq Require Import Reals ZArith List Permutation Lra Lia.
From Flocq Require Import Core.
From Onelayer Require Import Arithmetic ExactSums Rounding DotError Linear Radius Enclosures.
Import ListNotations.
Open Scope R_scope.

(** * Terms that are zero are left out *)

Section Errors.
Variable A : arithmetic.

(** Terms that are exactly zero may be left out: no value changes. *)
Lemma dots_live powers l s : dots A powers l s ->
  forall l0 l1, Permutation l (l0 ++ l1) -> (forall t, In t l0 -> dead t) -> dots A powers l1 s.
Proof.
  induction 1 as [l D|x w x' w' y X W Rx Rw R P|b b' B F R|l k1 k2 x y s P H1 IH1 H2 IH2 L1 L2 R|l k1 k2 x P D H IH|
    l x y H IH B]; intros l0 l1 Q Z.
  - apply dots_zero. intros t I. apply D. rewrite Q. apply in_or_app. now right.
  - assert (N : l0 = []).
    { destruct l0 as [|t l0]; [reflexivity|exfalso]. apply Permutation_length_1_inv in Q. injection Q as -> _.
      destruct (Z _ (or_introl eq_refl)); contradiction. }
    subst. simpl in Q. apply Permutation_length_1_inv in Q. subst. now apply (dots_prod A powers x w x' w').
  - assert (N : l0 = []).
    { destruct l0 as [|t l0]; [reflexivity|exfalso]. apply Permutation_length_1_inv in Q. injection Q as -> _.
      exact (B (Z _ (or_introl eq_refl))). }
    subst. simpl in Q. apply Permutation_length_1_inv in Q. subst. now apply dots_bias.
  - destruct (permutation_split k1 k2 l0 l1) as (a0 & a1 & b0 & b1 & Qa & Qb & Q0 & Q1); [now rewrite <- P|].
    assert (Za : forall t, In t a0 -> dead t) by (intros t I; apply Z; rewrite Q0; apply in_or_app; now left).
    assert (Zb : forall t, In t b0 -> dead t) by (intros t I; apply Z; rewrite Q0; apply in_or_app; now right).
    rewrite (lives_perm _ _ Qa), lives_app, (lives_dead a0 Za) in L1.
    rewrite (lives_perm _ _ Qb), lives_app, (lives_dead b0 Zb) in L2.
    apply (dots_add A powers l1 a1 b1 x y s Q1); [now apply (IH1 a0)|now apply (IH2 b0)|lia|lia|exact R].
  - destruct (permutation_split k1 k2 l0 l1) as (a0 & a1 & b0 & b1 & Qa & Qb & Q0 & Q1); [now rewrite <- P|].
    apply (dots_skip A powers l1 a1 b1 x Q1).
    + intros t I. apply D. rewrite Qb. apply in_or_app. now right.
    + apply (IH a0 a1 Qa). intros t I. apply Z. rewrite Q0. apply in_or_app. now left.
  - eapply dots_between; [now apply (IH l0 l1)|exact B].
Qed.

(** * The error of a sum that a search makes *)

(** A term of such a sum. A row's unit is 1, or it and its weight are whole numbers; an input with a ball, and
    its weight, are at most [reach] and [widest]; or it is a bias. *)
Definition searched_term (reach widest : R) (t : term) : Prop :=
  match t with
  | Prod x w => Rabs x = 1 \/ (1 <= Rabs x /\ 1 <= Rabs w) \/ (Rabs x <= reach /\ Rabs w <= widest)
  | Bias b => True
  end.

Lemma searched_loss reach widest l : 0 <= reach -> 0 <= widest ->
  (forall t, In t l -> searched_term reach widest t) ->
  sum loss l <= size l + INR (length l) * (1 + widest + reach).
Proof.
  intros Pr Pw. unfold size. induction l as [|t l IH]; intros H; [simpl; lra|].
  specialize (IH (fun t I => H t (or_intror I))). specialize (H t (or_introl eq_refl)).
  change (length (t :: l)) with (S (length l)). rewrite S_INR. simpl sum.
  assert (loss t <= Rabs (value t) + (1 + widest + reach)); [|lra].
  destruct t as [x w|b]; simpl in *; [|pose proof (Rabs_pos b); lra].
  rewrite Rabs_mult. pose proof (Rabs_pos x). pose proof (Rabs_pos w).
  destruct H as [H|[[Hx Hw]|[Hx Hw]]]; [rewrite H; lra|nra|nra].
Qed.

(** The error of such a sum, with N at least the number of its terms that are not zero. *)
Lemma searched_error powers (l : list term) (s reach widest : R) (N : nat) :
  flushed A <= relative A -> 0 <= reach -> 0 <= widest ->
  (forall t, In t l -> ~ dead t -> searched_term reach widest t) ->
  dots A powers l s -> (lives l <= N)%nat -> INR (2 * N + 2) * relative A <= 1 / 4 ->
  Rabs (s - sum value l) <=
    gamma (INR (2 * N + 2)) (relative A) * size l + 2 * INR N * absolute A * (2 + widest + reach).
Proof.
  intros Fl Pr Pw T H L K.
  pose (alive := filter (fun t => if dead_dec t then false else true) l).
  pose (zeros := filter (fun t => if dead_dec t then true else false) l).
  assert (Q : Permutation l (zeros ++ alive)).
  { unfold zeros, alive. clear. induction l as [|t l IH]; [apply Permutation_refl|]. simpl.
    destruct (dead_dec t); simpl; [now constructor|]. rewrite <- Permutation_middle. now constructor. }
  assert (Z : forall t, In t zeros -> dead t).
  { intros t I. apply filter_In in I. destruct I as [_ I]. now destruct (dead_dec t). }
  assert (Al : forall t, In t alive -> searched_term reach widest t).
  { intros t I. apply filter_In in I. destruct I as [I D]. apply T; [exact I|]. now destruct (dead_dec t). }
  assert (H1 := dots_live powers l s H zeros alive Q Z).
  destruct (dead_sums zeros Z) as [V0 S0].
  assert (V : sum value l = sum value alive) by (rewrite (sum_perm _ _ _ Q), sum_app, V0; ring).
  assert (Sz : size l = size alive).
  { unfold size in *. rewrite (sum_perm _ _ _ Q), sum_app, S0. ring. }
  assert (La : (length alive <= N)%nat) by exact L.
  assert (Lv : (lives alive <= length alive)%nat) by apply lives_length.
  pose proof (relative_bounds A) as U0. pose proof (absolute_nonneg A) as T0. pose proof (flushed_absolute A) as F0.
  assert (N0 : INR (2 * N + 2) = 2 * INR N + 2).
  { rewrite plus_INR, mult_INR. reflexivity. }
  rewrite N0 in *. pose proof (pos_INR N) as PN.
  assert (K1 : INR N * relative A <= 1 / 4) by nra.
  assert (E := linear_error A powers alive s N H1 ltac:(destruct powers; lia) K1).
  rewrite V, Sz. apply Rle_trans with (1 := E).
  assert (Ls := searched_loss reach widest alive Pr Pw Al). assert (P := size_nonneg alive).
  assert (Ln : INR (length alive) <= INR N) by (apply le_INR; lia).
  assert (Lw : INR (lives alive) <= INR N) by (apply le_INR; lia).
  pose proof (loss_nonneg alive) as Pl. pose proof (pos_INR (lives alive)) as Plv.
  set (q := relative A) in *. set (S := size alive) in *. set (n := INR N) in *. set (a := absolute A) in *.
  assert (B1 : flushed A * sum loss alive <= q * S + a * (n * (1 + widest + reach))).
  { apply Rle_trans with (flushed A * (S + n * (1 + widest + reach))).
    - apply Rmult_le_compat_l; [lra|]. apply Rle_trans with (1 := Ls). apply Rplus_le_compat_l.
      apply Rmult_le_compat_r; lra.
    - rewrite Rmult_plus_distr_l. apply Rplus_le_compat; apply Rmult_le_compat_r; try lra.
      apply Rmult_le_pos; lra. }
  assert (B2 : lost A (2 * lives alive) alive <= q * S + a * (n * (3 + widest + reach))).
  { unfold lost. fold a. rewrite mult_INR. change (INR 2) with 2.
    assert (a * (2 * INR (lives alive)) <= a * (2 * n)) by (apply Rmult_le_compat_l; lra). lra. }
  assert (G : gamma n q + 4 / 3 * q <= gamma (2 * n + 2) q).
  { unfold gamma. assert (0 <= n * q) by (apply Rmult_le_pos; lra).
    replace ((2 * n + 2) * q) with (2 * (n * q) + 2 * q) by ring. set (x := n * q) in *. nra. }
  assert (G1 : (gamma n q + 4 / 3 * q) * S <= gamma (2 * n + 2) q * S) by (apply Rmult_le_compat_r; lra).
  assert (W : a * (n * (3 + widest + reach)) * (4 / 3) <= 2 * n * a * (2 + widest + reach)).
  { assert (0 <= n * a) by (apply Rmult_le_pos; lra).
    assert (0 <= n * a * (widest + reach)) by (apply Rmult_le_pos; lra). lra. }
  lra.
Qed.

End Errors.

(** * added *)

(** What a sum consists of: chosen weights of rows, each met by a unit that is 1; inputs with balls; a bias; and
    terms that are zero. The checker takes midpoints. *)
Definition network_terms (zeros : list term) (ws : list R) (is : list entry) (b : R) : list term :=
  zeros ++ map (fun w => Prod 1 w) ws ++ map actual is ++ [Bias b].
Definition midpoint_terms (ws : list R) (is : list entry) (b : R) : list term :=
  map Bias ws ++ map at_mid is ++ [Bias b].
Definition size_terms (ws : list R) (is : list entry) (b : R) : list term :=
  map (fun w => Bias (Rabs w)) ws ++ map sizes is ++ [Bias (Rabs b)].

(** The radius that added computes: (R + gamma(k, U) S + gamma(k, A.u) (S + R)) inflate, and what may be lost. *)
Definition added_expr (k S R gU gA inflate absolute reach : R) : expr :=
  Plus (Times (Plus (Plus (Known R) (Times (Known gU) (Known S))) (Times (Known gA) (Plus (Known S) (Known R))))
              (Known inflate))
       (Times (Times (Known (4 * k)) (Plus (Known absolute) (Known TINY))) (Plus (Known 2) (Known reach))).

Section Added.
Variable A : arithmetic.

Lemma added_sums zeros ws is b : (forall t, In t zeros -> dead t) -> (forall e, In e is -> in_ball e) ->
  Rabs (sum value (network_terms zeros ws is b) - sum value (midpoint_terms ws is b)) <= sum spread is /\
  size (network_terms zeros ws is b) <= size (midpoint_terms ws is b) + sum spread is /\
  size (midpoint_terms ws is b) = sum value (size_terms ws is b).
Proof.
  intros Z B. destruct (ball_sums is B) as [D1 D2]. destruct (dead_sums zeros Z) as [V0 S0]. unfold size in *.
  unfold network_terms, midpoint_terms, size_terms. rewrite !sum_app, !V0, !S0.
  assert (E1 : sum value (map (fun w => Prod 1 w) ws) = sum value (map Bias ws)).
  { clear. induction ws as [|w ws IH]; simpl; [reflexivity|rewrite IH; ring]. }
  assert (E2 : sum (fun t => Rabs (value t)) (map (fun w => Prod 1 w) ws) =
               sum (fun t => Rabs (value t)) (map Bias ws)).
  { clear. induction ws as [|w ws IH]; simpl; [reflexivity|rewrite IH, Rmult_1_l; ring]. }
  assert (E3 : sum (fun t => Rabs (value t)) (map Bias ws) = sum value (map (fun w => Bias (Rabs w)) ws)).
  { clear. induction ws as [|w ws IH]; simpl; [reflexivity|now rewrite IH]. }
  assert (E4 := sizes_sum is). unfold size in E4. rewrite E1, E2, E3, <- E4. simpl. split; [|lra].
  match goal with
  | |- Rabs ?x <= _ => replace x with (sum value (map actual is) - sum value (map at_mid is)) by ring
  end.
  exact D1.
Qed.

(** The ball that added returns, radius as computed, contains every value of the arithmetic, where all rows are
    single weights. Here N is the number of rows and inputs, and one for the bias; k = 2 N + 2.
    For: search/parts.py added. *)
Theorem added_encloses powers p0 p1 p2 zeros (ws : list R) (is : list entry)
    (b s mid reach widest Sc Rc gU gA i0 inflate rc r : R) :
  let N := (length ws + length is + 1)%nat in
  let k := 2 * INR N + 2 in
  flushed A <= relative A -> number binary64 (absolute A) -> number binary64 (4 * k) ->
  (forall t, In t zeros -> dead t) ->
  (forall e, In e is -> in_ball e /\ bounded reach widest e) -> 0 <= reach -> 0 <= widest ->
  dots A powers (network_terms zeros ws is b) s -> dots checker p0 (midpoint_terms ws is b) mid ->
  dots checker p1 (size_terms ws is b) Sc -> number binary64 Sc ->
  dots checker p2 (map radii is) Rc -> number binary64 Rc ->
  k * relative A <= 1 / 4 -> k * U <= 1 / 4 ->
  gamma k U <= gU <= 1 -> gamma k (relative A) <= gA <= 1 -> number binary64 gU -> number binary64 gA ->
  rounds (1 + 2 * k * U) i0 -> rounds (i0 * UP) inflate ->
  (reach + widest) * (1 - U) * (1 - U) <= rc -> number binary64 rc ->
  computed (added_expr k Sc Rc gU gA inflate (absolute A) rc) r ->
  Rabs (s - mid) <= r.
Proof.
  intros N k Fl Fa Fk Z B Pr Pw Hs Hm HS FS HR FR KA KU GU GA FgU FgA H0 H1 Hrc Frc Hr.
  pose proof U_pos as Up. destruct U_small as [E Us]. pose proof least_pos as Lp. pose proof TINY_pos as Tp.
  pose proof TINY_least as T64. pose proof (absolute_nonneg A) as T0. pose proof (relative_bounds A) as V0.
  assert (PN : 1 <= INR N) by (apply (le_INR 1); unfold N; lia).
  assert (Nk : INR (2 * N + 2) = k) by (unfold k; rewrite plus_INR, mult_INR; reflexivity).
  assert (Bb : forall e, In e is -> in_ball e) by (intros e I; now apply B).
  destruct (added_sums zeros ws is b Z Bb) as (D1 & D2 & D3).
  assert (R0 := spread_nonneg is Bb). assert (S0 := size_nonneg (midpoint_terms ws is b)).
  (* The arithmetic's error. *)
  assert (Lv : (lives (network_terms zeros ws is b) <= N)%nat).
  { unfold network_terms. rewrite lives_app, (lives_dead zeros Z).
    apply Nat.le_trans with (1 := lives_length _). rewrite !app_length, !map_length. unfold N. simpl. lia. }
  assert (Es : Rabs (s - sum value (network_terms zeros ws is b)) <=
               gamma k (relative A) * size (network_terms zeros ws is b) +
               2 * INR N * absolute A * (2 + widest + reach)).
  { rewrite <- Nk. apply (searched_error A powers _ s reach widest N Fl Pr Pw); trivial; [|now rewrite Nk].
    intros t I D. apply in_app_or in I. destruct I as [I|I]; [now elim D; apply Z|]. apply in_app_or in I.
    destruct I as [I|I]; [apply in_map_iff in I; destruct I as (w & <- & _); left; apply Rabs_R1|].
    apply in_app_or in I. destruct I as [I|[<-|[]]]; [|exact Logic.I].
    apply in_map_iff in I. destruct I as (e & <- & I). destruct (B e I) as [_ Be].
    destruct e as [x m q w|c m q]; simpl in *; [right; right; tauto|exact Logic.I]. }
  (* The error of the midpoint, and of the sums of sizes and radii. *)
  assert (Lm : (length (midpoint_terms ws is b) <= N)%nat).
  { unfold midpoint_terms. rewrite !app_length, !map_length. unfold N. simpl. lia. }
  assert (KN : INR N * U <= 1 / 4) by (unfold k in KU; nra).
  assert (g0 : gamma (INR N) U <= gamma k U).
  { unfold gamma, k. assert (0 <= INR N * U) by (apply Rmult_le_pos; lra).
    replace ((2 * INR N + 2) * U) with (2 * (INR N * U) + 2 * U) by ring. set (x := INR N * U) in *. nra. }
  assert (Em : Rabs (mid - sum value (midpoint_terms ws is b)) <=
               gamma (INR N) U * size (midpoint_terms ws is b) + 3 * INR N * least).
  { pose proof (lives_length (midpoint_terms ws is b)) as Ll.
    assert (Q := linear_error checker p0 _ mid N Hm ltac:(destruct p0; lia) KN).
    change (relative checker) with U in Q. apply Rle_trans with (1 := Q). apply Rplus_le_compat_l.
    unfold lost. change (absolute checker) with least. change (flushed checker) with 0. rewrite mult_INR.
    change (INR 2) with 2.
    assert (INR (lives (midpoint_terms ws is b)) <= INR N) by (apply le_INR; lia). nra. }
  assert (Ps : forall t, In t (size_terms ws is b) -> positive t).
  { intros t I. apply in_app_or in I. destruct I as [I|I]; [|apply in_app_or in I; destruct I as [I|[<-|[]]]].
    - apply in_map_iff in I. destruct I as (w & <- & _). apply Rabs_pos.
    - apply in_map_iff in I. destruct I as (e & <- & _).
      destruct e as [x m q w|c m q]; simpl; [split|]; apply Rabs_pos.
    - apply Rabs_pos. }
  assert (Ls : (length (size_terms ws is b) <= N)%nat).
  { unfold size_terms. rewrite !app_length, !map_length. unfold N. simpl. lia. }
  assert (LS := positive_low p1 _ _ N HS Ps Ls KN). rewrite <- D3 in LS.
  assert (PS := dots_nonneg p1 _ _ HS Ps).
  assert (Pq : forall t, In t (map radii is) -> positive t).
  { intros t I. apply in_map_iff in I. destruct I as (e & <- & I). specialize (Bb e I).
    destruct e as [x m q w|c m q]; simpl in *.
    - pose proof (Rabs_pos (x - m)). split; [lra|apply Rabs_pos].
    - pose proof (Rabs_pos (c - m)). lra. }
  assert (Lq : (length (map radii is) <= N)%nat) by (rewrite map_length; unfold N; lia).
  assert (LR := positive_low p2 _ _ N HR Pq Lq KN). rewrite <- radii_sum in LR.
  assert (PR := dots_nonneg p2 _ _ HR Pq).
  (* The factor inflate. *)
  set (n := INR N) in *. set (gn := gamma n U) in *. set (x := n * U) in *.
  assert (X : 0 <= x <= 1 / 8) by (unfold x; split; [apply Rmult_le_pos; lra|unfold k in KU; nra]).
  assert (Gn : 0 <= gn <= 1 / 4) by (unfold gn, gamma; fold x; nra).
  set (a := 2 * k * U) in *. assert (Pa : 4 * x <= a <= 1 / 2) by (unfold a, x, k in *; nra).
  assert (Nn : NORMAL <= 1) by (rewrite NORMAL_eq; change 1 with (bpow radix2 0); now apply bpow_le).
  assert (I0 := normal_low (1 + a) i0 ltac:(lra) H0).
  assert (J0 : 1 <= i0) by (apply (rounds_ge 1 (1 + a)); [apply number_1|lra|exact H0]).
  assert (J1 : i0 <= 3 / 2).
  { apply (rounds_le (3 / 2) (1 + a)); [|lra|exact H0].
    replace (3 / 2) with (IZR 3 * bpow radix2 (-1)) by (simpl; lra).
    apply generic_format_FLT. now exists (Float radix2 3 (-1)). }
  assert (I1 := normal_low (i0 * UP) inflate ltac:(nra) H1).
  assert (J2 : 1 <= inflate <= 2).
  { split; [apply (rounds_ge 1 (i0 * UP)); [apply number_1|nra|exact H1]|].
    apply (rounds_le 2 (i0 * UP)); [now apply (number_whole 2)|nra|exact H1]. }
  assert (Fi := rounds_number _ _ H1).
  assert (Fair : fair (added_expr k Sc Rc gU gA inflate (absolute A) rc)).
  { assert (0 <= rc) by (apply Rle_trans with (2 := Hrc); apply Rmult_le_pos; [apply Rmult_le_pos|]; lra).
    assert (0 <= gamma k U) by (apply gamma_nonneg; unfold k; lra).
    assert (0 <= gamma k (relative A)) by (apply gamma_nonneg; unfold k; lra).
    simpl. repeat split; trivial; try lra; auto using number_TINY; [unfold k; lra|now apply (number_whole 2)]. }
  assert (L := radius_low _ _ Fair Hr). apply Rle_trans with (2 := L).
  change (operations (added_expr k Sc Rc gU gA inflate (absolute A) rc)) with 11%nat.
  change (exactly (added_expr k Sc Rc gU gA inflate (absolute A) rc)) with
    ((Rc + gU * Sc + gA * (Sc + Rc)) * inflate + 4 * k * (absolute A + TINY) * (2 + rc)).
  assert (Prc : 0 <= rc).
  { apply Rle_trans with (2 := Hrc). apply Rmult_le_pos; [apply Rmult_le_pos|]; lra. }
  assert (SL : slip (added_expr k Sc Rc gU gA inflate (absolute A) rc) <= 6 * least + least * (2 + rc)).
  { simpl. nra. }
  clear L Hr Fair. assert (Q := bernoulli 11).
  change (INR 11) with (1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1) in Q. set (q := (1 - U) ^ 11) in *.
  set (S := size (midpoint_terms ws is b)) in *. set (R := sum spread is) in *. set (t := absolute A) in *.
  set (gr := gamma k (relative A)) in *. set (j := n * least).
  assert (Pj : 0 <= j) by (apply Rmult_le_pos; lra).
  (* inflate makes up for the rounding of the sums, and of the radius itself. *)
  set (M := inflate * q).
  assert (M1 : 1 <= (1 - gn) * M <= 2 /\ M <= 2).
  { assert (L1 : (1 + a) * (1 - U) * UP * (1 - U) <= inflate).
    { apply Rle_trans with (2 := I1). repeat (apply Rmult_le_compat_r; [lra|]). exact I0. }
    assert (L2 : (1 - gn) * (1 + a) >= 1).
    { unfold gn, gamma. fold x. apply Rle_ge. apply Rle_trans with ((1 - x * (1 + 2 * x)) * (1 + 4 * x)); [nra|].
      apply Rmult_le_compat_l; nra. }
    assert (L3 : 1 <= UP * ((1 - U) * (1 - U) * q)).
    { replace UP with (1 + 8192 * U) by lra. assert (1 - 14 * U <= (1 - U) * (1 - U) * q) by nra. nra. }
    assert (Mq : M <= 2) by (unfold M; nra). split; [|exact Mq]. split; [|nra].
    apply Rle_trans with ((1 - gn) * ((1 + a) * (1 - U) * UP * (1 - U) * q)).
    - replace ((1 - gn) * ((1 + a) * (1 - U) * UP * (1 - U) * q)) with
        ((1 - gn) * (1 + a) * (UP * ((1 - U) * (1 - U) * q))) by ring. nra.
    - apply Rmult_le_compat_l; [lra|]. unfold M. apply Rmult_le_compat_r; lra. }
  destruct M1 as [[M1 _] M2]. assert (M0 : 0 <= M) by (unfold M; apply Rmult_le_pos; lra).
  assert (LowS : S - 6 * j <= Sc * M).
  { apply Rle_trans with ((S * (1 - gn) - 3 * n * least) * M); [|apply Rmult_le_compat_r; lra].
    replace ((S * (1 - gn) - 3 * n * least) * M) with (S * ((1 - gn) * M) - 3 * j * M) by (unfold j; ring).
    assert (S * 1 <= S * ((1 - gn) * M)) by (apply Rmult_le_compat_l; lra).
    assert (j * M <= j * 2) by (apply Rmult_le_compat_l; lra). lra. }
  assert (LowR : R - 6 * j <= Rc * M).
  { apply Rle_trans with ((R * (1 - gn) - 3 * n * least) * M); [|apply Rmult_le_compat_r; lra].
    replace ((R * (1 - gn) - 3 * n * least) * M) with (R * ((1 - gn) * M) - 3 * j * M) by (unfold j; ring).
    assert (R * 1 <= R * ((1 - gn) * M)) by (apply Rmult_le_compat_l; lra).
    assert (j * M <= j * 2) by (apply Rmult_le_compat_l; lra). lra. }
  assert (Pgr : 0 <= gr) by (apply gamma_nonneg; unfold k; lra).
  assert (C1 : R + gn * S + gr * (S + R) - 24 * j <= (Rc + gU * Sc + gA * (Sc + Rc)) * inflate * q).
  { replace ((Rc + gU * Sc + gA * (Sc + Rc)) * inflate * q) with
      (Rc * M + gU * (Sc * M) + gA * (Sc * M + Rc * M)) by (unfold M; ring).
    assert (Y1 : gn * S - 6 * j <= gU * (Sc * M)).
    { apply Rle_trans with (gU * (S - 6 * j)); [|apply Rmult_le_compat_l; lra].
      assert (gn * S <= gU * S) by (apply Rmult_le_compat_r; lra).
      assert (gU * j <= 1 * j) by (apply Rmult_le_compat_r; lra). lra. }
    assert (Y2 : gr * (S + R) - 12 * j <= gA * (Sc * M + Rc * M)).
    { apply Rle_trans with (gA * (S + R - 12 * j)); [|apply Rmult_le_compat_l; lra].
      assert (gr * (S + R) <= gA * (S + R)) by (apply Rmult_le_compat_r; lra).
      assert (gA * j <= 1 * j) by (apply Rmult_le_compat_r; lra). lra. }
    lra. }
  (* What may be lost. *)
  set (w := 2 + rc) in *. assert (Pk : 2 * n + 2 = k) by reflexivity.
  assert (C2 : 2 * n * t * (2 + widest + reach) + 2 * k * TINY * w <= 4 * k * (t + TINY) * w * q).
  { assert (W2 : reach + widest <= 2 * rc).
    { assert (1 / 2 <= (1 - U) * (1 - U)) by nra.
      assert ((reach + widest) * (1 / 2) <= (reach + widest) * ((1 - U) * (1 - U))); [|lra].
      apply Rmult_le_compat_l; lra. }
    assert (Z1 : 0 <= k * (t + TINY) * w) by (apply Rmult_le_pos; [apply Rmult_le_pos|]; unfold w; lra).
    assert (Z2 : 2 * (k * (t + TINY) * w) <= 4 * k * (t + TINY) * w * q).
    { replace (4 * k * (t + TINY) * w * q) with ((k * (t + TINY) * w) * (4 * q)) by ring. nra. }
    apply Rle_trans with (2 := Z2).
    assert (Z3 : n * t * (2 + widest + reach) <= k * t * w).
    { apply Rle_trans with (n * t * (2 * w)); [apply Rmult_le_compat_l; [apply Rmult_le_pos|unfold w]; lra|].
      replace (n * t * (2 * w)) with (2 * n * (t * w)) by ring. replace (k * t * w) with (k * (t * w)) by ring.
      apply Rmult_le_compat_r; [apply Rmult_le_pos; unfold w; lra|lra]. }
    lra. }
  assert (C3 : 27 * j + 6 * least + least * w <= 2 * k * TINY * w).
  { assert (Y1 : 128 * least <= TINY) by lra.
    assert (Y2 : k * 2 * (128 * least) <= k * w * TINY).
    { apply Rmult_le_compat; [lra|lra| |exact Y1]. apply Rmult_le_compat_l; unfold w; lra. }
    assert (Y3 : 4 * w * (128 * least) <= k * w * TINY).
    { apply Rmult_le_compat; [unfold w; lra|lra| |exact Y1]. apply Rmult_le_compat_r; unfold w; lra. }
    assert (j <= k * least) by (unfold j; apply Rmult_le_compat_r; lra).
    assert (0 <= least * w) by (apply Rmult_le_pos; unfold w; lra). nra. }
  assert (Tri : Rabs (s - mid) <= Rabs (s - sum value (network_terms zeros ws is b)) + R +
            Rabs (mid - sum value (midpoint_terms ws is b))).
  { set (vn := sum value (network_terms zeros ws is b)) in *. set (vm := sum value (midpoint_terms ws is b)) in *.
    replace (s - mid) with ((s - vn) + (vn - vm) + (- (mid - vm))) by ring.
    pose proof (Rabs_triang ((s - vn) + (vn - vm)) (- (mid - vm))). pose proof (Rabs_triang (s - vn) (vn - vm)).
    rewrite Rabs_Ropp in *. lra. }
  assert (Gs : gr * size (network_terms zeros ws is b) <= gr * (S + R)) by (apply Rmult_le_compat_l; lra).
  rewrite Rmult_plus_distr_r. unfold j in *. lra.
Qed.

End Added.

(** * The slack of a gate *)

(** size (4 gamma(terms, A.u) + 4 gamma(terms, U)) + 4 terms (A.tiny + TINY) reach, as Gate.live computes it. *)
Definition slack_expr (k size gA gU absolute reach : R) : expr :=
  Plus (Times (Known size) (Plus (Times (Known 4) (Known gA)) (Times (Known 4) (Known gU))))
       (Times (Times (Known (4 * k)) (Plus (Known absolute) (Known TINY))) (Known reach)).

(** The network's sum of the terms l is exactly at most T, which the checker computes as [top], of terms that
    are no larger than those of which it computes [size_c]; N is the number of rows' terms and inputs, and one
    for the bias; k = 2 N + 6. Then the slack covers the error of the arithmetic and that of [top]. With
    gate_closed_slack of Gates.v, a gate that is found closed is exactly 0.
    For: search/operations.py Gate.live (slack). *)
Theorem slack_covers (A : arithmetic) powers p0 p1 (l tops sizes_ : list term) (N : nat)
    (s top size_c reach widest gA gU rc slack : R) :
  let k := 2 * INR N + 6 in
  flushed A <= relative A -> number binary64 (absolute A) -> number binary64 (4 * k) ->
  (1 <= N)%nat -> 0 <= reach -> 0 <= widest ->
  (forall t, In t l -> ~ dead t -> searched_term reach widest t) ->
  dots A powers l s -> (lives l <= N)%nat ->
  dots checker p0 tops top -> (lives tops <= N)%nat ->
  dots checker p1 sizes_ size_c -> (forall t, In t sizes_ -> positive t) -> (length sizes_ <= 2 * N + 6)%nat ->
  number binary64 size_c -> size l <= sum value sizes_ -> size tops <= sum value sizes_ ->
  k * relative A <= 1 / 4 -> k * U <= 1 / 4 ->
  gamma k (relative A) <= gA <= 1 -> gamma k U <= gU <= 1 -> number binary64 gA -> number binary64 gU ->
  (2 + widest + reach) * (1 - U) * (1 - U) * (1 - U) <= rc -> number binary64 rc ->
  computed (slack_expr k size_c gA gU (absolute A) rc) slack ->
  Rabs (s - sum value l) + Rabs (top - sum value tops) <= slack.
Proof.
  intros k Fl Fa Fk N1 Pr Pw Tl Hs Ll Ht Lt Hz Pz Lz Fz Sl St KA KU GA GU FgA FgU Hrc Frc Hr.
  pose proof U_pos as Up. destruct U_small as [E Us]. pose proof least_pos as Lp. pose proof TINY_pos as Tp.
  pose proof TINY_least as T64. pose proof (absolute_nonneg A) as T0. pose proof (relative_bounds A) as V0.
  assert (PN : 1 <= INR N) by (apply (le_INR 1); lia).
  assert (N2 : INR (2 * N + 2) = 2 * INR N + 2) by (rewrite plus_INR, mult_INR; reflexivity).
  assert (N6 : INR (2 * N + 6) = k).
  { unfold k. rewrite plus_INR, mult_INR. replace (INR 6) with 6 by (rewrite INR_IZR_INZ; reflexivity).
    reflexivity. }
  assert (Ul : 128 * least <= U).
  { apply Rle_trans with TINY; [lra|].
    with_strategy transparent [TINY U] unfold TINY, U. now apply bpow_le. }
  (* Both errors. *)
  assert (K2 : INR (2 * N + 2) * relative A <= 1 / 4) by (rewrite N2; unfold k in KA; nra).
  assert (Es := searched_error A powers l s reach widest N Fl Pr Pw Tl Hs Ll K2).
  rewrite N2 in Es.
  assert (KN : INR N * U <= 1 / 4) by (unfold k in KU; nra).
  assert (Et : Rabs (top - sum value tops) <= gamma (INR N) U * size tops + 3 * INR N * least).
  { assert (Q := linear_error checker p0 _ top N Ht ltac:(destruct p0; lia) KN).
    change (relative checker) with U in Q. apply Rle_trans with (1 := Q). apply Rplus_le_compat_l.
    unfold lost. change (absolute checker) with least. change (flushed checker) with 0. rewrite mult_INR.
    change (INR 2) with 2. assert (INR (lives tops) <= INR N) by (apply le_INR; lia). nra. }
  (* The sum of sizes, as computed. *)
  assert (LS := positive_low p1 _ _ (2 * N + 6) Hz Pz Lz ltac:(now rewrite N6)). rewrite N6 in LS.
  assert (PS := dots_nonneg p1 _ _ Hz Pz).
  set (n := INR N) in *. set (Z := sum value sizes_) in *. set (t := absolute A) in *.
  set (gr := gamma k (relative A)) in *. set (gu := gamma k U) in *.
  assert (Pk : 8 <= k) by (unfold k; lra).
  assert (Gu : U <= gu <= 3 / 8).
  { unfold gu, gamma. assert (0 <= k * U) by (apply Rmult_le_pos; lra). set (x := k * U) in *.
    assert (U <= x) by (unfold x; nra). nra. }
  assert (Mono : forall m q, 0 <= m <= k -> 0 <= q -> gamma m q <= gamma k q).
  { intros m q Pm Pq. unfold gamma. assert (0 <= m * q <= k * q) by nra. nra. }
  assert (G1 : gamma (2 * n + 2) (relative A) <= gr) by (apply Mono; unfold k; lra).
  assert (G2 : gamma n U <= gu) by (apply Mono; unfold k; lra).
  assert (G0 : 0 <= gr) by (apply gamma_nonneg; lra).
  assert (P0 : 0 <= size l) by apply size_nonneg. assert (P1 : 0 <= size tops) by apply size_nonneg.
  assert (Pz0 : 0 <= Z) by lra.
  assert (Prc : 1 <= rc).
  { apply Rle_trans with (2 := Hrc). assert (1 / 2 <= (1 - U) * (1 - U) * (1 - U)) by nra. nra. }
  assert (W2 : 2 + widest + reach <= 2 * rc).
  { assert (1 / 2 <= (1 - U) * (1 - U) * (1 - U)) by nra.
    assert ((2 + widest + reach) * (1 / 2) <= (2 + widest + reach) * ((1 - U) * (1 - U) * (1 - U))); [|lra].
    apply Rmult_le_compat_l; lra. }
  (* The slack, as computed. *)
  assert (Fair : fair (slack_expr k size_c gA gU t rc)).
  { simpl. repeat split; trivial; try lra; auto using number_TINY; now apply (number_whole 4). }
  assert (L := radius_low _ _ Fair Hr). apply Rle_trans with (2 := L).
  change (operations (slack_expr k size_c gA gU t rc)) with 8%nat.
  change (exactly (slack_expr k size_c gA gU t rc)) with
    (size_c * (4 * gA + 4 * gU) + 4 * k * (t + TINY) * rc).
  assert (SL : slip (slack_expr k size_c gA gU t rc) <= 2 * least * size_c + least * rc + 2 * least).
  { simpl. nra. }
  clear L Hr Fair. assert (Q := bernoulli 8).
  change (INR 8) with (1 + 1 + 1 + 1 + 1 + 1 + 1 + 1) in Q. set (q := (1 - U) ^ 8) in *.
  assert (Q1 : 15 / 16 <= q <= 1) by lra.
  (* Sizes: 5/8 of the exact ones, times four, are more than the errors need. *)
  set (g := gA + gU) in *. assert (Pg : U <= g <= 2) by (unfold g; lra).
  assert (C1 : Z * g - 24 * k * least <= size_c * (4 * gA + 4 * gU) * q - 2 * least * size_c).
  { assert (Y0 : 0 <= size_c * g) by (apply Rmult_le_pos; lra).
    assert (Y1 : 2 * least * size_c <= size_c * g * (1 / 16)).
    { replace (2 * least * size_c) with (size_c * (2 * least)) by ring.
      rewrite Rmult_assoc. apply Rmult_le_compat_l; lra. }
    assert (Y2 : size_c * g * (15 / 4) <= size_c * (4 * gA + 4 * gU) * q).
    { replace (size_c * (4 * gA + 4 * gU) * q) with (size_c * g * (4 * q)) by (unfold g; ring).
      apply Rmult_le_compat_l; lra. }
    assert (Y3 : (Z * (5 / 8) - 3 * k * least) * g <= size_c * g).
    { apply Rmult_le_compat_r; [lra|]. apply Rle_trans with (2 := LS). fold gu.
      assert (Z * (5 / 8) <= Z * (1 - gu)) by (apply Rmult_le_compat_l; lra). lra. }
    assert (Y4 : k * least * g <= k * least * 2).
    { apply Rmult_le_compat_l; [apply Rmult_le_pos|]; lra. }
    assert (0 <= k * least) by (apply Rmult_le_pos; lra).
    assert (0 <= Z * g) by (apply Rmult_le_pos; lra). lra. }
  assert (C2 : 2 * n * t * (2 + widest + reach) + 2 * k * TINY * rc <= 4 * k * (t + TINY) * rc * q).
  { assert (Z1 : 0 <= k * (t + TINY) * rc) by (apply Rmult_le_pos; [apply Rmult_le_pos|]; lra).
    assert (Z2 : 2 * (k * (t + TINY) * rc) <= 4 * k * (t + TINY) * rc * q).
    { replace (4 * k * (t + TINY) * rc * q) with ((k * (t + TINY) * rc) * (4 * q)) by ring. nra. }
    apply Rle_trans with (2 := Z2).
    assert (Z3 : n * t * (2 + widest + reach) <= k * t * rc).
    { apply Rle_trans with (n * t * (2 * rc)); [apply Rmult_le_compat_l; [apply Rmult_le_pos|]; lra|].
      replace (n * t * (2 * rc)) with (2 * n * (t * rc)) by ring. replace (k * t * rc) with (k * (t * rc)) by ring.
      apply Rmult_le_compat_r; [apply Rmult_le_pos; lra|unfold k; lra]. }
    lra. }
  assert (C3 : 24 * k * least + 3 * n * least + least * rc + 2 * least <= 2 * k * TINY * rc).
  { assert (Y1 : 128 * least <= TINY) by lra.
    assert (Y2 : k * 1 * (128 * least) <= k * rc * TINY).
    { apply Rmult_le_compat; [lra|lra| |exact Y1]. apply Rmult_le_compat_l; lra. }
    assert (Y3 : 8 * rc * (128 * least) <= k * rc * TINY).
    { apply Rmult_le_compat; [lra|lra| |exact Y1]. apply Rmult_le_compat_r; lra. }
    assert (n * least <= k * least) by (apply Rmult_le_compat_r; unfold k; lra).
    assert (0 <= least * rc) by (apply Rmult_le_pos; lra). assert (8 * least <= k * least) by nra. lra. }
  assert (X1 : gamma (2 * n + 2) (relative A) * size l <= gA * Z) by (apply Rmult_le_compat; try lra;
    apply gamma_nonneg; lra).
  assert (X2 : gamma n U * size tops <= gU * Z) by (apply Rmult_le_compat; try lra; apply gamma_nonneg; lra).
  rewrite Rmult_plus_distr_r. unfold g in *. lra.
Qed.
