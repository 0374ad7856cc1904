"""The page "What if" without a browser: a list of changes, its link, and figures that are the two runs' tensors."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pytest

from model.interventions import HeadGate, MaskEdit, UniformAttention
from model.interventions.link import decode, encode
from tests.pages.figures import figure, numbers, words

if TYPE_CHECKING:
    from model.checkpoints.translator import Translator

PAGE = "pages/what_if.py"
SOURCE, TEXT = "a dog and a cat", "Ein Hund mit einer Katze."
HERE = {"source": SOURCE, "target": "Typed", "typed": TEXT, "kind": "Cross-attention", "layer": "1", "head": "2"}
HERE["what_if_shown"] = "Your own head"
MAPS = "what_if-maps"


def link(app) -> str:
    found = app.query_params.get("changes", "")
    return found if isinstance(found, str) else found[-1]


def maps(app) -> list[np.ndarray]:
    """Before, after and difference."""
    key = next(c.proto.id for c in app.get("plotly_chart") if MAPS in c.proto.id)
    data = figure(app, key[key.index(MAPS) :])["data"]
    return [numbers(t["z"]) for t in data if t["type"] == "heatmap" and "masked" not in t["hovertemplate"]]


def html(app) -> str:
    return " ".join(element.proto.body for element in app.get("html"))


def test_maps_and_numbers_are_those_of_the_two_runs(open_app: Callable, translator: "Translator") -> None:
    changes = (UniformAttention("cross", 0), MaskEdit(((2, 1),), (), "cross", 1, 2))
    app = open_app(PAGE, **HERE, changes=encode(changes))
    assert not app.exception
    plain, changed = translator.trace(SOURCE, TEXT), translator.trace(SOURCE, TEXT, interventions=changes)
    one, other = (trace.attention("cross", 1) for trace in (plain, changed))
    before, after, difference = maps(app)
    assert np.array_equal(before, one.pattern[2])
    assert np.array_equal(after, np.where(other.mask[2], other.pattern[2], np.nan), equal_nan=True)
    assert np.array_equal(difference, other.pattern[2] - one.pattern[2])
    first, second = plain.target_log_probabilities, changed.target_log_probabilities
    tokens = open_app(PAGE, **HERE, changes=encode(changes), part="Each token")
    bars = [numbers(bar["y"]) for bar in figure(tokens, "what_if-tokens")["data"]]
    assert np.array_equal(bars[0], first)
    assert np.array_equal(bars[1], second)
    assert np.array_equal(bars[2], second - first)
    assert [metric.value for metric in app.metric][:3] == [
        number.replace("-", "−")
        for number in (f"{first.sum():.3f}", f"{second.sum():.3f}", f"{(second - first).sum():+.3f}")
    ]
    new = translator.trace(SOURCE, interventions=changes)
    unchanged = translator.trace_ids(SOURCE, new.next_ids)
    assert [metric.value for metric in app.metric][3:5] == [
        f"{trace.target_log_probabilities.sum():.3f}".replace("-", "−") for trace in (unchanged, new)
    ]


def test_a_link_opens_its_changes_and_keeps_them(open_app: Callable) -> None:
    changes = "mask:2-1:0-3@encoder_self.1.2;gate:0:mean@cross.0.1;forbid-source:1"
    app = open_app(PAGE, **HERE, changes=changes)
    assert not app.exception
    assert link(app) == encode(decode(changes))
    assert len(decode(link(app))) == 3
    assert "3. No query may attend to source position 1" in words(app)


def test_identities_change_no_bit_and_no_word(open_app: Callable) -> None:
    app = open_app(PAGE, **HERE, changes="temperature:1@cross.1.2;gate:1:zero;mask:::@cross".replace(":::", "::"))
    assert not app.exception
    assert "are bit-identical" in words(app)
    assert "the same text as without the changes" in words(app)
    assert not maps(app)[2].any()


def test_a_list_grows_moves_shrinks_and_comes_back(open_app: Callable) -> None:
    app = open_app(PAGE, **HERE)
    assert not {"what_if_undo", "what_if_reset", "what_if_keep"} & {button.key for button in app.button}
    app.button(key="what_if_add").click().run()
    app.selectbox(key="what_if_what").set_value("Weights: uniform").run()
    app.selectbox(key="what_if_head").set_value("all").run()
    app.button(key="what_if_add").click().run()
    gate, uniform = HeadGate(0.0, "cross", 1, 2), UniformAttention("cross", 1)
    assert decode(link(app)) == (gate, uniform)
    app.button(key="what_if_up_1").click().run()
    assert decode(link(app)) == (uniform, gate)
    app.button(key="what_if_away_0").click().run()
    assert decode(link(app)) == (gate,)
    app.button(key="what_if_reset").click().run()
    assert link(app) == "[]"
    for expected in ((gate,), (uniform, gate), (gate, uniform), (gate,), ()):
        app.button(key="what_if_undo").click().run()
        assert decode(link(app)) == expected
    assert "what_if_undo" not in {button.key for button in app.button}
    assert not app.exception


def test_the_list_stays_while_other_pages_are_read(open_app: Callable) -> None:
    app = open_app(PAGE, **HERE, changes="uniform@cross")
    app.switch_page("pages/masks.py").run()
    app.switch_page(PAGE).run()
    assert decode(link(app)) == decode("uniform@cross")
    assert "every query gives equal weight" in words(app)


def test_every_change_can_be_built_added_and_run(open_app: Callable) -> None:
    app = open_app(PAGE, **HERE)
    names = app.selectbox(key="what_if_what").options
    for name in names:
        app.selectbox(key="what_if_what").set_value(name).run()
        for key in ("what_if_forbidden", "what_if_silent"):
            if any(element.key == key for element in app.multiselect):
                app.multiselect(key=key).set_value([1]).run()
        app.button(key="what_if_add").click().run()
        assert not app.exception, name
    changes = decode(link(app))
    assert len(changes) == len(names) == len({type(change) for change in changes})
    assert sum("holds" in element.value for element in app.markdown) == 3


@pytest.mark.parametrize(
    "button",
    [
        "Switch off this head",
        "Uniform cross-attention",
        "No positions",
        "Lift the causal mask",
        "Hide the longest word",
    ],
)
def test_an_experiment_takes_the_place_of_the_list(open_app: Callable, button: str) -> None:
    app = open_app(PAGE, **HERE, changes="unscaled")
    app.button(key=f"what_if_take_{button}").click().run()
    assert not app.exception
    assert len(decode(link(app))) == 1
    assert decode(link(app)) != decode("unscaled")
    app.button(key="what_if_undo").click().run()
    assert decode(link(app)) == decode("unscaled")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<script>", "unknown change"),
        ("temperature:0", "cannot be read"),
        ("unscaled;" * 40, "at most 32"),
        ("x" * 5000, "at most 4,000"),
        ("gate:0:zero@cross.9.0", "no such layer or head: In cross-attention, layer 9"),
        ("gate:0:zero@cross.0.9;pattern:0:1", "no such layer or head"),
    ],
)
def test_a_link_that_cannot_be_followed_is_answered_in_a_sentence(open_app: Callable, text: str, said: str) -> None:
    app = open_app(PAGE, **HERE, changes=text)
    assert not app.exception
    assert said in " ".join(element.value for element in app.text)
    assert link(app) == (encode(decode(link(app))) or "[]")
    assert "PatternEdit" in link(app) or link(app) == "[]"


@pytest.mark.parametrize("source", ["A", "A dog runs. " * 12])
def test_one_word_and_a_hundred_tokens(open_app: Callable, source: str) -> None:
    changes = "mask:0-0,90-90:;uniform@cross;forbid-source:0,80;positions-shuffled:1,0:source"
    for part in ("Each token", "Next word", "Where it moved"):
        app = open_app(PAGE, source=source.strip(), target="Greedy", part=part, changes=changes)
        assert not app.exception
        assert sum("holds" in element.value for element in app.markdown) == 3


def test_markup_in_a_sentence_stays_text(open_app: Callable) -> None:
    app = open_app(
        PAGE, source=SOURCE, target="Typed", typed="<b>Hund</b> <script>alert(1)</script>", changes="uniform"
    )
    assert not app.exception
    assert "&lt;b&gt;Hund" in html(app)
    assert "<script>" not in html(app)


def test_a_click_forbids_a_cell_and_a_second_click_takes_it_back() -> None:
    from pages.widgets.change_list import with_cell_toggled

    here, gate = {"kind": "cross", "layer": 1, "head": 2}, HeadGate(0.0)
    one = with_cell_toggled((gate,), (2, 3), "forbid", here)
    assert one == (gate, MaskEdit(((2, 3),), (), **here))
    two = with_cell_toggled(one, (0, 1), "allow", here)
    assert two == (gate, MaskEdit(((2, 3),), ((0, 1),), **here))
    assert with_cell_toggled(two, (2, 3), "forbid", {"kind": "cross"}) == (*two, MaskEdit(((2, 3),), kind="cross"))
    assert with_cell_toggled(with_cell_toggled(two, (0, 1), "allow", here), (2, 3), "forbid", here) == (gate,)


def test_changes_that_are_kept_on_are_at_work_on_every_page_until_one_click_takes_them_off(
    open_app: Callable, translator: "Translator"
) -> None:
    changes = (HeadGate(0.0, kind="cross", layer=1, head=2),)
    app = open_app(PAGE, **HERE, changes=encode(changes))
    plain = words(app)
    app.button(key="what_if_keep").click().run()
    assert "1 change in the model: the model ran again" not in plain + words(app)
    assert "1" in app.query_params["kept"]
    elsewhere = open_app("pages/translate.py", **HERE, changes=encode(changes), kept="1")
    app.switch_page("pages/translate.py").run()
    own, changed = translator.trace(SOURCE, TEXT), translator.trace(SOURCE, TEXT, interventions=changes)
    for page in (app, elsewhere):
        assert not page.exception
        assert [line.value for line in page.sidebar.caption if "z is set to 0" in line.value] == [
            "In cross-attention, layer 1, head 2, z is set to 0."
        ]
        assert "checked on this run, with 1 change in the model" in words(page)
        assert any("HeadGate(gate=0.0" in code.value for code in page.main.get("code"))
        assert link(page) == encode(changes)
        np.testing.assert_array_equal(
            numbers(figure(page, "translate-certainty")["data"][0]["y"]), changed.target_probabilities
        )
        page.button(key="remove-0").click().run()
        assert "z is set to 0" not in words(page)
        assert link(page) in ("", "[]"), "no changes"
        np.testing.assert_array_equal(
            numbers(figure(page, "translate-certainty")["data"][0]["y"]), own.target_probabilities
        )


def test_a_first_visit_begins_with_something_done_and_shows_the_head_that_changed_most(open_app: Callable) -> None:
    """Until there are no changes, which the link says, or the person wants their own head."""
    query = {name: value for name, value in HERE.items() if name != "what_if_shown"}
    app = open_app(PAGE, **query, first="yes")
    (change,) = decode(link(app))
    assert isinstance(change, UniformAttention)
    _, _, difference = maps(app)
    largest = np.nanmax(np.abs(difference))
    assert largest > 0
    for kind, layer, head in [
        ("Cross-attention", 1, 2),
        ("Encoder self-attention", 0, 0),
        ("Decoder self-attention", 1, 3),
    ]:
        place = {"kind": kind, "layer": str(layer), "head": str(head), "what_if_shown": HERE["what_if_shown"]}
        own = maps(open_app(PAGE, **query | place, changes=link(app)))[2]
        assert np.nanmax(np.abs(own)) <= largest
    app.button(key="what_if_reset").click().run()
    assert not maps(app)[2].any()
    assert not maps(open_app(PAGE, **query, changes=link(app)))[2].any()
