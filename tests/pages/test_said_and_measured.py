"""Said, and measured: a verdict follows from its numbers, and the corrections are correct."""

import math
import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("streamlit")

from model.background.paper_results import TABLE_2, TRAINING_HOURS, operations_of
from model.background.sizes import count_parameters
from model.network.config import PRESETS
from pages.parts.corrections import corrections
from pages.parts.sayings import SAYINGS, VERDICTS
from tests.pages.figures import words

PAGE = "pages/said_and_measured.py"


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
