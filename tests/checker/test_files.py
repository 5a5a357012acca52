"""Files are read in one way only: JSON, hexadecimal numbers and tensors, each rule with what just breaks it."""

from __future__ import annotations

import hashlib
import json
import os
import signal

import numpy as np
import pytest

from attacks.bundle import pack
from onelayer_checker.core import files
from onelayer_checker.core.files import Malformed, fields, parse_safetensors, read_folder, real, shown, strict_json
from tests.checker.counted import counted

MODEL, DATA, NAMES, CERTIFICATE = "model.safetensors", "data.safetensors", "names.json", "certificate.json"


def refused(gate: str, function, *given) -> str:
    with pytest.raises(Malformed) as error:
        function(*given)
    assert error.value.gate == gate, error.value
    assert str(error.value).startswith(f"{gate}: ")
    return str(error.value)


def nested(depth: int, inside: str = "{}") -> str:
    return '{"a":' * (depth - 1) + inside + "}" * (depth - 1)


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"a": 1, "b": [1, -2, true, null, "x"]}',
        ' {"a": {"a": 1}} \n',
        nested(6),
        nested(7, "1"),
        '{"a": [[[[[]]]]]}',
    ],
)
def test_json_is_taken(text: str) -> None:
    assert strict_json(text.encode(), "it") == json.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '"x"',
        "1",
        "null",
        '{"a": 1, "a": 1}',
        '{"a": [{"b": 1, "c": 2, "b": 3}]}',
        '{"a": 1.0}',
        '{"a": 1e3}',
        '{"a": NaN}',
        '{"a": Infinity}',
        '{"a": -Infinity}',
        '{"a": 1} {}',
        '{"a": 1',
        "{'a': 1}",
        nested(7),
        f'{{"a": 1, "b": {nested(6)}, "c": {{}}}}',
        '{"a": [[[[[[]]]]]]}',
        nested(5000),
        "\ufeff{}",
        '{"a": 0x10}',
    ],
)
def test_json_is_refused(text: str) -> None:
    assert "it" in refused("json", strict_json, text.encode(), "it")


def test_json_is_utf_8() -> None:
    assert strict_json('{"ü": "é"}'.encode(), "it") == {"ü": "é"}
    refused("json", strict_json, '{"ü": "é"}'.encode("latin-1"), "it")
    refused("json", strict_json, '{"a": 1}'.encode("utf-16"), "it")


def test_fields_are_exactly_those() -> None:
    fields({"a": 1, "b": None}, {"a", "b"}, "it")
    fields({}, set(), "it")
    assert "has ['c', 'd']" in refused("fields", fields, {"d": 1, "c": 2}, {"a"}, "it")
    assert "has list" in refused("fields", fields, ["a"], {"a"}, "it")
    for wrong in ({"a": 1}, {"a": 1, "b": 2, "c": 3}, {"a": 1, "c": 2}, {}, None, ["a", "b"], "ab", {"a", "b"}):
        assert "it" in refused("fields", fields, wrong, {"a", "b"}, "it")


NUMBERS = [0.0, -0.0, 1.0, -1.5, 0.1, 1e-300, 2.0**1023, 2.0**-1022, 2.0**-1074, 3 * 2.0**-1074, -1e308, 12.0]


@pytest.mark.parametrize("value", NUMBERS)
def test_a_number_is_what_python_writes(value: float) -> None:
    assert value.hex() == real(value.hex(), "it").hex()


@pytest.mark.parametrize(
    "text",
    [
        "1.0",
        "0x1p+0",
        "0x1.p+0",
        "0X1.0p+0",
        "0x1.8P+0",
        "0x1.8p0",
        "0x1.8p+00",
        "0x1.8p+01",
        "0x1.8p+0",  # Python writes all thirteen digits
        "0x2.0000000000000p+0",
        "0x0.8000000000000p+0",
        "0x1.80000000000000p+0",
        "0x1.00000000000001p+0",
        "0x1.8000000000000p+0 ",
        " 0x1.8000000000000p+0",
        "0x1.8000000000000p+0\n",
        "+0x1.8000000000000p+0",
        "0x1.ABCDEF0000000p+0",
        "0x1.0000000000000p+1024",
        "0x1.0000000000000p+9999",
        "0x1.0000000000000p-1075",
        "0x1.0000000000001p-1030",
        "0x1.0000000000000p+10000",
        "0x0.0p+1",
        "--0x0.0p+0",
        "inf",
        "nan",
        "",
        1.5,
        1,
        None,
        True,
        ["0x0.0p+0"],
    ],
)
def test_a_number_in_another_form_is_refused(text) -> None:
    assert "it" in refused("number", real, text, "it")


TENSORS = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "b": np.array([[[0.1]], [[-2.5]]]),
    "c": np.array([7, -8, 2**40]),
    "d": np.array(3.0),
}


def changed(edit, tensors=TENSORS) -> bytes:
    """The tensors with a header that was edited."""

    def header(entries):
        edit(entries)
        return entries

    return pack(tensors, header)


def raw(text: bytes, body: bytes = b"") -> bytes:
    return len(text).to_bytes(8, "little") + text + body


def test_tensors_are_read_as_they_were_written() -> None:
    for content in (pack(TENSORS), pack(TENSORS, lambda h: dict(reversed(h.items()))), raw(b"{}")):
        found = parse_safetensors(content, "it")
        assert set(found) == (set(TENSORS) if len(content) > 10 else set())
        for name, array in found.items():
            assert array.dtype == TENSORS[name].dtype
            assert array.shape == TENSORS[name].shape
            assert array.tolist() == TENSORS[name].tolist()


def test_metadata_is_not_looked_at() -> None:
    content = changed(lambda h: h.update(__metadata__={"x": "y"}))
    assert set(parse_safetensors(content, "it")) == set(TENSORS)


@pytest.mark.parametrize("size", [0, 7, 8, 9, 20])
def test_a_file_that_is_cut_is_refused(size: int) -> None:
    assert "it" in refused("safetensors", parse_safetensors, pack(TENSORS)[:size], "it")


def test_a_header_ends_where_the_file_ends() -> None:
    refused("json", parse_safetensors, raw(b""), "it")
    assert parse_safetensors(raw(b"{}"), "it") == {}
    refused("safetensors", parse_safetensors, (3).to_bytes(8, "little") + b"{}", "it")
    refused("safetensors", parse_safetensors, b"{}", "it")
    refused("safetensors", parse_safetensors, (2**63).to_bytes(8, "little") + b"{}", "it")


def test_a_header_has_at_most_a_mebibyte() -> None:
    """Of spaces, which JSON allows: the last size that is parsed, and the first that is not."""
    for more, gate in ((0, "json"), (1, "safetensors")):
        size = (1 << 20) + more
        refused(gate, parse_safetensors, size.to_bytes(8, "little") + bytes(size), "it")


@pytest.mark.parametrize("dtype", ["F16", "BF16", "I32", "U8", "BOOL", "f4", "<f4", "", 1, None, ["F32"]])
def test_an_unknown_dtype_is_refused(dtype) -> None:
    refused("safetensors", parse_safetensors, changed(lambda h: h["a"].update(dtype=dtype)), "it")


@pytest.mark.parametrize(
    "shape",
    [
        [6, 1, 1, 1],
        [6, 0],
        [0],
        [-2, -3],
        [-1, 6],
        [True, 6],
        ["2", 3],
        [2, None],
        6,
        None,
        "23",
        {"2": 3},
        [[2], 3],
    ],
)
def test_another_shape_is_refused(shape) -> None:
    refused("safetensors", parse_safetensors, changed(lambda h: h["a"].update(shape=shape)), "it")


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3, 3)])
def test_a_tensor_of_no_numbers_is_refused(shape) -> None:
    refused("safetensors", parse_safetensors, pack({"a": np.zeros(shape)}), "it")
    refused("safetensors", parse_safetensors, pack({"z": np.zeros(shape)} | TENSORS), "it")


@pytest.mark.parametrize("shape", [[6], [3, 2], [1, 6], [1, 2, 3], [6, 1, 1]])
def test_up_to_three_axes_are_taken(shape) -> None:
    content = changed(lambda h: h["a"].update(shape=shape))
    assert list(parse_safetensors(content, "it")["a"].shape) == shape


@pytest.mark.parametrize("shape", [[5], [7], [2, 4], [2**32, 2**32], [2**62, 4, 6]])
def test_a_shape_covers_its_bytes(shape) -> None:
    refused("safetensors", parse_safetensors, changed(lambda h: h["a"].update(shape=shape)), "it")


@pytest.mark.parametrize(
    "offsets",
    [
        [0],
        [0, 24, 24],
        [],
        None,
        24,
        {"0": 24},
        "ab",
        ["0", 24],
        [0, None],
        [False, 24],
        [-24, 0],
        [0, -1],
    ],
)
def test_offsets_are_two_whole_numbers(offsets) -> None:
    refused("safetensors", parse_safetensors, changed(lambda h: h["a"].update(data_offsets=offsets)), "it")


def test_tensors_cover_the_file_one_after_the_other() -> None:
    one = {"a": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}}
    two = {"b": {"dtype": "F64", "shape": [1], "data_offsets": [8, 16]}}
    gap, over = ({"b": {"dtype": "F64", "shape": [1], "data_offsets": [k, k + 8]}} for k in (16, 0))
    assert set(parse_safetensors(raw(json.dumps(two | one).encode(), bytes(16)), "it")) == {"a", "b"}
    for entries, size in (
        (one | two, 8),
        (one | two, 15),
        (one | two, 17),
        (one | two, 24),
        (one | gap, 24),
        (one | over, 8),
        (one | over, 16),
        (two, 16),
        (two, 8),
        (one, 16),
        ({}, 8),
    ):
        refused("safetensors", parse_safetensors, raw(json.dumps(entries).encode(), bytes(size)), "it")


def test_an_entry_has_its_three_fields() -> None:
    for name in ("dtype", "shape"):
        refused("fields", parse_safetensors, changed(lambda h, n=name: h["a"].pop(n)), "it")
    refused("safetensors", parse_safetensors, changed(lambda h: h["a"].pop("data_offsets")), "it")
    refused("fields", parse_safetensors, changed(lambda h: h["a"].update(note=1)), "it")
    for wrong in (None, [], 1, "a"):
        refused("safetensors", parse_safetensors, changed(lambda h, w=wrong: h.update(e=w)), "it")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_every_number_is_finite(value) -> None:
    for dtype in (np.float32, np.float64):
        refused("finite", parse_safetensors, pack({"a": np.array([1, value, 2], dtype)}), "it")


def folder(version: int = 2, **other) -> dict[str, bytes]:
    files = {MODEL: pack({"w": np.ones(2)}), DATA: pack({"t": np.zeros(3)})}
    files |= {NAMES: b'{"a": 1}'} if version == 2 else {}
    listed = {n: {"sha256": hashlib.sha256(c).hexdigest(), "bytes": len(c)} for n, c in files.items()}
    certificate = dict.fromkeys(("graph", "profile", "claims", "producer"), 1)
    certificate |= {"format": f"onelayer-certificate/{version}", "files": listed} | other
    return {CERTIFICATE: json.dumps(certificate).encode(), **files}


def written(tmp_path, files):
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def test_a_folder_is_read_from_disk_or_from_memory(tmp_path) -> None:
    for source, names in ((folder(1), None), (folder(), {"a": 1}), (written(tmp_path, folder()), {"a": 1})):
        certificate, model, data, found = read_folder(source)
        assert certificate["claims"] == 1
        assert found == names
        assert {name: a.tolist() for name, a in model.items()} == {"w": [1, 1]}
        assert {name: a.tolist() for name, a in data.items()} == {"t": [0, 0, 0]}


def said(files, name, **other) -> dict[str, bytes]:
    certificate = json.loads(files[CERTIFICATE])
    certificate["files"][name].update(other)
    return files | {CERTIFICATE: json.dumps(certificate).encode()}


@pytest.mark.parametrize("name", [MODEL, DATA, NAMES])
def test_a_file_is_the_one_that_was_certified(tmp_path, name: str) -> None:
    whole = folder()
    size, digest = len(whole[name]), hashlib.sha256(whole[name]).hexdigest()
    other = bytes([*whole[name][:-1], 64])
    for forged, gate in (
        (whole | {name: other}, "digest"),
        (said(whole, name, sha256=digest.upper()), "digest"),
        (said(whole, name, sha256=digest[:32]), "digest"),
        (said(whole, name, sha256=None), "digest"),
        (whole | {name: whole[name] + b"\0"}, "size"),
        (whole | {name: whole[name][:-1]}, "size"),
        (said(whole, name, bytes=size + 1), "size"),
        (said(whole, name, bytes=str(size)), "size"),
        (said(whole, name, bytes=None), "size"),
        (said(whole, name, note=1), "fields"),
    ):
        refused(gate, read_folder, forged)
        refused(gate, read_folder, written(tmp_path, forged))


def test_the_size_is_a_number_and_not_a_truth_value() -> None:
    """An empty file has size 0, which Python takes for False."""
    for wrong in (False, True):
        refused("size", read_folder, said(folder() | {MODEL: b"\0" * wrong}, MODEL, bytes=wrong))


def test_the_files_of_a_version_are_named() -> None:
    for version, other in ((1, 2), (2, 1)):
        listed = json.loads(folder(other)[CERTIFICATE])["files"]
        for wrong in ({}, listed, {MODEL: listed[MODEL]}, None, [], {"x": 1}):
            refused("fields", read_folder, folder(version, files=wrong))


def test_the_version_is_known() -> None:
    for wrong in ("onelayer-certificate/3", "onelayer-certificate/", "", None, 1, ["onelayer-certificate/1"]):
        refused("format", read_folder, folder(format=wrong))


def test_a_certificate_has_its_fields() -> None:
    whole = json.loads(folder()[CERTIFICATE])
    for name in whole:
        less = {key: value for key, value in whole.items() if key != name}
        refused("fields", read_folder, folder() | {CERTIFICATE: json.dumps(less).encode()})
    refused("fields", read_folder, folder(note=1))


def test_names_are_json_and_may_be_deeper() -> None:
    def with_names(content: bytes) -> dict[str, bytes]:
        digest = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        return said(folder() | {NAMES: content}, NAMES, **digest)

    assert read_folder(with_names(nested(64).encode()))[3] == json.loads(nested(64))
    for wrong in (nested(65), "[]", "", '{"a": 1, "a": 1}', '{"a": 1.5}'):
        assert NAMES in refused("json", read_folder, with_names(wrong.encode()))
    refused("json", strict_json, nested(4).encode(), "it", 3)
    strict_json(nested(3).encode(), "it", 3)


def test_names_have_at_most_64_mebibytes(tmp_path, monkeypatch) -> None:
    assert files.MOST_NAMES == 1 << 26
    monkeypatch.setattr(files, "MOST_NAMES", 8)
    read_folder(written(tmp_path, folder()))
    monkeypatch.setattr(files, "MOST_NAMES", 7)
    refused("size", read_folder, written(tmp_path, folder()))


@pytest.mark.parametrize("name", [MODEL, DATA, NAMES, CERTIFICATE])
def test_a_file_that_is_missing_is_said_to_be(tmp_path, name: str) -> None:
    path = written(tmp_path, folder())
    (path / name).unlink()
    why = refused("missing", read_folder, path)
    assert why == f"missing: there is no {name}" + (": nothing was proved of this folder" * (name == CERTIFICATE))


@pytest.mark.parametrize("name", [MODEL, CERTIFICATE])
def test_a_file_is_a_regular_file(tmp_path, name: str) -> None:
    """A pipe is not waited for, and what may never end is not read."""
    path = written(tmp_path, folder())

    def waited(*_) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, waited)
    signal.alarm(10)
    for make in (os.mkfifo, lambda place: place.symlink_to("/dev/zero")):
        (path / name).unlink()
        make(path / name)
        assert refused("kind", read_folder, path) == f"kind: {name} is not a regular file"
    signal.alarm(0)
    (path / name).unlink()
    (path / name).mkdir()
    assert refused("kind", read_folder, path) == f"kind: {name} is a directory"


def test_a_file_that_cannot_be_opened_is_missing(tmp_path) -> None:
    path = written(tmp_path, folder())
    (path / MODEL).unlink()
    (path / MODEL).symlink_to(path / MODEL)
    assert refused("missing", read_folder, path).startswith(f"missing: {MODEL} cannot be read (Too many")


def test_a_file_has_the_size_that_it_had_when_it_was_opened(tmp_path) -> None:
    """Files that the system makes up have no size until they are read."""
    path = written(tmp_path, folder())
    (path / CERTIFICATE).unlink()
    (path / CERTIFICATE).symlink_to("/proc/version")
    assert "had 0 bytes when it was opened" in refused("size", read_folder, path)


def test_what_is_read_is_counted_before_it_is_read(tmp_path) -> None:
    """Weights three times: as they are, and as numbers of float64."""
    for source in (folder(), written(tmp_path, folder())):
        with counted() as lines:
            read_folder(source)
        sizes = {name: len(content) for name, content in folder().items()}
        assert lines == [
            (f"reading {name}", 0, 0, (3 if name == MODEL else 1) * sizes[name])
            for name in (CERTIFICATE, MODEL, DATA, NAMES)
        ]


def test_what_a_folder_says_is_cut_and_has_no_control_characters() -> None:
    assert shown("a\x1bü") == "'a\\x1b\\xfc'"
    assert shown("x" * 78) == f"'{'x' * 78}'"
    assert shown("x" * 79) == f"'{'x' * 79}..."
    assert shown("x" * 78, 79) == f"'{'x' * 78}..."
    long = {f"{i:03}": 1 for i in range(100)}
    listed = refused("fields", fields, long, {"a"}, "it").partition(", has ")[2]
    assert listed == f"{sorted(long)}"[:200] + "..."


def test_a_header_has_at_most_1000_tensors() -> None:
    parse_safetensors(pack({f"{i}": np.zeros(1) for i in range(1000)}), "it")
    why = refused("safetensors", parse_safetensors, pack({f"{i}": np.zeros(1) for i in range(1001)}), "it")
    assert why == "safetensors: it has 1001 tensors, more than 1000"


def test_a_certificate_has_at_most_a_mebibyte(tmp_path) -> None:
    content = folder()[CERTIFICATE]
    for size, gate in ((1 << 20, None), ((1 << 20) + 1, "size")):
        path = written(tmp_path, folder() | {CERTIFICATE: content + b" " * (size - len(content))})
        if gate is None:
            read_folder(path)
        else:
            refused(gate, read_folder, path)


def test_how_deep_a_value_is_nested() -> None:
    for value, deep in ((7, 0), ([], 1), ({}, 1), ([7, [7], 7], 2), ({"a": 7, "b": [[]]}, 3)):
        assert files.depth(value) == deep


def test_numbers_of_sixteen_bits_are_read_as_float32() -> None:
    """Of float16 by value, subnormal ones included; of bfloat16 as the upper half of a float32, by hand."""
    halves = np.array([[1.5, -(2.0**-24)], [65504.0, 0.0]], np.float16)
    upper = np.array([0x3FC0, 0xC000, 0x0001, 0x7F7F], np.uint16)  # 1.5, -2, 2^-133, the largest
    listed = {
        "half": {"dtype": "F16", "shape": [2, 2], "data_offsets": [0, 8]},
        "upper": {"dtype": "BF16", "shape": [4], "data_offsets": [8, 16]},
    }
    text = json.dumps(listed).encode()
    found = parse_safetensors(len(text).to_bytes(8, "little") + text + halves.tobytes() + upper.tobytes(), "it")
    assert {name: a.dtype for name, a in found.items()} == dict.fromkeys(listed, np.dtype("<f4"))
    assert found["half"].tolist() == [[1.5, -(2.0**-24)], [65504.0, 0.0]]
    assert found["upper"].tolist() == [1.5, -2.0, 2.0**-133, 255 * 2.0**120]


@pytest.mark.parametrize(("code", "bits"), [("F16", 0x7C00), ("F16", 0x7E00), ("BF16", 0x7F80), ("BF16", 0x7FC0)])
def test_numbers_of_sixteen_bits_are_finite(code: str, bits: int) -> None:
    text = json.dumps({"a": {"dtype": code, "shape": [1], "data_offsets": [0, 2]}}).encode()
    said = refused(
        "finite", parse_safetensors, len(text).to_bytes(8, "little") + text + bits.to_bytes(2, "little"), "it"
    )
    assert "NaN or infinity" in said
