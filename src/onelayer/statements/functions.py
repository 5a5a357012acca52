"""Statements about functions on a box: approximation."""

from __future__ import annotations

from onelayer.statements.statement import Statement

FUNCTIONS = (
    Statement(
        "proposition_1",
        "Proposition 1, universal approximation",
        "kajitsuka2024",
        "published",
        "FF, one softmax head, FF approximate every continuous permutation-equivariant function with compact "
        "support in L^p, p < infinity.",
        ("theorem_2",),
    ),
    Statement(
        "one_layer_universal",
        "One attention layer and a ReLU layer approximate any continuous sequence-to-sequence map",
        "gumaan2025",
        "published",
        "As the abstract has it, without positions; `equivariance`, `zero_token` and `narrow_stream` say what must "
        "be added.",
    ),
    Statement(
        "quantise",
        "A function as a table of cells",
        "",
        "ours",
        "Proposition 1 with multisets allowed and a computable bound: the variation of f in a cell, and the share "
        "of the box that lies on ramps.",
        ("proposition_1", "plateaus", "lattice"),
    ),
    Statement(
        "positional",
        "Gather by position, interpolate on a Kuhn triangulation",
        "",
        "ours",
        "n heads that read positions and one hat per vertex interpolate any continuous map; the error in the sup "
        "norm is O(h^2) for smooth ones.",
        ("one_layer_universal",),
    ),
    Statement(
        "formula",
        "A formula compiled line by line",
        "",
        "ours",
        "Functions of a token, one aggregation (means, softmax averages, maxima) and functions of the results are "
        "ReLU blocks and heads: the number of parameters is the same for every number of tokens.",
        ("one_layer_universal",),
    ),
    Statement(
        "tilts",
        "A head is the slope of log-sum-exp",
        "",
        "ours",
        "The average of v with weights e^(s g) is analytic in s; its slope at 0 is the covariance of v and g, and "
        "for v = g its integral is log(mean(e^(s g))). So k heads give both, with an error that falls like "
        "rho^(-2 k), and no units.",
        ("formula",),
    ),
    Statement(
        "approximate",
        "From a function to one layer",
        "",
        "ours",
        "A continuous function on a box, a tolerance, and the smallest construction whose bound meets it.",
        ("formula", "quantise", "positional"),
    ),
    Statement(
        "continuous",
        "Random heads and one ReLU layer, without a quantiser",
        "",
        "ours",
        "2nd + 1 random heads and d uniform ones hold (token, multiset) in a continuous stream; ReLU units fitted "
        "to it by least squares approximate equivariant maps on the whole box; branch and bound proves the error.",
        ("temperature_heads",),
    ),
    Statement(
        "attention_first",
        "Two numbers need no quantiser in the mean",
        "",
        "ours",
        "n = 2 real numbers, softmax attention first with query biases on a stream of width 1, then one ReLU "
        "layer: every continuous function on [-1, 1]^2 is approximated in L^p, p < infinity; heads are in closed "
        "form.",
    ),
    Statement(
        "mean_universality",
        "No quantiser is needed in the mean",
        "",
        "ours",
        "n >= 2 real tokens of d >= 1 components, softmax attention first with query biases on a stream of width "
        "d, then ReLU layers approximate every continuous permutation-equivariant map on [-1, 1]^(n d) in L^p, "
        "p < infinity.",
        ("attention_first", "proposition_1"),
    ),
)
