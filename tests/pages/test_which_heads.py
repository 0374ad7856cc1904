"""The tab on which heads matter: its map is what the model gives, pruning none changes nothing, extremes hold."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from model.analysis.heads.head_importance import ScoredText, head_scores, prune, pruning_curve
from model.checkpoints.huggingface import open_model
from model.checkpoints.store import load_checkpoint
from model.interventions import HeadGate
from model.run import Run
from pages.views.experiment.what_if import importance
from tests.model.checkpoints.huggingface.families import tiny_model
from tests.pages.figures import figure, numbers, words

if TYPE_CHECKING:
    from model.checkpoints.translator import Translator
from viz.tokens import decoder_rows

pytestmark = pytest.mark.usefixtures("fresh_caches")

PAGE, PART = "pages/what_if.py", "Which heads matter"
SOURCE, TEXT = "a dog and a cat", "Ein Hund mit einer Katze."
CROSS = "Cross-attention"


def scored(app):
    assert "which_go" in {button.key for button in app.button}, (words(app), [each.value for each in app.exception])
    app.button(key="which_go").click().run()
    assert not app.exception
    return app


def maps(app) -> list[np.ndarray]:
    return [numbers(t["z"]) for t in figure(app, "what_if-maps-of-heads")["data"] if t["type"] == "heatmap"]


def test_the_map_is_what_the_model_scores_and_only_pruning_waits_for_the_button(
    open_app: Callable, translator: "Translator"
) -> None:
    app = open_app(PAGE, source=SOURCE, target="Typed", typed=TEXT, kind=CROSS, part=PART, which_mode="by its mean")
    assert not app.exception
    (at_first,) = maps(app)
    assert "Decoded again without" not in words(app)
    scored(app)
    assert "Decoded again without" in words(app)
    trace = translator.trace(SOURCE, TEXT)
    *_, (_, right) = head_scores(translator, [trace], "cross", "mean")
    (drawn,) = maps(app)
    assert drawn == pytest.approx(right.change, abs=1e-5)
    assert np.array_equal(at_first, drawn)
    assert app.dataframe[0].value["change, nats"].tolist() == pytest.approx(sorted(right.change.ravel()), abs=1e-5)
    assert f"{right.log_probabilities[0]:.3f} nats".replace("-", "−") in words(app)


def test_one_token_and_its_lead_over_another_word_are_scored(open_app: Callable, translator: "Translator") -> None:
    """From a token of the translation, in the link of the home page, to the heads that chose it."""
    trace = translator.trace(SOURCE, TEXT)
    row = decoder_rows(trace.tgt_tokens, trace.next_tokens)[2]
    app = open_app(
        PAGE,
        source=SOURCE,
        target="Typed",
        typed=TEXT,
        kind=CROSS,
        part=PART,
        which_score="one token",
        which_at=row,
    )
    other = next(candidate.id for candidate in trace.candidates[2] if candidate.id != trace.next_ids[2])
    for against in (None, other):
        app.selectbox(key="which-against-2").set_value(against).run()
        scored(app)
        *_, (_, right) = head_scores(translator, [trace], "cross", questions=[ScoredText(2, against)])
        (drawn,) = maps(app)
        assert drawn == pytest.approx(right.change, abs=1e-5)
        assert "at position 2" in words(app)


def test_pruning_none_changes_nothing_and_pruning_some_is_the_models(
    open_app: Callable, translator: "Translator"
) -> None:
    app = scored(open_app(PAGE, source=SOURCE, target="Greedy", kind=CROSS, part=PART))
    app.slider(key="which_k").set_value(0).run()
    assert "without 0 heads: the same text" in words(app)
    assert app.metric[-1].value == "+0.000"
    app.slider(key="which_k").set_value(5).run()
    own = translator.trace(SOURCE, beam_size=1)
    *_, (_, right) = head_scores(translator, [own], "cross")
    gates = prune([right], 5)
    changed = translator.trace_ids(SOURCE, own.next_ids, gates)
    assert app.metric[-2].value == f"{changed.log_probability:.3f}".replace("-", "−")
    *_, (_, curve) = pruning_curve(translator, own, own, prune([right], 8))
    line, *points = figure(app, "what_if-curve")["data"]
    assert numbers(line["y"]) == pytest.approx(curve.log_probabilities, abs=1e-4)
    unchanged = next(drawn for drawn in points if drawn["name"].endswith(" unchanged"))
    assert numbers(unchanged["x"]).tolist() == curve.counts[curve.same == 1].tolist()


def test_all_kinds_over_the_examples_state_mean_and_spread(open_app: Callable) -> None:
    app = open_app(
        PAGE, source=SOURCE, target="Greedy", part=PART, which_of="all kinds", which_on="10 example sentences"
    )
    scored(app)
    assert len(maps(app)) == 3
    table = app.dataframe[0].value
    assert len(table) == 24
    assert (table["lowest"] <= table["change, nats"]).all()
    assert (table["standard deviation"] >= 0).all()
    assert "over 10 sentences" in words(app)


def test_one_token_is_followed_through_the_persons_own_sentences(open_app: Callable, translator: "Translator") -> None:
    """In each own translation where it, or the word against it, stands; the others are named, not scored."""
    trace = translator.trace(SOURCE, TEXT)
    position = 4
    app = open_app(
        PAGE,
        source=SOURCE,
        target="Typed",
        typed=TEXT,
        kind=CROSS,
        part=PART,
        which_score="one token",
        which_at=decoder_rows(trace.tgt_tokens, trace.next_tokens)[position],
        which_on="your own sentences",
    )
    assert "until there is a sentence" in words(app)
    sentences = ["A dog runs.", "Two cats.", "A dog sleeps in the grass."]
    app.text_area(key="which_sentences").set_value(" ".join(sentences)).run()
    scored(app)
    token = trace.next_ids[position]
    runs = [translator.trace(sentence) for sentence in sentences]
    having = [run for run in runs if token in run.next_ids]
    assert 0 < len(having) < len(runs), "some translations have the token, and some do not"
    questions = [ScoredText(run.next_ids.index(token)) for run in having]
    *_, (_, right) = head_scores(translator, having, "cross", questions=questions)
    (drawn,) = maps(app)
    assert drawn == pytest.approx(right.change, abs=1e-5)
    assert app.dataframe[1].value["what the model wrote"].tolist() == [run.translation for run in having]
    assert f"Left out: {len(runs) - len(having)} " in words(app)


def test_sentences_without_the_token_are_said_to_have_none(open_app: Callable, translator: "Translator") -> None:
    trace = translator.trace(SOURCE, "XQ")
    assert not {*trace.next_ids[1:-1]} & {*translator.trace("Two cats.").next_ids}
    app = open_app(
        PAGE,
        source=SOURCE,
        target="Typed",
        typed="XQ",
        part=PART,
        which_score="one token",
        which_at=decoder_rows(trace.tgt_tokens, trace.next_tokens)[1],
        which_on="your own sentences",
        which_sentences="Two cats. Two cats.",
    )
    scored(app)
    assert "No text that the model writes for these sentences" in words(app)


@pytest.mark.parametrize("source", ["A", "A dog runs. " * 12])
def test_one_word_and_a_hundred_tokens(open_app: Callable, source: str) -> None:
    scored(open_app(PAGE, source=source, target="Greedy", part=PART))


@pytest.mark.parametrize("family", ["lm", "mlm"])
def test_the_heads_of_a_model_of_one_text_are_scored_too(family: str, families: Path, open_family: Callable) -> None:
    app = scored(open_family(PAGE, checkpoint=family, source="Two dogs run.", new_tokens="4", part=PART))
    opened = load_checkpoint(str(families / family), "cpu")
    trace = opened.trace("Two dogs run.", **({"max_new_tokens": 4} if family == "lm" else {}))
    kind = trace.kinds[0].name
    *_, (_, right) = head_scores(opened, [trace], kind)
    (drawn,) = maps(app)
    assert drawn == pytest.approx(right.change, abs=1e-5)
    off = opened.rerun(trace, prune([right], right.change.size // 4))
    assert app.metric[-2].value == f"{off.log_probability:.3f}".replace("-", "−")


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
    query = {"part": "Which heads matter", "which_score": "one token", "source": "a dog", "target": "Greedy"}
    app = open_app("pages/what_if.py", **query)
    (box,) = (box for box in app.selectbox if box.label == "Against")
    if word == "a candidate":
        word = box.options[0]
    linked = open_app("pages/what_if.py", **query, which_against=f"{box.key.rpartition('-')[2]}.{word}")
    (again,) = (box for box in linked.selectbox if box.label == "Against")
    assert not linked.exception
    assert again.value is not None
    kept = linked.query_params["which_against"]
    assert (kept if isinstance(kept, str) else kept[-1]).endswith(f".{word}")
    other = open_app("pages/what_if.py", **query, which_against=f"99.{word}")
    assert next(box for box in other.selectbox if box.label == "Against").value is None
