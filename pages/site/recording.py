"""The run that the page shows before its weights have come: every array that its pictures draw, as base64."""

import base64
from typing import Any

import numpy as np

from model.checkpoints.translator import Translator
from model.network.config import BOS
from model.tracer import record

PARTS = ("q", "k", "v", "scores", "scaled", "mask", "temperature", "pattern", "z", "out")
LEARNED = ("w_q", "b_q", "w_k", "b_k", "w_v", "b_v", "w_o", "b_o")
Place = tuple[str, int, int]
"""kind, layer, head"""


def recording(translator: Translator, text: str, place: Place) -> dict[str, Any]:
    """The run of `text` as the page reads it: texts, ids, pieces, and arrays by hook path.

    Of the learned matrices of the place, those of its head alone are there; the rest of them is NaN.

    Args:
        translator: of the weights that the page ships.
        text: one sentence.
        place: kind, layer and head that the page begins with.
    """
    trace = translator.trace(text)
    source, target = list(trace.src_ids), list(trace.next_ids)
    activations = record(translator.model, [source, [BOS, *target[:-1]]])
    arrays = {path: activations[path] for path in _paths(translator, place)} | _learned(translator, place)
    described, parts = [], []
    for path, array in arrays.items():
        kind = _kind(array)
        described.append([path, kind, list(array.shape)])
        data = array.astype(f"<{kind}").tobytes()
        parts.append(data + bytes(-len(data) % 4))
    pieces = translator.tokenizer.tokens
    return {
        "text": trace.source,
        "translation": trace.translation,
        "source": source,
        "target": target,
        "tokens": {"source": pieces(source), "target": pieces([BOS, *target[:-1]]), "next": pieces(target)},
        "described": described,
        "bytes": base64.b64encode(b"".join(parts)).decode(),
    }


def _paths(translator: Translator, place: Place) -> list[str]:
    attentions = {address: path for address, (path, _) in translator.model.attentions().items()}
    own, masked = attentions[place[:2]], attentions["decoder_self", place[1]]
    paths = [f"src_embedding.{name}" for name in ("embedding", "positional", "sum")]
    paths += ["memory", f"{own}_residual.before"]
    paths += [f"{path}.{name}" for path in attentions.values() for name in ("pattern", "mask")]
    # The picture of the mask is one of the decoder's own attention.
    paths += [f"{own}.{name}" for name in PARTS] + [f"{masked}.scaled"]
    return list(dict.fromkeys(paths))


def _learned(translator: Translator, place: Place) -> dict[str, np.ndarray]:
    path, _ = translator.model.attentions()[place[:2]]
    d_k = translator.model.config.d_k
    head = slice(place[2] * d_k, (place[2] + 1) * d_k)
    arrays = {}
    for name in LEARNED:
        parameter = f"{path}.{name.replace('b_', 'w_')}.{'bias' if name.startswith('b') else 'weight'}"
        array = translator.model.get_parameter(parameter).detach().cpu().numpy()
        arrays[name] = array if name.endswith("o") else array[head]
    return arrays


def _kind(array: np.ndarray) -> str:
    """Half precision where it says the same number, as of weights from a file in half precision."""
    if array.dtype == bool:
        return "u1"
    return "f2" if np.array_equal(array.astype(np.float16).astype(np.float32), array.astype(np.float32)) else "f4"
