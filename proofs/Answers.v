(** A stored answer: cells and steps that a search decides, and the layer that reads them. Three layers in all.

    For: search/stack.py Searched.apply; search/plan.py Plan.run; search/operations.py Decide, DecideInRow, Add. *)

From Coq Require Import Reals ZArith List Permutation Lra Lia Bool.
From Flocq Require Import Core.
From Onelayer Require Import Arithmetic ExactSums ExactProducts Cells Thresholds Search Steps Families Lookups.
Import ListNotations.
Open Scope R_scope.

(** * What a decision says of all groups of a family *)

Lemma nth_indicator (p : nat -> bool) n i : (i < n)%nat ->
  nth i (map (fun i => if p i then 1 else 0) (seq 0 n)) 0 = if p i then 1 else 0.
Proof.
  intros L. rewrite (nth_indep _ 0 ((fun i => if p i then 1 else 0) 0%nat)) by (now rewrite map_length, seq_length).
  rewrite (map_nth (fun i => if p i then 1 else 0)), seq_nth by exact L. reflexivity.
Qed.

Lemma same_list (l l' : list R) :
  length l = length l' -> (forall i, (i < length l)%nat -> nth i l 0 = nth i l' 0) -> l = l'.
Proof. intros E H. now apply (nth_ext l l' 0 0). Qed.

(** If each group j is 1 or 0 as j is c or not, the groups are the one-hot of c. *)
Lemma is_one_hot (ys : list R) (c : nat) :
  (forall j, (j < length ys)%nat -> nth j ys 0 = if (j =? c)%nat then 1 else 0) -> ys = one_hot (length ys) c.
Proof.
  intros H. apply same_list; [unfold one_hot; now rewrite map_length, seq_length|]. intros i I.
  unfold one_hot. rewrite (nth_indicator (fun i => (i =? c)%nat)) by exact I. now apply H.
Qed.

Lemma is_staircase (ys : list R) (n : nat) :
  (forall j, (j < length ys)%nat -> nth j ys 0 = if (j <? n)%nat then 1 else 0) -> ys = staircase (length ys) n.
Proof.
  intros H. apply same_list; [unfold staircase; now rewrite map_length, seq_length|]. intros i I.
  unfold staircase. rewrite (nth_indicator (fun i => (i <? n)%nat)) by exact I. now apply H.
Qed.

(** If a family of cells is decided as c, its values are the one-hot of c, in every arithmetic.
    For: search/operations.py Decide (cells); search/parts.py Known (kind "one"). *)
Theorem family_is_one_hot A columns low high family column first stop fuel c ys :
  In column columns -> (forall us, In us family -> proper A columns low high us) -> in_order family column ->
  first_count (fun j => edge_le (beyond family column j) (At (low column))) (length family) first ->
  first_count (fun j => ~ edge_le (At (high column)) (before family column j)) (length family) stop ->
  decide columns low high family column first stop fuel = Some c ->
  Forall2 (fun us => group_in A (units us)) family ys ->
  ys = one_hot (length family) c.
Proof.
  intros C P O F S D V. assert (L := same_length V). rewrite L. apply is_one_hot. rewrite <- L.
  now apply (cells_decide A columns low high family column first stop fuel c ys).
Qed.

(** If a staircase is decided as n, its values are 1 up to n, and 0 from there on, in every arithmetic.
    For: search/operations.py Decide (steps); search/parts.py Known (kind "upto"). *)
Theorem steps_are_a_staircase A falling groups as_ off_sorted low high n ys :
  Forall2 step groups as_ ->
  (forall us a, In us groups -> In a us -> good_in A a) ->
  (forall a, In a as_ -> ranged a /\ falls falling a /\ enclosed A a low high) ->
  Permutation (map step_off as_) off_sorted ->
  first_count (fun i => nth i (map step_on as_) 0 <= turned_low falling low high) (length as_) n ->
  count (fun x => if Rlt_dec x (turned_high falling low high) then true else false) off_sorted = n ->
  Forall2 (group_in A) groups ys -> ys = staircase (length groups) n.
Proof.
  intros S G O P F N V. assert (L := same_length V). rewrite L. apply is_staircase. rewrite <- L.
  now apply (steps_decide A falling groups as_ off_sorted low high n ys).
Qed.

(** * The layer that reads them *)

(** The answer of one family. If decide returns c, and either the weight of cell c and the bias are whole
    numbers of sizes that add up to at most 2^prec, or the bias is zero and the weight is zero or normal, then
    every value that the arithmetic allows for the third layer, in any order, fused or not, wider or not,
    flushing or not, is exactly that weight plus the bias. [others] are inputs of the third layer that are zero,
    or that meet weight zero.
    For: search/stack.py Searched.apply. *)
Theorem stored_answer_exact (f : format) columns low high family column first stop fuel c
    (ys ws : list R) (others : list term) (b s : R) :
  In column columns -> (forall us, In us family -> proper (Float f) columns low high us) ->
  in_order family column ->
  first_count (fun j => edge_le (beyond family column j) (At (low column))) (length family) first ->
  first_count (fun j => ~ edge_le (At (high column)) (before family column j)) (length family) stop ->
  decide columns low high family column first stop fuel = Some c ->
  Forall2 (fun us => group_value f (units us)) family ys ->
  length ws = length family -> (forall t, In t others -> zero_term t) ->
  let w := nth c ws 0 in
  (whole w /\ whole b /\ Rabs w + Rabs b <= bpow radix2 (prec f)) \/ (b = 0 /\ solid f w) ->
  sums f (leaf f) (products ys ws ++ others ++ [Bias b]) s ->
  s = w + b.
Proof.
  intros C P O F S D V L Z w W Hs.
  assert (E := family_is_one_hot (Float f) columns low high family column first stop fuel c ys C P O F S D V).
  rewrite <- L in E. subst ys.
  assert (H : sums f (leaf f) (products (one_hot (length ws) c) ws ++ [Bias b]) s).
  { apply (zeros_add_nothing f _ s Hs others); [|exact Z]. rewrite !app_assoc.
    apply Permutation_app_tail. apply Permutation_app_comm. }
  destruct (one_hot_row f ws c) as [(Ev & Es & Ew) (Sn & Ss)]. cbn [row_value row_size row_terms] in *.
  fold w in Ev, Es, Ew, Ss.
  assert (T : sum value (products (one_hot (length ws) c) ws ++ [Bias b]) = w + b).
  { rewrite sum_app, <- Ev. simpl. ring. }
  rewrite <- T. destruct W as [(Ww & Wb & Sz)|(-> & Sw)].
  - apply (any_order_product_exact f); [| |exact H].
    + intros t I. apply in_app_or in I. destruct I as [I|[<-|[]]]; [now apply Ew|exact Wb].
    + rewrite sum_app, <- Es. simpl. lra.
  - apply (one_term_exact f); [| | |exact H].
    + intros t v I. apply in_app_or in I. destruct I as [I|[<-|[]]]; [now apply Ss|]. apply (zero_leaf f (Bias 0)).
      reflexivity.
    + intros t I. apply in_app_or in I. destruct I as [I|[<-|[]]]; [now apply Ss|apply solid_0].
    + rewrite nonzeros_app. simpl. destruct (Req_EM_T 0 0) as [_|N]; [lia|now elim N].
Qed.

(** The answer of several families and staircases, of inputs that are known, and of a bias. Each part is a row
    that was looked up for its decision. Where all of it is whole, and the checker's sum of sizes is below
    2^prec, the checker's answer m is the only value that the arithmetic allows.
    For: search/operations.py Add; search/parts.py added, added_whole. *)
Theorem stored_answers_exact (f : format) (rows : list row) (is : list input) (others : list term)
    (b size s m : R) :
  inside f -> whole_lookup rows is b -> (forall t, In t others -> zero_term t) ->
  sums binary64 (leaf binary64) (checker_sizes rows is b) size -> size < bpow radix2 (prec f) ->
  sums f (leaf f) (others ++ network_terms rows is b) s ->
  sums binary64 (leaf binary64) (checker_terms rows is b) m ->
  s = m.
Proof.
  intros F W Z Hsize Fit Hs Hm.
  assert (H := zeros_add_nothing f _ s Hs others _ (Permutation_refl _) Z).
  destruct (added_whole_exact f F rows is b size s m W Hsize Fit H Hm). congruence.
Qed.
