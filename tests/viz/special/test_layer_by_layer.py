"""Pictures of a token's way through a stack show the numbers they are given, on the axes they name."""

import numpy as np
import pytest

from model.analysis.stream.logit_lens import logit_lens
from model.analysis.stream.residual_stream import measure_stream
from model.checkpoints.translator import Translator
from model.trace import Trace
from viz.special.layer_by_layer import MEASURES, StreamPath
from viz.special.logit_lens import lens_grid, lens_map
from viz.tokens import numbered


def path_of(trace: Trace, shown: str) -> StreamPath:
    found = measure_stream(trace, "decoder")
    measures = {name: getattr(found, name) for name in (*MEASURES, "added")}
    rows, tokens = numbered(trace.tgt_tokens), trace.tgt_tokens
    return StreamPath(measures=measures, steps=found.steps, rows=rows, tokens=tokens, chosen=(1, 2), shown=shown)


@pytest.mark.parametrize("shown", list(MEASURES))
def test_the_map_shows_all_tokens_in_a_stated_range(trace: Trace, shown: str) -> None:
    path = path_of(trace, shown)
    heat = path.draw().data[-2]
    assert np.array_equal(heat.z, path.arrays()[shown].astype(np.float32), equal_nan=True)
    assert (heat.zmin, heat.zmax)[0] == (-1 if MEASURES[shown].cosine else 0)
    assert heat.zmax >= np.nanmax(path.arrays()[shown])
    assert f"{heat.zmax:.3g}" in heat.colorbar.title.text


def test_a_click_on_any_point_or_cell_chooses_its_token_and_step(trace: Trace) -> None:
    path = path_of(trace, "share")
    *drawn, _, cells = path.draw().data
    for line in drawn[:6]:
        clicked = [path.clicked({"customdata": point}) for point in line.customdata]
        assert clicked == [{"token": 1, "step": step} for step in range(len(path.steps))]
    for x, y, point in zip(cells.x, cells.y, cells.customdata, strict=True):
        assert path.clicked({"customdata": point}) == {"token": y, "step": x}
        assert point[2] == path.steps[x]
        assert point[4] == path.measures["share"][y, x]


def test_the_lens_frames_the_token_it_follows(trace: Trace, translator: Translator) -> None:
    found, tokens = logit_lens(translator, trace), translator.tokenizer.tokens
    tops = [tokens(ids) for ids in found.top[:, 1].tolist()]
    followed = tokens([int(found.predicted[1])])[0]
    grid = lens_grid(tops, found.probabilities[:, 1], found.steps, followed)
    framed = {(round(s.y0 + 0.46), round(s.x0 + 0.48)) for s in grid.layout.shapes}
    assert framed == {(i, j) for i, row in enumerate(tops) for j, token in enumerate(row) if token == followed}
    assert (len(tops) - 1, 0) in framed
    names = numbered(trace.tgt_tokens), tokens(found.predicted.tolist())
    heat = lens_map(found.probability.T, found.rank.T, found.steps, names, 1).data[0]
    assert np.array_equal(heat.customdata, found.rank.T)
