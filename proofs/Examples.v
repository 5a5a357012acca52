(** The definitions say what they should: usual ways to compute a dot product are among the values allowed, a
    family of cells is decided and its answer is exact, and hypotheses of the theorems cannot be dropped. *)

From Coq Require Import Reals ZArith List Permutation Lra Lia Bool.
From Flocq Require Import Core.
From Onelayer Require Import Arithmetic ExactSums ExactProducts Cells Thresholds Search Families Lookups Answers.
Import ListNotations.
Open Scope R_scope.

(** * Programs that the model allows *)

Section Programs.
Variable f : format.

Definition nearest_even (p e : Z) (x : R) := round radix2 (FLT_exp e p) ZnearestE x.
Definition fl (x : R) := nearest_even (prec f) (emin f) x.

Lemma wide_rnd p e x : (prec f <= p)%Z -> (e <= emin f)%Z -> rnd f x (nearest_even p e x).
Proof. intros P E. now apply (rnd_nearest f x _ p e (fun n => negb (Z.even n))). Qed.

Lemma fl_rnd x : rnd f x (fl x).
Proof. apply wide_rnd; lia. Qed.

Definition prods (l : list (R * R)) := map (fun q => Prod (fst q) (snd q)) l.

(** A loop that first multiplies and then adds, with the roundings [rp] of products and [ra] of sums. *)
Fixpoint loop_with (rp ra : R -> R) (acc : R) (l : list (R * R)) : R :=
  match l with [] => acc | (x, w) :: l => loop_with rp ra (ra (acc + rp (x * w))) l end.

Lemma loop_with_allowed rp ra : (forall x, rnd f x (rp x)) -> (forall x, rnd f x (ra x)) ->
  forall l done acc, sums f (leaf f) done acc -> sums f (leaf f) (done ++ prods l) (loop_with rp ra acc l).
Proof.
  intros Rp Ra. induction l as [|[x w] l IH]; intros done acc H; simpl; [now rewrite app_nil_r|].
  replace (done ++ Prod x w :: prods l) with ((done ++ [Prod x w]) ++ prods l) by (now rewrite <- app_assoc).
  apply IH. eapply sums_rnd; [|apply Ra]. eapply sums_add; [reflexivity|exact H|]. apply sums_leaf.
  exists x, w. repeat split; [now left|now left|apply Rp].
Qed.

(** acc = fl (acc + fl (x w)). *)
Theorem loop_allowed l done acc :
  sums f (leaf f) done acc -> sums f (leaf f) (done ++ prods l) (loop_with fl fl acc l).
Proof. apply loop_with_allowed; apply fl_rnd. Qed.

(** acc = fl (acc + x w): products fused with additions. *)
Theorem fused_allowed l done acc :
  sums f (leaf f) done acc -> sums f (leaf f) (done ++ prods l) (loop_with (fun x => x) fl acc l).
Proof. apply loop_with_allowed; [intros x; now apply rnd_kept|apply fl_rnd]. Qed.

(** An accumulator of a wider format, converted at the end: two roundings, one after the other. *)
Theorem wide_loop_allowed (p e : Z) l done acc :
  (prec f <= p)%Z -> (e <= emin f)%Z -> sums f (leaf f) done acc ->
  sums f (leaf f) (done ++ prods l) (fl (loop_with (nearest_even p e) (nearest_even p e) acc l)).
Proof.
  intros P E H. eapply sums_rnd; [|apply fl_rnd]. apply loop_with_allowed; trivial; intros x; now apply wide_rnd.
Qed.

(** Two halves of a sum that are computed by themselves, and added. *)
Theorem halves_allowed l l' :
  sums f (leaf f) (prods l ++ prods l') (fl (loop_with fl fl 0 l + loop_with fl fl 0 l')).
Proof.
  eapply sums_rnd; [|apply fl_rnd]. eapply sums_add; [reflexivity| |];
    (apply (loop_allowed _ []); apply sums_zero).
Qed.

(** Subnormal operands are read as zero, and subnormal results are flushed. *)
Definition daz (x : R) := if Rlt_dec (Rabs x) (tiny f) then 0 else x.

Lemma daz_reads x : reads f x (daz x).
Proof. unfold daz. destruct (Rlt_dec (Rabs x) (tiny f)); [now right|now left]. Qed.

Fixpoint loop_daz (acc : R) (l : list (R * R)) : R :=
  match l with [] => acc | (x, w) :: l => loop_daz (daz (fl (acc + daz (fl (daz x * daz w))))) l end.

Theorem loop_daz_allowed l done acc :
  sums f (leaf f) done acc -> sums f (leaf f) (done ++ prods l) (loop_daz acc l).
Proof.
  revert done acc. induction l as [|[x w] l IH]; intros done acc H; simpl; [now rewrite app_nil_r|].
  replace (done ++ Prod x w :: prods l) with ((done ++ [Prod x w]) ++ prods l) by (now rewrite <- app_assoc).
  apply IH. eapply sums_rnd; [|apply reads_rnd, daz_reads]. eapply sums_rnd; [|apply fl_rnd].
  eapply sums_add; [reflexivity|exact H|]. eapply sums_rnd; [|apply reads_rnd, daz_reads]. apply sums_leaf.
  exists (daz x), (daz w). repeat split; [apply daz_reads|apply daz_reads|apply fl_rnd].
Qed.

End Programs.

(** * A family of two cells *)

(** Cell j is on where t is within 1 of 4 j, and off from a distance of 2 on; both units read coordinate 0. *)
Definition rising (t c : R) := Unit t 1 (- (c + 1)) (Bias (- (c + 1))) [].
Definition falling (t c : R) := Unit t (-1) (c - 1) (Bias (c - 1)) [].
Definition two_cells (t : R) : list cell :=
  [[(0%nat, rising t 0); (0%nat, falling t 0)]; [(0%nat, rising t 4); (0%nat, falling t 4)]].

Lemma number_whole f (n : Z) : (Z.abs n <= 1024)%Z -> (10 <= prec f)%Z -> number f (IZR n).
Proof.
  intros N P. apply solid_whole. rewrite <- abs_IZR. apply Rle_trans with (bpow radix2 10); [|now apply bpow_le].
  simpl. now apply IZR_le.
Qed.

Lemma n64 (n : Z) : (Z.abs n <= 1024)%Z -> number binary64 (IZR n).
Proof. intros N. now apply number_whole. Qed.

#[local] Instance prec64 : Prec_gt_0 53.
Proof. reflexivity. Qed.

Lemma up_below x y : number binary64 x -> number binary64 y -> x < y -> up x <= y.
Proof. intros X Y L. apply succ_le_lt; trivial. now apply FLT_exp_valid. Qed.

Lemma down_above x y : number binary64 x -> number binary64 y -> x < y -> x <= down y.
Proof. intros X Y L. apply pred_ge_gt; trivial. now apply FLT_exp_valid. Qed.

(** The edges of whole numbers, with slopes 1 and -1: the outward roundings stay below the next whole number but
    one. *)
Lemma off_high_whole (c : Z) : (Z.abs c <= 1000)%Z -> off_high 1 (IZR c) <= IZR (3 - c).
Proof.
  intros C. unfold off_high. unfold Rdiv. rewrite Rinv_1, Rmult_1_r. rewrite <- minus_IZR.
  rewrite (rn_of_number (IZR (1 - c))) by (apply n64; lia).
  assert (F : number binary64 (up (IZR (1 - c)))).
  { apply generic_format_succ; [now apply FLT_exp_valid|apply n64; lia]. }
  rewrite (rn_of_number _ F).
  assert (L : up (IZR (1 - c)) <= IZR (2 - c)).
  { apply up_below; [apply n64; lia|apply n64; lia|apply IZR_lt; lia]. }
  apply up_below; [exact F|apply n64; lia|]. apply Rle_lt_trans with (1 := L). apply IZR_lt. lia.
Qed.

(** At t = 4 the second of the two cells is found, whatever the fuel. *)
Lemma second_cell_found fuel : decide [0%nat] (fun _ => 4) (fun _ => 4) (two_cells 4) 0 1 2 fuel = Some 1%nat.
Proof.
  unfold decide. assert (B : forall a b, edge_le a b -> below a b = true).
  { intros a b L. unfold below. now destruct (edge_le_dec a b). }
  replace ((1 <? length (two_cells 4))%nat) with true by reflexivity.
  replace (found_on _ _ _ (nth_cell (two_cells 4) 1)) with true; [reflexivity|]. symmetry.
  unfold found_on, nth_cell. simpl forallb. rewrite andb_true_r. apply andb_true_intro. split; apply B.
  - unfold cell_on_low, lower, dead. simpl. unfold is_dead. simpl.
    destruct (Req_EM_T 1 0) as [E|_]; [exfalso; lra|]. destruct (Req_EM_T (-1) 0) as [E|_]; [exfalso; lra|]. simpl.
    destruct (Rlt_dec 1 0) as [E|_]; [exfalso; lra|]. destruct (Rlt_dec (-1) 0) as [_|E]; [|exfalso; lra].
    simpl. unfold on_low. replace ((4 - 1) / - -1) with (IZR 3) by field.
    rewrite rn_of_number by (now apply n64). lra.
  - unfold cell_on_high, upper. simpl. destruct (Rlt_dec 0 1) as [_|E]; [|exfalso; lra].
    destruct (Rlt_dec 0 (-1)) as [E|_]; [exfalso; lra|].
    simpl. unfold on_high. replace (- - (4 + 1) / 1) with (IZR 5) by field.
    rewrite rn_of_number by (now apply n64). lra.
Qed.

Definition one_cell (t c : R) : cell := [(0%nat, rising t c); (0%nat, falling t c)].

Lemma one_cell_off_high t c : cell_off_high (one_cell t c) 0 = At (off_high 1 (- (c + 1))).
Proof.
  unfold cell_off_high, upper. simpl. destruct (Rlt_dec 0 1) as [_|E]; [|exfalso; lra].
  destruct (Rlt_dec 0 (-1)) as [E|_]; [exfalso; lra|]. reflexivity.
Qed.

Lemma one_cell_off_low t c : cell_off_low (one_cell t c) 0 = At (off_low (-1) (c - 1)).
Proof.
  unfold cell_off_low, lower, dead. simpl. unfold is_dead. simpl.
  destruct (Req_EM_T 1 0) as [E|_]; [exfalso; lra|]. destruct (Req_EM_T (-1) 0) as [E|_]; [exfalso; lra|]. simpl.
  destruct (Rlt_dec 1 0) as [E|_]; [exfalso; lra|].
  destruct (Rlt_dec (-1) 0) as [_|E]; [|exfalso; lra]. reflexivity.
Qed.

Lemma off_high_at_least b : 1 - b <= off_high 1 b.
Proof.
  unfold off_high, Rdiv. rewrite Rinv_1, Rmult_1_r. apply Rle_trans with (1 := up_rn (1 - b)). apply up_rn.
Qed.

Lemma off_low_at_most b : off_low (-1) b <= b - 1.
Proof.
  unfold off_low. replace (down (rn (b - 1)) / - -1) with (down (rn (b - 1))) by field.
  apply Rle_trans with (1 := down_rn (down (rn (b - 1)))). apply down_rn.
Qed.

Lemma off_low_whole (c : Z) : (Z.abs c <= 1000)%Z -> IZR (c - 3) <= off_low (-1) (IZR c).
Proof.
  intros C. unfold off_low. replace (down (rn (IZR c - 1)) / - -1) with (down (rn (IZR c - 1))) by field.
  rewrite <- minus_IZR, (rn_of_number (IZR (c - 1))) by (apply n64; lia).
  assert (F : number binary64 (down (IZR (c - 1)))).
  { apply generic_format_pred; [now apply FLT_exp_valid|apply n64; lia]. }
  rewrite (rn_of_number _ F).
  assert (L : IZR (c - 2) <= down (IZR (c - 1))).
  { apply down_above; [apply n64; lia|apply n64; lia|apply IZR_lt; lia]. }
  apply down_above; [apply n64; lia|exact F|]. apply Rlt_le_trans with (2 := L). apply IZR_lt. lia.
Qed.

(** Both units of a cell are good ones, as far as the search asks. *)
Lemma one_cell_proper (c : Z) : (0 <= c <= 100)%Z ->
  proper (Float binary32) [0%nat] (fun _ => 4) (fun _ => 4) (one_cell 4 (IZR c)).
Proof.
  intros C. assert (T : tiny binary32 <= 1) by apply tiny_le_1.
  assert (Both : forall w n, (w = 1 \/ w = -1) -> (Z.abs n <= 1024)%Z ->
            let a := Unit 4 w (IZR n) (Bias (IZR n)) [] in
            good_unit binary32 a /\ ranged a /\ w <> 0 /\ enclosed (Float binary32) a 4 4).
  { intros w n W N a.
    assert (P : power w) by (exists 0%Z; destruct W as [-> | ->]; [now left|now right]).
    assert (S1 : Rabs w = 1) by (destruct W as [-> | ->]; unfold Rabs; destruct (Rcase_abs _); lra).
    assert (Size : IZR n = 0 \/ 1 <= Rabs (IZR n)) by (apply whole_size; now exists n).
    split; [|split; [|split]].
    - unfold good_unit. simpl. split; [split; [now left|easy]|]. split; [now apply (number_whole binary32 4)|].
      split; [now apply number_whole|right]. split; [exact P|]. split; [right; lra|].
      destruct Size as [Z0|Z1]; [now left|right; lra].
    - right. cbn [bias slope a]. split; [now apply n64|]. split; [exact P|].
      destruct Size as [Z0|Z1]; [now left|right].
      assert (Q : exists k : Z, IZR n / w = IZR k /\ (Z.abs k <= 1024)%Z /\ 1 <= Rabs (IZR k)).
      { destruct W as [-> | ->]; [exists n|exists (- n)%Z].
        - repeat split; trivial. field.
        - rewrite opp_IZR, Rabs_Ropp. repeat split; trivial; [field|lia]. }
      destruct Q as (k & -> & K & L). rewrite rn_of_number by (now apply n64). apply Rlt_le_trans with (2 := L).
      change 1 with (bpow radix2 0). now apply bpow_lt.
    - destruct W as [-> | ->]; lra.
    - intros t' R. simpl in R. destruct R as [->|[R ->]]; [lra|]. rewrite Rabs_pos_eq in R by lra. lra. }
  assert (R : rising 4 (IZR c) = Unit 4 1 (IZR (- (c + 1))) (Bias (IZR (- (c + 1)))) []).
  { unfold rising. now rewrite opp_IZR, plus_IZR. }
  assert (L : falling 4 (IZR c) = Unit 4 (-1) (IZR (c - 1)) (Bias (IZR (c - 1))) []).
  { unfold falling. now rewrite minus_IZR. }
  intros column a [E|[E|[]]]; injection E as <- <-; [rewrite R|rewrite L].
  - destruct (Both 1 (- (c + 1))%Z ltac:(now left) ltac:(lia)) as (G & Q & W & E).
    repeat split; trivial; try apply G; [intros Z; now elim W|now left|apply E; assumption|apply E; assumption].
  - destruct (Both (-1) (c - 1)%Z ltac:(now right) ltac:(lia)) as (G & Q & W & E).
    repeat split; trivial; try apply G; [intros Z; now elim W|now left|apply E; assumption|apply E; assumption].
Qed.

(** The answer of that family, in every arithmetic that float32 allows: the weight 20 of the second cell plus
    the bias 3. So the hypotheses of [stored_answer_exact] can be satisfied. *)
Theorem two_cells_answer (ys : list R) (s : R) :
  Forall2 (fun us => group_value binary32 (units us)) (two_cells 4) ys ->
  sums binary32 (leaf binary32) (products ys [10; 20] ++ [] ++ [Bias 3]) s -> s = 23.
Proof.
  intros V H. replace 23 with (nth 1 [10; 20] 0 + 3) by (simpl; lra).
  assert (Hi0 := off_high_whole (-1) ltac:(easy)). assert (Hi1 := off_high_at_least (- (4 + 1))).
  assert (Lo0 := off_low_at_most (0 - 1)). assert (Lo1 := off_low_at_most (4 - 1)).
  assert (Lo2 := off_low_whole 3 ltac:(easy)). replace (- (0 + 1)) with (IZR (-1)) in * by (simpl; lra).
  assert (Beyond : forall j, beyond (two_cells 4) 0 j = match j with
            | 0%nat => At (off_high 1 (IZR (-1))) | 1%nat => At (off_high 1 (- (4 + 1))) | _ => PlusInfinity end).
  { intros [|[|j]]; unfold beyond, nth_cell.
    - replace (IZR (-1)) with (- (0 + 1)) by lra. apply (one_cell_off_high 4 0).
    - apply (one_cell_off_high 4 4).
    - now destruct j. }
  assert (Before : forall j, (j < 2)%nat -> before (two_cells 4) 0 j = match j with
            | 0%nat => At (off_low (-1) (0 - 1)) | _ => At (off_low (-1) (4 - 1)) end).
  { intros [|[|j]] J; unfold before, nth_cell; [apply (one_cell_off_low 4 0)|apply (one_cell_off_low 4 4)|lia]. }
  replace (4 - 1) with (IZR 3) in * by (simpl; lra). simpl in Hi0, Lo2.
  apply (stored_answer_exact binary32 [0%nat] (fun _ => 4) (fun _ => 4) (two_cells 4) 0 1 2 0 1 ys [10; 20] [] 3 s);
    trivial.
  - now left.
  - intros us [<-|[<-|[]]]; [apply (one_cell_proper 0)|apply (one_cell_proper 4)]; lia.
  - split; intros i j I; simpl in I.
    + rewrite !Before by lia. destruct i as [|[|i]], j as [|[|j]]; try lia; simpl; lra.
    + rewrite !Beyond. destruct i as [|[|i]], j as [|[|j]]; try lia; simpl; lra.
  - repeat split; [simpl; lia| |]; intros i I; simpl in I.
    + rewrite Beyond. destruct i as [|i]; [simpl; lra|lia].
    + rewrite Beyond. destruct i as [|[|i]]; [lia| |lia]. simpl. lra.
  - repeat split; [simpl; lia| |intros i I; simpl in I; lia]. intros i I. rewrite Before by exact I.
    destruct i as [|[|i]]; simpl; lra.
  - apply second_cell_found.
  - intros t [].
  - left. simpl nth. split; [now exists 20%Z|]. split; [now exists 3%Z|]. rewrite !Rabs_pos_eq by lra. simpl. lra.
Qed.

(** * The slope of a unit has to be a power of two *)

Lemma fl_tie : fl binary32 (2 + bpow radix2 (-23)) = 2.
Proof.
  unfold fl, nearest_even, round, scaled_mantissa, cexp.
  assert (M : mag radix2 (2 + bpow radix2 (-23)) = 2%Z :> Z) by (apply mag_unique_pos; simpl; lra).
  rewrite M. replace (FLT_exp (emin binary32) (prec binary32) 2) with (-22)%Z by reflexivity.
  replace ((2 + bpow radix2 (-23)) * bpow radix2 (- (-22))) with (IZR 8388608 + / 2) by (simpl; lra).
  replace (ZnearestE (IZR 8388608 + / 2)) with 8388608%Z; [unfold F2R; simpl; lra|].
  unfold Znearest. rewrite (Zfloor_imp 8388608) by (simpl; lra).
  replace (IZR 8388608 + / 2 - IZR 8388608) with (/ 2) by ring. rewrite Rcompare_Eq by reflexivity. reflexivity.
Qed.

(** In binary32, w = 24929, t = 673 / 2^23 and b = -(1 + 2^-23) give w t + b = 1 exactly; but the product,
    rounded to nearest even, is 2, and the unit 1 - 2^-23 < 1. *)
Theorem slope_has_to_be_a_power :
  exists a z, well_formed a /\ number binary32 (t_of a) /\ number binary32 (slope a) /\ solid binary32 (bias a) /\
    normal binary32 (t_of a) /\ normal binary32 (slope a) /\ 1 <= slope a * t_of a + bias a /\
    unit_value binary32 a z /\ z < 1.
Proof.
  assert (T : tiny binary32 <= bpow radix2 (-23)) by (apply bpow_le; discriminate).
  assert (D : bpow radix2 (-23) = / 8388608) by reflexivity.
  assert (Fm : forall m e, (Z.abs m < 2 ^ 24)%Z -> (-149 <= e)%Z -> number binary32 (IZR m * bpow radix2 e)).
  { intros m e Hm He. apply generic_format_FLT. exists (Defs.Float radix2 m e); [reflexivity|exact Hm|exact He]. }
  pose (t := 673 * bpow radix2 (-23)). pose (b := - (1 + bpow radix2 (-23))).
  assert (Eq : 24929 * t = 2 + bpow radix2 (-23)) by (unfold t; rewrite D; lra).
  exists (Unit t 24929 b (Bias b) []), (fl binary32 (24929 * t) + b). simpl. rewrite Eq, fl_tie. unfold b.
  split; [split; [now left|easy]|]. split; [apply (Fm 673%Z); easy|]. split.
  { replace 24929 with (IZR 24929 * bpow radix2 0) by (simpl; lra). apply Fm; easy. }
  split; [split|].
  - replace (- (1 + bpow radix2 (-23))) with (IZR (-8388609) * bpow radix2 (-23)) by (rewrite D; lra).
    apply Fm; easy.
  - right. rewrite Rabs_left; rewrite D in *; lra.
  - split; [right; unfold t; rewrite Rabs_pos_eq; rewrite D in *; lra|].
    split; [right; rewrite Rabs_pos_eq; rewrite D in *; lra|]. split; [lra|]. split; [|rewrite D; lra].
    apply (sums_add binary32 _ _ [Prod t 24929] [Bias b]); [reflexivity| |apply sums_leaf; now left].
    apply sums_leaf. exists t, 24929. split; [now left|]. split; [now left|].
    assert (K := fl_rnd binary32 (2 + bpow radix2 (-23))). now rewrite fl_tie, <- Eq, Rmult_comm in K.
Qed.
