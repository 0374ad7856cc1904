"""An opened encoder-only checkpoint: text with <mask> in; the words that fit, or a Trace, out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from model.checkpoints.checkpoint import Checkpoint
from model.interventions import Intervention, applied
from model.language import Refusal
from model.needs import Need
from model.network.encoder_only import EncoderOnly
from model.trace import Array, Trace


@dataclass(frozen=True)
class FillStep:
    """One pass over a text with gaps, and the gap that is filled after it."""

    ids: tuple[int, ...]
    """(position,): what the model reads"""
    position: int
    """of the gap that is filled"""
    token: int
    """id of what fills it"""
    log_probability: float
    """of this token there, nats"""
    guesses: Mapping[int, tuple[int, float]]
    """position of each gap that is open -> id of its most probable token, and the probability, 0 to 1"""


@dataclass(frozen=True, repr=False)
class MaskedModel(Checkpoint):
    """A model that guesses hidden tokens from both sides."""

    model: EncoderOnly

    @cached_property
    def features(self) -> frozenset[Need]:
        """As of every checkpoint, and that it is one."""
        return super().features | {Need.MASKED_MODEL}

    def fill(
        self, text: str, top: int = 5, interventions: Sequence[Intervention] = ()
    ) -> list[list[tuple[str, float]]]:
        """For each <mask> of `text` the most probable tokens, best first, with their probabilities.

        Raises:
            ValueError: the text has no <mask>, or is too long.
        """
        ids = self._read(text)
        if self.tokenizer.mask is None:
            raise Refusal("The tokenizer of this model has no token for a hidden word, so nothing can be filled in.")
        masks = [position for position, token in enumerate(ids) if token == self.tokenizer.mask]
        if not masks:
            mask = self.tokenizer.mask_token
            raise Refusal("The text has no {mask}. Write it as a word of its own: The {mask} sat.", mask=mask)
        probabilities = self._logits(ids, interventions)[masks].double().softmax(-1)
        return [
            list(zip(self.tokenizer.tokens(row.indices), row.values.tolist(), strict=True))
            for row in (each.topk(top) for each in probabilities)
        ]

    def trace(
        self,
        source: str,
        target: str | None = None,
        beam_size: int = 1,
        interventions: Sequence[Intervention] = (),
    ) -> Trace:
        """Run the model once over a text and record everything inside.

        Row t should predict token t: the one that is there, and in place of <mask> the most probable one.

        Args:
            source: the text, with or without <mask>.
            target: the same text without <mask>, token for token; None: what the model fills in.
            beam_size: not used: nothing is generated.
            interventions: what to change in the model.

        Raises:
            ValueError: the text is blank or too long, or the target has another number of tokens.
        """
        del beam_size
        ids = self._read(source)
        filled = self._read(target) if target is not None else self._fill(ids, interventions)
        if len(filled) != len(ids):
            raise Refusal(
                "The target has {filled} tokens, the text {masks}: fill in one token a mask.",
                filled=len(filled),
                masks=len(ids),
            )
        return self.trace_ids(source, filled, interventions)

    def trace_ids(self, source: str, next_ids: Sequence[int], interventions: Sequence[Intervention] = ()) -> Trace:
        """The run on a text, <mask> included, whose rows should predict the tokens `next_ids`."""
        reads = self.tokenizer.describe(self._read(source), self.prepare(source))
        return self._trace({"encoder": reads}, {"encoder": self.tokenizer.describe(next_ids)}, interventions)

    def fill_steps(
        self,
        ids: Sequence[int],
        order: Sequence[int] | None = None,
        tokens: Sequence[int] | None = None,
        interventions: Sequence[Intervention] = (),
    ) -> Iterator[FillStep]:
        """Fill the gaps of a text one after another; each is a pass over all that is filled so far.

        Args:
            ids: the text as the model reads it, a mask in each gap.
            order: positions of the gaps, the first to be filled first; None: always the surest one, whose best guess is
                the most probable. With one token a step this is the low-confidence remasking of Nie et al. 2025, “Large
                Language Diffusion Models”.
            tokens: the whole text, whose tokens fill the gaps; None: the best guess fills each.
            interventions: what to change in the model.
        """
        ids, special = list(ids), torch.tensor(sorted(self.tokenizer.special_ids))
        while gaps := [position for position, token in enumerate(ids) if token == self.tokenizer.mask]:
            with self._same_path():
                logs = self._logits(ids, interventions).double().log_softmax(-1)
            best = logs.index_fill(-1, special, -torch.inf).max(-1)
            guesses = {gap: (int(best.indices[gap]), float(best.values[gap].exp())) for gap in gaps}
            surest = max(gaps, key=lambda gap: guesses[gap][1])
            position = surest if order is None else next(gap for gap in order if gap in guesses)
            token = guesses[position][0] if tokens is None else tokens[position]
            yield FillStep(tuple(ids), position, token, float(logs[position, token]), guesses)
            ids[position] = token

    def trace_step(self, step: FillStep, interventions: Sequence[Intervention] = ()) -> Trace:
        """The pass of a step, whose rows should predict the best guess in each open gap and the tokens that stand."""
        guessed = [step.guesses[place][0] if place in step.guesses else token for place, token in enumerate(step.ids)]
        guessed[step.position] = step.token
        describe = self.tokenizer.describe
        return self._trace({"encoder": describe(step.ids)}, {"encoder": describe(guessed)}, interventions)

    def _read(self, text: str) -> list[int]:
        return self._ids(text, "text")

    def _fill(self, ids: Sequence[int], interventions: Sequence[Intervention]) -> list[int]:
        """`ids` with the most probable token, but no special one, in place of each <mask>."""
        if self.tokenizer.mask not in ids:
            return list(ids)
        logits = self._logits(ids, interventions).clone()
        logits[:, sorted(self.tokenizer.special_ids)] = -torch.inf
        best = logits.argmax(-1).tolist()
        return [guess if token == self.tokenizer.mask else token for token, guess in zip(ids, best, strict=True)]

    @torch.inference_mode()
    def _logits(self, ids: Sequence[int], interventions: Sequence[Intervention]) -> torch.Tensor:
        """(position, vocabulary)"""
        with applied(self.model, interventions):
            return self.model(torch.tensor([list(ids)], device=self.device))[0].cpu()


def fill_arrays(opened: Checkpoint, trace: Trace) -> dict[str, Array]:
    """Positions of the hidden tokens, the tokens that fill them, and the probabilities of the vocabulary there."""
    read = trace.streams["encoder"].tokens.ids
    places = [position for position, token in enumerate(read) if token == opened.tokenizer.mask]
    ids = np.array([trace.next_ids[place] for place in places], dtype=int)
    return {"positions": np.array(places, dtype=int), "filled": ids, "probabilities": trace.probabilities[places]}
