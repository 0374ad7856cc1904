"""The joined matrix and the masks: what is drawn is what was given."""

import numpy as np

from viz.charts.three_families import family_maps, joined_map

NAMES = ["0 A", "1 </s>", "2 <s>", "3 Ein", "4 ."]


def test_the_matrix_shows_the_weights_and_hatches_what_is_not_computed() -> None:
    mask = np.tril(np.ones((5, 5), dtype=bool))
    weights = np.where(mask, np.arange(25.0).reshape(5, 5) / 25, 0)
    figure = joined_map(NAMES, weights, mask, sources=2)
    drawn = np.array(figure.data[0].z, dtype=float)
    assert (drawn[mask] == weights[mask].astype(np.float32)).all()
    assert np.isnan(drawn[~mask]).all()
    assert figure.layout.images
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (0, 1)
    assert {(line.x0, line.x1) for line in figure.layout.shapes if line.x0 == line.x1} == {(1.5, 1.5)}


def test_each_family_has_a_map_of_its_mask() -> None:
    masks = {"all": np.ones((5, 5), dtype=bool), "causal": np.tril(np.ones((5, 5), dtype=bool))}
    figure = family_maps(NAMES, masks, sources=2)
    titles = [note.text for note in figure.layout.annotations]
    assert titles == ["all", "causal"]
    visible = [
        np.isfinite(np.array(trace.z, dtype=float)) for trace in figure.data if trace.hovertemplate.startswith("may")
    ]
    assert [(v == m).all() for v, m in zip(visible, masks.values(), strict=True)] == [True, True]
