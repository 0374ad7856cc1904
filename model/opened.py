"""What pages, analysis and proof ask of an opened model, whatever its family; `Translator` is the first of them."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from model.interventions import Intervention
from model.trace import Array, Kind, Trace


@runtime_checkable
class OpenedModel(Protocol):
    """A model with its vocabulary, in evaluation mode on its device; frozen, and shared by all sessions."""

    @property
    def name(self) -> str:
        """Of the checkpoint."""

    @property
    def hash(self) -> str:
        """SHA-256 of the weights."""

    @property
    def device(self) -> str:
        """Where the weights are, such as "cpu" or "cuda:0"."""

    @property
    def dtype(self) -> str:
        """Number format of the weights, such as "torch.float32"."""

    @property
    def config(self) -> Any:
        """Sizes and choices of architecture: d_model, d_ff, vocab_size, max_len, ..."""

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of attention that the model has."""

    @property
    def features(self) -> frozenset[str]:
        """What the model consists of, in the words of `Page.needs`."""

    @property
    def token_limit(self) -> int:
        """Most tokens of one run."""

    def truncate(self, text: str) -> str:
        """`text` on one line if one run can hold it, else as many of its first sentences as fit."""

    def trace(
        self, source: str, target: str | None = None, beam_size: int = 4, interventions: Sequence[Intervention] = ()
    ) -> Trace:
        """Generate, unless a `target` is given; then run once, teacher-forced, and return everything inside.

        Raises:
            ValueError: blank or too long a text, or an intervention that does not fit; the sentence says what to do.
        """

    def rerun(self, trace: Trace, interventions: Sequence[Intervention]) -> Trace:
        """The run on the same tokens as `trace`, under these interventions instead of its own."""

    def record(
        self, trace: Trace, interventions: Sequence[Intervention], tgt_ids: Sequence[int] | None = None
    ) -> dict[str, Array]:
        """All activations of a rerun by hook point path; `tgt_ids`: what the decoder reads instead of the trace's."""

    def check_intervention(self, change: Intervention) -> None:
        """Raise ValueError if the model has no such attention, head or sub-layer."""

    def read_logits(self, x: Array) -> Array:
        """(position, d_model) -> (position, vocabulary): the model's last lines, applied to any residual stream."""

    def parameters_by_part(self) -> dict[str, int]:
        """How many parameters each part learns; a tied matrix is counted once."""
