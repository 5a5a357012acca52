"""Statements about learning algorithms that one looped layer is."""

from __future__ import annotations

from onelayer.statements.statement import Statement

LEARNERS = (
    Statement(
        "gradient_step",
        "Proposition 1, one linear attention layer is a step of gradient descent",
        "oswald2023",
        "published",
        "Tokens (x, y), linear attention with W_Q = W_K = x and values -eta r: one layer is one step on the "
        "squares of the examples.",
        (),
        "the published weights hold eta/N; here attention divides by the number of examples, by a flag",
    ),
    Statement(
        "preconditioned",
        "Looped linear attention is preconditioned gradient descent",
        "gatmiry2024",
        "recalled",
        "With queries x A, L loops are L steps along A times the gradient; the population risk's minimiser has A "
        "near the inverse covariance.",
        ("gradient_step",),
        "A must be symmetric, or tokens leave the form of residuals; the proof finds this by itself",
    ),
    Statement(
        "whitening",
        "GD++, a step of gradient descent on inputs that are whitened on the way",
        "oswald2023",
        "recalled",
        "A second head takes gamma mean(x x^T) x off the inputs themselves, which flattens the spectrum loop "
        "by loop.",
        ("gradient_step",),
        "stated here for all numbers of examples, with the matrix of the inputs as part of the state",
    ),
    Statement(
        "nesterov",
        "Accelerated gradient descent in one repeated block",
        "",
        "ours",
        "A linear feed-forward layer extrapolates and shrinks residuals, linear attention steps: L loops are L "
        "accelerated steps, and their distance to the ridge estimate is at most r^L (L + 1 + r L) times its size.",
        ("gradient_step", "ridge"),
    ),
    Statement(
        "ridge",
        "Ridge regression by relu attention",
        "bai2023",
        "recalled",
        "Tokens [x, y, w, 1]: two relu heads add up to the gradient of the squares, a third shrinks w.",
        ("gradient_step",),
        "the published layer divides by all tokens and masks by a shift that is exact for bounded <w, x> only; the "
        "compact form is ours: one linear head, residuals that a feed-forward layer shrinks",
    ),
    Statement(
        "lasso",
        "Iterative soft thresholding by relu attention and a ReLU layer",
        "bai2023",
        "recalled",
        "The gradient of the squares by attention, the proximal step by the feed-forward layer.",
        ("ridge",),
        "a last layer in which tokens see themselves only multiplies w with x; published, an attention layer "
        "with a mask does",
    ),
    Statement(
        "logistic",
        "Logistic regression by relu attention",
        "bai2023",
        "recalled",
        "A sigmoid that is interpolated at knots is a sum of relus, one head for each; shrinkage by a further "
        "head.",
        ("ridge",),
        "the claim is about the interpolated sigmoid; how far its estimate is from that of the sigmoid is measured",
    ),
    Statement(
        "causal_step",
        "Proposition 1, a gradient step at every token of a sequence at once",
        "oswald2024",
        "recalled",
        "Causal linear attention over (s_t, s_(t-1)) predicts s_(t+1) by one gradient step on all that came "
        "before.",
        ("gradient_step",),
    ),
    Statement(
        "mesa",
        "The mesa layer solves least squares in its context",
        "oswald2024",
        "recalled",
        "q (sum k^T k + ridge I)^-1 sum k^T v is the ridge estimate of the examples at the query.",
        ("ridge",),
        "the paper's 1/lambda is our ridge, and it is not divided by the number of examples",
    ),
    Statement(
        "recurrence",
        "Affine recurrences by one mesa head",
        "",
        "ours",
        "Keys (s_(t-1), ..., s_(t-p), 1), values s_t, query (s_t, ..., s_(t-p+1), 1), causal: at every value, the "
        "ridge estimate of the recurrence so far, applied to it.",
        ("mesa",),
    ),
    Statement(
        "kernel",
        "A Gaussian kernel smoother is one softmax head of rank d + 1",
        "",
        "ours",
        "Query (x/h^2, 1), key (x, -|x|^2/(2 h^2)): logits are -|x - x_i|^2/(2 h^2) up to what all keys share.",
    ),
    Statement(
        "kernel_head",
        "A kernel smoother is a softmax head of rank r, up to a proved bound for every length",
        "",
        "ours",
        "Queries and keys are the first singular functions of the kernel's logarithm, linear between knots; logits "
        "that are off by eps move averages of |y| <= Y by at most 2 Y tanh(eps/2).",
        (),
        "the published bound is one of the mean error, from the tail of the singular values",
    ),
    Statement(
        "selection",
        "The better of two learners, by validation inside the prompt",
        "bai2023",
        "recalled",
        "Two ridge learners in separate channels; examples that are judges end with their validation residuals, "
        "whose mean squares decide.",
        ("ridge",),
        "here a gate is exact wherever the mean squares are delta apart",
    ),
    Statement(
        "cubic",
        "Linear attention is linear in cubic features",
        "yau2024",
        "recalled",
        "Least squares over the features G_jk z_l, G the second moments of the tokens and z the last, is the best "
        "layer with any number of heads; at most d^2 are needed, and a positive least eigenvalue makes it unique.",
        (),
        "features count each pair once; the bound on two good fits is sqrt(4 eps/mu) |H|, not (eps/lambda) |Z|^6",
    ),
    Statement(
        "learner",
        "From an algorithm to one looped layer",
        "",
        "ours",
        "The checker proves that the network is the algorithm, for all inputs, numbers of examples and loops.",
        ("gradient_step", "ridge", "nesterov"),
    ),
)
