(** The radius of a weight of the softmax, as float64 computes it: [softmax_encloses]; and what underflow may do
    to a weight, [underflow_moves]. For: core/balls.py softmax, where no logit is wide. *)

From Coq Require Import Reals ZArith List Permutation Lra Lia.
From Flocq Require Import Core.
From Onelayer Require Import Arithmetic Rounding DotError Radius Enclosures Softmax.
Import ListNotations.
Open Scope R_scope.

(** What the code knows of a logit: its bound L, computed as Lh, its weight as computed, ph, and (L + 1) L p,
    computed as e. The exact quotient of the checker's own exponentials is q. *)
Record item := Item { q : R; L : R; Lh : R; ph : R; e : R }.

Definition product_of (i : item) : expr :=
  Times (Times (Plus (Known (Lh i)) (Known 1)) (Known (Lh i))) (Known (ph i)).

(** Lh was multiplied by UP at the end, which leaves room for 4,000 roundings. *)
Definition known (n : nat) (i : item) : Prop :=
  number binary64 (Lh i) /\ number binary64 (ph i) /\ 0 <= L i /\ L i <= Lh i <= 1 /\ 0 <= ph i <= 2 /\
  0 <= q i /\ q i * (1 - gamma (INR (n + 1)) U) - least <= ph i /\ computed (product_of i) (e i).

Definition share (i : item) : R := q i * (L i + L i * L i).

Lemma product_low_bound n i : 0 <= gamma (INR (n + 1)) U <= 1 -> known n i ->
  0 <= e i /\ share i * ((1 - gamma (INR (n + 1)) U) * (1 - 3 * U)) - 6 * least <= e i.
Proof.
  intros G (Fl & Fp & L0 & Ll & Pp & Q0 & Qp & He). pose proof U_pos as Up. destruct U_small as [E Us].
  pose proof least_pos as Lp.
  assert (F : fair (product_of i)) by (simpl; repeat split; try lra; auto using number_1).
  destruct (computed_fair _ _ F He) as [_ Pe]. split; [exact Pe|].
  assert (R := radius_low _ _ F He). change (operations (product_of i)) with 3%nat in R.
  change (exactly (product_of i)) with ((Lh i + 1) * Lh i * ph i) in R.
  assert (SL : slip (product_of i) <= 3 * least).
  { simpl. assert (least * ph i <= least * 2) by (apply Rmult_le_compat_l; lra). lra. }
  assert (Q := bernoulli 3). simpl INR in Q. set (c := (1 - U) ^ 3) in *. set (g := gamma (INR (n + 1)) U) in *.
  assert (A : L i + L i * L i <= (Lh i + 1) * Lh i).
  { assert (L i * L i <= Lh i * Lh i) by (apply Rmult_le_compat; lra). lra. }
  assert (A0 : 0 <= L i * L i) by (now apply Rmult_le_pos).
  assert (A2 : (L i + L i * L i) <= 2) by (assert (L i * L i <= 1 * 1) by (apply Rmult_le_compat; lra); lra).
  assert (B : (L i + L i * L i) * (q i * (1 - g) - least) <= (Lh i + 1) * Lh i * ph i).
  { apply Rle_trans with ((L i + L i * L i) * ph i); [apply Rmult_le_compat_l; lra|apply Rmult_le_compat_r; lra]. }
  unfold share.
  destruct (Rle_lt_dec (q i * (1 - g) - least) 0) as [N|N].
  - assert (q i * (L i + L i * L i) * ((1 - g) * (1 - 3 * U)) <= 2 * least); [|lra].
    replace (q i * (L i + L i * L i) * ((1 - g) * (1 - 3 * U))) with
      ((q i * (1 - g)) * ((L i + L i * L i) * (1 - 3 * U))) by ring.
    assert ((L i + L i * L i) * (1 - 3 * U) <= 2 * 1) by (apply Rmult_le_compat; lra).
    assert (0 <= (L i + L i * L i) * (1 - 3 * U)) by (apply Rmult_le_pos; lra).
    assert (0 <= q i * (1 - g)) by (apply Rmult_le_pos; lra).
    rewrite (Rmult_comm 2). apply Rmult_le_compat; lra.
  - assert (B0 : 0 <= (L i + L i * L i) * (q i * (1 - g) - least)) by (apply Rmult_le_pos; lra).
    assert (C : (L i + L i * L i) * (q i * (1 - g) - least) * (1 - 3 * U) <= (Lh i + 1) * Lh i * ph i * c).
    { apply Rmult_le_compat; lra. }
    assert (D : (L i + L i * L i) * least * (1 - 3 * U) <= 2 * least * 1).
    { apply Rmult_le_compat; [apply Rmult_le_pos; lra|lra| |lra]. apply Rmult_le_compat_r; lra. }
    lra.
Qed.

(** E as computed is at least the weighted sum of the L + L^2, but for what underflows. *)
Lemma expected_low (l : list item) (n : nat) (Sg i0 E1 Eh : R) :
  (forall i, In i l -> known n i) -> (length l <= n)%nat -> (1 <= n)%nat -> (INR n + 1) * U <= 1 / 64 ->
  dots checker false (map (fun i => Bias (e i)) l) Sg -> number binary64 Sg ->
  rounds (1 + 8 * INR n * U) i0 -> rounds (Sg * i0) E1 -> rounds (E1 * UP) Eh ->
  0 <= Eh /\ number binary64 Eh /\ sum share l * (1 + 4000 * U) - 40 * INR n * least <= Eh.
Proof.
  intros K Len N1 Hn HS FS H0 H1 H2. pose proof U_pos as Up. destruct U_small as [EU Us].
  pose proof least_pos as Lp.
  apply le_INR in N1. change (INR 1) with 1 in N1.
  assert (Nn : INR (n + 1) = INR n + 1) by (rewrite plus_INR; reflexivity).
  set (x := (INR n + 1) * U) in *. assert (X : 0 <= x) by (apply Rmult_le_pos; lra).
  set (g := gamma (INR (n + 1)) U). assert (G : 0 <= g <= 33 / 32 * x).
  { unfold g, gamma. rewrite Nn. fold x. assert (x * x <= x * (1 / 64)) by (apply Rmult_le_compat_l; lra).
    assert (0 <= x * x) by (now apply Rmult_le_pos). lra. }
  assert (Gn : gamma (INR n) U <= g).
  { unfold g, gamma. rewrite Nn. fold x. set (y := INR n * U).
    assert (Y : 0 <= y <= x) by (unfold y, x; split; [apply Rmult_le_pos|apply Rmult_le_compat_r]; lra).
    apply Rmult_le_compat; lra. }
  assert (Pos : forall t, In t (map (fun i => Bias (e i)) l) -> positive t).
  { intros t I. apply in_map_iff in I. destruct I as (i & <- & I). simpl.
    apply (product_low_bound n i); [fold g; lra|now apply K]. }
  assert (Ps := dots_nonneg _ _ _ HS Pos).
  assert (Low := positive_low false _ Sg n HS Pos ltac:(now rewrite map_length) ltac:(unfold x in Hn; lra)).
  assert (Sum : sum share l * ((1 - g) * (1 - 3 * U)) - 6 * INR n * least <=
    sum value (map (fun i => Bias (e i)) l)).
  { apply Rle_trans with (sum share l * ((1 - g) * (1 - 3 * U)) - 6 * INR (length l) * least).
    - apply le_INR in Len. assert (INR (length l) * least <= INR n * least) by (apply Rmult_le_compat_r; lra). lra.
    - clear - K G Hn Lp. induction l as [|i l IH]; [simpl; lra|]. change (length (i :: l)) with (S (length l)).
      rewrite S_INR. specialize (IH ltac:(intros; apply K; now right)).
      destruct (product_low_bound n i) as [_ B]; [fold g; lra|apply K; now left|]. fold g in B. simpl in *. lra. }
  assert (S0 : 0 <= sum share l).
  { apply sum_nonneg. intros i I. destruct (K i I) as (_ & _ & L0 & _ & _ & Q0 & _). unfold share.
    apply Rmult_le_pos; [exact Q0|]. assert (0 <= L i * L i) by (now apply Rmult_le_pos). lra. }
  set (S := sum share l) in *. set (V := sum value (map (fun i => Bias (e i)) l)) in *.
  assert (V0 : 0 <= V) by (unfold V; rewrite <- (positive_size _ Pos); apply size_nonneg).
  assert (NL : 0 <= INR n * least) by (apply Rmult_le_pos; lra).
  assert (Sg1 : S * ((1 - g) * (1 - 3 * U) * (1 - g)) - 9 * INR n * least <= Sg).
  { assert (V * (1 - g) <= V * (1 - gamma (INR n) U)) by (apply Rmult_le_compat_l; lra).
    assert (B := Rmult_le_compat_r (1 - g) _ _ ltac:(lra) Sum).
    assert (6 * INR n * least * (1 - g) <= 6 * INR n * least * 1) by (apply Rmult_le_compat_l; lra). lra. }
  (* the three factors *)
  set (a := 8 * INR n * U) in *. assert (A4 : 4 * x <= a <= 8 * x) by (unfold a, x; split; [|]; nra).
  assert (NN : NORMAL <= 1) by (pose proof U_normal; lra).
  assert (I0 := normal_low (1 + a) i0 ltac:(lra) H0).
  assert (I1 : 1 <= i0) by (apply (rounds_ge 1 (1 + a)); [apply number_1|lra|exact H0]).
  assert (I2 : i0 <= 2) by (apply (rounds_le 2 (1 + a)); [now apply (number_whole 2)|lra|exact H0]).
  assert (P1 : 0 <= Sg * i0) by (apply Rmult_le_pos; lra).
  assert (L1 := product_low (Sg * i0) E1 P1 H1). assert (E10 := rounds_nonneg _ _ P1 H1).
  assert (P2 : 0 <= E1 * UP) by (apply Rmult_le_pos; lra).
  assert (L2 := product_low (E1 * UP) Eh P2 H2). assert (Eh0 := rounds_nonneg _ _ P2 H2).
  split; [exact Eh0|]. split; [now apply (rounds_number (E1 * UP))|].
  assert (U2 : 0 <= U * U <= U * (1 / 1024)) by (split; [apply Rmult_le_pos|apply Rmult_le_compat_l]; lra).
  set (M := (1 + a) * ((1 - U) * (1 - U) * (1 - U) * UP)).
  assert (L3 : Sg * M - 3 * least <= Eh).
  { apply Rle_trans with (2 := L2).
    apply Rle_trans with ((Sg * i0 * (1 - U) - least) * UP * (1 - U) - least).
    - assert (Sg * ((1 + a) * (1 - U)) <= Sg * i0) by (now apply Rmult_le_compat_l).
      set (k := (1 - U) * UP * (1 - U)). assert (K1 : 0 <= k <= 2).
      { unfold k. destruct (product_bounds 0 0 1 (3 / 2) (1 - U) UP); try lra.
        destruct (product_bounds 0 0 (3 / 2) 1 ((1 - U) * UP) (1 - U)); lra. }
      assert (Sg * ((1 + a) * (1 - U)) * k <= Sg * i0 * k) by (apply Rmult_le_compat_r; lra).
      assert (least * UP * (1 - U) <= 2 * least).
      { assert (UP * (1 - U) <= (3 / 2) * 1) by (apply Rmult_le_compat; lra).
        rewrite Rmult_assoc, (Rmult_comm 2). apply Rmult_le_compat_l; lra. }
      unfold k, M in *. lra.
    - apply Rplus_le_compat_r. apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat_r; lra. }
  assert (G1 : 1 <= (1 - g) * (1 - g) * (1 + a)).
  { assert (Gx : 1 - 33 / 16 * x <= (1 - g) * (1 - g)).
    { assert (0 <= g * g) by (apply Rmult_le_pos; lra). lra. }
    apply Rle_trans with ((1 - 33 / 16 * x) * (1 + 4 * x)).
    - assert (x * x <= x * (1 / 64)) by (apply Rmult_le_compat_l; lra). lra.
    - apply Rmult_le_compat; lra. }
  assert (G2 : 1 + 4000 * U <= (1 - 3 * U) * ((1 - U) * (1 - U) * (1 - U) * UP)).
  { destruct (bernoulli 3) as [B3 _]. simpl INR in B3.
    replace ((1 - U) ^ 3) with ((1 - U) * (1 - U) * (1 - U)) in B3 by ring.
    apply Rle_trans with ((1 - 3 * U) * ((1 - 3 * U) * UP)).
    - replace UP with (1 + 8192 * U) by lra.
      assert (U * (U * U) <= U * U) by (rewrite <- (Rmult_1_l (U * U)) at 2;
        apply Rmult_le_compat_r; lra). assert (0 <= U * (U * U)) by (apply Rmult_le_pos; lra). lra.
    - apply Rmult_le_compat_l; [lra|]. apply Rmult_le_compat_r; lra. }
  assert (M3 : 0 <= M <= 3).
  { unfold M. assert (0 <= (1 - U) * (1 - U) * (1 - U) * UP <= 3 / 2).
    { destruct (product_bounds 0 0 1 1 (1 - U) (1 - U)); try lra.
      destruct (product_bounds 0 0 1 1 ((1 - U) * (1 - U)) (1 - U)); try lra.
      destruct (product_bounds 0 0 1 (3 / 2) ((1 - U) * (1 - U) * (1 - U)) UP); lra. }
    destruct (product_bounds 0 0 (9 / 8) (3 / 2) (1 + a) ((1 - U) * (1 - U) * (1 - U) * UP)); lra. }
  assert (G3 : S * (1 + 4000 * U) <= S * ((1 - g) * (1 - 3 * U) * (1 - g)) * M).
  { replace (S * ((1 - g) * (1 - 3 * U) * (1 - g)) * M) with
      (S * ((1 - g) * (1 - g) * (1 + a) * ((1 - 3 * U) * ((1 - U) * (1 - U) * (1 - U) * UP)))) by (unfold M; ring).
    apply Rmult_le_compat_l; [exact S0|]. rewrite <- (Rmult_1_l (1 + 4000 * U)). apply Rmult_le_compat; lra. }
  assert (B := Rmult_le_compat_r M _ _ ltac:(lra) Sg1).
  assert (9 * INR n * least * M <= 9 * INR n * least * 3) by (apply Rmult_le_compat_l; lra).
  assert (1 * least <= INR n * least) by (apply Rmult_le_compat_r; lra).
  lra.
Qed.

(** The items are the logits: q is the exact quotient, L the bound. *)
Definition same (total : R) (i : item) (j : logit) : Prop := q i = w j / total /\ L i = bound j.

Lemma shares_cost (l : list item) (ls : list logit) (total : R) : 0 < total -> Forall2 (same total) l ls ->
  sum cost ls = total * sum share l.
Proof.
  intros P F. induction F as [|i j l ls [Eq El] F IH]; simpl; [ring|]. rewrite IH. unfold share, cost.
  rewrite Eq, El.
  field. lra.
Qed.

(** The weight s of the arithmetic lies in the ball (ph, r) with r as computed: ((v + 1) v) p + lost, v = L + (E
    + g). What underflow does to the weight, delta, has to be below 7/8 of lost. For: core/balls.py softmax,
    where v is at most 1. *)
Theorem softmax_encloses (l : list item) (ls : list logit) (i : item) (j : logit) (n : nat)
    (Sg i0 E1 Eh g1 g2 gh t vh lostc r s s0 delta : R) :
  (forall i, In i l -> known n i) -> (length l <= n)%nat -> (1 <= n)%nat -> (INR n + 1) * U <= 1 / 64 ->
  Forall2 (same (sum w ls)) l ls -> (forall j, In j ls -> fine j) -> 0 < sum w ls ->
  In i l -> In j ls -> same (sum w ls) i j ->
  dots checker false (map (fun i => Bias (e i)) l) Sg -> number binary64 Sg ->
  rounds (1 + 8 * INR n * U) i0 -> rounds (Sg * i0) E1 -> rounds (E1 * UP) Eh ->
  0 <= g1 <= 3 / 8 -> 0 <= g2 <= 3 / 8 -> 8 * U <= 2 * g1 + 2 * g2 -> (2 * g1 + 2 * g2) * (1 + 4000 * U) <= gh ->
  number binary64 gh -> L i * (1 + 4000 * U) <= Lh i ->
  Rabs (q i - ph i) <= g1 * ph i -> Rabs (s0 - moved j / sum moved ls) <= g2 * (moved j / sum moved ls) ->
  Rabs (s - s0) <= delta -> delta + 8 * least <= lostc * (7 / 8) -> number binary64 lostc ->
  rounds (Eh + gh) t -> rounds (Lh i + t) vh -> vh <= 1 ->
  computed (Plus (Times (Times (Plus (Known vh) (Known 1)) (Known vh)) (Known (ph i))) (Known lostc)) r ->
  Rabs (s - ph i) <= r.
Proof.
  intros K Len N1 Hn F Fi W I J Same HS FS H0 H1 H2 G1 G2 G8 Gh Fg Li Hp Hs Hd Hl Fl Ht Hv V1 Hr.
  pose proof U_pos as Up. destruct U_small as [EU Us]. pose proof least_pos as Lp. destruct U_numeric as [Un Ul].
  destruct (expected_low l n Sg i0 E1 Eh K Len N1 Hn HS FS H0 H1 H2) as (E0 & FE & El).
  assert (S0 : 0 <= sum share l).
  { apply sum_nonneg. intros a A. destruct (K a A) as (_ & _ & L0 & _ & _ & Q0 & _). unfold share.
    apply Rmult_le_pos; [exact Q0|]. assert (0 <= L a * L a) by (now apply Rmult_le_pos). lra. }
  set (E := sum share l) in *. destruct Same as [Eq EL].
  destruct (K i I) as (FLh & Fph & L0 & Ll & Pp & Q0 & _).
  set (v := L i + E + 2 * g1 + 2 * g2).
  (* the computed v is at least v *)
  assert (T1 := sum_low Eh gh t FE Fg ltac:(nra) Ht). assert (Ft := rounds_number _ _ Ht).
  assert (T0 : 0 <= t) by (apply rounds_nonneg with (Eh + gh); [nra|exact Ht]).
  assert (V2 := sum_low (Lh i) t vh FLh Ft ltac:(lra) Hv). assert (Fv := rounds_number _ _ Hv).
  assert (V0 : 0 <= vh) by (apply rounds_nonneg with (Lh i + t); [lra|exact Hv]).
  assert (U2 : 0 <= U * U <= U * (1 / 1024)) by (split; [apply Rmult_le_pos|apply Rmult_le_compat_l]; lra).
  pose proof (pos_INR n) as Pn.
  assert (NL : 40 * INR n * least <= 1000 * U * (8 * U)).
  { assert (A := least_cube). apply (Rmult_le_compat_l (INR n)) in A; [|exact Pn].
    assert (B : INR n * U * (U * U) <= 1 / 64 * (U * U)) by (apply Rmult_le_compat_r; lra). lra. }
  assert (Pv : 8 * U <= v) by (unfold v; lra).
  assert (Vv : v * (1 + 2000 * U) <= vh).
  { apply Rle_trans with (2 := V2). apply Rle_trans with ((Lh i + (Eh + gh) * (1 - U)) * (1 - U)).
    - assert (A : v * (1 + 3000 * U) <= Lh i + (Eh + gh)).
      { assert (1000 * U * (8 * U) <= 1000 * U * v) by (apply Rmult_le_compat_l; lra). unfold v in *. lra. }
      assert (A0 : 0 <= v * (1 + 3000 * U)) by (apply Rmult_le_pos; lra).
      assert (Lh i * (1 - U) <= Lh i * 1) by (apply Rmult_le_compat_l; lra).
      apply Rle_trans with ((Lh i + (Eh + gh)) * ((1 - U) * (1 - U))).
      + apply Rle_trans with (v * (1 + 3000 * U) * ((1 - U) * (1 - U))).
        * rewrite Rmult_assoc. apply Rmult_le_compat_l; [lra|].
          apply Rle_trans with ((1 + 3000 * U) * (1 - 2 * U)); [lra|]. apply Rmult_le_compat_l; lra.
        * apply Rmult_le_compat_r; [|exact A]. apply Rmult_le_pos; lra.
      + rewrite <- Rmult_assoc. apply Rmult_le_compat_r; lra.
    - apply Rmult_le_compat_r; [lra|]. lra. }
  assert (VU : v <= v * (1 + 2000 * U)) by (assert (0 <= v * (2000 * U)) by (apply Rmult_le_pos; lra); lra).
  assert (Pv1 : v <= 1) by lra.
  assert (B : Rabs (s0 - ph i) <= (v + 1) * v * ph i).
  { unfold v. rewrite EL. apply (softmax_ball ls j E g1 g2 (ph i) s0 Fi J W S0); trivial; try lra.
    - rewrite (shares_cost l ls (sum w ls) W F). fold E. lra.
    - rewrite <- Eq. exact Hp.
    - rewrite <- EL. exact Pv1. }
  assert (D0 : 0 <= delta) by (apply Rle_trans with (2 := Hd); apply Rabs_pos).
  set (x := Plus (Times (Times (Plus (Known vh) (Known 1)) (Known vh)) (Known (ph i))) (Known lostc)) in *.
  assert (Fx : fair x) by (simpl; repeat split; try lra; auto using number_1).
  assert (R := radius_low x r Fx Hr). change (operations x) with 4%nat in R.
  change (exactly x) with ((vh + 1) * vh * ph i + lostc) in R.
  assert (SL : slip x <= 3 * least).
  { simpl. assert (least * ph i <= least * 2) by (apply Rmult_le_compat_l; lra). lra. }
  assert (Q := bernoulli 4). change (INR 4) with (1 + 1 + 1 + 1) in Q. set (c := (1 - U) ^ 4) in *.
  assert (X1 : (v + 1) * v * ph i <= (vh + 1) * vh * ph i * c).
  { replace ((vh + 1) * vh * ph i * c) with ((vh + 1) * (vh * c) * ph i) by ring.
    apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat; try lra.
    apply Rle_trans with (v * (1 + 2000 * U) * (1 - 4 * U)); [|apply Rmult_le_compat; lra].
    rewrite <- (Rmult_1_r v) at 1. rewrite Rmult_assoc. apply Rmult_le_compat_l; lra. }
  assert (X2 : lostc * (7 / 8) <= lostc * c) by (apply Rmult_le_compat_l; lra).
  replace (s - ph i) with ((s - s0) + (s0 - ph i)) by ring. pose proof (Rabs_triang (s - s0) (s0 - ph i)). lra.
Qed.

(** * Underflow *)

(** Exponentials that are off by at most T in absolute terms, but for one that is exactly 1, move a weight by at
    most n T: the denominators are at least 1. For: core/balls.py softmax, lost. *)
Theorem underflow_moves (l : list (R * R)) (T a b : R) :
  0 <= T -> (forall p, In p l -> 0 <= fst p /\ 0 <= snd p /\ Rabs (fst p - snd p) <= T) ->
  In (a, b) ((1, 1) :: l) ->
  let D := 1 + sum fst l in let D' := 1 + sum snd l in
  Rabs (a / D - b / D') <= INR (length l + 1) * T.
Proof.
  intros PT H I D D'.
  assert (P : 0 <= sum fst l) by (apply sum_nonneg; intros p J; apply (H p J)).
  assert (P' : 0 <= sum snd l) by (apply sum_nonneg; intros p J; apply (H p J)).
  assert (X : Rabs (D - D') <= INR (length l) * T).
  { unfold D, D'. clear - H PT.
    induction l as [|p l IH]; [simpl; rewrite Rminus_diag_eq by reflexivity; rewrite Rabs_R0; lra|].
    specialize (IH ltac:(intros; apply H; now right)). destruct (H p (or_introl eq_refl)) as (_ & _ & B).
    change (length (p :: l)) with (S (length l)). rewrite S_INR. simpl.
    replace (1 + (fst p + sum fst l) - (1 + (snd p + sum snd l))) with
      ((fst p - snd p) + (1 + sum fst l - (1 + sum snd l))) by ring.
    pose proof (Rabs_triang (fst p - snd p) (1 + sum fst l - (1 + sum snd l))). lra. }
  assert (AB : Rabs (a - b) <= T /\ 0 <= b <= D').
  { destruct I as [Eq|I].
    - injection Eq as <- <-. rewrite Rminus_diag_eq, Rabs_R0 by reflexivity. unfold D'. lra.
    - destruct (H _ I) as (A & B & C). simpl in *. split; [exact C|]. split; [exact B|]. unfold D'.
      assert (b <= sum snd l); [|lra]. clear - H I. induction l as [|p l IH]; [easy|].
      assert (0 <= sum snd l) by (apply sum_nonneg; intros x J; apply (H x (or_intror J))).
      assert (0 <= snd p) by (apply (H p (or_introl eq_refl))). destruct I as [->|I]; simpl; [lra|].
      specialize (IH ltac:(intros; apply H; now right) I). lra. }
  destruct AB as [AB [B0 B1]]. assert (D1 : 1 <= D) by (unfold D; lra). assert (D1' : 1 <= D') by (unfold D'; lra).
  replace (a / D - b / D') with ((a - b) * / D + b / D' * - (D - D') * / D) by (field; lra).
  apply Rle_trans with (1 := Rabs_triang _ _). rewrite !Rabs_mult, Rabs_Ropp.
  assert (ID : 0 <= / D <= 1).
  { split; [left; apply Rinv_0_lt_compat; lra|]. rewrite <- Rinv_1. apply Rinv_le_contravar; lra. }
  assert (Q : 0 <= b / D' <= 1).
  { split; [apply Rmult_le_pos; [exact B0|left; apply Rinv_0_lt_compat; lra]|].
    apply Rmult_le_reg_r with D'; [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra. }
  rewrite (Rabs_pos_eq (/ D)), (Rabs_pos_eq (b / D')) by lra. pose proof (Rabs_pos (a - b)).
  pose proof (Rabs_pos (D - D')).
  assert (Rabs (a - b) * / D <= T * 1) by (apply Rmult_le_compat; lra).
  assert (b / D' * Rabs (D - D') * / D <= 1 * (INR (length l) * T) * 1).
  { apply Rmult_le_compat; [apply Rmult_le_pos; lra|lra|apply Rmult_le_compat; lra|lra]. }
  rewrite plus_INR. change (INR 1) with 1. lra.
Qed.

(** * Exponents *)

(** The checker's own exponential is off by a factor 1 +- 8 U, so its logarithm by at most 9 U. *)
Lemma own_logarithm (x y : R) : 0 < x -> Rabs (y - x) <= 8 * U * x -> 0 < y /\ Rabs (ln y - ln x) <= 9 * U.
Proof.
  intros P H. pose proof U_pos as Up. destruct U_small as [_ Us].
  assert (S : - (8 * U * x) <= y - x <= 8 * U * x) by (revert H; unfold Rabs; destruct (Rcase_abs (y - x)); lra).
  assert (X8 : 8 * U * x <= 1 / 2 * x) by (apply Rmult_le_compat_r; lra).
  assert (Y : 0 < y) by lra. split; [exact Y|].
  assert (A := exp_above (9 * U)).
  assert (U2 : 0 <= U * U <= U * (1 / 1024)) by (split; [apply Rmult_le_pos|apply Rmult_le_compat_l]; lra).
  assert (Up1 : ln y <= ln x + 9 * U).
  { rewrite <- (ln_exp (9 * U)), <- ln_mult by (trivial; apply exp_pos).
    destruct (Rle_lt_or_eq_dec y (x * exp (9 * U))) as [L| <-]; [|left; now apply ln_increasing|lra].
    apply Rle_trans with (x * (1 + 9 * U)); [|apply Rmult_le_compat_l; lra].
    assert (0 <= U * x) by (apply Rmult_le_pos; lra). lra. }
  assert (Lo1 : ln x <= ln y + 9 * U).
  { rewrite <- (ln_exp (9 * U)), <- ln_mult by (trivial; apply exp_pos).
    assert (Q : x <= y * exp (9 * U)).
    { apply Rle_trans with (x * (1 - 8 * U) * (1 + 9 * U)).
      - rewrite Rmult_assoc. rewrite <- (Rmult_1_r x) at 1. apply Rmult_le_compat_l; lra.
      - apply Rmult_le_compat; [apply Rmult_le_pos; lra|lra|lra|lra]. }
    destruct (Rle_lt_or_eq_dec _ _ Q) as [L|E]; [left; now apply ln_increasing|rewrite E at 1; apply Rle_refl]. }
  unfold Rabs. destruct (Rcase_abs (ln y - ln x)); lra.
Qed.

(** The exponents of the arithmetic and of the checker differ, up to a shift that is the same for all, by at most
    |t| (2 U + 6 u) + r + 12 u r* + 15 U + exp_error. Here t is m - m* as computed, y the logarithm of the
    checker's own exponential, a the argument of exp in the arithmetic, rounded three times, and z the logarithm
    of its exponential. For: core/balls.py softmax, L. *)
Theorem exponent_moves (l m r lmax mmax rmax a t y z u tiny ee : R) :
  Rabs (l - m) <= r -> Rabs (lmax - mmax) <= rmax -> r <= rmax -> 0 <= u <= 1 / 16 -> 0 <= 4 * tiny <= U ->
  number binary64 m -> number binary64 mmax -> rounds (m - mmax) t ->
  Rabs (a - (l - lmax)) <= ((1 + u) ^ 3 - 1) * Rabs (l - lmax) + 4 * tiny ->
  Rabs (y - t) <= 9 * U -> Rabs (z - a) <= ee ->
  Rabs (z + (lmax - mmax) - y) <= Rabs t * (2 * U + 6 * u) + r + 12 * u * rmax + (15 * U + ee).
Proof.
  intros Hl Hx Hr Hu Ht Fm Fx Hm Ha Hy Hz. pose proof U_pos as Up. destruct U_small as [_ Us].
  assert (T := sum_rounded m (- mmax) t Fm (number_opp binary64 _ Fx) Hm). fold (m - mmax) in T.
  assert (T2 : Rabs (m - mmax) <= Rabs t + U * Rabs t).
  { pose proof (Rabs_triang t (- (t - (m - mmax)))) as Tr.
    replace (t + - (t - (m - mmax))) with (m - mmax) in Tr by ring.
    rewrite Rabs_Ropp in Tr. lra. }
  (* what rounding without underflow would give, and the rest *)
  set (b := (l - lmax)). set (k := ((1 + u) ^ 3 - 1)). fold b k in Ha. pose proof (Rabs_pos b) as Pb.
  assert (K0 : 0 <= k).
  { unfold k. simpl. assert (0 <= u * u) by (apply Rmult_le_pos; lra).
    assert (0 <= u * (u * u)) by (apply Rmult_le_pos; lra).
    lra. }
  assert (Kb : 0 <= k * Rabs b) by (now apply Rmult_le_pos).
  assert (Split : exists a', Rabs (a' - b) <= k * Rabs b /\ Rabs (a - a') <= 4 * tiny).
  { destruct (Rle_lt_dec (Rabs (a - b)) (k * Rabs b)) as [S|S].
    - exists a. split; [exact S|]. rewrite Rminus_diag_eq, Rabs_R0 by reflexivity. lra.
    - destruct (Rle_lt_dec 0 (a - b)) as [Q|Q].
      + exists (b + k * Rabs b). rewrite (Rabs_pos_eq (a - b)) in * by lra.
        replace (b + k * Rabs b - b) with (k * Rabs b) by ring. rewrite (Rabs_pos_eq (k * Rabs b)) by lra.
        split; [lra|]. rewrite Rabs_pos_eq; lra.
      + exists (b - k * Rabs b). rewrite (Rabs_left (a - b)) in * by lra.
        replace (b - k * Rabs b - b) with (- (k * Rabs b)) by ring.
        rewrite Rabs_Ropp, (Rabs_pos_eq (k * Rabs b)) by lra.
        split; [lra|]. rewrite Rabs_left1; lra. }
  destruct Split as (a' & A1 & A2).
  assert (M := argument_moves l m r lmax mmax rmax a' u Hl Hx Hr Hu A1).
  assert (6 * u * Rabs (m - mmax) <= 6 * u * (Rabs t + U * Rabs t)) by (apply Rmult_le_compat_l; lra).
  assert (6 * u * (U * Rabs t) <= U * Rabs t).
  { pose proof (Rabs_pos t). assert (0 <= U * Rabs t) by (apply Rmult_le_pos; lra).
    rewrite <- (Rmult_1_l (U * Rabs t)) at 2. apply Rmult_le_compat_r; lra. }
  replace (z + (lmax - mmax) - y) with
    ((z - a) + (a - a') + (a' + (lmax - mmax) - (m - mmax)) + - (t - (m - mmax)) + - (y - t)) by ring.
  pose proof (Rabs_triang ((z - a) + (a - a') + (a' + (lmax - mmax) - (m - mmax)) + - (t - (m - mmax)))
    (- (y - t))).
  pose proof (Rabs_triang ((z - a) + (a - a') + (a' + (lmax - mmax) - (m - mmax))) (- (t - (m - mmax)))).
  pose proof (Rabs_triang ((z - a) + (a - a')) (a' + (lmax - mmax) - (m - mmax))).
  pose proof (Rabs_triang (z - a) (a - a')). rewrite !Rabs_Ropp in *. lra.
Qed.

(** L as computed, ((|t| c + r) + k) UP, leaves room: it is at least (L + 4,000 U L) for the L above, which has U
    less in k. For: core/balls.py softmax, L *= UP. *)
Theorem bound_computed (t c r k Lh : R) :
  number binary64 t -> number binary64 c -> number binary64 r -> number binary64 k -> 0 <= c -> 0 <= r -> U <= k ->
  computed (Times (Plus (Plus (Times (Known (Rabs t)) (Known c)) (Known r)) (Known k)) (Known UP)) Lh ->
  (Rabs t * c + r + (k - U)) * (1 + 4000 * U) <= Lh.
Proof.
  intros Ft Fc Fr Fk Pc Pr Pk H. pose proof U_pos as Up. destruct U_small as [E Us]. pose proof least_pos as Lp.
  destruct U_numeric as [_ Ul]. pose proof (Rabs_pos t) as Pt.
  set (x := Times (Plus (Plus (Times (Known (Rabs t)) (Known c)) (Known r)) (Known k)) (Known UP)) in *.
  assert (F : fair x) by (simpl; repeat split; try lra; auto using number_abs, number_UP).
  assert (R := radius_low x Lh F H). change (operations x) with 4%nat in R.
  change (exactly x) with ((Rabs t * c + r + k) * UP) in R.
  assert (SL : slip x <= 3 * least).
  { simpl. assert (least * UP <= least * 2) by (apply Rmult_le_compat_l; lra). lra. }
  assert (Q := bernoulli 4). change (INR 4) with (1 + 1 + 1 + 1) in Q. set (q4 := (1 - U) ^ 4) in *.
  assert (T0 : 0 <= Rabs t * c) by (now apply Rmult_le_pos). set (X := Rabs t * c + r + k) in *.
  assert (U2 : 0 <= U * U <= U * (1 / 1024)) by (split; [apply Rmult_le_pos|apply Rmult_le_compat_l]; lra).
  assert (Uq : 1 + 4000 * U <= UP * q4).
  { apply Rle_trans with ((1 + 8192 * U) * (1 - 4 * U)); [lra|]. replace UP with (1 + 8192 * U) by lra.
    apply Rmult_le_compat_l; lra. }
  assert (X * (1 + 4000 * U) <= X * (UP * q4)) by (apply Rmult_le_compat_l; [unfold X; lra|exact Uq]).
  replace (Rabs t * c + r + (k - U)) with (X - U) by (unfold X; ring). lra.
Qed.

(** * Wide logits *)

(** A weight is 1 / (1 + the sum of e^(x_j - x_k) over the others); it is largest, and smallest, where every
    exponent is at the end of its interval that makes it so. For: core/balls.py _softmax_of_wide, before any
    rounding. *)
Theorem wide_extremes (others : list (R * R * R)) (xk tk Lk : R) :
  Rabs (xk - tk) <= Lk -> (forall x t L, In (x, t, L) others -> Rabs (x - t) <= L) ->
  let low := sum (fun o => let '(_, t, L) := o in exp (t - L - (tk + Lk))) others in
  let high := sum (fun o => let '(_, t, L) := o in exp (t + L - (tk - Lk))) others in
  let p := exp xk / (exp xk + sum (fun o => let '(x, _, _) := o in exp x) others) in
  1 / (1 + high) <= p <= 1 / (1 + low).
Proof.
  intros Hk H low high p.
  set (mid := sum (fun o => let '(x, _, _) := o in exp (x - xk)) others).
  assert (Sk : tk - Lk <= xk <= tk + Lk) by (revert Hk; unfold Rabs; destruct (Rcase_abs (xk - tk)); lra).
  assert (B : low <= mid <= high).
  { split; apply sum_mono; intros [[x t] L] I; specialize (H x t L I); apply exp_mono;
      revert H; unfold Rabs; destruct (Rcase_abs (x - t)); lra. }
  assert (L0 : 0 <= low) by (apply sum_nonneg; intros [[x t] L] _; left; apply exp_pos).
  assert (E : p = 1 / (1 + mid)).
  { assert (Q : exp xk + sum (fun o => let '(x, _, _) := o in exp x) others = exp xk * (1 + mid)).
    { unfold mid. clear. induction others as [|[[x t] L] l IH]; simpl; [ring|].
      replace (exp x) with (exp xk * exp (x - xk)) by (rewrite <- exp_plus; f_equal; ring). lra. }
    unfold p. rewrite Q. pose proof (exp_pos xk). field. split; lra. }
  rewrite E. unfold Rdiv. rewrite !Rmult_1_l. split; apply Rinv_le_contravar; lra.
Qed.
