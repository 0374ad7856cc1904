"""A run of a model, and the place in it to look at: what every view takes, in the app and in a notebook."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from model.checkpoints.chat import read_turns
from model.checkpoints.checkpoint import Checkpoint
from model.generation.sampling import Sampling
from model.interventions import AttentionTemperature, Intervention
from model.language import sentence
from model.trace import KIND_TITLES, Attention, Prompt, Stream, Trace, Turn

Value = TypeVar("Value")
TAUS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0)
"""attention temperatures to choose from"""


@dataclass(frozen=True)
class Continuation:
    """What a language model writes after the text."""

    max_new_tokens: int
    sampling: Sampling | None = None
    """None: the most probable token each time"""
    seed: int = 0


LANGUAGES = "source_language", "target_language"
"""fields of a `Request`, parameters of a link, and facts of an export"""


@dataclass(frozen=True)
class Request:
    """Everything that a run depends on besides the weights."""

    source: str
    target: str | None = None
    """None: the model decodes its own"""
    beam_size: int = 4
    interventions: tuple[Intervention, ...] = ()
    continuation: Continuation | None = None
    """None: nothing is written after the text; only a language model writes"""
    chat: str | None = None
    """of a chat: the turns before `source`, the user's message, as `read_turns` reads them; None: it is a text"""
    source_language: str | None = None
    """of a translator of many languages, by its tokenizer's code; None: the tokenizer's own choice"""
    target_language: str | None = None

    @property
    def prompt(self) -> Prompt:
        """What the model is given.

        Raises:
            ValueError: the earlier turns do not begin with a role.
        """
        return self.source if self.chat is None else (*read_turns(self.chat), Turn("user", self.source.strip()))


@dataclass(frozen=True)
class Place:
    """One head: kind of attention, layer and number in the layer."""

    kind: str
    """encoder_self, decoder_self or cross"""
    layer: int
    head: int

    @property
    def title(self) -> str:
        return sentence("{kind}, layer {layer}, head {head}", **vars(self) | {"kind": sentence(KIND_TITLES[self.kind])})

    @property
    def slug(self) -> str:
        """For names of files."""
        return f"{self.kind}-layer-{self.layer}-head-{self.head}"

    def in_words(self, scope: str) -> str:
        """This head, its layer or everything, as `scope` says."""
        facts = vars(self) | {"kind": sentence(KIND_TITLES[self.kind].lower())}
        return {
            "head": sentence("head {head} of {kind}, layer {layer}", **facts),
            "layer": sentence("all heads of {kind}, layer {layer}", **facts),
            "everywhere": sentence("every attention"),
        }[scope]

    def address(self, scope: str = "head") -> dict[str, str | int]:
        """The keyword arguments with which an intervention acts on this head, its layer, its kind, or "everywhere"."""
        parts = {"kind": self.kind, "layer": self.layer, "head": self.head}
        return dict(list(parts.items())[: {"head": 3, "layer": 2, "kind": 1, "everywhere": 0}[scope]])


def decode(opened: Checkpoint, request: Request) -> Trace:
    """Decode and trace.

    Raises:
        ValueError: the text is blank or too long, or a chat is refused; the message says what to do.
    """
    written = vars(request.continuation) if request.continuation else {}
    opened = opened.in_languages(request.source_language, request.target_language)
    return opened.trace(request.prompt, request.target, request.beam_size, request.interventions, **written)


def force(opened: Checkpoint, trace: Trace, interventions: tuple[Intervention, ...]) -> Trace:
    """The same source and target tokens under other interventions.

    Raises:
        ValueError: an intervention does not fit the model.
    """
    return opened.rerun(trace, interventions)


def directly(function: Callable[..., Value], *args: Any) -> Value:
    """What `function` returns; the app has a queue and a cache in place of this."""
    return function(*args)


@dataclass(frozen=True)
class Run:
    """A run, and the head that was chosen in it."""

    checkpoint: Checkpoint | None
    """None: the trace alone is there, and the model cannot be run again"""
    request: Request
    """what was asked for; interventions of `trace` beyond these were made afterwards, on the same tokens"""
    trace: Trace
    place: Place
    source: str = ""
    """as typed; `trace` holds its beginning if it was too long"""
    tau: float = 1.0
    """attention temperature, 1 = as trained; at work in `trace`"""
    scope: str = "head"
    """where tau is at work: head, layer or everywhere"""
    query: int | None = None
    """the row of the chosen attention that a person chose; None: none, and views begin with a word worth a look"""
    key: int | None = None
    """the key that a person chose"""
    compute: Callable[..., Any] = field(default=directly, repr=False, compare=False)
    """compute(function, *args): work that takes a while, and depends on its arguments alone"""

    @classmethod
    def start(cls, opened: Checkpoint, request: Request, place: Place, tau: float = 1.0, scope: str = "head") -> "Run":
        """Run the model on a request, without the app; `tau` and its scope are as in the sidebar. If it is not 1, the
        temperature is among the interventions of the request. Raises what `decode` does."""
        opened = opened.in_languages(request.source_language, request.target_language)
        return cls(opened, request, decode(opened, request), place, request.source, tau, scope)

    @classmethod
    def of(cls, opened: Checkpoint | None, trace: Trace, kind: str = "", layer: int = 0, head: int = 0) -> "Run":
        """A trace as a run, in a notebook, with a head to look at: of the first kind that the model has if none is
        given. Without the checkpoint that it was made with, views that run the model again say that they need it.

        Raises:
            ValueError: the trace has no such head.
        """
        place = Place(kind or trace.kinds[0].name, layer, head)
        heads = trace.attention(place.kind, layer).n_heads
        if not 0 <= head < heads:
            raise ValueError(f"no head {head}; this attention has heads 0 to {heads - 1}")
        request = Request(trace.source, trace.written, interventions=trace.interventions)
        return cls(opened, request, trace, place, trace.source, *_temperature_at(place, trace.interventions))

    @property
    def opened(self) -> Checkpoint:
        """The opened model.

        Raises:
            ValueError: the trace alone is there.
        """
        if self.checkpoint is None:
            name = self.trace.checkpoint
            raise ValueError(f"This runs the model again: pass Run.of(load_checkpoint({name!r}), trace).")
        return self.checkpoint

    @property
    def kind(self) -> str:
        return self.place.kind

    @property
    def layer(self) -> int:
        return self.place.layer

    @property
    def head(self) -> int:
        return self.place.head

    @property
    def model_in_words(self) -> str:
        """The model that `trace` is a run of: "as trained", or with what acts in it."""
        changed = len(self.trace.interventions) > (self.tau != 1)
        if self.tau != 1 and changed:
            return sentence("with the sidebar's temperature and the changes of “What if”")
        if self.tau != 1:
            return sentence("with the sidebar's temperature")
        return sentence("with the changes of “What if”") if changed else sentence("as trained")

    @property
    def beam_size(self) -> int:
        """Of this run's searches; 1 is greedy."""
        return self.request.beam_size

    @property
    def attention(self) -> Attention:
        """With the chosen head."""
        return self.trace.attention(self.kind, self.layer)

    @property
    def stream(self) -> Stream:
        """Where the queries of this attention come from."""
        return self.trace.streams[self.trace.kind(self.kind).queries]

    @property
    def kept(self) -> tuple[Intervention, ...]:
        """The changes at work in the trace, besides the temperature."""
        temperature = AttentionTemperature(self.tau, **self.place.address(self.scope))
        return tuple(change for change in self.trace.interventions if self.tau == 1 or change != temperature)

    def decoded(self, *changes: Intervention) -> "Run":
        """The run in which the model writes its text again, with these changes and no others."""
        return replace(self, trace=self.compute(decode, self.opened, replace(self.request, interventions=changes)))

    def forced(self, *changes: Intervention) -> "Run":
        """The run on the same tokens, with these changes and no others."""
        if changes == self.trace.interventions:
            return self
        return replace(self, trace=self.compute(force, self.opened, self.trace, changes))


def _temperature_at(place: Place, changes: tuple[Intervention, ...]) -> tuple[float, str]:
    """Tau and its scope, as the sidebar would have them, of the changes at work in a run; 1 if there is none."""
    for scope in ("head", "layer", "everywhere"):
        address = {"kind": None, "layer": None, "head": None} | place.address(scope)
        for change in changes:
            if isinstance(change, AttentionTemperature) and change == replace(change, **address):
                return change.tau, scope
    return 1.0, "head"
