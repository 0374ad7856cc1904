"""Said, and measured: a verdict follows from its numbers, and the corrections are correct."""

import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("streamlit")

from model.background.paper_results import TABLE_2, TRAINING_HOURS, operations_of
from model.background.sizes import count_parameters, self_attention_layer
from model.background.table_1 import lstm_work
from model.checkpoints.store import load_checkpoint
from model.network.config import PRESETS
from model.proof.claims import CLAIMS
from model.proof.mistakes import MISTAKES
from pages.parts.corrections import corrections
from pages.parts.sayings import SAYINGS, VERDICTS, WIDTHS
from pages.views.since_2017 import STUDY
from pages.widgets.glossary import define
from tests.model.checkpoints.test_shipped import FOLDER as SHIPPED
from tests.pages.figures import words
from tests.pages.widgets.test_export import TABS

PAGE = "pages/said_and_measured.py"
PAGES = Path(__file__).parents[2] / "pages"


@pytest.mark.parametrize("saying", SAYINGS, ids=lambda saying: saying.slug)
@pytest.mark.usefixtures("fresh_caches")
def test_a_statement_gets_its_verdict_when_its_button_is_pressed(saying, open_app: Callable) -> None:
    app = open_app(PAGE, source="the dog sees a cat")
    assert "rue here" not in words(app)
    app.button(key=f"saying-{saying.slug}").click().run()
    assert not app.exception
    (text,) = (each.value for each in app.markdown if each.value.startswith(tuple(VERDICTS.values())))
    assert "nan" not in text
    assert "{" not in text


def test_a_count_of_operations_is_the_product(open_app: Callable) -> None:
    app = open_app(PAGE, source="the dog sees a cat")
    app.button(key="saying-costs").click().run()
    (text,) = (each.value for each in app.markdown if "n² d = **" in each.value)
    n, d, attention, recurrence = (int(each.replace(",", "")) for each in re.findall(r"= \**([\d,]+)\**", text)[:4])
    assert (attention, recurrence) == (n * n * d, n * d * d)
    assert ("Not true" in text) == (n <= d)


@pytest.mark.parametrize("checkpoint", ["lm", "mlm"])
@pytest.mark.usefixtures("fresh_caches")
def test_other_families_measure_what_they_have(checkpoint: str, open_family: Callable) -> None:
    app = open_family(PAGE, checkpoint=checkpoint, source="the dog sees")
    offered = {saying.slug for saying in SAYINGS if any(b.key == f"saying-{saying.slug}" for b in app.button)}
    assert offered == {"heads", "sublayers", "articles", "untrained", "costs"}
    for slug in sorted(offered):
        app.button(key=f"saying-{slug}").click().run()
        assert not app.exception, slug


@pytest.mark.parametrize("tab", ["Often told wrong", "The paper's results"])
def test_the_other_tabs_are_text_and_tables(tab: str, open_app: Callable) -> None:
    app = open_app(PAGE, said=tab)
    assert not app.exception
    assert len(words(app)) > 500


@pytest.mark.parametrize("each", corrections(), ids=lambda each: each.wrong[:40])
def test_a_correction_opens_the_tab_that_shows_it(each) -> None:
    """A page with tabs is opened at one of them, unless the page itself shows what is right."""
    tabs = {**TABS, "said_and_measured": ("said", "The paper's results")}
    whole_page = {"attention_step_by_step", "since_2017"}
    assert bool(each.query) != (each.page in whole_page), each.wrong
    for key, tab in each.query.items():
        assert key == tabs[each.page][0]
        assert tab in tabs[each.page][1:]


@pytest.mark.parametrize("saying", SAYINGS, ids=lambda saying: saying.slug)
def test_a_statement_opens_the_tab_that_its_link_names(saying) -> None:
    for key, tab in saying.tab:
        assert key == TABS[saying.page][0]
        assert tab in TABS[saying.page][1:]
    named = saying.label.partition(": ")[2]
    assert bool(saying.tab) == (bool(named) and saying.page in TABS), saying.label


@pytest.mark.parametrize("text", [*(each.wrong for each in corrections()), *(saying.said for saying in SAYINGS)])
def test_nobody_is_quoted_who_did_not_say_it(text: str) -> None:
    """These are our words for what many say: no source has them, so they stand without quotation marks."""
    assert not set(text) & set('“”„"')


def test_the_costs_name_table_1_and_count_the_whole_layer_too(open_app: Callable, translator) -> None:
    app = open_app(PAGE, source="the dog sees a cat")
    app.button(key="saying-costs").click().run()
    (text,) = (each.value for each in app.markdown if "n² d = **" in each.value)
    n, d = len(translator.trace("the dog sees a cat").src_tokens), translator.model.config.d_model
    whole = 2 * n * n * d + 4 * n * d * d
    assert f"this model's layer takes {whole:,}, {whole / (n * d * d):.2g} times" in text
    assert f"{whole / (8 * n * d * d):.2g} times an LSTM" in text


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


def right(part: str) -> str:
    (found,) = (each.right for each in corrections() if part in each.wrong)
    return found


def test_numbers_of_the_corrections_are_recomputed() -> None:
    scores = np.exp([0.9, 0.1, 0.7, -0.9])
    assert ", ".join(f"{each:.3f}" for each in scores / scores.sum()) in right("[0.9, 0.1, 0.7, −0.9]")
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


def test_the_papers_operations_are_time_times_speed() -> None:
    for row in TABLE_2:
        if row.system in TRAINING_HOURS:
            assert operations_of(TRAINING_HOURS[row.system]) == pytest.approx(row.en_de_operations, rel=0.02)


def test_numbers_that_are_written_as_words_are_those_of_the_lists() -> None:
    sources = {page: (PAGES / page).read_text(encoding="utf-8") for page in ("parts/mistakes.py", "text/since_2017.md")}
    assert len(MISTAKES) == 10
    assert "Ten mistakes" in sources["parts/mistakes.py"]
    assert len(STUDY) == 7
    assert "Seven language models" in sources["text/since_2017.md"]
    assert len({claim.number for claim in CLAIMS}) == 20
    assert define("claims").startswith("Twenty statements")
    assert len(WIDTHS) == 4
    assert "Run four small translators on this text" in [saying.how for saying in SAYINGS]
