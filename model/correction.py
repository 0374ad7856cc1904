"""Fine-tuning on one correction: a copy of a translator learns another translation of one sentence, and forgets it."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from time import monotonic

import numpy as np
import sacrebleu
import torch
from torch import Tensor

from model.analysis.runs.revisions import head_differences, output_differences
from model.cancel import cancellable
from model.checkpoints.checkpoint import Checkpoint, parameters_hash
from model.checkpoints.store import checkpoint_path
from model.checkpoints.translator import Translator
from model.generation.steps import length_limits
from model.language import Refusal
from model.needs import Need
from model.trace import Array, Trace
from model.training.data import read_pairs
from model.training.fine_tuning import copy_to_train, new_optimizer

RATE = 3e-5
"""of Adam, the same in every step: en-de learns most corrections in three to fifteen, and little else moves"""
MOST_BYTES = 1_200_000_000
"""of a copy and its optimizer: the paper's base model has room, its big one has none"""
HELD_OUT_FILE = "held-out.tsv"
"""in a checkpoint's folder: lines of source<TAB>target that it has not learned from"""
PARTS = 10
"""in which held-out sentences are translated, so that others have their turn between two of them"""


def can_learn(opened: Checkpoint | None) -> bool:
    """Whether it is a translator of this project's own layers."""
    return isinstance(opened, Translator) and Need.OWN_LAYERS in opened.features


def bytes_of_copy(opened: Checkpoint) -> int:
    """What a copy and its optimizer take, once it has taken a step.

    Weights, gradients and Adam's two moments are of one size; the optimizer has one more number a tensor.
    """
    weights = [*opened.model.parameters()]
    fixed = sum(each.nbytes for each in opened.model.buffers())
    return 4 * sum(each.nbytes for each in weights) + 4 * len(weights) + fixed


def read_correction(opened: Translator, source: str, correction: str) -> Trace:
    """The run of the model, as it is, on the sentence and the translation that it has to learn.

    Raises:
        ValueError: the correction is empty, what the model writes already, too long, or has characters that the
            vocabulary lacks; or the model is too large to be copied.
    """
    if (needed := bytes_of_copy(opened)) > MOST_BYTES:
        raise Refusal(
            "A copy of this model and its optimiser would take {needed:,.0f} MB; at most {most:,.0f} MB are "
            "allowed. Choose a smaller model.",
            needed=needed / 1e6,
            most=MOST_BYTES / 1e6,
        )
    if not (wanted := opened.prepare(correction)):
        raise Refusal("The correction is empty: there is nothing to learn. Type how the translation should read.")
    trace = opened.trace(source, wanted)
    (limit,) = length_limits(opened.model, [trace.src_ids])
    if len(trace.next_ids) > limit:
        raise Refusal(
            "The correction has {count:,} tokens; a translation of this source has at most {limit:,}. Shorten it.",
            count=len(trace.next_ids),
            limit=limit,
        )
    unknown = opened.tokenizer.unknown
    if words := [word for word in wanted.split() if unknown in opened.tokenizer.encode(word)]:
        raise Refusal(
            "The vocabulary of this model has no pieces for {words}, so it can never write that. Use other words.",
            words=", ".join(words),
        )
    if wanted == opened.translate([source], beam_size=1)[0]:
        raise Refusal("The model writes this already: there is nothing to learn. Change the translation first.")
    return trace


class Correction:
    """A copy of a translator, which itself stays as it is, that learns another translation of a sentence; several
    threads may show it, one at a time takes its steps. Raises what `read_correction` does."""

    def __init__(self, opened: Translator, source: str, correction: str) -> None:
        trace = read_correction(opened, source, correction)
        self.opened, self.source, self.text = opened, trace.source, opened.prepare(correction)
        self.read, self.wanted = [*trace.src_ids], [*trace.next_ids]
        """ids of the sentence, and of the correction with </s>"""
        self._stepping, self._weights = Lock(), Lock()
        self._copy = copy_to_train(opened.model)
        self._optimizer = new_optimizer(self._copy, RATE)
        self._closed = False
        self.step, self.learned = 0, False
        """how many it has taken; whether, as it is now, it writes the correction"""
        self.losses: list[float] = []
        """nats per token of the correction: before the first step, then after each"""

    @property
    def bytes(self) -> int:
        """What all its tensors take now."""
        weights = [*self._copy.parameters()]
        held = [*weights, *(each.grad for each in weights if each.grad is not None), *self._copy.buffers()]
        held += [value for state in self._optimizer.state.values() for value in state.values()]
        return sum(each.nbytes for each in held)

    def go_on(self, seconds: float, past: bool = False) -> Iterator[float]:
        """Take steps until it writes the correction, or on and on if asked to go `past` that, for so many seconds at
        most, waiting between them not counted; yield the time used after each.

        Dropout is off, so that the same steps give the same weights. Nothing is yielded while another thread steps.
        """
        if not self._stepping.acquire(blocking=False):
            return
        try:
            used = 0.0
            while not self._closed:
                begin = monotonic()
                finished = self._take_step(used >= seconds, past)
                used += monotonic() - begin
                if finished:
                    return
                yield used
        finally:
            self._stepping.release()

    def _take_step(self, only_measure: bool, past: bool) -> bool:
        """Measure, and take a step unless that was asked for alone or there is nothing to learn; True: it took none."""
        # A visitor who leaves in the middle of a step must not leave half of it.
        with self._weights, cancellable(None), torch.inference_mode(False), torch.enable_grad():
            logits, wanted = self._logits()
            loss = torch.nn.functional.cross_entropy(logits, wanted)
            # Teacher-forced, each most probable token is the correct one: then greedy decoding writes the same.
            self.learned = bool((logits.argmax(dim=-1) == wanted).all())
            self.losses[self.step :] = [loss.item()]
            if only_measure or (self.learned and not past):
                return True
            self._optimizer.zero_grad()
            loss.backward()
            self._optimizer.step()
            self.step += 1
        return False

    def _logits(self) -> tuple[Tensor, Tensor]:
        """(position, vocabulary) of the correction, teacher-forced, and the correct ids."""
        device = self._copy.output.weight.device
        texts = [torch.tensor([ids], device=device) for ids in (self.read, [self._copy.start, *self.wanted[:-1]])]
        return self._copy(*texts)[0], torch.tensor(self.wanted, device=device)

    def undo(self) -> None:
        """Give the copy the weights of the opened model again, bit for bit, and forget the moments."""
        with self._stepping, self._weights, torch.inference_mode(False), torch.no_grad():
            for mine, theirs in zip(self._copy.parameters(), self.opened.model.parameters(), strict=True):
                mine.copy_(theirs)
                mine.grad = None
            self._optimizer = new_optimizer(self._copy, RATE)
            self.step, self.learned = 0, False
            del self.losses[1:]

    def now(self) -> Translator:
        """The copy as it is now, by itself, with the hash of its weights."""
        with self._weights, torch.inference_mode(False):
            return with_own_hash(replace(self.opened, model=copy.deepcopy(self._copy).requires_grad_(False)))

    def close(self) -> None:
        """Take no more steps."""
        self._closed = True


def with_own_hash(opened: Translator) -> Translator:
    """The same, with the hash of the weights in memory: equal for equal weights, whatever file they came from."""
    return replace(opened, hash=parameters_hash(opened.model))


@dataclass(frozen=True)
class Moved:
    """What the steps have done to the heads, and to what the copy writes."""

    weights: Mapping[tuple[str, int], Array]
    """(kind, layer) -> (head,): relative difference of its weights"""
    attention: Mapping[tuple[str, int], Array]
    """(kind, layer) -> (head,): total variation of its attention on the corrected sentence, mean of the rows"""
    text: str
    """the copy's greedy translation"""


def measure_moves(before: Translator, after: Translator, source: str, wanted: Sequence[int]) -> Moved:
    """Compare two revisions on a sentence and its corrected translation, which both read."""
    pair = before.trace_ids(source, wanted), after.trace_ids(source, wanted)
    return Moved(
        head_differences(*pair), output_differences([pair]).patterns, after.translate([source], beam_size=1)[0]
    )


@dataclass(frozen=True)
class HeldOut:
    """How a translator does on sentences that it has not learned from."""

    bleu: float
    """cased, detokenised (13a)"""
    signature: str
    texts: tuple[str, ...]
    """its greedy translations"""


def held_out_pairs(checkpoint: str) -> list[tuple[str, str]]:
    """The pairs in the checkpoint's folder; none if it has no such file."""
    path = checkpoint_path(checkpoint) / HELD_OUT_FILE
    return read_pairs([path]) if path.is_file() else []


def score_held_out(opened: Translator, pairs: Sequence[tuple[str, str]]) -> Iterator[tuple[float, HeldOut | None]]:
    """Translate the sentences greedily, those of one length together, and score them at the end; yields the share that
    is done, 0 to 1, and the score, None before the end."""
    texts = [""] * len(pairs)
    for number, part in enumerate(np.array_split(sorted(range(len(pairs)), key=lambda i: len(pairs[i][0])), PARTS)):
        for i, text in zip(part, opened.translate([pairs[i][0] for i in part], beam_size=1), strict=True):
            texts[i] = text
        yield number / PARTS, None
    metric = sacrebleu.BLEU()
    score = metric.corpus_score(texts, [[target for _, target in pairs]])
    yield 1.0, HeldOut(score.score, str(metric.get_signature()), tuple(texts))
