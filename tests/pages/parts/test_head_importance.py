"""The tab on which heads matter: its map is what the model gives, pruning none changes nothing, extremes hold."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pytest

from model.analysis.head_importance import Question, head_scores, prune
from model.analysis.head_pruning import pruning_curve
from tests.pages.figures import figure, numbers

if TYPE_CHECKING:
    from model.checkpoints.translator import Translator
from viz.tokens import decoder_rows

pytestmark = pytest.mark.usefixtures("fresh_caches")

PAGE, PART = "pages/what_if.py", "Which heads matter"
SOURCE, TEXT = "a dog and a cat", "Ein Hund mit einer Katze."
CROSS = "Cross-attention"


def words(app) -> str:
    return " ".join(element.value for kind in (app.markdown, app.caption, app.info, app.text) for element in kind)


def scored(app):
    app.button(key="which_go").click().run()
    assert not app.exception
    return app


def maps(app) -> list[np.ndarray]:
    return [numbers(t["z"]) for t in figure(app, "which-maps-figure")["data"] if t["type"] == "heatmap"]


def test_the_map_is_what_the_model_scores_and_waits_for_the_button(
    open_app: Callable, translator: "Translator"
) -> None:
    app = open_app(PAGE, source=SOURCE, target="Typed", typed=TEXT, kind=CROSS, part=PART, which_mode="by its mean")
    assert not app.exception
    assert not [c for c in app.get("plotly_chart") if "which-maps" in c.proto.id]
    scored(app)
    trace = translator.trace(SOURCE, TEXT)
    *_, right = head_scores(translator.model, [(trace.src_ids, trace.next_ids)], "cross", "mean")
    (drawn,) = maps(app)
    assert drawn == pytest.approx(right.change, abs=1e-5)
    assert app.dataframe[0].value["change, nats"].tolist() == pytest.approx(sorted(right.change.ravel()), abs=1e-5)
    assert f"{right.log_probabilities[0]:.3f} nats" in words(app)


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
        pair = (trace.src_ids, trace.next_ids)
        *_, right = head_scores(translator.model, [pair], "cross", question=Question(2, against))
        (drawn,) = maps(app)
        assert drawn == pytest.approx(right.change, abs=1e-5)
        assert "at position 2" in words(app)


def test_pruning_none_changes_nothing_and_pruning_some_is_the_models(
    open_app: Callable, translator: "Translator"
) -> None:
    app = scored(open_app(PAGE, source=SOURCE, target="Greedy", kind=CROSS, part=PART))
    app.slider(key="which_k").set_value(0).run()
    assert "without 0 heads: the same translation" in words(app)
    assert "+0.000 nats" in words(app)
    app.slider(key="which_k").set_value(5).run()
    own = translator.trace(SOURCE, beam_size=1)
    *_, right = head_scores(translator.model, [(own.src_ids, own.next_ids)], "cross")
    gates = prune([right], 5)
    changed = translator.trace_ids(SOURCE, own.next_ids, gates)
    assert f"{changed.target_log_probabilities.sum():.3f} without these" in words(app)
    app.button(key="which_curve").click().run()
    *_, curve = pruning_curve(translator.model, (own.src_ids, own.next_ids), own.next_ids, prune([right], 8))
    drawn = figure(app, "which-curve")["data"][0]
    assert numbers(drawn["y"]) == pytest.approx(curve.log_probabilities, abs=1e-4)
    assert [symbol == "circle" for symbol in drawn["marker"]["symbol"]] == curve.same.astype(bool).tolist()


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


@pytest.mark.parametrize("source", ["A", "A dog runs. " * 12])
def test_one_word_and_a_hundred_tokens(open_app: Callable, source: str) -> None:
    app = scored(open_app(PAGE, source=source, target="Greedy", part=PART))
    app.button(key="which_curve").click().run()
    assert not app.exception


def test_nonsense_in_the_link_is_no_error(open_app: Callable) -> None:
    app = open_app(
        PAGE, source="A", target="Greedy", part=PART, which_k="9999", which_of="?", which_mode="-1", which_on=""
    )
    assert not app.exception
    assert not scored(app).exception
