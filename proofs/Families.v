(** Families of cells, of which at most one is on: edges of a cell, and what the search finds.

    For: search/cells.py families, _bounds, _in_order, Cells.decide, Cells._look_closely. *)

From Coq Require Import Reals ZArith List Permutation Lra Lia Bool.
From Flocq Require Import Core.
From Onelayer Require Import Arithmetic ExactSums ExactProducts Cells Thresholds Search.
Import ListNotations.
Open Scope R_scope.

(** * The edges of a cell *)

(** A cell is a list of units, each with the column of the coordinate that it reads. *)
Definition cell := list (nat * unit).
Definition units (c : cell) : list unit := map snd c.

(** A unit without slope whose bias is at least 1: the cell is off wherever t is. *)
Definition is_dead (q : nat * unit) : bool :=
  if Req_EM_T (slope (snd q)) 0 then if Rle_dec 1 (bias (snd q)) then true else false else false.
Definition dead (us : cell) : bool := existsb is_dead us.

(** The least upper edge, and the greatest lower edge, of the units that rise or fall along a column. *)
Definition upper (edge_of : R -> R -> R) (us : cell) (column : nat) : edge :=
  fold_right (fun q e =>
    let '(own_column, a) := q in
    if Nat.eq_dec own_column column then
      if Rlt_dec 0 (slope a) then edge_min (At (edge_of (slope a) (bias a))) e else e
    else e) PlusInfinity us.

Definition lower (edge_of : R -> R -> R) (us : cell) (column : nat) : edge :=
  if dead us then PlusInfinity else
  fold_right (fun q e =>
    let '(own_column, a) := q in
    if Nat.eq_dec own_column column then
      if Rlt_dec (slope a) 0 then edge_max (At (edge_of (slope a) (bias a))) e else e
    else e) MinusInfinity us.

(** The four edges of a cell along a column, as _bounds computes them. *)
Definition cell_on_low := lower on_low.
Definition cell_off_low := lower off_low.
Definition cell_on_high := upper on_high.
Definition cell_off_high := upper off_high.

#[local] Arguments edge_le : simpl never.
#[local] Arguments edge_min : simpl never.
#[local] Arguments edge_max : simpl never.

Lemma upper_le edge_of us column h : edge_le (At h) (upper edge_of us column) ->
  forall a, In (column, a) us -> 0 < slope a -> h <= edge_of (slope a) (bias a).
Proof.
  induction us as [|[c' b] us IH]; simpl; [easy|]. intros H a I S.
  destruct I as [I|I].
  - injection I as -> ->. destruct (Nat.eq_dec column column) as [_|N]; [|now elim N].
    destruct (Rlt_dec 0 (slope a)); [|contradiction]. apply min_le in H. apply H.
  - apply IH; trivial. destruct (Nat.eq_dec c' column); [|exact H].
    destruct (Rlt_dec 0 (slope b)); [apply min_le in H; apply H|exact H].
Qed.

Lemma upper_ge edge_of us column l : edge_le (upper edge_of us column) (At l) ->
  exists a, In (column, a) us /\ 0 < slope a /\ edge_of (slope a) (bias a) <= l.
Proof.
  induction us as [|[c' b] us IH]; simpl; [intros []|]. intros H.
  destruct (Nat.eq_dec c' column) as [->|E], (Rlt_dec 0 (slope b)) as [P|P];
    try (destruct (IH H) as (a & I & Q); exists a; split; [now right|exact Q]).
  apply min_ge in H. destruct H as [H|H]; [exists b; auto|].
  destruct (IH H) as (a & I & Q). exists a. split; [now right|exact Q].
Qed.

Lemma lower_le edge_of us column l : edge_le (lower edge_of us column) (At l) ->
  dead us = false /\ forall a, In (column, a) us -> slope a < 0 -> edge_of (slope a) (bias a) <= l.
Proof.
  unfold lower. destruct (dead us); [intros []|]. intros H. split; [reflexivity|]. revert H.
  induction us as [|[c' b] us IH]; simpl; [easy|]. intros H a I S.
  destruct I as [I|I].
  - injection I as -> ->. destruct (Nat.eq_dec column column) as [_|N]; [|now elim N].
    destruct (Rlt_dec (slope a) 0); [|contradiction]. apply max_le in H. apply H.
  - apply IH; trivial. destruct (Nat.eq_dec c' column); [|exact H].
    destruct (Rlt_dec (slope b) 0); [apply max_le in H; apply H|exact H].
Qed.

Lemma lower_ge edge_of us column h : edge_le (At h) (lower edge_of us column) ->
  dead us = true \/ exists a, In (column, a) us /\ slope a < 0 /\ h <= edge_of (slope a) (bias a).
Proof.
  unfold lower. destruct (dead us); [now left|]. intros H. right. revert H.
  induction us as [|[c' b] us IH]; simpl; [intros []|]. intros H.
  destruct (Nat.eq_dec c' column) as [->|E], (Rlt_dec (slope b) 0) as [P|P];
    try (destruct (IH H) as (a & I & Q); exists a; split; [now right|exact Q]).
  apply max_ge in H. destruct H as [H|H]; [exists b; auto|].
  destruct (IH H) as (a & I & Q). exists a. split; [now right|exact Q].
Qed.

(** * What is found of one cell *)

Definition below (a b : edge) : bool := if edge_le_dec a b then true else false.

Lemma below_le a b : below a b = true -> edge_le a b.
Proof. unfold below. destruct (edge_le_dec a b); [trivial|discriminate]. Qed.

Section Decide.
Variables (A : arithmetic) (columns : list nat) (low high : nat -> R).

(** Along all columns the ends are within the edges; along one of them they are beyond. *)
Definition found_on (us : cell) : bool :=
  forallb (fun c => below (cell_on_low us c) (At (low c)) && below (At (high c)) (cell_on_high us c)) columns.
Definition found_off (us : cell) : bool :=
  existsb (fun c => below (cell_off_high us c) (At (low c)) || below (At (high c)) (cell_off_low us c)) columns.

(** What families, and [smallest] in decide, ask of the units of a cell. *)
Definition proper (us : cell) := forall column a, In (column, a) us ->
  good_in A a /\ ranged a /\
  (slope a = 0 -> bias a <= 0 \/ 1 <= bias a) /\
  (slope a <> 0 -> In column columns /\ enclosed A a (low column) (high column)).

(** A proper cell that is found on is exactly 1, in every arithmetic. For: search/cells.py Cells.decide (on). *)
Theorem found_on_sound (us : cell) (y : R) :
  columns <> [] -> proper us -> found_on us = true -> group_in A (units us) y -> y = 1.
Proof.
  intros Some Pr F. unfold found_on in F. rewrite forallb_forall in F. apply decide_on.
  intros a I. apply in_map_iff in I. destruct I as ([column a'] & E & I). simpl in E. subst a'.
  destruct (Pr column a I) as (G & R & Z & N). split; [exact G|]. split; [exact R|].
  destruct (Rtotal_order (slope a) 0) as [S|[S|S]].
  - destruct N as [C E]; [lra|]. exists (low column), (high column). split; [exact E|]. right; left.
    split; [exact S|]. specialize (F column C). apply andb_prop in F. destruct F as [F _]. apply below_le in F.
    now apply (proj2 (lower_le on_low us column (low column) F)).
  - exists (Rmin 0 (t_of a)), (Rmax 0 (t_of a)). split; [apply somewhere|]. right; right. split; [exact S|].
    destruct (Z S) as [B|B]; [exact B|exfalso]. destruct columns as [|c cs] eqn:EC; [now elim Some|].
    specialize (F c (or_introl eq_refl)). apply andb_prop in F. destruct F as [F _]. apply below_le in F.
    apply lower_le in F. destruct F as [F _]. assert (D : dead us = true); [|congruence].
    apply existsb_exists. exists (column, a). split; [exact I|]. unfold is_dead. simpl.
    destruct (Req_EM_T (slope a) 0); [|contradiction]. destruct (Rle_dec 1 (bias a)); [reflexivity|contradiction].
  - destruct N as [C E]; [lra|]. exists (low column), (high column). split; [exact E|]. left.
    split; [exact S|]. specialize (F column C). apply andb_prop in F. destruct F as [_ F]. apply below_le in F.
    now apply (upper_le on_high us column (high column) F).
Qed.

(** A proper cell that is beyond its edges along one column is exactly 0. *)
Lemma beyond_sound us y column : proper us ->
  edge_le (cell_off_high us column) (At (low column)) \/ edge_le (At (high column)) (cell_off_low us column) ->
  group_in A (units us) y -> y = 0.
Proof.
  intros Pr F. apply decide_off. destruct F as [F|F].
  - apply upper_ge in F. destruct F as (a & I & S & L). destruct (Pr column a I) as (G & R & Z & N).
    destruct N as [C E]; [lra|]. exists a, (low column), (high column).
    split; [apply in_map_iff; now exists (column, a)|]. split; [exact G|]. split; [exact E|]. now left.
  - apply lower_ge in F. destruct F as [D|(a & I & S & L)].
    + apply existsb_exists in D. destruct D as ([c' a] & I & D). destruct (Pr c' a I) as (G & _).
      exists a, (Rmin 0 (t_of a)), (Rmax 0 (t_of a)). split; [apply in_map_iff; now exists (c', a)|].
      split; [exact G|]. split; [apply somewhere|]. right; right. unfold is_dead in D. simpl in D.
      destruct (Req_EM_T (slope a) 0); [|discriminate]. destruct (Rle_dec 1 (bias a)); [now split|discriminate].
    + destruct (Pr column a I) as (G & R & Z & N).
      destruct N as [C E]; [lra|]. exists a, (low column), (high column).
      split; [apply in_map_iff; now exists (column, a)|]. split; [exact G|]. split; [exact E|]. right; left.
      now split.
Qed.

(** A proper cell that is found off is exactly 0, in every arithmetic. For: search/cells.py Cells.decide (off). *)
Theorem found_off_sound (us : cell) (y : R) :
  proper us -> found_off us = true -> group_in A (units us) y -> y = 0.
Proof.
  intros Pr F. unfold found_off in F. apply existsb_exists in F. destruct F as (column & _ & F).
  apply (beyond_sound us y column Pr). apply orb_prop in F. destruct F as [F|F]; apply below_le in F; auto.
Qed.

(** * A family *)

Variables (family : list cell) (column : nat).

Definition nth_cell (j : nat) : cell := nth j family [].
Definition before (j : nat) : edge := cell_off_low (nth_cell j) column.
Definition beyond (j : nat) : edge := cell_off_high (nth_cell j) column.

(** What _in_order checks: along the first column, cells are sorted by both edges. *)
Definition in_order :=
  (forall i j, (i <= j < length family)%nat -> edge_le (before i) (before j)) /\
  (forall i j, (i <= j < length family)%nat -> edge_le (beyond i) (beyond j)).

(** [decide]: the quick way if it applies, else the careful one. *)
Definition decide (first stop fuel : nat) : option nat :=
  let K := length family in
  let on := fun j => found_on (nth_cell j) in
  let off := fun j => found_off (nth_cell j) in
  if (first <? K)%nat && below (At (high column)) (following K before first) && on first
  then Some first else look K on off fuel first stop K.

(** If decide returns c, cell c is exactly 1 and all others are exactly 0, in every arithmetic; if c is the
    number of cells, all of them are exactly 0.
    For: search/cells.py Cells.decide. *)
Theorem cells_decide (first stop fuel c : nat) (ys : list R) :
  In column columns -> (forall us, In us family -> proper us) -> in_order ->
  first_count (fun j => edge_le (beyond j) (At (low column))) (length family) first ->
  first_count (fun j => ~ edge_le (At (high column)) (before j)) (length family) stop ->
  decide first stop fuel = Some c ->
  Forall2 (fun us => group_in A (units us)) family ys ->
  (c <= length family)%nat /\
  forall j, (j < length family)%nat -> nth j ys 0 = if (j =? c)%nat then 1 else 0.
Proof.
  intros C Pr [Sb _] Ff Fs D V. set (K := length family) in *.
  assert (Some : columns <> []) by (intros E; rewrite E in C; destruct C).
  assert (Vj : forall j, (j < K)%nat -> group_in A (units (nth_cell j)) (nth j ys 0)).
  { unfold K, nth_cell. clear - V. induction V as [|us y fs ys H V IH]; simpl; [lia|].
    intros [|j] J; [exact H|]. apply IH. lia. }
  assert (Pj : forall j, (j < K)%nat -> proper (nth_cell j)) by (intros j J; apply Pr, nth_In, J).
  assert (Off : forall j, (j < K)%nat ->
            edge_le (beyond j) (At (low column)) \/ edge_le (At (high column)) (before j) -> nth j ys 0 = 0).
  { intros j J O. apply (beyond_sound (nth_cell j) (nth j ys 0) column (Pj j J) O). now apply Vj. }
  unfold decide in D. fold K in D. destruct ((first <? K)%nat && _ && _) eqn:E in D.
  - injection D as <-. apply andb_prop in E. destruct E as [E O]. apply andb_prop in E. destruct E as [L F].
    apply Nat.ltb_lt in L. apply below_le in F. split; [lia|]. intros j J.
    destruct (alone_sound K before beyond (low column) (high column) (fun j => found_on (nth_cell j))
                Sb first Ff L F O) as [_ Others].
    destruct (Nat.eqb_spec j first) as [->|N].
    + apply (found_on_sound (nth_cell first)); auto.
    + apply Off; [exact J|]. now apply Others.
  - destruct (look_closely_sound K before beyond (low column) (high column) (fun j => found_on (nth_cell j))
                (fun j => found_off (nth_cell j)) first stop Ff Fs fuel c D) as [On Others].
    split; [destruct On as [->|[On _]]; lia|]. intros j J. destruct (Nat.eqb_spec j c) as [->|N].
    + destruct On as [->|[_ On]]; [lia|]. apply (found_on_sound (nth_cell c)); auto.
    + destruct (Others j J N) as [O|O]; [apply (found_off_sound (nth_cell j)); auto|now apply Off].
Qed.

End Decide.
