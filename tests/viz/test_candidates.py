"""Bars of candidates are the numbers they were given, with names as plain text and words where they are asked for."""

import numpy as np

from viz.candidates import Candidates, candidate_names, with_rest

EVIL = "\u2581<img src=x>"


def test_each_series_has_a_bar_for_each_candidate_and_one_for_the_rest() -> None:
    before, after = with_rest(np.array([0.5, 0.2, 0.1])), np.array([0.7, 0.3, 0.0, 0.0])
    form = Candidates(
        names=candidate_names(("a", EVIL, "c"), 97),
        series={"before": before, "drawn from": after},
        markers=[{}, {}],
        chosen=1,
        words={"drawn from": [f"{share:.0%}" if share else "cut" for share in after]},
    )
    own, drawn = form.draw().data
    assert list(own.x) == list(before)
    assert list(drawn.x) == list(after)
    assert list(drawn.text) == ["70%", "30%", "cut", "cut"]
    assert list(own.text)[:3] == ["50.00%", "20.00%", "10.00%"]
    names = form.draw().layout.yaxis.ticktext
    assert names[1] == "<b>&lt;img src=x&gt;</b>"
    assert names[-1] == "all 97 others"
    assert [list(values) for values in form.arrays().values()] == [list(before), list(after)]
