(** All theorems of all files. `make check` compares the axioms that they rest on with axioms.txt, and fails if a
    theorem is missing here. *)

From Onelayer Require Arithmetic.

Definition theorems := (
  @Arithmetic.sums_le,
  @Arithmetic.sums_ge,
  @Arithmetic.sums_exact).

Print Assumptions theorems.
