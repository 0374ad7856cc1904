"""What a page or a view needs of the opened model. Nothing is imported, so that a menu can say it at once."""

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from model.network.config import TransformerConfig


class Need(StrEnum):
    """What a model has or lacks; the value is how a sentence names it: "This page needs ..."."""

    ENCODER = "an encoder"
    DECODER = "a decoder"
    CROSS_ATTENTION = "cross-attention"
    LANGUAGE_MODEL = "a language model"
    MASKED_MODEL = "a masked language model"
    FULL_ROWS = "rows of attention weights that sum to 1"
    MATRICES = "the query, key, value and output matrices of every head"
    STREAM = "a residual stream that could be read in every layer"
    LOGITS = "probabilities of tokens, from an output that could be read"
    OWN_LAYERS = "layers of this project's own code"
    ADDED_POSITIONS = "a positional encoding that is added to the embeddings"
    LEARNED_POSITIONS = "a learned table of positions"
    ADDED_TYPES = "embeddings of token types that are added with the positions"
    ROPE = "rotary positions (RoPE)"
    RMS_NORM = "RMSNorm"
    PRE_NORM = "pre-norm"
    SWIGLU = "a gated feed-forward (SwiGLU)"
    SHARED_KEYS = "keys and values that query heads share"
    SNAPSHOTS = "weights that were saved during training"


EVERY_OWN = frozenset({Need.FULL_ROWS, Need.MATRICES, Need.STREAM, Need.LOGITS, Need.OWN_LAYERS})
"""what every model of this project has"""
FAMILIES = {
    "encoder_decoder": {Need.ENCODER, Need.DECODER, Need.CROSS_ATTENTION},
    "decoder": {Need.DECODER, Need.LANGUAGE_MODEL},
    "encoder": {Need.ENCODER, Need.MASKED_MODEL},
}


def features_of(config: "TransformerConfig") -> frozenset[Need]:
    """What a model of this project has, as its configuration tells: `Checkpoint.features`, and `parts_of` it."""
    added = {Need.ADDED_POSITIONS} if config.positions in ("sinusoidal", "learned") else set()
    return EVERY_OWN | FAMILIES[config.family] | added | parts_of(config)


def parts_of(config: "TransformerConfig") -> frozenset[Need]:
    """The parts that a model of this configuration has instead of the paper's."""
    has = {
        Need.LEARNED_POSITIONS: config.positions == "learned",
        Need.ROPE: config.positions == "rope",
        Need.RMS_NORM: config.norm_function == "rms_norm",
        Need.PRE_NORM: config.norm == "pre",
        Need.SWIGLU: config.gated,
        Need.SHARED_KEYS: config.kv_heads < config.n_heads,
    }
    return frozenset(need for need, there in has.items() if there)
