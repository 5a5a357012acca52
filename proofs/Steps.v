(** Staircases: groups of which the first few are exactly 1, and the others exactly 0.

    For: search/steps.py Steps.decide, RowSteps.of, RowSteps.decide; search/cells.py staircases. *)

From Coq Require Import Reals ZArith List Permutation Lra Lia Bool.
From Flocq Require Import Core Sterbenz.
From Onelayer Require Import Arithmetic ExactSums ExactProducts Cells Thresholds Search.
Import ListNotations.
Open Scope R_scope.

(** * Steps with fixed thresholds *)

(** A group is a step if one of its units has a slope, and the others are never above 0. *)
Definition step (us : list unit) (a : unit) :=
  In a us /\ slope a <> 0 /\ forall c, In c us -> c = a \/ (slope c = 0 /\ bias c <= 0).

(** Along a coordinate on which all slopes are negative, or its negative if all are positive: a step is on from
    [step_on] on, and off up to [step_off]. A whole bias other than 0, above -2^53 and up to 2^53, less 1 is a number,
    and dividing it by a power of two is exact: nothing is rounded, and so nothing outward. *)
Definition step_on (a : unit) := rn (bias a / Rabs (slope a)).

Definition whole_bias (a : unit) : bool :=
  (if Req_EM_T (IZR (Zfloor (bias a))) (bias a) then true else false) &&
  (if Rle_dec 1 (Rabs (bias a)) then true else false) &&
  (if Rlt_dec (- bpow radix2 53) (bias a) then true else false) &&
  (if Rle_dec (bias a) (bpow radix2 53) then true else false).

Definition step_off (a : unit) :=
  if whole_bias a then rn (rn (bias a - 1) / Rabs (slope a))
  else if Rlt_dec (slope a) 0 then off_low (slope a) (bias a) else - off_high (slope a) (bias a).

Definition falls (falling : bool) (a : unit) := if falling then slope a < 0 else 0 < slope a.
Definition turned_low (falling : bool) (low high : R) := if falling then low else - high.
Definition turned_high (falling : bool) (low high : R) := if falling then high else - low.

Lemma step_on_decided falling a low high :
  falls falling a -> step_on a <= turned_low falling low high -> decided_on a low high.
Proof.
  unfold step_on, decided_on, on_low, on_high. destruct falling; simpl; intros S L.
  - right; left. split; [exact S|]. now rewrite Rabs_left in L.
  - left. split; [exact S|]. rewrite Rabs_pos_eq in L by lra.
    replace (- bias a / slope a) with (- (bias a / slope a)) by (field; lra). unfold rn, exp64 in *.
    rewrite round_NE_opp. lra.
Qed.

(** With a whole bias, the edge where a step is off is computed exactly. For: search/cells.py staircases. *)
Theorem whole_edge_exact (a : unit) :
  ranged a -> slope a <> 0 -> whole_bias a = true ->
  rn (rn (bias a - 1) / Rabs (slope a)) = (bias a - 1) / Rabs (slope a).
Proof.
  intros R S W. apply andb_prop in W. destruct W as [W W4]. apply andb_prop in W. destruct W as [W W3].
  apply andb_prop in W. destruct W as [W1 W2].
  destruct (Req_EM_T (IZR (Zfloor (bias a))) (bias a)) as [E|]; [|discriminate].
  destruct (Rle_dec 1 (Rabs (bias a))) as [L|]; [|discriminate].
  destruct (Rlt_dec (- bpow radix2 53) (bias a)) as [G|]; [|discriminate].
  destruct (Rle_dec (bias a) (bpow radix2 53)) as [H|]; [|discriminate].
  destruct R as [R|(F & P & R)]; [contradiction|].
  assert (W : bias a - 1 = IZR (Zfloor (bias a) - 1)) by (rewrite minus_IZR, E; reflexivity).
  assert (Low : - bpow radix2 53 <= bias a - 1).
  { assert (D : bpow radix2 53 = IZR (2 ^ 53)) by (rewrite <- IZR_Zpower; [reflexivity|lia]).
    rewrite W. rewrite D in *. rewrite <- opp_IZR in *. rewrite <- E in G. apply lt_IZR in G. apply IZR_le. lia. }
  assert (N : number binary64 (bias a - 1)).
  { rewrite W. apply (solid_whole binary64). rewrite <- W. change (prec binary64) with 53%Z.
    apply Rabs_le. assert (0 < bpow radix2 53) by apply bpow_gt_0. lra. }
  rewrite (rn_of_number _ N). apply quotient_exact; [exact N| |].
  { destruct P as [k [->| ->]]; exists k; left; [|rewrite Rabs_Ropp]; apply Rabs_pos_eq, bpow_ge_0. }
  destruct (Req_dec (bias a - 1) 0) as [Z|Z]; [left; rewrite Z; unfold Rdiv; ring|right].
  assert (Half : Rabs (bias a) <= 2 * Rabs (bias a - 1)).
  { destruct (Rle_or_lt (bias a) 0) as [B|B]; [rewrite !Rabs_left1 by lra; lra|].
    rewrite Rabs_pos_eq in L by lra. assert (One : 1 <= bias a - 1).
    { rewrite W in *. assert (0 < Zfloor (bias a) - 1)%Z; [|now apply IZR_le; lia].
      apply lt_IZR. lra. }
    rewrite !Rabs_pos_eq by lra. lra. }
  assert (Sp : 0 < Rabs (slope a)) by now apply Rabs_pos_lt.
  destruct R as [R|R]; [rewrite R, Rabs_R0 in L; lra|].
  assert (Q := in_range_sound _ _ F P (or_intror R)). rewrite Q in R.
  assert (A : forall x, Rabs (x / slope a) = Rabs x / Rabs (slope a)).
  { intros x. unfold Rdiv. now rewrite Rabs_mult, Rabs_inv. }
  rewrite A in R. replace (Rabs ((bias a - 1) / Rabs (slope a))) with (Rabs (bias a - 1) / Rabs (slope a)).
  2: { unfold Rdiv. now rewrite Rabs_mult, Rabs_inv, Rabs_Rabsolu. }
  assert (T : tiny binary64 <= bpow radix2 (-901)) by now apply bpow_le.
  assert (Twice : Rabs (bias a) / Rabs (slope a) <= 2 * (Rabs (bias a - 1) / Rabs (slope a))).
  { unfold Rdiv. rewrite <- Rmult_assoc. apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|exact Half]. }
  assert (D : bpow radix2 (-900) = 2 * bpow radix2 (-901)).
  { change (-900)%Z with (-901 + 1)%Z. rewrite bpow_plus. change (bpow radix2 1) with 2. ring. }
  lra.
Qed.

(** Up to its edge, the unit of a step is at least 1, however the coordinate is read. *)
Lemma step_off_pre A falling a low high :
  ranged a -> falls falling a -> enclosed A a low high -> turned_high falling low high <= step_off a ->
  pre_in A a (fun r => 1 <= r).
Proof.
  intros R F E. unfold step_off. destruct (whole_bias a) eqn:W.
  - assert (S : slope a <> 0) by (destruct falling; simpl in F; lra).
    rewrite (whole_edge_exact a R S W). intros H t' Rt. destruct (E t' Rt) as [L Hi].
    destruct falling; simpl in F, H.
    + rewrite Rabs_left in H by exact F. apply under in H; [|lra].
      assert (- slope a * t' <= - slope a * high) by (apply Rmult_le_compat_l; lra). lra.
    + rewrite Rabs_pos_eq in H by lra. apply under in H; [|exact F].
      assert (slope a * low <= slope a * t') by (apply Rmult_le_compat_l; lra). lra.
  - intros H. apply (decided_off_pre A a low high E). unfold decided_off.
    destruct falling; simpl in F, H; destruct (Rlt_dec (slope a) 0); try lra; intuition lra.
Qed.

(** A staircase. Its steps are given in the order of [on], with the unit of each that has a slope; all of these
    read one coordinate with ends [low] and [high], and their slopes have the same sign. The edges where steps
    are off are sorted by themselves. If as many steps are found on as there are edges [off] below the upper
    end, then the first n groups are exactly 1 in every arithmetic, and all others exactly 0.
    For: search/steps.py Steps.decide. *)
Theorem steps_decide (A : arithmetic) (falling : bool) (groups : list (list unit)) (as_ : list unit)
    (off_sorted : list R) (low high : R) (n : nat) (ys : list R) :
  Forall2 step groups as_ ->
  (forall us a, In us groups -> In a us -> good_in A a) ->
  (forall a, In a as_ -> ranged a /\ falls falling a /\ enclosed A a low high) ->
  Permutation (map step_off as_) off_sorted ->
  first_count (fun i => nth i (map step_on as_) 0 <= turned_low falling low high) (length as_) n ->
  count (fun x => if Rlt_dec x (turned_high falling low high) then true else false) off_sorted = n ->
  Forall2 (group_in A) groups ys ->
  forall i, (i < length groups)%nat -> nth i ys 0 = if (i <? n)%nat then 1 else 0.
Proof.
  intros St Good Own P C N V i I.
  assert (La : length as_ = length groups) by (symmetry; apply (same_length St)).
  assert (G : forall j, (j < length groups)%nat -> step (nth j groups []) (nth j as_ (Unit 0 0 0 (Bias 0) []))).
  { clear - St. induction St as [|us a gs as_ S St IH]; simpl; [lia|]. intros [|j] J; [exact S|]. apply IH. lia. }
  assert (Gv : forall j, (j < length groups)%nat -> group_in A (nth j groups []) (nth j ys 0)).
  { clear - V. induction V as [|us y gs ys S V IH]; simpl; [lia|]. intros [|j] J; [exact S|]. apply IH. lia. }
  set (none := Unit 0 0 0 (Bias 0) []) in *.
  assert (On : forall j, (j < length as_)%nat -> nth j (map step_on as_) 0 = step_on (nth j as_ none)).
  { intros j J. rewrite (nth_indep _ 0 (step_on none)) by (now rewrite map_length). apply map_nth. }
  assert (Off : forall j, (j < length as_)%nat -> nth j (map step_off as_) 0 = step_off (nth j as_ none)).
  { intros j J. rewrite (nth_indep _ 0 (step_off none)) by (now rewrite map_length). apply map_nth. }
  destruct (steps_counted (map step_on as_) (map step_off as_) off_sorted (turned_low falling low high)
              (turned_high falling low high) n) as [First Rest]; trivial.
  - now rewrite !map_length.
  - now rewrite map_length.
  - rewrite map_length. intros j J L H. rewrite On in L by exact J. rewrite Off in H by exact J.
    destruct (Own (nth j as_ none) (nth_In _ _ J)) as (R & F & E).
    assert (T : reads_in A (t_of (nth j as_ none)) (t_of (nth j as_ none))) by (destruct A; [reflexivity|now left]).
    assert (P1 := decided_on_pre A _ low high R E (step_on_decided falling _ low high F L) _ T).
    assert (P2 := step_off_pre A falling _ low high R F E H _ T). simpl in P1, P2. lra.
  - assert (J : (i < length as_)%nat) by lia. destruct (G i I) as (In_ & Sl & Flat).
    destruct (Own (nth i as_ none) (nth_In _ _ J)) as (R & F & E).
    destruct (Nat.ltb_spec i n) as [L|L].
    + apply (decide_on A (nth i groups [])); [|now apply Gv]. intros c Ic.
      split; [apply (Good (nth i groups [])); [now apply nth_In|exact Ic]|].
      specialize (First i L). rewrite On in First by exact J. destruct (Flat c Ic) as [->|[Z B]].
      * split; [exact R|]. exists low, high. split; [exact E|]. now apply (step_on_decided falling).
      * split; [now left|]. exists (Rmin 0 (t_of c)), (Rmax 0 (t_of c)).
        split; [apply somewhere|right; right; now split].
    + apply (group_off A (nth i groups [])); [|now apply Gv]. exists (nth i as_ none).
      split; [exact In_|]. split; [apply (Good (nth i groups [])); [now apply nth_In|exact In_]|].
      apply (step_off_pre A falling _ low high R F E).
      rewrite <- Off by exact J. apply Rest. rewrite map_length. lia.
Qed.

(** * Steps whose thresholds are a row of a table *)

#[local] Instance prec64 : Prec_gt_0 53.
Proof. reflexivity. Qed.

Lemma half_apart : tiny binary64 < 1 / 2.
Proof. replace (1 / 2) with (bpow radix2 (-1)) by (simpl; lra). now apply bpow_lt. Qed.

(** A comparison with slope * low, rounded, says as much as one with the exact product: the threshold is zero,
    and the coordinate is never below 0; or the threshold is normal.
    For: search/steps.py RowSteps.decide (on). *)
Theorem row_on_sound (threshold slope low t : R) :
  power slope -> 0 < slope -> number binary64 low -> low <= t -> 0 <= t ->
  (threshold = 0 \/ 8 * tiny binary64 <= Rabs threshold) ->
  threshold <= rn (slope * low) -> - slope * t + threshold <= 0.
Proof.
  intros P S F L T N C. pose proof (tiny_pos binary64) as T0.
  assert (M : slope * low <= slope * t) by (apply Rmult_le_compat_l; lra).
  destruct (Rle_lt_dec (tiny binary64) (Rabs (slope * low))) as [B|B].
  - rewrite rn_of_number in C; [lra|]. rewrite Rmult_comm in *. apply number_power; trivial. now right.
  - assert (rn (slope * low) <= tiny binary64).
    { apply (rnd_le binary64 (slope * low)); [apply solid_tiny| |apply rn_rnd]. apply Rabs_def2 in B. lra. }
    assert (0 <= slope * t) by (apply Rmult_le_pos; lra). destruct N as [->|N]; [lra|].
    unfold Rabs in N. destruct (Rcase_abs threshold); lra.
Qed.

(** The same for threshold - 1, rounded down, and slope * high.
    For: search/steps.py RowSteps.of (below), RowSteps.decide (off). *)
Theorem row_off_sound (threshold slope high t : R) :
  power slope -> 0 < slope -> number binary64 high -> t <= high -> number binary64 threshold ->
  rn (slope * high) <= down (rn (threshold - 1)) -> 1 <= - slope * t + threshold.
Proof.
  intros P S F L N C. pose proof (tiny_pos binary64) as T0. pose proof half_apart as H2.
  assert (M : slope * t <= slope * high) by (apply Rmult_le_compat_l; lra).
  enough (slope * high <= threshold - 1) by lra.
  destruct (Rle_lt_dec (tiny binary64) (Rabs (slope * high))) as [B|B].
  - rewrite rn_of_number in C; [pose proof (down_rn (threshold - 1)); lra|].
    rewrite Rmult_comm in *. apply number_power; trivial. now right.
  - apply Rabs_def2 in B. apply Rnot_lt_le. intros Q.
    assert (R1 : - tiny binary64 <= rn (slope * high)).
    { apply (rnd_ge binary64 (slope * high)); [apply solid_opp, solid_tiny|lra|apply rn_rnd]. }
    assert (D := down_rn (threshold - 1)).
    assert (F1 : number binary64 (threshold - 1)).
    { apply (sterbenz radix2 exp64); [exact N|apply (solid_1 binary64)|].
      split; lra. }
    rewrite (rn_of_number (threshold - 1) F1) in C.
    assert (R2 : threshold - 1 <= rn (slope * high)).
    { rewrite <- (rn_of_number (threshold - 1) F1). apply rn_monotone. lra. }
    assert (K : down (threshold - 1) < threshold - 1); [|lra].
    destruct (Req_dec (threshold - 1) 0) as [Z|Z].
    + rewrite Z. unfold down, exp64. rewrite pred_0, ulp_FLT_0; [|exact prec64].
      pose proof (bpow_gt_0 radix2 (-1074)). lra.
    + now apply pred_lt_id.
Qed.

(** A staircase in a row. Step g reads the coordinate t >= 0 with weight -slope, and an input 1 with the weight
    that is entry g of the chosen row; all else is zero. Row and row - 1, rounded down, are sorted. If bisection
    finds that n thresholds are at most slope * low, and that n of the others are below slope * high, then the
    first n groups are exactly 1, and all others exactly 0.
    For: search/steps.py RowSteps.decide. *)
Theorem row_steps_decide (A : arithmetic) (row : list R) (slope_ low high t : R) (k n : nat)
    (groups : list (list unit)) (ys : list R) :
  let G := length row in
  let table := fun g => nth g row 0 in
  let below := fun g => down (rn (table g - 1)) in
  Forall2 (fun us threshold => exists own_ others_, us = [Unit t (- slope_) threshold own_ others_]) groups row ->
  (forall us a, In us groups -> In a us -> good_in A a) ->
  power slope_ -> 0 < slope_ -> 0 <= t -> number binary64 low -> number binary64 high ->
  (forall t', reads_in A t t' -> low <= t' <= high) ->
  (forall x, In x row -> number binary64 x /\ (x = 0 \/ 8 * tiny binary64 <= Rabs x)) ->
  (forall i j, (i <= j < G)%nat -> table i <= table j) ->
  (2 ^ k <= G < 2 ^ S k)%nat ->
  upto (fun g => if Rle_dec (table g) (rn (slope_ * low)) then true else false) G k 0 = n ->
  upto (fun g => if Rlt_dec (below g) (rn (slope_ * high)) then true else false) G k 0 = n ->
  Forall2 (group_in A) groups ys ->
  forall i, (i < length groups)%nat -> nth i ys 0 = if (i <? n)%nat then 1 else 0.
Proof.
  intros G table below Us Good P S T Fl Fh E Nr Sorted HG Hon Hoff V i I.
  assert (LG : length groups = G) by apply (same_length Us).
  assert (count_of : forall (e : nat -> R) (key : R) (strict : bool),
      (forall i j, (i <= j < G)%nat -> e i <= e j) ->
      let p := fun g => if strict then if Rlt_dec (e g) key then true else false
                        else if Rle_dec (e g) key then true else false in
      first_count (fun g => p g = true) G (upto p G k 0)).
  { intros e key strict H p.
    assert (X : exists m, first_count (fun g => p g = true) G m).
    { clear - H. assert (W : forall K, (K <= G)%nat -> exists m, first_count (fun g => p g = true) K m).
      { induction K as [|K IH]; intros L; [exists 0%nat; repeat split; intros; lia|].
        destruct IH as (m & Lm & Am & Bm); [lia|]. destruct (p K) eqn:Q.
        - exists (Datatypes.S K). repeat split; [lia| |intros; lia]. intros j J. unfold p in *.
          assert (e j <= e K) by (apply H; lia).
          destruct strict; [destruct (Rlt_dec (e K) key), (Rlt_dec (e j) key)|
            destruct (Rle_dec (e K) key), (Rle_dec (e j) key)]; try discriminate; trivial; lra.
        - exists m. repeat split; [lia|exact Am|]. intros j J.
          destruct (Nat.eq_dec j K) as [->|N]; [rewrite Q; discriminate|]. apply Bm. lia. }
      now apply W. }
    destruct X as [m X]. rewrite (upto_counts p G k m HG X). exact X. }
  assert (C1 := count_of table (rn (slope_ * low)) false Sorted). cbv zeta iota in C1. rewrite Hon in C1.
  assert (C2 := count_of below (rn (slope_ * high)) true). cbv zeta iota in C2. rewrite Hoff in C2.
  destruct C1 as (_ & On & _). destruct C2 as (_ & _ & Off).
  { intros a b L. unfold below, down. apply pred_le; [now apply FLT_exp_valid|apply rn_number|apply rn_number|].
    apply rn_monotone. pose proof (Sorted a b L). lra. }
  assert (U : exists own_ others_, nth i groups [] = [Unit t (- slope_) (table i) own_ others_]).
  { unfold table. clear - Us I. revert i I. induction Us as [|us x gs row H Us IH]; simpl; [lia|].
    intros [|i] I; [exact H|]. apply IH. lia. }
  destruct U as (own_ & others_ & U). set (a := Unit t (- slope_) (table i) own_ others_) in *.
  assert (Gi : good_in A a) by (apply (Good (nth i groups [])); [now apply nth_In|rewrite U; now left]).
  assert (Vi : group_in A [a] (nth i ys 0)).
  { rewrite <- U. clear - V I. revert i I. induction V as [|us y gs ys H V IH]; simpl; [lia|].
    intros [|i] I; [exact H|]. apply IH. lia. }
  destruct (Nr (table i)) as [Ft Nt]; [apply nth_In; lia|].
  destruct (Nat.ltb_spec i n) as [L|L].
  - apply (group_on A [a]); [|exact Vi]. intros c [<-|[]]. split; [exact Gi|]. intros t' Rt. simpl.
    assert (T' : 0 <= t') by (destruct A; simpl in Rt; [lra|destruct Rt as [->|[_ ->]]; lra]).
    apply (row_on_sound (table i) slope_ low t'); trivial; [now apply E|].
    specialize (On i L). destruct (Rle_dec (table i) (rn (slope_ * low))); [assumption|discriminate].
  - apply (group_off A [a]); [|exact Vi]. exists a. split; [now left|]. split; [exact Gi|]. intros t' Rt. simpl.
    apply (row_off_sound (table i) slope_ high t'); trivial; [now apply E|].
    specialize (Off i). destruct (Rlt_dec (below i) (rn (slope_ * high))) as [Q|Q].
    + exfalso. apply Off; [lia|reflexivity].
    + apply Rnot_lt_le. exact Q.
Qed.
