"""All attention of a translator in one matrix, the masks of the families, and an encoder made causal."""

import numpy as np

from model.analysis.heads.three_families import causal_encoder, family_masks, join_attention, join_masks
from model.trace import Trace


def test_the_joined_matrix_is_the_three_attentions_and_nothing_else(trace) -> None:
    n = len(trace.src_ids)
    joined = join_attention(trace, layer=1, head=2)
    weights, mask = joined["weights"], joined["mask"]
    assert (weights[:n, :n] == trace.attention("encoder_self", 1).pattern[2]).all()
    assert (weights[n:, :n] == trace.attention("cross", 1).pattern[2]).all()
    assert (weights[n:, n:] == trace.attention("decoder_self", 1).pattern[2]).all()
    assert not mask[:n, n:].any()
    assert (weights[~mask] == 0).all()
    np.testing.assert_allclose(weights[:n].sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(weights[n:, :n].sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(weights[n:, n:].sum(axis=1), 1, rtol=1e-5)


def test_the_masks_of_a_layer_stand_where_its_attentions_do(trace) -> None:
    n = len(trace.src_ids)
    masks = join_masks(trace, 1, 2)
    for kind, rows, keys in (("encoder_self", 0, 0), ("decoder_self", n, n), ("cross", n, 0)):
        mask = trace.attention(kind, 1).mask[2]
        there = masks[kind][rows : rows + mask.shape[0], keys : keys + mask.shape[1]]
        assert (there == mask).all()
        assert masks[kind].sum() == mask.sum()


def test_a_prefix_lm_sees_what_the_translator_sees(trace) -> None:
    masks = family_masks(len(trace.src_ids), len(trace.tgt_tokens))
    assert (masks["prefix_lm"] == join_attention(trace, 0, 0)["mask"]).all()
    assert masks["encoder_only"].all()
    assert (masks["decoder_only"] == np.tril(masks["encoder_only"])).all()


def test_with_a_causal_encoder_a_source_row_depends_on_what_stands_before_it_alone(translator) -> None:
    """Two sentences that begin alike have the same first rows: a property that no encoder of 2017 has."""
    first, second = "A dog runs.", "A dog sleeps in the snow."
    shared = 0
    ids = [translator.tokenizer.encode(text) for text in (first, second)]
    while ids[0][shared] == ids[1][shared]:
        shared += 1
    assert shared > 2
    causal = [translator.trace(text, "Ein", interventions=(causal_encoder(64),)) for text in (first, second)]
    plain = [translator.trace(text, "Ein") for text in (first, second)]

    def rows(runs: list[Trace]) -> list[np.ndarray]:
        return [run.attention("encoder_self", 1).scores[:, :shared, :shared] for run in runs]

    np.testing.assert_allclose(*rows(causal), rtol=1e-4, atol=1e-5)
    assert not np.allclose(*rows(plain), rtol=1e-4, atol=1e-5)
    assert (np.triu(causal[0].attention("encoder_self", 0).pattern, 1) == 0).all()
