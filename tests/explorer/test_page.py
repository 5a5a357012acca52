"""Pages in a real browser: the bits of `predict`, clicks and keys, narrow windows, hostile names."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import onelayer
from onelayer.explorer import page as pages
from onelayer.explorer.page import MODULES, read_static, script
from onelayer.model import Model
from onelayer.network.weights import Array
from tests.explorer.conftest import TEXT, Open

INPUTS = 1000
KINDS = ("words", "reals", "text", "function", "learner")
ANSWER = "batch => batch.map(tokens => document.getElementById('explorer').explorer.model.outputs(tokens))"
LEARN = "batch => batch.map(task => document.getElementById('explorer').explorer.model.learn(...task))"


def same_bits(found: Any, expected: Array) -> bool:
    array = np.ascontiguousarray(found, expected.dtype).reshape(expected.shape)
    whole = f"u{expected.dtype.itemsize}"
    return np.array_equal(array.view(whole), np.ascontiguousarray(expected).view(whole))


def text_of(page: Any, selector: str) -> list[str]:
    return [found.strip() for found in page.locator(selector).all_inner_texts()]


def test_words_are_answered_as_by_predict_to_the_bit(open_page: Open, words: Model) -> None:
    ids = np.random.default_rng(1).integers(0, len(words.interface.vocabulary or ()), (INPUTS, 3))
    ids[:32] = words.certificate.data["tokens"]  # type: ignore[union-attr]
    sequences = words.read([[words.interface.vocabulary[i] for i in row] for row in ids])  # type: ignore[index]
    found = open_page(words).evaluate(ANSWER, ids.tolist())
    assert same_bits(found, words.outputs(sequences, "reference"))
    assert same_bits(found[:32], words.outputs(sequences)[:32])
    assert np.array_equal(np.rint(found), np.rint(words.outputs(sequences)))  # also on the ramps between answers


def test_reals_are_answered_as_by_predict_to_the_bit(open_page: Open, reals: Model) -> None:
    X = np.random.default_rng(1).standard_normal((INPUTS, 3, 2)).astype(np.float32)
    stored = reals.certificate.data["tokens"]  # type: ignore[union-attr]
    X[: len(stored)] = stored
    found = open_page(reals).evaluate(ANSWER, X.tolist())
    assert same_bits(found, reals.outputs(reals.read(X), "reference"))
    assert same_bits(found[: len(stored)], reals.outputs(reals.read(stored)))
    assert np.array_equal(np.rint(found)[..., 0], reals.predict(X))  # also on the ramps between stored answers


def test_windows_of_a_text_are_answered_as_by_predict_to_the_bit(open_page: Open, text: Model) -> None:
    rng, stream = np.random.default_rng(1), np.array([256] * 20 + list(TEXT.encode()))
    windows = np.lib.stride_tricks.sliding_window_view(stream, 20)
    windows = np.concatenate([windows, rng.choice(stream, (INPUTS - len(windows), 20))])
    found = open_page(text).evaluate(ANSWER, windows.tolist())
    assert same_bits(found, text.outputs(text.read(windows))[:, -1:])
    assert same_bits(found[:9], text.outputs(text.read(windows[:9]), "reference")[:, -1:])


def test_a_function_is_answered_as_by_predict_to_the_bit(open_page: Open, function: Model) -> None:
    X = np.random.default_rng(1).random((INPUTS, 2, 1)).astype(np.float32)
    page = open_page(function)
    assert same_bits(page.evaluate(ANSWER, X.tolist()), function.predict(X))
    view = "document.getElementById('explorer').explorer.view"
    target = f"batch => batch.map(tokens => {view}.target(tokens))"
    wanted = function.interface.target.evaluate(X.astype(float))  # type: ignore[attr-defined]
    assert np.allclose(page.evaluate(target, X.tolist()), wanted, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_learner_answers_as_predict_does_to_the_bit(open_page: Open, dtype: Any) -> None:
    model = onelayer.learner("gd", d=2, steps=6, dtype=dtype)
    rng = np.random.default_rng(1)
    X, y, queries = (rng.uniform(-1, 1, shape) for shape in ((INPUTS, 4, 2), (INPUTS, 4, 1), (INPUTS, 1, 2)))
    tasks = [[a.tolist(), b.tolist(), c.tolist()] for a, b, c in zip(X, y, queries, strict=True)]
    found = open_page(model).evaluate(LEARN, tasks)
    expected = model.predict(X, y, queries, path="auto" if dtype == "float32" else "reference")
    assert expected.dtype == dtype
    assert same_bits(found, expected)


@pytest.mark.parametrize("name", ["ridge", "lasso", "logistic", "mesa", "kernel", "nesterov"])
def test_every_kind_of_learner_answers_as_predict_does_to_the_bit(open_page: Open, name: str) -> None:
    given: dict[str, Any] = {"steps": 4} if name in ("ridge", "lasso", "logistic", "nesterov") else {}
    given |= {"penalty": 0.1} if name in ("ridge", "lasso", "logistic") else {}
    given |= {"bandwidth": 0.5} if name == "kernel" else {}
    model = onelayer.learner(name, d=2, dtype="float32", **given)
    rng = np.random.default_rng(2)
    X, queries = (rng.uniform(-1, 1, shape) for shape in ((100, 5, 2), (100, 2, 2)))
    y = (X.sum(axis=2, keepdims=True) > 0).astype(float)
    tasks = [[a.tolist(), b.tolist(), c.tolist()] for a, b, c in zip(X, y, queries, strict=True)]
    assert same_bits(open_page(model).evaluate(LEARN, tasks), model.predict(X, y, queries))


def test_stepping_through_words(open_page: Open, words: Model) -> None:
    page = open_page(words)
    data = words.certificate.data["tokens"]  # type: ignore[union-attr]
    names = words.interface.vocabulary or ()
    for number in (0, 1):
        stored = [str(names[i]) for i in data[number]]
        assert [field.input_value() for field in page.locator(".word").all()] == stored
        assert text_of(page, ".token-box .answer") == words.predict([stored])[0].tolist()
        page.get_by_role("button", name="next stored sequence").click()
    page.get_by_label("Number of a stored sequence").fill("5")
    page.keyboard.press("Tab")
    other = [str(names[i]) for i in (data[4][0], data[4][1], data[7][2])]
    field = page.get_by_label("Token 3")
    field.fill(other[2])
    field.press("Enter")
    assert text_of(page, ".token-box .answer") == words.predict([other])[0].tolist()
    assert text_of(page, ".token-box.here .answer") == text_of(page, "[data-step=gadgets] .big")
    assert "a sequence of your own" in page.inner_text("[data-step=tokens]")
    field.fill("no such word")
    field.press("Enter")
    assert set(text_of(page, ".token-box .answer")) == {"not in the vocabulary"}
    assert page.locator("[data-step=context]").is_hidden()


def test_logits_are_answered_by_the_largest(open_page: Open) -> None:
    facts = [["river", "bank"], ["bank", "robber"], ["robber", "river"]]
    model = onelayer.memorize(facts, [["water", "shore"], ["money", "crime"], ["crime", "flood"]], logits=True)
    page = open_page(model)
    assert text_of(page, ".token-box .answer") == ["water", "shore"]
    assert page.evaluate(ANSWER, [[0, 1]]) == model.outputs(model.read([model.interface.vocabulary[:2]])).tolist()  # type: ignore[index]


def test_contexts_merge_as_the_temperature_changes(open_page: Open, words: Model) -> None:
    page = open_page(words)
    said, slider = "[data-step=temperature] .said", page.get_by_label("Temperature of attention")
    gap = words.ledger.number("answer_gap")
    assert f"at least {gap:.4g} apart; none has merged" in page.inner_text(said)
    before = page.locator("[data-step=context] .stored.merged").count()
    slider.focus()
    slider.press("End")
    page.wait_for_selector("[data-step=context] .stored.merged", state="attached")
    assert before == 0
    number = page.get_by_label("Number of a stored sequence")
    changed = 0
    for i in range(1, 9):
        number.fill(str(i))
        number.press("Enter")
        changed += page.locator(".token-box .answer.changed").count()
    assert changed > 0
    assert "nearer than float32 can tell" in page.inner_text(said)
    page.get_by_role("button", name="as compiled").click()
    assert "none has merged" in page.inner_text(said)
    assert page.locator(".token-box .answer.changed").count() == 0


def test_the_trained_twin_of_a_race_is_shown_with_what_it_merged(open_page: Open, words: Model) -> None:
    """The same word in two sequences, as `onelayer race --json` says it of a twin that merged them."""
    data = words.certificate.data["tokens"]  # type: ignore[union-attr]
    race = {
        "trained": {"right": 90, "answers": 96, "parameters": 648, "steps": 1000},
        "merged": [{"a": [0, 0], "b": [1, 0], "distance": 0.0}],
        "contexts": np.random.default_rng(0).standard_normal(data.shape).tolist(),
    }
    page = open_page(words, race=race)
    twin = page.locator("[data-step=twin]")
    assert "gets 90 of 96 answers right (measured)" in twin.inner_text()
    assert twin.locator(".stored.merged").count() == 2
    assert twin.locator(".stored").count() == data.size
    names = [str(words.interface.vocabulary[i]) for i in data[1]]  # type: ignore[index]
    twin.get_by_role("button", name=f"{names[0]} ({names[1]} {names[2]})").click()
    assert [field.input_value() for field in page.locator(".word").all()] == names
    with pytest.raises(onelayer.DataError, match="a race on the sequences of the page"):
        words.explore(race={**race, "contexts": [[0.0]]})
    with pytest.raises(onelayer.DataError, match="race DATA --json"):
        words.explore(race={})


def test_a_token_is_moved_inside_and_outside_its_radius(open_page: Open, reals: Model) -> None:
    page = open_page(reals)
    lens, said = page.get_by_label("Lens around the stored token"), page.locator("[data-step=drag] .said")
    stored = text_of(page, ".token-box .answer")
    assert said.get_attribute("data-inside") == "true"
    lens.focus()
    for _ in range(4):  # a fifth of the radius each
        lens.press("ArrowRight")
    assert "inside the certified radius" in said.inner_text()
    assert text_of(page, ".token-box .answer") == stored
    lens.press("Shift+ArrowUp")
    assert said.get_attribute("data-inside") == "false"
    assert "nothing is promised" in said.inner_text()
    plane = page.get_by_label("Plane of tokens").bounding_box()
    page.mouse.move(plane["x"] + 40, plane["y"] + 40)
    page.mouse.down()
    page.mouse.move(plane["x"] + 80, plane["y"] + 60)
    page.mouse.up()
    moved = [
        [float(field.input_value()) for field in box.locator("input").all()]
        for box in page.locator(".vector").all()
    ]
    assert not np.allclose(moved[0], reals.certificate.data["tokens"][0, 0], atol=0.1)  # type: ignore[union-attr]


def test_a_text_is_recited_step_by_step(open_page: Open, text: Model) -> None:
    page = open_page(text)
    prompt, given = page.get_by_label("The text so far"), TEXT[:12]
    assert prompt.input_value() == given
    for k in range(1, 6):
        page.get_by_role("button", name="next token").click()
        assert prompt.input_value() == TEXT[: 12 + k]
    page.get_by_role("button", name="recite").click()
    page.get_by_text("the end", exact=True).wait_for()
    assert prompt.input_value() == TEXT
    prompt.fill("the Quick")
    assert "Q does not occur in the text" in page.inner_text("[data-step=text] .said")


def test_a_text_of_byte_pairs_is_typed_in_its_own_tokens(open_page: Open) -> None:
    """Words, numbers, spaces and letters of two bytes are merged as the tokenizer merges them."""
    text = (
        "It's 1984,  and it isn't 1985: the naïve don't  know\tthat 19 and 84 make 1984.\n\nThey'll know in 1985. "
    )
    model = onelayer.memorize_text(text, context=6, tokenizer="bpe", vocabulary_size=320)
    page = open_page(model)
    rng = np.random.default_rng(0)
    ends = np.sort(rng.integers(0, len(text) + 1, (200, 2)), axis=1)
    passages = [text, text[:-1], "the\u0085 1984\ufeff", *(text[start:end] for start, end in ends.tolist())]
    encode = "texts => texts.map(text => document.getElementById('explorer').explorer.view.encode(text))"
    assert page.evaluate(encode, passages) == [model.interface.tokens.encode(one).tolist() for one in passages]
    prompt = page.get_by_label("The text so far")
    prompt.fill(text[:30])
    page.get_by_role("button", name="next token").click()
    assert prompt.input_value() == text[:30] + model.generate(text[:30], 1).decode()


def test_a_function_is_drawn_with_its_bound(open_page: Open, function: Model) -> None:
    page = open_page(function)
    slider = page.get_by_label("Token 2, component 1")
    slider.focus()
    slider.press("Home")
    tokens = page.evaluate("document.getElementById('explorer').explorer.view.tokens")
    assert tokens[1] == [0]
    answers = function.predict(np.array([tokens], np.float32))[0, :, 0]
    shown = [row.split("\t") for row in page.inner_text("[data-step=answers] tbody").splitlines()]
    assert np.allclose([float(row[1]) for row in shown], answers, rtol=1e-3)
    assert f"{function.interface.error_bound:.4g}" in page.inner_text("[data-step=answers]")  # type: ignore[attr-defined]
    assert page.locator("[data-step=curve] .band").count() == 2  # and in the legend


def test_examples_of_a_learner_can_be_changed(open_page: Open, learner: Model) -> None:
    page = open_page(learner)
    field = page.get_by_label("y 1, component 1", exact=True)
    field.fill("0.75")
    field.press("Tab")
    given = page.evaluate(
        "(({X, Y, queries}) => [X, Y, queries])(document.getElementById('explorer').explorer.view)"
    )
    assert given[1][0] == [0.75]
    shown = [row.split("\t")[1] for row in page.inner_text("[data-step=answers] tbody").splitlines()]
    assert np.allclose([float(x) for x in shown], np.ravel(learner.predict(*given)), rtol=1e-3)
    assert page.locator("[data-step=loops] polyline").count() == len(given[2])


@pytest.mark.parametrize("kind", KINDS)
def test_a_narrow_window_shows_all_of_it(open_page: Open, kind: str, request: pytest.FixtureRequest) -> None:
    page = open_page(request.getfixturevalue(kind), width=400, color_scheme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement !== document.body")


def test_hostile_names_are_text(open_page: Open) -> None:
    attack = [
        "<img src=x onerror=window.broken=1>",
        "</script><script>window.broken=1</script>",
        "\u202egnp",
        "__proto__",
    ]
    model = onelayer.memorize(
        [attack[:2], attack[2:]], [[f"<b>{name}</b>" for name in attack[:2]], ["constructor", "'\""]]
    )
    page = open_page(model)
    assert page.locator(".word").first.input_value() == attack[0]
    assert text_of(page, ".token-box .answer")[0] == f"<b>{attack[0]}</b>"
    page.get_by_role("button", name="next stored sequence").click()
    assert page.locator(".word").first.input_value() == "\\u202egnp"
    assert page.evaluate("window.broken") is None
    assert page.locator("#explorer img, #explorer script, #explorer b:has-text('onerror')").count() == 0


def test_the_page_of_the_demo_is_small(words: Model) -> None:
    assert len(words.explore().html.encode()) <= 300_000


def test_modules_make_one_script() -> None:
    """Each top-level name is there once, and whatever a module imports comes before it."""
    names = re.findall(r"^(?:async )?(?:const|let|function\*?|class) (\w+)", script(), re.MULTILINE)
    assert len(names) == len(set(names))
    for i, module in enumerate(MODULES):
        needed = re.findall(r'^import .* from "\./(\w+)\.js";', read_static(f"{module}.js"), re.MULTILINE)
        assert set(needed) <= set(MODULES[:i])
    assert "import " not in re.sub(r"//.*", "", script())
    written = {path.name for path in (pages.resources.files("onelayer.explorer") / "static").iterdir()}
    assert written == {f"{module}.js" for module in MODULES} | {"style.css"}


def test_nothing_becomes_markup() -> None:
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", script())


def test_a_notebook_shows_the_page_in_a_frame_of_its_own(words: Model) -> None:
    shown = words.explore()._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert 'sandbox="allow-scripts"' in shown
    assert "<script" not in shown
