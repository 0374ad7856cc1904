"""Models that reverse letters, beside a Transformer: an LSTM encoder-decoder with one fixed vector, and with attention.

All three are called alike: logits = model(source, target). `read_letters_model` opens the shipped ones,
`run_letters_model` shows one run of them; `python -m model.commands.recurrence` trained them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from string import ascii_lowercase

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor, nn

from model.hooks import HookPoint, editing, recording
from model.network.config import BOS, EOS, SPECIAL_TOKENS, TransformerConfig
from model.network.encoder_decoder import Transformer
from model.trace import Array

VOCABULARY = (*SPECIAL_TOKENS, *ascii_lowercase)
FIXED, ADDITIVE, TRANSFORMER = "fixed_vector", "additive_attention", "transformer"
FOLDER = Path(__file__).parents[2] / "checkpoints" / "recurrence"
RESULTS = "results.csv"
EXACT_MATCH, GRADIENT_BEFORE, GRADIENT_AFTER = "exact match", "gradient before training", "gradient after training"
"""what was measured, in its column `measure`"""
TRAINED_LENGTHS, TESTED_LENGTHS = range(3, 9), range(3, 17)
"""letters"""
EXTRA_STEPS = 4
"""a model that has not stopped after as many steps as there are letters may write this much more"""
OUTPUT = "feed_forward_residual.normed"
"""path in a layer of what it hands on"""


class AdditiveAttention(nn.Module):
    """score = v^T tanh(W_1 s + W_2 h) (Bahdanau et al. 2015, section 3.1 and appendix A.1.2)."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.w_1 = nn.Linear(d_model, d_model, bias=False)
        self.w_2 = nn.Linear(d_model, d_model)
        self.v = nn.Linear(d_model, 1, bias=False)

    def forward(self, s: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """The weights (batch, source position) and the context (batch, d_model), the weighted sum of h, from the
        decoder's state s (batch, d_model) and the encoder's states h (batch, source position, d_model)."""
        scores = self.v(torch.tanh(self.w_1(s)[:, None] + self.w_2(h)))[..., 0]
        weights = F.softmax(scores, dim=-1)
        context = (weights[:, None] @ h)[:, 0]
        return weights, context


class RecurrentTranslator(nn.Module):
    """LSTM encoder-decoder: the encoder's last state becomes the decoder's first (Sutskever et al. 2014).

    With attention the decoder also reads a context at each step, computed from its previous state (Bahdanau et al.
    2015). Their encoder reads both ways and consists of gated recurrent units; ours differ in nothing but attention,
    and in width so that their numbers of parameters are about equal.
    """

    def __init__(self, d_model: int, attention: bool) -> None:
        super().__init__()
        width = 2 * d_model if attention else d_model
        self.embedding = nn.Embedding(len(VOCABULARY), d_model)
        self.encoder = nn.LSTM(d_model, d_model, batch_first=True)
        self.attention = AdditiveAttention(d_model) if attention else None
        self.decoder = nn.LSTMCell(width, d_model)
        self.output = nn.Linear(width, len(VOCABULARY))
        self.embedded, self.memory, self.states, self.logits = (HookPoint() for _ in range(4))
        if attention:
            self.pattern, self.context = HookPoint(), HookPoint()

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Logits (batch, target position, vocabulary); arguments as of the Transformer, without padding."""
        memory, (h, c) = self.encoder(self.embedded(self.embedding(src)))
        memory = self.memory(memory)
        state = (h[0], c[0])
        states, patterns, contexts = [], [], []
        for y in self.embedding(tgt).unbind(dim=1):
            if self.attention:
                pattern, context = self.attention(state[0], memory)
                patterns.append(pattern)
                contexts.append(context)
                y = torch.cat([y, context], dim=-1)
            state = self.decoder(y, state)
            states.append(state[0])
        outputs = self.states(torch.stack(states, dim=1))
        if self.attention:
            self.pattern(torch.stack(patterns, dim=1))
            outputs = torch.cat([outputs, self.context(torch.stack(contexts, dim=1))], dim=-1)
        return self.logits(self.output(outputs))


TRANSFORMER_CONFIG = TransformerConfig(
    vocab_size=len(VOCABULARY),
    d_model=64,
    n_heads=4,
    d_ff=128,
    n_encoder_layers=2,
    n_decoder_layers=2,
    dropout=0.0,
    max_len=64,
)


LETTER_MODELS: Mapping[str, Callable[[], nn.Module]] = {
    FIXED: lambda: RecurrentTranslator(100, attention=False),
    ADDITIVE: lambda: RecurrentTranslator(86, attention=True),
    TRANSFORMER: lambda: Transformer(TRANSFORMER_CONFIG),
}
"""widths for about equal numbers of parameters"""


def encode_letters(letters: str) -> list[int]:
    """Token ids of lower-case letters."""
    return [VOCABULARY.index(letter) for letter in letters]


def sources(texts: list[str]) -> Tensor:
    """What a model reads: the letters and </s>; (text, letters + 1). All texts have the same length."""
    return torch.tensor([[*encode_letters(text), EOS] for text in texts])


def targets(texts: list[str]) -> Tensor:
    """What it should write, between <s> and </s>: the letters in reverse order; (text, letters + 2)."""
    return torch.tensor([[BOS, *encode_letters(text[::-1]), EOS] for text in texts])


@torch.inference_mode()
def write(model: nn.Module, src: Tensor, steps: int) -> Tensor:
    """The most probable token at each of `steps` steps, each after those before it: (batch, steps)."""
    tgt = torch.full((len(src), 1), BOS)
    for _ in range(steps):
        tgt = torch.cat([tgt, model(src, tgt)[:, -1:].argmax(dim=-1)], dim=1)
    return tgt[:, 1:]


def exact_matches(model: nn.Module, texts: list[str]) -> Tensor:
    """bool (text,): whether the model writes the reverse of each text, then </s>. All texts have the same length."""
    right = targets(texts)[:, 1:]
    return (write(model, sources(texts), right.shape[1]) == right).all(dim=1)


def loss_gradient(model: nn.Module, texts: list[str]) -> Tensor:
    """Norm of the gradient of the last letter's loss, -log p, at each embedded token: (text, source position).

    The model reads the right letters up to the last one, which is the text's first. The gradient is taken at the
    embedding as the encoder reads it, before positions are added. All texts have the same length.
    """
    inputs = []

    def keep(embedded: Tensor) -> Tensor:
        inputs.append(embedded.detach().requires_grad_())
        return inputs[-1]

    tgt = targets(texts)
    with torch.enable_grad(), editing(model, {embedding_point(model): keep}):
        logits = model(sources(texts), tgt[:, :-2])
        loss = F.cross_entropy(logits[:, -1], tgt[:, -2], reduction="sum")
        (gradient,) = torch.autograd.grad(loss, inputs)
    return gradient.norm(dim=-1)


def distances(n: int) -> list[int]:
    """Steps of a recurrent model between reading each of n letters, then </s>, and writing the last letter.

    It writes its first letter in the step after it has read </s>.
    """
    return [2 * n - position for position in range(n + 1)]


def embedding_point(model: nn.Module) -> str:
    """Path of the hook point on the embedded source."""
    return "src_embedding.embedding" if isinstance(model, Transformer) else "embedded"


@dataclass(frozen=True)
class LettersRun:
    """One run of one of LETTER_MODELS: what it wrote greedily, and the activations with that as its target.

    Recurrent models have one layer of states; the Transformer's layer 0 is what its first layer reads.
    """

    reads: tuple[str, ...]
    """source tokens: the letters, then </s>"""
    writes: tuple[str, ...]
    """the written tokens, </s> the last unless the model never stopped"""
    probability: Array
    """(step,) of each written token"""
    encoder: Array
    """(layer, source position, d_model)"""
    decoder: Array
    """(layer, step, d_model)"""
    patterns: Array
    """attention weights from the decoder to the encoder, (layer, head, step, source position); without attention no
    layer"""
    gradient: Array
    """(source position,) norm of the gradient of the loss of the last correct letter at each embedded token"""

    @property
    def exact(self) -> bool:
        """True if it wrote the letters in reverse order and stopped."""
        return self.writes == (*self.reads[-2::-1], self.reads[-1])


def read_letters_model(name: str) -> nn.Module:
    """The shipped model of this name, one of LETTER_MODELS, in evaluation mode."""
    model = LETTER_MODELS[name]()
    model.load_state_dict(load_file(FOLDER / f"{name}.safetensors"), strict=False)
    return model.eval().requires_grad_(False)


def read_results() -> pd.DataFrame:
    """Results of all models and seeds: model, seed, measure, at, value.

    `at` is the number of letters for exact match, else the distance as in `distances`.
    """
    return pd.read_csv(FOLDER / RESULTS)


def result_arrays() -> dict[str, dict[str, Array]]:
    """Results of all models and seeds, by model: its measures, (seed, at) each, and where they were taken."""
    results = read_results()
    return {
        name: {
            f"{measure}, {part}": values
            for measure in (EXACT_MATCH, GRADIENT_BEFORE, GRADIENT_AFTER)
            for part, values in zip(("at", "value"), by_seed(results, measure, name), strict=True)
        }
        for name in LETTER_MODELS
    }


def by_seed(results: pd.DataFrame, measure: str, name: str) -> tuple[Array, Array]:
    """One measure of one model out of `read_results`: where it was taken, (at,) ascending, and (seed, at)."""
    of_model = results[(results["measure"] == measure) & (results["model"] == name)]
    values = of_model.pivot(index="seed", columns="at", values="value")
    return values.columns.to_numpy(), values.to_numpy()


def count_letters_parameters() -> dict[str, int]:
    """Number of parameters of each of LETTER_MODELS."""
    return {name: sum(parameter.numel() for parameter in new().parameters()) for name, new in LETTER_MODELS.items()}


def right_letter_weights(run: LettersRun) -> Array:
    """(layer, head): mean attention weight on the letter that should be written, over all letters that were."""
    n = len(run.reads) - 1
    steps = np.arange(min(n, len(run.writes)))
    return run.patterns[:, :, steps, n - 1 - steps].mean(axis=-1)


def run_letters_model(name: str, letters: str) -> LettersRun:
    """Let the shipped model `name` write the reverse of `letters`, lower-case, at least one and at most 16."""
    model, src = read_letters_model(name), sources([letters])
    written = write(model, src, len(letters) + EXTRA_STEPS)[0].tolist()
    written = written[: written.index(EOS) + 1] if EOS in written else written
    with torch.inference_mode(), recording(model) as activations:
        logits = model(src, torch.tensor([[BOS, *written[:-1]]]))[0]
    encoder, decoder, patterns = _activations(model, activations)
    return LettersRun(
        reads=tuple(VOCABULARY[token] for token in src[0]),
        writes=tuple(VOCABULARY[token] for token in written),
        probability=logits.softmax(dim=-1)[range(len(written)), written].numpy(),
        encoder=encoder.numpy(),
        decoder=decoder.numpy(),
        patterns=patterns.numpy(),
        gradient=loss_gradient(model, [letters])[0].numpy(),
    )


def _activations(model: nn.Module, found: Mapping[str, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Encoder, decoder and patterns of a LettersRun."""
    if isinstance(model, RecurrentTranslator):
        memory, states = found["memory"], found["states"]
        without = torch.empty(0, 0, states.shape[1], memory.shape[1])
        return memory, states, found["pattern"][None] if model.attention else without
    layers = range(model.config.n_encoder_layers)
    encoder, decoder = (
        torch.cat([found[f"{side}_embedding.sum"], *(found[f"{stack}.layers.{i}.{OUTPUT}"] for i in layers)])
        for side, stack in (("src", "encoder"), ("tgt", "decoder"))
    )
    return encoder, decoder, torch.cat([found[f"decoder.layers.{i}.cross_attn.pattern"] for i in layers])
