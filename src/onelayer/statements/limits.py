"""What one layer cannot do whatever its weights, and what it can once it has the room: part of the catalogue."""

from __future__ import annotations

from onelayer.statements.statement import Statement

LIMITS = (
    Statement(
        "zero_token",
        "Bias-free attention at a zero token",
        "",
        "ours",
        "Without query and embedding biases a zero token attends uniformly in every softmax or hardmax head of one "
        "layer: its output depends on the mean of the tokens that it sees only.",
    ),
    Statement(
        "empirical_measure",
        "Softmax sees only the empirical measure",
        "",
        "ours",
        "Multisets with proportional multiplicities, such as {u, v} and {u, u, v, v}, give equal outputs in "
        "every softmax or hardmax head that sees all tokens, without positions.",
    ),
    Statement(
        "equivariance",
        "Attention without positions is permutation-equivariant",
        "",
        "ours",
        "Without a causal mask or window, reordering the tokens reorders the outputs, so equal (token, multiset) "
        "pairs must have equal answers.",
    ),
    Statement(
        "constant_outputs",
        "Heads average, they do not store",
        "",
        "ours",
        "On sequences of equal tokens every layer of softmax or hardmax attention is one affine map, so with an "
        "affine embedding and readout it misses a target by at least a quarter of its second difference there.",
    ),
    Statement(
        "narrow_stream",
        "A residual stream no wider than the tokens is too narrow",
        "",
        "ours",
        "n >= 2 real tokens of d >= 1 components, one layer of softmax or hardmax attention first on a stream of "
        "width d, any number of heads, biases allowed: every readout misses x_k + 8 (x_k - mean)^3 on "
        "[-1, 1]^(n d) by at least 1/8 somewhere, proved for every n and d.",
    ),
    Statement(
        "finite_witness",
        "Finite witness theorem",
        "amir2023",
        "recalled",
        "If analytic features tell any two points of a D-dimensional set of pairs apart for some parameter, D + 1 "
        "random parameters tell all of them apart, almost surely.",
    ),
    Statement(
        "temperature_heads",
        "2nd + 1 random heads see every multiset",
        "",
        "ours",
        "With a constant query and a spare channel each, 2nd + 1 heads of random directions and temperatures give "
        "continuous features that almost surely differ for any two multisets of n real tokens: no quantiser.",
        ("finite_witness", "lemma_g"),
    ),
    Statement(
        "sink",
        "A sink token turns heads into power sums",
        "",
        "ours",
        "With one appended sink token, n(n(d-1)+1) heads with a spare channel each hold continuous features from "
        "which the multiset of at most n real tokens can be computed, its size included.",
    ),
)
