(** The checker's own exponential: [exp_nonpositive_error] says that it is off by at most a factor 1 +- 8 U.

    It subtracts a multiple of ln 2, which is stored in two words, evaluates the Taylor polynomial of degree 13, and
    multiplies by a power of two. For: core/balls.py exp_nonpositive. *)

From Coq Require Import Reals ZArith List Lra Lia.
From Flocq Require Import Core.
From Onelayer Require Import Arithmetic Rounding Radius Softmax.
Import ListNotations.
Open Scope R_scope.

(** * The series of exp *)

(** y^i / i! *)
Fixpoint power_term (y : R) (i : nat) : R := match i with O => 1 | S j => power_term y j * y / INR (S j) end.

Fixpoint taylor (y : R) (n : nat) : R := match n with O => 1 | S m => taylor y m + power_term y (S m) end.

Lemma power_term_fact y i : / INR (fact i) * y ^ i = power_term y i.
Proof.
  induction i as [|i IH]; [simpl; field|].
  change (power_term y (S i)) with (power_term y i * y / INR (S i)). rewrite <- IH, fact_simpl, mult_INR.
  change (y ^ S i) with (y * y ^ i). field. split; [apply INR_fact_neq_0|now apply not_0_INR].
Qed.

Lemma taylor_sum y n : sum_f_R0 (fun i => / INR (fact i) * y ^ i) n = taylor y n.
Proof.
  induction n as [|n IH]; [simpl; field|]. change (sum_f_R0 (fun i => / INR (fact i) * y ^ i) (S n)) with
    (sum_f_R0 (fun i => / INR (fact i) * y ^ i) n + / INR (fact (S n)) * y ^ S n).
  now rewrite IH, power_term_fact.
Qed.

(** Each term is at most 7/10 of the one before, if |y| is. *)
Lemma power_term_shrinks y i : Rabs y <= 7 / 10 -> Rabs (power_term y (S i)) <= 7 / 10 * Rabs (power_term y i).
Proof.
  intros Y. change (power_term y (S i)) with (power_term y i * y / INR (S i)).
  assert (P : 1 <= INR (S i)) by (apply (le_INR 1); lia).
  unfold Rdiv. rewrite !Rabs_mult, (Rabs_pos_eq (/ INR (S i))) by (left; apply Rinv_0_lt_compat; lra).
  assert (I : / INR (S i) <= 1) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra).
  assert (0 <= / INR (S i)) by (left; apply Rinv_0_lt_compat; lra).
  pose proof (Rabs_pos (power_term y i)). pose proof (Rabs_pos y).
  assert (Rabs y * / INR (S i) <= 7 / 10 * 1) by (apply Rmult_le_compat; lra).
  rewrite Rmult_assoc. rewrite (Rmult_comm (7 / 10)). apply Rmult_le_compat_l; lra.
Qed.

Lemma taylor_tail y n d : Rabs y <= 7 / 10 ->
  Rabs (taylor y (n + d) - taylor y n) <= (Rabs (power_term y (S n)) - Rabs (power_term y (S (n + d)))) * (10 / 3).
Proof.
  intros Y. induction d as [|d IH].
  - rewrite Nat.add_0_r, !Rminus_diag_eq by reflexivity. rewrite Rabs_R0. lra.
  - replace (n + S d)%nat with (S (n + d)) by lia. set (k := (n + d)%nat) in *.
    change (taylor y (S k)) with (taylor y k + power_term y (S k)).
    assert (B := power_term_shrinks y (S k) Y).
    replace (taylor y k + power_term y (S k) - taylor y n) with
      ((taylor y k - taylor y n) + power_term y (S k)) by ring.
    pose proof (Rabs_triang (taylor y k - taylor y n) (power_term y (S k))). lra.
Qed.

(** The error of the Taylor polynomial of degree n is at most 10/3 of the next term, for |y| <= 7/10. *)
Theorem taylor_error (y : R) (n : nat) :
  Rabs y <= 7 / 10 -> Rabs (exp y - taylor y n) <= Rabs (power_term y (S n)) * (10 / 3).
Proof.
  intros Y. apply le_epsilon. intros eps P. unfold exp. destruct (exist_exp y) as [e He]. cbn [proj1_sig].
  destruct (He eps P) as [N HN].
  specialize (HN (n + N)%nat ltac:(lia)). unfold R_dist in HN. rewrite taylor_sum in HN.
  assert (T := taylor_tail y n N Y). pose proof (Rabs_pos (power_term y (S (n + N)))).
  replace (e - taylor y n) with ((taylor y (n + N) - taylor y n) + - (taylor y (n + N) - e)) by ring.
  pose proof (Rabs_triang (taylor y (n + N) - taylor y n) (- (taylor y (n + N) - e))) as Tr.
  rewrite Rabs_Ropp in Tr. lra.
Qed.

(** * ln 2 *)

(** The polynomial as nested products, and at a fraction a / b as numerator and denominator. *)
Fixpoint nested (y : R) (i m : nat) : R := match m with O => 1 | S m => 1 + y / INR (S i) * nested y (S i) m end.

Lemma taylor_shift y m i : taylor y (i + m) - taylor y i = power_term y i * (nested y i m - 1).
Proof.
  revert i. induction m as [|m IH]; intros i; [rewrite Nat.add_0_r; simpl; ring|].
  replace (i + S m)%nat with (S i + m)%nat by lia. specialize (IH (S i)).
  change (taylor y (S i)) with (taylor y i + power_term y (S i)) in IH.
  change (power_term y (S i)) with (power_term y i * y / INR (S i)) in IH.
  change (nested y i (S m)) with (1 + y / INR (S i) * nested y (S i) m).
  replace (power_term y i * (1 + y / INR (S i) * nested y (S i) m - 1)) with
    (power_term y i * y / INR (S i) * nested y (S i) m) by (unfold Rdiv; ring). lra.
Qed.

Lemma taylor_nested y m : taylor y m = nested y 0 m.
Proof. pose proof (taylor_shift y m 0) as H. simpl in H. lra. Qed.

Fixpoint fraction (a b : Z) (i m : nat) : Z * Z :=
  match m with
  | O => (1, 1)%Z
  | S m => let '(p, q) := fraction a b (S i) m in let d := (b * Z.of_nat (S i) * q)%Z in (d + a * p, d)%Z
  end.

Lemma nested_fraction a b m : (0 < b)%Z -> forall i, let '(p, q) := fraction a b i m in
  (0 < q)%Z /\ nested (IZR a / IZR b) i m = IZR p / IZR q.
Proof.
  intros B. induction m as [|m IH]; intros i; [split; [easy|simpl; field]|].
  cbn [fraction]. specialize (IH (S i)). destruct (fraction a b (S i) m) as [p q]. destruct IH as [Q E].
  split; [apply Z.mul_pos_pos; [apply Z.mul_pos_pos|]; lia|].
  change (nested (IZR a / IZR b) i (S m)) with (1 + IZR a / IZR b / INR (S i) * nested (IZR a / IZR b) (S i) m).
  rewrite E, plus_IZR, !mult_IZR, <- INR_IZR_INZ. field.
  apply IZR_lt in B, Q. split; [lra|]. split; [now apply not_0_INR|lra].
Qed.

Definition LN2_HIGH : R := IZR 0x162e42fefa0000 * bpow radix2 (-53).
Definition LN2_LOW : R := IZR 0x1cf79abc9e3b39 * bpow radix2 (-92).
Definition INVERSE_LN2 : R := IZR 0x171547652b82fe * bpow radix2 (-52).

(** Both words together are ln 2 up to 2^-85. *)
Definition ln2_numerator : Z := (0x162e42fefa0000 * 2 ^ 39 + 0x1cf79abc9e3b39)%Z.

Lemma ln2_words : LN2_HIGH + LN2_LOW = IZR ln2_numerator / IZR (2 ^ 92).
Proof.
  unfold LN2_HIGH, LN2_LOW, ln2_numerator. rewrite plus_IZR, mult_IZR.
  change (bpow radix2 (-53)) with (/ IZR (2 ^ 53)). change (bpow radix2 (-92)) with (/ IZR (2 ^ 92)).
  replace (IZR (2 ^ 92)) with (IZR (2 ^ 53) * IZR (2 ^ 39)) by (rewrite <- mult_IZR; reflexivity).
  field. split; apply IZR_neq; discriminate.
Qed.

(** The terms at |y| <= c are at most those at c; at a fraction, they are a fraction. *)
Lemma power_term_bound y c i : Rabs y <= c -> Rabs (power_term y i) <= power_term c i.
Proof.
  intros Y. pose proof (Rabs_pos y). induction i as [|i IH]; [simpl; rewrite Rabs_R1; lra|].
  change (power_term y (S i)) with (power_term y i * y / INR (S i)).
  change (power_term c (S i)) with (power_term c i * c / INR (S i)).
  assert (P : 0 < INR (S i)) by (apply lt_0_INR; lia). assert (0 < / INR (S i)) by (now apply Rinv_0_lt_compat).
  unfold Rdiv. rewrite !Rabs_mult, (Rabs_pos_eq (/ INR (S i))) by lra. pose proof (Rabs_pos (power_term y i)).
  apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat; lra.
Qed.

Fixpoint term_fraction (a b : Z) (i : nat) : Z * Z :=
  match i with O => (1, 1)%Z | S j => let '(p, q) := term_fraction a b j in (p * a, q * b * Z.of_nat (S j))%Z end.

Lemma power_term_fraction a b i : (0 < b)%Z ->
  let '(p, q) := term_fraction a b i in (0 < q)%Z /\ power_term (IZR a / IZR b) i = IZR p / IZR q.
Proof.
  intros B. induction i as [|i IH]; [split; [easy|simpl; field]|].
  cbn [term_fraction]. destruct (term_fraction a b i) as [p q]. destruct IH as [Q E].
  split; [apply Z.mul_pos_pos; [apply Z.mul_pos_pos|]; lia|].
  change (power_term (IZR a / IZR b) (S i)) with (power_term (IZR a / IZR b) i * (IZR a / IZR b) / INR (S i)).
  rewrite E, !mult_IZR, <- INR_IZR_INZ. apply IZR_lt in B, Q. field.
  split; [now apply not_0_INR|]. lra.
Qed.

Lemma fraction_bound p q s : (0 < q)%Z -> (Z.abs p * 2 ^ Z.of_nat s <= q)%Z ->
Rabs (IZR p / IZR q) <= bpow radix2 (- Z.of_nat s).
Proof.
  intros Q H. assert (Q' : 0 < IZR q) by (now apply IZR_lt). unfold Rdiv.
  rewrite Rabs_mult, (Rabs_pos_eq (/ IZR q)) by (left; now apply Rinv_0_lt_compat). rewrite <- abs_IZR.
  apply Rmult_le_reg_r with (IZR q); [exact Q'|]. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
  apply Rmult_le_reg_l with (bpow radix2 (Z.of_nat s)); [apply bpow_gt_0|].
  rewrite <- Rmult_assoc, <- bpow_plus. replace (Z.of_nat s + - Z.of_nat s)%Z with 0%Z by lia.
  simpl (bpow radix2 0).
  rewrite Rmult_1_l. rewrite <- (IZR_Zpower radix2 (Z.of_nat s)) by lia. rewrite <- mult_IZR. apply IZR_le.
  rewrite Z.mul_comm. exact H.
Qed.

(** Two comparisons of whole numbers, which are computed. *)
Definition near_two (a b : Z) (m s : nat) : bool :=
  let '(p, q) := fraction a b 0 m in (Z.abs (p - 2 * q) * 2 ^ Z.of_nat s <=? q)%Z.

Definition small_term (a b : Z) (i s : nat) : bool :=
  let '(p, q) := term_fraction a b i in (Z.abs p * 2 ^ Z.of_nat s <=? q)%Z.

Lemma near_two_sound a b m s : (0 < b)%Z -> near_two a b m s = true ->
  Rabs (nested (IZR a / IZR b) 0 m - 2) <= bpow radix2 (- Z.of_nat s).
Proof.
  intros B. unfold near_two. assert (N := nested_fraction a b m B 0). destruct (fraction a b 0 m) as [p q].
  destruct N as [Q ->]. intros H. apply Z.leb_le in H. apply IZR_lt in Q as Q'.
  replace (IZR p / IZR q - 2) with (IZR (p - 2 * q) / IZR q) by (rewrite minus_IZR, mult_IZR; field; lra).
  now apply fraction_bound.
Qed.

Lemma small_term_sound a b i s : (0 < b)%Z -> small_term a b i s = true ->
  power_term (IZR a / IZR b) i <= bpow radix2 (- Z.of_nat s).
Proof.
  intros B. unfold small_term. assert (N := power_term_fraction a b i B). destruct (term_fraction a b i) as [p q].
  destruct N as [Q ->]. intros H. apply Z.leb_le in H. apply Rle_trans with (1 := Rle_abs _).
  now apply fraction_bound.
Qed.

Lemma ln2_near : near_two ln2_numerator (2 ^ 92) 27 87 = true.
Proof. vm_compute. reflexivity. Qed.

Lemma small_28 : small_term 7 10 28 100 = true.
Proof. vm_compute. reflexivity. Qed.

(** The two words add up to ln 2 up to 2^-85: e to that power is 2 up to 2^-86, by 27 terms of the series. *)
Theorem ln2_split : Rabs (LN2_HIGH + LN2_LOW - ln 2) <= bpow radix2 (-85).
Proof.
  rewrite ln2_words. set (c := IZR ln2_numerator / IZR (2 ^ 92)).
  assert (C7 : Rabs c <= 7 / 10).
  { assert (0 < IZR (2 ^ 92)) by (now apply IZR_lt). rewrite Rabs_pos_eq.
    - unfold c. apply Rmult_le_reg_r with (IZR (2 ^ 92)); [assumption|]. unfold Rdiv at 1.
      rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
      assert (10 * IZR ln2_numerator <= 7 * IZR (2 ^ 92)); [|lra]. rewrite <- !mult_IZR. apply IZR_le.
      vm_compute. discriminate.
    - unfold c. apply Rmult_le_pos; [now apply IZR_le|left; now apply Rinv_0_lt_compat]. }
  assert (T := taylor_error c 27 C7). rewrite taylor_nested in T.
  assert (N2 := near_two_sound ln2_numerator (2 ^ 92) 27 87 eq_refl ln2_near). fold c in N2.
  assert (P := Rle_trans _ _ _ (power_term_bound c _ 28 C7) (small_term_sound 7 10 28 100 eq_refl small_28)).
  change (- Z.of_nat 87)%Z with (-87)%Z in N2. change (- Z.of_nat 100)%Z with (-100)%Z in P.
  assert (E : Rabs (exp c - 2) <= bpow radix2 (-85)).
  { replace (exp c - 2) with ((exp c - nested c 0 27) + (nested c 0 27 - 2)) by ring.
    apply Rle_trans with (1 := Rabs_triang _ _).
    assert (bpow radix2 (-87) = bpow radix2 (-85) / 4) by (simpl; lra).
    assert (bpow radix2 (-88) = bpow radix2 (-85) / 8) by (simpl; lra).
    assert (bpow radix2 (-100) <= bpow radix2 (-88)) by (now apply bpow_le).
    pose proof (bpow_ge_0 radix2 (-85)). lra. }
  assert (L2 : exp (ln 2) = 2) by (apply exp_ln; lra).
  assert (C0 : 1 <= exp c).
  { assert (bpow radix2 (-85) <= 1) by (change 1 with (bpow radix2 0); now apply bpow_le).
    revert E. unfold Rabs. destruct (Rcase_abs (exp c - 2)); lra. }
  set (e := bpow radix2 (-85)) in *. set (d := ln 2 - c).
  assert (D1 : exp c * (1 + d) <= 2).
  { rewrite <- L2. replace (ln 2) with (c + d) by (unfold d; ring). rewrite exp_plus.
    apply Rmult_le_compat_l; [lra|apply exp_above]. }
  assert (D2 : 2 * (1 - d) <= exp c).
  { replace c with (ln 2 + - d) by (unfold d; ring). rewrite exp_plus, L2.
    apply Rmult_le_compat_l; [lra|]. assert (H := exp_above (- d)). lra. }
  replace (c - ln 2) with (- d) by (unfold d; ring). rewrite Rabs_Ropp.
  assert (E' : - e <= exp c - 2 <= e) by (revert E; unfold Rabs; destruct (Rcase_abs (exp c - 2)); lra).
  unfold Rabs. destruct (Rcase_abs d) as [Nd|Pd]; [lra|]. assert (d <= exp c * d) by nra. lra.
Qed.

(** * Horner's rule *)

(** The polynomial with coefficients d, highest first, begun with p; and as float64 evaluates it. *)
Fixpoint horner (x p : R) (ds : list R) : R := match ds with [] => p | d :: ds => horner x (p * x + d) ds end.

Inductive horner_computed (x : R) : R -> list R -> R -> Prop :=
| horner_end p : horner_computed x p [] p
| horner_next p c cs q s r :
    rounds (p * x) q -> rounds (q + c) s -> horner_computed x s cs r -> horner_computed x p (c :: cs) r.

(** A coefficient is rounded once. *)
Definition coefficient (c d : R) : Prop := Rabs (c - d) <= U /\ Rabs c <= 1.

Lemma horner_error (x p P r : R) (cs ds : list R) :
  Rabs x <= 3467 / 10000 -> Forall2 coefficient cs ds -> Rabs p <= 8 / 5 -> Rabs (p - P) <= 24 / 5 * U ->
  horner_computed x p cs r -> Rabs (r - horner x P ds) <= 24 / 5 * U.
Proof.
  intros X F. revert p P.
  induction F as [|c d cs ds [C1 C2] F IH]; intros p P Bp Ep H; inversion H; subst; [exact Ep|].
  simpl. destruct U_numeric as [U1 U2]. pose proof U_pos as Up. pose proof least_pos as Lp.
  match goal with A : rounds (p * x) q, B : rounds (q + c) s, D : horner_computed x s cs r |- _ =>
    rename A into Hq, B into Hs, D into Hr end.
  assert (A1 : Rabs (p * x) <= 5548 / 10000).
  { rewrite Rabs_mult. pose proof (Rabs_pos p). pose proof (Rabs_pos x).
    apply Rle_trans with (8 / 5 * (3467 / 10000)); [apply Rmult_le_compat; lra|lra]. }
  assert (Q := rounds_once_error _ _ (rounds_once_of _ _ Hq)).
  assert (Q1 : Rabs (q - p * x) <= 5554 / 10000 * U).
  { apply Rle_trans with (1 := Q).
    assert (U * Rabs (p * x) <= U * (5548 / 10000)) by (apply Rmult_le_compat_l; lra). lra. }
  assert (Q2 : Rabs q <= 5549 / 10000).
  { replace q with (p * x + (q - p * x)) by ring. pose proof (Rabs_triang (p * x) (q - p * x)). lra. }
  assert (A2 : Rabs (q + c) <= 15549 / 10000) by (pose proof (Rabs_triang q c); lra).
  assert (S := rounds_once_error _ _ (rounds_once_of _ _ Hs)).
  assert (S1 : Rabs (s - (q + c)) <= 15555 / 10000 * U).
  { apply Rle_trans with (1 := S).
    assert (U * Rabs (q + c) <= U * (15549 / 10000)) by (apply Rmult_le_compat_l; lra). lra. }
  apply (IH s (P * x + d)); [| |exact Hr].
  - replace s with ((q + c) + (s - (q + c))) by ring. pose proof (Rabs_triang (q + c) (s - (q + c))). lra.
  - assert (A3 : Rabs ((p - P) * x) <= 24 / 5 * U * (3467 / 10000)).
    { rewrite Rabs_mult. pose proof (Rabs_pos (p - P)). pose proof (Rabs_pos x). apply Rmult_le_compat; lra. }
    replace (s - (P * x + d)) with ((s - (q + c)) + (q - p * x) + (p - P) * x + (c - d)) by ring.
    pose proof (Rabs_triang ((s - (q + c)) + (q - p * x) + (p - P) * x) (c - d)).
    pose proof (Rabs_triang ((s - (q + c)) + (q - p * x)) ((p - P) * x)).
    pose proof (Rabs_triang (s - (q + c)) (q - p * x)). lra.
Qed.

(** 1/13! and the coefficients after it, down to 1/0!. *)
Definition factorials : list R := map (fun n => 1 / IZR n)
  [479001600; 39916800; 3628800; 362880; 40320; 5040; 720; 120; 24; 6; 2; 1; 1]%Z.

Lemma horner_taylor x : horner x (1 / IZR 6227020800) factorials = taylor x 13.
Proof.
  rewrite taylor_nested. unfold factorials. cbn [map horner nested].
  rewrite !S_INR. change (INR 0) with 0. field.
Qed.

(** TAYLOR: 1.0 / factorial(i), rounded. *)
Lemma coefficient_rounded n c : (1 <= n)%Z -> rounds (1 / IZR n) c -> coefficient c (1 / IZR n).
Proof.
  intros N H. apply IZR_le in N. destruct U_numeric as [U1 U2]. pose proof U_pos. pose proof least_pos.
  assert (I : 0 < / IZR n <= 1) by (split; [apply Rinv_0_lt_compat; lra|rewrite <- Rinv_1;
    apply Rinv_le_contravar; lra]).
  unfold coefficient, Rdiv in *. rewrite Rmult_1_l in *. split.
  - destruct (Req_dec (IZR n) 1) as [E|E].
    + rewrite E, Rinv_1 in *. rewrite (rounds_exact 1 c number_1 H). rewrite Rminus_diag_eq by reflexivity.
      rewrite Rabs_R0. lra.
    + assert (N2 : 2 <= IZR n).
      { apply IZR_le. assert (n <> 1)%Z by (intros ->; now apply E). apply le_IZR in N. lia. }
      assert (/ IZR n <= / 2) by (apply Rinv_le_contravar; lra).
      apply rounds_once_of, rounds_once_error in H. rewrite (Rabs_pos_eq (/ IZR n)) in H by lra.
      assert (U * / IZR n <= U * / 2) by (apply Rmult_le_compat_l; lra). lra.
  - rewrite Rabs_pos_eq; [apply (rounds_le 1 (/ IZR n)); [apply number_1|lra|exact H]|].
    apply rounds_nonneg with (/ IZR n); [lra|exact H].
Qed.

(** * Reduction *)

Lemma ln2_numeric : 693147 / 1000000 <= ln 2 <= 693148 / 1000000.
Proof.
  assert (H := ln2_split). rewrite ln2_words in H.
  assert (B : bpow radix2 (-85) <= bpow radix2 (-30)) by (now apply bpow_le).
  assert (B30 : bpow radix2 (-30) = / 1073741824) by reflexivity.
  set (n := IZR ln2_numerator / IZR (2 ^ 92)) in *.
  assert (Q : 0 < IZR (2 ^ 92)) by (now apply IZR_lt).
  assert (N1 : 6931471 / 10000000 <= n).
  { unfold n. apply Rmult_le_reg_r with (IZR (2 ^ 92)); [exact Q|]. unfold Rdiv at 2.
    rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
    assert (6931471 * IZR (2 ^ 92) <= 10000000 * IZR ln2_numerator); [|lra]. rewrite <- !mult_IZR. apply IZR_le.
    vm_compute. discriminate. }
  assert (N2 : n <= 6931472 / 10000000).
  { unfold n. apply Rmult_le_reg_r with (IZR (2 ^ 92)); [exact Q|]. unfold Rdiv at 1.
    rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
    assert (10000000 * IZR ln2_numerator <= 6931472 * IZR (2 ^ 92)); [|lra]. rewrite <- !mult_IZR. apply IZR_le.
    vm_compute. discriminate. }
  revert H. unfold Rabs. destruct (Rcase_abs (n - ln 2)); lra.
Qed.

(** INVERSE_LN2 is 1 / ln 2 up to a factor 1 +- 8 U. *)
Lemma inverse_numeric : Rabs (INVERSE_LN2 * ln 2 - 1) <= 8 * U /\ 0 <= INVERSE_LN2 <= 3 / 2.
Proof.
  assert (E : INVERSE_LN2 = IZR 0x171547652b82fe / IZR (2 ^ 52)) by reflexivity.
  assert (Q52 : 0 < IZR (2 ^ 52)) by (now apply IZR_lt).
  assert (I : 0 <= INVERSE_LN2 <= 3 / 2).
  { rewrite E. split; [apply Rmult_le_pos; [now apply IZR_le|left; now apply Rinv_0_lt_compat]|].
    apply Rmult_le_reg_r with (IZR (2 ^ 52)); [exact Q52|]. unfold Rdiv at 1.
    rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
    assert (2 * IZR 0x171547652b82fe <= 3 * IZR (2 ^ 52)); [|lra]. rewrite <- !mult_IZR. apply IZR_le.
    vm_compute. discriminate. }
  split; [|exact I]. assert (H := ln2_split). rewrite ln2_words in H.
  set (n := IZR ln2_numerator / IZR (2 ^ 92)) in *.
  assert (B85 : bpow radix2 (-85) <= U).
  { rewrite U_eq. now apply bpow_le. }
  assert (P : Rabs (INVERSE_LN2 * n - 1) <= bpow radix2 (-51)).
  { rewrite E. unfold n. assert (Q92 : 0 < IZR (2 ^ 92)) by (now apply IZR_lt).
    replace (IZR 0x171547652b82fe / IZR (2 ^ 52) * (IZR ln2_numerator / IZR (2 ^ 92)) - 1) with
      (IZR (0x171547652b82fe * ln2_numerator - 2 ^ 52 * 2 ^ 92) / IZR (2 ^ 52 * 2 ^ 92)).
    - apply (fraction_bound _ _ 51); [easy|]. vm_compute. discriminate.
    - rewrite minus_IZR, !mult_IZR. field. lra. }
  assert (B51 : bpow radix2 (-51) = 4 * U).
  { rewrite U_eq. replace 4 with (bpow radix2 2) by reflexivity. rewrite <- bpow_plus. reflexivity. }
  replace (INVERSE_LN2 * ln 2 - 1) with ((INVERSE_LN2 * n - 1) + INVERSE_LN2 * - (n - ln 2)) by ring.
  apply Rle_trans with (1 := Rabs_triang _ _).
  rewrite (Rabs_mult INVERSE_LN2), Rabs_Ropp, (Rabs_pos_eq INVERSE_LN2) by lra.
  assert (INVERSE_LN2 * Rabs (n - ln 2) <= 3 / 2 * U).
  { apply Rmult_le_compat; [lra|apply Rabs_pos|lra|lra]. }
  pose proof U_pos. lra.
Qed.

(** k LN2_HIGH has few enough bits to be exact. *)
Lemma high_exact (k : Z) : (Z.abs k <= 1011)%Z -> number binary64 (IZR k * LN2_HIGH).
Proof.
  intros K. replace (IZR k * LN2_HIGH) with (IZR (k * 47632711549) * bpow radix2 (-36)).
  - apply generic_format_FLT. exists (Float radix2 (k * 47632711549) (-36)); [reflexivity| |easy].
    change (Z.abs (k * 47632711549) < 9007199254740992)%Z. lia.
  - unfold LN2_HIGH. rewrite mult_IZR, Rmult_assoc. f_equal.
    change 0x162e42fefa0000%Z with (47632711549 * 2 ^ 17)%Z. rewrite mult_IZR, Rmult_assoc.
    change (IZR (2 ^ 17)) with (bpow radix2 17). rewrite <- bpow_plus. reflexivity.
Qed.

(** So is x - k LN2_HIGH: both are multiples of 2^-54, and they are near each other. *)
Lemma difference_exact (x : R) (k : Z) : number binary64 x -> 1 / 4 <= Rabs x -> (Z.abs k <= 1011)%Z ->
  Rabs (x - IZR k * LN2_HIGH) < 1 / 2 -> number binary64 (x - IZR k * LN2_HIGH).
Proof.
  intros F X K D.
  assert (M : exists n : Z, x = IZR n * bpow radix2 (-54)).
  { assert (E : (-54 <= cexp radix2 (FLT_exp (-1074) 53) x)%Z).
    { unfold cexp, FLT_exp. assert (-2 < mag radix2 x)%Z; [|lia]. apply mag_gt_bpow.
      replace (bpow radix2 (-2)) with (1 / 4) by (simpl; lra). exact X. }
    set (e := cexp radix2 (FLT_exp (-1074) 53) x) in *.
    exists (Ztrunc (scaled_mantissa radix2 (FLT_exp (-1074) 53) x) * 2 ^ (e + 54))%Z.
    rewrite F at 1. unfold F2R. cbn [Fnum Fexp].
    change (cexp radix2 (FLT_exp (emin binary64) (prec binary64)) x) with e.
    rewrite mult_IZR, Rmult_assoc. f_equal. rewrite (IZR_Zpower radix2) by lia. rewrite <- bpow_plus. f_equal.
    lia. }
  destruct M as [n N].
  assert (H : IZR k * LN2_HIGH = IZR (k * 0x162e42fefa0000 * 2) * bpow radix2 (-54)).
  { unfold LN2_HIGH. rewrite !mult_IZR. replace (bpow radix2 (-53)) with (2 * bpow radix2 (-54)); [ring|].
    change 2 with (bpow radix2 1). rewrite <- bpow_plus. reflexivity. }
  rewrite H in *. subst x. rewrite <- Rmult_minus_distr_r, <- minus_IZR in *.
  set (m := (n - k * 0x162e42fefa0000 * 2)%Z) in *.
  apply generic_format_FLT. exists (Float radix2 m (-54)); [reflexivity| |easy]. cbn [Fnum].
  rewrite Rabs_mult, (Rabs_pos_eq (bpow radix2 (-54))) in D by apply bpow_ge_0. rewrite <- abs_IZR in D.
  apply lt_IZR. apply Rmult_lt_reg_r with (bpow radix2 (-54)); [apply bpow_gt_0|].
  apply Rlt_le_trans with (1 := D). change (1 / 2 <= bpow radix2 53 * bpow radix2 (-54)). rewrite <- bpow_plus.
  simpl. lra.
Qed.

(** The reduced argument x2 is near x - k ln 2, and small. *)
Theorem reduction (x y h x1 low x2 : R) (k : Z) :
  number binary64 x -> -700 <= x <= 0 -> rounds (x * INVERSE_LN2) y -> Rabs (IZR k - y) <= 1 / 2 ->
  rounds (IZR k * LN2_HIGH) h -> rounds (x - h) x1 -> rounds (IZR k * LN2_LOW) low -> rounds (x1 - low) x2 ->
  Rabs (x2 - (x - IZR k * ln 2)) <= 35 / 100 * U /\ Rabs (x - IZR k * ln 2) <= 3466 / 10000.
Proof.
  intros F X Hy Hk Hh H1 Hl H2. pose proof U_pos as Up. destruct U_numeric as [U1 U2]. pose proof least_pos as Lp.
  destruct inverse_numeric as [Inv I]. destruct ln2_numeric as [Ln1 Ln2].
  assert (Y := rounds_once_error _ _ (rounds_once_of _ _ Hy)).
  assert (XI : Rabs (x * INVERSE_LN2) <= 1050).
  { rewrite Rabs_mult, (Rabs_pos_eq INVERSE_LN2), (Rabs_left1 x) by lra.
    apply Rle_trans with (700 * (3 / 2)); [apply Rmult_le_compat; lra|lra]. }
  assert (Y1 : Rabs (y - x * INVERSE_LN2) <= 1051 * U).
  { apply Rle_trans with (1 := Y).
    assert (U * Rabs (x * INVERSE_LN2) <= U * 1050) by (apply Rmult_le_compat_l; lra). lra. }
  (* x - k ln 2 *)
  set (r := x - IZR k * ln 2).
  assert (R1 : Rabs (x - y * ln 2) <= 7000 * U).
  { replace (x - y * ln 2) with (- x * (INVERSE_LN2 * ln 2 - 1) + - (y - x * INVERSE_LN2) * ln 2) by ring.
    apply Rle_trans with (1 := Rabs_triang _ _).
    rewrite !Rabs_mult, !Rabs_Ropp, (Rabs_left1 x), (Rabs_pos_eq (ln 2)) by lra.
    assert (- x * Rabs (INVERSE_LN2 * ln 2 - 1) <= 700 * (8 * U)) by (apply Rmult_le_compat; try lra;
      apply Rabs_pos).
    assert (Rabs (y - x * INVERSE_LN2) * ln 2 <= 1051 * U * 1) by (apply Rmult_le_compat; try lra;
      apply Rabs_pos). lra. }
  assert (R2 : Rabs r <= 34658 / 100000).
  { unfold r. replace (x - IZR k * ln 2) with ((x - y * ln 2) + - (IZR k - y) * ln 2) by ring.
    apply Rle_trans with (1 := Rabs_triang _ _). rewrite Rabs_mult, Rabs_Ropp, (Rabs_pos_eq (ln 2)) by lra.
    assert (Rabs (IZR k - y) * ln 2 <= 1 / 2 * (693148 / 1000000)) by (apply Rmult_le_compat; try lra;
      apply Rabs_pos).
    lra. }
  split; [|lra].
  assert (K1 : Rabs (IZR k) <= 1011).
  { assert (P : Rabs (IZR k * ln 2) <= 70035 / 100).
    { replace (IZR k * ln 2) with (x - r) by (unfold r; ring). unfold Rminus.
      apply Rle_trans with (1 := Rabs_triang _ _). rewrite Rabs_Ropp, (Rabs_left1 x) by lra. lra. }
    rewrite Rabs_mult, (Rabs_pos_eq (ln 2)) in P by lra. pose proof (Rabs_pos (IZR k)).
    assert (Rabs (IZR k) * (693147 / 1000000) <= Rabs (IZR k) * ln 2) by (apply Rmult_le_compat_l; lra). lra. }
  assert (K : (Z.abs k <= 1011)%Z) by (apply le_IZR; rewrite abs_IZR; exact K1).
  assert (Eh := rounds_exact _ _ (high_exact k K) Hh). subst h.
  (* the low word *)
  assert (L0 : 0 <= LN2_LOW <= / 500000000000).
  { unfold LN2_LOW. split; [apply Rmult_le_pos; [now apply IZR_le|apply bpow_ge_0]|].
    apply Rle_trans with (bpow radix2 53 * bpow radix2 (-92)).
    - apply Rmult_le_compat_r; [apply bpow_ge_0|]. change (bpow radix2 53) with (IZR (2 ^ 53)). now apply IZR_le.
    - rewrite <- bpow_plus. change (bpow radix2 (53 + -92)) with (/ 549755813888). apply Rinv_le_contravar; lra. }
  assert (KL : Rabs (IZR k * LN2_LOW) <= 1 / 100000000).
  { rewrite Rabs_mult, (Rabs_pos_eq LN2_LOW) by lra.
    apply Rle_trans with (1011 * / 500000000000); [apply Rmult_le_compat; try lra; apply Rabs_pos|lra]. }
  assert (Lw := rounds_once_error _ _ (rounds_once_of _ _ Hl)).
  assert (Lw1 : Rabs (low - IZR k * LN2_LOW) <= U / 1000).
  { apply Rle_trans with (1 := Lw).
    assert (U * Rabs (IZR k * LN2_LOW) <= U * (1 / 100000000)) by (apply Rmult_le_compat_l; lra). lra. }
  assert (Sp := ln2_split).
  assert (B85 : 1011 * bpow radix2 (-85) <= U / 1000).
  { rewrite U_eq. apply Rle_trans with (bpow radix2 20 * bpow radix2 (-85) / 1000).
    - pose proof (bpow_ge_0 radix2 (-85)). simpl (bpow radix2 20). nra.
    - unfold Rdiv. apply Rmult_le_compat_r; [lra|]. rewrite <- bpow_plus. now apply bpow_le. }
  assert (Sk : Rabs (IZR k * (LN2_HIGH + LN2_LOW - ln 2)) <= U / 1000).
  { rewrite Rabs_mult. apply Rle_trans with (2 := B85). apply Rmult_le_compat; try lra; apply Rabs_pos. }
  (* the first difference is exact *)
  assert (E1 : x1 = x - IZR k * LN2_HIGH).
  { apply rounds_exact; [|exact H1]. destruct (Z.eq_dec k 0) as [->|Nk].
    - rewrite Rmult_0_l, Rminus_0_r. exact F.
    - apply difference_exact; trivial.
      + assert (1 <= Rabs (IZR k)) by (rewrite <- abs_IZR; apply IZR_le; lia).
        assert (1 * ln 2 <= Rabs (IZR k) * ln 2) by (apply Rmult_le_compat_r; lra).
        pose proof (Rabs_triang x (- r)) as T. replace (x + - r) with (IZR k * ln 2) in T by (unfold r; ring).
        rewrite Rabs_Ropp, Rabs_mult, (Rabs_pos_eq (ln 2)) in T by lra. lra.
      + replace (x - IZR k * LN2_HIGH) with (r + IZR k * LN2_LOW + - (IZR k * (LN2_HIGH + LN2_LOW - ln 2))) by
          (unfold r; ring).
        pose proof (Rabs_triang (r + IZR k * LN2_LOW) (- (IZR k * (LN2_HIGH + LN2_LOW - ln 2)))) as T.
        pose proof (Rabs_triang r (IZR k * LN2_LOW)). rewrite Rabs_Ropp in T. lra. }
  (* the second is rounded *)
  assert (D : Rabs (x1 - low - r) <= U / 500).
  { rewrite E1. replace (x - IZR k * LN2_HIGH - low - r) with
      (- (IZR k * (LN2_HIGH + LN2_LOW - ln 2)) + - (low - IZR k * LN2_LOW)) by (unfold r; ring).
    apply Rle_trans with (1 := Rabs_triang _ _). rewrite !Rabs_Ropp. lra. }
  assert (D1 : Rabs (x1 - low) <= 3466 / 10000).
  { pose proof (Rabs_triang r (x1 - low - r)) as T. replace (r + (x1 - low - r)) with (x1 - low) in T by ring.
    lra. }
  assert (D2 := rounds_once_error _ _ (rounds_once_of _ _ H2)).
  assert (U * Rabs (x1 - low) <= U * (3466 / 10000)) by (apply Rmult_le_compat_l; lra).
  replace (x2 - r) with ((x2 - (x1 - low)) + (x1 - low - r)) by ring.
  pose proof (Rabs_triang (x2 - (x1 - low)) (x1 - low - r)). lra.
Qed.

(** * The exponential *)

Lemma small_14 : small_term 3467 10000 14 57 = true.
Proof. vm_compute. reflexivity. Qed.

(** exp_nonpositive is off by at most a factor 1 +- 8 U for -700 <= x <= 0, EXP_U of the code; y is x
    INVERSE_LN2, k the whole number next to it, c13 and cs the coefficients 1/13!, ..., 1/0!, and p the value of
    the polynomial. The product with 2^k is exact. For: core/balls.py exp_nonpositive. *)
Theorem exp_nonpositive_error (x y h x1 low x2 c13 p : R) (cs : list R) (k : Z) :
  number binary64 x -> -700 <= x <= 0 -> rounds (x * INVERSE_LN2) y -> Rabs (IZR k - y) <= 1 / 2 ->
  rounds (IZR k * LN2_HIGH) h -> rounds (x - h) x1 -> rounds (IZR k * LN2_LOW) low -> rounds (x1 - low) x2 ->
  rounds (1 / IZR 6227020800) c13 -> Forall2 (fun c d => rounds d c) cs factorials -> horner_computed x2 c13 cs p ->
  Rabs (p * bpow radix2 k - exp x) <= 8 * U * exp x.
Proof.
  intros F X Hy Hk Hh H1 Hl H2 Hc Hcs Hp. pose proof U_pos as Up. destruct U_numeric as [U1 U2].
  destruct (reduction x y h x1 low x2 k F X Hy Hk Hh H1 Hl H2) as [D R]. set (r := x - IZR k * ln 2) in *.
  assert (X2 : Rabs x2 <= 3467 / 10000).
  { pose proof (Rabs_triang r (x2 - r)) as T. replace (r + (x2 - r)) with x2 in T by ring. lra. }
  assert (Fc : Forall2 coefficient cs factorials).
  { assert (All : forall d, In d factorials -> exists n, (1 <= n)%Z /\ d = 1 / IZR n).
    { intros d I. apply in_map_iff in I. destruct I as (n & <- & I). exists n. split; [|reflexivity].
      simpl in I. repeat (destruct I as [<-|I]; [lia|]). contradiction. }
    clear Hp. revert All. induction Hcs as [|c d cs ds Hd Hds IH]; intros All; constructor.
    - destruct (All d (or_introl eq_refl)) as (n & N & ->). now apply coefficient_rounded.
    - apply IH. intros e I. apply All. now right. }
  assert (C13 := coefficient_rounded 6227020800 c13 ltac:(lia) Hc). destruct C13 as [C1 C2].
  assert (P := horner_error x2 c13 (1 / IZR 6227020800) p cs factorials X2 Fc ltac:(lra) ltac:(lra) Hp).
  rewrite horner_taylor in P.
  assert (T := taylor_error x2 13 ltac:(lra)).
  assert (T14 : Rabs (power_term x2 14) <= U / 16).
  { apply Rle_trans with (1 := power_term_bound x2 _ 14 X2).
    apply Rle_trans with (1 := small_term_sound 3467 10000 14 57 eq_refl small_14).
    change (- Z.of_nat 57)%Z with (-53 + -4)%Z. rewrite bpow_plus, <- U_eq. simpl (bpow radix2 (-4)). lra. }
  assert (P2 : Rabs (p - exp x2) <= 501 / 100 * U).
  { replace (p - exp x2) with ((p - taylor x2 13) + - (exp x2 - taylor x2 13)) by ring.
    pose proof (Rabs_triang (p - taylor x2 13) (- (exp x2 - taylor x2 13))) as Tr. rewrite Rabs_Ropp in Tr. lra. }
  assert (R' : - (3466 / 10000) <= r) by (revert R; unfold Rabs; destruct (Rcase_abs r); lra).
  assert (Er : 683 / 1000 <= exp r).
  { assert (A := exp_above (r / 2)). replace r with (r / 2 + r / 2) by field. rewrite exp_plus.
    apply Rle_trans with ((8267 / 10000) * (8267 / 10000)); [lra|]. apply Rmult_le_compat; lra. }
  assert (D' : - (35 / 100 * U) <= x2 - r <= 35 / 100 * U) by (revert D; unfold Rabs;
    destruct (Rcase_abs (x2 - r)); lra).
  assert (E2 : Rabs (exp x2 - exp r) <= 36 / 100 * U * exp r).
  { replace x2 with (r + (x2 - r)) by ring. rewrite exp_plus. set (d := x2 - r) in *.
    replace (exp r * exp d - exp r) with ((exp d - 1) * exp r) by ring.
    rewrite Rabs_mult, (Rabs_pos_eq (exp r)) by lra. apply Rmult_le_compat_r; [lra|].
    assert (A := exp_above d).
    assert (B : exp d <= exp (35 / 100 * U)) by (apply exp_mono; lra).
    assert (C := exp_quadratic (35 / 100 * U) ltac:(lra)).
    assert (35 / 100 * U * (35 / 100 * U) <= 35 / 100 * U * (1 / 100)) by (apply Rmult_le_compat_l; lra).
    unfold Rabs. destruct (Rcase_abs (exp d - 1)); lra. }
  assert (E3 : Rabs (p - exp r) <= 8 * U * exp r).
  { replace (p - exp r) with ((p - exp x2) + (exp x2 - exp r)) by ring. apply Rle_trans with (1 := Rabs_triang _ _).
    assert (764 / 100 * U * (683 / 1000) <= 764 / 100 * U * exp r) by (apply Rmult_le_compat_l; lra). lra. }
  assert (Ex : exp x = exp r * bpow radix2 k).
  { replace x with (r + IZR k * ln 2) by (unfold r; ring). rewrite exp_plus. f_equal.
    symmetry. apply (bpow_exp radix2). }
  rewrite Ex. replace (p * bpow radix2 k - exp r * bpow radix2 k) with ((p - exp r) * bpow radix2 k) by ring.
  rewrite Rabs_mult, (Rabs_pos_eq (bpow radix2 k)) by apply bpow_ge_0.
  rewrite <- Rmult_assoc. apply Rmult_le_compat_r; [apply bpow_ge_0|exact E3].
Qed.
