"""What a pattern keeps of a run is counted cell by cell; a sweep is one run a size."""

import numpy as np
import pytest

from model.analysis.mechanisms import sparse_patterns as sparse
from model.interventions import HeadGate, PatternMask
from tests.model.strategies import short_texts

SOURCE, TARGET = "A dog runs and a cat sat.", "Ein Hund rennt."


@pytest.mark.parametrize("kind", ["encoder_self", "decoder_self"])
def test_cells_and_weights_are_counted_one_by_one(translator, kind: str) -> None:
    trace = translator.trace(SOURCE, TARGET)
    kept = sparse.measure_kept(trace, kind, PatternMask(2, global_tokens=(1,)))
    layers = trace.kind(kind).layers
    cells = {"all": 0, "visible": 0, "kept": 0}
    for layer in layers:
        attention = trace.attention(kind, layer)
        for head in range(attention.n_heads):
            inside = 0.0
            for q, k in np.ndindex(attention.mask.shape[1:]):
                visible = attention.mask[head, q, k]
                in_pattern = visible and (abs(q - k) < 2 or 1 in (q, k))
                cells["all"] += 1
                cells["visible"] += visible
                cells["kept"] += in_pattern
                inside += attention.pattern[head, q, k] * in_pattern
            np.testing.assert_allclose(kept.share[layer, head], inside / attention.mask.shape[1], rtol=1e-5)
    assert kept.cells == cells
    widths = attention.d_k + attention.v.shape[-1]
    assert kept.multiply_adds == {name: widths * count for name, count in cells.items()}
    assert kept.bytes == {name: 4 * count for name, count in cells.items()}


def test_a_sweep_scores_the_same_target_and_writes_again_in_each_size(translator) -> None:
    changes = (HeadGate(0.5, "encoder_self", 0, 1),)
    trace = translator.trace(SOURCE, TARGET, interventions=changes)
    sizes = sparse.pattern_sizes(trace)
    assert sizes == sorted(set(sizes))
    assert sizes[-1] == max(len(trace.src_ids), len(trace.tgt_ids))
    # What the model writes may be longer than the run.
    patterns = [(size, PatternMask(size)) for size in (*sizes, 300)]
    with short_texts(8):
        *_, found = steps = list(sparse.sweep_sizes(translator, trace, patterns, (("beam_size", 1),)))
        own = translator.translate([SOURCE], 1, interventions=changes)
        written = [translator.translate([SOURCE], 1, interventions=(*changes, one)) for _, one in patterns]
    assert [int(np.isfinite(each.log_probability).sum()) for each in steps] == list(range(1, len(patterns) + 1))
    for i, (_, pattern) in enumerate(patterns):
        both = (*changes, pattern)
        scored = translator.trace(SOURCE, TARGET, interventions=both).log_probability
        np.testing.assert_allclose(found.log_probability[i], scored, rtol=1e-6)
        assert found.same[i] == (written[i] == own)
    assert found.same[-1] == 1
    np.testing.assert_allclose(found.log_probability[-1], found.plain, rtol=1e-6)
    assert found.cells[-1] == found.cells[-2] == found.visible
    assert (np.diff(found.cells[:-1]) > 0).all()


def test_what_passes_has_the_same_output_and_nearly_the_same_log_p() -> None:
    scores = np.array([-9.0, -1.05, -1.05, -0.85, -1.0])
    sweep = sparse.SizeSweep(np.arange(1, 6), scores, np.array([1, 0, 1, 1, 1]), np.arange(5), -1.0, 9)
    assert sweep.passing(0.1).tolist() == [False, False, True, False, True]
