(** Searching sorted rows: what a count of edges says about each of them. No floating point here.

    For: search/steps.py Steps.decide (counting), _upto; search/cells.py Cells.decide, _look_closely, following. *)

From Coq Require Import Reals ZArith List Permutation Lra Lia Bool.
Import ListNotations.
Open Scope R_scope.

(** * Edges *)

(** An edge is a number, or infinite where nothing ends. *)
Inductive edge := MinusInfinity | At (x : R) | PlusInfinity.

Definition edge_le (a b : edge) : Prop :=
  match a, b with
  | MinusInfinity, _ => True | _, PlusInfinity => True
  | At x, At y => x <= y
  | _, _ => False
  end.

Lemma edge_le_refl a : edge_le a a.
Proof. destruct a; simpl; trivial. lra. Qed.

Lemma edge_le_trans a b c : edge_le a b -> edge_le b c -> edge_le a c.
Proof. destruct a, b, c; simpl; trivial; try easy. apply Rle_trans. Qed.

Lemma edge_total a b : edge_le a b \/ edge_le b a.
Proof. destruct a, b; simpl; auto. destruct (Rle_dec x x0); [now left|right; lra]. Qed.

Definition edge_le_dec a b : {edge_le a b} + {~ edge_le a b}.
Proof. destruct a, b; simpl; try (now left); try (right; now intros []). apply Rle_dec. Defined.

Definition edge_min (a b : edge) : edge :=
  match a, b with
  | MinusInfinity, _ | _, MinusInfinity => MinusInfinity | PlusInfinity, e | e, PlusInfinity => e
  | At x, At y => At (Rmin x y)
  end.

Definition edge_max (a b : edge) : edge :=
  match a, b with
  | PlusInfinity, _ | _, PlusInfinity => PlusInfinity | MinusInfinity, e | e, MinusInfinity => e
  | At x, At y => At (Rmax x y)
  end.

Lemma min_le a b e : edge_le e (edge_min a b) <-> edge_le e a /\ edge_le e b.
Proof.
  destruct a, b, e; simpl; try tauto. split.
  - intros H. pose proof (Rmin_l x x0). pose proof (Rmin_r x x0). lra.
  - intros [H K]. now apply Rmin_glb.
Qed.

Lemma min_ge a b e : edge_le (edge_min a b) e <-> edge_le a e \/ edge_le b e.
Proof.
  destruct a, b, e; simpl; try tauto. unfold Rmin. destruct (Rle_dec x x0); split; intros; lra.
Qed.

Lemma max_le a b e : edge_le (edge_max a b) e <-> edge_le a e /\ edge_le b e.
Proof.
  destruct a, b, e; simpl; try tauto. split.
  - intros H. pose proof (Rmax_l x x0). pose proof (Rmax_r x x0). lra.
  - intros [H K]. now apply Rmax_lub.
Qed.

Lemma max_ge a b e : edge_le e (edge_max a b) <-> edge_le e a \/ edge_le e b.
Proof.
  destruct a, b, e; simpl; try tauto. unfold Rmax. destruct (Rle_dec x x0); split; intros; lra.
Qed.

(** * Counts *)

(** [first_count P K n]: of the K entries, the first n satisfy P, and the others do not. That is what
    numpy.searchsorted returns for a sorted row, with P "at most the key" (side="right") or "below the key"
    (side="left"). *)
Definition first_count (P : nat -> Prop) (K n : nat) :=
  (n <= K)%nat /\ (forall i, (i < n)%nat -> P i) /\ (forall i, (n <= i < K)%nat -> ~ P i).

Lemma first_count_unique P K n m : first_count P K n -> first_count P K m -> n = m.
Proof.
  intros (Ln & An & Bn) (Lm & Am & Bm). destruct (Nat.lt_trichotomy n m) as [L|[E|L]]; [|exact E|].
  - exfalso. apply (Bn n); [lia|]. now apply Am.
  - exfalso. apply (Bm m); [lia|]. now apply An.
Qed.

(** In a sorted row there is such a count for every key: counting the entries finds it. *)
Lemma first_count_sorted (e : nat -> edge) (key : edge) K :
  (forall i j, (i <= j < K)%nat -> edge_le (e i) (e j)) ->
  exists n, first_count (fun i => edge_le (e i) key) K n.
Proof.
  induction K as [|K IH]; intros H; [exists 0%nat; repeat split; intros; lia|].
  destruct IH as (n & L & A & B); [intros; apply H; lia|].
  destruct (edge_le_dec (e K) key) as [D|D].
  - exists (S K). repeat split; [lia| |intros; lia]. intros i I. apply edge_le_trans with (2 := D). apply H. lia.
  - exists n. repeat split; [lia|exact A|]. intros i I.
    destruct (Nat.eq_dec i K) as [->|N]; [exact D|]. apply B. lia.
Qed.

(** * Staircases: two counts that agree *)

Definition count (P : R -> bool) (l : list R) := length (filter P l).

Lemma count_perm P l1 l2 : Permutation l1 l2 -> count P l1 = count P l2.
Proof.
  unfold count. induction 1 as [|x l l' _ IH|x y l|l l' l'' _ I1 _ I2]; simpl; trivial; try congruence.
  - destruct (P x); simpl; congruence.
  - destruct (P x), (P y); reflexivity.
Qed.

Lemma filter_none P (l : list R) : count P l = 0%nat -> forall x, In x l -> P x = false.
Proof.
  unfold count. induction l as [|a l IH]; [easy|]. simpl. destruct (P a) eqn:E; [discriminate|].
  intros H x [<-|I]; [exact E|now apply IH].
Qed.

(** In a sorted row, counting the entries that are at most a key, one by one, gives what searchsorted gives.
    For: search/steps.py Steps.decide (few steps). *)
Theorem count_is_first_count (l : list R) (key : R) :
  (forall i j, (i <= j < length l)%nat -> nth i l 0 <= nth j l 0) ->
  first_count (fun i => nth i l 0 <= key) (length l) (count (fun x => if Rle_dec x key then true else false) l).
Proof.
  unfold count. induction l as [|a l IH]; intros S; [repeat split; simpl; intros; lia|].
  assert (S' : forall i j, (i <= j < length l)%nat -> nth i l 0 <= nth j l 0).
  { intros i j I. apply (S (Datatypes.S i) (Datatypes.S j)). simpl. lia. }
  destruct (IH S') as (L & A & B). simpl. destruct (Rle_dec a key) as [K|K]; simpl.
  - repeat split; [lia| |]; intros [|i] I; try lia; [exact K|apply A; lia|apply B; lia].
  - replace (filter _ l) with (@nil R).
    + repeat split; simpl; intros; try lia. assert (M := S 0%nat i ltac:(simpl; lia)). simpl in M.
      destruct i as [|i]; lra.
    + symmetry. clear - S K. assert (H : forall x, In x l -> a <= x).
      { intros x I. apply (In_nth _ _ 0) in I. destruct I as (i & I & <-).
        apply (S 0%nat (Datatypes.S i)). simpl. lia. }
      clear S. induction l as [|b l IH]; [reflexivity|]. simpl. pose proof (H b (or_introl eq_refl)).
      destruct (Rle_dec b key); [lra|]. apply IH. intros x I. apply H. now right.
Qed.

(** Steps have edges [on] and [off], in one order; the checker sorts the edges where steps are off by
    themselves. If as many steps are on for certain (their edge is at most [low]) as have an edge [off] below
    [high], and the steps that are on come first and are never off for certain, too, then all others are off for
    certain.
    For: search/steps.py Steps.decide. *)
Theorem steps_counted (on off off_sorted : list R) (low high : R) (n : nat) :
  length on = length off -> Permutation off off_sorted ->
  first_count (fun i => nth i on 0 <= low) (length on) n ->
  count (fun x => if Rlt_dec x high then true else false) off_sorted = n ->
  (forall i, (i < length on)%nat -> nth i on 0 <= low -> ~ high <= nth i off 0) ->
  (forall i, (i < n)%nat -> nth i on 0 <= low) /\
  (forall i, (n <= i < length on)%nat -> high <= nth i off 0).
Proof.
  intros E P (Ln & An & Bn) C X. split; [exact An|]. rewrite <- (count_perm _ _ _ P) in C.
  set (below := fun x => if Rlt_dec x high then true else false) in *.
  assert (H1 : length (firstn n off) = n) by (apply firstn_length_le; lia).
  assert (A : count below (firstn n off) = n).
  { unfold count. replace (filter below (firstn n off)) with (firstn n off); [exact H1|].
    assert (T : forall x, In x (firstn n off) -> below x = true).
    { intros x I. apply (In_nth _ _ 0) in I. destruct I as (i & Li & <-). rewrite H1 in Li.
      assert (N : nth i (firstn n off) 0 = nth i off 0).
      { rewrite <- (firstn_skipn n off) at 2. rewrite app_nth1 by lia. reflexivity. }
      rewrite N. unfold below. destruct (Rlt_dec (nth i off 0) high) as [|G]; [reflexivity|].
      exfalso. apply (X i); [lia|now apply An|lra]. }
    clear - T. induction (firstn n off) as [|a l IH]; [reflexivity|]. simpl. rewrite (T a (or_introl eq_refl)).
    f_equal. apply IH. intros x I. apply T. now right. }
  assert (B : count below (skipn n off) = 0%nat).
  { rewrite <- (firstn_skipn n off) in C. unfold count in *. rewrite filter_app, app_length in C. lia. }
  intros i I. assert (Q : In (nth i off 0) (skipn n off)).
  { rewrite <- (firstn_skipn n off) at 1. rewrite app_nth2 by lia. apply nth_In. rewrite skipn_length. lia. }
  apply (filter_none below _ B) in Q. unfold below in Q. destruct (Rlt_dec (nth i off 0) high); [discriminate|lra].
Qed.

(** * Bisection *)

(** _upto: from [found] entries that satisfy P, steps of 2^k, 2^(k-1), ..., 1 are tried. *)
Fixpoint upto (P : nat -> bool) (G k found : nat) : nat :=
  let tried := (found + 2 ^ k)%nat in
  let next := if (tried <=? G)%nat && P (tried - 1)%nat then tried else found in
  match k with O => next | S k => upto P G k next end.

(** Of G >= 1 entries, begun with the largest power of two up to G, bisection finds the count of those that
    satisfy P, if the first ones do and the others do not, as in a sorted row.
    For: search/steps.py _upto. *)
Theorem upto_counts (P : nat -> bool) (G k n : nat) :
  (2 ^ k <= G < 2 ^ S k)%nat -> first_count (fun i => P i = true) G n -> upto P G k 0 = n.
Proof.
  intros [_ L2] C. enough (H : forall j found, (found <= n < found + 2 ^ S j)%nat -> upto P G j found = n).
  { apply H. destruct C as (Ln & _). lia. }
  destruct C as (Ln & A & B). induction j as [|j IH]; intros found [H1 H2]; cbn [upto].
  - simpl in H2. change (2 ^ 0)%nat with 1%nat. destruct (Nat.leb_spec (found + 1) G) as [L|L]; simpl.
    + replace (found + 1 - 1)%nat with found by lia. destruct (P found) eqn:E.
      * destruct (Nat.eq_dec found n) as [->|N]; [|lia]. exfalso. apply (B n); [lia|exact E].
      * destruct (Nat.eq_dec found n) as [->|N]; [reflexivity|]. rewrite (A found) in E; [discriminate|lia].
    + lia.
  - pose proof (Nat.pow_nonzero 2 (S j)). rewrite (Nat.pow_succ_r' 2 (S j)) in H2.
    destruct (Nat.leb_spec (found + 2 ^ S j) G) as [L|L]; cbn [andb].
    + destruct (P (found + 2 ^ S j - 1)%nat) eqn:E; apply IH.
      * destruct (Nat.le_gt_cases (found + 2 ^ S j) n) as [Q|Q]; [lia|].
        exfalso. apply (B (found + 2 ^ S j - 1)%nat); [lia|exact E].
      * destruct (Nat.le_gt_cases (found + 2 ^ S j) n) as [Q|Q]; [|lia].
        rewrite (A (found + 2 ^ S j - 1)%nat) in E; [discriminate|lia].
    + apply IH. lia.
Qed.

(** * Cells: one of them is on *)

Section Look.

(** K cells; whether a cell is found on, or found off, in a look at all its coordinates. *)
Variables (K : nat) (on off : nat -> bool).

(** _look_closely: cells j, j + 1, ..., up to [stop], while [fuel] lasts. [cell] is the one found on so far, or
    K. Nothing is certain (None) where a cell is neither on nor off, or where a second one is on. *)
Fixpoint look (fuel j stop cell : nat) : option nat :=
  if (j <? stop)%nat then
    match fuel with
    | O => None
    | S fuel =>
        if negb (off j) && negb (on j) then None
        else if on j && (cell <? K)%nat then None
        else look fuel (S j) stop (if on j then j else cell)
    end
  else Some cell.

(** Where it is certain, the cells that were looked at are off, but for the one that it returns.
    For: search/cells.py Cells._look_closely. *)
Theorem look_sound (fuel j stop cell c : nat) :
  (stop <= K)%nat -> (cell <= K)%nat -> look fuel j stop cell = Some c ->
  (c = cell /\ forall i, (j <= i < stop)%nat -> off i = true) \/
  (cell = K /\ (j <= c < stop)%nat /\ on c = true /\ forall i, (j <= i < stop)%nat -> i <> c -> off i = true).
Proof.
  intros HK. revert fuel cell. induction fuel as [|fuel IH] in j |- *; intros cell Hc; simpl.
  - destruct (Nat.ltb_spec j stop); [discriminate|]. intros E. injection E as <-. left. split; [reflexivity|]. lia.
  - destruct (Nat.ltb_spec j stop) as [L|L].
    + destruct (on j) eqn:On.
      * destruct (Nat.ltb_spec cell K) as [Lc|Lc]; [destruct (off j); discriminate|].
        replace (negb (off j) && negb true)%bool with false by (destruct (off j); reflexivity). cbn [andb].
        intros E. apply IH in E; [|lia]. right. destruct E as [(-> & A)|(Q & _)]; [|lia].
        split; [lia|]. split; [lia|]. split; [exact On|]. intros i I N. apply A. lia.
      * destruct (off j) eqn:Off; [|discriminate]. cbn [negb andb]. intros E. apply IH in E; [|exact Hc].
        destruct E as [(-> & A)|(Q & R & O & A)].
        -- left. split; [reflexivity|]. intros i I. destruct (Nat.eq_dec i j) as [->|N]; [exact Off|apply A; lia].
        -- right. repeat split; trivial; [lia|lia|]. intros i I N.
           destruct (Nat.eq_dec i j) as [->|M]; [exact Off|apply A; [lia|exact N]].
    + intros E. injection E as <-. left. split; [reflexivity|]. lia.
Qed.

End Look.

(** Cells are sorted along their first coordinate, of which [low] and [high] are the ends. [beyond j] is the
    edge from which cell j is off, [before j] that up to which it is off. *)
Section Decide.
Variables (K : nat) (before beyond : nat -> edge) (low high : R) (on off : nat -> bool).

(** What families checks: both edges are in order. *)
Hypothesis before_sorted : forall i j, (i <= j < K)%nat -> edge_le (before i) (before j).
Hypothesis beyond_sorted : forall i j, (i <= j < K)%nat -> edge_le (beyond i) (beyond j).

(** A cell is off along the first coordinate. *)
Let off_there j := edge_le (beyond j) (At low) \/ edge_le (At high) (before j).

(** The edge of the next cell; plus infinity after the last. *)
Definition following (j : nat) := if (S j <? K)%nat then before (S j) else PlusInfinity.

(** [first] is how many cells end at or before [low]; [stop] how many begin before [high]. *)
Variables first stop : nat.
Hypothesis first_found : first_count (fun j => edge_le (beyond j) (At low)) K first.
Hypothesis stop_found : first_count (fun j => ~ edge_le (At high) (before j)) K stop.

(** The quick way: the first cell that does not end before [low] is on, and [high] does not reach the next one.
    Then all other cells are off. For: search/cells.py Cells.decide (alone). *)
Theorem alone_sound :
  (first < K)%nat -> edge_le (At high) (following first) -> on first = true ->
  on first = true /\ forall j, (j < K)%nat -> j <> first -> off_there j.
Proof.
  intros L F O. split; [exact O|]. intros j J N. destruct first_found as (_ & A & _).
  destruct (Nat.lt_ge_cases j first) as [Q|Q]; [left; now apply A|right]. unfold following in F.
  destruct (Nat.ltb_spec (S first) K) as [M|M]; [|lia].
  apply edge_le_trans with (1 := F). apply before_sorted. lia.
Qed.

(** The careful way: all cells between [first] and [stop] are looked at. If that is certain, the cell that is
    returned is on, and all others are off, or all are off if it returns K. For: search/cells.py Cells.decide,
    _look_closely. *)
Theorem look_closely_sound (fuel c : nat) :
  look K on off fuel first stop K = Some c ->
  (c = K \/ (c < K /\ on c = true)%nat) /\ (forall j, (j < K)%nat -> j <> c -> off j = true \/ off_there j).
Proof.
  intros H. destruct first_found as (Lf & A & _), stop_found as (Ls & _ & B).
  assert (Outside : forall j, (j < K)%nat -> ~ (first <= j < stop)%nat -> off_there j).
  { intros j J N. destruct (Nat.lt_ge_cases j first) as [Q|Q]; [left; now apply A|right].
    destruct (edge_le_dec (At high) (before j)) as [D|D]; [exact D|]. exfalso. apply (B j); [lia|exact D]. }
  apply look_sound in H; [|exact Ls|apply le_n]. destruct H as [(-> & D)|(_ & I & O & D)].
  - split; [now left|]. intros j J _. destruct (Nat.lt_ge_cases j first); [right; apply Outside; lia|].
    destruct (Nat.lt_ge_cases j stop); [left; apply D; lia|right; apply Outside; lia].
  - split; [right; split; [lia|exact O]|]. intros j J N.
    destruct (Nat.lt_ge_cases j first); [right; apply Outside; [exact J|lia]|].
    destruct (Nat.lt_ge_cases j stop); [left; apply D; [lia|exact N]|right; apply Outside; [exact J|lia]].
Qed.

End Decide.
