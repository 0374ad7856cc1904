"""One translator's attentions as one matrix, and what the other families would mask in it.

The paper's encoder-decoder; encoder-only models such as BERT (Devlin et al. 2019), decoder-only ones such as GPT
(Radford et al. 2018), and the prefix language model (Raffel et al. 2020, section 3.2.1).
"""

import numpy as np

from model.interventions import MaskEdit
from model.trace import Array, Attention, Trace


def join_attention(trace: Trace, layer: int, head: int) -> dict[str, Array]:
    """The weights of one head number in the three attentions of a layer, for n source and m target tokens.

    Returns:
        `weights` (n + m, n + m): encoder self-attention, cross-attention below it, decoder self-attention beside that;
        0 where no weight is computed. `mask`: bool, True = visible.

    Raises:
        KeyError: the trace has no such attention.
    """
    blocks = _blocks(trace, layer)
    m, n = blocks["cross"][0].pattern.shape[1:]
    masks = join_masks(trace, layer, head)
    weights = np.zeros((n + m, n + m), dtype=blocks["cross"][0].pattern.dtype)
    for attention, rows, columns in blocks.values():
        weights[rows, columns] = attention.pattern[head]
    return {"weights": weights, "mask": np.any([*masks.values()], axis=0)}


def join_masks(trace: Trace, layer: int, head: int) -> dict[str, Array]:
    """What one head number may attend to in each attention of a layer, by kind, at its place among all tokens.

    bool (n + m, n + m) each, for n source and m target tokens; True = visible. A trace without such an attention raises
    KeyError.
    """
    blocks = _blocks(trace, layer)
    total = sum(blocks["cross"][0].pattern.shape[1:])
    masks = {kind: np.zeros((total, total), dtype=bool) for kind in blocks}
    for kind, (attention, rows, columns) in blocks.items():
        masks[kind][rows, columns] = attention.mask[head]
    return masks


def _blocks(trace: Trace, layer: int) -> dict[str, tuple[Attention, slice, slice]]:
    """Each attention of a layer, and its queries and keys among all tokens, the source's first."""
    encoder, decoder, cross = (trace.attention(kind, layer) for kind in ("encoder_self", "decoder_self", "cross"))
    source, target = slice(encoder.pattern.shape[-1]), slice(encoder.pattern.shape[-1], None)
    return {
        "encoder_self": (encoder, source, source),
        "decoder_self": (decoder, target, target),
        "cross": (cross, target, source),
    }


def family_masks(n: int, m: int) -> dict[str, Array]:
    """What each family lets n tokens and the m after them attend to: bool (n + m, n + m), True = visible."""
    everything = np.ones((n + m, n + m), dtype=bool)
    causal = np.tril(everything)
    prefix = causal.copy()
    prefix[:n, :n] = True
    return {"encoder_only": everything, "decoder_only": causal, "prefix_lm": prefix}


def causal_encoder(n: int) -> MaskEdit:
    """Hides later source tokens from each of n source tokens, in every layer and head of the encoder."""
    return MaskEdit(
        forbid=tuple(zip(*(axis.tolist() for axis in np.triu_indices(n, 1)), strict=True)), kind="encoder_self"
    )


def one_way_arrays(before: Trace, after: Trace) -> dict[str, Array]:
    """log p of each target token with the encoder as it is, and with a causal one."""
    return {"before": before.target_log_probabilities, "after": after.target_log_probabilities}
