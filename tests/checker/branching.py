"""Checks of slopes, rounding and branch and bound against Arb, adversarial rounding and hill climbing.

Each takes the modules it checks (slopes, rounding, branch), so that deliberately broken ones can be checked too.
"""

from __future__ import annotations

from types import SimpleNamespace

import flint
import numpy as np

from onelayer_checker.core.balls import FLOAT32, FLOAT64, REAL
from onelayer_checker.core.graph import Network, Stream, build
from onelayer_checker.functions import targets
from tests.checker.enclosures import exactly

BITS = 200


def random_network(rng: np.random.Generator, n: int, d: int, q: int, kind: str = "any") -> Network:
    """Any number of heads, layers and channels. "smooth": one narrow head, units far from their kinks; "affine":
    heads that weigh all keys alike."""
    H, s, w = int(rng.integers(1, 4)), int(rng.integers(1, 3)), int(rng.integers(d, d + 4))
    if kind == "smooth":
        H, s, w = 1, 1, d
    scale = 10.0 ** rng.uniform(-0.5, 0.7)

    def normal(*shape: int) -> np.ndarray:
        return rng.normal(size=shape)

    T = {f"attention.W_{name}": normal(H, w, s) * (scale if name == "K" else 1.0) for name in "QKV"}
    T["attention.W_O"] = normal(H, s, w)
    T |= {"attention.b_Q": normal(H, s), "attention.b_K": normal(H, s)}
    if w != d or rng.random() < 0.3:
        T["embedding.lift"] = normal(d, w)
        if rng.random() < 0.5:
            T |= {"embedding.bias": normal(w), "embedding.positions": normal(n, w)}

    def offset(k: int, size: float) -> np.ndarray:
        return rng.choice([-1.0, 1.0], k) * size * (1 + np.abs(normal(k))) if kind != "any" else 0.5 * normal(k)

    if kind == "affine":
        T["attention.W_Q"] *= 0
        T["attention.b_Q"] *= 0
    if rng.random() < 0.4 and kind != "smooth":
        T |= {"feedforward.0.weight": normal(w, 5), "feedforward.0.bias": offset(5, 30)}
        T |= {"feedforward.1.weight": normal(5, w), "feedforward.1.bias": normal(w)}
    T |= {"readout.0.weight": normal(w, 6), "readout.0.bias": offset(6, 2e3)}
    if rng.random() < 0.5:
        T |= {"readout.1.weight": normal(3, 2, 2), "readout.1.bias": offset(6, 1e5)}
    last = 2 if "readout.1.weight" in T else 1
    T |= {f"readout.{last}.weight": normal(6, q), f"readout.{last}.bias": normal(q)}
    return build(T, causal=bool(rng.random() < 0.3))


def arb(a: np.ndarray) -> np.ndarray:
    return np.vectorize(lambda x: flint.arb(float(x)), otypes=[object])(a)


def stack(layers, z: np.ndarray) -> np.ndarray:
    for i, layer in enumerate(layers):
        W = layer.weight
        if W.ndim == 3:
            g, a, _ = W.shape
            z = np.concatenate([z[:, j * a : j * a + a] @ arb(W[j]) for j in range(g)], axis=1)
        else:
            z = z @ arb(W)
        z = z + arb(layer.bias)
        if i + 1 < len(layers):
            z = np.vectorize(lambda x: x.max(flint.arb(0)), otypes=[object])(z)
    return z


def run(network: Network, x: np.ndarray) -> np.ndarray:
    """The network at one sequence [n, d] in Arb, [n, q]."""
    T, n = network.tensors, len(x)
    h = arb(x)
    if "embedding.lift" in T:
        h = h @ arb(T["embedding.lift"])
    for name in ("bias", "positions"):
        if f"embedding.{name}" in T:
            h = h + arb(T[f"embedding.{name}"][:n] if name == "positions" else T["embedding.bias"])
    h = stack(network.feedforward.layers, h)
    z = h
    for i in range(len(T["attention.W_Q"])):
        q, k, v = (h @ arb(T[f"attention.W_{name}"][i]) for name in "QKV")
        q, k = (y + arb(T[f"attention.b_{name}"][i]) for y, name in ((q, "Q"), (k, "K")))
        rows = []
        for j, a in enumerate(q @ k.T):
            e = [x.exp() if not network.causal or p <= j else flint.arb(0) for p, x in enumerate(a)]
            rows.append(sum(p * y for p, y in zip(e, v, strict=True)) / sum(e, flint.arb(0)))
        z = z + np.stack(rows) @ arb(T["attention.W_O"][i])
    return stack((network.bottleneck, *network.readout.layers), z)


def points(rng, c: np.ndarray, r: np.ndarray, count: int) -> np.ndarray:
    """Corners, faces and inner points of a box."""
    t = rng.uniform(-1, 1, (count, *c.shape))
    ends = rng.random(t.shape) < 0.6
    t[ends] = rng.choice([-1.0, 1.0], int(ends.sum()))
    return c + t * r * (1 - 2.0**-50)


def check_two_kinks(m: SimpleNamespace) -> None:
    """relu(relu(x) - 0.3) on [-0.5, 0.5]: off at the centre, and so is the mean slope times the radius."""
    one, zero = np.ones((1, 1, 1)), np.zeros((1, 1, 1))
    T = {f"attention.W_{name}": one for name in "QKV"} | {"attention.W_O": zero}
    for i, bias in enumerate((0.0, -0.3, 0.0)):
        T |= {f"readout.{i}.weight": one[0], f"readout.{i}.bias": np.full(1, bias)}
    with np.errstate(all="ignore"):
        J = m.slopes.network_slopes(build(T), zero, one / 2).ball()
    assert (J.m + J.r)[0, 0, 0] >= 0.4


SHAPES = [(1, 1), (2, 1), (3, 1), (1, 2), (1, 3)]


def check_slopes(m: SimpleNamespace, rounds: int = 60) -> None:
    """T(b) - T(a) is in the enclosure times b - a, on boxes of all sizes; where T is affine it is tight."""
    flint.ctx.prec = BITS
    for seed in range(rounds):
        rng = np.random.default_rng([seed, 1])
        (n, d), kind = SHAPES[seed % len(SHAPES)], ("any", "affine", "smooth")[seed // 5 % 3]
        network = random_network(rng, n, d, 2, kind)
        c = rng.uniform(-1, 1, (6, n, d))
        r = 10.0 ** rng.uniform(-7, -0.3, (6, 1, 1)) * rng.uniform(0.1, 1, c.shape)
        with np.errstate(all="ignore"):
            found = m.slopes.network_slopes(network, c, r)
        J, value = found.ball(), found.value
        for i in range(len(c)):
            at_c, rows = run(network, c[i]), slice(i * n, (i + 1) * n)
            for out, y, slack in zip(at_c.ravel(), value.m[rows].ravel(), value.r[rows].ravel(), strict=True):
                assert not abs(out - flint.arb(float(y))) > flint.arb(float(slack))
            pairs = [(c[i], x) for x in points(rng, c[i], r[i], 2)]
            near = points(rng, c[i], r[i], 2)  # the slope near a corner
            pairs += [(x, x + (c[i] - x) * rng.uniform(0, 1e-3, c[i].shape)) for x in near]
            for a, b in pairs:
                step = arb(b.ravel()) - arb(a.ravel())
                change = (run(network, b) - run(network, a))[:, None]  # [n, 1, q]
                centre, wide = (arb(a[rows]) for a in (J.m, J.r))  # [n, m, q]
                size = np.vectorize(abs, otypes=[object])(step)
                middle, reach = (step[None, :, None] * centre).sum(1), (size[None, :, None] * wide).sum(1)
                for y, z, slack in zip(change.ravel(), middle.ravel(), reach.ravel(), strict=True):
                    assert not abs(y - z) > slack, (seed, i)
        if kind == "affine":
            assert (J.r <= 1e-9 * (1 + np.abs(J.m).max())).all(), seed


def some_program(rng, n: int, d: int, per: str):
    """Sums of products, waves and kinks of the components; one output a token or one in all."""
    lines = [["x", j, c] for j in range(n) for c in range(d)] + [["const", (0.7).hex()]]
    for op in rng.choice(["add", "mul", "sin", "abs", "max", "cos", "sub", "square"], 6):
        i, k = (int(x) for x in rng.integers(0, len(lines), 2))
        lines.append(["mul", i, i] if op == "square" else [str(op), i, k] if op in targets.ARGUMENTS
                     and targets.ARGUMENTS[op] == 2 else [str(op), i])  # fmt: skip
    outputs = [int(x) for x in rng.integers(n * d, len(lines), n if per == "token" else 1)]
    entry = {"n": n, "d": d, "per": per, "components": 1, "lines": lines, "outputs": outputs}
    return targets.read_program(entry, "target")


def problem(m: SimpleNamespace, seed: int):
    rng = np.random.default_rng([seed, 2])
    n, d = SHAPES[seed % len(SHAPES)]
    program = some_program(rng, n, d, ("token", "sequence")[seed // 2 % 2])
    low = float(rng.uniform(-1, 0))
    return rng, m.branch.Problem(random_network(rng, n, d, 1), program, low, low + float(rng.uniform(0.1, 1)))


def error(p, x: np.ndarray):
    """The largest |T - f| at x [m], in Arb."""
    wanted = exactly(p.program, x)
    out = run(p.network, x.reshape(p.program.n, p.program.d)).ravel()
    if p.program.per == "sequence":
        wanted = wanted * len(out)
    return max((abs(a - b) for a, b in zip(out, wanted, strict=True)), key=float)


def check_bounds(m: SimpleNamespace, rounds: int = 40) -> None:
    """No point of a box has an error above its upper bound, and its centre none below the lower bound."""
    flint.ctx.prec = BITS
    for seed in range(rounds):
        rng, p = problem(m, seed)
        c = rng.uniform(p.low, p.high, (6, p.m))
        r = (p.high - p.low) * 10.0 ** rng.uniform(-7, -0.5, (6, 1)) * rng.uniform(0.1, 1, c.shape)
        if seed % 4 == 0:
            r *= 0
        with np.errstate(all="ignore"):
            found = m.branch.bounds(p, c - r, c + r)
        assert (found.lower <= found.upper).all()
        for i in range(len(c)):
            at, _ = m.branch.middle(c[i] - r[i], c[i] + r[i])
            assert not error(p, at) < flint.arb(float(found.lower[i]))
            for x in [at, *points(rng, c[i], r[i], 3)]:
                inside = np.clip(x, c[i] - r[i], c[i] + r[i])
                assert not error(p, inside) > flint.arb(float(found.upper[i])), seed


def check_cover(m: SimpleNamespace) -> None:
    """Boxes of a grid, and halves of halves, leave no gap; centres lie inside and radii reach the ends."""
    rng, p = problem(m, 7)
    for p.__dict__["low"], p.__dict__["high"] in ((-0.3, 0.9), (0.1, 0.1 + 2.0**-50), (-1e-300, 1e200)):
        low, high = p.grid(100)
        assert low.min() == p.low
        assert high.max() == p.high
        for _ in range(4):
            x = np.concatenate([rng.uniform(p.low, p.high, (300, p.m)), rng.choice([p.low, p.high], (20, p.m))])
            x = np.clip(np.concatenate([x, low[:50], high[:50]]), p.low, p.high)
            assert ((low <= x[:, None]) & (x[:, None] <= high)).all(axis=2).any(axis=1).all()
            c, r = m.branch.middle(low, high)
            assert ((low <= c) & (c <= high) & (r >= high - c) & (r >= c - low)).all()
            share = rng.random(low.shape)
            share[::7] = np.nan
            low, high = m.branch.halves(low, high, share)
            assert (low <= high).all()


def climb(p, rng, rounds: int = 60) -> float:
    """About the largest error, by samples and by climbing from the worst, in float64."""

    def errors(X):
        got = targets.enclose(p.program, X, X, False)
        wanted = (got.low + got.high).reshape(len(X), -1, 1) / 2
        h = p.network.embed(X.reshape(len(X), p.program.n, p.program.d), 0.0, REAL)
        stream = Stream(p.network, h.reshape(len(X), p.program.n, -1), REAL)
        z = p.network.attend(stream, np.full(len(X), p.program.n), False)
        t = p.network.bottleneck.apply(z, REAL)
        out = p.network.readout.apply(type(t)(np.maximum(t.m, 0), t.r), REAL).m.reshape(len(X), p.program.n, 1)
        return np.abs(out - wanted).reshape(len(X), -1).max(1)

    X = rng.uniform(p.low, p.high, (4000, p.m))
    X[:500] = rng.choice([p.low, p.high], (500, p.m))
    best = errors(X)
    keep = np.argsort(-best)[:64]
    X, best, reach = X[keep], best[keep], (p.high - p.low) / 8
    for _ in range(rounds):
        tried = np.clip(X + reach * rng.normal(size=X.shape), p.low, p.high)
        now = errors(tried)
        X, best = np.where((now > best)[:, None], tried, X), np.maximum(now, best)
        reach *= 0.85
    return float(best.max())


def check_search(m: SimpleNamespace, seeds=(1, 2, 5, 6, 11)) -> None:
    """A bound that is found holds against hill climbing, is proved again, is near; less than an error is not."""
    for seed in seeds:
        rng, p = problem(m, seed)
        bound = m.branch.smallest_bound(p, 0.3, 40_000)
        with np.errstate(all="ignore"):
            reached = climb(p, rng)
            assert reached <= bound * (1 + 1e-12), seed
            found = m.branch.search(p, bound, 40_000)
            assert not len(found.open[0])
            assert found.upper <= bound
            assert found.lower <= reached * (1 + 1e-3) + 1e-9
            assert bound <= 1.5 * reached + 1e-6, (seed, bound, reached)
            tight = m.branch.search(p, reached * 0.999, 40_000)
            assert len(tight.open[0]) or tight.lower > reached * 0.999
            few = m.branch.search(p, reached * 1.0001, 1100)
            assert few.boxes <= 1100


def perturbed(network: Network, X: np.ndarray, u: float, exp_error: float, sign) -> np.ndarray:
    """The network with every operation off by what an arithmetic allows; with u = 0 (almost) the real network."""
    T, (B, n, d) = network.tensors, X.shape

    def linear(x, W, b):
        y, size = x @ W + b, np.abs(x) @ np.abs(W) + np.abs(b)
        return y + u * sign(y.shape) * size

    def layers(z, all_of_them):
        for i, layer in enumerate(all_of_them):
            z = linear(z, full_matrix(layer), layer.bias)
            if i + 1 < len(all_of_them):
                z = np.maximum(z, 0)
        return z

    h = X.reshape(B * n, d)
    if "embedding.lift" in T:
        h = linear(h, T["embedding.lift"], T.get("embedding.bias", 0.0))
    if "embedding.positions" in T:
        h = h + np.tile(T["embedding.positions"][:n], (B, 1))
        h = h * (1 + u * sign(h.shape))
    h = layers(h, network.feedforward.layers)
    z = h
    for i in range(len(T["attention.W_Q"])):
        b_Q, b_K = (T[name][i] if name in T else 0.0 for name in ("attention.b_Q", "attention.b_K"))
        q, k = linear(h, T["attention.W_Q"][i], b_Q), linear(h, T["attention.W_K"][i], b_K)
        v = linear(h, T["attention.W_V"][i], 0.0).reshape(B, n, -1)
        q, k = q.reshape(B, n, -1), k.reshape(B, n, -1)
        a = q @ k.swapaxes(1, 2)
        a = a + u * sign(a.shape) * (np.abs(q) @ np.abs(k).swapaxes(1, 2))
        if network.causal:
            a = np.where(np.tri(n, dtype=bool), a, -np.inf)
        t = a - a.max(-1, keepdims=True)
        e = np.where(t > -np.inf, np.exp(t + sign(t.shape) * (exp_error + 3 * u * np.abs(np.maximum(t, -99)))), 0)
        p = e / e.sum(-1, keepdims=True)
        o = p @ v
        o = o + u * sign(o.shape) * (p @ np.abs(v))
        z = (z + linear(o.reshape(B * n, -1), T["attention.W_O"][i], 0.0)) * (1 + u * sign(h.shape))
    return layers(z, (network.bottleneck, *network.readout.layers)).reshape(B, -1)


def full_matrix(layer) -> np.ndarray:
    W = layer.weight
    if W.ndim == 2:
        return W
    g, a, b = W.shape
    full = np.zeros((g * a, g * b))
    for i in range(g):
        full[i * a : i * a + a, i * b : i * b + b] = W[i]
    return full


def single(**changed: np.ndarray) -> Network:
    """n = 2, d = 1: one head that averages with given weights; its average, times a weight, is all that is read."""
    one = np.ones((1, 1, 1))
    T = {f"attention.W_{name}": one for name in "QKV"} | {"attention.W_O": one}
    T |= {"readout.0.weight": np.ones((1, 1)), "readout.0.bias": np.full(1, 64.0)}
    T |= {"readout.1.weight": np.ones((1, 1)), "readout.1.bias": np.full(1, -64.0)}
    return build(T | {name.replace("__", "."): a for name, a in changed.items()})


#: Networks in which one kind of rounding matters most.
DELICATE = {
    "exp": single(attention__W_Q=np.full((1, 1, 1), 0.01), readout__0__bias=np.zeros(1)),
    "arguments of exp": single(attention__W_Q=np.full((1, 1, 1), 30.0), readout__0__bias=np.full(1, 2.0)),
    "logits": single(attention__b_K=np.full((1, 1), 2.0**14), attention__W_Q=np.full((1, 1, 1), 4.0)),
    "the stream": single(attention__W_O=np.full((1, 1, 1), 2.0**-20), readout__0__bias=np.zeros(1)),
    "positions": single(
        embedding__lift=np.ones((1, 1)), embedding__positions=np.full((2, 1), 2.0**10),
        attention__W_Q=np.zeros((1, 1, 1)), attention__W_O=np.full((1, 1, 1), 2.0**-20),
        readout__0__bias=np.ones(1),
    ),
    "the readout": single(readout__0__bias=np.full(1, 2.0**20), readout__1__bias=np.full(1, -(2.0**20))),
    "averages": single(attention__W_O=np.full((1, 1, 1), 2.0**10), attention__W_Q=np.zeros((1, 1, 1))),
}  # fmt: skip


def signs(rng: np.random.Generator, k: int):
    """Ways to choose the signs of all errors: at random, all alike, or one against the other."""
    if k % 4 == 0:
        return lambda shape: rng.choice([-1.0, 1.0], shape)
    if k % 4 == 3:
        return lambda shape: np.broadcast_to([1.0, -1.0], shape) if shape[-1] == 2 else np.ones(shape)
    return lambda shape: np.full(shape, (-1.0) ** k)


def check_rounding(m: SimpleNamespace, rounds: int = 30) -> None:
    """What an adversary can make of every operation stays within the bound, which is not much larger."""
    shapes = [SHAPES[i % 5] for i in range(rounds)]
    cases = [(random_network(np.random.default_rng([i, 3]), n, d, 1), n, d) for i, (n, d) in enumerate(shapes)]
    cases += [(network, 2, 1) for network in DELICATE.values()]
    for i, (network, n, d) in enumerate(cases):
        rng = np.random.default_rng([i, 4])
        c, r = rng.uniform(-1, 1, (4, n, d)), 10.0 ** rng.uniform(-3, -1, (4, 1, 1)) * np.ones((1, n, d))
        with np.errstate(all="ignore"):
            bound = m.rounding.largest_rounding(network, c, r, FLOAT32)
            wide = m.rounding.largest_rounding(network, c, r, FLOAT64)
        assert (wide <= bound * 2.0**-20).all()
        reached = np.zeros(4)
        for k in range(24):
            X = np.stack([points(rng, c[j], r[j], 1)[0] for j in range(4)]).astype(np.float32).astype(np.float64)
            off = perturbed(network, X, FLOAT32.u, FLOAT32.exp_error, signs(rng, k))
            real = perturbed(network, X, 0.0, 0.0, signs(rng, 1))
            reached = np.maximum(reached, np.abs(off - real).max(1))
        assert (reached <= bound + 1e-11).all(), (i, reached / bound)
        assert i < rounds or (reached > bound / 40).any(), (i, reached / bound)


CHECKS = (check_cover, check_two_kinks, check_slopes, check_bounds, check_rounding, check_search)
