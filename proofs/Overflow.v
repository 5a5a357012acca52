(** Infinity and NaN. The other files take numbers of a format to be real numbers with unbounded exponents. Here
    that is justified for Flocq's IEEE 754 numbers: if the sizes of all terms of a sum stay below a bound, which
    is what [guarded] and [calm] of core/balls.py ask, then no operation of any evaluation overflows, and each is
    the rounding of a real number ([guarded_finite]). And a comparison with NaN is false: a test that a verdict
    rests on is never passed by NaN or by an infinite bound ([accepted], [below_infinity]). *)

From Coq Require Import Reals ZArith List Permutation Lra Lia Bool.
From Flocq Require Import Core IEEE754.BinarySingleNaN.
From Onelayer Require Import Arithmetic Rounding DotError Linear.
Import ListNotations.
Open Scope R_scope.

(** * Partial sums *)

(** What a sum, and every partial sum of it, stays below: 4/3 of the sizes of its terms, and what may be lost. *)
Definition most (A : arithmetic) (l : list term) : R := 4 / 3 * (size l + lost A (2 * lives l) l).

Lemma lost_mono A m n l : (m <= n)%nat -> lost A m l <= lost A n l.
Proof.
  intros H. unfold lost. apply Rplus_le_compat_r. apply Rmult_le_compat_l; [apply absolute_nonneg|now apply le_INR].
Qed.

Lemma most_app A l1 l2 : most A (l1 ++ l2) = most A l1 + most A l2.
Proof.
  unfold most, size, lost. rewrite !sum_app, lives_app. replace (2 * (lives l1 + lives l2))%nat with
    (2 * lives l1 + 2 * lives l2)%nat by lia. rewrite plus_INR. ring.
Qed.

Lemma most_perm A l1 l2 : Permutation l1 l2 -> most A l1 = most A l2.
Proof. intros P. unfold most, size, lost. now rewrite !(sum_perm _ _ _ P), (lives_perm _ _ P). Qed.

Lemma most_nonneg A l : 0 <= most A l.
Proof. unfold most. pose proof (size_nonneg l). pose proof (lost_nonneg A (2 * lives l) l). lra. Qed.

Lemma dots_most A powers l s : dots A powers l s -> INR (lives l) * relative A <= 1 / 4 -> Rabs s <= most A l.
Proof.
  intros H Hx. destruct (dots_count A powers l s H) as (k & m & E & K & M).
  assert (E' := any_order_error A _ _ _ _ E). pose proof (relative_bounds A) as V.
  destruct (gamma_sound (lives l) (relative A) ltac:(lra) Hx) as [_ G].
  destruct (pow_mono A k (lives l) ltac:(destruct powers; lia)) as [B1 B2].
  assert (L := lost_mono A m (2 * lives l) l ltac:(lia)). assert (L0 := lost_nonneg A m l).
  assert (S := sum_abs value l). fold (size l) in S. assert (S0 := size_nonneg l).
  replace s with (sum value l + (s - sum value l)) by ring. apply Rle_trans with (1 := Rabs_triang _ _).
  set (g := (1 + relative A) ^ k) in *. unfold most.
  assert (g * (size l + lost A m l) <= 4 / 3 * (size l + lost A (2 * lives l) l)) by (apply Rmult_le_compat; lra).
  lra.
Qed.

(** If that bound is below [big] for a sum, it is so for every partial sum, in any order. *)
Theorem no_overflow (A : arithmetic) (powers : bool) (l l1 l2 : list term) (s big : R) :
  Permutation l (l1 ++ l2) -> INR (lives l) * relative A <= 1 / 4 -> most A l < big ->
  dots A powers l1 s -> Rabs s < big.
Proof.
  intros P Hx B H. apply Rle_lt_trans with (2 := B). rewrite (most_perm A _ _ P), most_app.
  pose proof (most_nonneg A l2). assert (Rabs s <= most A l1); [|lra]. apply dots_most with powers; [exact H|].
  apply Rle_trans with (2 := Hx). apply Rmult_le_compat_r; [apply (relative_bounds A)|].
  apply le_INR. rewrite (lives_perm _ _ P), lives_app. lia.
Qed.

(** What linear tests, 2 (S + R) < big, bounds all partial sums at inputs in their balls, as long as what may be
    lost is small beside big: it is at most 2^135 n times tiny in float32, where big is 2^252 times tiny. For:
    core/balls.py linear, guarded. *)
Theorem linear_guarded (A : arithmetic) (l : list entry) (n : nat) (reach widest big : R) :
  (forall e, In e l -> in_ball e) -> (forall e, In e l -> bounded reach widest e) ->
  0 <= reach -> 0 <= widest -> (length l <= n + 1)%nat ->
  2 * (size (map at_mid l) + sum spread l) < big -> 6 * (INR n + 1) * (2 + widest + reach) * absolute A < big ->
  most A (map actual l) < big.
Proof.
  intros Hb Hw Pr Pw Len B L. destruct (ball_sums l Hb) as [_ S].
  destruct (lost_bound A l n reach widest Hw Pr Pw Len) as [L1 _]. unfold most. lra.
Qed.

(** * IEEE 754 *)

Section IEEE.
Variables prec' emax : Z.
Context (prec_gt_0 : Prec_gt_0 prec') (prec_lt_emax : Prec_lt_emax prec' emax).
Notation float := (binary_float prec' emax).
Notation value_of := (@B2R prec' emax).

(** The format of these numbers, as the other files see it. *)
Variable f : format.
Hypothesis f_prec : prec f = prec'.
Hypothesis f_emin : emin f = (3 - emax - prec')%Z.

(** Ways to compute a sum of products: products are rounded, or fused with an addition. *)
Inductive tree :=
| Product (x w : float)
| Term (b : float)
| Add (a b : tree)
| Fused (x w : float) (a : tree).

Fixpoint compute (t : tree) : float :=
  match t with
  | Product x w => Bmult mode_NE x w
  | Term b => b
  | Add a b => Bplus mode_NE (compute a) (compute b)
  | Fused x w a => Bfma mode_NE x w (compute a)
  end.

Fixpoint terms (t : tree) : list term :=
  match t with
  | Product x w => [Prod (value_of x) (value_of w)]
  | Term b => [Bias (value_of b)]
  | Add a b => terms a ++ terms b
  | Fused x w a => [Prod (value_of x) (value_of w)] ++ terms a
  end.

Fixpoint all_finite (t : tree) : Prop :=
  match t with
  | Product x w => is_finite x = true /\ is_finite w = true
  | Term b => is_finite b = true
  | Add a b => all_finite a /\ all_finite b
  | Fused x w a => is_finite x = true /\ is_finite w = true /\ all_finite a
  end.

Lemma number_value x : number f (value_of x).
Proof. unfold number. rewrite f_prec, f_emin. apply generic_format_B2R. Qed.

Lemma round_is_nearest x : round radix2 (SpecFloat.fexp prec' emax) (round_mode mode_NE) x =
  nearest (prec f) (emin f) (fun n => negb (Z.even n)) x.
Proof. unfold nearest. rewrite f_prec, f_emin. reflexivity. Qed.

(** A number that is below 2^(emax - 1) does not overflow when it is rounded. *)
Lemma rounds_below x : Rabs x <= bpow radix2 (emax - 1) ->
  Rlt_bool (Rabs (round radix2 (SpecFloat.fexp prec' emax) (round_mode mode_NE) x)) (bpow radix2 emax) = true.
Proof.
  intros H. apply Rlt_bool_true. apply Rle_lt_trans with (bpow radix2 (emax - 1)); [|apply bpow_lt; lia].
  apply abs_round_le_generic; [now apply fexp_correct|apply valid_rnd_N| |exact H].
  apply generic_format_FLT_bpow; [exact prec_gt_0|].
  unfold Prec_gt_0, Prec_lt_emax in *. unfold SpecFloat.emin. lia.
Qed.

Let A := any_order f.

Lemma nearest_operation x : operation f x (nearest (prec f) (emin f) (fun n => negb (Z.even n)) x).
Proof. exists x. split; [now apply widens_kept|]. now apply settles_rounded with (fun n => negb (Z.even n)). Qed.

(** Adding two numbers, and rounding the sum, joins two sums. *)
Lemma nearest_joins l1 x l2 y : dots A false l1 x -> dots A false l2 y ->
  joins A l1 x l2 y (nearest (prec f) (emin f) (fun n => negb (Z.even n)) (x + y)).
Proof.
  intros H1 H2. destruct (Nat.eq_dec (lives l2) 0) as [Z2|N2].
  - left. split; [exact Z2|]. rewrite (dots_none A false l2 y H2 Z2), Rplus_0_r.
    now apply settles_rounded with (fun n => negb (Z.even n)).
  - destruct (Nat.eq_dec (lives l1) 0) as [Z1|N1].
    + right. left. split; [exact Z1|]. rewrite (dots_none A false l1 x H1 Z1), Rplus_0_l.
      now apply settles_rounded with (fun n => negb (Z.even n)).
    + right. right. repeat split; trivial. apply nearest_operation.
Qed.

Lemma product_dots x w y : operation f (value_of x * value_of w) y ->
  dots A false [Prod (value_of x) (value_of w)] y.
Proof.
  intros R. destruct (dead_dec (Prod (value_of x) (value_of w))) as [D|D].
  - replace y with 0; [apply dots_zero; intros t [<-|[]]; exact D|]. symmetry.
    apply (operation_solid f); [apply solid_0|]. replace 0 with (value_of x * value_of w); [exact R|].
    apply (dead_value _ D).
  - apply (dots_prod A false _ _ (value_of x) (value_of w)); [| |now left|now left|exact R|easy];
      intros Z; apply D; simpl; tauto.
Qed.

(** If the sizes of all terms are below a bound, which is at most half of the largest power of two, every
    operation of every way to compute the sum gives a finite number, and the result is one of those that the
    error bounds are about. For: core/balls.py guarded, and [calm] of linear. *)
Theorem guarded_finite (t : tree) (big : R) :
  all_finite t -> INR (lives (terms t)) * v f <= 1 / 4 -> most A (terms t) < big -> big <= bpow radix2 (emax - 1) ->
  is_finite (compute t) = true /\ dots A false (terms t) (value_of (compute t)).
Proof.
  intros F Hx B Big. change (v f) with (relative A) in Hx.
  pose proof (relative_bounds A) as V. revert F Hx B.
  assert (Less : forall l1 l2, INR (lives (l1 ++ l2)) * relative A <= 1 / 4 ->
  INR (lives l1) * relative A <= 1 / 4 /\
    INR (lives l2) * relative A <= 1 / 4).
  { intros l1 l2 H. rewrite lives_app in H.
    assert (INR (lives l1) <= INR (lives l1 + lives l2)) by (apply le_INR; lia).
    assert (INR (lives l2) <= INR (lives l1 + lives l2)) by (apply le_INR; lia).
    split; apply Rle_trans with (2 := H); apply Rmult_le_compat_r; lra. }
  induction t as [x w|b|a IHa b IHb|x w a IHa]; simpl; intros F Hx B.
  - destruct F as [Fx Fw].
    assert (S : Rabs (value_of x * value_of w) <= bpow radix2 (emax - 1)).
    { set (p := [Prod (value_of x) (value_of w)]) in *. unfold most in B.
      assert (L := lost_nonneg A (2 * lives p) p).
      assert (E : size p = Rabs (value_of x * value_of w)) by (unfold size, p; simpl; ring). rewrite E in B.
      pose proof (Rabs_pos (value_of x * value_of w)). lra. }
    assert (H := Bmult_correct prec' emax _ _ mode_NE x w). rewrite rounds_below in H by exact S.
    destruct H as (E & Fin & _). rewrite Fin, Fx, Fw. split; [reflexivity|]. rewrite E, round_is_nearest.
    apply product_dots. apply nearest_operation.
  - split; [exact F|]. destruct (Req_EM_T (value_of b) 0) as [Z|Z].
    + rewrite Z. apply dots_zero. intros t [<-|[]]. reflexivity.
    + apply dots_bias; [exact Z|apply number_value|now left].
  - destruct F as [Fa Fb]. destruct (Less _ _ Hx) as [Ha Hb]. rewrite most_app in B.
    pose proof (most_nonneg A (terms a)) as P1. pose proof (most_nonneg A (terms b)) as P2.
    destruct (IHa Fa Ha ltac:(lra)) as [Ia Da]. destruct (IHb Fb Hb ltac:(lra)) as [Ib Db].
    assert (Ma := dots_most A false _ _ Da Ha). assert (Mb := dots_most A false _ _ Db Hb).
    assert (S : Rabs (value_of (compute a) + value_of (compute b)) <= bpow radix2 (emax - 1)).
    { apply Rle_trans with (1 := Rabs_triang _ _). lra. }
    assert (H := Bplus_correct prec' emax _ _ mode_NE (compute a) (compute b) Ia Ib).
    rewrite rounds_below in H by exact S. destruct H as (E & Fin & _). split; [exact Fin|].
    rewrite E, round_is_nearest.
    apply (dots_joins A false _ _ (value_of (compute a)) (value_of (compute b))); trivial. now apply nearest_joins.
  - destruct F as (Fx & Fw & Fa). change (Prod (value_of x) (value_of w) :: terms a) with
      ([Prod (value_of x) (value_of w)] ++ terms a) in *.
    destruct (Less _ _ Hx) as [Hp Ha]. rewrite most_app in B. set (p := [Prod (value_of x) (value_of w)]) in *.
    pose proof (most_nonneg A p) as P1. pose proof (most_nonneg A (terms a)) as P2.
    destruct (IHa Fa Ha ltac:(lra)) as [Ia Da].
    assert (Dp : dots A false p (value_of x * value_of w)) by (apply product_dots; apply operation_kept).
    assert (Ma := dots_most A false _ _ Da Ha). assert (Mp := dots_most A false _ _ Dp Hp).
    assert (S : Rabs (value_of x * value_of w + value_of (compute a)) <= bpow radix2 (emax - 1)).
    { apply Rle_trans with (1 := Rabs_triang _ _). lra. }
    assert (H := Bfma_correct prec' emax _ _ mode_NE x w (compute a) Fx Fw Ia). cbv zeta in H.
    rewrite rounds_below in H by exact S. destruct H as (E & Fin & _). split; [exact Fin|].
    rewrite E, round_is_nearest.
    apply (dots_joins A false p (terms a) (value_of x * value_of w) (value_of (compute a))); trivial.
    now apply nearest_joins.
Qed.

(** * Comparisons *)

(** A test x <= y that is passed: neither is NaN. If y is finite and x not minus infinity, as a bound on an error is
    not, then x is finite, and the test says what it says of real numbers. For: core/judge.py, bound <= eps. *)
Theorem accepted (x y : float) :
  Bleb x y = true -> is_nan x = false /\ is_nan y = false /\
  (is_finite y = true -> Bsign x = false -> is_finite x = true /\ value_of x <= value_of y).
Proof.
  intros H. split; [now destruct x|]. split; [destruct x as [|[|]| |[|]], y; now try discriminate|]. intros Fy Sx.
  assert (Fx : is_finite x = true).
  { destruct x as [s|s| |s m e B]; try reflexivity; [|discriminate]. simpl in Sx. subst s.
    destruct y as [s|s| |s m e B]; try discriminate. }
  split; [exact Fx|]. rewrite Bleb_correct in H by trivial.
  destruct (Rle_bool_spec (value_of x) (value_of y)) as [L|L]; [exact L|discriminate].
Qed.

(** A test x < infinity that is passed: x is neither NaN nor infinite, if it is not negative. For: core/balls.py
    guarded. *)
Theorem below_infinity (x : float) : Bltb x (B754_infinity false) = true -> Bsign x = false -> is_finite x = true.
Proof. intros H S. destruct x as [s|s| |s m e B]; try reflexivity; simpl in *; [now subst s|discriminate]. Qed.

(** NaN passes no test. *)
Theorem nan_fails (x : float) :
  Bleb B754_nan x = false /\ Bleb x B754_nan = false /\ Bltb B754_nan x = false /\ Bltb x B754_nan = false /\
  Beqb B754_nan x = false /\ Beqb x B754_nan = false.
Proof. repeat split; destruct x as [s|[|]| |[|] m e B]; reflexivity. Qed.

End IEEE.
