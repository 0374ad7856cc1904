"""Networks of masks: a click and a hover text name the row, names are text, and paper has the same picture."""

import numpy as np

from viz.networks import Networks
from viz.paper.page import Paper, draw


def networks(row: int = 3) -> Networks:
    causal = np.tril(np.ones((5, 5), bool))
    own, cross = causal.copy(), causal.copy()
    own[2:, :2] = cross[:, 2:] = cross[:2] = False
    names, every = [f"{at} <b>" for at in range(5)], {"one": own, "two": np.zeros((5, 5), bool), "cross": cross}
    return Networks(names, every, {"left": range(2), "Both": range(5)}, [0, 2, 3, 4], row)


def test_a_row_says_how_many_of_the_drawn_tokens_it_reads_and_a_click_chooses_it() -> None:
    picture = networks()
    outputs = [one for one in picture.draw().data if one.mode == "markers+text"][-1]
    assert [said for _, _, said in outputs.customdata] == [
        "reads 1 of 4",
        "reads 2 of 4",
        "reads 3 of 4",
        "this row has not appeared yet",
    ]
    assert [name for name, *_ in outputs.customdata] == ["0 &lt;b&gt;", "2 &lt;b&gt;", "3 &lt;b&gt;", "4 &lt;b&gt;"]
    assert outputs.text == ("0", "2", "<b>3</b>", "4")
    assert [picture.clicked({"customdata": one})["place"] for one in outputs.customdata] == [1, 2, 3, 4]


def test_a_kind_of_arrow_stands_in_the_legend_once_and_all_tokens_are_exported() -> None:
    picture = networks()
    named = [one.name for one in picture.draw().data if one.showlegend and one.mode == "lines"]
    assert named == ["one", "cross"]
    left, both, drawn = (picture.arrays()[name] for name in ("left", "both", "drawn"))
    assert (left.shape, both.shape, drawn.tolist()) == ((2, 2), (5, 5), picture.drawn)
    assert draw(picture.draw(), Paper(), "Masks")
