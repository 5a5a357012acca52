"""The papers as data: every statement this library builds on, with its source and its standing."""

from __future__ import annotations

from onelayer.statements.functions import FUNCTIONS
from onelayer.statements.learners import LEARNERS
from onelayer.statements.limits import LIMITS
from onelayer.statements.statement import STANDINGS, Standing, Statement

__all__ = ["CATALOGUE", "STANDINGS", "Standing", "Statement"]

_STATEMENTS = (
    Statement(
        "separation",
        "Definition 1, tokenwise (r_min, r_max, eps)-separation",
        "kajitsuka2024",
        "recalled",
        "All token norms lie strictly between r_min and r_max; different tokens are more than eps apart.",
    ),
    Statement(
        "contextual",
        "Definition 2, (r, delta)-contextual mapping",
        "kajitsuka2024",
        "recalled",
        "Ids have norm below r and differ by more than delta when the token or the set of tokens differs.",
    ),
    Statement(
        "boltzmann",
        "Definition 3, the Boltzmann operator",
        "kajitsuka2024",
        "recalled",
        "boltz(a) = sum a_i e^a_i / sum e^a_i, which is log-sum-exp minus the entropy of softmax(a).",
    ),
    Statement(
        "lemma_1",
        "Lemma 1, separation by the Boltzmann operator",
        "kajitsuka2024",
        "recalled",
        "Entries in [-r, r] more than 2 log n + 3 apart: boltz values of different sets differ by at least "
        "(log n)^2 e^(-2r).",
        ("boltzmann",),
    ),
    Statement(
        "lemma_b",
        "Lemma B, separation without the log n",
        "",
        "ours",
        "Levels at least 2 apart, sets of any sizes: values differ by at least 0.404 x e^(-x), x = distance "
        "from the top to the first difference, or 0.818 gap if the tops differ.",
        ("boltzmann",),
    ),
    Statement(
        "lemma_d",
        "Lemma D, separation of multisets",
        "",
        "ours",
        "Levels at least 2 log n + 2 apart: multisets of size at most n that are not proportional have values "
        "at least 0.72/(m1 m1') x e^(-x) apart, or 0.96 gap if the tops differ.",
        ("boltzmann",),
    ),
    Statement(
        "lemma_g",
        "Lemma G, a generic temperature separates",
        "",
        "ours",
        "For finitely many different empirical measures all but finitely many temperatures in a bounded "
        "interval give pairwise different softmax averages, repeated tokens included.",
        ("boltzmann",),
    ),
    Statement(
        "projection",
        "Projection lemma",
        "park2021",
        "recalled",
        "Some unit vector v keeps |v.z| >= c|z| for finitely many vectors z, with c of order 1/(count sqrt(d)).",
    ),
    Statement(
        "theorem_1",
        "Theorem 1, hardmax attention is not a contextual mapping",
        "kajitsuka2024",
        "published",
        "One layer of multi-head hardmax attention is not a contextual mapping, whatever its heads and weights.",
    ),
    Statement(
        "theorem_2",
        "Theorem 2, softmax attention is a contextual mapping",
        "kajitsuka2024",
        "recalled",
        "One softmax head with rank-1 weights is an (r, delta)-contextual mapping for tokenwise separated "
        "sequences without repeated tokens, with explicit beta, r and delta.",
        ("separation", "projection", "lemma_1"),
    ),
    Statement(
        "rank_one",
        "Theorem K, data-dependent constants for Theorem 2",
        "",
        "ours",
        "Any direction injective on the tokens and nowhere zero, with beta = 2/(g m), gives delta = "
        "0.404 lambda D exp(-beta M D).",
        ("lemma_b",),
    ),
    Statement(
        "temperature",
        "Searched rank-1 softmax head",
        "",
        "ours",
        "A random direction and a moderate temperature separate all contexts; the gap is measured, not assumed.",
        ("lemma_g",),
    ),
    Statement(
        "shared_query",
        "Searched softmax head with a constant query",
        "",
        "ours",
        "With a query bias every token of a sequence reads the same average, so a sequence has one context "
        "number, and zero tokens are no obstacle.",
        ("lemma_g",),
    ),
    Statement(
        "averages",
        "Uniform averages of integer codes",
        "kajitsuka2025",
        "ours",
        "Random integer token codes, averaged by attention with zero query and key, tell all multisets of one "
        "length apart; gaps are at least 1/n.",
    ),
    Statement(
        "lattice",
        "Sums of whole-number codes",
        "kajitsuka2025",
        "ours",
        "Random codes in Z^s, summed by uniform attention, tell all (token, multiset) of one length apart, all "
        "(token, shares of tokens) where lengths differ and a token's own code weighs at least as much as all of "
        "its sequence, and with a gate per place all sequences; a floating-point network is within a fraction of "
        "half a lattice step of them, of any number.",
        ("averages",),
    ),
    Statement(
        "tallies",
        "Sums of small whole numbers on several channels",
        "kajitsuka2025",
        "ours",
        "Of n = 2^k tokens uniform attention has weights of exactly 1/n; sums of random whole-number codes up to "
        "128 (bfloat16) or 256 (float16) are then exact in every order, and on some channels together they tell "
        "all (token, multiset) apart, with a hash of token and place all sequences.",
        ("lattice",),
    ),
    Statement(
        "retrieval",
        "Static function by peeling (Bloomier filter)",
        "chazelle2004",
        "ours",
        "With three cells per key that peel, answer = T1 + T2 + T3 mod C for about 1.25 stored numbers per "
        "answer; row and column one-hots, emitted rows and gates make it a ReLU network with exact steps.",
    ),
    Statement(
        "planes",
        "Digits of answers by peeling",
        "chazelle2004",
        "ours",
        "Coordinates of 8 bits are hashed to rows and columns of three tables for each digit of a class; entries "
        "that add up to the digit modulo its base are found by peeling, and every sum is a whole number that 8 or "
        "11 bits hold.",
        ("retrieval",),
    ),
    Statement(
        "packed",
        "Several answers to a weight",
        "chazelle2004",
        "ours",
        "Digits of k answers share three cells, whole numbers below 2^24; a lane, read off one more coordinate, "
        "says whose they are. One word less the two others has the digits of each, with borrows, and saturating "
        "steps take it apart, exactly: about 1.25/k stored numbers per answer for any number of classes.",
        ("retrieval",),
    ),
    Statement(
        "table",
        "Rows and columns of saturating steps",
        "",
        "ours",
        "A row one-hot emits the thresholds and values of its row, column steps open one gate: about two "
        "stored numbers per answer, widths of about sqrt(M), every step exact.",
        ("plateaus",),
    ),
    Statement(
        "bits",
        "Answers in the bits of weights",
        "vardi2022",
        "ours",
        "Keys and labels packed into words of W bits and peeled off by saturating comparisons: M answers, bit for "
        "bit, from about 2 M (rho + c)/W + 26 sqrt(M (rho + c)) parameters; a variant of a published theorem.",
        ("plateaus",),
    ),
    Statement(
        "positions",
        "Positions make sequences ordered",
        "kajitsuka2024",
        "recalled",
        "Adding a different constant at each place makes the tokens of a sequence distinct and their order "
        "visible.",
    ),
    Statement(
        "corollary_1",
        "Corollary 1, memorisation",
        "kajitsuka2024",
        "published",
        "One softmax head and a feed-forward layer reproduce N consistent sequences of n labels with "
        "4(s+d) + d(2nN+d) parameters.",
        ("theorem_2", "triangular"),
    ),
    Statement(
        "triangular",
        "Two-layer ReLU memoriser by a triangular system",
        "zhang2017",
        "recalled",
        "M distinct numbers are interpolated by M ReLU units whose weights solve a lower triangular system.",
    ),
    Statement(
        "plateaus",
        "Trapezoids that saturate exactly",
        "",
        "ours",
        "One trapezoid per answer, 1 on its plateau and 0 on all others, so that the stored answer comes back "
        "bit for bit whatever the order of summation.",
    ),
    Statement(
        "boxes",
        "Trapezoids in several coordinates",
        "",
        "ours",
        "A head of rank s writes s coordinates; boxes around M ids drawn with spread sigma on a span need about "
        "2 log2(M)/s + log2(span/sigma) + c bits a coordinate to tell the nearest two apart in the sup norm. For M "
        "normal ones, M large, c is -0.83 - 0.17/s for the mean over draws and -0.83 - 0.47/s for the median.",
        ("plateaus",),
    ),
    Statement(
        "grading",
        "Grading is a change of weights",
        "",
        "ours",
        "Multiplying component i of the stream by a number before the projections is the plain layer with row i of "
        "W_Q, W_K and W_V multiplied; by powers of two it gives the same bits, barring over- and underflow.",
    ),
    Statement(
        "text",
        "Next tokens of a text",
        "",
        "ours",
        "A causal layer gives, at the last token of every window of n tokens of a text, the empirical distribution "
        "of the next token: exactly 0 and 1 wherever one continuation occurs.",
        ("lattice", "retrieval", "plateaus"),
    ),
    Statement(
        "target",
        "Functions as straight-line programs",
        "",
        "ours",
        "A function of n tokens in a box is given as a program of scalar operations; intervals enclose its values "
        "and its slopes between any two points, hence a Lipschitz constant.",
    ),
    Statement(
        "data",
        "What can be read as sequences and answers",
        "",
        "ours",
        "Finite numbers or known tokens, at least one sequence, one answer per token or per sequence.",
    ),
    Statement(
        "memorize",
        "From data to one layer",
        "",
        "ours",
        "Contexts told apart by one attention head, answers read off by a feed-forward stack.",
        ("corollary_1", "temperature", "plateaus"),
    ),
    Statement(
        "lab",
        "Questions as experiments",
        "",
        "ours",
        "What is measured is not proved: an answer is computed from rows over seeds, with confidence intervals.",
    ),
    *FUNCTIONS,
    *LEARNERS,
    *LIMITS,
)

CATALOGUE: dict[str, Statement] = {statement.key: statement for statement in _STATEMENTS}
