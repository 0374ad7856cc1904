"""What a page's model does with a text: it translates it, or continues it. Each has its words and its beginning."""

from collections.abc import Mapping
from dataclasses import dataclass

from model.analysis.heads.many_sentences import most_telling_head
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.language_model import LanguageModel
from model.checkpoints.translator import Translator
from model.language import later
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


TRANSLATE = Task(
    name="translate",
    script="translating",
    story="site",
    sentence="I have never seen such a beautiful sunset.",
    row=5,
    reads="source",
    page="",
    label=later("English sentence"),
    button=later("Translate"),
    written=later("Translation"),
    title=later("Translate a sentence"),
    explained={
        "embedding": "tokens",
        "positions": "positions",
        "self_attn": "projections",
        "cross_attn": "projections",
        "softmax": "beam",
    },
)
CONTINUE = Task(
    name="continue",
    script="writing",
    story="site_writing",
    sentence="My grandmother told me",
    row=5,
    reads="target",
    page="continue_text",
    label=later("Beginning of an English text"),
    button=later("Continue"),
    written=later("The text and what the model writes"),
    title=later("Continue a text"),
    explained={"embedding": "tokens", "self_attn": "projections", "softmax": "next"},
    lacks=("token", "reversed"),
)
CROSS: Place = ("cross", 2, 1)
"""where a translator's page begins; in a smaller model, on the last layer or head"""
WRITTEN = 20
"""tokens, at most, that the run of a language model's page goes on for"""


def task_of(opened: Checkpoint) -> Task:
    """What a model's page lets people do.

    Raises:
        ValueError: the page does not run such a model.
    """
    config = opened.model.config
    if isinstance(opened, Translator) and config.classic:
        return TRANSLATE
    if isinstance(opened, LanguageModel) and config.family == "decoder":
        return CONTINUE
    raise ValueError(f"The page runs this project's translators and language models; {opened.name} is another model.")


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
