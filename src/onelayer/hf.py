"""Hugging Face: a model as a folder that `from_pretrained` opens, with its tokenizer and its certificate inside.

    import onelayer.hf                                     # registers the classes: no remote code is trusted
    from transformers import AutoModelForTokenClassification, AutoTokenizer

    to_hf(model, "folder")                                 # which is still a bundle: `onelayer verify folder`
    net, words = AutoModelForTokenClassification.from_pretrained("folder"), AutoTokenizer.from_pretrained("folder")

The weights that `from_pretrained` reads are the file that the certificate is about, and their digest is compared.
Classes become logits (`with_logits`). A word that the model does not know makes its whole sequence unknown: it gets
the model's default, or an error where there is none.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import numpy as np

from onelayer.compile.logits import with_logits
from onelayer.errors import DataError, FileError, MissingExtraError, OptionError
from onelayer.export import bundle
from onelayer.export.meaning import PREFIX, meaning_of
from onelayer.interfaces import NextToken
from onelayer.model import Model
from onelayer.network import Transformer, structure
from onelayer.problems.tokens import LETTERS, PairTokens

try:
    import tokenizers
    import torch
    import transformers
    from torch import Tensor
    from transformers.modeling_outputs import CausalLMOutput, SequenceClassifierOutput, TokenClassifierOutput
except ImportError as missing:
    raise MissingExtraError("to_hf", "transformers", "hf") from missing

from onelayer.export.torch import OneLayer, to_torch

Head = Literal["TokenClassification", "SequenceClassification", "CausalLM"]
#: Names of the tokens that no text has; each gets more brackets if the vocabulary has it.
UNKNOWN, PADDING, EDGE = "[UNK]", "[PAD]", "<|text|>"


def to_hf(model: Model, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Write a folder that `AutoModelFor...from_pretrained` opens: weights, names and certificate of the bundle, and
    beside them the configuration and the tokenizer. Answers must be classes, or the model one of a text."""
    head = head_of(model)
    model = model if head == "CausalLM" else with_logits(model)
    words = tokenizer_of(model)
    folder = model.save(path, overwrite=overwrite)
    config_of(model, head, words).save_pretrained(folder)
    words.save_pretrained(folder)
    if head == "CausalLM":
        edge = words.convert_tokens_to_ids(words.eos_token)
        transformers.GenerationConfig(
            use_cache=False, do_sample=False, bos_token_id=edge, eos_token_id=edge, pad_token_id=edge
        ).save_pretrained(folder)
    return folder


def head_of(model: Model) -> Head:
    """Which of the Auto classes opens the folder."""
    if isinstance(model.interface, NextToken):
        return "CausalLM"
    if model.transformer.vocabulary_size is None or model.form.classes is None:
        found = "its tokens are vectors" if model.transformer.vocabulary_size is None else "its answers are numbers"
        needs = "a model of words or ids whose answers are classes, or of a text, for Hugging Face"
        raise OptionError("data", needs, found, "Export it with to_torch or to_onnx.")
    if model.transformer.repeat > 1 or model.transformer.further:
        raise OptionError("data", "a model of one layer", "it has loops", "Export it with to_torch.")
    return "TokenClassification" if model.form.scope == "token" else "SequenceClassification"


class OneLayerConfig(transformers.PreTrainedConfig):  # type: ignore[misc]
    """Shapes and kinds of all weights, so that a network can be made before they are read; names of classes."""

    model_type = "onelayer"

    def __init__(
        self,
        structure: dict[str, Any] | None = None,
        causal: bool = False,
        shapes: dict[str, list[int]] | None = None,
        known_tokens: int = 0,
        context: int | None = None,
        at_last: bool = False,
        default_class: int | None = None,
        meaning: dict[str, str] | None = None,
        arithmetic: str = "",
        **others: Any,
    ) -> None:
        self.structure, self.causal, self.shapes = structure or {}, causal, shapes or {}
        self.known_tokens, self.context, self.at_last = known_tokens, context, at_last
        self.default_class, self.meaning, self.arithmetic = default_class, meaning or {}, arithmetic
        super().__init__(**others)


def config_of(model: Model, head: Head, words: Any) -> OneLayerConfig:
    classes, text, transformer = model.form.classes, model.interface, model.transformer
    names = {} if classes is None else {i: str(name) for i, name in enumerate(classes)}
    labels: dict[str, Any] = (
        {"id2label": names, "label2id": {name: i for i, name in names.items()}} if names else {}
    )
    default = None if classes is None or text.default is None else int(np.rint(text.default[0]))
    meaning = {key.removeprefix(PREFIX): value for key, value in meaning_of(model).items()}
    kept = ("version", "model", "reading", "certificate_sha256", "weights_sha256")
    return OneLayerConfig(
        structure=structure.describe_structure(transformer),
        causal=transformer.attention.causal,
        shapes={name: list(array.shape) for name, array in transformer.tensors()},
        known_tokens=transformer.vocabulary_size or 0,
        context=text.context if isinstance(text, NextToken) else None,
        at_last=model.form.scope == "last",
        default_class=default,
        meaning={key: meaning[key] for key in kept if key in meaning},
        arithmetic=model.arithmetic,
        architectures=[f"OneLayerFor{head}"],
        dtype=str(transformer.dtype),
        vocab_size=len(words),
        pad_token_id=words.pad_token_id,
        eos_token_id=words.eos_token_id,
        use_cache=False,
        hidden_size=int(transformer.attention.W_Q.shape[1]),
        num_hidden_layers=1,
        num_attention_heads=transformer.attention.heads,
        **labels,
    )


class OneLayerPreTrained(transformers.PreTrainedModel):  # type: ignore[misc]
    """What the three heads share: the network, and how it is read from a bundle."""

    config_class = OneLayerConfig
    base_model_prefix = "net"

    def __init__(self, config: OneLayerConfig) -> None:
        super().__init__(config)
        runs = str(config.dtype or "float32").removeprefix("torch.")
        held = "float64" if runs == "float64" else "float32"
        empty = {name: np.ones(shape, held) for name, shape in config.shapes.items()}
        network = structure.rebuild_network(config.structure, empty, config.causal)
        self.net = OneLayer(network, config.arithmetic).to(getattr(torch, runs))
        self.post_init()

    @classmethod
    def from_pretrained(cls, path: Any, *given: Any, **options: Any) -> Any:
        """From a folder that `to_hf` wrote, whose digests are compared; or that `save_pretrained` wrote."""
        if not Path(path).is_dir():
            remedy = "Download it first, say with huggingface_hub.snapshot_download."
            raise FileError("file", "a folder that to_hf wrote", f"{path} is another", remedy)
        if not (Path(path) / bundle.DESCRIPTION).is_file():
            return super().from_pretrained(path, *given, **options)
        state = _state(bundle.read(path, proof=False).transformer)
        config = options.pop("config", None) or OneLayerConfig.from_pretrained(path)
        found = super().from_pretrained(None, *given, config=config, state_dict=state, **options)
        if found.can_generate():
            found.generation_config = transformers.GenerationConfig.from_pretrained(path)
        return found

    def outputs(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        """Logits [N, n, C] as the network gives them; those of the default where a sequence has unknown words."""
        known = self.config.known_tokens
        unknown = ids >= known if mask is None else (ids >= known) & (mask != 0)
        out: Tensor = self.net(ids.masked_fill(ids >= known, 0), attention_mask=mask)
        if not bool(unknown.any()):
            return out
        if self.config.default_class is None:
            row, place = (int(x) for x in unknown.nonzero()[0])
            found = f"token {place} of sequence {row} is not among them"
            raise DataError("data", "words that the model knows", found, "Give stored words, or build a default.")
        default = torch.zeros_like(out[0, 0])
        default[self.config.default_class] = MARGIN
        return torch.where(unknown.any(1)[:, None, None], default, out)


#: Windows of a text that are asked at a time.
WINDOWS = 256
#: By so much the default exceeds the other classes where a word is unknown.
MARGIN = 32.0


def _state(transformer: Transformer) -> dict[str, Tensor]:
    return {f"net.{name}": value for name, value in to_torch(transformer).state_dict().items()}


def _loss(logits: Tensor, labels: Tensor | None) -> Tensor | None:
    if labels is None:
        return None
    return torch.nn.functional.cross_entropy(logits.flatten(0, -2), labels.flatten())


class OneLayerForTokenClassification(OneLayerPreTrained):
    """A class for every token; labels of -100 do not count."""

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, labels: Tensor | None = None, **_: Any
    ) -> Any:
        logits = self.outputs(input_ids, attention_mask)
        return TokenClassifierOutput(loss=_loss(logits, labels), logits=logits)


class OneLayerForSequenceClassification(OneLayerPreTrained):
    """A class for every sequence, read off at its last token."""

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, labels: Tensor | None = None, **_: Any
    ) -> Any:
        every = self.outputs(input_ids, attention_mask)
        places = torch.arange(input_ids.shape[1], device=input_ids.device)
        inside = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        last = (places * (inside != 0)).argmax(1)
        logits = every[torch.arange(len(every), device=every.device), last]
        return SequenceClassifierOutput(loss=_loss(logits, labels), logits=logits)


class OneLayerForCausalLM(OneLayerPreTrained, transformers.GenerationMixin):  # type: ignore[misc]
    """The next token of a text, from the last ``context`` of them; after its end, or where it is left, the end of
    text. Logits are logs of the probabilities that the network gives."""

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        logits_to_keep: int = 0,
        **_: Any,
    ) -> Any:
        edge, width = self.config.known_tokens - 1, self.config.context
        ids = input_ids if attention_mask is None else input_ids.masked_fill(attention_mask == 0, edge)
        before = ids.new_full((len(ids), width - 1), edge)
        windows = torch.cat([before, ids], 1).unfold(1, width, 1)[:, -logits_to_keep:]  # [N, n, context]
        parts = [self.after(some) for some in torch.split(windows.flatten(0, 1), WINDOWS)]
        given = torch.cat(parts).reshape(*windows.shape[:2], -1).clamp(min=0)
        ends = (1 - given.sum(-1, keepdim=True)).clamp(min=0)
        logits = torch.cat([given, ends], -1).clamp(min=torch.finfo(given.dtype).tiny).log()
        loss = None if labels is None else _loss(logits[:, :-1], labels[:, 1:])
        return CausalLMOutput(loss=loss, logits=logits)

    def after(self, windows: Tensor) -> Tensor:
        """Probabilities [N, V] after windows: the network, whose readout is asked at their last tokens only."""
        net = self.net
        assert net.embedding is not None
        net.notice_casts(windows.device.type, (*net.feedforward, *net.readout))
        places = torch.arange(windows.shape[1], device=windows.device)
        h = net.stream(net.feedforward(net.embedding(windows, places)))
        h = net.context(h + net.attention(h))
        found: Tensor = net.readout(h[:, -1])
        return found


def tokenizer_of(model: Model) -> Any:
    """A fast tokenizer: words apart by spaces, or the bytes or byte pairs of a text. Ids are those of the model."""
    text = model.interface
    if isinstance(text, NextToken):
        return _of_text(text)
    names = [str(name) for name in text.vocabulary or range(model.transformer.vocabulary_size or 0)]
    if len(set(names)) < len(names) or any(not name or name.split() != [name] for name in names):
        bad = next(name for name in names if names.count(name) > 1 or name.split() != [name])
        needs, found = "words of a vocabulary that spaces tell apart, for a tokenizer", f"there is {bad!r}"
        raise DataError("data", needs, found, "Rename it, or export with to_torch.")
    unknown, padding = (_unused(name, names) for name in (UNKNOWN, PADDING))
    ids = {name: i for i, name in enumerate([*names, unknown, padding])}
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(ids, unk_token=unknown))
    words.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    return _fast(words, unk_token=unknown, pad_token=padding)


def _of_text(text: NextToken) -> Any:
    pairs = text.tokens if isinstance(text.tokens, PairTokens) else None
    names = pairs.words if pairs is not None else [LETTERS[b] for b in range(text.tokens.size)]
    merges = [] if pairs is None else [(names[a], names[b]) for a, b in pairs.merges]
    ids = {name: i for i, name in enumerate(names)}
    words = tokenizers.Tokenizer(tokenizers.models.BPE(ids, merges))
    words.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pairs is not None)
    words.decoder = tokenizers.decoders.ByteLevel()
    return _fast(words, eos_token=EDGE, bos_token=EDGE, pad_token=EDGE, padding_side="left")


def _fast(words: Any, **special: Any) -> Any:
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=words,
        model_input_names=["input_ids", "attention_mask"],
        clean_up_tokenization_spaces=False,
        **special,
    )


def _unused(name: str, names: list[str]) -> str:
    while name in names:
        name = f"[{name}]"
    return name


transformers.AutoConfig.register(OneLayerConfig.model_type, OneLayerConfig, exist_ok=True)
for _head in (OneLayerForTokenClassification, OneLayerForSequenceClassification, OneLayerForCausalLM):
    _auto = getattr(transformers, _head.__name__.replace("OneLayer", "AutoModel"))
    _auto.register(OneLayerConfig, _head, exist_ok=True)
