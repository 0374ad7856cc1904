"""Home: each number of its figures is an element of the run's tensors."""

from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qsl

import numpy as np
import pytest

from model.analysis.heads.aligned_head import best_aligned_head
from model.checkpoints.store import load_checkpoint
from model.checkpoints.translator import Translator
from model.interventions import AttentionTemperature
from model.trace import Trace
from tests.pages.figures import figure, numbers, words

pytest.importorskip("streamlit")
from pages import page_of
from pages.compute.runs import Request
from pages.compute.trace_file import file_of
from pages.widgets.controls import LONGEST_IN_LINK, OPEN_TAB

SENTENCE = "a dog and a cat"


@pytest.fixture(scope="module")
def trace(translator: Translator) -> Trace:
    return translator.trace(SENTENCE)


def test_the_alignment_is_the_trace_s_cross_attention(open_app: Callable, trace: Trace) -> None:
    app = open_app(source=SENTENCE, layer="1", head="2")
    shown = {}
    for which in ("best", "last", "layer", "head"):
        app.segmented_control(key="alignment").set_value(which).run()
        shown[which] = figure(app, "translate-map")
    layer, head = best_aligned_head(trace)
    best = trace.attention("cross", layer).pattern[head]
    np.testing.assert_array_equal(numbers(shown["best"]["data"][0]["z"]), best)
    last, chosen = trace.attention("cross", 1).pattern, trace.attention("cross", 1).pattern[2]
    np.testing.assert_array_equal(numbers(shown["last"]["data"][0]["z"]), last.mean(axis=0))
    np.testing.assert_array_equal(numbers(shown["head"]["data"][0]["z"]), chosen)
    colours = shown["head"]["layout"]["coloraxis"]
    assert (colours["cmin"], colours["cmax"]) == (0, 1)


def test_the_page_opens_with_one_head_named_and_linked_and_says_what_is_averaged(
    open_app: Callable, trace: Trace
) -> None:
    app = open_app(source=SENTENCE, layer="1", head="2")
    layer, head = best_aligned_head(trace)
    name = f"cross-attention, layer {layer}, head {head}"
    assert any(name in caption.value for caption in app.caption)
    assert not any("mean of" in caption.value for caption in app.caption)
    (link,) = [link.proto for link in app.main.get("page_link") if link.proto.label == f"Open {name}"]
    assert f"see=cross.{layer}.{head}" in link.query_string
    app.segmented_control(key="alignment").set_value("head").run()
    assert any("layer 1, head 2" in caption.value for caption in app.caption)
    app.segmented_control(key="alignment").set_value("layer").run()
    assert any("layer 1, mean of its 4 heads" in caption.value for caption in app.caption)
    assert not any(link.proto.label.startswith("Open cross") for link in app.main.get("page_link"))


def test_rows_say_what_they_read_and_predict(open_app: Callable, trace: Trace) -> None:
    rows = figure(open_app(source=SENTENCE), "translate-map")["layout"]["yaxis"]["ticktext"]
    assert rows[0].startswith("0 &lt;s&gt; → ")
    assert len(rows) == min(len(trace.tgt_tokens), len(rows))


def test_probabilities_are_of_the_whole_vocabulary_and_the_rest_is_stated(open_app: Callable, trace: Trace) -> None:
    app = open_app(source=SENTENCE, position="1")
    bars = numbers(figure(app, "translate-certainty")["data"][0]["y"])
    expected = trace.target_probabilities
    np.testing.assert_array_equal(bars, expected)
    best = figure(app, "translate-candidates")
    shares = numbers(best["data"][0]["x"])
    assert shares.sum() == pytest.approx(1)
    np.testing.assert_allclose(shares[:10], np.sort(trace.probabilities[1])[::-1][:10], rtol=1e-12)
    shown = len(shares) - 1
    assert best["layout"]["yaxis"]["ticktext"][-1] == f"all {trace.logits.shape[-1] - shown:,} others"


def test_the_temperature_is_at_work_in_the_run(open_app: Callable, translator: Translator, trace: Trace) -> None:
    app = open_app(source=SENTENCE, kind="Cross-attention", layer="1", head="2", tau="0.1", scope="Head")
    app.segmented_control(key="alignment").set_value("head").run()
    change = AttentionTemperature(0.1, kind="cross", layer=1, head=2)
    expected = translator.trace(SENTENCE, interventions=(change,)).attention("cross", 1).pattern[2]
    np.testing.assert_array_equal(numbers(figure(app, "translate-map")["data"][0]["z"]), expected)
    assert expected.max() > trace.attention("cross", 1).pattern[2].max()


def test_white_space_in_a_link_or_a_pasted_text_changes_nothing(open_app: Callable) -> None:
    def said(**query: str) -> list[str]:
        page = open_app(target="Typed", **query)
        assert not page.info
        return [html.proto.body for html in page.main.get("html")]

    assert said(source="a\n\tdog and  a cat \n", typed="Ein\nHund") == said(source=SENTENCE, typed="Ein Hund")


def test_a_control_that_changes_nothing_here_is_off_until_it_does(open_app: Callable) -> None:
    def off(page: object) -> list[str]:
        return [
            w.key
            for w in (*page.button_group, *page.select_slider)
            if w.key in ("kind", "layer", "head") and w.disabled
        ]

    layers, followed = "pages/layer_by_layer.py", open_app(source=SENTENCE)
    assert off(followed) == []
    page = open_app(layers, source=SENTENCE)
    assert off(page) == ["kind", "layer", "head"]
    assert page.segmented_control(key="kind").help.startswith("This page does not depend on it")
    assert off(open_app(layers, source=SENTENCE, tau="2")) == []
    assert off(open_app(layers, source=SENTENCE, tau="2", scope="Everywhere")) == ["kind", "layer", "head"]
    assert off(open_app("pages/masks.py", source=SENTENCE)) == []
    assert off(open_app("pages/decoding.py", source=SENTENCE)) == ["kind"]


def test_every_other_page_has_a_card(open_app: Callable) -> None:
    from pages import PAGES

    links = {link.proto.page for link in open_app().get("page_link") if link.proto.label.startswith("**")}
    assert len(links) == sum(map(len, PAGES.values())) - 1


def test_views_below_each_other_have_their_titles_as_headings_and_on_their_exports(open_app: Callable) -> None:
    app, titles = open_app(source=SENTENCE), [view.title for view in page_of("translate.py").views]
    assert [header.value for header in app.header][: len(titles) - 1] == titles[1:]
    assert app.title[0].value == page_of("translate.py").heading
    assert {f"**{title}**" for title in titles} <= {element.value for element in app.markdown}
    masks = open_app("pages/masks.py", source=SENTENCE)
    assert not masks.header
    assert [tab.label for tab in masks.tabs] == [view.title for view in page_of("masks.py").views]


def test_the_links_below_a_position_open_a_tab_that_there_is_on_this_position(open_app: Callable) -> None:
    app = open_app(source=SENTENCE, position="1")
    links = [(link.proto.page, dict(parse_qsl(link.proto.query_string))) for link in app.main.get("page_link")]
    to_a_tab = [(page, link) for page, link in links if OPEN_TAB in link]
    assert {page for page, _ in to_a_tab} == {"attention_step_by_step", "what_if"}
    for page, link in to_a_tab:
        assert link[OPEN_TAB] in {view.title for view in page_of(f"{page}.py").views}
    (force,) = (link for _, link in to_a_tab if "force_at" in link)
    (which,) = (link for _, link in to_a_tab if "which_at" in link)
    page = open_app("pages/what_if.py", source=SENTENCE, **which)
    assert which[OPEN_TAB] in {tab.label for tab in page.tabs}
    assert page.selectbox(key="which_at").value == int(force["force_at"]) == 1


@pytest.mark.parametrize("position", [0, 2])
def test_every_written_token_leads_to_the_head_that_wrote_it(open_app: Callable, position: int) -> None:
    app = open_app(source=SENTENCE, position=str(position))
    links = [dict(parse_qsl(link.proto.query_string)) for link in app.main.get("page_link")]
    (here,) = [link for link in links if link.get("wrote_at") == str(position)][-1:]
    page = open_app("pages/who_chose.py", source=SENTENCE, **here)
    assert not page.exception
    assert page.number_input(key="wrote_at").value == position


def test_text_that_is_too_long_is_shown_to_its_last_sentence_that_fits_and_translated_whole_on_request(
    open_app: Callable, translator: Translator
) -> None:
    page = open_app(source="Two dogs run. " * 60)
    (note,) = [info.value for info in page.info if "one run of the model holds" in info.value]
    assert note.startswith("The source has 8")
    button = next(button for button in page.button if button.label.startswith("Translate all of it: 60"))
    button.click().run()
    assert not page.exception
    codes = [code.value for code in page.main.get("code")]
    (whole,) = [code for code in codes if "def " not in code and "import " not in code and not code.startswith("@")]
    (own,) = translator.translate(["Two dogs run."])
    assert whole.split() == (own + " ").split() * 60


@pytest.mark.parametrize("page", ["translate", "temperature", "layer_by_layer"])
def test_the_paper_is_one_click_away(page: str, open_app: Callable) -> None:
    """A link that a person clicks; nothing is loaded from it."""
    assert "(https://arxiv.org/abs/1706.03762)" in words(open_app(f"pages/{page}.py", source="a dog"))


def test_the_page_says_what_it_does_not_read_as_typed(open_app: Callable) -> None:
    assert "as typed" not in words(open_app(source=f"{SENTENCE}\n"))
    assert "single spaces" in words(open_app(source=SENTENCE.replace(" ", "\n", 1)))
    assert "SOFT HYPHEN" in words(open_app(source=f"\u00ad{SENTENCE}"))


def test_a_text_too_long_for_a_link_is_offered_as_the_file_of_its_run(open_app: Callable, tmp_path: Path) -> None:
    def promise(app: object) -> str:
        app.button(key="bar-share").click().run()
        return " ".join(str(component.proto) for component in app.get("bidi_component"))

    app = open_app(source=SENTENCE)
    plain = promise(app)
    assert "Save this run" not in {button.proto.label for button in app.get("download_button")}
    app.text_area(key="source").set_value("A dog runs. " * (LONGEST_IN_LINK // 10)).run()
    assert f"{LONGEST_IN_LINK:,}" in promise(app)
    assert f"{LONGEST_IN_LINK:,}" not in plain
    assert "Save this run" in {button.proto.label for button in app.get("download_button")}
    translator = load_checkpoint(device="cpu")
    (tmp_path / "run.npz").write_bytes(file_of(translator, Request(SENTENCE, beam_size=1)))
    assert Trace.load(tmp_path / "run.npz").src_ids == translator.trace(SENTENCE, beam_size=1).src_ids
