(** All theorems of all files. `make check` compares the axioms that they rest on with axioms.txt, and fails if a
    theorem is missing here. *)

From Onelayer Require Arithmetic ExactSums ExactProducts Cells Thresholds Search Steps Families.

Definition theorems := (
  @Arithmetic.sums_le,
  @Arithmetic.sums_ge,
  @Arithmetic.sums_exact,
  @ExactSums.any_order_sum_exact,
  @ExactSums.any_order_product_exact,
  @ExactSums.one_term_exact,
  @ExactSums.zeros_add_nothing,
  @ExactSums.computed_size_exact,
  @ExactSums.computed_expression_exact,
  @ExactSums.sums_fit_exact,
  @ExactSums.float32_sum_exact,
  @ExactSums.float64_sum_exact,
  @ExactSums.fit_has_to_be_strict,
  @ExactProducts.exact_product_power,
  @ExactProducts.exact_product_zero,
  @ExactProducts.exact_product_whole,
  @ExactProducts.normal_as_computed,
  @ExactProducts.exact_products_guard,
  @ExactProducts.single_power_exact,
  @ExactProducts.exact_products_whole,
  @ExactProducts.exact_products_one,
  @ExactProducts.add_numbers_exact,
  @ExactProducts.exact_product_as_coded_is_unsound,
  @ExactProducts.exact_product_subnormal_operand_is_unsound,
  @Cells.unit_nonpositive,
  @Cells.unit_at_least_one,
  @Cells.unit_at_least_one_any_slope,
  @Cells.cell_on,
  @Cells.cell_off,
  @Cells.real_cell_on,
  @Cells.real_cell_off,
  @Thresholds.ball_encloses,
  @Thresholds.quotient_exact,
  @Thresholds.in_range_sound,
  @Thresholds.reads_within,
  @Thresholds.ends_enclose,
  @Thresholds.off_high_sound,
  @Thresholds.off_low_sound,
  @Thresholds.on_high_sound,
  @Thresholds.on_low_sound,
  @Thresholds.decide_on,
  @Thresholds.decide_off,
  @Thresholds.not_on_and_off,
  @Thresholds.smallest_suffices,
  @Search.steps_counted,
  @Search.upto_counts,
  @Search.look_sound,
  @Search.alone_sound,
  @Search.look_closely_sound,
  @Steps.steps_decide,
  @Steps.row_on_sound,
  @Steps.row_off_sound,
  @Steps.row_steps_decide,
  @Families.found_on_sound,
  @Families.found_off_sound,
  @Families.cells_decide).

Print Assumptions theorems.

(** Errors. *)

From Onelayer Require Rounding DotError Linear.

Definition errors := (
  @Rounding.rnd_error,
  @Rounding.operation_error,
  @DotError.any_order_error,
  @DotError.dots_count,
  @DotError.gamma_sound,
  @DotError.linear_error,
  @DotError.one_term_kept,
  @DotError.dots_sums,
  @DotError.loop_evaluated,
  @Linear.linear_ball,
  @Linear.linear_kept,
  @Linear.residual_stream).

Print Assumptions errors.
