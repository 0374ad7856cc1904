"""How similar a model makes two texts: the cosine of their vectors, and what each pair of tokens adds to it.

A text's vector is made of its tokens' (Reimers & Gurevych 2019, "Sentence-BERT", section 3). Where it is a sum over
them with fixed weights, as a mean is, the cosine of two texts is a sum over the pairs of their tokens.
"""

from collections.abc import Sequence

import numpy as np

from model.language import Refusal
from model.trace import Array, StackName, Tokens, Trace


def read_text(trace: Trace) -> tuple[StackName, Tokens]:
    """The stack that reads the text that was given, and the tokens of that text, special ones included."""
    name, stream = next(iter(trace.streams.items()))
    return name, stream.tokens.between(0, stream.tokens.prompt_length or len(stream.tokens))


def text_vectors(trace: Trace, whole: bool = True) -> dict[str, Array]:
    """The vectors of these tokens, (token, d_model), by what they stand after: the embedding, each layer, and what the
    stack hands on where that is something else.

    `whole`: whether the residual stream could be read in every layer; if not, the last ones are all there are.
    """
    stack, tokens = read_text(trace)
    stream = trace.streams[stack]
    found = {"embedding": stream.embedded.stream} if whole else {}
    found |= {f"layer {each.layer}": each.after for each in stream.sublayers if whole}  # of its sub-layers the last
    if not found or not np.array_equal(list(found.values())[-1], stream.final):
        found["output"] = stream.final
    return {name: vectors[: len(tokens)] for name, vectors in found.items()}


def pool(vectors: Array, modes: Sequence[str]) -> Array:
    """(token, d_model) -> (len(modes) * d_model,): the text's vector, in double precision; `modes` as in `Pooling`.

    Raises:
        ValueError: it is 0, so that it has no cosine.
    """
    vectors = vectors.astype(np.float64)
    parts = [vectors.max(axis=0) if mode == "max" else token_weights(mode, len(vectors)) @ vectors for mode in modes]
    if not any(map(np.any, parts)):
        raise Refusal("The vector of one of the two texts is 0, so their cosine is undefined.")
    return np.concatenate(parts)


def token_weights(mode: str, count: int) -> Array:
    """(token,): what each token's vector is multiplied by in the text's, as sentence-transformers has it.

    Raises:
        ValueError: this way of pooling is no sum over tokens.
    """
    ones, places = np.ones(count), np.arange(1, count + 1, dtype=np.float64)
    weights = {
        "mean": ones / count,
        "mean_sqrt_len_tokens": ones / np.sqrt(count),
        "weightedmean": places / places.sum(),
        "cls": 1.0 * (places == 1),
        "lasttoken": 1.0 * (places == count),
    }
    if mode not in weights:
        raise Refusal("pooling by “{mode}” is not a sum over tokens", mode=mode)
    return weights[mode]


def pair_shares(one: Array, other: Array, modes: Sequence[str]) -> Array:
    """(token, token): what each token of one text with each of the other, (token, d_model) each, adds to the cosine of
    the texts' vectors, which are made by `modes`, each a sum over tokens.

    Raises:
        ValueError: pooling is no sum over tokens, or a text's vector is 0.
    """
    weights = sum(np.outer(*(token_weights(mode, len(side)) for side in (one, other))) for mode in modes)
    lengths = np.linalg.norm(pool(one, modes)) * np.linalg.norm(pool(other, modes))
    return weights * (one.astype(np.float64) @ other.astype(np.float64).T) / lengths
