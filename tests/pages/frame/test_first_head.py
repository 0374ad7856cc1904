"""On which head the sidebar begins: the one that was measured to do most, where a model has one kind of attention."""

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from model.analysis.heads.many_sentences import most_telling_head, read_distributions
from model.checkpoints import load_checkpoint

PLACE = ("layer", "head")
FORMS = {"continue_text": "everyday-lm", "fill_in": "everyday-mlm"}


def place_of(app: AppTest) -> tuple[int, ...]:
    return tuple(app.select_slider(key=key).value for key in PLACE)


@pytest.mark.usefixtures("open_shipped")
@pytest.mark.parametrize("name", [*FORMS.values(), "everyday-lm-2017"])
def test_the_most_telling_head_exceeds_both_yardsticks_and_no_other_exceeds_them_further(
    name: str,
) -> None:
    opened = load_checkpoint(name)
    how, chosen = read_distributions(opened), most_telling_head(opened)
    margins = {
        place: min(beyond.by_offset.value, beyond.by_nearest.value)
        for place in how.places
        if (beyond := how.beyond(place)) and beyond.survives
    }
    assert chosen in margins
    assert margins[chosen] == max(margins.values())


@pytest.mark.parametrize(("page", "name"), FORMS.items())
def test_a_model_of_one_text_opens_on_it_unless_its_link_names_another(
    page: str, name: str, open_shipped: Callable
) -> None:
    _, *place = most_telling_head(load_checkpoint(name))
    assert tuple(place) != (0, 0)
    app = open_shipped(f"pages/{page}.py")
    assert place_of(app) == tuple(place)
    linked = open_shipped(f"pages/{page}.py", checkpoint=name, layer="0")
    assert place_of(linked) == (0, place[1])


def test_with_another_model_the_place_is_that_models_unless_somebody_chose_one(open_shipped: Callable) -> None:
    _, *telling = most_telling_head(load_checkpoint("everyday-lm"))
    app = open_shipped("pages/masks.py")
    assert place_of(app) == (0, 0)
    app.selectbox(key="checkpoint").set_value("everyday-lm").run()
    assert place_of(app) == tuple(telling)
    app.button(key="reset").click().run()
    assert place_of(app) == (0, 0)
    app.select_slider(key="head").set_value(3).run()
    app.selectbox(key="checkpoint").set_value("everyday-lm").run()
    assert place_of(app) == (0, 3)


@pytest.mark.parametrize("name", ["lm", "mlm"])
def test_a_model_that_was_not_measured_opens_on_its_first_head(name: str, open_family: Callable) -> None:
    assert place_of(open_family("pages/masks.py", checkpoint=name)) == (0, 0)
