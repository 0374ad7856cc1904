"""Home: each number of its figures is an element of the run's tensors, and its links open what they say."""

import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qsl

import numpy as np
import pytest

from model.analysis.heads.aligned_head import best_aligned_head
from model.checkpoints.store import load_checkpoint
from model.checkpoints.translator import Translator
from model.trace import Trace
from pages import PAGES, page_of
from pages.compute.runs import Request
from pages.compute.trace_file import file_of
from pages.views.explore.translate import alignment, certainty
from pages.widgets.controls import LONGEST_IN_LINK, OPEN_TAB
from tests.pages.conftest import SOURCE
from tests.pages.figures import figure, lines, maps, numbers, words


def test_the_alignment_is_the_run_s_cross_attention_of_one_head_or_a_layer(run_at: Callable) -> None:
    run = run_at("cross", 1, 2)
    layer, head = best_aligned_head(run.trace)
    last = run.trace.attention("cross", 1).pattern
    expected = {
        "best": (run.trace.attention("cross", layer).pattern[head], layer, head),
        "last": (last.mean(axis=0), 1, None),
        "layer": (last.mean(axis=0), 1, None),
        "head": (last[2], 1, 2),
    }
    assert alignment(run).facts["head"] == head, "it opens with one head"
    for which, (weights, layer, head) in expected.items():
        result = alignment(run, weights=which)
        np.testing.assert_array_equal(maps(result, "map")[0], weights.astype(np.float32))
        assert (result.facts["layer"], result.facts["head"]) == (layer, head)
    layout = figure(alignment(run), "map")["layout"]
    assert (layout["coloraxis"]["cmin"], layout["coloraxis"]["cmax"]) == (0, 1)
    assert layout["yaxis"]["ticktext"][0].startswith("0 &lt;s&gt; → ")


def test_the_head_that_aligns_best_is_one_click_away(open_app: Callable, translator: Translator) -> None:
    app = open_app(source=SOURCE)
    layer, head = best_aligned_head(translator.trace(SOURCE))
    links = [link.proto for link in app.main.get("page_link") if link.proto.label.startswith("Open cross")]
    assert [f"see=cross.{layer}.{head}" in link.query_string for link in links] == [True]
    app.segmented_control(key="alignment").set_value("layer").run()
    assert not any(link.proto.label.startswith("Open cross") for link in app.main.get("page_link"))


def test_probabilities_are_of_the_whole_vocabulary_and_the_rest_is_stated(run_at: Callable) -> None:
    run = run_at()
    result = certainty(run, position=1)
    np.testing.assert_array_equal(lines(result, "certainty")[0], run.trace.target_probabilities)
    best = figure(result, "candidates")
    shares = numbers(best["data"][0]["x"])
    assert shares.sum() == pytest.approx(1)
    np.testing.assert_allclose(shares[:10], np.sort(run.trace.probabilities[1])[::-1][:10], rtol=1e-12)
    others = run.trace.logits.shape[-1] - len(shares) + 1
    assert best["layout"]["yaxis"]["ticktext"][-1] == f"all {others:,} others"


def test_white_space_in_a_link_or_a_pasted_text_changes_nothing(open_app: Callable) -> None:
    def said(**query: str) -> list[str]:
        page = open_app(target="Typed", **query)
        assert not page.info
        return [html.proto.body for html in page.main.get("html")]

    assert said(source="a\n\tdog and  a cat \n", typed="Ein\nHund") == said(source=SOURCE, typed="Ein Hund")


def test_a_control_that_changes_nothing_here_is_off_until_it_does(open_app: Callable) -> None:
    def off(page: object) -> list[str]:
        return [
            w.key
            for w in (*page.button_group, *page.select_slider)
            if w.key in ("kind", "layer", "head") and w.disabled
        ]

    layers, followed = "pages/layer_by_layer.py", open_app(source=SOURCE)
    assert off(followed) == []
    page = open_app(layers, source=SOURCE)
    assert off(page) == ["kind", "layer", "head"]
    assert page.segmented_control(key="kind").help.startswith("This page does not depend on it")
    assert off(open_app(layers, source=SOURCE, tau="2")) == []
    assert off(open_app(layers, source=SOURCE, tau="2", scope="Everywhere")) == ["kind", "layer", "head"]
    assert off(open_app("pages/masks.py", source=SOURCE)) == []
    assert off(open_app("pages/decoding.py", source=SOURCE)) == ["kind"]


def test_a_wide_screen_is_sent_no_menu_for_a_thumb(open_app: Callable) -> None:
    placed = " ".join(block.proto.id for block in open_app().get("flex_container"))
    assert "-foot-place" in placed
    assert "-foot-menu" not in placed


def test_every_other_page_has_a_card(open_app: Callable) -> None:
    found = (one.proto for one in open_app().get("bidi_component"))
    (cards,) = (json.loads(one.json)["sections"] for one in found if one.component_name == "cards")
    assert [section["title"] for section in cards] == list(PAGES)
    names = [card["name"] for section in cards for card in section["pages"]]
    assert names == [page.name for pages in PAGES.values() for page in pages if page.name != "translate"]


@pytest.mark.usefixtures("open_feet")
def test_views_below_each_other_have_their_titles_as_headings_and_on_their_exports(open_app: Callable) -> None:
    app, titles = open_app(source=SOURCE), [view.title for view in page_of("translate.py").views]
    assert [header.value for header in app.header][: len(titles) - 1] == titles[1:]
    assert app.title[0].value == page_of("translate.py").heading
    assert {f"**{title}**" for title in titles} <= {element.value for element in app.markdown}
    masks = open_app("pages/masks.py", source=SOURCE)
    assert not masks.header
    assert [tab.label for tab in masks.tabs] == [view.title for view in page_of("masks.py").views]


def test_the_links_below_a_position_open_a_tab_that_there_is_on_this_position(open_app: Callable) -> None:
    app = open_app(source=SOURCE, position="1")
    links = [(link.proto.page, dict(parse_qsl(link.proto.query_string))) for link in app.main.get("page_link")]
    to_a_tab = [(page, link) for page, link in links if OPEN_TAB in link]
    assert {page for page, _ in to_a_tab} == {"attention_step_by_step", "what_if"}
    for page, link in to_a_tab:
        assert link[OPEN_TAB] in {view.title for view in page_of(f"{page}.py").views}
    (force,) = (link for _, link in to_a_tab if "force_at" in link)
    (which,) = (link for _, link in to_a_tab if "which_at" in link)
    page = open_app("pages/what_if.py", source=SOURCE, **which)
    assert which[OPEN_TAB] in {tab.label for tab in page.tabs}
    assert page.selectbox(key="which_at").value == int(force["force_at"]) == 1


@pytest.mark.parametrize("position", [0, 2])
def test_every_written_token_leads_to_the_head_that_wrote_it(open_app: Callable, position: int) -> None:
    app = open_app(source=SOURCE, position=str(position))
    links = [dict(parse_qsl(link.proto.query_string)) for link in app.main.get("page_link")]
    (here,) = [link for link in links if link.get("wrote_at") == str(position)][-1:]
    page = open_app("pages/who_chose.py", source=SOURCE, **here)
    assert page.number_input(key="wrote_at").value == position


def test_text_that_is_too_long_is_shown_to_its_last_sentence_that_fits_and_translated_whole_on_request(
    open_app: Callable, translator: Translator
) -> None:
    page = open_app(source="Two dogs run. " * 60)
    (note,) = [info.value for info in page.info if "one run of the model holds" in info.value]
    assert note.startswith("The source has 8")
    button = next(button for button in page.button if button.label.startswith("Translate all of it: 60"))
    button.click().run()
    codes = [code.value for code in page.main.get("code")]
    (whole,) = [code for code in codes if "def " not in code and "import " not in code and not code.startswith("@")]
    (own,) = translator.translate(["Two dogs run."])
    assert whole.split() == (own + " ").split() * 60


def test_the_page_says_what_it_does_not_read_as_typed(open_app: Callable) -> None:
    assert "as typed" not in words(open_app(source=f"{SOURCE}\n"))
    assert "single spaces" in words(open_app(source=SOURCE.replace(" ", "\n", 1)))
    assert "SOFT HYPHEN" in words(open_app(source=f"\u00ad{SOURCE}"))


def test_a_text_too_long_for_a_link_is_offered_as_the_file_of_its_run(open_app: Callable, tmp_path: Path) -> None:
    def promise(app: object) -> str:
        app.button(key="bar-share").click().run()
        return " ".join(str(component.proto) for component in app.get("bidi_component"))

    app = open_app(source=SOURCE)
    plain = promise(app)
    assert "Save this run" not in {button.proto.label for button in app.get("download_button")}
    app.text_area(key="source").set_value("A dog runs. " * (LONGEST_IN_LINK // 10)).run()
    assert f"{LONGEST_IN_LINK:,}" in promise(app)
    assert f"{LONGEST_IN_LINK:,}" not in plain
    assert "Save this run" in {button.proto.label for button in app.get("download_button")}
    translator = load_checkpoint(device="cpu")
    (tmp_path / "run.npz").write_bytes(file_of(translator, Request(SOURCE, beam_size=1)))
    assert Trace.load(tmp_path / "run.npz").src_ids == translator.trace(SOURCE, beam_size=1).src_ids
