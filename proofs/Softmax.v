(** The softmax, in real numbers: if the exponents move by at most L_j, the logarithm of a weight moves by at most
    L_k + E ([softmax_moves]); rounding adds its gammas ([logarithm_of_error]), and the weight stays in its ball
    ([weight_ball]).

    For: core/balls.py softmax. Its own exponential is the subject of Exp.v. *)

From Coq Require Import Reals ZArith List Permutation Lra Lia.
From Flocq Require Import Core.
From Onelayer Require Import Arithmetic Rounding DotError ExactSums Cells.
Import ListNotations.
Open Scope R_scope.

(** * Two inequalities *)

(** e^x - 1 <= x + x^2 for 0 <= x <= 1: (1 + x + x^2) e^-x grows, as its derivative is x (1 - x) e^-x. *)
Theorem exp_quadratic (x : R) : 0 <= x <= 1 -> exp x - 1 <= x + x * x.
Proof.
  intros [P Q]. destruct (Req_dec x 0) as [->|N]; [rewrite exp_0; lra|].
  set (g := fun y => (1 + y + y * y) * exp (- y)). set (g' := fun y => y * (1 - y) * exp (- y)).
  assert (D : forall y, derivable_pt_lim g y (g' y)).
  { intros y. unfold g, g'.
    replace (y * (1 - y) * exp (- y)) with ((1 + 2 * y) * exp (- y) + (1 + y + y * y) * (exp (- y) * -1)) by ring.
    apply (derivable_pt_lim_mult (fun z => 1 + z + z * z) (fun z => exp (- z))).
    - replace (1 + 2 * y) with (0 + 1 + (1 * y + y * 1)) by ring.
      apply (derivable_pt_lim_plus (fun z => 1 + z) (fun z => z * z)).
      + apply (derivable_pt_lim_plus (fun z => 1) (fun z => z)); [apply derivable_pt_lim_const|
          apply derivable_pt_lim_id].
      + apply (derivable_pt_lim_mult id id); apply derivable_pt_lim_id.
    - apply (derivable_pt_lim_comp (fun z => - z) exp); [|apply derivable_pt_lim_exp].
      apply (derivable_pt_lim_opp id). apply derivable_pt_lim_id. }
  destruct (MVT_cor2 g g' 0 x ltac:(lra) (fun y _ => D y)) as (y & E & Y).
  assert (G0 : g 0 = 1) by (unfold g; rewrite Ropp_0, exp_0; ring).
  assert (G : 0 <= g' y) by (unfold g'; pose proof (exp_pos (- y)); repeat apply Rmult_le_pos; lra).
  assert (L : 1 <= g x) by (assert (0 <= g' y * (x - 0)) by (apply Rmult_le_pos; lra); lra).
  unfold g in L. apply (Rmult_le_compat_r (exp x)) in L; [|left; apply exp_pos].
  rewrite Rmult_assoc, <- exp_plus in L. replace (- x + x) with 0 in L by ring. rewrite exp_0 in L. lra.
Qed.

(** 1 + x <= e^x. *)
Lemma exp_above (x : R) : 1 + x <= exp x.
Proof. destruct (Req_dec x 0) as [->|N]; [rewrite exp_0; lra|]. left. now apply exp_ineq1. Qed.

Lemma exp_mono (x y : R) : x <= y -> exp x <= exp y.
Proof. intros [L| ->]; [left; now apply exp_increasing|apply Rle_refl]. Qed.

(** * Weights *)

(** An exponential: its value w as the checker has it, by how much (lam) that of the arithmetic differs in its
    logarithm (up to a common shift, which does not matter), and a bound L of |lam|. *)
Record logit := Logit { w : R; lam : R; bound : R }.

Definition fine (j : logit) : Prop := 0 <= w j /\ Rabs (lam j) <= bound j <= 1.

(** The exponential as the arithmetic has it, up to a common factor. *)
Definition moved (j : logit) : R := w j * exp (lam j).

(** E of the code, before the division by the sum of the weights. *)
Definition cost (j : logit) : R := w j * (bound j + bound j * bound j).

Lemma sum_nonneg {A} (c : A -> R) l : (forall a, In a l -> 0 <= c a) -> 0 <= sum c l.
Proof.
  induction l as [|a l IH]; intros H; simpl; [lra|]. specialize (IH ltac:(intros; apply H; now right)).
  specialize (H a (or_introl eq_refl)). lra.
Qed.

Lemma sum_mono {A} (c d : A -> R) l : (forall a, In a l -> c a <= d a) -> sum c l <= sum d l.
Proof.
  induction l as [|a l IH]; intros H; simpl; [lra|]. specialize (IH ltac:(intros; apply H; now right)).
  specialize (H a (or_introl eq_refl)). lra.
Qed.

(** The sum of the moved exponentials lies within e^E and e^-E of the sum of the others. *)
Lemma denominator_moves (l : list logit) (E : R) :
  (forall j, In j l -> fine j) -> sum cost l <= sum w l * E ->
  sum w l * exp (- E) <= sum moved l <= sum w l * exp E.
Proof.
  intros H B. set (W := sum w l) in *.
  assert (W0 : 0 <= W) by (apply sum_nonneg; intros j I; apply (H j I)).
  split.
  - assert (L : sum (fun j => exp (- E) * (w j * (1 + E) - cost j)) l <= sum moved l).
    { apply sum_mono. intros j I. destruct (H j I) as [P [Q R]]. unfold moved, cost.
      assert (T := exp_above (lam j + E)). rewrite exp_plus in T.
      assert (S : - bound j <= lam j) by (revert Q; unfold Rabs; destruct (Rcase_abs (lam j)); lra).
      assert (B0 : 0 <= bound j) by (pose proof (Rabs_pos (lam j)); lra).
      assert (X : exp (- E) * (1 + E - bound j) <= exp (lam j)).
      { apply Rmult_le_reg_r with (exp E); [apply exp_pos|].
        rewrite (Rmult_comm (exp (- E))), Rmult_assoc, <- exp_plus.
        replace (- E + E) with 0 by ring. rewrite exp_0. lra. }
      apply Rle_trans with (w j * (exp (- E) * (1 + E - bound j))); [|now apply Rmult_le_compat_l].
      assert (0 <= w j * (bound j * bound j) * exp (- E)); [|lra].
      apply Rmult_le_pos; [apply Rmult_le_pos; [exact P|now apply Rmult_le_pos]|left; apply exp_pos]. }
    apply Rle_trans with (2 := L).
    assert (Eq : forall k, sum (fun j => exp (- E) * (w j * (1 + E) - cost j)) k =
      exp (- E) * (sum w k * (1 + E) - sum cost k)) by (induction k as [|j k IH]; simpl; [ring|rewrite IH; ring]).
    rewrite Eq. fold W. rewrite Rmult_comm. apply Rmult_le_compat_l; [left; apply exp_pos|]. lra.
  - assert (L : sum moved l <= sum (fun j => w j + cost j) l).
    { apply sum_mono. intros j I. destruct (H j I) as [P [Q R]]. unfold moved, cost.
      assert (X : exp (lam j) <= 1 + (bound j + bound j * bound j)).
      { assert (0 <= bound j) by (pose proof (Rabs_pos (lam j)); lra).
        assert (T := exp_quadratic (bound j) ltac:(lra)).
        assert (lam j <= bound j) by (pose proof (Rle_abs (lam j)); lra).
        assert (exp (lam j) <= exp (bound j)) by (now apply exp_mono). lra. }
      apply (Rmult_le_compat_l (w j)) in X; [lra|exact P]. }
    assert (Eq : forall k, sum (fun j => w j + cost j) k = sum w k + sum cost k)
      by (induction k as [|j k IH]; simpl; [ring|rewrite IH; ring]).
    rewrite Eq in L. fold W in L. apply Rle_trans with (1 := L). apply Rle_trans with (W * (1 + E)); [lra|].
    apply Rmult_le_compat_l; [exact W0|apply exp_above].
Qed.

(** If each exponent moves by at most L_j <= 1, and E is at least the weighted sum of the L_j + L_j^2, the
    logarithm of the weight p_k moves by at most L_k + E. For: core/balls.py softmax. *)
Theorem softmax_moves (l : list logit) (k : logit) (E : R) :
  (forall j, In j l -> fine j) -> In k l -> 0 < sum w l -> sum cost l <= sum w l * E ->
  let p := w k / sum w l in
  0 < sum moved l /\
  p * exp (- (bound k + E)) <= moved k / sum moved l <= p * exp (bound k + E).
Proof.
  intros H I W B p. destruct (denominator_moves l E H B) as [D1 D2]. set (W0 := sum w l) in *.
  set (M := sum moved l) in *.
  assert (PM : 0 < M) by (apply Rlt_le_trans with (2 := D1); apply Rmult_lt_0_compat; [exact W|apply exp_pos]).
  split; [exact PM|]. destruct (H k I) as [P [Q _]]. unfold p, moved.
  assert (S : - bound k <= lam k <= bound k) by (revert Q; unfold Rabs; destruct (Rcase_abs (lam k)); lra).
  assert (E1 : exp (- bound k) <= exp (lam k) <= exp (bound k)) by (split; apply exp_mono; lra).
  assert (IW : 0 < / W0) by (now apply Rinv_0_lt_compat).
  assert (IM1 : / M <= / W0 * exp E).
  { apply Rmult_le_reg_l with M; [exact PM|]. rewrite Rinv_r by lra.
    apply Rle_trans with (W0 * exp (- E) * (/ W0 * exp E)).
    - right. replace (W0 * exp (- E) * (/ W0 * exp E)) with (W0 * / W0 * (exp (- E) * exp E)) by ring.
      rewrite Rinv_r, <- exp_plus by lra. replace (- E + E) with 0 by ring. rewrite exp_0. ring.
    - apply Rmult_le_compat_r; [|exact D1]. apply Rmult_le_pos; [lra|left; apply exp_pos]. }
  assert (IM2 : / W0 * exp (- E) <= / M).
  { apply Rmult_le_reg_l with M; [exact PM|]. rewrite Rinv_r by lra.
    apply Rle_trans with (W0 * exp E * (/ W0 * exp (- E))).
    - apply Rmult_le_compat_r; [|exact D2]. apply Rmult_le_pos; [lra|left; apply exp_pos].
    - right. replace (W0 * exp E * (/ W0 * exp (- E))) with (W0 * / W0 * (exp E * exp (- E))) by ring.
      rewrite Rinv_r, <- exp_plus by lra. replace (E + - E) with 0 by ring. rewrite exp_0. ring. }
  pose proof (exp_pos E). pose proof (exp_pos (- E)). pose proof (exp_pos (bound k)).
  pose proof (exp_pos (- bound k)).
  assert (IM : 0 < / M) by (now apply Rinv_0_lt_compat). unfold Rdiv. split.
  - replace (- (bound k + E)) with (- bound k + - E) by ring. rewrite exp_plus.
    replace (w k * / W0 * (exp (- bound k) * exp (- E))) with (w k * exp (- bound k) * (/ W0 * exp (- E))) by ring.
    apply Rmult_le_compat; [apply Rmult_le_pos; lra|apply Rmult_le_pos; lra|apply Rmult_le_compat_l; lra|exact IM2].
  - rewrite exp_plus.
    replace (w k * / W0 * (exp (bound k) * exp E)) with (w k * exp (bound k) * (/ W0 * exp E)) by ring.
    apply Rmult_le_compat; [|lra|apply Rmult_le_compat_l; lra|exact IM1].
    apply Rmult_le_pos; [exact P|left; apply exp_pos].
Qed.

(** A weight whose logarithm moves by at most v <= 1 moves by at most p (v + 1) v. For: core/balls.py softmax, r. *)
Theorem weight_ball (p q v : R) : 0 <= p -> 0 <= v <= 1 -> p * exp (- v) <= q <= p * exp v ->
  Rabs (q - p) <= (v + 1) * v * p.
Proof.
  intros P V Q. assert (A := exp_quadratic v V). assert (B := exp_above (- v)).
  assert (p * exp v <= p * (1 + (v + v * v))) by (apply Rmult_le_compat_l; lra).
  assert (p * (1 - v) <= p * exp (- v)) by (apply Rmult_le_compat_l; lra).
  assert (0 <= p * (v * v)) by (apply Rmult_le_pos; [lra|apply Rmult_le_pos; lra]).
  unfold Rabs. destruct (Rcase_abs (q - p)); lra.
Qed.

(** * Rounding *)

(** A relative error of at most g <= 3/8 moves the logarithm by at most 2 g: y lies within e^(2 g) of x. *)
Theorem logarithm_of_error (x y g : R) : 0 <= x -> 0 <= g <= 3 / 8 -> Rabs (y - x) <= g * x ->
  x * exp (- (2 * g)) <= y <= x * exp (2 * g).
Proof.
  intros P G H.
  assert (S : - (g * x) <= y - x <= g * x) by (revert H; unfold Rabs; destruct (Rcase_abs (y - x)); lra).
  split.
  - assert (L : exp (- (2 * g)) <= 1 - g).
    { apply Rmult_le_reg_r with (exp (2 * g)); [apply exp_pos|]. rewrite <- exp_plus.
      replace (- (2 * g) + 2 * g) with 0 by ring. rewrite exp_0. assert (A := exp_above (2 * g)).
      apply Rle_trans with ((1 - g) * (1 + 2 * g)); [|apply Rmult_le_compat_l; lra].
      assert (0 <= g * (1 - 2 * g)) by (apply Rmult_le_pos; lra). lra. }
    apply Rle_trans with (x * (1 - g)); [now apply Rmult_le_compat_l|lra].
  - assert (A := exp_above (2 * g)). apply Rle_trans with (x * (1 + 2 * g)); [|apply Rmult_le_compat_l; lra].
    assert (0 <= g * x) by (apply Rmult_le_pos; lra). lra.
Qed.

(** Twice the relative error of k roundings is at most that of 2 k: so the denominator and the quotient of n
    weights are covered by gamma(2 n + 8), and by 2 gamma(n + 4) in the checker's own weights. For: core/balls.py
    softmax, g. *)
Lemma gamma_twice (n : nat) (q : R) : 0 <= q ->
  2 * gamma (INR n) q + 2 * q <= gamma (INR (2 * n + 8)) q /\ 2 * gamma (INR n) q + 2 * q <=
    2 * gamma (INR (n + 4)) q.
Proof.
  intros Q. unfold gamma. rewrite !plus_INR, mult_INR. change (INR 2) with 2. pose proof (pos_INR n) as P.
  replace (INR 8) with 8 by (simpl; ring). replace (INR 4) with 4 by (simpl; ring).
  set (x := INR n * q). assert (X : 0 <= x) by (now apply Rmult_le_pos).
  replace ((2 * INR n + 8) * q) with (2 * x + 8 * q) by (unfold x; ring).
  replace ((INR n + 4) * q) with (x + 4 * q) by (unfold x; ring).
  assert (0 <= x * x) by (now apply Rmult_le_pos). assert (0 <= x * q) by (now apply Rmult_le_pos).
  assert (0 <= q * q) by (now apply Rmult_le_pos). split; lra.
Qed.

(** Moves of logarithms add up. *)
Lemma moves_add (p q r a b : R) : 0 <= p ->
  p * exp (- a) <= q <= p * exp a -> q * exp (- b) <= r <= q * exp b -> p * exp (- (a + b)) <= r <= p * exp (a + b).
Proof.
  intros P [A1 A2] [B1 B2]. pose proof (exp_pos b). pose proof (exp_pos (- b)). split.
  - replace (- (a + b)) with (- a + - b) by ring. rewrite exp_plus, <- Rmult_assoc. apply Rle_trans with (2 := B1).
    apply Rmult_le_compat_r; lra.
  - rewrite exp_plus, <- Rmult_assoc. apply Rle_trans with (1 := B2). apply Rmult_le_compat_r; lra.
Qed.

(** All together. The checker's weight is p, off by a relative error of at most g1 from the quotient q of its own
    exponentials; the arithmetic's weight is s, off by at most g2 from the quotient of its exponentials. With
    v = L_k + E + 2 g1 + 2 g2 at most 1, s lies in the ball (p, (v + 1) v p). For: core/balls.py softmax. *)
Theorem softmax_ball (l : list logit) (k : logit) (E g1 g2 p s : R) :
  (forall j, In j l -> fine j) -> In k l -> 0 < sum w l -> 0 <= E -> sum cost l <= sum w l * E ->
  0 <= g1 <= 3 / 8 -> 0 <= g2 <= 3 / 8 -> 0 <= p ->
  Rabs (w k / sum w l - p) <= g1 * p -> Rabs (s - moved k / sum moved l) <= g2 * (moved k / sum moved l) ->
  let v := bound k + E + 2 * g1 + 2 * g2 in
  v <= 1 -> Rabs (s - p) <= (v + 1) * v * p.
Proof.
  intros H I W E0 B G1 G2 P Hp Hs v V. destruct (softmax_moves l k E H I W B) as (M & Q).
  set (q := w k / sum w l) in *.
  assert (Mp := logarithm_of_error p q g1 P G1 Hp).
  assert (R0 : 0 <= moved k / sum moved l).
  { apply Rmult_le_pos; [|left; now apply Rinv_0_lt_compat]. unfold moved.
    apply Rmult_le_pos; [apply (H k I)|left; apply exp_pos]. }
  assert (Ms := logarithm_of_error _ s g2 R0 G2 Hs).
  assert (A1 := moves_add p q _ _ _ P Mp Q). assert (A2 := moves_add p _ s _ _ P A1 Ms).
  assert (Lk : 0 <= bound k) by (destruct (H k I) as [_ [X _]]; pose proof (Rabs_pos (lam k)); lra).
  replace (2 * g1 + (bound k + E) + 2 * g2) with v in A2 by (unfold v; ring).
  apply weight_ball; [exact P|unfold v in *; lra|exact A2].
Qed.

(** * Arguments of exp *)

(** The arithmetic subtracts the largest logit l* and may round the difference three times, each time by a
    relative error of at most u: the exponent is then within L_j of m_j - m*, up to a shift, where m are
    midpoints and r radii. The code takes 2 * 3 u |t_j| + 4 * 3 u r*, which is twice what is needed. For:
    core/balls.py softmax, L. *)
Theorem argument_moves (l m r lmax mmax rmax a u : R) :
  Rabs (l - m) <= r -> Rabs (lmax - mmax) <= rmax -> r <= rmax -> 0 <= u <= 1 / 16 ->
  Rabs (a - (l - lmax)) <= ((1 + u) ^ 3 - 1) * Rabs (l - lmax) ->
  Rabs (a + (lmax - mmax) - (m - mmax)) <= r + 2 * 3 * u * Rabs (m - mmax) + 4 * 3 * u * rmax.
Proof.
  intros Hl Hx Hr Hu Ha. pose proof (Rabs_pos (l - m)). pose proof (Rabs_pos (lmax - mmax)).
  assert (D : Rabs (l - lmax) <= Rabs (m - mmax) + 2 * rmax).
  { replace (l - lmax) with ((m - mmax) + (l - m) + - (lmax - mmax)) by ring.
    pose proof (Rabs_triang ((m - mmax) + (l - m)) (- (lmax - mmax))). pose proof (Rabs_triang (m - mmax) (l - m)).
    rewrite Rabs_Ropp in *. lra. }
  assert (U3 : (1 + u) ^ 3 - 1 <= 6 * u).
  { assert (u * u <= u * (1 / 16)) by (apply Rmult_le_compat_l; lra).
    assert (u * (u * u) <= u * (1 / 16)) by (apply Rmult_le_compat_l; lra). simpl. lra. }
  assert (Rabs (a - (l - lmax)) <= 6 * u * (Rabs (m - mmax) + 2 * rmax)).
  { apply Rle_trans with (1 := Ha). pose proof (Rabs_pos (l - lmax)). apply Rmult_le_compat; try lra.
    simpl. assert (0 <= u * u) by (apply Rmult_le_pos; lra).
    assert (0 <= u * (u * u)) by (apply Rmult_le_pos; lra). lra. }
  replace (a + (lmax - mmax) - (m - mmax)) with ((a - (l - lmax)) + (l - m)) by ring.
  pose proof (Rabs_triang (a - (l - lmax)) (l - m)). lra.
Qed.

(** * Equal logits *)

(** Where all logits are exactly equal, all exponentials are exactly 1; up to 2^prec ones add up exactly, in any
    order, and the only rounding is that of the quotient 1/n. For: core/balls.py softmax, where E is 0. *)
Theorem equal_weights (f : format) (n : nat) (D : R) :
  INR n <= bpow radix2 (prec f) -> dots (any_order f) false (repeat (Bias 1) n) D -> D = INR n.
Proof.
  intros N H. apply dots_sums in H.
  assert (S : forall k, sum value (repeat (Bias 1) k) = INR k).
  { induction k as [|k IH]; [reflexivity|]. rewrite S_INR. simpl. rewrite IH. ring. }
  rewrite <- (S n). apply (sums_exact f (leaf f) value); [| |exact H].
  - intros t v I L. apply repeat_spec in I. subst t. simpl in *. apply (reads_solid f); [apply solid_1|exact L].
  - intros l1 l2 P.
    assert (R : exists k, l1 = repeat (Bias 1) k /\ (k <= n)%nat).
    { exists (length l1). split.
      - apply Forall_eq_repeat. apply Forall_forall. intros t I. symmetry. apply (repeat_spec n).
        apply (Permutation_in t (Permutation_sym P)). apply in_or_app. now left.
      - apply Permutation_length in P. rewrite repeat_length, app_length in P. lia. }
    destruct R as (k & -> & K). rewrite S. rewrite INR_IZR_INZ. apply solid_whole. rewrite <- INR_IZR_INZ.
    rewrite Rabs_pos_eq by apply pos_INR. apply Rle_trans with (2 := N). now apply le_INR.
Qed.

(** A whole number of at most 2^prec, divided by a power of two of at most 2^prec, is a number that nobody flushes. *)
Lemma solid_scaled (f : format) (x : R) (j : Z) : whole x -> Rabs x <= bpow radix2 (prec f) ->
  (0 <= j <= prec f)%Z -> solid f (x * bpow radix2 (- j)).
Proof.
  intros [n ->] S J. pose proof (prec_pos f) as P. pose proof (u_normal f) as U.
  assert (B0 := bpow_gt_0 radix2 (- j)). split.
  - destruct (Rle_lt_or_eq_dec _ _ S) as [L|E].
    + apply generic_format_FLT. exists (Defs.Float radix2 n (- j)); [reflexivity| |simpl; lia].
      cbn [Fnum]. apply lt_IZR. rewrite abs_IZR, IZR_Zpower by lia. exact L.
    + assert (G : generic_format radix2 (FLT_exp (emin f) (prec f)) (bpow radix2 (prec f) * bpow radix2 (- j))).
      { rewrite <- bpow_plus. apply generic_format_FLT_bpow; [exact P|lia]. }
      destruct (Rabs_eq_Rabs (IZR n) (bpow radix2 (prec f))) as [Q|Q].
      * rewrite E. symmetry. apply Rabs_pos_eq, bpow_ge_0.
      * now rewrite Q.
      * rewrite Q, Ropp_mult_distr_l_reverse. now apply generic_format_opp.
  - destruct (Z.eq_dec n 0) as [->|N]; [left; ring|right].
    rewrite Rabs_mult, (Rabs_pos_eq (bpow radix2 (- j))) by lra.
    apply Rle_trans with (1 * bpow radix2 (- j)); [rewrite Rmult_1_l; apply bpow_le; lia|].
    apply Rmult_le_compat_r; [lra|]. rewrite <- abs_IZR. apply IZR_le. lia.
Qed.

(** Of n = 2^j tokens, each with a weight of exactly 1/n, the average of whole numbers whose sizes add up to at most
    2^prec has one value, in any order; and so has their sum, divided by n. For: core/averages.py averaged_exactly. *)
Theorem equal_average_exact (f : format) (j : Z) (l : list R) (s : R) : (0 <= j <= prec f)%Z ->
  (forall x, In x l -> whole x) -> sum Rabs l <= bpow radix2 (prec f) ->
  sums f (leaf f) (map (fun x => Prod (bpow radix2 (- j)) x) l) s ->
  s = sum (fun x => x) l * bpow radix2 (- j) /\ solid f s.
Proof.
  intros J W S H. set (b := bpow radix2 (- j)).
  assert (Part : forall l1 l2, Permutation l (l1 ++ l2) -> whole (sum (fun x => x) l1) /\
            Rabs (sum (fun x => x) l1) <= bpow radix2 (prec f)).
  { intros l1 l2 Q. split.
    - apply whole_sum. intros a I. apply W. apply (Permutation_in a (Permutation_sym Q)). apply in_or_app. now left.
    - apply Rle_trans with (1 := sum_abs (fun x => x) l1). change (sum Rabs l1 <= bpow radix2 (prec f)).
      apply Rle_trans with (2 := S). rewrite (sum_perm Rabs _ _ Q), sum_app.
      assert (0 <= sum Rabs l2) by apply (sum_abs_nonneg (fun x => x) l2). lra. }
  assert (Scaled : forall k, sum (fun x => x * b) k = sum (fun x => x) k * b).
  { induction k as [|a k IH]; simpl; [ring|rewrite IH; ring]. }
  assert (One : solid f b).
  { rewrite <- (Rmult_1_l b). apply solid_scaled; [apply whole_1| |exact J].
    rewrite Rabs_R1. change 1 with (bpow radix2 0). apply bpow_le. pose proof (prec_pos f). lia. }
  assert (E : s = sum (fun x => x * b) l).
  { apply sums_map in H. revert H. apply (sums_exact f (fun x => leaf f (Prod b x)) (fun x => x * b)).
    - intros x v I (b' & x' & Rb & Rx & R). apply (reads_solid f) in Rb; [|exact One]. subst b'.
      apply (reads_whole f) in Rx; [|now apply W]. subst x'. rewrite Rmult_comm in R.
      apply (rnd_solid f); [|exact R]. apply solid_scaled; [now apply W| |exact J].
      apply Rle_trans with (2 := S). exact (size_of_one (fun x => x) l x I).
    - intros l1 l2 Q. rewrite Scaled. destruct (Part l1 l2 Q). now apply solid_scaled. }
  rewrite Scaled in E. split; [exact E|]. rewrite E. destruct (Part l [] ltac:(now rewrite app_nil_r)).
  now apply solid_scaled.
Qed.
