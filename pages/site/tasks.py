"""What a page's model does with a text: it translates it, or continues it. Each has its words and its beginning."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from model.analysis.heads.many_sentences import most_telling_head
from model.beside import read_beside
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.language_model import LanguageModel
from model.checkpoints.translator import Translator
from model.network.config import TransformerConfig
from model.trace import Trace
from pages.site.recording import Place


@dataclass(frozen=True)
class Task:
    """What one page has that the other has not."""

    name: str
    """of its files, where it is not the first page of its folder"""
    script: str
    """of js/page"""
    story: str
    """text of pages/text; a section that no other part of the page names is a step"""
    sentence: str
    """that the page begins with"""
    row: int
    """query that is chosen at first"""
    reads: str
    """whose tokens are the text that was typed, by the names of the page"""
    page: str
    """of the app"""
    label: str
    button: str
    written: str
    """name of what the model writes"""
    title: str
    """of a link from the other page"""
    explained: Mapping[str, str]
    """part of the model -> the step of the story that explains it"""
    lacks: tuple[str, ...] = ()
    """changes that the list below the story leaves out"""


TRANSLATE, CONTINUE = (
    Task(**entry | {"lacks": tuple(entry.get("lacks", ()))}) for entry in read_beside(__file__)["task"]
)
CROSS: Place = ("cross", 2, 1)
"""where a translator's page begins; in a smaller model, on the last layer or head"""
COMPUTED: Mapping[str, tuple[str | bool | int, ...]] = {
    "norm": ("post", "pre"),
    "norm_function": ("layer_norm", "rms_norm"),
    "positions": ("sinusoidal", "rope", "none"),
    "activation": ("relu", "swiglu"),
    "tie_embeddings": (True,),
    "residual": (True,),
    "qk_norm": (False,),
    "window": (0,),
    "d_key": (0,),
}
"""field of a configuration -> what viz/site/js/network.js computes of it"""
SUMMED_TOGETHER = 4
"""outputs of a matrix product, of which every size is a multiple"""
WRITTEN = 20
"""tokens, at most, that a language model writes at once"""


def task_of(opened: Checkpoint) -> Task:
    """What a model's page lets people do.

    Raises:
        ValueError: the page does not run such a model.
    """
    config = opened.model.config
    if not isinstance(config, TransformerConfig) or not isinstance(opened, Translator | LanguageModel):
        raise ValueError(f"The pages run this project's translators and language models; {opened.name} is neither.")
    for problem in what_cannot_be_run(config):
        raise ValueError(f"The pages cannot run {opened.name}: {problem}.")
    if isinstance(opened, LanguageModel):
        return CONTINUE
    if not config.classic:
        raise ValueError(f"The page that translates describes the paper's network; {opened.name} has a different one.")
    return TRANSLATE


def what_cannot_be_run(config: TransformerConfig) -> Iterator[str]:
    """Parts of a network that the page's engine does not have, by the names of the configuration."""
    for name, known in COMPUTED.items():
        if (value := getattr(config, name)) not in known:
            yield f"its {name} is {value}, and they compute {' or '.join(map(str, known))}"
    sizes = {name: getattr(config, name) for name in ("d_model", "d_ff", "vocab_size")}
    for name, size in (sizes | {"n_kv_heads · d_k": config.kv_heads * config.d_k}).items():
        if size % SUMMED_TOGETHER:
            yield f"its {name} is {size}, which is not a multiple of {SUMMED_TOGETHER}"


def first_run(opened: Checkpoint) -> tuple[Trace, dict[str, str | int]]:
    """The run that the page begins with, and what it says of it (see `recording`)."""
    text = task_of(opened).sentence
    if isinstance(opened, Translator):
        trace = opened.trace(text)
        return trace, {"text": text, "written": trace.translation}
    (whole,) = opened.continue_text([text], WRITTEN, temperature=0)
    prompt = len(opened.tokenizer.encode(text)) + 1
    return opened.trace(whole), {"text": text, "written": whole[len(text) :], "prompt": prompt}


def first_place(opened: Checkpoint) -> Place:
    """Kind, layer and head on which the page begins."""
    kind, layer, head = CROSS
    if isinstance(opened, LanguageModel):
        kind, layer, head = most_telling_head(opened) or ("decoder_self", layer, head)
    config = opened.model.config
    return kind, min(layer, config.n_decoder_layers - 1), min(head, config.n_heads - 1)
