"""An opened decoder-only checkpoint: text in; its continuation, its probability or a Trace out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch

from model.checkpoints.checkpoint import Checkpoint
from model.generation.sampling import Sampling, draw, sampling_distribution
from model.generation.steps import steps_of
from model.interventions import Intervention, applied
from model.language import Refusal
from model.needs import Need
from model.network.decoder_only import DecoderOnly
from model.trace import Prompt, Trace


@dataclass(frozen=True, repr=False)
class LanguageModel(Checkpoint):
    """A model that predicts the next token of a text from those before it."""

    model: DecoderOnly

    @cached_property
    def features(self) -> frozenset[Need]:
        """As of every checkpoint, and that it is one, if it has a head that writes."""
        return super().features | ({Need.LANGUAGE_MODEL} if self.model.writes else set())

    def continue_text(
        self,
        texts: Sequence[str],
        max_new_tokens: int = 20,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 0,
        interventions: Sequence[Intervention] = (),
    ) -> list[str]:
        """Each text with what the model writes after it, until its end token or `max_new_tokens` more tokens.

        Args:
            texts: beginnings; an empty one lets the model begin.
            max_new_tokens: at most.
            temperature: divides the logits; 0 takes the most probable token each time (greedy).
            top_k: draw among the k most probable tokens; 0 among all.
            top_p: draw among the smallest set of tokens with this total probability.
            seed: the same seed gives the same texts.
            interventions: what to change in the model while it writes.

        Raises:
            ValueError: `texts` is a single string, a text is too long, or a setting is out of its range.
        """
        if isinstance(texts, str):
            raise Refusal("continue_text takes a list of texts: write continue_text([text]) for a single one.")
        sampling = Sampling(temperature, top_k, top_p) if temperature else None
        numbers = torch.Generator().manual_seed(seed)
        continued = []
        for text in texts:
            prompt = self._read(text) if self.prepare(text).strip() else self._read_nothing()
            written, _ = self._write(prompt, max_new_tokens, sampling, numbers, interventions)
            continued.append(self.tokenizer.decode([*prompt, *written]))
        return continued

    def log_probability(self, text: str, interventions: Sequence[Intervention] = ()) -> float:
        """log p(text) in nats: of all its tokens and of its end, each given those before it.

        Raises:
            ValueError: the text is blank or too long.
        """
        return self.trace(text, interventions=interventions).log_probability

    def trace(
        self,
        source: Prompt,
        target: str | None = None,
        beam_size: int = 1,
        interventions: Sequence[Intervention] = (),
        max_new_tokens: int = 0,
        sampling: Sampling | None = None,
        seed: int = 0,
    ) -> Trace:
        """Run the model once over a text, teacher-forced, and record everything inside.

        Args:
            source: the text; `Tokens.prompt_length` says where it ends and its continuation begins. Or the turns of a
                chat, for a model whose tokenizer has a chat template.
            target: its continuation; None: what the model writes itself.
            beam_size: not used: a language model writes without a beam.
            interventions: what to change in the model, both while writing and in the recorded run.
            max_new_tokens: at most this many tokens are written after the text.
            sampling: how they are drawn; None takes the most probable one each time.
            seed: the same seed gives the same tokens.

        Raises:
            ValueError: the text is blank or has too many tokens for a Trace, or the template refuses the turns.
        """
        del beam_size
        if target is not None:
            ids, end = self._read_both(source, target), self._end
        else:
            prompt = self._read(source)
            room = min(max_new_tokens, self.token_limit - len(prompt))
            numbers = torch.Generator().manual_seed(seed)
            written, end = self._write(prompt, room, sampling, numbers, interventions)
            ids = [*prompt, *written]
        return self.trace_ids(source, (*ids[1:], end), interventions)

    def trace_ids(self, source: str, next_ids: Sequence[int], interventions: Sequence[Intervention] = ()) -> Trace:
        """The run on a finished text given as token ids, its end token included; it begins with `source`."""
        first, source = self._read(source)[0], self.prepare(source)
        reads = self.tokenizer.describe((first, *next_ids[:-1]))
        predicts = self.tokenizer.describe((first, *next_ids)).between(1, len(next_ids) + 1)
        prompt_length = sum(span is None or span[1] <= len(source) for span in reads.spans)
        reads = replace(reads, prompt_length=prompt_length)
        return self._trace({"decoder": reads}, {"decoder": replace(predicts, text=reads.text)}, interventions)

    @property
    def _end(self) -> int:
        """Id of the end token, or of any where there is none."""
        return self.tokenizer.end or 0

    def _read(self, text: str, what: str = "text") -> list[int]:
        """The tokens that the model reads, <s> first."""
        return self._ids(text, what)

    def _read_both(self, source: Prompt, target: str) -> list[int]:
        """The tokens of a text and of a continuation that a person gives."""
        if not isinstance(source, str):
            return self._read(source)  # raises what is wrong with turns
        return self._read(source + target, "text with its continuation")

    def _read_nothing(self) -> list[int]:
        """What it reads before it begins a text of its own."""
        if self.tokenizer.start is None:
            raise Refusal("This model has no start token: type the beginning of a text.")
        return [self.tokenizer.start]

    @torch.inference_mode()
    def _write(
        self,
        prompt: Sequence[int],
        max_new_tokens: int,
        sampling: Sampling | None,
        numbers: torch.Generator,
        interventions: Sequence[Intervention],
    ) -> tuple[list[int], int]:
        """Ids of what follows `prompt`, and the id of the token that ends it or that would; without `sampling` the most
        probable token each time."""
        written: list[int] = []
        if max_new_tokens < 1 or not self.model.writes:
            return written, self._end  # steps would read the prompt before they are asked for anything
        with applied(self.model, interventions):
            cached, make = all(change.position_free for change in interventions), steps_of(self.model)
            steps = make(self.model, [prompt[1:] if make.adds_start else prompt], use_cache=cached)
            for _, logits in zip(range(max_new_tokens), steps, strict=False):
                allowed = steps.log_probabilities(logits)
                token = (
                    allowed.argmax(-1) if sampling is None else draw(sampling_distribution(allowed, sampling), numbers)
                )
                if token.item() in steps.ends:
                    return written, int(token)
                written.append(int(token))
                steps.extend(token.to(logits.device))
        return written, self._end
