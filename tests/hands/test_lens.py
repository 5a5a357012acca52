"""TransformerLens and nnsight: hook points by name; interventions act where the mechanism says, nowhere else."""

from __future__ import annotations

import nnsight
import numpy as np
import pytest
import torch
from transformer_lens import patching

import onelayer
from onelayer.errors import OptionError
from onelayer.export.torch import to_torch
from onelayer.model import save

rng = np.random.default_rng(5)
X, Y = rng.integers(0, 20, (40, 4)), rng.integers(0, 6, (40, 4))


@pytest.fixture(scope="module")
def hooked():
    return onelayer.to_transformer_lens(onelayer.memorize(X, Y, positions=True, certify=False))


@pytest.fixture(scope="module")
def tokens(hooked):
    return hooked.to_tokens(X)


def pair(hooked, tokens) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Two sequences with other answers everywhere, and which they are."""
    first = next(i for i in range(1, len(Y)) if (Y[i] != Y[0]).all())
    classes = {name: i for i, name in enumerate(hooked.model.form.classes)}
    numbers = torch.tensor([[classes[y] for y in row] for row in (Y[0].tolist(), Y[first].tolist())])
    return tokens[:1], tokens[first : first + 1], numbers[0], numbers[1]


def difference(logits: torch.Tensor, mine: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """At every place: the logit of the first sequence's answer less that of the second's."""
    places = torch.arange(len(mine))
    return logits[0, places, mine] - logits[0, places, other]


def test_answers_and_names_and_values(hooked, tokens) -> None:
    logits, cache = hooked.run_with_cache(tokens)
    assert (np.array(hooked.model.form.classes)[logits.argmax(-1)] == Y).all()
    assert torch.equal(logits, to_torch(hooked.model)(tokens))
    trace = hooked.model.trace(X)
    same = {"hook_embed": "embedded", "blocks.0.hook_resid_post": "context", "readout.logits.hook_0": "output"}
    same |= {hook: value for hook, value in hooked._values.items() if value.startswith(("readout", "feedforward"))}
    for hook, value in same.items():
        scale = float(np.abs(trace[value]).max())  # of which sums are rounded
        np.testing.assert_allclose(cache[hook], trace[value], rtol=0, atol=1e-6 * scale, err_msg=hook)
        assert len(hooked.unit_names(hook)) == cache[hook].shape[-1]
    np.testing.assert_allclose(cache["blocks.0.attn.hook_pattern"][:, 0], trace["head0.attention"], rtol=1e-5)
    assert set(cache) == set(hooked.hook_dict)
    with pytest.raises(OptionError, match=r"readout\.logits\.hook_0"):
        hooked.unit_names("hook_nothing")


def test_a_head_that_is_ablated_is_missed(hooked, tokens) -> None:
    """Contexts cannot be told apart without it; and what the head does not write to stays as it was, to the bit."""
    logits, cache = hooked.run_with_cache(tokens)

    def ablate(value, hook):  # noqa: ARG001
        return torch.zeros_like(value)

    with hooked.hooks(fwd_hooks=[("blocks.0.attn.hook_z", ablate)]):
        without, after = hooked.run_with_cache(tokens)
    assert (without.argmax(-1) == logits.argmax(-1)).double().mean() < 0.5
    written = torch.tensor(hooked.model.transformer.attention.W_O[0]).any(0)
    changed = (after["blocks.0.hook_resid_post"] != cache["blocks.0.hook_resid_post"]).flatten(0, 1)
    assert changed[:, written].any(0).all()
    assert not changed[:, ~written].any()


def test_a_patch_acts_at_its_place_and_nowhere_else(hooked, tokens) -> None:
    """The readout looks at one place: the stream of a place, from another sequence, brings its answer."""
    clean, corrupted, mine, other = pair(hooked, tokens)
    _, cache = hooked.run_with_cache(clean)
    before, best = difference(hooked(corrupted), mine, other), difference(hooked(clean), mine, other)
    for place in range(4):

        def patch(value, hook, place=place):
            value[:, place] = cache[hook.name][:, place]
            return value

        patched = hooked.run_with_hooks(corrupted, fwd_hooks=[("blocks.0.hook_resid_post", patch)])
        after = difference(patched, mine, other)
        expected = before.clone()
        expected[place] = best[place]
        assert torch.equal(after, expected)
    assert (best > 0).all()
    assert (before < 0).all()


def test_the_functions_of_its_module_patching_work(hooked, tokens) -> None:
    clean, corrupted, mine, other = pair(hooked, tokens)
    _, cache = hooked.run_with_cache(clean)

    def at_2(logits: torch.Tensor) -> torch.Tensor:
        return difference(logits, mine, other)[2]

    base = at_2(hooked(corrupted))
    found = patching.get_act_patch_attn_out(hooked, corrupted, cache, at_2)[0]  # [place]
    assert (found[[0, 1, 3]] == base).all()
    assert (found[2] != base).all()
    stream = patching.get_act_patch_resid_pre(hooked, corrupted, cache, at_2)[0]
    assert (stream != base).any()  # through attention, other places count as well


def test_padding_and_gradients(hooked, tokens) -> None:
    wide = torch.cat([tokens, tokens[:, :1]], 1)
    mask = torch.tensor([[1, 1, 1, 1, 0]]).expand(len(wide), -1)
    assert torch.equal(hooked(wide, attention_mask=mask)[:, :4], hooked(tokens))


def test_nnsight_sees_and_replaces_attention_patterns(tokens, hooked) -> None:
    net = nnsight.NNsight(to_torch(hooked.model))
    with net.trace(tokens):
        pattern = net.attention.pattern.output.save()
    assert torch.equal(pattern, hooked.run_with_cache(tokens)[1]["blocks.0.attn.hook_pattern"])
    with net.trace(tokens):
        net.attention.pattern.output = torch.zeros_like(net.attention.pattern.output)
        changed = net.output.save()
    assert not torch.equal(changed, hooked(tokens))


def test_nnsight_leaves_our_save_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It gives every object a method of that name."""
    assert hasattr(object, "save")
    monkeypatch.delitem(vars(onelayer), "save", raising=False)  # as before it is first asked for
    assert onelayer.save is save


def test_loops_are_refused() -> None:
    with pytest.raises(OptionError, match="a model of one layer"):
        onelayer.to_transformer_lens(onelayer.learner("gd", d=2, steps=2))
