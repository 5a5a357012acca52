(** The comparisons that the search makes in float64, and what they say about units as real numbers.

    For: search/steps.py ends, within_range; search/cells.py _bounds, in_range; core/balls.py Ball.low,
    Ball.high. *)

From Coq Require Import Reals ZArith List Permutation Lra Lia.
From Flocq Require Import Core.
From Onelayer Require Import Arithmetic ExactSums ExactProducts Cells.
Import ListNotations.
Open Scope R_scope.

(** * The checker's float64 *)

(** numpy's operations, rounded to nearest even, and nextafter. Exponents are unbounded above here: where numpy
    gives an infinity, this gives a number beyond all floats, and every comparison with a float turns out the
    same way. *)
Definition exp64 := FLT_exp (-1074) 53.
Definition rn (x : R) := round radix2 exp64 ZnearestE x.
Definition up (x : R) := succ radix2 exp64 x.
Definition down (x : R) := pred radix2 exp64 x.

#[local] Instance prec64 : Prec_gt_0 53.
Proof. reflexivity. Qed.

Lemma rn_rnd x : rnd binary64 x (rn x).
Proof. now apply (rnd_nearest binary64 x _ 53 (-1074) (fun n => negb (Z.even n))). Qed.

Lemma rn_number x : number binary64 (rn x).
Proof. apply generic_format_round; [now apply FLT_exp_valid|apply valid_rnd_N]. Qed.

Lemma rn_monotone x y : x <= y -> rn x <= rn y.
Proof. apply round_le; [now apply FLT_exp_valid|apply valid_rnd_N]. Qed.

Lemma rn_of_number x : number binary64 x -> rn x = x.
Proof. apply round_generic, valid_rnd_N. Qed.

Lemma up_rn x : x <= up (rn x).
Proof. apply succ_round_ge_id; [now apply FLT_exp_valid|apply valid_rnd_N]. Qed.

Lemma down_rn x : down (rn x) <= x.
Proof. apply pred_round_le_id; [now apply FLT_exp_valid|apply valid_rnd_N]. Qed.

(** [UP] of core/balls.py, which makes up for roundings downward. *)
Definition UP : R := 1 + bpow radix2 (-40).

Lemma up_pos : 1 < UP < 2.
Proof.
  unfold UP. assert (0 < bpow radix2 (-40)) by apply bpow_gt_0.
  assert (bpow radix2 (-40) < bpow radix2 0) by now apply bpow_lt. simpl (bpow radix2 0) in *. lra.
Qed.

(** Multiplying a number of float64 that is not negative by UP, and rounding, does not make it smaller. *)
Lemma times_up x : number binary64 x -> 0 <= x -> x <= rn (x * UP).
Proof.
  intros F P. rewrite <- (rn_of_number x F) at 1. apply rn_monotone. pose proof up_pos. nra.
Qed.

(** Every number of float64 is a multiple of the least positive one. *)
Lemma multiple x : number binary64 x -> exists k : Z, x = IZR k * bpow radix2 (-1074).
Proof.
  intros F. apply FLT_format_generic in F; [|reflexivity]. destruct F as [[m e] -> Hm He].
  change (-1074 <= e)%Z in He. exists (m * 2 ^ (e + 1074))%Z. unfold F2R. cbn [Fnum Fexp].
  rewrite mult_IZR, Rmult_assoc. f_equal. change 2%Z with (radix_val radix2).
  rewrite IZR_Zpower by lia. rewrite <- bpow_plus. f_equal. lia.
Qed.

(** The ends of a ball, rounded outward, enclose every point of it. For: core/balls.py Ball.low, Ball.high. *)
Theorem ball_encloses (m r t : R) : Rabs (t - m) <= r -> down (rn (m - r)) <= t <= up (rn (m + r)).
Proof.
  intros H. apply Rabs_le_inv in H. pose proof (down_rn (m - r)). pose proof (up_rn (m + r)). lra.
Qed.

(** A quotient by plus or minus a power of two is exact, if it is zero or normal.
    For: search/cells.py in_range: the computed edge |b/slope| is then in a range of normal numbers. *)
Theorem quotient_exact (b s : R) : number binary64 b -> power s -> normal binary64 (b / s) -> rn (b / s) = b / s.
Proof.
  intros F P N. apply rn_of_number.
  assert (Q : power (/ s)).
  { destruct P as [k [->| ->]]; exists (- k)%Z; rewrite bpow_opp; [now left|right].
    field. apply Rgt_not_eq, bpow_gt_0. }
  apply (number_power binary64 b (/ s) F Q). exact N.
Qed.

(** in_range as coded: the edge that was computed, |rn (b/s)|, is above 2^-900. Then the exact one is normal,
    and equal to it. (An edge of 2^900 or more is refused, too: it might have overflowed.)
    For: search/cells.py in_range. *)
Theorem in_range_sound (b s : R) :
  number binary64 b -> power s -> (b = 0 \/ bpow radix2 (-900) < Rabs (rn (b / s))) -> rn (b / s) = b / s.
Proof.
  intros F P [->|L].
  - unfold Rdiv. rewrite Rmult_0_l. apply round_0, valid_rnd_N.
  - apply quotient_exact; trivial. right. apply Rnot_lt_le. intros S.
    assert (S9 : solid binary64 (bpow radix2 (-900))).
    { split; [apply generic_format_FLT_bpow; [reflexivity|discriminate]|right].
      rewrite Rabs_pos_eq by apply bpow_ge_0. now apply bpow_le. }
    assert (T : tiny binary64 <= bpow radix2 (-900)) by now apply bpow_le.
    assert (D := Rabs_def2 _ _ S).
    assert (rn (b / s) <= bpow radix2 (-900)) by (apply (rnd_le binary64 (b / s)); [exact S9|lra|apply rn_rnd]).
    assert (- bpow radix2 (-900) <= rn (b / s)).
    { apply (rnd_ge binary64 (b / s)); [now apply solid_opp|lra|apply rn_rnd]. }
    apply (Rlt_not_le _ _ L). now apply Rabs_le.
Qed.

(** * The arithmetics of a claim *)

(** Real numbers, or a format: float32 or float64. *)
Inductive arithmetic := Real | Float (f : format).

(** The smallest normal number, [A.tiny]. *)
Definition tiny_in (A : arithmetic) := match A with Real => 0 | Float f => tiny f end.
Definition reads_in (A : arithmetic) (x y : R) := match A with Real => y = x | Float f => reads f x y end.
Definition good_in (A : arithmetic) (a : unit) :=
  match A with Real => slope a = 0 \/ power (slope a) | Float f => good_unit f a end.
Definition group_in (A : arithmetic) (us : list unit) (y : R) :=
  match A with Real => y = real_group us | Float f => group_value f us y end.

(** w t + b satisfies P as a real number, for whatever t may be read as. *)
Definition pre_in (A : arithmetic) (a : unit) (P : R -> Prop) :=
  forall t', reads_in A (t_of a) t' -> P (slope a * t' + bias a).

Lemma group_on A us y :
  (forall a, In a us -> good_in A a /\ pre_in A a (fun r => r <= 0)) -> group_in A us y -> y = 1.
Proof.
  destruct A as [|f]; [|apply cell_on]. intros H ->. apply real_cell_on. intros a I.
  apply (proj2 (H a I) (t_of a)). reflexivity.
Qed.

Lemma group_off A us y :
  (exists a, In a us /\ good_in A a /\ pre_in A a (fun r => 1 <= r)) -> group_in A us y -> y = 0.
Proof.
  destruct A as [|f]; [|apply cell_off]. intros (a & I & G & P) ->. apply real_cell_off. exists a.
  split; [exact I|]. apply (P (t_of a)). reflexivity.
Qed.

Lemma tiny_in_nonneg A : 0 <= tiny_in A.
Proof. destruct A; simpl; [lra|left; apply tiny_pos]. Qed.

(** * The ends of a coordinate *)

(** A positive end below the smallest normal number becomes 0, and so does a negative one, as t may be flushed. *)
Definition lowered (A : arithmetic) (low : R) :=
  if Rlt_dec 0 low then if Rlt_dec low (tiny_in A) then 0 else low else low.
Definition raised (A : arithmetic) (high : R) :=
  if Rlt_dec high 0 then if Rlt_dec (- tiny_in A) high then 0 else high else high.

(** After that, they contain t and whatever t may be read as. *)
Theorem reads_within (A : arithmetic) (low high t t' : R) :
  low <= t <= high -> reads_in A t t' -> lowered A low <= t' <= raised A high.
Proof.
  intros [L H] R. pose proof (tiny_in_nonneg A) as T. unfold lowered, raised.
  assert (C : t' = t \/ (Rabs t < tiny_in A /\ t' = 0)) by (destruct A; simpl in *; [now left|exact R]).
  clear R. destruct C as [->|[S ->]].
  - destruct (Rlt_dec 0 low), (Rlt_dec low (tiny_in A)), (Rlt_dec high 0), (Rlt_dec (- tiny_in A) high); lra.
  - apply Rabs_def2 in S.
    destruct (Rlt_dec 0 low), (Rlt_dec low (tiny_in A)), (Rlt_dec high 0), (Rlt_dec (- tiny_in A) high); lra.
Qed.

(** [low] and [high] as search/steps.py ends computes them: of a point they are the point. *)
Definition low_end (A : arithmetic) (m r : R) := lowered A (if Req_EM_T r 0 then m else down (rn (m - r))).
Definition high_end (A : arithmetic) (m r : R) := raised A (if Req_EM_T r 0 then m else up (rn (m + r))).

(** Whatever a coordinate in a ball may be read as lies between the ends.
    For: search/steps.py ends. *)
Theorem ends_enclose (A : arithmetic) (m r t t' : R) :
  Rabs (t - m) <= r -> reads_in A t t' -> low_end A m r <= t' <= high_end A m r.
Proof.
  intros B. apply reads_within. destruct (Req_EM_T r 0) as [->|_]; [|now apply ball_encloses].
  apply Rabs_le_inv in B. lra.
Qed.

(** * The edges of a unit *)

(** A rising unit (w > 0) is on up to -b/w and off from (1 - b)/w on, a falling one (w < 0) the other way round.
    Edges where a unit is off are rounded outward, twice. *)
Definition on_high (w b : R) := rn (- b / w).
Definition off_high (w b : R) := up (rn (up (rn (1 - b)) / w)).
Definition on_low (w b : R) := rn (b / - w).
Definition off_low (w b : R) := down (rn (down (rn (b - 1)) / - w)).

Lemma div_le a b w : 0 < w -> a <= b -> a / w <= b / w.
Proof. intros W L. apply Rmult_le_compat_r; [|exact L]. left. now apply Rinv_0_lt_compat. Qed.

Lemma over x y w : 0 < w -> x / w <= y -> x <= w * y.
Proof.
  intros W L. apply (Rmult_le_compat_l w) in L; [|lra]. replace (w * (x / w)) with x in L; [exact L|]. field. lra.
Qed.

Lemma under x y w : 0 < w -> y <= x / w -> w * y <= x.
Proof.
  intros W L. apply (Rmult_le_compat_l w) in L; [|lra]. replace (w * (x / w)) with x in L; [exact L|]. field. lra.
Qed.

(** From [off_high] on, a rising unit is at least 1; any slope will do. For: search/cells.py _bounds. *)
Theorem off_high_sound (w b t : R) : 0 < w -> off_high w b <= t -> 1 <= w * t + b.
Proof.
  intros W C. assert (Q : (1 - b) / w <= t).
  { apply Rle_trans with (2 := C). unfold off_high. apply Rle_trans with (up (rn (1 - b)) / w); [|apply up_rn].
    apply div_le; [exact W|apply up_rn]. }
  apply over in Q; [|exact W]. lra.
Qed.

(** Up to [off_low], a falling unit is at least 1; any slope will do. For: search/cells.py _bounds. *)
Theorem off_low_sound (w b t : R) : w < 0 -> t <= off_low w b -> 1 <= w * t + b.
Proof.
  intros W C. assert (Q : t <= (b - 1) / - w).
  { apply Rle_trans with (1 := C). unfold off_low. apply Rle_trans with (down (rn (b - 1)) / - w); [apply down_rn|].
    apply div_le; [lra|apply down_rn]. }
  apply under in Q; [|lra]. lra.
Qed.

(** Up to [on_high], a rising unit is at most 0, if that edge was computed exactly. For: search/cells.py _bounds. *)
Theorem on_high_sound (w b t : R) : 0 < w -> on_high w b = - b / w -> t <= on_high w b -> w * t + b <= 0.
Proof. intros W E C. rewrite E in C. apply under in C; [|exact W]. lra. Qed.

(** From [on_low] on, a falling unit is at most 0, if that edge was computed exactly. For: search/cells.py
    _bounds. *)
Theorem on_low_sound (w b t : R) : w < 0 -> on_low w b = b / - w -> on_low w b <= t -> w * t + b <= 0.
Proof. intros W E C. rewrite E in C. apply over in C; [|lra]. lra. Qed.

(** * What the search asks of a unit, and what follows *)

(** The edges were computed exactly: in_range, for a slope that is plus or minus a power of two. *)
Definition ranged (a : unit) :=
  slope a = 0 \/ (number binary64 (bias a) /\ power (slope a) /\
    (bias a = 0 \/ bpow radix2 (-900) < Rabs (rn (bias a / slope a)))).

(** With the ends [low] and [high] of its coordinate, the unit was found on, or off. *)
Definition decided_on (a : unit) (low high : R) :=
  (0 < slope a /\ high <= on_high (slope a) (bias a)) \/
  (slope a < 0 /\ on_low (slope a) (bias a) <= low) \/
  (slope a = 0 /\ bias a <= 0).

Definition decided_off (a : unit) (low high : R) :=
  (0 < slope a /\ off_high (slope a) (bias a) <= low) \/
  (slope a < 0 /\ high <= off_low (slope a) (bias a)) \/
  (slope a = 0 /\ 1 <= bias a).

(** The coordinate, and whatever it may be read as, lies between the ends. *)
Definition enclosed (A : arithmetic) (a : unit) (low high : R) :=
  forall t', reads_in A (t_of a) t' -> low <= t' <= high.

(** Every coordinate lies between some ends. *)
Lemma somewhere A a : enclosed A a (Rmin 0 (t_of a)) (Rmax 0 (t_of a)).
Proof.
  intros t' Rt. assert (D : t' = t_of a \/ t' = 0) by (destruct A; simpl in Rt; [|destruct Rt]; tauto).
  unfold Rmin, Rmax. destruct D as [->| ->]; destruct (Rle_dec 0 (t_of a)); lra.
Qed.

(** Ends that are right for a float arithmetic are right for real arithmetic, in which nothing is flushed: what
    is decided with them holds there, too. For: core/claims.py Claim.implies; core/separated.py _separated. *)
Theorem float_ends_hold_in_real (f : format) (a : unit) (low high : R) :
  enclosed (Float f) a low high -> enclosed Real a low high.
Proof. intros E t' ->. apply E. now left. Qed.

Lemma power_opp s : power s -> power (- s).
Proof. intros [k [->| ->]]; exists k; [now right|left; ring]. Qed.

Lemma decided_on_pre A a low high :
  ranged a -> enclosed A a low high -> decided_on a low high -> pre_in A a (fun r => r <= 0).
Proof.
  intros R E D t' Rt. destruct (E t' Rt) as [L H]. destruct D as [(W & D)|[(W & D)|(W & D)]].
  - destruct R as [R|(F & P & R)]; [lra|]. apply on_high_sound; [exact W| |lra].
    assert (Q := in_range_sound _ _ F P R). unfold on_high.
    replace (- bias a / slope a) with (- (bias a / slope a)) by (field; lra). unfold rn, exp64 in *.
    rewrite round_NE_opp. now rewrite Q.
  - destruct R as [R|(F & P & R)]; [lra|]. apply on_low_sound; [exact W| |lra].
    assert (Q := in_range_sound _ _ F P R). unfold on_low.
    replace (bias a / - slope a) with (- (bias a / slope a)) by (field; lra). unfold rn, exp64 in *.
    rewrite round_NE_opp. now rewrite Q.
  - rewrite W. lra.
Qed.

Lemma decided_off_pre A a low high :
  enclosed A a low high -> decided_off a low high -> pre_in A a (fun r => 1 <= r).
Proof.
  intros E D t' Rt. destruct (E t' Rt) as [L H]. destruct D as [(W & D)|[(W & D)|(W & D)]].
  - apply off_high_sound; [exact W|lra].
  - apply off_low_sound; [exact W|lra].
  - rewrite W. lra.
Qed.

(** If every unit of a group is found on, the group is exactly 1 in every arithmetic.
    For: search/cells.py Cells.decide (on); search/steps.py Steps.decide (on). *)
Theorem decide_on (A : arithmetic) (us : list unit) (y : R) :
  (forall a, In a us -> good_in A a /\ ranged a /\
     exists low high, enclosed A a low high /\ decided_on a low high) ->
  group_in A us y -> y = 1.
Proof.
  intros H. apply group_on. intros a I. destruct (H a I) as (G & R & low & high & E & D). split; [exact G|].
  now apply (decided_on_pre A a low high).
Qed.

(** If one unit of a group is found off, the group is exactly 0 in every arithmetic.
    For: search/cells.py Cells.decide (off); search/steps.py Steps.decide (off). *)
Theorem decide_off (A : arithmetic) (us : list unit) (y : R) :
  (exists a low high, In a us /\ good_in A a /\ enclosed A a low high /\ decided_off a low high) ->
  group_in A us y -> y = 0.
Proof.
  intros (a & low & high & I & G & E & D). apply group_off. exists a. split; [exact I|]. split; [exact G|].
  now apply (decided_off_pre A a low high).
Qed.

(** No unit is found both on and off. *)
Theorem not_on_and_off (A : arithmetic) (a : unit) (low high : R) :
  ranged a -> enclosed A a low high -> decided_on a low high -> ~ decided_off a low high.
Proof.
  intros R E On Off. assert (T : reads_in A (t_of a) (t_of a)) by (destruct A; [reflexivity|now left]).
  assert (P := decided_on_pre A a low high R E On _ T). assert (Q := decided_off_pre A a low high E Off _ T).
  simpl in P, Q. lra.
Qed.

(** * Weights *)

(** What [smallest >= 8 A.tiny] says: every slope and bias that is not zero is normal. With weights that are
    numbers of the format and powers of two, the units are good ones. In real arithmetic nothing is asked.
    For: search/cells.py Cells.decide; search/steps.py Steps.decide (smallest). *)
Theorem smallest_suffices (A : arithmetic) (a : unit) (smallest : R) :
  (slope a = 0 \/ power (slope a)) ->
  (forall f, A = Float f -> well_formed a /\ number f (t_of a) /\ number f (bias a)) ->
  8 * tiny_in A <= smallest ->
  (slope a = 0 \/ (smallest <= Rabs (slope a) /\ (bias a = 0 \/ smallest <= Rabs (bias a)))) ->
  good_in A a.
Proof.
  intros P F S L. destruct A as [|f]; [exact P|]. destruct (F f eq_refl) as (W & Ft & Fb). simpl in *.
  pose proof (tiny_pos f). repeat split; trivial; try apply W. destruct L as [Z|(Ls & Lb)]; [now left|].
  destruct P as [Z|P]; [now left|]. right. repeat split; trivial; [right; lra|].
  destruct Lb as [->|Lb]; [now left|right; lra].
Qed.
