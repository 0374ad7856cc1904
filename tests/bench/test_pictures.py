"""What `make bench` says about the pictures: verdicts, sentences of a given length, exponents, what is recorded."""

import json
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from model.checkpoints.translator import Translator
from model.network.config import EOS
from tests.bench import views
from tests.bench.__main__ import main
from tests.bench.growth import exponent
from tests.bench.recording import forward
from tests.bench.sentences import text_of, trace_of
from tests.bench.standalone import component_page
from tests.bench.table import HEADINGS, Row, markdown, text
from viz.drawing import Drawing


@pytest.mark.parametrize(
    ("ratio", "least", "verdict"), [(1.3, False, "OK"), (1.31, False, "MISSED"), (1.3, True, "OK")]
)
def test_a_budget_is_kept_up_to_and_with_its_limit(ratio: float, least: bool, verdict: str) -> None:
    assert Row("a picture", "1 ms", "another 1 ms", ratio, 1.3, least=least).verdict == verdict


def test_too_small_a_lead_is_missed_and_what_has_no_budget_has_no_verdict() -> None:
    assert Row("a picture", "1 ms", "another 1 ms", 1.2, 1.3, least=True).verdict == "MISSED"
    assert Row("a picture", "9 ms", "another 1 ms", 9.9).verdict == ""


def test_what_a_budget_of_a_fifth_compares_is_open_alone_and_every_picture_has_its_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[tuple[set[str], int]] = []

    def measure(windows: dict, rounds: int) -> dict[str, list[float]]:
        opened.append(({*windows} - {"nothing"}, rounds))
        return {name: [1.0] for name in windows}

    for name in ("served", "chromium"):
        monkeypatch.setattr(views, name, lambda *_: nullcontext(""))
    monkeypatch.setattr(views, "watched", lambda *_: Mock())
    monkeypatch.setattr(views, "_server_row", lambda *_: None)
    monkeypatch.setattr(views, "measured", measure)
    _, *rows = views.views("en-de", (20,), rounds=3)
    assert opened == [({"bytes", "mosaic"}, 6), ({*views.PICTURES} - {"bytes", "mosaic"}, 3)]
    assert [row.what for row in rows] == [f"{title}, 20 tokens" for title, _ in views.PICTURES.values()]


@pytest.mark.parametrize("unit", ["ms", "s", "min", "sentences/s"])
def test_a_budget_in_a_unit_of_time_is_refused_because_it_would_depend_on_the_machine(unit: str) -> None:
    with pytest.raises(ValueError, match=unit):
        Row("a picture", "1 ms", "another 1 ms", 1.0, 50, unit=unit)


def test_a_ratio_has_to_say_beside_what_unless_it_counts_bytes_or_is_an_exponent() -> None:
    with pytest.raises(ValueError, match="times what"):
        Row("a picture", "1 ms", ratio=1.0, budget=50)
    assert Row("memory", "", ratio=1.0, budget=50, unit="MB").verdict == "OK"
    assert Row("growth", "", ratio=3.0, budget=2.0, unit="").verdict == "MISSED"


def test_both_tables_hold_every_row_under_the_headings() -> None:
    rows = [Row("mosaic", "90 ms", "empty 80 ms", 1.125, 1.3), Row("lines", "70 ms")]
    plain, marked = text("Title", rows), markdown(rows)
    assert [line.split()[0] for line in plain[2:4]] == ["mosaic", "lines"]
    assert "1.12 ×" in marked[2]
    assert marked[2].endswith("| OK |")
    assert {line.count("|") for line in marked} == {len(HEADINGS) + 1}


@pytest.mark.parametrize("tokens", [20, 60, 128])
def test_a_sentence_has_just_the_tokens_asked_for(translator: Translator, tokens: int) -> None:
    assert len(translator.tokenizer.encode(text_of(translator.tokenizer, tokens))) + 1 == tokens


def test_a_run_has_so_many_tokens_on_either_side(translator: Translator) -> None:
    trace = trace_of(translator, 20)
    assert trace.attention("cross", 0).pattern.shape[1:] == (20, 20)
    assert trace.next_ids[-1] == EOS


def test_the_unrecorded_pass_goes_through_the_hook_points_all_the_same(translator: Translator) -> None:
    import torch

    seen = []
    point = translator.model.encoder.layers[0].self_attn.pattern
    handle = point.register_forward_hook(lambda *_: seen.append(point.observed))
    try:
        forward(translator.model, torch.tensor([[5, EOS]]))
    finally:
        handle.remove()
    assert seen == [True]


def test_the_exponent_of_a_power_is_found() -> None:
    lengths = np.array([32, 64, 128, 256])
    found = [exponent(dict(zip(lengths.tolist(), 3.0 * lengths**power, strict=True))) for power in (1, 1.5, 2)]
    assert found == pytest.approx([1, 1.5, 2])
    assert all(one < other for one, other in pairwise(found))


def test_a_component_on_its_own_carries_its_data_and_its_name() -> None:
    page = component_page(Drawing("lines", b"bytes"))
    assert page.data == "Ynl0ZXM="
    assert 'class="lines component"' in page.draw
    assert "export default" not in page.libraries


def test_an_unknown_part_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--only", "views,speeed"])
    assert "speeed" in capsys.readouterr().err


def test_each_move_of_the_four_charts_of_plain_streamlit_changes_all_their_cells() -> None:
    app = AppTest.from_file(Path(__file__).with_name("four_charts.py"), default_timeout=60).run()
    seen = [_cells(app), _cells(app.slider(key="move").set_value(1).run())]
    assert np.shape(seen) == (2, 4, 20, 20)
    assert np.not_equal(*seen).all()


def _cells(app: AppTest) -> list:
    assert not app.exception
    return [json.loads(chart.proto.spec)["data"][0]["z"] for chart in app.get("plotly_chart")]


def test_a_page_that_draws_nothing_says_its_moves_and_what_they_have_cost() -> None:
    app = AppTest.from_file(Path(__file__).with_name("empty.py"), default_timeout=60).run()
    app.slider(key="move").set_value(2).run()
    moved, spent = (text.value for text in app.text)
    assert moved == "moved 2"
    assert float(spent.removesuffix(" s after 2 moves")) > 0
