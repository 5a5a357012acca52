"""Batches and pieces: every row once, no padding that nobody needs, the same for the same seed."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from onelayer.lab.batches import TOKENS, Batches, pieces, take

lengths_of = st.lists(st.integers(1, 9), min_size=1, max_size=60)


def data_of(lengths: list[int] | None, count: int = 0) -> tuple:
    """Rows whose tokens say which row they are of."""
    count = count or len(lengths or ())
    tokens = torch.arange(count)[:, None].expand(count, 9)
    return tokens, 2 * tokens, None if lengths is None else torch.tensor(lengths)


@given(lengths_of, st.integers(1, 20), st.integers(0, 3), st.booleans())
def test_between_two_shuffles_every_row_is_drawn_at_most_once(lengths, size, seed, ragged) -> None:
    batches = Batches(len(lengths), size, torch.tensor(lengths) if ragged else None, seed)
    if size >= len(lengths):
        assert batches.draw() == slice(None)
        return
    for _ in range(2):
        drawn = [batches.draw() for _ in range(len(lengths) // size)]
        assert all(len(rows) == size for rows in drawn)
        assert len(set(torch.cat(drawn).tolist())) == size * len(drawn)
        assert not batches.waiting


def test_rows_are_shuffled_anew_and_by_the_seed_alone() -> None:
    def draws(seed: int) -> list:
        batches = Batches(64, 8, None, seed)
        return [batches.draw().tolist() for _ in range(16)]

    assert draws(1) == draws(1) != draws(2)
    assert sorted(draws(1)[:8]) != sorted(draws(1)[8:])


def test_sequences_of_similar_length_lie_in_one_batch_and_batches_come_in_any_order() -> None:
    lengths = torch.arange(1, 65)[torch.randperm(64, generator=torch.Generator().manual_seed(0))]
    batches = Batches(64, 8, lengths, 0)
    drawn = [lengths[batches.draw()] for _ in range(8)]
    assert all(int(batch.max() - batch.min()) == 7 for batch in drawn)
    assert [int(batch[0]) for batch in drawn] != sorted(int(batch[0]) for batch in drawn)


def test_taking_leaves_out_padding_that_no_row_needs() -> None:
    data = data_of([2, 9, 3])
    tokens, answers, lengths = take(data, torch.tensor([0, 2]), "token")
    assert tokens.tolist() == [[0, 0, 0], [2, 2, 2]]
    assert answers.tolist() == [[0, 0, 0], [4, 4, 4]]
    assert lengths.tolist() == [2, 3]
    assert take(data, torch.tensor([0, 2]), "last")[1].shape == (2, 9)  # no answers of tokens: nothing to cut


@pytest.mark.parametrize("ragged", [True, False])
@given(lengths=lengths_of, outputs=st.sampled_from([1, 10**5, 10**7]))
def test_pieces_are_all_rows_once(ragged, lengths, outputs) -> None:
    found = list(pieces(data_of(lengths if ragged else None, len(lengths)), outputs, "token"))
    rows = torch.cat([tokens[:, 0] for tokens, _, _ in found])
    assert sorted(rows.tolist()) == list(range(len(lengths)))
    for tokens, answers, own in found:
        assert answers.equal(2 * tokens)
        assert own is None or tokens.shape[1] == int(own.max())


def test_a_piece_has_few_tokens() -> None:
    found = list(pieces(data_of(None, 2000), 2, "token"))
    assert len(found) > 1
    assert all(tokens.numel() <= TOKENS for tokens, _, _ in found)
