"""The picture of Gap by gap: a box for each guess as long as it is the best, and cells that can be hit."""

import numpy as np

from viz.special.fill_in import GapsByStep

EVIL = "<img src=x>"
PICTURE = GapsByStep(
    rows=["1 cat", f"4 {EVIL}"],
    guesses=[["dog", "cat", "cat"], [EVIL, EVIL, EVIL]],
    probabilities=np.array([[0.2, 0.5, np.nan], [0.1, 0.1, 0.4]]),
    chosen=1,
)


def test_a_guess_has_one_box_from_where_it_is_the_best_and_grey_begins_after_the_gap_is_filled() -> None:
    _, stands, boxes, _ = PICTURE.draw().content["data"]
    found = zip(boxes["y"], boxes["base"], boxes["x"], boxes["text"], strict=True)
    assert [*found] == [(0, -0.5, 1, "dog"), (0, 0.5, 2, "cat"), (1, -0.5, 3, "&lt;img src=x&gt;")]
    assert [*zip(stands["y"], stands["base"], stands["x"], strict=True)] == [(0, 1.5, 1), (1, 2.5, 0)]


def test_each_cell_can_be_hit_says_what_it_is_and_chooses_its_step() -> None:
    *_, points = PICTURE.draw().content["data"]
    assert [*zip(points["y"], points["x"], strict=True)] == [*np.ndindex(2, 3)]
    assert points["hovertemplate"], "what has no hover text cannot be clicked"
    for step, data in zip(points["x"], points["customdata"], strict=True):
        assert PICTURE.clicked({"customdata": data}) == {"step": step + 1}
        assert "<" not in "".join(map(str, data))
    assert [data[3] for data in points["customdata"]] == ["0.2000", "0.5000", "filled", "0.1000", "0.1000", "0.4000"]


def test_the_frames_of_the_step_and_of_what_fills_a_gap_differ_without_their_colours() -> None:
    step, *fills = PICTURE.draw().content["layout"]["shapes"]
    assert "dash" not in step["line"]
    assert [round(fill["x0"] + 0.5) for fill in fills] == [1, 2]
    assert all(fill["line"]["dash"] for fill in fills)
