"""What the networks of all families have in common."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from model.hooks import Call, HookPoint, has_hook_point, let_calls_be_kept
from model.kinds import Kind, StackName
from model.network.attention import KeyValueCache, MultiHeadAttention
from model.network.config import BOS, EOS, TransformerConfig
from model.network.embedding import InputEmbedding
from model.network.layers import EncoderLayer
from model.network.residual import new_norm

EMBEDDINGS: Mapping[StackName, str] = {"encoder": "src_embedding", "decoder": "tgt_embedding"}
"""path of what each stack reads"""


class Encoder(nn.Module):
    """N identical layers of self-attention and feed-forward (section 3.1), without attention to another text."""

    def __init__(self, config: TransformerConfig, n_layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(n_layers))
        self.final_norm = final_norm(config)

    def forward(self, x: Tensor, mask: Tensor, cache: list[KeyValueCache] | None = None) -> Tensor:
        for layer, layer_cache in zip(self.layers, cache or [None] * len(self.layers), strict=True):
            x = layer(x, mask, layer_cache)
        return self.final_norm(x)


class Network(nn.Module):
    """Stacks of layers, with hook points; each family says which stacks it has and how they are joined."""

    output: nn.Linear
    """(d_model -> vocabulary)"""
    start: int = BOS
    """id of what a decoder reads first"""
    ends: frozenset[int] = frozenset({EOS})
    """ids of the tokens that end a text"""
    barred: slice | list[int] = slice(EOS)
    """ids of tokens that are never written: <pad>, <unk> and <s>"""

    writes: bool = True
    """whether it gives each token of the vocabulary a probability"""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config

    def frame(self, ids: Sequence[int]) -> list[int]:
        """What the first stack reads of a text: its tokens with the special ones around them."""
        raise NotImplementedError

    def _add_output(self, tokens: nn.Embedding) -> None:
        """The last part of a network: the projection to the vocabulary, tied to `tokens` or not; random weights."""
        self.output = nn.Linear(self.config.d_model, self.config.vocab_size, bias=False)
        if self.config.tie_embeddings:
            self.output.weight = tokens.weight
        self.final, self.logits = HookPoint(), HookPoint()
        for stack in self.stacks.values():
            for layer in stack.layers:
                let_calls_be_kept(layer)
        self.initialise()

    def rerun_layer(self, stack: StackName, layer: int, calls: Mapping[nn.Module, Sequence[Call]]) -> None:
        """Run one layer alone, as it was called in a run inside `keeping_calls`, for what its hook points then give."""
        module = self.stacks[stack].layers[layer]
        args, keywords = calls[module][0]
        module(*args, **keywords)

    @property
    def layers_run_alone(self) -> bool:
        """True if `rerun_layer` works for every layer."""
        return True

    @property
    def stacks(self) -> Mapping[StackName, nn.Module]:
        """Encoder, decoder, or both, in the order in which they run."""
        return {name: getattr(self, name) for name in EMBEDDINGS if hasattr(self, name)}

    @property
    def embeddings(self) -> Mapping[StackName, InputEmbedding]:
        """What each stack reads."""
        return {name: getattr(self, EMBEDDINGS[name]) for name in self.stacks}

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of attention (section 3.2.3) that the network has."""
        heads, kv_heads = self.config.n_heads, self.config.kv_heads
        layers = {name: tuple(range(len(stack.layers))) for name, stack in self.stacks.items()}
        kinds = [
            Kind(
                f"{name}_self",
                name,
                name,
                causal=name == "decoder",
                layers=layers[name],
                heads=heads,
                kv_heads=kv_heads,
            )
            for name in self.stacks
        ]
        if len(self.stacks) == 2:
            cross = Kind("cross", "decoder", "encoder", False, layers["decoder"], heads=heads, kv_heads=heads)
            kinds.append(cross)
        return tuple(kinds)

    def attentions(self) -> dict[tuple[str, int], tuple[str, MultiHeadAttention]]:
        """(kind, layer) -> (path, module)."""
        modules = {}
        for kind in self.kinds:
            name = "cross_attn" if kind.crosses else "self_attn"
            for layer, block in enumerate(getattr(self, kind.queries).layers):
                modules[kind.name, layer] = (f"{kind.queries}.layers.{layer}.{name}", getattr(block, name))
        return modules

    def texts_of(self, run: Any) -> list[Tensor]:
        """What each stack read in a run, a model.trace.Trace: token ids, (1, position)."""
        return [torch.tensor([one.tokens.ids], device=self.output.weight.device) for one in run.streams.values()]

    def weights(self) -> dict[str, Tensor]:
        """All that a checkpoint keeps, by path: the parameters, and the running means of BatchNorm."""
        kept = self.state_dict()
        buffers = {path: values for path, values in self.named_buffers() if path in kept}
        return dict(self.named_parameters()) | buffers

    def parameters_by_part(self) -> dict[str, int]:
        """How many parameters each part learns; a tied matrix is counted once."""
        counts = dict.fromkeys(("embeddings", "positions", *self.stacks, "output"), 0)
        for path, parameter in self.named_parameters():
            part = path.split(".")[0].removeprefix("src_").removeprefix("tgt_")
            part = "positions" if path.endswith(".positions") else {"embedding": "embeddings"}.get(part, part)
            counts[part] += parameter.numel()
        return counts

    def parameters_by_block(self) -> dict[tuple[str, int], dict[str, int]]:
        """(stack, layer) -> part -> how many parameters it learns; a layer's norms are counted together, as "norms".

        What lies outside the layers, such as the final norm of a pre-norm stack, is not counted.
        """
        counts: dict[tuple[str, int], dict[str, int]] = {}
        for name, stack in self.stacks.items():
            for layer, block in enumerate(stack.layers):
                parts = counts[name, layer] = {}
                for child, module in block.named_children():
                    part = "norms" if child.endswith("_residual") else child
                    parts[part] = parts.get(part, 0) + sum(parameter.numel() for parameter in module.parameters())
        return counts

    def untrained(self, numbers: torch.Generator) -> "Network":
        """A network of the same kind with random weights, as at the start of training, in evaluation mode."""
        new = type(self)(self.config)
        new.initialise(numbers)
        return new.to(self.output.weight.device).eval().requires_grad_(False)

    def update_point(self, path: str) -> str:
        """Path of the hook point with what the sub-layer at `path` adds to the residual stream."""
        return f"{path}.out"

    def before_point(self, path: str) -> str:
        """Path of the hook point with the residual stream that comes to the sub-layer at `path`."""
        return f"{path}_residual.before"

    def end_point(self, path: str) -> str:
        """Path of the hook point with what the layer at `path` hands on."""
        return f"{path}.feed_forward_residual.{'normed' if self.config.norm == 'post' else 'added'}"

    def edits_reach(self, path: str) -> bool:
        """Whether the network goes on with what an edit makes at the hook point at `path`."""
        return has_hook_point(self, path)

    def initialise(self, numbers: torch.Generator | None = None) -> None:
        """Xavier for every projection, zero biases; embeddings with variance 1 / d_model, so that after multiplication
        by sqrt(d_model) they are on the scale of the sines and cosines that are added to them.

        `numbers` is where the random ones come from; None: torch's own generator, which all threads share.
        """
        for module in self.modules():
            if isinstance(module, nn.Linear) and module is not self.output:
                nn.init.xavier_uniform_(module.weight, generator=numbers)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            elif isinstance(module, InputEmbedding) and isinstance(module.positions, nn.Parameter):
                nn.init.normal_(module.positions, std=0.02, generator=numbers)
        tables = [embedding.tokens.weight for embedding in self.embeddings.values()]
        for weight in dict.fromkeys((*tables, self.output.weight)):
            nn.init.normal_(weight, std=self.config.d_model**-0.5, generator=numbers)


def final_norm(config: TransformerConfig) -> nn.Module:
    """Pre-norm does not normalise the last residual stream, so its stacks end with one more norm."""
    return new_norm(config) if config.norm == "pre" else nn.Identity()
