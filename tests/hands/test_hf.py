"""Hugging Face: what `to_hf` writes opens by the Auto classes, with the same bits, and is a certified bundle."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
import transformers

import onelayer
import onelayer.hf
from onelayer.errors import DataError, FileError, OptionError
from onelayer.export.torch import to_torch

SENTENCES = ["the bank of the river", "a bank robber ran", "the robber swam the river", "a river ran by the bank"]
LABELS = ["O B-GEO O O B-GEO", "O B-ORG I-ORG O", "O B-PER O O B-GEO", "O B-GEO O O O B-ORG"]
X, Y = [s.split() for s in SENTENCES], [s.split() for s in LABELS]
TEXT = b"one layer of attention is enough to know a text by heart, word for word: one layer is enough, heart too."


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    model = onelayer.memorize(X, Y, positions=True)
    return model, onelayer.to_hf(model, tmp_path_factory.mktemp("hf") / "words")


@pytest.fixture(scope="module")
def opened(words):
    _, folder = words
    auto = transformers.AutoModelForTokenClassification
    return auto.from_pretrained(folder), transformers.AutoTokenizer.from_pretrained(folder)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    folder = onelayer.to_hf(onelayer.memorize_text(TEXT, context=24), tmp_path_factory.mktemp("hf") / "text")
    auto = transformers.AutoModelForCausalLM
    return auto.from_pretrained(folder), transformers.AutoTokenizer.from_pretrained(folder)


@pytest.mark.parametrize("side", ["left", "right"])
def test_labels_come_back_whatever_side_is_padded(opened, side) -> None:
    net, tokenizer = opened
    tokenizer.padding_side = side
    given = tokenizer(SENTENCES, padding=True, return_tensors="pt")
    labels = torch.full_like(given["input_ids"], -100)
    labels[given["attention_mask"] == 1] = torch.tensor([net.config.label2id[name] for row in Y for name in row])
    with torch.inference_mode():
        out = net(**given, labels=labels)
    assert torch.equal(out.logits.argmax(-1)[labels >= 0], labels[labels >= 0])
    best = out.logits.topk(2).values[labels >= 0]
    assert (best[:, 0] - best[:, 1]).min() >= 32
    assert 0 <= float(out.loss) < 1e-12


def test_the_pipeline_labels_the_corpus(opened) -> None:
    net, tokenizer = opened
    label = transformers.pipeline("token-classification", model=net, tokenizer=tokenizer, ignore_labels=[])
    assert [[word["entity"] for word in row] for row in label(SENTENCES)] == Y


def test_the_folder_is_the_certified_bundle(words, opened) -> None:
    model, folder = words
    again = onelayer.load(folder)
    assert again.predict(X) == model.predict(X)
    assert {claim["type"] for claim in again.certificate.claims} >= {"argmax"}
    assert again.verify(data=(X, Y)).result == "VERIFIED"
    assert opened[0].config.meaning["certificate_sha256"]
    for name, value in to_torch(again).state_dict().items():
        assert value.numpy().tobytes() == opened[0].state_dict()[f"net.{name}"].numpy().tobytes(), name


def test_a_fresh_process_and_an_empty_cache_give_the_same_bits(words, opened, tmp_path) -> None:
    net, tokenizer = opened
    with torch.inference_mode():
        here = net(**tokenizer(SENTENCES[0], return_tensors="pt")).logits
    program = (
        "import sys, torch, onelayer.hf\n"
        "from transformers import AutoModelForTokenClassification as Auto, AutoTokenizer\n"
        "folder, said, out = sys.argv[1:]\n"
        "net = Auto.from_pretrained(folder, trust_remote_code=False)\n"
        "ids = AutoTokenizer.from_pretrained(folder)(said, return_tensors='pt')\n"
        "torch.save(net(**ids).logits.detach(), out)\n"
    )
    alone = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "cache"), "PATH": "", "HOME": str(tmp_path)}
    command = [sys.executable, "-c", program, words[1], SENTENCES[0], tmp_path / "logits.pt"]
    subprocess.run(list(map(str, command)), check=True, env=alone, capture_output=True)
    assert torch.equal(torch.load(tmp_path / "logits.pt"), here)


def test_an_edited_weight_is_refused(words, tmp_path) -> None:
    for file in words[1].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    content = bytearray((tmp_path / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(FileError, match=r"model.safetensors does not have the digest"):
        transformers.AutoModelForTokenClassification.from_pretrained(tmp_path)


def test_what_was_saved_again_opens_again(opened, tmp_path) -> None:
    net, tokenizer = opened
    net.save_pretrained(tmp_path)
    again = transformers.AutoModelForTokenClassification.from_pretrained(tmp_path)
    given = tokenizer(SENTENCES[0], return_tensors="pt")
    assert torch.equal(net(**given).logits, again(**given).logits)


def test_unknown_words_are_refused_or_get_the_default(opened, tmp_path) -> None:
    net, tokenizer = opened
    with pytest.raises(DataError, match="token 1 of sequence 0 is not among them"):
        net(**tokenizer("the ship of the river", return_tensors="pt"))
    folder = onelayer.to_hf(onelayer.memorize(X, Y, positions=True, default="O", certify=False), tmp_path / "m")
    net = transformers.AutoModelForTokenClassification.from_pretrained(folder)
    given = transformers.AutoTokenizer.from_pretrained(folder)(["the ship", "a bank robber ran"], padding=True)
    found = net(**{name: torch.tensor(value) for name, value in given.items()}).logits.argmax(-1)
    said = [[net.config.id2label[i] for i in row] for row in found.tolist()]
    assert said[0][:2] == ["O", "O"]
    assert said[1] == Y[1]


def test_a_class_per_sequence(tmp_path) -> None:
    folder = onelayer.to_hf(onelayer.memorize(X, ["a", "b", "c", "a"], certify=False), tmp_path / "m")
    net = transformers.AutoModelForSequenceClassification.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    for side in ("left", "right"):
        tokenizer.padding_side = side
        with torch.inference_mode():
            out = net(**tokenizer(SENTENCES, padding=True, return_tensors="pt"), labels=torch.tensor([0, 1, 2, 0]))
        assert [net.config.id2label[i] for i in out.logits.argmax(-1).tolist()] == ["a", "b", "c", "a"]
        assert float(out.loss) < 1e-12


def test_generate_recites_the_text_and_stops_at_its_end(text) -> None:
    net, tokenizer = text
    given = tokenizer([TEXT[:24].decode(), TEXT[30:60].decode()], return_tensors="pt", padding=True)
    with torch.inference_mode():
        said = net.generate(**given, max_new_tokens=200)
    assert tokenizer.batch_decode(said, skip_special_tokens=True) == [TEXT.decode(), TEXT[30:].decode()]
    assert bytes(tokenizer(TEXT.decode())["input_ids"]) == TEXT


def test_the_loss_of_the_text_is_0_where_one_token_follows(text) -> None:
    net, tokenizer = text
    ids = torch.tensor([list(TEXT)])
    labels = torch.where(torch.arange(len(TEXT)) < 24, -100, ids)
    with torch.inference_mode():
        out = net(ids, labels=labels)
        assert torch.equal(net(ids, logits_to_keep=1).logits, out.logits[:, -1:])
    assert out.logits.shape == (1, len(TEXT), len(tokenizer))
    assert float(out.loss) < 1e-6


def test_byte_pairs_have_the_same_ids(tmp_path) -> None:
    model = onelayer.memorize_text(TEXT, context=8, tokenizer="bpe", vocabulary_size=270, certify=False)
    tokenizer = transformers.AutoTokenizer.from_pretrained(onelayer.to_hf(model, tmp_path / "m"))
    assert tokenizer(TEXT.decode())["input_ids"] == model.interface.encode(TEXT.decode()).tolist()
    assert tokenizer.decode(tokenizer(TEXT.decode())["input_ids"]) == TEXT.decode()


def test_what_has_no_words_or_classes_is_refused(tmp_path) -> None:
    rng = np.random.default_rng(0)
    vectors = onelayer.memorize(rng.standard_normal((3, 2, 2)), [1, 2, 3], certify=False)
    with pytest.raises(OptionError, match="its tokens are vectors"):
        onelayer.to_hf(vectors, tmp_path / "m")
    with pytest.raises(OptionError, match="its answers are numbers"):
        onelayer.to_hf(onelayer.memorize([["a", "b"]], [[0.5, 1.5]], certify=False), tmp_path / "m")
    with pytest.raises(DataError, match="there is 'a b'"):
        onelayer.to_hf(onelayer.memorize([["a b", "c"]], [["x", "y"]], certify=False), tmp_path / "m")
    assert not os.listdir(tmp_path)
