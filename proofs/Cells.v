(** Units w t + b of which w is zero or plus or minus a power of two, and groups relu(1 - sum of relu(w t + b)):
    when a group is exactly 1, and when it is exactly 0.

    For: search/stack.py (the two claims of its docstring); search/cells.py and search/steps.py, which test for
    them. *)

From Coq Require Import Reals ZArith List Permutation Lra Lia.
From Flocq Require Import Core.
From Onelayer Require Import Arithmetic ExactSums ExactProducts.
Import ListNotations.
Open Scope R_scope.

Definition relu (x : R) := Rmax x 0.

(** * Two terms among zeros *)

Section TwoTerms.
Variable f : format.

(** A term carries a tag that says what is known of it. *)
Inductive tag := First | Second | Zero.

Definition is (k : tag) (t : tag) : nat :=
  match k, t with First, First | Second, Second => 1%nat | _, _ => 0%nat end.

Fixpoint count {A} (k : tag) (l : list (tag * A)) : nat :=
  match l with [] => 0%nat | a :: l => (is k (fst a) + count k l)%nat end.

Lemma count_app {A} k (l1 l2 : list (tag * A)) : count k (l1 ++ l2) = (count k l1 + count k l2)%nat.
Proof. induction l1; simpl; lia. Qed.

Lemma count_perm {A} k (l1 l2 : list (tag * A)) : Permutation l1 l2 -> count k l1 = count k l2.
Proof. induction 1; simpl; lia. Qed.

Lemma count_zeros {A B} k (g : A -> B) (l : list A) : count k (map (fun z => (Zero, g z)) l) = 0%nat.
Proof. induction l; [reflexivity|]. simpl. rewrite IHl. now destruct k. Qed.

(** Relabelling the terms of a sum changes nothing. *)
Lemma sums_map {A B} (g : A -> B) lf l s : sums f lf (map g l) s -> sums f (fun a => lf (g a)) l s.
Proof.
  apply sums_replaced. induction l as [|a l IH]; simpl; constructor; [intros v H; exact H|exact IH].
Qed.

(** If one term is at most p, one at most b, all others at most 0, and p, b and c are solid numbers with p + b
    <= c, then every value of their sum, in any order, is at most c. The sum p + b need not be a number of the
    format. *)
Lemma two_terms_le (l : list (tag * term)) (p b c s : R) :
  solid f p -> solid f b -> solid f c -> p + b <= c ->
  (forall k t v, In (k, t) l -> leaf f t v -> v <= match k with First => p | Second => b | Zero => 0 end) ->
  count First l = 1%nat -> count Second l = 1%nat ->
  sums f (leaf f) (map snd l) s -> s <= c.
Proof.
  intros Sp Sb Sc C Hl N1 N2 H. apply sums_map in H.
  enough (G : match count First l, count Second l with
              | O, O => s <= 0 | 1%nat, O => s <= p | O, 1%nat => s <= b | 1%nat, 1%nat => s <= c
              | _, _ => True end)
    by (rewrite N1, N2 in G; exact G).
  clear N1 N2. induction H as [|[k t] v H|l l1 l2 x y P H1 IH1 H2 IH2|l x y H IH R].
  - simpl. lra.
  - specialize (Hl k t v (or_introl eq_refl) H). destruct k; simpl; lra.
  - rewrite !(count_perm _ _ _ P), !count_app.
    assert (I : forall a, In a (l1 ++ l2) -> In a l) by (intros a; apply Permutation_in; now symmetry).
    assert (G1 := IH1 (fun k t v J => Hl k t v (I _ (in_or_app _ _ _ (or_introl J))))).
    assert (G2 := IH2 (fun k t v J => Hl k t v (I _ (in_or_app _ _ _ (or_intror J))))).
    destruct (count First l1) as [|[|]], (count Second l1) as [|[|]], (count First l2) as [|[|]],
      (count Second l2) as [|[|]]; simpl in *; trivial; lra.
  - specialize (IH Hl). destruct (count First l) as [|[|]], (count Second l) as [|[|]]; trivial;
      eapply rnd_le; eauto; apply solid_0.
Qed.

(** The same from below. *)
Lemma two_terms_ge (l : list (tag * term)) (p b c s : R) :
  solid f p -> solid f b -> solid f c -> c <= p + b ->
  (forall k t v, In (k, t) l -> leaf f t v -> match k with First => p | Second => b | Zero => 0 end <= v) ->
  count First l = 1%nat -> count Second l = 1%nat ->
  sums f (leaf f) (map snd l) s -> c <= s.
Proof.
  intros Sp Sb Sc C Hl N1 N2 H. apply sums_map in H.
  enough (G : match count First l, count Second l with
              | O, O => 0 <= s | 1%nat, O => p <= s | O, 1%nat => b <= s | 1%nat, 1%nat => c <= s
              | _, _ => True end)
    by (rewrite N1, N2 in G; exact G).
  clear N1 N2. induction H as [|[k t] v H|l l1 l2 x y P H1 IH1 H2 IH2|l x y H IH R].
  - simpl. lra.
  - specialize (Hl k t v (or_introl eq_refl) H). destruct k; simpl; lra.
  - rewrite !(count_perm _ _ _ P), !count_app.
    assert (I : forall a, In a (l1 ++ l2) -> In a l) by (intros a; apply Permutation_in; now symmetry).
    assert (G1 := IH1 (fun k t v J => Hl k t v (I _ (in_or_app _ _ _ (or_introl J))))).
    assert (G2 := IH2 (fun k t v J => Hl k t v (I _ (in_or_app _ _ _ (or_intror J))))).
    destruct (count First l1) as [|[|]], (count Second l1) as [|[|]], (count First l2) as [|[|]],
      (count Second l2) as [|[|]]; simpl in *; trivial; lra.
  - specialize (IH Hl). destruct (count First l) as [|[|]], (count Second l) as [|[|]]; trivial;
      eapply rnd_ge; eauto; apply solid_0.
Qed.

End TwoTerms.

(** * A unit *)

(** A unit reads the coordinate t with weight w; it has a bias b, which is a term of its own or a weight that an
    input 1 meets; all other terms of its sum are products with zero. *)
Record unit := Unit { t_of : R; slope : R; bias : R; own : term; others : list term }.

Definition well_formed (a : unit) :=
  (own a = Bias (bias a) \/ own a = Prod 1 (bias a)) /\ (forall t, In t (others a) -> zero_term t).

Definition unit_terms (a : unit) : list term := Prod (t_of a) (slope a) :: own a :: others a.

Section Units.
Variable f : format.

(** What the checker tests of a unit's weights: zero or a power of two, and nothing subnormal. A bias may be
    subnormal if there is no slope. The coordinate is a number of the format. *)
Definition good_unit (a : unit) :=
  well_formed a /\ number f (t_of a) /\ number f (bias a) /\
  (slope a = 0 \/ (power (slope a) /\ normal f (slope a) /\ normal f (bias a))).

(** The pre-activation w t + b, as a real number, satisfies P, for t and for what a subnormal t may be read as. *)
Definition pre (a : unit) (P : R -> Prop) := forall t', reads f (t_of a) t' -> P (slope a * t' + bias a).

Definition unit_value (a : unit) (z : R) := sums f (leaf f) (unit_terms a) z.

Let tagged (a : unit) : list (tag * term) :=
  (First, Prod (t_of a) (slope a)) :: (Second, own a) :: map (fun t => (Zero, t)) (others a).

Let tagged_terms a : map snd (tagged a) = unit_terms a.
Proof. unfold tagged, unit_terms. simpl. rewrite map_map. now rewrite map_id. Qed.

Let tagged_in a k t : In (k, t) (tagged a) ->
  (k = First /\ t = Prod (t_of a) (slope a)) \/ (k = Second /\ t = own a) \/ (k = Zero /\ In t (others a)).
Proof.
  intros [H|[H|H]]; [injection H as <- <-; auto|injection H as <- <-; auto|].
  apply in_map_iff in H. destruct H as (z & H & I). injection H as <- <-. auto.
Qed.

(** The own term of a unit with a bias that is zero or normal has one value. *)
Lemma own_leaf a v : well_formed a -> solid f (bias a) -> leaf f (own a) v -> v = bias a.
Proof.
  intros [[E|E] _] S L; rewrite E in L; [now apply (reads_solid f)|].
  replace (bias a) with (1 * bias a) by ring. apply (normal_leaf f); trivial.
  - right. rewrite Rabs_R1. apply tiny_le_1.
  - apply S.
  - now rewrite Rmult_1_l.
Qed.

Lemma unit_le a p c s :
  well_formed a -> solid f p -> solid f (bias a) -> solid f c -> p + bias a <= c ->
  (forall v, leaf f (Prod (t_of a) (slope a)) v -> v <= p) -> unit_value a s -> s <= c.
Proof.
  intros F Sp Sb Sc C H. unfold unit_value. rewrite <- tagged_terms. apply (two_terms_le f _ p (bias a)); trivial.
  - intros k t v I L. apply tagged_in in I. destruct I as [[-> ->]|[[-> ->]|[-> I]]].
    + now apply H.
    + right. now apply own_leaf.
    + right. apply (zero_leaf f t); [now apply F|exact L].
  - simpl. now rewrite (count_zeros First (fun t => t)).
  - simpl. now rewrite (count_zeros Second (fun t => t)).
Qed.

Lemma unit_ge a p c s :
  well_formed a -> solid f p -> solid f (bias a) -> solid f c -> c <= p + bias a ->
  (forall v, leaf f (Prod (t_of a) (slope a)) v -> p <= v) -> unit_value a s -> c <= s.
Proof.
  intros F Sp Sb Sc C H. unfold unit_value. rewrite <- tagged_terms. apply (two_terms_ge f _ p (bias a)); trivial.
  - intros k t v I L. apply tagged_in in I. destruct I as [[-> ->]|[[-> ->]|[-> I]]].
    + now apply H.
    + right. symmetry. now apply own_leaf.
    + right. symmetry. apply (zero_leaf f t); [now apply F|exact L].
  - simpl. now rewrite (count_zeros First (fun t => t)).
  - simpl. now rewrite (count_zeros Second (fun t => t)).
Qed.

(** Without a slope, a unit whose bias is at most 0 is at most 0, be the bias subnormal or not. *)
Lemma flat_nonpositive a z : well_formed a -> slope a = 0 -> bias a <= 0 -> unit_value a z -> z <= 0.
Proof.
  intros F S B H. replace 0 with (sum (fun _ : term => 0) (unit_terms a)).
  - apply (sums_le f (leaf f)); [| |exact H].
    + intros t v [<-|[<-|I]] L.
      * right. apply (zero_leaf f (Prod (t_of a) (slope a))); [now right|exact L].
      * destruct F as [[E|E] _]; rewrite E in L.
        -- apply (rnd_le f (bias a)); [apply solid_0|exact B|now apply reads_rnd].
        -- destruct L as (x' & b' & Rx & Rb & R). apply (reads_solid f) in Rx; [|apply solid_1]. subst.
           apply (rnd_le f (1 * b')); [apply solid_0| |exact R]. rewrite Rmult_1_l.
           apply (rnd_le f (bias a)); [apply solid_0|exact B|now apply reads_rnd].
      * right. apply (zero_leaf f t); [now apply F|exact L].
    + intros l1 l2 _. replace (sum _ l1) with 0; [apply solid_0|]. induction l1; simpl; lra.
  - clear. induction (unit_terms a); simpl; lra.
Qed.

(** If w t + b <= 0 as a real number, for t and for what a flushed t is read as, then every value of the
    pre-activation is at most 0. Any normal slope will do: only the bias has to be zero or normal, unless there
    is no slope.
    For: search/stack.py, first claim; search/steps.py and search/cells.py (on). *)
Theorem unit_nonpositive (a : unit) (z : R) :
  well_formed a -> number f (bias a) -> (slope a = 0 \/ (normal f (slope a) /\ normal f (bias a))) ->
  pre a (fun r => r <= 0) -> unit_value a z -> z <= 0.
Proof.
  intros F Fb [Z|[Nw Nb]] H V.
  - apply (flat_nonpositive a z F Z); [|exact V]. specialize (H (t_of a) (or_introl eq_refl)). simpl in H.
    rewrite Z in H. lra.
  - assert (Sb : solid f (bias a)) by now split.
    apply (unit_le a (- bias a) 0 z F); [now apply solid_opp|exact Sb|apply solid_0|lra| |exact V].
    intros v (t' & w' & Rt & Rw & R). apply reads_normal in Rw; [|exact Nw]. subst w'.
    apply (rnd_le f (t' * slope a)); [now apply solid_opp| |exact R]. specialize (H t' Rt). simpl in H. lra.
Qed.

Lemma number_below_1 b : number f b -> b < 1 -> b <= 1 - u f.
Proof.
  intros F L. assert (P : Prec_gt_0 (prec f)) by apply prec_pos.
  pose proof (u_normal f) as N. pose proof (prec_pos f).
  replace (1 - u f) with (pred radix2 (FLT_exp (emin f) (prec f)) (bpow radix2 0)).
  - apply pred_ge_gt; [now apply FLT_exp_valid|exact F| |exact L]. apply generic_format_FLT_bpow; [exact P|lia].
  - rewrite pred_bpow. unfold u. f_equal. f_equal. unfold FLT_exp. lia.
Qed.

Lemma number_above_1 b : number f b -> 1 < b -> 1 + u f <= b.
Proof.
  intros F L. assert (P : Prec_gt_0 (prec f)) by apply prec_pos.
  pose proof (u_normal f) as N. pose proof (prec_pos f).
  apply Rle_trans with (succ radix2 (FLT_exp (emin f) (prec f)) (bpow radix2 0)).
  - rewrite succ_eq_pos by apply bpow_ge_0. rewrite ulp_bpow. apply Rplus_le_compat_l. apply bpow_le.
    unfold FLT_exp. lia.
  - apply succ_le_lt; [now apply FLT_exp_valid| |exact F|exact L]. apply generic_format_FLT_bpow; [exact P|lia].
Qed.

Lemma solid_tiny : solid f (tiny f).
Proof.
  split; [apply generic_format_FLT_bpow; [apply prec_pos|pose proof (prec_pos f); lia]|right].
  rewrite Rabs_pos_eq; [lra|apply bpow_ge_0].
Qed.

(** If w t + b >= 1 as a real number, for t and for what a flushed t is read as, then every value of the
    pre-activation is at least 1.
    For: search/stack.py, second claim; search/steps.py and search/cells.py (off). *)
Theorem unit_at_least_one (a : unit) (z : R) :
  good_unit a -> pre a (fun r => 1 <= r) -> unit_value a z -> 1 <= z.
Proof.
  intros (F & Ft & Fb & Pw) H V. assert (Ht := H (t_of a) (or_introl eq_refl)). simpl in Ht.
  pose proof (tiny_pos f) as T. pose proof (tiny_le_u f) as TU. pose proof (u_pos f) as U.
  pose proof (tiny_le_1 f) as T1.
  assert (Nw : normal f (slope a)) by (destruct Pw as [Z|(_ & N & _)]; [now left|exact N]).
  assert (Sb : solid f (bias a)).
  { split; [exact Fb|]. destruct Pw as [Z|(_ & _ & N)]; [|exact N]. rewrite Z in Ht. right.
    rewrite Rabs_pos_eq; lra. }
  set (w := slope a) in *. set (b := bias a) in *. set (t := t_of a) in *.
  assert (Hv : forall c, solid f c -> c <= t * w -> (Rabs t < tiny f -> c <= 0) ->
            forall v, leaf f (Prod t w) v -> c <= v).
  { intros c Sc C1 C0 v (t' & w' & Rt & Rw & R). apply reads_normal in Rw; [|exact Nw]. subst w'.
    apply (rnd_ge f (t' * w)); [exact Sc| |exact R].
    destruct Rt as [->|[L ->]]; [exact C1|]. specialize (C0 L). lra. }
  assert (Sp : w <> 0 -> tiny f <= Rabs (t * w) -> solid f (t * w)).
  { intros Z L. split; [|now right]. destruct Pw as [Q|(Q & _)]; [contradiction|].
    apply number_power; [exact Ft|exact Q|now right]. }
  destruct (Rle_lt_dec 1 b) as [B|B].
  - destruct (Rle_lt_dec 0 (t * w)) as [P|P].
    + apply (unit_ge a 0 1 z F); [apply solid_0|exact Sb|apply solid_1|unfold b in B; lra| |exact V].
      apply Hv; [apply solid_0|lra|lra].
    + assert (Z : w <> 0) by (intros Z; rewrite Z in P; lra).
      destruct (Rle_lt_dec (tiny f) (Rabs (t * w))) as [L|L].
      * apply (unit_ge a (t * w) 1 z F); [now apply Sp|exact Sb|apply solid_1|fold b; lra| |exact V].
        apply Hv; [now apply Sp|lra|lra].
      * assert (B1 : 1 < b) by lra. assert (Q := number_above_1 b Fb B1).
        apply (unit_ge a (- tiny f) 1 z F); [apply solid_opp, solid_tiny|exact Sb| | | |exact V];
          [apply solid_1|fold b; lra|].
        apply Hv; [apply solid_opp, solid_tiny| |lra]. rewrite Rabs_left in L by exact P. lra.
  - assert (Q := number_below_1 b Fb B).
    assert (S : tiny f <= Rabs (t * w)) by (rewrite Rabs_pos_eq; lra).
    assert (Z : w <> 0) by (intros Z; rewrite Z in Ht; lra).
    apply (unit_ge a (t * w) 1 z F); [now apply Sp|exact Sb|apply solid_1|fold b; lra| |exact V].
    apply Hv; [now apply Sp|lra|]. intros L. exfalso.
    assert (K := H 0 (or_intror (conj L eq_refl))). simpl in K. fold w b in K. lra.
Qed.

(** Any normal slope will do where 1 - b is a number of the format, too: where b is a whole number, for example. *)
Theorem unit_at_least_one_any_slope (a : unit) (z : R) :
  well_formed a -> normal f (slope a) -> solid f (bias a) -> solid f (1 - bias a) ->
  pre a (fun r => 1 <= r) -> unit_value a z -> 1 <= z.
Proof.
  intros F Nw Sb S1 H. apply (unit_ge a (1 - bias a)); [exact F|exact S1|exact Sb|apply solid_1|lra|].
  intros v (t' & w' & Rt & Rw & R). apply reads_normal in Rw; [|exact Nw]. subst w'.
  apply (rnd_ge f (t' * slope a)); [exact S1| |exact R]. specialize (H t' Rt). simpl in H. lra.
Qed.

(** * A group *)

(** What a group relu(1 - sum of relu(units)) may evaluate to. *)
Inductive group_value (us : list unit) (y : R) : Prop :=
| group_computed (zs : list R) (g : R) :
    Forall2 unit_value us zs ->
    sums f (leaf f) (Bias 1 :: map (fun z => Prod (relu z) (-1)) zs) g -> y = relu g -> group_value us y.

(** If all pre-activations of a group are at most 0 as real numbers, every value of the group is exactly 1.
    For: search/stack.py (a cell, or a step, that is on). *)
Theorem cell_on (us : list unit) (y : R) :
  (forall a, In a us -> good_unit a /\ pre a (fun r => r <= 0)) -> group_value us y -> y = 1.
Proof.
  intros H [zs g Hu Hg ->].
  assert (Z : forall z, In z zs -> relu z = 0).
  { clear Hg g. induction Hu as [|a z us zs U Hu IH]; simpl; [easy|]. intros r [<-|I].
    - destruct (H a (or_introl eq_refl)) as [(F & Ft & Fb & Pw) P]. apply Rmax_right.
      apply (unit_nonpositive a z F Fb); [|exact P|exact U]. destruct Pw as [Z|(_ & Q)]; [now left|now right].
    - apply IH; [|exact I]. intros c J. apply H. now right. }
  assert (H1 : sums f (leaf f) [Bias 1] g).
  { apply (zeros_add_nothing f _ g Hg (map (fun z => Prod (relu z) (-1)) zs) [Bias 1]);
      [apply Permutation_cons_append|].
    intros t I. apply in_map_iff in I. destruct I as (z & <- & I). left. now apply Z. }
  replace g with 1; [unfold relu; apply Rmax_left; lra|]. symmetry.
  rewrite (any_order_product_exact f [Bias 1] g); [simpl; ring| | |exact H1].
  - intros t [<-|[]]. apply whole_1.
  - simpl. rewrite Rabs_R1, Rplus_0_r. change 1 with (bpow radix2 0). apply bpow_le. pose proof (prec_pos f). lia.
Qed.

(** If one pre-activation of a group is at least 1 as a real number, every value of the group is exactly 0.
    For: search/stack.py (a cell, or a step, that is off). *)
Theorem cell_off (us : list unit) (y : R) :
  (exists a, In a us /\ good_unit a /\ pre a (fun r => 1 <= r)) -> group_value us y -> y = 0.
Proof.
  intros (a & I & G & P) [zs g Hu Hg ->]. apply Rmax_right.
  assert (Z : exists z1 z z2, zs = z1 ++ z :: z2 /\ 1 <= z).
  { clear Hg g. induction Hu as [|c z us zs U Hu IH]; [easy|]. destruct I as [->|I].
    - exists [], z, zs. split; [reflexivity|]. now apply (unit_at_least_one a).
    - destruct (IH I) as (z1 & r & z2 & -> & L). exists (z :: z1), r, z2. now split. }
  destruct Z as (z1 & z & z2 & -> & L).
  assert (R1 : relu z = z) by (apply Rmax_left; lra).
  pose (minus := fun r => Prod (relu r) (-1)).
  pose (l := (Second, Bias 1) :: map (fun z => (Zero, minus z)) z1 ++
             (First, minus z) :: map (fun z => (Zero, minus z)) z2).
  assert (S1 := solid_1 f). pose proof (tiny_le_1 f) as T1. pose proof (tiny_pos f) as T.
  assert (N1 : normal f (-1)) by (right; rewrite Rabs_left; lra).
  apply (two_terms_le f l (-1) 1 0); [now apply solid_opp|exact S1|apply solid_0|lra| | | |].
  - assert (K : forall r v, 0 <= r -> leaf f (Prod r (-1)) v -> v <= (if Rle_lt_dec 1 r then -1 else 0)).
    { intros r v R0 (r' & w' & Rr & Rw & R). apply reads_normal in Rw; [|exact N1]. subst w'.
      apply (rnd_le f (r' * -1)); [destruct (Rle_lt_dec 1 r); [now apply solid_opp|apply solid_0]| |exact R].
      destruct (Rle_lt_dec 1 r); destruct Rr as [->|[Q ->]]; try lra.
      rewrite Rabs_pos_eq in Q by lra. lra. }
    intros k t v J V. apply in_inv in J. destruct J as [J|J].
    + injection J as <- <-. right. now apply (reads_solid f).
    + apply in_app_or in J. destruct J as [J|[J|J]].
      * apply in_map_iff in J. destruct J as (r & J & _). injection J as <- <-.
        apply K in V; [|apply Rmax_r]. destruct (Rle_lt_dec 1 (relu r)); lra.
      * injection J as <- <-. apply K in V; [|apply Rmax_r]. destruct (Rle_lt_dec 1 (relu z)); lra.
      * apply in_map_iff in J. destruct J as (r & J & _). injection J as <- <-.
        apply K in V; [|apply Rmax_r]. destruct (Rle_lt_dec 1 (relu r)); lra.
  - unfold l. simpl. rewrite count_app. simpl. now rewrite !count_zeros.
  - unfold l. simpl. rewrite count_app. simpl. now rewrite !count_zeros.
  - unfold l. simpl. rewrite map_app. simpl. rewrite !map_map. simpl. rewrite map_app in Hg. exact Hg.
Qed.

End Units.

(** * Real arithmetic *)

(** In real arithmetic a group has one value. *)
Definition real_pre (a : unit) := slope a * t_of a + bias a.
Definition real_group (us : list unit) := relu (1 - sum (fun a => relu (real_pre a)) us).

Lemma sum_relu_nonneg us : 0 <= sum (fun a => relu (real_pre a)) us.
Proof. induction us as [|a us IH]; simpl; [lra|]. pose proof (Rmax_r (real_pre a) 0). unfold relu at 1. lra. Qed.

(** A group is 1 in real arithmetic if all its pre-activations are at most 0. *)
Theorem real_cell_on (us : list unit) : (forall a, In a us -> real_pre a <= 0) -> real_group us = 1.
Proof.
  intros H. unfold real_group. replace (sum _ us) with 0; [unfold relu; rewrite Rmax_left; lra|].
  induction us as [|a us IH]; simpl; [reflexivity|]. rewrite <- IH by (intros; apply H; now right).
  unfold relu. rewrite Rmax_right; [ring|apply H; now left].
Qed.

(** A group is 0 in real arithmetic if one of its pre-activations is at least 1. *)
Theorem real_cell_off (us : list unit) : (exists a, In a us /\ 1 <= real_pre a) -> real_group us = 0.
Proof.
  intros (a & I & P). unfold real_group. apply Rmax_right. apply in_split in I. destruct I as (l1 & l2 & ->).
  rewrite sum_app. simpl. pose proof (sum_relu_nonneg l1). pose proof (sum_relu_nonneg l2).
  pose proof (Rmax_l (real_pre a) 0). unfold relu at 2. lra.
Qed.
