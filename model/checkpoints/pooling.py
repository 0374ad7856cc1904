"""How the vectors of a text's tokens become one vector of the text, as a folder of sentence-transformers says."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from model.checkpoints.files import MOST_TEXT, CheckpointError, read_json, read_json_object
from model.language import Sentence, sentence_of

MODES = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
"""what sentence-transformers wrote before its version 5.4, and the names that it writes since then"""
KEEP_THE_COSINE = ("Transformer", "Pooling", "Normalize", "Dropout")
"""modules that are the model or its pooling, or change no angle between two vectors"""


@dataclass(frozen=True)
class Pooling:
    """How a text's vector follows from those of its tokens."""

    modes: tuple[str, ...] = ("mean",)
    """names as in `MODES`; the vectors of several stand behind each other"""
    stated: bool = False
    """whether the model's folder says so"""
    others: tuple[str, ...] = ()
    """what the folder has besides, such as a Dense layer, that changes cosines and is not computed here"""
    problem: Sentence | str = ""
    """why what the folder says could not be read"""

    @property
    def makes(self) -> Literal["pairs", "one", "max", "others"]:
        """Of a cosine: a sum over pairs of tokens, the product of one token each, or no sum, and for which reason."""
        if self.others:
            return "others"
        if "max" in self.modes:
            return "max"
        return "one" if {*self.modes} <= {"cls", "lasttoken"} else "pairs"


def read_pooling(folder: Path) -> Pooling:
    """What modules.json and the settings of its pooling say; the mean where they are not there or cannot be read."""
    try:
        return _read(folder)
    except CheckpointError as error:
        return Pooling(problem=sentence_of(error))


def _read(folder: Path) -> Pooling:
    path = folder / "modules.json"
    modules = read_json(path, folder, MOST_TEXT) if path.is_file() else []
    if not isinstance(modules, list) or not all(isinstance(each, dict) for each in modules):
        raise CheckpointError("{path} is not a list of modules. Copy the file again.", path=path)
    kinds = [str(each.get("type")).rpartition(".")[2] for each in modules]
    if "Pooling" not in kinds:
        return Pooling()
    path = folder / str(modules[kinds.index("Pooling")].get("path")) / "config.json"
    settings = read_json_object(path, MOST_TEXT, folder)
    named = settings.get("pooling_mode") or [mode for flag, mode in MODES.items() if settings.get(flag)] or "mean"
    modes = tuple(map(str, named)) if isinstance(named, list) else (str(named),)
    unknown = [mode for mode in modes if mode not in MODES.values()]
    others = (kind for kind in kinds if kind not in KEEP_THE_COSINE)
    return Pooling(modes, True, (*unknown, *others))
