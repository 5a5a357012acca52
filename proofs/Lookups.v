(** Sums that are looked up: cells and steps that are exactly 0 or 1 make a row of a table of a family's part of
    a sum.

    For: search/parts.py Known.rows, added, _is_exact, added_whole; search/operations.py Sums.fit, Sums.ball,
    Add, Gate, Pick, Collect; search/builder.py tabulated, several. *)

From Coq Require Import Reals ZArith List Permutation Lra Lia Bool.
From Flocq Require Import Core.
From Onelayer Require Import Arithmetic ExactSums ExactProducts Cells Thresholds.
Import ListNotations.
Open Scope R_scope.

(** * Rows *)

(** The terms that the units of a part add to a sum: their values, and the weights that meet them. *)
Definition products (xs ws : list R) : list term := map (fun q => Prod (fst q) (snd q)) (combine xs ws).

(** Of n units, only unit j is 1 (kind "one"; none of them if j is n); the first j are 1 (kind "upto"). *)
Definition one_hot (n j : nat) : list R := map (fun i => if (i =? j)%nat then 1 else 0) (seq 0 n).
Definition staircase (n j : nat) : list R := map (fun i => if (i <? j)%nat then 1 else 0) (seq 0 n).

(** What is looked up for a part: a number, and what the sizes of its terms add up to. *)
Record row := Row { row_value : R; row_size : R; row_terms : list term }.

(** A row says what its terms add up to. If that is a whole number, all its terms are. *)
Definition right (r : row) :=
  row_value r = sum value (row_terms r) /\ row_size r = sum (fun t => Rabs (value t)) (row_terms r) /\
  (whole (row_value r) -> forall t, In t (row_terms r) -> whole_term t).

(** Each value of its terms is exact, and at most one is not zero. *)
Definition single (f : format) (r : row) :=
  (nonzeros (row_terms r) <= 1)%nat /\
  (solid f (row_value r) -> forall t, In t (row_terms r) ->
     solid f (value t) /\ forall v, leaf f t v -> v = value t).

Lemma products_cons x xs w ws : products (x :: xs) (w :: ws) = Prod x w :: products xs ws.
Proof. reflexivity. Qed.

Lemma sum_cons {A} (c : A -> R) a l : sum c (a :: l) = c a + sum c l.
Proof. reflexivity. Qed.

Lemma zero_terms_sum l : (forall t, In t l -> zero_term t) ->
  sum value l = 0 /\ sum (fun t => Rabs (value t)) l = 0 /\ nonzeros l = 0%nat.
Proof.
  induction l as [|t l IH]; intros H; [now repeat split|].
  destruct IH as (A & B & C); [intros; apply H; now right|].
  assert (Z := zero_value t (H t (or_introl eq_refl))). rewrite !sum_cons, A, B, Z, Rabs_R0. simpl. rewrite Z, C.
  destruct (Req_EM_T 0 0) as [_|N]; [|now elim N]. repeat split; lra.
Qed.

Lemma zero_inputs ws : forall xs, (forall x, In x xs -> x = 0) -> forall t, In t (products xs ws) -> zero_term t.
Proof.
  intros xs H t I. apply in_map_iff in I. destruct I as ([x w] & <- & I). left.
  apply H. now apply in_combine_l in I.
Qed.

Lemma one_hot_next n j : one_hot (S n) (S j) = 0 :: one_hot n j.
Proof. unfold one_hot. simpl. f_equal. rewrite <- seq_shift, map_map. now apply map_ext. Qed.

Lemma one_hot_first n : one_hot (S n) 0 = 1 :: map (fun _ => 0) (seq 0 n).
Proof. unfold one_hot. simpl. f_equal. rewrite <- seq_shift, map_map. now apply map_ext. Qed.

Lemma staircase_next n j : staircase (S n) (S j) = 1 :: staircase n j.
Proof. unfold staircase. simpl. f_equal. rewrite <- seq_shift, map_map. now apply map_ext. Qed.

Lemma staircase_none n : staircase n 0 = map (fun _ => 0) (seq 0 n).
Proof. now apply map_ext. Qed.

Lemma all_zero n (x : R) : In x (map (fun _ => 0) (seq 0 n)) -> x = 0.
Proof. intros I. apply in_map_iff in I. now destruct I as (_ & <- & _). Qed.

Lemma one_hot_terms ws j : let l := products (one_hot (length ws) j) ws in
  sum value l = nth j ws 0 /\ sum (fun t => Rabs (value t)) l = Rabs (nth j ws 0) /\ (nonzeros l <= 1)%nat /\
  forall t, In t l -> zero_term t \/ t = Prod 1 (nth j ws 0).
Proof.
  cbv zeta. revert j. induction ws as [|w ws IH]; intros j.
  - replace (nth j [] 0) with 0 by (now destruct j). rewrite Rabs_R0.
    split; [reflexivity|]. split; [reflexivity|]. split; [apply Nat.le_0_l|]. intros t [].
  - cbn [length]. destruct j as [|j]; cbn [nth].
    + rewrite one_hot_first, products_cons, !sum_cons. cbn [nonzeros value].
      assert (Z := zero_inputs ws _ (all_zero (length ws))). destruct (zero_terms_sum _ Z) as (B & C & D).
      rewrite B, C, D, Rmult_1_l. repeat split; try lra; [destruct (Req_EM_T w 0); lia|].
      intros t [<-|I]; [now right|left; now apply Z].
    + rewrite one_hot_next, products_cons, !sum_cons. cbn [nonzeros value]. rewrite Rmult_0_l, Rabs_R0.
      destruct (IH j) as (B & C & D & T). rewrite B, C. destruct (Req_EM_T 0 0) as [_|N]; [|now elim N].
      repeat split; try lra; [lia|]. intros t [<-|I]; [left; now left|now apply T].
Qed.

(** The terms of a one-hot add up to one weight, which is the only term that is not zero.
    For: search/parts.py Known.rows (kind "one"). *)
Theorem one_hot_row (f : format) (ws : list R) (j : nat) :
  let w := nth j ws 0 in
  let r := Row w (Rabs w) (products (one_hot (length ws) j) ws) in right r /\ single f r.
Proof.
  cbv zeta. destruct (one_hot_terms ws j) as (E & Z & N & T). split.
  - split; [now symmetry|]. split; [now symmetry|]. simpl. intros W t I. destruct (T t I) as [Q| ->].
    + destruct t; simpl in *; [tauto|rewrite Q; apply whole_0].
    + right; right. split; [apply whole_1|exact W].
  - split; [exact N|]. cbn [row_value row_terms]. intros S t I. destruct (T t I) as [Q| ->].
    + rewrite (zero_value t Q). split; [apply solid_0|]. intros v. now apply zero_leaf.
    + simpl. rewrite Rmult_1_l. split; [exact S|]. intros v L. rewrite <- (Rmult_1_l (nth j ws 0)).
      apply (normal_leaf f); [right; rewrite Rabs_R1; apply tiny_le_1|apply S|now rewrite Rmult_1_l|exact L].
Qed.

(** The terms of a staircase add up to a sum of the first weights. All weights are whole numbers, and the
    checker's prefix sum of sizes is below 2^53: then its prefix sum of weights, added in any order, is exact.
    For: search/parts.py Known.rows (kind "upto"). *)
Theorem staircase_row (ws : list R) (j : nat) (v size : R) :
  (forall w, In w ws -> whole w) ->
  sums binary64 (reads binary64) (firstn j ws) v ->
  sums binary64 (reads binary64) (map Rabs (firstn j ws)) size -> size < bpow radix2 53 ->
  right (Row v size (products (staircase (length ws) j) ws)).
Proof.
  intros W Hv Hs L.
  assert (T : sum value (products (staircase (length ws) j) ws) = sum (fun x => x) (firstn j ws) /\
              sum (fun t => Rabs (value t)) (products (staircase (length ws) j) ws) = sum Rabs (firstn j ws) /\
              forall t, In t (products (staircase (length ws) j) ws) -> whole_term t).
  { clear - W. revert j. induction ws as [|w ws IH]; intros j; [simpl; destruct j; now repeat split|].
    cbn [length]. destruct j as [|j].
    - rewrite staircase_none. assert (Z := zero_inputs (w :: ws) _ (all_zero (S (length ws)))).
      destruct (zero_terms_sum _ Z) as (B & C & _). rewrite B, C. repeat split. intros t I. specialize (Z t I).
      destruct t; simpl in *; [tauto|rewrite Z; apply whole_0].
    - rewrite staircase_next, products_cons, !sum_cons. cbn [value firstn]. rewrite Rmult_1_l, !sum_cons.
      destruct (IH (fun x I => W x (or_intror I)) j) as (B & C & D). rewrite B, C. repeat split.
      intros t [<-|I]; [|now apply D]. right; right. split; [apply whole_1|apply W; now left]. }
  destruct T as (B & C & D).
  assert (Wf : forall w, In w (firstn j ws) -> whole w).
  { intros w I. apply W. rewrite <- (firstn_skipn j ws). apply in_or_app. now left. }
  assert (E : size = sum Rabs (firstn j ws)).
  { assert (Hs' : sums binary64 (leaf binary64) (map (fun w => Bias (Rabs w)) (firstn j ws)) size).
    { apply (sums_replaced binary64 _ _ _ _ size) with (2 := Hs). clear.
      induction (firstn j ws) as [|w l IH]; simpl; constructor; [intros v H; exact H|exact IH]. }
    rewrite (computed_size_exact binary64 _ size) with (2 := Hs'); [now rewrite sum_map| |exact L].
    intros t I. apply in_map_iff in I. destruct I as (w & <- & I). simpl. split; [|apply Rabs_pos].
    now apply whole_abs, Wf. }
  split; [|split; [|intros _; exact D]]; simpl.
  - rewrite B. apply (any_order_sum_exact binary64); trivial. rewrite <- E. left. exact L.
  - now rewrite C.
Qed.

(** The same for a table of whole numbers: row x of it meets the weights.
    For: search/parts.py Known.rows (kind "table"). *)
Theorem table_row (xs ws : list R) (v size : R) :
  (forall x, In x xs -> whole x) -> (forall w, In w ws -> whole w) ->
  sums binary64 (leaf binary64) (products xs ws) v ->
  sums binary64 (leaf binary64) (map size_term (products xs ws)) size -> size < bpow radix2 53 ->
  right (Row v size (products xs ws)).
Proof.
  intros X W Hv Hs L.
  assert (T : forall t, In t (products xs ws) -> whole_term t).
  { intros t I. apply in_map_iff in I. destruct I as ([x w] & <- & I). right; right.
    split; [apply X; now apply in_combine_l in I|apply W; now apply in_combine_r in I]. }
  assert (E : size = sum (fun t => Rabs (value t)) (products xs ws)).
  { rewrite (computed_size_exact binary64 _ size) with (2 := Hs); [|  |exact L].
    - rewrite sum_map. apply sum_ext. intros t _. apply size_term_value.
    - intros t I. apply in_map_iff in I. destruct I as (q & <- & I). split; [now apply size_term_whole, T|].
      rewrite size_term_value. apply Rabs_pos. }
  split; [|split; [exact E|intros _; exact T]]. simpl. apply (any_order_product_exact binary64); trivial.
  rewrite <- E. left. exact L.
Qed.

(** * Sums of chosen rows, of inputs with balls, and of a bias *)

(** The terms of the arithmetic's sum; those that the checker adds; and their sizes. *)
Definition network_terms (rows : list row) (is : list input) (b : R) := flat_map row_terms rows ++ actual is b.
Definition checker_terms (rows : list row) (is : list input) (b : R) :=
  map (fun r => Bias (row_value r)) rows ++ at_midpoints is b.
Definition checker_sizes (rows : list row) (is : list input) (b : R) :=
  map (fun r => Bias (row_size r)) rows ++ map size_term (at_midpoints is b).

Lemma rows_sum rows : (forall r, In r rows -> right r) ->
  sum value (flat_map row_terms rows) = sum row_value rows /\
  sum (fun t => Rabs (value t)) (flat_map row_terms rows) = sum row_size rows.
Proof.
  induction rows as [|r rows IH]; intros H; [now split|]. simpl flat_map. rewrite !sum_app, !sum_cons.
  destruct IH as [A B]; [intros; apply H; now right|]. destruct (H r (or_introl eq_refl)) as (E & S & _).
  rewrite A, B, <- E, <- S. now split.
Qed.

Lemma row_size_value r : right r -> Rabs (row_value r) <= row_size r.
Proof. intros (-> & -> & _). apply sum_abs. Qed.

Section Added.
Variable f : format.
Hypothesis fits_inside : inside f.

(** What is looked up and added is whole: rows and bias are whole numbers, and every input that is used is a
    known one, zero or whole like its weight. *)
Definition whole_lookup (rows : list row) (is : list input) (b : R) :=
  (forall r, In r rows -> right r /\ whole (row_value r)) /\ whole b /\
  (forall i, In i is -> in_ball i /\
     (used i -> point i /\ (m_of i = 0 \/ (whole (m_of i) /\ whole (w_of i))))).

(** What the sizes of all terms add up to. *)
Definition lookup_size (rows : list row) (is : list input) (b : R) :=
  sum row_size rows + sum (fun t => Rabs (value t)) (at_midpoints is b).

Lemma whole_lookup_terms rows is b : whole_lookup rows is b ->
  (forall t, In t (network_terms rows is b) -> whole_term t) /\
  (forall t, In t (checker_terms rows is b) -> whole_term t) /\
  (forall t, In t (at_midpoints is b) -> whole_term t).
Proof.
  intros (Rr & Wb & N).
  assert (Tm : forall t, In t (at_midpoints is b) -> whole_term t).
  { intros t I. apply in_app_or in I. destruct I as [I|[<-|[]]]; [|exact Wb].
    apply in_map_iff in I. destruct I as (i & <- & I). simpl. destruct (N i I) as [Bi Ui].
    destruct (Req_EM_T (w_of i) 0) as [Z|U]; [now right; left|]. destruct (Ui U) as (_ & [Z|Q]); auto. }
  split; [|split; [|exact Tm]]; intros t I; apply in_app_or in I; destruct I as [I|I].
  - apply in_flat_map in I. destruct I as (r & Ir & I). destruct (Rr r Ir) as ((_ & _ & Wq) & Wv). now apply Wq.
  - apply in_app_or in I. destruct I as [I|[<-|[]]]; [|exact Wb].
    apply in_map_iff in I. destruct I as (i & <- & I). simpl. destruct (N i I) as [Bi Ui].
    destruct (Req_EM_T (w_of i) 0) as [Z|U]; [now right; left|].
    destruct (Ui U) as (Pi & Q). rewrite (midpoint i Bi Pi). destruct Q as [Z|Q]; auto.
  - apply in_map_iff in I. destruct I as (r & <- & I). now apply Rr.
  - now apply Tm.
Qed.

Lemma whole_lookup_sums rows is b : whole_lookup rows is b ->
  sum value (checker_terms rows is b) = sum value (network_terms rows is b) /\
  sum (fun t => Rabs (value t)) (network_terms rows is b) = lookup_size rows is b /\
  sum (fun t => Rabs (value t)) (checker_terms rows is b) <= lookup_size rows is b.
Proof.
  intros (Rr & Wb & N). destruct (rows_sum rows (fun r I => proj1 (Rr r I))) as [Vr Sr].
  assert (P : forall i, In i is -> used i -> point i) by (intros i I U; now apply (N i I)).
  assert (B : forall i, In i is -> in_ball i) by (intros i I; now apply N).
  unfold checker_terms, network_terms, lookup_size. rewrite !sum_app, !sum_map, Vr, Sr. split; [|split].
  - now rewrite (same_sum is b B P).
  - f_equal. unfold actual, at_midpoints. rewrite !sum_app, !sum_map. f_equal. apply sum_ext. intros i I. simpl.
    destruct (Req_EM_T (w_of i) 0) as [->|U]; [now rewrite !Rmult_0_r|]. now rewrite (midpoint i (B i I) (P i I U)).
  - apply Rplus_le_compat_r. clear - Rr. induction rows as [|r rows IH]; [apply Rle_refl|]. rewrite !sum_cons.
    apply Rplus_le_compat; [apply row_size_value, Rr; now left|]. apply IH. intros. apply Rr. now right.
Qed.

(** Where everything is whole, and the sizes add up to at most 2^prec, every value that the arithmetic allows is
    the exact sum, and so is the checker's. For: search/parts.py added_whole. *)
Theorem lookup_exact (rows : list row) (is : list input) (b s m : R) :
  whole_lookup rows is b -> lookup_size rows is b <= bpow radix2 (prec f) ->
  sums f (leaf f) (network_terms rows is b) s -> sums binary64 (leaf binary64) (checker_terms rows is b) m ->
  s = sum value (network_terms rows is b) /\ m = sum value (network_terms rows is b).
Proof.
  intros W L Hs Hm. destruct (whole_lookup_terms _ _ _ W) as (Tn & Tc & _).
  destruct (whole_lookup_sums _ _ _ W) as (V & Sn & Sc). split.
  - apply (any_order_product_exact f); trivial. lra.
  - rewrite <- V. apply (any_order_product_exact binary64); trivial. apply Rle_trans with (1 := Sc).
    apply Rle_trans with (1 := L). destruct fits_inside. now apply bpow_le.
Qed.

(** The same where the checker adds the sizes, in any order, and finds a number below 2^prec.
    For: search/parts.py added and _is_exact (every; one, with whole numbers). *)
Theorem added_whole_exact (rows : list row) (is : list input) (b size s m : R) :
  whole_lookup rows is b ->
  sums binary64 (leaf binary64) (checker_sizes rows is b) size -> size < bpow radix2 (prec f) ->
  sums f (leaf f) (network_terms rows is b) s -> sums binary64 (leaf binary64) (checker_terms rows is b) m ->
  s = sum value (network_terms rows is b) /\ m = sum value (network_terms rows is b).
Proof.
  intros W Hsize Fit. destruct (whole_lookup_terms _ _ _ W) as (_ & _ & Tm).
  apply lookup_exact; [exact W|]. replace (lookup_size rows is b) with size; [now left|].
  rewrite (computed_size_exact binary64 _ size) with (2 := Hsize).
  - unfold checker_sizes, lookup_size. rewrite sum_app, !sum_map. f_equal. apply sum_ext. intros t _.
    apply size_term_value.
  - intros t I. apply in_app_or in I. destruct I as [I|I]; apply in_map_iff in I; destruct I as (q & <- & I).
    + destruct W as (Rr & _). destruct (Rr q I) as ((Eq & Sq & Wq) & Wv). simpl. rewrite Sq.
      split; [|apply sum_abs_nonneg]. apply whole_sum. intros t J. now apply whole_abs, whole_value, Wq.
    + split; [now apply size_term_whole, Tm|]. rewrite size_term_value. apply Rabs_pos.
  - apply Rlt_le_trans with (1 := Fit). destruct fits_inside. now apply bpow_le.
Qed.

(** A row all of whose sizes are zero has only zero terms. *)
Lemma empty_row r : right r -> row_size r = 0 -> forall t, In t (row_terms r) -> zero_term t.
Proof.
  intros (_ & S & _) Z t I. rewrite S in Z. assert (V : value t = 0).
  { destruct (Req_dec (value t) 0) as [E|N]; [exact E|exfalso]. apply Rabs_pos_lt in N.
    pose proof (size_of_one value (row_terms r) t I) as L. lra. }
  destruct t as [x w|c]; simpl in *; [|exact V]. now apply Rmult_integral.
Qed.

(** How many terms may differ from zero: [count] of _is_exact. A row that is not single counts twice. *)
Definition row_count (r : row) : nat := if Req_EM_T (row_size r) 0 then 0%nat else 1%nat.

(** At most one term is not zero: the only one of a chosen row, which is zero or normal; or the product of a
    known input and a weight, which, like the product, are normal, and of which the weight is a power of two; or
    the bias. Then every value that the arithmetic allows is the exact sum. (A product of whole numbers is
    [added_whole_exact].)
    For: search/parts.py added and _is_exact (one). *)
Theorem added_one_exact (rows : list row) (is : list input) (b s : R) :
  (forall r, In r rows -> right r /\ (row_size r = 0 \/ (single f r /\ solid f (row_value r)))) ->
  (forall i, In i is -> in_ball i /\ number f (x_of i)) ->
  (b = 0 \/ solid f b) ->
  (forall i, In i is -> live i -> used i -> point i /\ power (w_of i) /\
     normal f (m_of i) /\ normal f (w_of i) /\ normal f (m_of i * w_of i)) ->
  (list_sum (map row_count rows) + terms is b <= 1)%nat ->
  sums f (leaf f) (network_terms rows is b) s -> s = sum value (network_terms rows is b).
Proof.
  intros Rr B Sb N C.
  assert (K : forall i, In i is -> solid f (x_of i * w_of i) /\
            forall v, leaf f (Prod (x_of i) (w_of i)) v -> v = x_of i * w_of i).
  { intros i I. destruct (B i I) as (Bi & Xi). destruct (Req_EM_T (w_of i) 0) as [Z|U].
    - rewrite Z, Rmult_0_r. split; [apply solid_0|]. intros v. apply exact_product_zero. now right.
    - destruct (Req_EM_T (r_of i) 0) as [Pi|Pi].
      + rewrite (midpoint i Bi Pi) in *. destruct (Req_EM_T (m_of i) 0) as [Z|M].
        * rewrite Z, Rmult_0_l. split; [apply solid_0|]. intros v. apply exact_product_zero. now left.
        * destruct (N i I (or_intror M) U) as (_ & Pw & Nx & Nw & Np).
          split; [split; [now apply number_power|exact Np]|]. intros v L. now apply (exact_product_power f).
      + exfalso. apply Pi. now apply (N i I (or_introl Pi) U). }
  assert (S : forall t, In t (network_terms rows is b) -> solid f (value t) /\ forall v, leaf f t v -> v = value t).
  { intros t I. apply in_app_or in I. destruct I as [I|I].
    - apply in_flat_map in I. destruct I as (r & Ir & I). destruct (Rr r Ir) as (Q & [Z|(Si & So)]).
      + assert (Zt := empty_row r Q Z t I). rewrite (zero_value t Zt). split; [apply solid_0|].
        intros v. now apply zero_leaf.
      + now apply (proj2 Si So t I).
    - apply in_app_or in I. destruct I as [I|[<-|[]]].
      + apply in_map_iff in I. destruct I as (i & <- & I). now apply K.
      + assert (So : solid f b) by (destruct Sb as [->|Sb]; [apply solid_0|exact Sb]).
        split; [exact So|]. intros v. now apply reads_solid. }
  apply (one_term_exact f); [intros t v I; now apply S|intros t I; now apply S|].
  assert (C1 : (nonzeros (flat_map row_terms rows) <= list_sum (map row_count rows))%nat).
  { clear - Rr. induction rows as [|r rows IH]; [apply le_n|]. simpl flat_map. rewrite nonzeros_app.
    change (list_sum (map row_count (r :: rows))) with (row_count r + list_sum (map row_count rows))%nat.
    assert (J := IH (fun r I => Rr r (or_intror I))). enough (nonzeros (row_terms r) <= row_count r)%nat by lia.
    unfold row_count. destruct (Rr r (or_introl eq_refl)) as (Q & D).
    destruct (Req_EM_T (row_size r) 0) as [Z|Z].
    - destruct (zero_terms_sum _ (empty_row r Q Z)) as (_ & _ & E). lia.
    - destruct D as [D|(Si & _)]; [contradiction|]. apply Si. }
  assert (C2 : (nonzeros (actual is b) <= terms is b)%nat).
  { unfold actual, terms. rewrite nonzeros_app. simpl.
    enough (nonzeros (map (fun i => Prod (x_of i) (w_of i)) is) <= list_sum (map live_used is))%nat
      by (destruct (Req_EM_T b 0); lia).
    clear - B. induction is as [|i is IH]; [apply le_n|]. cbn [map nonzeros value].
    change (list_sum (live_used i :: map live_used is)) with (live_used i + list_sum (map live_used is))%nat.
    assert (J := IH (fun i I => B i (or_intror I))).
    destruct (Req_EM_T (x_of i * w_of i) 0) as [Z|Z]; [lia|].
    set (rest := list_sum _) in *. unfold live_used.
    destruct (Req_EM_T (w_of i) 0) as [W|U]; [exfalso; apply Z; rewrite W; ring|].
    destruct (Req_EM_T (r_of i) 0) as [Pi|Pi]; [|lia]. destruct (Req_EM_T (m_of i) 0) as [M|M]; [|lia].
    exfalso. apply Z. rewrite (midpoint i); [rewrite M; ring|apply B; now left|exact Pi]. }
  unfold network_terms. rewrite nonzeros_app. lia.
Qed.

End Added.

(** The checker's own sum is exact there, too: looked-up values stand for their rows, and midpoints for inputs.
    For: search/parts.py added and _is_exact (one). *)
Theorem added_one_midpoint (rows : list row) (is : list input) (b m : R) :
  (forall r, In r rows -> right r /\ (row_size r = 0 \/ solid binary64 (row_value r))) ->
  (forall i, In i is -> in_ball i /\ number binary64 (m_of i)) ->
  (b = 0 \/ solid binary64 b) ->
  (forall i, In i is -> live i -> used i -> point i /\ power (w_of i) /\
     normal binary64 (m_of i) /\ normal binary64 (w_of i) /\ normal binary64 (m_of i * w_of i)) ->
  (list_sum (map row_count rows) + terms is b <= 1)%nat ->
  sums binary64 (leaf binary64) (checker_terms rows is b) m -> m = sum value (network_terms rows is b).
Proof.
  intros Rr B Sb N C Hm.
  pose (looked := map (fun r => Row (row_value r) (Rabs (row_value r)) [Bias (row_value r)]) rows).
  pose (mids := map (fun i => Input (m_of i) (m_of i) (r_of i) (w_of i)) is).
  assert (P : forall i, In i is -> used i -> point i).
  { intros i I U. destruct (Req_EM_T (r_of i) 0) as [Z|Z]; [exact Z|]. now apply (N i I (or_introl Z) U). }
  assert (E : checker_terms rows is b = network_terms looked mids b).
  { unfold checker_terms, network_terms, at_midpoints, actual, looked, mids. rewrite map_map. simpl. f_equal.
    clear. induction rows; simpl; congruence. }
  assert (V : sum value (network_terms rows is b) = sum value (checker_terms rows is b)).
  { unfold network_terms, checker_terms. rewrite !sum_app, sum_map. simpl.
    destruct (rows_sum rows (fun r I => proj1 (Rr r I))) as [-> _]. f_equal.
    apply same_sum; [intros i I; now apply B|exact P]. }
  rewrite V, E. rewrite E in Hm. apply (added_one_exact binary64 looked mids b m); trivial.
  - intros r I. apply in_map_iff in I. destruct I as (q & <- & I). destruct (Rr q I) as [Q S].
    cbn [row_size row_value].
    assert (So : solid binary64 (row_value q)).
    { destruct S as [S|S]; [|exact S]. pose proof (row_size_value q Q) as L. rewrite S in L.
      replace (row_value q) with 0; [apply solid_0|]. revert L.
      unfold Rabs. destruct (Rcase_abs (row_value q)); lra. }
    split; [split; [simpl; ring|split; [simpl; ring|intros W t [<-|[]]; exact W]]|]. right.
    split; [|exact So]. split; [simpl; destruct (Req_EM_T (row_value q) 0); lia|].
    intros _ t [<-|[]]. split; [exact So|]. intros v. now apply reads_solid.
  - intros i I. apply in_map_iff in I. destruct I as (q & <- & I). destruct (B q I) as [Bq Fq]. split; [|exact Fq].
    unfold in_ball in *. simpl. rewrite Rminus_eq_0, Rabs_R0. pose proof (Rabs_pos (x_of q - m_of q)). lra.
  - intros i I. apply in_map_iff in I. destruct I as (q & <- & I). exact (N q I).
  - apply Nat.le_trans with (2 := C). apply Nat.add_le_mono.
    + unfold looked. rewrite map_map. clear - Rr. induction rows as [|r rows IH]; [apply le_n|]. cbn [map].
      specialize (IH (fun r I => Rr r (or_intror I))). simpl list_sum in *. apply Nat.add_le_mono; [|exact IH].
      destruct (Rr r (or_introl eq_refl)) as [Q _]. pose proof (row_size_value r Q) as L. unfold row_count. simpl.
      destruct (Req_EM_T (row_size r) 0) as [Z|Z]; destruct (Req_EM_T (Rabs (row_value r)) 0) as [Y|Y]; try lia.
      pose proof (Rabs_pos (row_value r)). lra.
    + unfold terms, mids. rewrite map_map. apply le_n.
Qed.
