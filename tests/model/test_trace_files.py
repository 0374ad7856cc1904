"""A trace in a file: everything comes back, damage is named, and two files are compared."""

import dataclasses
import json

import numpy as np
import pytest

from model.analysis.runs import trace_differences
from model.commands import compare
from model.interventions import AttentionTemperature, FrozenPattern, HeadGate, PatternEdit
from model.trace import Trace


@pytest.fixture(scope="module")
def after(translator, trace) -> Trace:
    weights = tuple(np.full(len(trace.src_tokens), 1 / len(trace.src_tokens)).tolist())
    changes = (
        AttentionTemperature(0.5, kind="cross"),
        HeadGate(0.0, kind="encoder_self", layer=1, head=0, mode="mean"),
        PatternEdit(0, weights, kind="cross", layer=0),
        FrozenPattern.of(trace.attention("decoder_self", 0).pattern, kind="decoder_self", layer=0),
    )
    return translator.rerun(trace, changes)


def equal(one: object, other: object) -> bool:
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and one.dtype == other.dtype and np.array_equal(one, other)
    if dataclasses.is_dataclass(one):
        names = (field.name for field in dataclasses.fields(one))
        return type(one) is type(other) and all(equal(getattr(one, name), getattr(other, name)) for name in names)
    if isinstance(one, dict) or hasattr(one, "keys"):
        return list(one) == list(other) and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, tuple):
        return isinstance(other, tuple) and len(one) == len(other) and all(map(equal, one, other))
    return one == other


@pytest.mark.parametrize("which", ["trace", "after"])
def test_a_file_brings_back_every_array_every_text_and_every_change(which, request, tmp_path):
    trace = request.getfixturevalue(which)
    trace.save(tmp_path / "run.npz")
    assert equal(trace, Trace.load(tmp_path / "run.npz"))


def test_numpy_reads_the_arrays_by_their_names(trace, tmp_path):
    trace.save(tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz") as arrays:
        assert np.array_equal(arrays["attentions.cross.1.pattern"], trace.attention("cross", 1).pattern)
        assert np.array_equal(arrays["logits"], trace.logits)
        assert set(arrays) == {"trace", *trace.named_arrays()}


def test_a_damaged_file_is_named(trace, tmp_path):
    path = tmp_path / "run.npz"
    trace.save(path)
    whole = path.read_bytes()
    middle = len(whole) // 2
    broken = [b"", b"no zip", whole[:middle], whole[:middle] + bytes(200) + whole[middle + 200 :]]
    for content in broken:
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"run\.npz"):
            Trace.load(path)


@pytest.mark.parametrize("said", [{"type": "Path", "fields": {}}, {"type": "Norm", "fields": {}}, [], 3, {"x": 1}])
def test_a_file_builds_nothing_but_traces(said, tmp_path):
    np.savez(tmp_path / "run.npz", trace=np.frombuffer(json.dumps(said).encode(), np.uint8))
    with pytest.raises(ValueError, match=r"run\.npz"):
        Trace.load(tmp_path / "run.npz")


def test_a_forged_file_is_refused(trace, tmp_path, monkeypatch):
    path = tmp_path / "run.npz"
    trace.save(path)
    with np.load(path) as file:
        arrays = dict(file)
    logits, said = arrays["logits"], json.loads(bytes(arrays["trace"]))
    text = json.loads(json.dumps(said))
    text["fields"]["streams"]["mapping"][0][1]["fields"]["final"] = "text"
    nested = b"[" * 100_000 + b"]" * 100_000
    forged = (
        {"logits": logits[:, :5][:1]},
        {"logits": np.array([object()], dtype=object)},
        {"trace": np.frombuffer(json.dumps(text).encode(), np.uint8)},
        {"trace": np.frombuffer(json.dumps(said | {"fields": {}}).encode(), np.uint8)},
        {"trace": np.frombuffer(nested, np.uint8)},
    )
    for change in forged:
        np.savez(path, **(arrays | change))
        with pytest.raises(ValueError, match=r"run\.npz is not the file of a trace"):
            Trace.load(path)
    monkeypatch.setattr("model.trace.MOST_BYTES", 10_000_000)
    np.savez_compressed(path, **arrays, bomb=np.zeros(20_000_000, np.uint8))
    assert path.stat().st_size < 10_000_000
    with pytest.raises(ValueError, match="more than 10,000,000"):
        Trace.load(path)


def test_equal_runs_do_not_differ(trace, translator):
    assert trace_differences.compare(trace, translator.trace(trace.source, trace.translation)) == []


def test_each_difference_has_its_size_and_its_place(trace):
    attention = trace.attention("cross", 1)
    pattern = attention.pattern.copy()
    pattern[2, 1, 0] += 0.25
    changed = {**trace.attentions, ("cross", 1): dataclasses.replace(attention, pattern=pattern)}
    (found,) = trace_differences.compare(trace, dataclasses.replace(trace, attentions=changed))
    assert (found.name, found.where) == ("attentions.cross.1.pattern", (2, 1, 0))
    assert found.largest == pytest.approx(0.25)
    assert found.relative == pytest.approx(0.25 / attention.pattern.max())


def test_other_shapes_and_missing_numbers_are_infinitely_different(trace, translator):
    longer = translator.trace("a dog and two cats", trace.translation)
    assert {each.largest for each in trace_differences.compare(trace, longer) if each.name == "logits"} != {np.inf}
    (memory,) = (each for each in trace_differences.compare(trace, longer) if each.name == "streams.encoder.final")
    assert (memory.largest, memory.where) == (np.inf, ())
    nan = dataclasses.replace(trace, logits=np.full_like(trace.logits, np.nan))
    (found,) = trace_differences.compare(trace, nan)
    assert found.largest == np.inf
    assert trace_differences.compare(nan, nan) == []


def test_the_command_fails_on_request_and_names_what_differs(trace, after, tmp_path, capsys):
    one, other = tmp_path / "one.npz", tmp_path / "other.npz"
    trace.save(one)
    after.save(other)
    assert compare.main([str(one), str(one), "--fail-on-diff"]) == 0
    assert capsys.readouterr().out.startswith("0 of ")
    assert compare.main([str(one), str(other)]) == 0
    assert "attentions.cross.0.pattern" in capsys.readouterr().out
    assert compare.main([str(one), str(other), "--fail-on-diff"]) == 1
    assert compare.main([str(one), str(other), "--fail-on-diff", "--tolerance=inf"]) == 0


def test_runs_of_two_models_are_counted_by_what_tells_them_apart(trace, translator, tmp_path, capsys):
    """One array less, one more, one of another shape, one with another number: no count is of two kinds at once."""
    logits = trace.logits.copy()
    logits[0, 0] += 1
    shallow = {key: each for key, each in trace.attentions.items() if key[0] != "cross"}
    runs = {
        "a": trace,
        "b": dataclasses.replace(trace, logits=logits, attentions=shallow),
        "c": translator.trace("a dog and two cats", trace.translation),
    }
    arrays = {name: run.named_arrays() for name, run in runs.items()}
    for name, run in runs.items():
        run.save(tmp_path / name)

    def counts(one: str, other: str) -> list[int]:
        """Of the last line: those that differ, those that could, those that could not."""
        compare.main([str(tmp_path / one), str(tmp_path / other)])
        return [int(word) for word in capsys.readouterr().out.splitlines()[-1].split() if word.isdigit()]

    gone = len(arrays["a"]) - len(arrays["b"])
    assert counts("a", "b") == counts("b", "a") == [1, len(arrays["b"]), gone]
    same = [name for name, array in arrays["c"].items() if array.shape == arrays["a"][name].shape]
    assert counts("a", "c")[1:] == [len(same), len(arrays["a"]) - len(same)]


def test_a_file_that_is_no_trace_is_refused_in_a_sentence(tmp_path, capsys):
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(SystemExit, match="2"):
        compare.main([str(tmp_path / "text.npz"), str(tmp_path / "missing.npz")])
    assert "text.npz is not the file of a trace" in capsys.readouterr().err
