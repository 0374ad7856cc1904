"""What exists twice: the model of the static page against the one in Python, whose runs are made in the same minute."""

import dataclasses
import json
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from model import interventions
from model.analysis.heads.key_plane import principal_axes
from model.analysis.stream.whole_model import model_boxes
from model.checkpoints.store import load_checkpoint
from model.checkpoints.translator import Translator
from model.interventions import (
    AttentionTemperature,
    ForbidSource,
    HeadGate,
    Intervention,
    LiftCausalMask,
    MaskEdit,
    NormOff,
    PatternEdit,
    PatternMask,
    PermutedAttention,
    PositionsOff,
    PositionsShuffled,
    ResidualOff,
    SharedKeysValues,
    SublayerOff,
    UniformAttention,
    Unscaled,
    ValueZeroing,
)
from tests.browser import engine as other
from tests.browser.engine import CLOSE, Engine, differences, greedily, recorded, sources_of
from viz.canvas.whole_model import MOST_CELLS, pooled
from viz.site.pictures import headers

TEXT = "Two young girls are playing in the snow."
CHANGES: list[tuple[Intervention, ...]] = [
    (),
    (AttentionTemperature(0.3, kind="cross", layer=1, head=1),),
    (AttentionTemperature(4.0), AttentionTemperature(0.5, layer=0)),
    (Unscaled(kind="encoder_self", head=2),),
    (HeadGate(0.0, kind="encoder_self", layer=1, head=1), HeadGate(0.25, kind="decoder_self", layer=0)),
    (HeadGate(0.25, head=3, mode="mean"),),
    (SharedKeysValues(2, layer=0),),
    (SharedKeysValues(1),),
    (ValueZeroing((0, 2, 99), kind="cross"), ValueZeroing((1,), kind="decoder_self", head=0)),
    (MaskEdit(forbid=((0, 0), (2, 1), (99, 0)), allow=((0, 2),), kind="decoder_self", layer=1, head=3),),
    (MaskEdit(forbid=((1, 0), (1, 1)), kind="encoder_self"),),
    (MaskEdit(forbid=tuple((0, key) for key in range(40)), kind="cross", head=0),),
    (ForbidSource((1, 99)), ForbidSource((2,), kind="cross", layer=0, head=1)),
    (PatternMask(window=2), PatternMask(stride=2, global_tokens=(1,), kind="decoder_self")),
    (PatternMask(block=3, kind="encoder_self", layer=0),),
    (LiftCausalMask(),),
    (LiftCausalMask(layer=1), AttentionTemperature(2.0)),
    (PatternEdit(1, (0.0, 3.0, 1.0), kind="cross", layer=0), PatternEdit(2, (1.0,) * 40, head=1)),
    (PatternEdit(0, (0.0, 1.0), kind="decoder_self"),),
    (UniformAttention(kind="decoder_self"), UniformAttention(layer=0, head=2)),
    (PermutedAttention(order=(2, 0, 1)), PermutedAttention(order=tuple(range(40)))),
    (PositionsOff(),),
    (PositionsOff("target"),),
    (PositionsShuffled((2, 1, 0)), PositionsShuffled((1, 0), "target")),
    (SublayerOff("decoder", 1, "feed_forward"), SublayerOff("encoder", 0, "self_attn")),
    (SublayerOff(name="cross_attn"),),
    (NormOff("decoder", 1, "cross_attn"), NormOff(name="feed_forward", layer=0)),
    (NormOff("encoder", 1), HeadGate(0.0, layer=0)),
    (ResidualOff("encoder", 1), ResidualOff(name="feed_forward", layer=0)),
    (UniformAttention(kind="cross"), MaskEdit(forbid=((0, 1),), kind="cross"), HeadGate(0.5, kind="cross", layer=1)),
]
"""each of them alone or with others at the same place, and addresses beyond the sentence"""


@pytest.fixture(scope="module")
def tiny(calculating_browser: object, saved_checkpoints: Path) -> Iterator[Engine]:
    """The page's model with the tiny checkpoint."""
    from model.checkpoints.store import DEFAULT_CHECKPOINT

    engine = Engine.open(calculating_browser, saved_checkpoints / DEFAULT_CHECKPOINT)
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def shipped(calculating_browser: object) -> Iterator[Engine]:
    """The page's model with the weights that it ships."""
    engine = Engine.open(calculating_browser, other.ROOT / "checkpoints/en-de")
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def english() -> Translator:
    return load_checkpoint(str(other.ROOT / "checkpoints/en-de"), "cpu")


@pytest.fixture(scope="module")
def sentences() -> list[str]:
    """English sentences that people type."""
    files = [other.ROOT / f"checkpoints/en-de/{name}.tsv" for name in ("first-inputs", "own-subject")]
    return [line.split("\t")[0] for file in files for line in file.read_text("utf-8").splitlines()]


def names(changes: tuple[Intervention, ...]) -> str:
    return "+".join(type(change).__name__ for change in changes) or "nothing"


@pytest.mark.parametrize("changes", CHANGES, ids=names)
def test_every_hook_path_has_the_numbers_of_python_and_a_changed_model_writes_the_same_translation(
    tiny: Engine, translator: Translator, changes: tuple[Intervention, ...]
) -> None:
    (source,) = sources_of(translator, [TEXT])
    target = greedily(translator, source)
    found = differences(recorded(translator, source, target, changes), tiny.trace(source, target, changes))
    assert {path: distance for path, distance in found.items() if distance > CLOSE} == {}
    for size in (1, 4):
        expected = translator._decode([source], size, 0.6, changes)[0].tokens
        assert tiny.translate([source], size, changes)[0][0] == expected


def test_a_change_that_moves_one_head_is_noticed(tiny: Engine, translator: Translator) -> None:
    """The comparison itself can fail: Python without the change, the page with it."""
    (source,) = sources_of(translator, [TEXT])
    target = greedily(translator, source)
    changed = tiny.trace(source, target, (AttentionTemperature(1.001, kind="encoder_self", layer=0, head=0),))
    found = differences(recorded(translator, source, target), changed)
    assert found["encoder.layers.0.self_attn.temperature"] > CLOSE
    assert found["encoder.layers.0.self_attn.pattern"] > CLOSE
    assert found["encoder.layers.0.self_attn.scores"] < CLOSE


def test_every_hook_path_of_the_shipped_model_has_the_numbers_of_python(shipped: Engine, english: Translator) -> None:
    lines = ["The woman who has three children works in a hospital.", "Tom's giraffe 中 wasn't hers – was it?", "Yes."]
    changes = HeadGate(0.0, kind="cross", layer=2, head=1), AttentionTemperature(0.5, layer=3)
    for source in sources_of(english, lines):
        target = greedily(english, source)
        found = differences(recorded(english, source, target, changes), shipped.trace(source, target, changes))
        assert {path: distance for path, distance in found.items() if distance > CLOSE} == {}
    assert differing(other.compare_runs(shipped, english, lines)) == {}


def differing(compared: Iterator[tuple[str, int]]) -> dict[str, int]:
    """What differs, of what a comparison counts."""
    return {what: count for what, count in compared if count}


def test_sixty_translations_are_the_same(shipped: Engine, english: Translator, sentences: list[str]) -> None:
    some = random.Random(1).sample(sentences, 60)
    assert differing(other.compare_translations(shipped, english, some, 0, progress=len)) == {}


def test_ids_of_generated_and_hostile_lines_are_the_same(
    shipped: Engine, english: Translator, sentences: list[str]
) -> None:
    rng = random.Random(2)
    words = " ".join(sentences).split()
    lines = [" ".join(rng.choices(words, k=rng.randint(1, 15))) for _ in range(1500)]
    assert differing(other.compare_text(shipped, english, lines)) == {}


def intervention_types() -> dict[str, type]:
    """Every change that Python has."""
    public = {name: getattr(interventions, name) for name in interventions.__all__}
    return {name: each for name, each in public.items() if hasattr(each, "edits") and dataclasses.is_dataclass(each)}


def test_every_intervention_of_python_is_in_the_page_or_named_as_missing(tiny: Engine) -> None:
    offered = tiny.evaluate("() => modules.interventions.FIELDS")
    missing = set(tiny.evaluate("() => Object.keys(modules.interventions.MISSING)"))
    for name, each in intervention_types().items():
        if name in missing:
            assert name not in offered
            continue
        page = {field.rstrip("*") for field in offered[name]}
        python = {field.name for field in dataclasses.fields(each) if f"{name}.{field.name}" not in missing}
        assert page == python, name
        needed = {field.name for field in dataclasses.fields(each) if field.default is dataclasses.MISSING}
        assert needed <= {field.rstrip("*") for field in offered[name] if field.endswith("*")}, name
    assert set(offered) | {name for name in missing if "." not in name} == set(intervention_types())


def test_every_intervention_of_the_page_is_compared(tiny: Engine) -> None:
    compared = {type(change).__name__ for changes in CHANGES for change in changes}
    assert compared == set(tiny.evaluate("() => Object.keys(modules.interventions.FIELDS)"))


@pytest.mark.parametrize(
    "change",
    [
        {"type": "Nothing"},
        {"type": "constructor"},
        {"type": "HeadGate"},
        {"type": "HeadGate", "gate": 2},
        {"type": "HeadGate", "gate": 0, "head": 99},
        {"type": "HeadGate", "gate": 0, "colour": "red"},
        {"type": "AttentionTemperature", "tau": 0},
        {"type": "MaskEdit", "forbid": [[1]]},
        {"type": "PositionsShuffled", "order": [1, 1]},
        {"type": "FrozenPattern", "pattern": []},
        {"type": "Patch", "path": "memory", "values": [[1]]},
    ],
    ids=json.dumps,
)
def test_a_change_that_cannot_be_made_is_refused_with_a_sentence(tiny: Engine, change: dict) -> None:
    refuse = """(change) => {
        try { modules.interventions.editsOf([change], model); } catch (error) { return error.message; }
    }"""
    assert len(tiny.evaluate(refuse, change).split()) > 3


def test_the_file_is_let_go_once_its_numbers_are_widened(tiny: Engine) -> None:
    left = tiny.evaluate("""async () => {
        const buffer = await (await fetch("model.safetensors")).arrayBuffer();
        const [before, tensors] = [buffer.byteLength, modules.safetensors.readSafetensors(buffer)];
        const numbers = [...tensors.values()].reduce((sum, { length }) => sum + length, 0);
        return [before > 0, numbers > 0, buffer.byteLength];
    }""")
    assert left == [True, True, 0]


def test_a_decoding_uses_the_arrays_of_its_first_steps_again(tiny: Engine, translator: Translator) -> None:
    (source,) = sources_of(translator, [TEXT])
    count = """(source) => {
        let made = 0;
        const { buffer } = modules.network.Run.prototype;
        modules.network.Run.prototype.buffer = function (name, size, Type) {
            const before = this.buffers.get(name);
            const array = buffer.call(this, name, size, Type);
            made += this.buffers.get(name) !== before;
            return array;
        };
        const counts = [];
        for (const _ of modules.decoding.beamSearch(model, source)) counts.push(made);
        modules.network.Run.prototype.buffer = buffer;
        return counts;
    }"""
    made = tiny.evaluate(count, source)
    # Attention over a growing target grows by doubling; everything else has its arrays after the second step.
    points = len([path for path in recorded(translator, source, greedily(translator, source)) if "decoder" in path])
    assert made[-1] - made[1] < points


ASK = """async ({ questions }) => {
    const messages = [];
    const answers = new modules.worker.Answers((message) => messages.push(message));
    Object.assign(answers, { model, tokenizer });
    await Promise.all(questions.map((question) => answers.receive(question)));
    return messages;
}"""


def test_a_newer_question_stops_an_older_one_of_its_name(tiny: Engine) -> None:
    questions = [{"id": n, "ask": "translate", "text": TEXT, "beam": 4, "changes": []} for n in range(3)]
    messages = tiny.evaluate(ASK, {"questions": questions})
    assert [message["id"] for message in messages if message.get("superseded")] == [0, 1]
    assert [message["id"] for message in messages if message.get("answer")] == [2]
    assert sum(message["id"] == 0 for message in messages if message.get("progress")) <= 1


def test_a_new_sentence_stops_what_is_computed_of_the_old_one(tiny: Engine) -> None:
    old = [{"id": n, "ask": ask, "text": TEXT, "beam": 4, "changes": []} for n, ask in enumerate(("tree", "translate"))]
    new = {"id": 3, "ask": "translate", "topic": "sentence", "text": "A dog runs.", "beam": 4, "changes": []}
    weights = {"id": 2, "ask": "weights", "path": "encoder.layers.0.self_attn"}
    later = {"id": 4, "ask": "tree", "text": "A dog runs.", "beam": 4, "changes": []}
    messages = tiny.evaluate(ASK, {"questions": [*old, weights, new, later]})
    assert [message["id"] for message in messages if message.get("superseded")] == [0, 1]
    assert [message["id"] for message in messages if message.get("answer")] == [2, 3, 4]


PLANE = """({ rows, shape, head }) => {
    const { axes, shares } = modules.plane.principalAxes({ values: Float32Array.from(rows), shape }, head);
    return { axes: [...axes.values], shape: axes.shape, shares };
}"""


@pytest.mark.parametrize("text", ["Yes.", TEXT, f"{TEXT} " * 4])
def test_a_head_s_keys_and_values_lie_in_the_planes_that_python_has(
    tiny: Engine, translator: Translator, text: str
) -> None:
    trace = translator.trace(text)
    for kind in ("encoder_self", "cross"):
        attention = trace.attention(kind, 1)
        for array in (attention.k, attention.v):
            rows = array[2].astype(np.float64)
            axes, shares = principal_axes(rows)
            found = tiny.evaluate(PLANE, {"rows": array.ravel().tolist(), "shape": array.shape, "head": 2})
            assert found["shares"] == pytest.approx(shares, abs=CLOSE)
            assert found["shape"] == list(axes.shape)
            # An axis may point either way.
            places, expected = rows @ np.reshape(found["axes"], axes.shape).T, rows @ axes.T
            signs = np.sign((places * expected).sum(axis=0))
            np.testing.assert_allclose(places * signs, expected, atol=10 * CLOSE)


ARRAYS = """async ({ source, target, paths }) => {
    const answers = [];
    const worker = new modules.worker.Answers(({ answer }) => answers.push(answer));
    Object.assign(worker, { model, tokenizer });
    await worker.receive({ id: 0, ask: "trace", source, target, changes: [] });
    for (const path of paths) await worker.receive({ id: path, ask: "weights", path, topic: path });
    const [{ arrays, tokens }, ...learned] = answers;
    const plain = ([name, { values, shape }]) => [name, { values: Array.from(values), shape }];
    return { tokens, arrays: Object.fromEntries(Object.entries(Object.assign({}, arrays, ...learned)).map(plain)) };
}"""


def test_the_pictures_of_a_head_find_every_array_under_the_name_that_python_has(
    tiny: Engine, translator: Translator
) -> None:
    trace = translator.trace(TEXT)
    attentions = [trace.attention(kind.name, layer) for kind in trace.kinds for layer in kind.layers]
    question = {"source": trace.src_ids, "target": trace.next_ids, "paths": [each.path for each in attentions]}
    answer = tiny.evaluate(ARRAYS, question)
    assert {name: tuple(pieces) for name, pieces in answer["tokens"].items()} == {
        "source": trace.src_tokens,
        "target": trace.tgt_tokens,
        "next": trace.next_tokens,
    }
    steps = headers(trace, (1.0,), "")["steps"]
    for attention in attentions:
        for name in {name for step in steps[attention.kind] for name in step["arrays"]}:
            found, expected = answer["arrays"][f"{attention.path}.{name}"], attention.array(name).astype(float)
            numbers = np.reshape(found["values"], found["shape"])
            assert numbers.shape == expected.shape
            assert abs(numbers - expected).max() <= CLOSE * abs(expected).max(), f"{attention.path}.{name}"


@pytest.mark.parametrize("changes", [(), (SublayerOff("decoder", 1, "cross_attn"),)], ids=names)
def test_the_whole_model_has_the_numbers_of_python_in_every_box(
    tiny: Engine, translator: Translator, changes: tuple[Intervention, ...]
) -> None:
    plain = translator.trace(TEXT)
    trace = translator.rerun(plain, changes)
    question = {"source": trace.src_ids, "target": trace.next_ids, "changes": other.as_fields(changes)}
    answer = tiny.evaluate(BOXES, question)
    boxes = model_boxes(translator, trace)
    assert answer["boxes"].keys() == {f"{box.name}.values" for box in boxes}
    for box in boxes:
        found = answer["boxes"][f"{box.name}.values"]
        numbers = np.reshape(found["values"], found["shape"])
        for (name, expected), row in zip(box.values.items(), numbers, strict=True):
            assert row == pytest.approx(expected, rel=CLOSE, abs=CLOSE), f"{box.name}, {name}"
    expected = {"before": plain.log_probability, "after": trace.log_probability}
    assert answer["score"] == pytest.approx(expected, rel=CLOSE)
    for found, row in zip(answer["candidates"], trace.candidates, strict=True):
        assert [share for _, share in found] == pytest.approx(
            [each.probability for each in row[: len(found)]], abs=CLOSE
        )
        assert dict(found).keys() <= {each.token for each in row}


BOXES = """async (question) => {
    let answer;
    const worker = new modules.worker.Answers((message) => (answer = message.answer));
    Object.assign(worker, { model, tokenizer });
    await worker.receive({ id: 0, ask: "trace", ...question });
    const boxes = Object.entries(answer.arrays).filter(([name]) => name.endsWith(".values"));
    return {
        boxes: Object.fromEntries(boxes.map(([name, { values, shape }]) => [name, { values: [...values], shape }])),
        candidates: answer.candidates,
        score: answer.score,
    };
}"""


PROVE = """({ source, target, spoilt }) => {
    const kept = model.trace(source, target);
    for (const path of spoilt) {
        const { values } = kept.get(path);
        values[values.length - 1] += 0.01;
    }
    return Object.fromEntries(modules.proof.claims(kept).map(({ name, holds }) => [name, holds]));
}"""


def test_five_claims_hold_and_each_can_fail(tiny: Engine, translator: Translator) -> None:
    (source,) = sources_of(translator, [TEXT])
    question = {"source": source, "target": greedily(translator, source)}
    path = "decoder.layers.0.self_attn"
    noticed = {
        (): set(),
        (f"{path}.scores",): {"scores"},
        (f"{path}.z",): {"values"},
        (f"{path}_residual.added",): {"sums"},
        (f"{path}.pattern",): {"rows", "values"},
    }
    for spoilt, expected in noticed.items():
        found = tiny.evaluate(PROVE, question | {"spoilt": list(spoilt)})
        assert {name for name, holds in found.items() if not holds} == expected, spoilt
        assert found.keys() == {"rows", "masked", "scores", "values", "sums"}


def test_a_weight_on_a_masked_key_is_noticed(tiny: Engine, translator: Translator) -> None:
    (source,) = sources_of(translator, [TEXT])
    spoil = """({ source, target }) => {
        const kept = model.trace(source, target);
        kept.get("decoder.layers.1.self_attn.pattern").values[1] = 1e-9;
        return modules.proof.claims(kept).find(({ name }) => name === "masked").holds;
    }"""
    assert not tiny.evaluate(spoil, {"source": source, "target": greedily(translator, source)})


@pytest.mark.parametrize(("n", "m"), [(5, 7), (24, 24), (25, 24), (24, 61), (100, 99)])
def test_heads_in_miniature_show_the_largest_weight_of_each_block(tiny: Engine, n: int, m: int) -> None:
    rng = np.random.default_rng(n)
    pattern, mask = rng.random((2, n, m)).astype("f4"), rng.random((2, n, m)) < 0.7
    expected = pooled(np.where(mask, pattern, np.nan))
    shrink = """({ pattern, mask, shape, most }) => {
        const array = { values: Float32Array.from(pattern), shape };
        const { values, shape: small } = modules.miniature.inMiniature(array, { values: mask }, most);
        return [Array.from(values, (value) => (Number.isNaN(value) ? null : value)), small];
    }"""
    question = {"pattern": pattern.ravel().tolist(), "mask": mask.ravel().tolist()}
    values, shape = tiny.evaluate(shrink, question | {"shape": [2, n, m], "most": MOST_CELLS})
    found = np.array([np.nan if value is None else value for value in values], "f4").reshape(shape)
    np.testing.assert_array_equal(found, expected)


def test_an_error_is_an_answer_and_the_next_question_is_answered(tiny: Engine) -> None:
    long = {"id": 1, "ask": "translate", "text": "snow " * 600, "beam": 1, "changes": []}
    messages = tiny.evaluate(ASK, {"questions": [long]})
    assert "256" in messages[-1]["error"]
    messages = tiny.evaluate(ASK, {"questions": [long | {"id": 2, "text": TEXT}]})
    assert messages[-1]["answer"]["text"]
