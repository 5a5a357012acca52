(** Sums that are certainly at most 0, so that ReLU makes them exactly 0; and bounds under which no sum is rounded.

    For: search/operations.py Sums.fit, Gate.live, Gate.largest, Gate.run. *)

From Coq Require Import Reals ZArith List Permutation Lra Lia Bool.
From Flocq Require Import Core.
From Onelayer Require Import Arithmetic ExactSums ExactProducts Cells Thresholds Lookups.
Import ListNotations.
Open Scope R_scope.

(** * One bound for all tokens *)

(** Each input is at most its bound in size, and its weight at most [widest]. *)
Definition bounded (widest : R) (i : input) (X : R) := Rabs (m_of i) <= X /\ Rabs (w_of i) <= widest.

(** fit adds the bounds of all inputs, multiplies by [widest], and adds bounds of bias and rows; all these are
    whole numbers, and the result, times UP twice, is below 2^prec. Then the sizes of the terms of every token's
    sum add up to less than 2^prec.
    For: search/operations.py Sums.fit. *)
Theorem fit_sound (f : format) (Xs mosts : list R) (ex em : expression) (widest most_bias total : R)
    (rows : list row) (is : list input) (b : R) :
  inside f ->
  exact_value ex = sum (fun x => x) Xs -> exact_value em = sum (fun x => x) mosts ->
  let e := Plus (Plus (Times ex (Number widest)) (Number most_bias)) em in
  of_wholes e -> computed binary64 e total -> number binary64 total ->
  rn (rn (total * UP) * UP) < bpow radix2 (prec f) ->
  Forall2 (bounded widest) is Xs -> Rabs b <= most_bias ->
  Forall2 (fun r most => row_size r <= most) rows mosts ->
  lookup_size rows is b <= bpow radix2 (prec f).
Proof.
  intros (P & _) Ex Em e We Ce Ft Fit Bi Bb Br.
  destruct (of_wholes_value e We) as [Wv Pv].
  assert (T0 : 0 <= total).
  { inversion Ce as [|? ? x y z Ca Cb R|]. subst. apply (rnd_ge binary64 (x + y)); [apply solid_0| |exact R].
    clear - We Ca Cb. simpl in We. destruct We as [Wa Wb].
    assert (G : forall e v, of_wholes e -> computed binary64 e v -> 0 <= v).
    { clear. intros e v W C. induction C as [x|a b x y z Ca IHa Cb IHb R|a b x y z Ca IHa Cb IHb R]; simpl in W;
        [easy| |]; destruct W as [Wa Wb].
      - apply (rnd_ge binary64 (x + y)); [apply solid_0| |exact R]. specialize (IHa Wa). specialize (IHb Wb). lra.
      - apply (rnd_ge binary64 (x * y)); [apply solid_0| |exact R]. apply Rmult_le_pos; auto. }
    assert (0 <= x) by (apply (G _ x) with (2 := Ca); exact Wa).
    assert (0 <= y) by (apply (G _ y) with (2 := Cb); exact Wb). lra. }
  assert (U1 := times_up total Ft T0).
  assert (U2 := times_up (rn (total * UP)) (rn_number _) (Rle_trans _ _ _ T0 U1)).
  assert (E : total = exact_value e).
  { apply (computed_expression_exact binary64); trivial. apply Rlt_le_trans with (bpow radix2 (prec f)); [lra|].
    now apply bpow_le. }
  assert (S1 : sum (fun t => Rabs (value t)) (map (fun i => Prod (m_of i) (w_of i)) is) <=
               sum (fun x => x) Xs * widest).
  { clear - Bi We. assert (W0 : 0 <= widest) by (simpl in We; tauto).
    induction Bi as [|i X is Xs [Bm Bw] Bi IH]; simpl; [lra|]. rewrite Rabs_mult.
    pose proof (Rabs_pos (m_of i)). pose proof (Rabs_pos (w_of i)).
    assert (Rabs (m_of i) * Rabs (w_of i) <= X * widest) by (apply Rmult_le_compat; lra). lra. }
  assert (S2 : sum row_size rows <= sum (fun x => x) mosts).
  { clear - Br. induction Br as [|r m rs ms H Br IH]; simpl; lra. }
  unfold lookup_size, at_midpoints. rewrite sum_app. simpl in E |- *. rewrite Ex, Em in E. lra.
Qed.

(** * Gates *)

(** If v <= c for each term v of a sum and the number c that the checker adds in its place, and the terms are
    whole numbers whose sizes add up to at most 2^53, then what the checker computes, in any order, is at least
    the exact sum: rounding is monotone, and the sums of the v are not rounded. *)
Lemma computed_above (vs cs : list R) (top : R) :
  (forall v, In v vs -> whole v) -> sum Rabs vs <= bpow radix2 53 -> Forall2 Rle vs cs ->
  sums binary64 eq cs top -> sum (fun v => v) vs <= top.
Proof.
  intros W S L H.
  assert (Q : exists l : list (R * R), map fst l = vs /\ map snd l = cs /\ forall q, In q l -> fst q <= snd q).
  { clear - L. induction L as [|v c vs cs H L (l & <- & <- & IH)]; [now exists []|].
    exists ((v, c) :: l). repeat split. intros q [<-|I]; [exact H|now apply IH]. }
  destruct Q as (l & <- & <- & Q). rewrite sum_map. rewrite sum_map in S.
  apply (sums_ge binary64 (fun q v => v = snd q)).
  - intros q v I ->. now apply Q.
  - apply (whole_partial_sums binary64 fst); [|exact S]. intros q I. apply W. now apply in_map.
  - apply (sums_map binary64 snd) in H. apply (sums_replaced binary64) with (2 := H). clear.
    induction l; constructor; [intros v ->; reflexivity|exact IHl].
Qed.

(** The bound that the checker takes for an input times its weight: of both ends, the larger product, rounded. *)
Definition input_top (low high w : R) := Rmax (rn (low * w)) (rn (high * w)).

Lemma input_top_above x low high w :
  low <= x <= high -> whole (x * w) -> Rabs (x * w) <= bpow radix2 53 -> x * w <= input_top low high w.
Proof.
  intros [L H] W S. assert (F : number binary64 (x * w)) by (apply solid_small; assumption).
  rewrite <- (rn_of_number (x * w) F). unfold input_top. destruct (Rle_lt_dec 0 w) as [P|P].
  - apply Rle_trans with (2 := Rmax_r _ _). apply rn_monotone. nra.
  - apply Rle_trans with (2 := Rmax_l _ _). apply rn_monotone. nra.
Qed.

Section Gate.
Variable f : format.
Hypothesis fits_inside : inside f.

(** A gate that is closed, without slack. Everything is whole, and sizes fit; [tops] bounds each row that is not
    fixed by the choices at hand by its largest value, each input by its ends, and has the bias. If the checker
    adds them, in any order, to at most 0, then in every arithmetic the sum is at most 0, and the unit exactly
    0.
    For: search/operations.py Gate.live (slack 0), Gate.largest. *)
Theorem gate_closed (rows : list row) (is : list input) (b s top : R) (tops : list R) (ends : list (R * R)) :
  whole_lookup rows is b -> lookup_size rows is b <= bpow radix2 (prec f) ->
  Forall2 (fun i q => fst q <= m_of i <= snd q) is ends ->
  Forall2 (fun r c => row_value r <= c) rows tops ->
  let of_inputs := map (fun q => input_top (fst (snd q)) (snd (snd q)) (w_of (fst q))) (combine is ends) in
  sums binary64 eq (tops ++ of_inputs ++ [b]) top ->
  top <= 0 -> sums f (leaf f) (network_terms rows is b) s -> s <= 0 /\ relu s = 0.
Proof.
  intros W L E T of_inputs Ht Top Hs. unfold of_inputs in Ht. assert (L53 : bpow radix2 (prec f) <= bpow radix2 53).
  { destruct fits_inside. now apply bpow_le. }
  enough (S : s <= 0) by (split; [exact S|now apply Rmax_right]).
  destruct (whole_lookup_terms _ _ _ W) as (Tn & Tc & _). destruct (whole_lookup_sums _ _ _ W) as (V & Sn & Sc).
  assert (Es : s = sum value (network_terms rows is b)).
  { apply (any_order_product_exact f); trivial. lra. }
  rewrite Es, <- V. apply Rle_trans with (2 := Top).
  set (vs := map value (checker_terms rows is b)).
  replace (sum value (checker_terms rows is b)) with (sum (fun v => v) vs) by (unfold vs; now rewrite sum_map).
  eapply computed_above; [| | |exact Ht].
  - intros v I. apply in_map_iff in I. destruct I as (t & <- & I). now apply whole_value, Tc.
  - unfold vs. rewrite sum_map. lra.
  - unfold vs, checker_terms, at_midpoints. rewrite !map_app, !map_map. simpl. apply Forall2_app.
    + clear - T. induction T as [|r c rs cs H T IH]; simpl; constructor; trivial.
    + apply Forall2_app; [|constructor; [lra|constructor]].
      assert (K : forall i, In i is -> whole (m_of i * w_of i) /\ Rabs (m_of i * w_of i) <= bpow radix2 53).
      { intros i I. assert (J : In (Prod (m_of i) (w_of i)) (checker_terms rows is b)).
        { unfold checker_terms, at_midpoints. apply in_or_app. right. apply in_or_app. left.
          now apply (in_map (fun i => Prod (m_of i) (w_of i))). }
        split; [now apply (whole_value (Prod (m_of i) (w_of i))), Tc|].
        apply Rle_trans with (sum (fun t => Rabs (value t)) (checker_terms rows is b)); [|lra].
        now apply (size_of_one value _ (Prod (m_of i) (w_of i))). }
      clear - E K. induction E as [|i q is es H E IH]; simpl; constructor.
      * apply input_top_above; [exact H|apply K; now left|apply K; now left].
      * apply IH. intros. apply K. now right.
Qed.

End Gate.

(** A gate that is closed with slack: s is what the arithmetic computes for an exact sum that is at most T;
    [top] is what the checker computes for T. If [slack] covers both errors and top + slack <= 0, as computed,
    the unit is exactly 0.
    For: search/operations.py Gate.live (slack); that it covers both errors is slack_covers of Searched.v. *)
Theorem gate_closed_slack (s exact T top slack e1 e2 : R) :
  Rabs (s - exact) <= e1 -> exact <= T -> Rabs (top - T) <= e2 -> e1 + e2 <= slack -> number binary64 top ->
  number binary64 slack -> rn (top + slack) <= 0 -> s <= 0 /\ relu s = 0.
Proof.
  intros H1 H2 H3 H4 Ft Fs R. enough (S : s <= 0) by (split; [exact S|now apply Rmax_right]).
  apply Rabs_le_inv in H1, H3. enough (top + slack <= 0) by lra. apply Rnot_lt_le. intros Q.
  assert (P : 0 < rn (top + slack)); [|lra].
  (* A sum of two numbers is a multiple of the least positive number: if it is positive, so is its rounding. *)
  apply Rlt_le_trans with (bpow radix2 (-1074)); [apply bpow_gt_0|].
  apply round_ge_generic; [now apply FLT_exp_valid|apply valid_rnd_N| |].
  - apply generic_format_FLT_bpow; [reflexivity|apply Z.le_refl].
  - destruct (multiple top Ft) as [k1 E1], (multiple slack Fs) as [k2 E2]. rewrite E1, E2 in *.
    rewrite <- Rmult_plus_distr_r, <- plus_IZR in *. pose proof (bpow_gt_0 radix2 (-1074)) as B.
    assert (1 <= IZR (k1 + k2)); [|nra]. apply IZR_le. assert (0 < k1 + k2)%Z; [|lia]. apply lt_IZR.
    apply Rnot_le_lt. intros N. nra.
Qed.
