"""Often told wrong: a verdict follows from its numbers, and the corrections are correct."""

import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from model.analysis.heads.evenness import row_evenness
from model.analysis.heads.many_sentences import ManySentences, MeasuredHead
from model.analysis.heads.removal import Removal
from model.background.paper_results import TABLE_2
from model.background.sizes import count_parameters, self_attention_layer
from model.background.table_1 import lstm_work
from model.background.table_3 import TABLE_3
from model.checkpoints.store import load_checkpoint
from model.network.config import PRESETS
from model.run import Run
from pages.views import views_of
from pages.views.learn.often_told_wrong import mistakes
from tests.model.checkpoints.test_shipped import FOLDER as SHIPPED
from tests.pages.figures import words

PAGE = "pages/often_told_wrong.py"
TEXTS = Path(__file__).parents[2] / "pages/text"
VIEWS = {view.name: view for view in views_of("pages.views.learn.often_told_wrong")}
CLAIMS_TESTED = [view for view in VIEWS.values() if view.on_request]


@pytest.fixture(scope="module")
def run(translator) -> Run:
    return Run.of(translator, translator.trace("the dog sees a cat"))


def offered(app) -> set[str]:
    """Names of the claims that have a button."""
    return {key.removeprefix("claim-") for button in app.button if (key := button.key or "").startswith("claim-")}


@pytest.mark.usefixtures("fresh_caches")
def test_a_claim_gets_its_verdict_at_once_or_when_its_button_is_pressed(open_app: Callable) -> None:
    app = open_app(PAGE, source="the dog sees a cat")
    waiting = [view.name for view in CLAIMS_TESTED if view.on_request.at_once is None]
    assert offered(app) == {*waiting} < {view.name for view in CLAIMS_TESTED}
    told = len(CLAIMS_TESTED) - len(waiting)
    for name in ("", waiting[-1]):
        if name:
            app.button(key=f"claim-{name}").click().run()
        assert len(re.findall("(?:Holds|not hold|decided) here", words(app))) == told + bool(name)


@pytest.mark.parametrize("name", ["lm", "mlm"])
def test_other_families_test_what_they_have(name: str, family_run: Callable) -> None:
    tested = {view.name for view in CLAIMS_TESTED if not view(family_run(name), outcome=None).facts["missing"]}
    assert tested >= {"heads", "untrained"}
    assert len(tested) == 4


@pytest.mark.parametrize("loss", [0.0, 0.3])
def test_verdicts_follow_from_the_losses(loss: float, run: Run) -> None:
    removal = Removal(np.array([-loss] * 10), np.array([0, 5, 10]), np.array([0, -loss, -loss]))
    assert VIEWS["heads"](run, outcome=removal).facts["holds"] == (loss == 0)
    changes = {("encoder", 0, "self_attn"): -loss, ("decoder", 1, "cross_attn"): -0.2}
    assert VIEWS["sublayers"](run, outcome=changes).facts["holds"] == (loss > 0)
    assert VIEWS["shifted"](run, outcome={1: 0.01, 500: -loss}).facts["holds"] == (loss == 0)


@pytest.mark.parametrize(("errors", "holds"), [([0.2, 0.4], True), ([0.2, 0.6], False), ([], None)])
def test_cross_attention_aligns_words_if_each_head_does(errors: list[float], holds: bool | None, run: Run) -> None:
    heads = [MeasuredHead("cross", 0, i, "", "", {}, {"errors": error}, {}, ()) for i, error in enumerate(errors)]
    many = ManySentences(9, "some sentences", "", tuple(heads))
    assert VIEWS["alignment"](run, outcome=many).facts["holds"] is holds


@pytest.mark.parametrize(("widths", "holds"), [((0.9, 0.8, 0.7), True), ((0.7, 0.8, 0.75), False), ((0.9,), None)])
def test_narrow_heads_attend_more_sharply_if_evenness_falls_with_the_width(widths, holds, run: Run) -> None:
    outcome = dict(zip((256, 64, 16), widths, strict=False))
    assert VIEWS["sharpness"](run, outcome=outcome).facts["holds"] is holds


@pytest.mark.parametrize(("text", "articles"), [("a dog sees a cat", ["a", "a"]), ("dog", [])])
def test_the_rows_of_articles_are_compared_with_those_of_the_other_words(text: str, articles, translator) -> None:
    view, trace = VIEWS["articles"], translator.trace(text)
    facts = view(Run.of(translator, trace)).facts
    assert facts["words"] == articles
    if articles:
        even, labels = row_evenness(trace, "encoder"), trace.streams["encoder"].tokens.labels
        assert facts["own"] == pytest.approx(np.mean([even[i] for i, t in enumerate(labels) if t == "▁a"]))
        assert facts["holds"] == (facts["own"] > facts["others"])


def test_the_length_and_the_width_that_table_1_compares_are_those_of_the_run(run: Run, translator) -> None:
    facts = mistakes(run).facts
    assert (facts["n"], facts["d"]) == (len(run.trace.src_tokens), translator.model.config.d_model)


def test_nobody_is_quoted_who_did_not_say_it(run: Run) -> None:
    """These are our words for what many say: no source has them, so they stand without quotation marks."""
    boxes = [block for block in mistakes(run).blocks if block.kind == "box"]
    for text in (*(view.title for view in CLAIMS_TESTED), *(box.items[0].text for box in boxes)):
        assert not set(text) & set('“”„"')


def test_the_overflow_is_told_with_the_largest_score_of_the_run(run: Run) -> None:
    largest = max(np.abs(one.scores).max() for one in run.trace.attentions.values())
    assert mistakes(run).facts["largest"] == largest
    assert mistakes(run).facts["half"] == np.finfo(np.float16).max
    assert float(np.nextafter(np.float16(0), np.float16(1))) == pytest.approx(6e-8, rel=0.01)


def test_operations_of_other_systems_are_those_of_table_2(run: Run) -> None:
    systems = {row.system: row.en_de_operations for row in TABLE_2}
    facts = mistakes(run).facts
    assert facts["gnmt"] == systems["GNMT + RL"] / systems["Transformer, base"]
    assert facts["convs2s"] == systems["ConvS2S"] / systems["Transformer, base"]


def test_numbers_of_the_corrections_are_recomputed(run: Run) -> None:
    boxes = [block.items for block in mistakes(run).blocks if block.kind == "box"]

    def right(part: str) -> str:
        (text,) = (right.text for wrong, right, _ in boxes if part in wrong.text)
        return text

    scores = np.exp([0.9, 0.1, 0.7, -0.9])
    assert ", ".join(f"{each:.3f}" for each in scores / scores.sum()) in right("[0.9, 0.1, 0.7, −0.9]")
    scores = np.exp([2, 1, 0.5, -0.5])
    assert ", ".join(f"{each:.3f}" for each in scores / scores.sum()) in right("[2, 1, 0.5, −0.5]")
    bleu = {row.change.split(",")[0]: row.bleu for row in TABLE_3}
    for row, value in (("base", 25.8), ("h = 4", 25.5), ("d_ff = 1024", 25.4), ("h = 16", 25.8)):
        assert bleu[row] == value
        assert str(value) in right("Table 3")
    assert f"{4096**2 * 4 // 2**20} MiB is one head" in right("4,096")
    assert f"{8 * 4096**2 * 4 // 2**20} MiB" in right("4,096")
    base = replace(PRESETS["base"], vocab_size=37_000)
    tied = sum(count_parameters(base).values())
    untied = sum(count_parameters(replace(base, tie_embeddings=False)).values())
    assert f"{untied / 1e6:.1f} million; {tied / 1e6:.1f} million" in right("65 million")
    k, angle = 3, 0.7
    pair = np.array([math.sin(angle), math.cos(angle)])
    turned = np.array([[math.cos(k), -math.sin(k)], [math.sin(k), math.cos(k)]]) @ pair
    assert turned == pytest.approx([math.sin(angle - k), math.cos(angle - k)])


@pytest.mark.parametrize("name", ["en-de", "everyday-lm", "everyday-lm-2017", "everyday-mlm", "multi30k-tiny"])
def test_with_its_projections_attention_costs_more_than_one_recurrent_matrix_whatever_n_is(name: str) -> None:
    """So "only where n > d" is a sentence about the terms of Table 1 alone."""
    config = load_checkpoint(str(SHIPPED / name), "cpu").config
    for n in (1, 15, config.d_model):
        whole = self_attention_layer(config, n).total
        assert whole > n * config.d_model**2
        assert (whole > lstm_work(n, config.d_model)) is (n * (config.d_k + config.d_v) * config.n_heads > room(config))


def room(config) -> int:
    """n h (d_k + d_v) up to which the layer costs no more than an LSTM of 8 n d^2."""
    widths = (config.n_heads + config.kv_heads) * (config.d_k + config.d_v)
    return 8 * config.d_model**2 - config.d_model * widths
