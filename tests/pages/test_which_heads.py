"""Which heads matter: the map is what the model scores, of a text, a token or others; pruning none changes nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model.analysis.heads.head_importance import ScoredText, head_scores, prune, pruning_curve
from model.checkpoints.huggingface import open_model
from model.checkpoints.store import load_checkpoint
from model.checkpoints.translator import Translator
from model.interventions import HeadGate
from model.run import Run
from pages.views.experiment.what_if import importance
from tests.model.checkpoints.huggingface.families import tiny_model
from tests.pages.conftest import SOURCE, TYPED
from tests.pages.figures import address, figure, maps, numbers
from viz.tokens import decoder_rows

pytestmark = pytest.mark.usefixtures("fresh_caches")

PAGE, PART = "pages/what_if.py", "Which heads matter"
CROSS = {"kind": "Cross-attention", "part": PART}


def scored(app: Any) -> Any:
    app.button(key="which_go").click().run()
    return app


def score(opened: Any, traces: list, kind: str, mode: str = "zero", question: ScoredText | None = None) -> Any:
    """What the model itself gives."""
    *_, (_, scores) = head_scores(opened, traces, kind, mode, *([[question] * len(traces)] if question else []))
    return scores


def test_the_map_is_what_the_model_scores_and_only_pruning_waits_for_the_button(
    open_app: Callable, run_at: Callable
) -> None:
    app = open_app(PAGE, **TYPED, **CROSS, which_mode="by its mean")
    (at_first,) = maps(app, "what_if-maps-of-heads")
    assert not app.metric
    scored(app)
    assert app.metric
    right = score(run_at().opened, [run_at().trace], "cross", "mean")
    (drawn,) = maps(app, "what_if-maps-of-heads")
    assert drawn == pytest.approx(right.change, abs=1e-5)
    assert np.array_equal(at_first, drawn)
    assert app.dataframe[0].value["change, nats"].tolist() == pytest.approx(sorted(right.change.ravel()), abs=1e-5)


def test_one_token_and_its_lead_over_another_word_are_scored(run_at: Callable) -> None:
    run = run_at("cross")
    other = next(candidate.id for candidate in run.trace.candidates[2] if candidate.id != run.trace.next_ids[2])
    for against in (None, other):
        question = ScoredText(2, against)
        result = importance(run, question=question, outcome=None)
        (drawn,) = maps(result, "maps-of-heads")
        right = score(run.opened, [run.trace], "cross", "zero", question)
        assert drawn == pytest.approx(right.change, abs=1e-5)
        assert (result.facts["at"], result.facts["word"] is None) == (2, against is None)
        assert result.facts["plain"] == pytest.approx(right.log_probabilities[0])


def test_pruning_none_changes_nothing_and_pruning_some_is_the_models(translator: Translator) -> None:
    run = Run.of(translator, translator.trace(SOURCE, beam_size=1), "cross")
    none, some = (importance(run, k=k) for k in (0, 5))
    assert none.facts["same"]
    assert len(set(none.shows["pruned"].scores.values())) == 1
    right = score(translator, [run.trace], "cross")
    changed = translator.trace_ids(SOURCE, run.trace.next_ids, prune([right], 5))
    assert list(some.shows["pruned"].scores.values())[1] == pytest.approx(changed.log_probability, abs=1e-4)
    *_, (_, curve) = pruning_curve(translator, run.trace, run.trace, prune([right], 8))
    line, *points = figure(some, "curve")["data"]
    assert numbers(line["y"]) == pytest.approx(curve.log_probabilities, abs=1e-4)
    unchanged = next(drawn for drawn in points if drawn["name"].endswith(" unchanged"))
    assert numbers(unchanged["x"]).tolist() == curve.counts[curve.same == 1].tolist()


def test_all_kinds_over_the_examples_state_mean_and_spread(open_app: Callable) -> None:
    app = scored(open_app(PAGE, source=SOURCE, part=PART, which_of="all kinds", which_on="10 example sentences"))
    assert len(maps(app, "what_if-maps-of-heads")) == 3
    table = app.dataframe[0].value
    assert len(table) == 24
    assert (table["lowest"] <= table["change, nats"]).all()
    assert (table["standard deviation"] >= 0).all()
    assert len(app.dataframe[1].value) == 10


def test_one_token_is_followed_through_the_persons_own_sentences(open_app: Callable, run_at: Callable) -> None:
    """In each own translation where it, or the word against it, stands; the others are named, not scored."""
    trace, translator, position = run_at().trace, run_at().opened, 4
    at = decoder_rows(trace.tgt_tokens, trace.next_tokens)[position]
    asked = {"which_score": "one token", "which_at": at, "which_on": "your own sentences"}
    app = open_app(PAGE, **TYPED, **CROSS, **asked)
    sentences = ["A dog runs.", "Two cats.", "A dog sleeps in the grass."]
    app.text_area(key="which_sentences").set_value(" ".join(sentences)).run()
    scored(app)
    token = trace.next_ids[position]
    having = [run for run in map(translator.trace, sentences) if token in run.next_ids]
    assert 0 < len(having) < len(sentences), "some translations have the token, and some do not"
    questions = [ScoredText(run.next_ids.index(token)) for run in having]
    *_, (_, right) = head_scores(translator, having, "cross", questions=questions)
    assert maps(app, "what_if-maps-of-heads")[0] == pytest.approx(right.change, abs=1e-5)
    assert app.dataframe[1].value["what the model wrote"].tolist() == [run.translation for run in having]


def test_sentences_without_the_token_are_left_out(translator: Translator) -> None:
    run = Run.of(translator, translator.trace(SOURCE, "XQ"))
    assert not {*run.trace.next_ids[1:-1]} & {*translator.trace("Two cats.").next_ids}
    facts = importance(run, question=ScoredText(1), texts=("Two cats.", "Two cats.")).facts
    assert (facts["texts"], facts["left_out"], facts["pruned"]) == (0, 2, False)


@pytest.mark.parametrize("source", ["A", "A dog runs. " * 12])
def test_one_word_and_a_hundred_tokens(translator: Translator, source: str) -> None:
    assert importance(Run.of(translator, translator.trace(source, beam_size=1))).facts["pruned"]


@pytest.mark.parametrize("family", ["lm", "mlm"])
def test_the_heads_of_a_model_of_one_text_are_scored_too(family: str, families: Path) -> None:
    opened = load_checkpoint(str(families / family), "cpu")
    trace = opened.trace("Two dogs run.", **({"max_new_tokens": 4} if family == "lm" else {}))
    result, right = importance(Run.of(opened, trace)), score(opened, [trace], trace.kinds[0].name)
    assert maps(result, "maps-of-heads")[0] == pytest.approx(right.change, abs=1e-5)
    off = opened.rerun(trace, prune([right], right.change.size // 4))
    assert list(result.shows["pruned"].scores.values())[1] == pytest.approx(off.log_probability, abs=1e-4)


@pytest.mark.parametrize(
    ("texts", "read"), [(("1 2 3", "no ids"), 1), (("no ids",), 0), ((), 1), (("5 6", "7 8 9", "2"), 3)]
)
def test_texts_that_the_model_cannot_read_are_left_out(texts: tuple[str, ...], read: int) -> None:
    opened = open_model(tiny_model("GPT-2"))  # without a tokenizer, so that a text is token ids
    run = Run.of(opened, opened.trace("4 5 6 7"), "decoder_self", 0, 1)
    result = importance(run, texts=texts)
    assert result.facts["texts"] == read
    assert result.facts["left_out"] == len(texts or "x") - read
    if read:
        off = opened.rerun(run.trace, (HeadGate(0.0, "decoder_self", 0, 1),)).log_probability
        scores = result.numbers["changes_decoder_self"]
        assert scores.shape[0] == read
        assert texts or scores[0, 0, 1] == pytest.approx(off - run.trace.log_probability, abs=1e-4)


@pytest.mark.parametrize("word", ["Rüssel", "a candidate"])
def test_the_other_word_is_in_the_address_with_its_position(open_app: Callable, word: str) -> None:
    """Opened again, the address has the same word: one of the most probable tokens, or one that was typed."""
    query = {"part": PART, "which_score": "one token", "source": "a dog", "target": "Greedy"}
    (box,) = (box for box in open_app(PAGE, **query).selectbox if box.label == "Against")
    word = box.options[0] if word == "a candidate" else word
    linked = open_app(PAGE, **query, which_against=f"{box.key.rpartition('-')[2]}.{word}")
    (again,) = (box for box in linked.selectbox if box.label == "Against")
    assert again.value is not None
    assert address(linked)["which_against"].endswith(f".{word}")
    other = open_app(PAGE, **query, which_against=f"99.{word}")
    assert next(box for box in other.selectbox if box.label == "Against").value is None
