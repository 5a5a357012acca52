(** Layers with ReLU between them: what holds of every layer holds of the stack, and exact zeros may be left out.

    For: core/layers.py Layer.apply, run_stack; search/stack.py Searched.apply. *)

From Coq Require Import Reals ZArith List Permutation Lra Lia Bool.
From Flocq Require Import Core.
From Onelayer Require Import Arithmetic ExactSums ExactProducts Cells Thresholds Lookups.
Import ListNotations.
Open Scope R_scope.

(** * What a stack of layers may compute *)

(** A layer is a list of its components: the weights that meet the inputs, and a bias. *)
Definition component := (list R * R)%type.
Definition layer := list component.

Definition component_value (A : arithmetic) (xs : list R) (c : component) (y : R) :=
  let l := products xs (fst c) ++ [Bias (snd c)] in
  match A with Real => y = sum value l | Float f => sums f (leaf f) l y end.

Definition layer_value (A : arithmetic) (L : layer) (xs ys : list R) := Forall2 (component_value A xs) L ys.

(** ReLU after every layer but the last. *)
Inductive stack_value (A : arithmetic) : list layer -> list R -> list R -> Prop :=
| stack_last L xs ys : layer_value A L xs ys -> stack_value A [L] xs ys
| stack_more L Ls xs ys zs :
    layer_value A L xs ys -> stack_value A Ls (map relu ys) zs -> stack_value A (L :: Ls) xs zs.

(** * Balls *)

(** A ball: a midpoint and a radius. *)
Definition ball := (R * R)%type.
Definition inside_ball (x : R) (b : ball) := Rabs (x - fst b) <= snd b.
Definition inside_balls := Forall2 inside_ball.

(** What is asked of an evaluation of a layer: given balls of the inputs, it gives balls of all values. *)
Definition sound_evaluation (A : arithmetic) (apply : layer -> list ball -> list ball) :=
  forall L bs xs ys, inside_balls xs bs -> layer_value A L xs ys -> inside_balls ys (apply L bs).

(** And of a ReLU of balls; relu_encloses of Sums.v says so of the checker's. *)
Definition sound_relu (relu_ball : ball -> ball) :=
  forall x b, inside_ball x b -> inside_ball (relu x) (relu_ball b).

Fixpoint run apply relu_ball (Ls : list layer) (bs : list ball) : list ball :=
  match Ls with
  | [] => bs
  | [L] => apply L bs
  | L :: Ls => run apply relu_ball Ls (map relu_ball (apply L bs))
  end.

(** If every layer is evaluated soundly, so is the stack. For: core/layers.py run_stack. *)
Theorem run_stack_sound (A : arithmetic) apply relu_ball (Ls : list layer) (bs : list ball) (xs zs : list R) :
  sound_evaluation A apply -> sound_relu relu_ball -> inside_balls xs bs -> stack_value A Ls xs zs ->
  inside_balls zs (run apply relu_ball Ls bs).
Proof.
  intros S SR B H. revert bs B. induction H as [L xs ys V|L Ls xs ys zs V H IH]; intros bs B.
  - now apply (S L bs xs ys).
  - assert (Y := S L bs xs ys B V).
    assert (R : inside_balls (map relu ys) (map relu_ball (apply L bs))).
    { clear - Y SR. induction Y as [|y b ys' bs' H Y IH]; simpl; constructor; [now apply SR|exact IH]. }
    specialize (IH _ R). destruct H; exact IH.
Qed.

(** * Exact zeros may be left out *)

(** Of a list, those whose place is kept. *)
Fixpoint keep {T} (mask : list bool) (l : list T) : list T :=
  match mask, l with
  | b :: mask, x :: l => if b then x :: keep mask l else keep mask l
  | _, _ => []
  end.

Lemma keep_products mask : forall xs ws, length mask = length xs -> length ws = length xs ->
  exists dropped, Permutation (products xs ws) (dropped ++ products (keep mask xs) (keep mask ws)) /\
    forall t, In t dropped -> exists x w, t = Prod x w /\ In (x, false) (combine xs mask).
Proof.
  induction mask as [|b mask IH]; intros [|x xs] [|w ws] L1 L2; try discriminate.
  - exists []. split; [apply Permutation_refl|easy].
  - destruct (IH xs ws) as (d & P & D); [now injection L1|now injection L2|]. destruct b; simpl keep.
    + exists d. split; [rewrite !products_cons, P; apply Permutation_middle|]. intros t I.
      destruct (D t I) as (x' & w' & E & J). exists x', w'. split; [exact E|now right].
    + exists (Prod x w :: d). split; [rewrite products_cons, P; apply Permutation_refl|].
      intros t [<-|I]; [exists x, w; split; [reflexivity|now left]|].
      destruct (D t I) as (x' & w' & E & J). exists x', w'. split; [exact E|now right].
Qed.

(** A component that reads inputs of which some are exactly zero has the same values as one that does not read
    these.
    For: core/layers.py run_stack (kept); search/builder.py full, within, through. *)
Theorem zeros_left_out (A : arithmetic) (mask : list bool) (xs : list R) (c : component) (y : R) :
  length mask = length xs -> length (fst c) = length xs ->
  (forall x, In (x, false) (combine xs mask) -> x = 0) ->
  component_value A xs c y -> component_value A (keep mask xs) (keep mask (fst c), snd c) y.
Proof.
  intros L1 L2 Z. destruct (keep_products mask xs (fst c) L1 L2) as (d & P & D).
  assert (Zd : forall t, In t d -> zero_term t).
  { intros t I. destruct (D t I) as (x & w & -> & J). left. now apply Z. }
  assert (Q : Permutation (products xs (fst c) ++ [Bias (snd c)])
                (d ++ products (keep mask xs) (keep mask (fst c)) ++ [Bias (snd c)])).
  { rewrite P. now rewrite app_assoc. }
  destruct A as [|f]; simpl.
  - intros ->. rewrite (sum_perm _ _ _ Q), sum_app. destruct (zero_terms_sum d Zd) as (E & _). rewrite E. ring.
  - intros H. exact (zeros_add_nothing f _ y H d _ Q Zd).
Qed.

(** What float32 and float64 allow includes what real arithmetic gives: an operation may give its exact result.
    So a sum that has one value in a float arithmetic has that value in real arithmetic.
    For: core/claims.py Claim.implies; core/separated.py _separated. *)
Theorem real_is_allowed (f : format) (xs : list R) (c : component) (y : R) :
  component_value Real xs c y -> component_value (Float f) xs c y.
Proof.
  simpl. intros ->. induction (products xs (fst c) ++ [Bias (snd c)]) as [|t l IH]; [apply sums_zero|].
  simpl sum. apply (sums_add f _ (t :: l) [t] l); [apply Permutation_refl| |exact IH]. apply sums_leaf.
  destruct t as [x w|b]; simpl; [|now left]. exists x, w. repeat split; [now left|now left|now apply rnd_kept].
Qed.

(** So for stacks: whatever encloses all values of a float arithmetic encloses that of real arithmetic. *)
Theorem real_stack_is_allowed (f : format) (Ls : list layer) (xs zs : list R) :
  stack_value Real Ls xs zs -> stack_value (Float f) Ls xs zs.
Proof.
  assert (K : forall L xs ys, layer_value Real L xs ys -> layer_value (Float f) L xs ys).
  { intros L x y H. induction H as [|c v L vs V H IH]; constructor; [now apply real_is_allowed|exact IH]. }
  induction 1 as [L xs ys V|L Ls xs ys zs V H IH]; [now apply stack_last, K|].
  apply (stack_more (Float f) L Ls xs ys zs); [now apply K|exact IH].
Qed.
