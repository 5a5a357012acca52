(** The error of a sum of products and a bias, in any order: how often a term is rounded ([dots_count]), what that
    amounts to ([any_order_error], [gamma_sound]), and both together ([linear_error]).

    For: core/balls.py gamma, linear, dot; search/parts.py added. *)

From Coq Require Import Reals ZArith List Permutation Lra Lia.
From Flocq Require Import Core.
From Onelayer Require Import Arithmetic Rounding.
Import ListNotations.
Open Scope R_scope.

(** * Terms *)

(** A term that is exactly zero: adding it changes nothing. *)
Definition dead (t : term) : Prop := match t with Prod x w => x = 0 \/ w = 0 | Bias b => b = 0 end.

Lemma dead_dec t : {dead t} + {~ dead t}.
Proof.
  destruct t as [x w|b]; simpl; [|apply Req_EM_T].
  destruct (Req_EM_T x 0); [left; tauto|]. destruct (Req_EM_T w 0); [left; tauto|right; tauto].
Qed.

(** How many terms are not exact zeros. *)
Definition lives (l : list term) : nat := length (filter (fun t => if dead_dec t then false else true) l).

Lemma lives_app l1 l2 : lives (l1 ++ l2) = (lives l1 + lives l2)%nat.
Proof. unfold lives. now rewrite filter_app, app_length. Qed.

Lemma lives_perm l1 l2 : Permutation l1 l2 -> lives l1 = lives l2.
Proof.
  unfold lives. induction 1 as [|t l l' P IH|s t l|l l' l'' P IH Q IH']; simpl; [reflexivity| | |now rewrite IH].
  - destruct (dead_dec t); simpl; now rewrite IH.
  - destruct (dead_dec s), (dead_dec t); reflexivity.
Qed.

Lemma lives_dead l : (forall t, In t l -> dead t) -> lives l = 0%nat.
Proof.
  unfold lives. induction l as [|t l IH]; intros H; [reflexivity|]. simpl.
  destruct (dead_dec t) as [_|N]; [apply IH; intros; apply H; now right|]. elim N. apply H. now left.
Qed.

Lemma lives_length l : (lives l <= length l)%nat.
Proof. unfold lives. induction l as [|t l IH]; simpl; [lia|]. destruct (dead_dec t); simpl; lia. Qed.

Lemma lives_one t : ~ dead t -> lives [t] = 1%nat.
Proof. intros N. unfold lives. simpl. now destruct (dead_dec t). Qed.

Lemma dead_value t : dead t -> value t = 0.
Proof. destruct t as [x w|b]; simpl; [|easy]. intros [->| ->]; ring. Qed.

(** What the sizes of all terms add up to; and what flushing the operands of a term may cost, in units of
    [absolute]. *)
Definition size (l : list term) : R := sum (fun t => Rabs (value t)) l.
Definition loss (t : term) : R := match t with Prod x w => Rabs x + Rabs w | Bias b => 1 end.

Lemma loss_nonneg l : 0 <= sum loss l.
Proof.
  induction l as [|[x w|b] l IH]; simpl; [lra| |lra]. pose proof (Rabs_pos x). pose proof (Rabs_pos w). lra.
Qed.

Lemma size_nonneg l : 0 <= size l.
Proof. apply (sum_abs_nonneg value). Qed.

Lemma dead_sums l : (forall t, In t l -> dead t) -> sum value l = 0 /\ size l = 0.
Proof.
  unfold size. induction l as [|t l IH]; intros H; [split; reflexivity|]. simpl.
  destruct IH as [-> ->]; [intros; apply H; now right|].
  rewrite (dead_value t) by (apply H; now left). rewrite Rabs_R0. lra.
Qed.

(** * Evaluations *)

Section Evaluations.
Variable A : arithmetic.

(** [dots powers l s]: a value s that the sum of the terms l may have. Terms are put together in any order and
    bracketing; products are rounded, or fused with an addition ([result] allows that nothing is rounded).
    Between operations numbers may be converted or flushed. Exact zeros, and zeros that an accumulator begins
    with, add nothing. If [powers], all weights are powers of two. *)
Inductive dots (powers : bool) : list term -> R -> Prop :=
| dots_zero l : (forall t, In t l -> dead t) -> dots powers l 0
| dots_prod x w x' w' y : x <> 0 -> w <> 0 -> reading A x x' -> reading A w w' -> result A (x' * w') y ->
    (powers = true -> in_format A x /\ power_of_two w) -> dots powers [Prod x w] y
| dots_bias b b' : b <> 0 -> in_format A b -> reading A b b' -> dots powers [Bias b] b'
| dots_add l l1 l2 x y s : Permutation l (l1 ++ l2) -> dots powers l1 x -> dots powers l2 y ->
    lives l1 <> 0%nat -> lives l2 <> 0%nat -> result A (x + y) s -> dots powers l s
| dots_skip l l1 l2 x : Permutation l (l1 ++ l2) -> (forall t, In t l2 -> dead t) -> dots powers l1 x ->
    dots powers l x
| dots_between l x y : dots powers l x -> between A x y -> dots powers l y.

(** [evals k m l s]: the sum of the terms l evaluates to s such that no term goes through more than k roundings,
    and at most m times up to [absolute] is lost. Here additions are exact, and rounding them is a step of its
    own. *)
Inductive evals : nat -> nat -> list term -> R -> Prop :=
| evals_zero l : (forall t, In t l -> dead t) -> evals 0 0 l 0
| evals_prod x w x' w' : reading A x x' -> reading A w w' -> evals 0 0 [Prod x w] (x' * w')
| evals_bias b b' : reading A b b' -> evals 0 0 [Bias b] b'
| evals_add k1 k2 m1 m2 l l1 l2 x y : Permutation l (l1 ++ l2) -> evals k1 m1 l1 x -> evals k2 m2 l2 y ->
    evals (Nat.max k1 k2) (m1 + m2) l (x + y)
| evals_round k m l x y : evals k m l x -> result A x y -> evals (S k) (S m) l y
| evals_lose k m l x y : evals k m l x -> Rabs (y - x) <= absolute A -> evals k (S m) l y.

Lemma reading_error x y : reading A x y -> Rabs (y - x) <= flushed A.
Proof.
  pose proof (flushed_absolute A). intros R.
  destruct (reading_cases A x y R) as [->|[S ->]].
  - rewrite Rminus_diag_eq by reflexivity. rewrite Rabs_R0. lra.
  - replace (0 - x) with (- x) by ring. rewrite Rabs_Ropp. lra.
Qed.

Lemma reading_0 y : reading A 0 y -> y = 0.
Proof. intros R. destruct (reading_cases A 0 y R) as [->|[_ ->]]; reflexivity. Qed.

Lemma operands_error x w x' w' :
  reading A x x' -> reading A w w' -> Rabs (x' * w' - x * w) <= flushed A * (Rabs x + Rabs w).
Proof.
  intros Rx Rw. pose proof (flushed_absolute A).
  pose proof (Rabs_pos x). pose proof (Rabs_pos w).
  destruct (reading_cases A x x' Rx) as [->|[Sx ->]], (reading_cases A w w' Rw) as [->|[Sw ->]].
  - rewrite Rminus_diag_eq by reflexivity. rewrite Rabs_R0. nra.
  - replace (x * 0 - x * w) with (- (x * w)) by ring. rewrite Rabs_Ropp, Rabs_mult. nra.
  - replace (0 * w - x * w) with (- (x * w)) by ring. rewrite Rabs_Ropp, Rabs_mult. nra.
  - replace (0 * 0 - x * w) with (- (x * w)) by ring. rewrite Rabs_Ropp, Rabs_mult. nra.
Qed.

Lemma pow_mono k1 k2 : (k1 <= k2)%nat -> 1 <= (1 + relative A) ^ k1 <= (1 + relative A) ^ k2.
Proof.
  intros H. pose proof (relative_bounds A). split; [apply pow_R1_Rle; lra|apply Rle_pow; [lra|exact H]].
Qed.

(** One rounding more. *)
Lemma one_step g S Z T E x y :
  1 <= g -> 0 <= S -> 0 <= Z -> 0 <= T -> Rabs E <= S -> Rabs (x - E) <= (g - 1) * S + g * Z ->
  Rabs (y - x) <= relative A * Rabs x + T ->
  Rabs (y - E) <= ((1 + relative A) * g - 1) * S + (1 + relative A) * g * (Z + T).
Proof.
  intros G PS PZ PT HE Hx Hy. pose proof (relative_bounds A) as U. set (q := relative A) in *.
  assert (X : Rabs x <= g * (S + Z)).
  { replace x with (E + (x - E)) by ring. pose proof (Rabs_triang E (x - E)). lra. }
  assert (Y : Rabs (y - E) <= Rabs (y - x) + Rabs (x - E)).
  { replace (y - E) with ((y - x) + (x - E)) by ring. apply Rabs_triang. }
  assert (q * Rabs x <= q * (g * (S + Z))) by (apply Rmult_le_compat_l; lra).
  assert (T <= (1 + q) * g * T) by (assert (1 <= (1 + q) * g) by nra; nra).
  lra.
Qed.

(** What m operations and the operands of l may lose. *)
Definition lost (m : nat) (l : list term) : R := absolute A * INR m + flushed A * sum loss l.

Lemma lost_nonneg m l : 0 <= lost m l.
Proof.
  unfold lost. pose proof (absolute_nonneg A). pose proof (flushed_absolute A). pose proof (pos_INR m).
  pose proof (loss_nonneg l). assert (0 <= absolute A * INR m) by (apply Rmult_le_pos; lra).
  assert (0 <= flushed A * sum loss l) by (apply Rmult_le_pos; lra). lra.
Qed.

(** The error of an evaluation: for any order and bracketing, fused or not, rounded once or twice. *)
Theorem any_order_error (k m : nat) (l : list term) (s : R) :
  evals k m l s ->
  Rabs (s - sum value l) <=
    ((1 + relative A) ^ k - 1) * size l + (1 + relative A) ^ k * lost m l.
Proof.
  pose proof (absolute_nonneg A) as T. pose proof (flushed_absolute A) as T'. intros H.
  induction H as [l D|x w x' w' Rx Rw|b b' Rb|k1 k2 m1 m2 l l1 l2 x y P H1 IH1 H2 IH2|k m l x y H IH R|
    k m l x y H IH R].
  - destruct (dead_sums l D) as [-> ->]. pose proof (loss_nonneg l).
    unfold lost. simpl. rewrite Rminus_0_r, Rabs_R0. nra.
  - pose proof (operands_error _ _ _ _ Rx Rw). unfold lost. simpl. rewrite !Rplus_0_r. lra.
  - pose proof (reading_error _ _ Rb). unfold lost. simpl. rewrite !Rplus_0_r. lra.
  - assert (Z1 := lost_nonneg m1 l1). assert (Z2 := lost_nonneg m2 l2).
    assert (Z : lost (m1 + m2) l = lost m1 l1 + lost m2 l2).
    { unfold lost. rewrite (sum_perm _ _ _ P), sum_app, plus_INR. ring. }
    unfold size. rewrite Z, !(sum_perm _ _ _ P), !sum_app. fold (size l1) (size l2).
    destruct (pow_mono k1 (Nat.max k1 k2) ltac:(lia)) as [A1 B1].
    destruct (pow_mono k2 (Nat.max k1 k2) ltac:(lia)) as [A2 B2].
    set (g := (1 + relative A) ^ Nat.max k1 k2) in *.
    set (g1 := (1 + relative A) ^ k1) in *. set (g2 := (1 + relative A) ^ k2) in *.
    pose proof (size_nonneg l1). pose proof (size_nonneg l2).
    set (z1 := lost m1 l1) in *. set (z2 := lost m2 l2) in *.
    replace (x + y - (sum value l1 + sum value l2)) with ((x - sum value l1) + (y - sum value l2)) by ring.
    apply Rle_trans with (1 := Rabs_triang _ _).
    assert ((g1 - 1) * size l1 <= (g - 1) * size l1) by (apply Rmult_le_compat_r; lra).
    assert ((g2 - 1) * size l2 <= (g - 1) * size l2) by (apply Rmult_le_compat_r; lra).
    assert (g1 * z1 <= g * z1) by (apply Rmult_le_compat_r; lra).
    assert (g2 * z2 <= g * z2) by (apply Rmult_le_compat_r; lra).
    lra.
  - assert (Z : lost (S m) l = lost m l + absolute A) by (unfold lost; rewrite S_INR; ring). rewrite Z.
    apply one_step with x; [apply (pow_mono k k (le_n k))|apply size_nonneg|apply lost_nonneg|lra|
      apply (sum_abs value)|
      exact IH|now apply result_error].
  - assert (Z : lost (S m) l = lost m l + absolute A) by (unfold lost; rewrite S_INR; ring). rewrite Z.
    destruct (pow_mono k k (le_n k)) as [G _]. set (g := (1 + relative A) ^ k) in *.
    assert (Y : Rabs (y - sum value l) <= Rabs (y - x) + Rabs (x - sum value l)).
    { replace (y - sum value l) with ((y - x) + (x - sum value l)) by ring. apply Rabs_triang. }
    nra.
Qed.

(** * Counting *)

(** A sum of k terms that are not zero sends each through at most k roundings, of which the last k - 1 are
    additions; so k - 1 if products are exact, as those by powers of two are. At most 2 k - 1 operations may lose
    [absolute]. *)
Theorem dots_count (powers : bool) (l : list term) (s : R) : dots powers l s ->
  exists k m, evals k m l s /\ (k <= lives l - (if powers then 1 else 0))%nat /\ (m <= 2 * lives l - 1)%nat.
Proof.
  intros H.
  assert (G : forall s', between A s s' -> exists k m, evals k m l s' /\
    (k <= lives l - (if powers then 1 else 0))%nat /\ (m <= 2 * lives l - 1)%nat);
    [|apply G; apply between_refl].
  induction H as [l D|x w x' w' y X W Rx Rw R P|b b' B F R|l l1 l2 x y s P H1 IH1 H2 IH2 L1 L2 R|l l1 l2 x P D H IH|
    l x y H IH B]; intros s' Bt.
  - exists 0%nat, 0%nat. split; [|lia]. replace s' with 0; [now apply evals_zero|].
    symmetry. now apply between_0 with A.
  - assert (N : ~ dead (Prod x w)) by (simpl; tauto). rewrite (lives_one _ N).
    assert (R' := result_between A _ _ _ R Bt). destruct powers.
    + exists 0%nat, 1%nat. split; [|lia]. apply (evals_lose _ _ _ (x' * w')); [now apply evals_prod|].
      destruct (P eq_refl) as [F Q].
      assert (F' : in_format A x').
      { destruct (reading_cases A x x' Rx) as [->|[_ ->]]; [exact F|apply in_format_0]. }
      destruct (reading_cases A w w' Rw) as [->|[_ ->]]; [now apply result_power|].
      rewrite Rmult_0_r in *. rewrite (result_exact A 0 s'); [|apply in_format_0|now left|exact R'].
      rewrite Rminus_0_r, Rabs_R0. apply absolute_nonneg.
    + exists 1%nat, 1%nat. split; [|lia]. apply (evals_round _ _ _ (x' * w')); [now apply evals_prod|exact R'].
  - assert (N : ~ dead (Bias b)) by (simpl; tauto). rewrite (lives_one _ N). exists 0%nat, 0%nat.
    split; [|destruct powers; lia]. apply evals_bias. now apply reading_between with b'.
  - destruct (IH1 _ (between_refl A x)) as (k1 & m1 & E1 & K1 & M1).
    destruct (IH2 _ (between_refl A y)) as (k2 & m2 & E2 & K2 & M2).
    exists (S (Nat.max k1 k2)), (S (m1 + m2)). rewrite (lives_perm _ _ P), lives_app.
    split; [|destruct powers; lia]. apply (evals_round _ _ _ (x + y)); [|now apply result_between with s].
    now apply (evals_add _ _ _ _ l l1 l2).
  - destruct (IH _ Bt) as (k & m & E & K & M). exists k, m.
    rewrite (lives_perm _ _ P), lives_app, (lives_dead l2 D).
    split; [|destruct powers; lia]. assert (E0 := evals_zero l2 D).
    assert (S := evals_add k 0 m 0 l l1 l2 s' 0 P E E0). rewrite Nat.max_0_r, Nat.add_0_r, Rplus_0_r in S. exact S.
  - apply IH. now apply between_trans with y.
Qed.

(** * The relative error of k roundings *)

(** What core/balls.py gamma computes, as a real number; proofs/Radius.v is about its own rounding. *)
Definition gamma (k q : R) : R := k * q * (1 + 2 * (k * q)).

Lemma gamma_nonneg k q : 0 <= k -> 0 <= q -> 0 <= gamma k q.
Proof. intros K Q. unfold gamma. assert (0 <= k * q) by (now apply Rmult_le_pos). nra. Qed.

(** With x = k q < 1/4, k roundings that are each off by q are together off by at most x / (1 - x), which is at most
    x (1 + 2 x). For: core/balls.py gamma. *)
Theorem gamma_sound (k : nat) (q : R) : 0 <= q -> INR k * q <= 1 / 4 ->
  (1 + q) ^ k - 1 <= INR k * q / (1 - INR k * q) <= gamma (INR k) q /\ (1 + q) ^ k <= 4 / 3.
Proof.
  intros Q Hx. unfold gamma. pose proof (pos_INR k) as K.
  assert (G : 1 <= (1 + q) ^ k) by (apply pow_R1_Rle; lra).
  assert (B : (1 + q) ^ k * (1 - INR k * q) <= 1).
  { clear Hx G. induction k as [|k IH]; [simpl; lra|]. rewrite S_INR. simpl.
    pose proof (pos_INR k). assert (G : 1 <= (1 + q) ^ k) by (apply pow_R1_Rle; lra).
    set (g := (1 + q) ^ k) in *. specialize (IH ltac:(lra)).
    replace ((1 + q) * g * (1 - (INR k + 1) * q)) with (g * (1 - INR k * q) - g * ((INR k + 1) * (q * q))) by ring.
    assert (0 <= g * ((INR k + 1) * (q * q))) by (apply Rmult_le_pos; [lra|apply Rmult_le_pos; nra]). lra. }
  set (g := (1 + q) ^ k) in *. assert (X : 0 <= INR k * q) by nra. set (x := INR k * q) in *.
  assert (D : 0 < 1 - x) by lra. repeat split; [| |nra].
  - apply Rmult_le_reg_r with (1 - x); [exact D|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra.
  - apply Rmult_le_reg_r with (1 - x); [exact D|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. nra.
Qed.

(** The midpoint's roundings and the arithmetic's may be counted together. For: core/balls.py linear, rounded. *)
Lemma gamma_adds k q1 q2 : 0 <= k -> 0 <= q1 -> 0 <= q2 -> gamma k q1 + gamma k q2 <= gamma k (q1 + q2).
Proof.
  intros K Q1 Q2. unfold gamma. assert (0 <= k * q1) by nra. assert (0 <= k * q2) by nra.
  replace (k * (q1 + q2)) with (k * q1 + k * q2) by ring. nra.
Qed.

(** The error of a sum of products and a bias. With steps at least the number of terms that are not zero, less
    one if all weights are powers of two, it is at most gamma(steps) times the sum of the sizes, and what is
    lost. *)
Theorem linear_error (powers : bool) (l : list term) (s : R) (steps : nat) :
  dots powers l s ->
  (lives l - (if powers then 1 else 0) <= steps)%nat ->
  INR steps * relative A <= 1 / 4 ->
  Rabs (s - sum value l) <=
    gamma (INR steps) (relative A) * size l + 4 / 3 * lost (2 * lives l) l.
Proof.
  intros H L Hx. destruct (dots_count _ _ _ H) as (k & m & E & K & M).
  pose proof (absolute_nonneg A) as T. pose proof (relative_bounds A) as U.
  assert (E' := any_order_error _ _ _ _ E).
  destruct (gamma_sound steps (relative A) ltac:(lra) Hx) as [[G1 G2] G3].
  destruct (pow_mono k steps ltac:(lia)) as [B1 B2].
  set (g := (1 + relative A) ^ k) in *. set (h := (1 + relative A) ^ steps) in *.
  pose proof (size_nonneg l) as Sz.
  assert (M' : INR m <= INR (2 * lives l)) by (apply le_INR; lia).
  assert (Z : lost m l <= lost (2 * lives l) l).
  { unfold lost. apply Rplus_le_compat_r. now apply Rmult_le_compat_l. }
  assert (Z0 := lost_nonneg m l).
  apply Rle_trans with (1 := E'). apply Rplus_le_compat.
  - apply Rmult_le_compat_r; [exact Sz|]. lra.
  - apply Rmult_le_compat; lra.
Qed.

(** A sum of which at most one term is not zero, and that one solid, has one value: nothing is rounded or lost. *)
Definition firm (t : term) : Prop :=
  match t with
  | Prod x w => in_format A x /\ power_of_two w /\
      flushed A <= Rabs x /\ flushed A <= Rabs w /\ smallest A <= Rabs (x * w)
  | Bias b => flushed A <= Rabs b
  end.

Lemma reading_firm x y : flushed A <= Rabs x -> reading A x y -> y = x.
Proof.
  intros L R. destruct (reading_cases A x y R) as [->|[S ->]]; [reflexivity|lra].
Qed.

Theorem one_term_kept (powers : bool) (l : list term) (s : R) :
  dots powers l s -> (lives l <= 1)%nat -> (forall t, In t l -> dead t \/ firm t) -> s = sum value l.
Proof.
  intros H.
  assert (G : forall s', between A s s' -> (lives l <= 1)%nat -> (forall t, In t l -> dead t \/ firm t) ->
    s' = sum value l); [|apply G; apply between_refl].
  induction H as [l D|x w x' w' y X W Rx Rw R P|b b' B F R|l l1 l2 x y s P H1 IH1 H2 IH2 L1 L2 R|l l1 l2 x P D H IH|
    l x y H IH B]; intros s' Bt One Fm.
  - rewrite (proj1 (dead_sums l D)). now apply between_0 with A.
  - assert (R' := result_between A _ _ _ R Bt). destruct (Fm _ (or_introl eq_refl)) as [D|(F & Q & S1 & S2 & S3)].
    + simpl in D. tauto.
    + rewrite (reading_firm x x'), (reading_firm w w') in R' by trivial. simpl. rewrite Rplus_0_r.
      pose proof (flushed_smallest A).
      apply (result_exact A); [now apply in_format_power|right; lra|exact R'].
  - destruct (Fm _ (or_introl eq_refl)) as [D|S]; [simpl in D; tauto|]. simpl in *. rewrite Rplus_0_r.
    apply reading_firm; [exact S|now apply reading_between with b'].
  - rewrite (lives_perm _ _ P), lives_app in One. lia.
  - rewrite (sum_perm _ _ _ P), sum_app, (proj1 (dead_sums l2 D)), Rplus_0_r. apply IH; [exact Bt| |].
    + rewrite (lives_perm _ _ P), lives_app in One. lia.
    + intros t I. apply Fm. apply (Permutation_in t (Permutation_sym P)). apply in_or_app. now left.
  - apply IH; trivial. now apply between_trans with y.
Qed.

(** Adding two sums, as an operation, or none if one of them consists of exact zeros. *)
Definition joins (l1 : list term) (x : R) (l2 : list term) (y s : R) : Prop :=
  (lives l2 = 0%nat /\ between A x s) \/ (lives l1 = 0%nat /\ between A y s) \/
  (lives l1 <> 0%nat /\ lives l2 <> 0%nat /\ result A (x + y) s).

Lemma lives_none l : lives l = 0%nat -> forall t, In t l -> dead t.
Proof.
  unfold lives. induction l as [|a l IH]; intros H t I; [easy|]. simpl in H.
  destruct (dead_dec a) as [D|D]; [|discriminate]. destruct I as [<-|I]; [exact D|now apply IH].
Qed.

Lemma dots_joins powers l1 l2 x y s :
  dots powers l1 x -> dots powers l2 y -> joins l1 x l2 y s -> dots powers (l1 ++ l2) s.
Proof.
  intros H1 H2 [[L B]|[[L B]|(L1 & L2 & R)]].
  - apply dots_between with x; [|exact B]. apply (dots_skip _ _ l1 l2); [reflexivity|now apply lives_none|exact H1].
  - apply dots_between with y; [|exact B].
    apply (dots_skip _ _ l2 l1); [apply Permutation_app_comm|now apply lives_none|exact H2].
  - now apply (dots_add _ _ l1 l2 x y).
Qed.

End Evaluations.

(** * The evaluations are those of the profile *)

(** What the error bounds cover, the theorems about exact sums cover too. *)
Theorem dots_sums f powers l s : dots (any_order f) powers l s -> sums f (leaf f) l s.
Proof.
  assert (Two : forall l x z, sums f (leaf f) l x -> operation f x z -> sums f (leaf f) l z).
  { intros k x z H R. destruct (operation_rnd f x z R) as (y & R1 & R2).
    eapply sums_rnd; [|exact R2]. eapply sums_rnd; [exact H|exact R1]. }
  assert (Zeros : forall l, (forall t, In t l -> dead t) -> sums f (leaf f) l 0).
  { induction l0 as [|t l0 IH]; intros D; [apply sums_zero|]. replace 0 with (0 + 0) by ring.
    apply (sums_add f _ _ [t] l0); [reflexivity| |apply IH; intros; apply D; now right].
    apply sums_leaf. assert (Dt := D t (or_introl eq_refl)). destruct t as [x w|b]; simpl in *; [|now left].
    exists x, w. repeat split; [now left|now left|]. apply rnd_kept. destruct Dt as [->| ->]; ring. }
  induction 1 as [l D|x w x' w' y X W Rx Rw R P|b b' B F R|l l1 l2 x y s P H1 IH1 H2 IH2 L1 L2 R|l l1 l2 x P D H IH|
    l x y H IH B].
  - now apply Zeros.
  - simpl in *. destruct (operation_rnd f _ _ R) as (z & R1 & R2). eapply sums_rnd; [|exact R2].
    apply sums_leaf. now exists x', w'.
  - now apply sums_leaf.
  - apply (Two l (x + y)); [|exact R]. now apply (sums_add f _ l l1 l2).
  - replace x with (x + 0) by ring. apply (sums_add f _ l l1 l2); [exact P|exact IH|now apply Zeros].
  - apply (Two l x); [exact IH|]. exists x. split; [now apply widens_kept|exact B].
Qed.

(** A loop that multiplies, rounds, adds and rounds is one of these evaluations, whatever the inputs. *)
Definition fl (f : format) (x : R) : R := nearest (prec f) (emin f) (fun n => negb (Z.even n)) x.

Fixpoint loop (f : format) (acc : R) (l : list (R * R)) : R :=
  match l with [] => acc | (x, w) :: l => loop f (fl f (acc + fl f (x * w))) l end.

Definition products (l : list (R * R)) : list term := map (fun q => Prod (fst q) (snd q)) l.

Lemma fl_operation f x : operation f x (fl f x).
Proof. exists x. split; [now apply widens_kept|]. now apply settles_rounded with (fun n => negb (Z.even n)). Qed.

Lemma dots_none A powers l s : dots A powers l s -> lives l = 0%nat -> s = 0.
Proof.
  intros H L. rewrite (one_term_kept A powers l s H); [|lia|intros t I; left; now apply (lives_none l)].
  apply dead_sums. now apply lives_none.
Qed.

Theorem loop_evaluated f l done acc :
  dots (any_order f) false done acc -> dots (any_order f) false (done ++ products l) (loop f acc l).
Proof.
  revert done acc. induction l as [|[x w] l IH]; intros done acc H; simpl; [now rewrite app_nil_r|].
  replace (done ++ Prod x w :: products l) with ((done ++ [Prod x w]) ++ products l) by (now rewrite <- app_assoc).
  apply IH. destruct (dead_dec (Prod x w)) as [D|D].
  - replace (fl f (x * w)) with 0.
    2:{ replace (x * w) with 0 by (symmetry; apply (dead_value _ D)). symmetry. apply nearest_0. }
    rewrite Rplus_0_r. apply dots_between with acc.
    + apply (dots_skip _ _ _ done [Prod x w]); [reflexivity| |exact H]. intros t [<-|[]]. exact D.
    + now apply settles_rounded with (fun n => negb (Z.even n)).
  - assert (Hp : dots (any_order f) false [Prod x w] (fl f (x * w))).
    { apply (dots_prod _ _ x w x w); [| |now left|now left|apply fl_operation|easy];
        intros ->; apply D; [now left|now right]. }
    destruct (Nat.eq_dec (lives done) 0) as [Z|Z].
    + apply dots_joins with acc (fl f (x * w)); [exact H|exact Hp|]. right. left. split; [exact Z|].
      rewrite (dots_none _ _ _ _ H Z), Rplus_0_l. now apply settles_rounded with (fun n => negb (Z.even n)).
    + apply (dots_add _ _ _ done [Prod x w] acc (fl f (x * w))); trivial; [|apply fl_operation].
      now rewrite lives_one.
Qed.
