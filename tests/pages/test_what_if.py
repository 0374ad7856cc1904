"""What if: a list of changes and its link; figures are the two runs' tensors, and what is kept is at work elsewhere."""

from collections.abc import Callable

import numpy as np
import pytest

from model.checkpoints.translator import Translator
from model.interventions import HeadGate, MaskEdit, UniformAttention
from model.interventions.link import decode, encode
from model.run import Run
from pages.views.experiment import what_if as views
from pages.widgets.change_list import with_cell_toggled
from tests.pages import figures
from tests.pages.conftest import SOURCE, TYPED
from tests.pages.figures import address, ends, holds, lines, words

PAGE = "pages/what_if.py"
HERE = TYPED | {"kind": "Cross-attention", "layer": "1", "head": "2", "what_if_shown": "Your own head"}
GREEDY = {"target": "Greedy"}
"""of which the model writes one text alone after each change"""


def link(app) -> str:
    return address(app).get("changes", "")


def maps(app) -> list[np.ndarray]:
    """Before, after and difference; its key has the number of the cells that were edited."""
    key = next(chart.proto.id for chart in app.get("plotly_chart") if "what_if-maps" in chart.proto.id)
    return figures.maps(app, key[key.index("what_if-maps") :])


def test_maps_and_numbers_are_those_of_the_two_runs(run_at: Callable, translator: Translator) -> None:
    changes = (UniformAttention("cross", 0), MaskEdit(((2, 1),), (), "cross", 1, 2))
    plain, changed = run_at("cross", 1, 2), run_at("cross", 1, 2, *changes)
    result, one, other = views.outcome(plain, changed=changed, shown="own"), plain.attention, changed.attention
    seen = np.where(other.mask[2], other.pattern[2], np.nan)
    for drawn, expected in zip(
        figures.maps(result, "maps"), (one.pattern[2], seen, other.pattern[2] - one.pattern[2]), strict=True
    ):
        np.testing.assert_array_equal(drawn, expected)
    first, second = (run.trace.target_log_probabilities for run in (plain, changed))
    for drawn, expected in zip(ends(views.tokens(plain, changed=changed), "tokens"), (first, second), strict=True):
        assert np.array_equal(drawn, expected)
    assert list(result.shows["same"].scores.values()) == [first.sum(), second.sum()]
    assert result.facts["difference"] == pytest.approx(second.sum() - first.sum())
    new = translator.trace(SOURCE, interventions=changes)
    scores = [trace.log_probability for trace in (translator.trace_ids(SOURCE, new.next_ids), new)]
    assert list(result.shows["again"].scores.values()) == pytest.approx(scores)
    assert (result.facts["identical"], result.facts["unmoved"]) == (False, False)


def test_identities_change_no_bit_and_no_word(run_at: Callable) -> None:
    changes = decode("temperature:1@cross.1.2;gate:1:zero;mask:::@cross".replace(":::", "::"))
    result = views.outcome(run_at("cross", 1, 2), changed=run_at("cross", 1, 2, *changes))
    assert result.facts["identical"]
    assert result.facts["same_text"]
    assert not figures.maps(result, "maps")[2].any()


@pytest.mark.usefixtures("fresh_caches", "short_texts")
def test_a_list_grows_moves_shrinks_and_comes_back(open_app: Callable) -> None:
    app = open_app(PAGE, **HERE | GREEDY)
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


def test_a_link_opens_its_changes_which_stay_while_other_pages_are_read(open_app: Callable) -> None:
    changes = "mask:2-1:0-3@encoder_self.1.2;gate:0:mean@cross.0.1;forbid-source:1"
    app = open_app(PAGE, **HERE, changes=changes)
    assert link(app) == encode(decode(changes))
    assert "3. No query may attend to source position 1" in words(app)
    app.switch_page("pages/masks.py").run()
    app.switch_page(PAGE).run()
    assert decode(link(app)) == decode(changes)


@pytest.mark.usefixtures("fresh_caches", "short_texts")
def test_every_change_can_be_built_added_and_run(open_app: Callable) -> None:
    app = open_app(PAGE, **HERE | GREEDY)
    names = app.selectbox(key="what_if_what").options
    for name in names:
        app.selectbox(key="what_if_what").set_value(name).run()
        for key in ("what_if_forbidden", "what_if_silent"):
            if any(element.key == key for element in app.multiselect):
                app.multiselect(key=key).set_value([1]).run()
        app.button(key="what_if_add").click().run()
    changes = decode(link(app))
    assert len(changes) == len(names) == len({type(change) for change in changes})
    assert holds(app) == 3


@pytest.mark.usefixtures("fresh_caches", "short_texts")
def test_each_experiment_takes_the_place_of_the_list(open_app: Callable) -> None:
    app, before = open_app(PAGE, **HERE | GREEDY, changes="unscaled"), decode("unscaled")
    experiments = [str(button.key) for button in app.button if str(button.key).startswith("what_if_take_")]
    assert len(experiments) >= 5
    for key in experiments:
        app.button(key=key).click().run()
        assert len(decode(link(app))) == 1
        assert decode(link(app)) != before, key
        app.button(key="what_if_undo").click().run()
        assert decode(link(app)) == before


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
    assert said in " ".join(element.value for element in app.text)
    assert link(app) == (encode(decode(link(app))) or "[]")
    assert "PatternEdit" in link(app) or link(app) == "[]"


@pytest.mark.parametrize("source", ["A", "A dog runs. " * 12])
def test_one_word_and_a_hundred_tokens(translator: Translator, source: str) -> None:
    """With changes of cells and tokens that a short text does not have."""
    changes = decode("mask:0-0,90-90:;uniform@cross;forbid-source:0,80;positions-shuffled:1,0:source")
    run = Run.of(translator, translator.trace(source.strip(), beam_size=1))
    changed = run.forced(*changes)
    for view in (views.outcome, views.tokens, views.candidates, views.heads):
        assert view(run, changed=changed).blocks


def test_a_click_forbids_a_cell_and_a_second_click_takes_it_back() -> None:
    here, gate = {"kind": "cross", "layer": 1, "head": 2}, HeadGate(0.0)
    one = with_cell_toggled((gate,), (2, 3), "forbid", here)
    assert one == (gate, MaskEdit(((2, 3),), (), **here))
    two = with_cell_toggled(one, (0, 1), "allow", here)
    assert two == (gate, MaskEdit(((2, 3),), ((0, 1),), **here))
    assert with_cell_toggled(two, (2, 3), "forbid", {"kind": "cross"}) == (*two, MaskEdit(((2, 3),), kind="cross"))
    assert with_cell_toggled(with_cell_toggled(two, (0, 1), "allow", here), (2, 3), "forbid", here) == (gate,)


@pytest.mark.usefixtures("open_feet")
def test_changes_that_are_kept_on_are_at_work_on_every_page_until_one_click_takes_them_off(
    open_app: Callable, run_at: Callable
) -> None:
    changes = (HeadGate(0.0, kind="cross", layer=1, head=2),)
    app = open_app(PAGE, **HERE, changes=encode(changes))
    app.button(key="what_if_keep").click().run()
    assert "1" in app.query_params["kept"]
    elsewhere = open_app("pages/translate.py", **HERE, changes=encode(changes), kept="1")
    app.switch_page("pages/translate.py").run()
    own, changed = run_at().trace, run_at("cross", 0, 0, *changes).trace
    for page in (app, elsewhere):
        assert [line.value for line in page.sidebar.caption if "z is set to 0" in line.value] == [
            "In cross-attention, layer 1, head 2, z is set to 0."
        ]
        assert "checked on this run, with 1 change in the model" in words(page)
        assert any("HeadGate(gate=0.0" in code.value for code in page.main.get("code"))
        assert link(page) == encode(changes)
        np.testing.assert_array_equal(lines(page, "translate-certainty")[0], changed.target_probabilities)
        page.button(key="remove-0").click().run()
        assert "z is set to 0" not in words(page)
        assert link(page) in ("", "[]"), "no changes"
        np.testing.assert_array_equal(lines(page, "translate-certainty")[0], own.target_probabilities)


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
