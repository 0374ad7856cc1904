"""A transformers model with the face of `model.network.network.Network`: the same paths of hook points, the same parts.

`recording`, `editing` and `model.interventions` therefore work on it unchanged. Hooks are functions with bound
arguments, not closures, so that a copy of the model has hooks of its own.
"""

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from model.checkpoints.huggingface.attention import (
    PASS,
    AttentionCall,
    AttentionPoints,
    HookedAttention,
    Pass,
    compute,
    compute_here,
    layer_of,
    score_bias,
    visible,
)
from model.checkpoints.huggingface.blocks import BlockLayout, block_of, find_arrangement, read_called_norm
from model.checkpoints.huggingface.ends import FoundEmbedding, OutputHead, find_embedding, find_head, find_norm_after
from model.checkpoints.huggingface.heads import (
    AttentionParts,
    HeadColumns,
    angles_of,
    cos_and_sin,
    find_parts,
    head_matrices,
    matrix,
)
from model.checkpoints.huggingface.languages import Languages
from model.checkpoints.huggingface.latent import find_latents
from model.checkpoints.huggingface.probe import SOURCE_TOKENS, Event, ModuleCall, batched, call_model, close, probe
from model.checkpoints.huggingface.steps import HookedSteps
from model.checkpoints.huggingface.vocabulary import number_segments
from model.checkpoints.pooling import Pooling
from model.hooks import Call, HookPoint, let_calls_be_kept
from model.kinds import Kind, StackName, path_of
from model.language import Refusal, Sentence, sentence, series
from model.network.config import TransformerConfig
from model.network.network import EMBEDDINGS, Network
from model.trace import Norm, Projections

EXACT = 1e-5
"""An attention whose output our steps do not repeat this closely does something unknown to them."""

EDITED = ("q", "k", "v", "scores", "mask", "scaled", "bias", "masked", "temperature", "pattern", "z")
"""points of an attention with whose results it goes on, where our steps repeat it"""


class Unreadable(Refusal):
    """The model's attention cannot be read; the message says why."""


@dataclass(frozen=True)
class HookedConfig(TransformerConfig):
    """The sizes and choices of a Hugging Face model, as far as they were found; they need not fit a network of ours."""

    d_value: int = 0
    """width of one head's values"""

    def __post_init__(self) -> None:
        pass

    @property
    def gated(self) -> bool:
        return self.activation.startswith(("swiglu", "geglu", "gated"))

    @property
    def d_v(self) -> int:
        return self.d_value


@dataclass(eq=False)
class Block:
    """One layer's module, what was found in it, and the points of each of the layers that it is run for."""

    module: nn.Module
    stack: str
    sites: list[HookedAttention]
    """its attentions, in the order in which they run"""
    arrangement: BlockLayout | None = None
    norms: list[tuple[Norm | None, Norm | None]] = field(default_factory=list)
    """of each sub-layer: the norm before it or after its sum, and that of its own result (sandwich)"""
    layers: list[nn.Module] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    """of the layers"""
    names: list[str] = field(default_factory=list)
    """of the sub-layers, in order"""


class HookedModel(Network):
    """Reads a transformers model through hook points at `decoder.layers.1.self_attn.pattern` and so on."""

    unused: tuple[Sentence, ...] = ()
    """those of `notes` that are about what its folder holds besides"""
    departures: tuple[Sentence, ...] = ()
    """what its folder says that it does not use, so that it is not the network that was trained"""

    pooling = Pooling()
    """how its folder makes one vector of a text"""

    def __init__(self, model: nn.Module) -> None:
        nn.Module.__init__(self)
        self.model = model.eval().requires_grad_(False)
        compute_here(model)
        seen, logits = probe(model)
        calls = [each for each in seen if isinstance(each, AttentionCall)]
        if not calls:
            raise Unreadable(
                "{model} computes its attention in a way that transformers does not expose. Only families "
                "that call its AttentionInterface open here.",
                model=type(model).__name__,
            )
        self.separator: int | None = None
        """id of the token between two texts, where the model has an embedding for each: see `Vocabulary`"""
        self.pad = 0
        """id of what fills up a batch"""
        self.ends = frozenset()
        self.notes: list[Sentence] = []
        """what could not be read, in sentences for the screen"""
        self._address(calls)
        self.attention_parts = self._find_attentions(calls, seen)
        self.blocks = self._find_blocks(seen)
        modules = [each for each in seen if isinstance(each, ModuleCall)]
        for name in self.stacks:
            inside = {part for block in self.blocks_of(name) for part in block.module.modules()}
            first = next((each for each in modules if each.module in self._own_blocks(name)), None)
            tokens = model.get_input_embeddings()
            setattr(self, EMBEDDINGS[name], find_embedding(tokens, first, modules, inside, list(model.modules())))
            if not getattr(self, EMBEDDINGS[name]).known:
                self.notes.append(
                    sentence(
                        "{stack}: its input is not embedding + positions; what remains is shown as positions.",
                        stack=name,
                    )
                )
        self.final_norms: dict[str, Norm | None] = {}
        for name in self.stacks:
            last = next((each for each in reversed(modules) if each.module in self._own_blocks(name)), None)
            norm = last and find_norm_after(last, modules)
            self.final_norms[name] = read_called_norm(norm) if norm else None
            getattr(self, name).final_norm = norm.module if norm else nn.Identity()
        self.writes = logits is not None and logits.dim() == 3
        """whether it gives each token of the vocabulary a probability"""
        self.head: OutputHead = find_head(model, last, modules, logits)
        if self.head.unknown:
            self.notes.append(
                sentence("logits: how they follow from the last layer was not found; there is no logit lens.")
            )
        self.output = model.get_output_embeddings() or model.get_input_embeddings()
        self.memory, self.final, self.logits = HookPoint(), HookPoint(), HookPoint()
        self._projections: dict[AttentionPoints, Projections | None] = {}
        self._attach()
        self.config = self._describe(calls[0])
        self.eval()

    # --- the face of a Network ---

    steps = HookedSteps
    """how it decodes step by step"""

    languages: Languages | None = None
    """those of a translator of many languages, with the two that are chosen"""

    def in_languages(self, languages: Languages | None) -> "HookedModel":
        """The same layers and hooks, for texts in other languages: what its texts begin with is all that differs."""
        other = copy.copy(self)
        other.languages = languages
        return other

    @property
    def start(self) -> int:
        """Id of what a decoder that attends to an encoder reads first."""
        if self.languages and (own := self.languages.starts[self.languages.target]) is not None:
            return own
        return next(iter(self._tokens("decoder_start_token_id", "bos_token_id", "pad_token_id")), 0)

    @property
    def forced_start(self) -> int | None:
        """Id of what every text that a decoder with an encoder writes begins with; None: of anything."""
        if self.languages and (own := self.languages.forced[self.languages.target]) is not None:
            return own
        return next(iter(self._tokens("forced_bos_token_id")), None) if "encoder" in self.stacks else None

    @property
    def begins(self) -> list[int]:
        """Ids with which its settings let a text begin."""
        return [*self._tokens("forced_bos_token_id"), *self._tokens("decoder_start_token_id")]

    @property
    def barred(self) -> list[int]:
        """Ids of the tokens that the model is not to write, such as Marian's padding."""
        words = self._generation_setting("bad_words_ids") or []
        return self._known([word[0] for word in words if isinstance(word, list) and len(word) == 1])

    def find_ends(self, end: int | None) -> frozenset[int]:
        """Ids of the tokens that end a text: the tokenizer's `end`, and those of the settings, such as a turn's end."""
        return frozenset({end, *self._tokens("eos_token_id")} - {None})

    def check_start(self) -> None:
        """Check that the settings let a decoder with an encoder begin with a token that there is.

        Raises:
            Unreadable: the model has no such token.
        """
        for name in ("decoder_start_token_id", "forced_bos_token_id") if len(self.stacks) > 1 else ():
            token = self._generation_setting(name)
            if token is not None and not self._tokens(name):
                raise Unreadable(
                    "{name} is {token!r} in its settings, which is not a token of the model: they are 0 to "
                    "{last:,}. Correct it in generation_config.json or config.json.",
                    name=name,
                    token=token,
                    last=self._vocabulary - 1,
                )

    def _tokens(self, *names: str) -> list[int]:
        """The ids in the first of these settings that is made."""
        found = self._generation_setting(*names)
        return self._known(found if isinstance(found, list) else [found])

    def _known(self, ids: Sequence[Any]) -> list[int]:
        """Those that are tokens of the model: settings may name others, such as padding that was never trained."""
        return [i for i in ids if type(i) is int and 0 <= i < self._vocabulary]

    @property
    def _vocabulary(self) -> int:
        return self.model.config.get_text_config().vocab_size

    def _generation_setting(self, *names: str) -> Any:
        """The first of these settings that is made, in the generation's configuration or in the model's."""
        configs = (getattr(self.model, "generation_config", None), self.model.config)
        found = (getattr(config, name, None) for name in names for config in configs)
        return next((value for value in found if value is not None), None)

    def forward(self, *texts: Tensor) -> Tensor:
        """Logits (batch, position, vocabulary) of one teacher-forced run; no vocabulary where there is no head."""
        out = self.run(*texts)
        logits = getattr(out, "logits", None)
        if logits is None or logits.dim() != 3:
            logits = torch.zeros(*texts[-1].shape, 0, device=texts[0].device)
        return self.logits(logits)

    def run(self, *texts: Tensor) -> Any:
        """What transformers' model returns for token ids (batch, position); one source serves all targets.

        In a batch of several texts, pads at the end of a text are masked.
        """
        options = {}
        texts = tuple(ids.expand(len(texts[-1]), -1) for ids in texts)
        if bool((texts[0] != texts[0][:1]).any()):
            options["attention_mask"] = (texts[0] != self.pad).flip(-1).cumsum(-1).flip(-1).clamp(max=1)
        if self.separator is not None:
            options["token_type_ids"] = number_segments(texts[0], self.separator)
        return call_model(self.model, texts, **options)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        kinds = []
        for name in ("encoder_self", "decoder_self", "cross"):
            points = {layer: each for (kind, layer), each in self._points.items() if kind == name and self._whole(each)}
            if points:
                queries = "encoder" if name == "encoder_self" else "decoder"
                keys = "decoder" if name == "decoder_self" else "encoder"
                heads, kv_heads = (max(getattr(p, n) for p in points.values()) for n in ("n_heads", "n_kv_heads"))
                kinds.append(Kind(name, queries, keys, name == "decoder_self", tuple(points), heads, kv_heads))
        return tuple(kinds)

    def _whole(self, points: AttentionPoints) -> bool:
        """True if its steps can be read, or none of any attention can."""
        exact = [each for site in self.sites.values() if site.exact for each in site.points]
        return points in exact or not exact

    def attentions(self) -> dict[tuple[str, int], tuple[str, AttentionPoints]]:
        return {place: (path_of(*place), points) for place, points in self._points.items()}

    def untrained(self, numbers: torch.Generator) -> "HookedModel":
        """A copy with weights as its class draws them for a new model.

        They are drawn on the CPU, so that `numbers` give the same on every device.
        """
        new = copy.deepcopy(self)
        for module in new.model.modules():
            vars(module).pop("_is_hf_initialized", None)
        new.model.cpu()
        with _DrawingFrom(numbers):
            new.model.initialize_weights()
        new.model.to(self.output.weight.device)
        new._projections = {}
        return new

    def update_point(self, path: str) -> str:
        """As of every network.

        Raises:
            ValueError: the layer could not be read.
        """
        block, i = self._find_sublayer(path)
        return f"{path}_residual.contribution" if block.arrangement.after_norms[i] else f"{path}.out"

    def before_point(self, path: str) -> str:
        """As of every network.

        Raises:
            ValueError: the layer could not be read, its sub-layers share one residual connection, or the model
                multiplies what it adds there.
        """
        block, i = self._find_sublayer(path)
        if (multiplier := block.arrangement.multipliers[i]) != 1:
            raise Refusal(
                "{path}: the model multiplies what it adds by {factor:.4g}; so it cannot be removed",
                path=path,
                factor=multiplier,
            )
        if block.arrangement.placement == "parallel":
            raise Refusal("{path} shares its residual connection with the other sub-layer of its layer", path=path)
        if i and block.arrangement.placement != "post" and block.arrangement.norms[i] is None:
            raise Refusal("{path}: what its residual connection carries could not be read", path=path)
        return f"{path}_residual.before"

    def end_point(self, path: str) -> str:
        return f"{path}.end"

    def edits_reach(self, path: str) -> bool:
        """As of every network; many points of a Hugging Face model are only read."""
        parent, _, point = path.rpartition(".")
        owner = self.get_submodule(parent)
        if isinstance(owner, AttentionPoints):
            site = next(site for site in self.sites.values() if owner in site.points)
            found = self.attention_parts[site]
            return found.w_o is not None if point == "out" else site.exact and point in EDITED
        if parent in EMBEDDINGS.values():
            return point in ("positional", "sum")
        if point in ("normed", "contribution"):
            block, i = self._find_sublayer(parent.removesuffix("_residual"))
            made = block.arrangement.norms if point == "normed" else block.arrangement.after_norms
            return made[i] is not None
        if point == "before":
            return self._can_move_stream(*self._find_sublayer(parent.removesuffix("_residual")))
        return path.endswith((".end", ".feed_forward.out"))

    @staticmethod
    def _can_move_stream(block: Block, i: int) -> bool:
        """Whether the stream that reaches a sub-layer is its layer's input, or what a norm made or reads."""
        arrangement = block.arrangement
        if i == 0 or arrangement.placement == "post":
            return True
        return arrangement.placement != "parallel" and arrangement.norms[i] is not None

    def _find_sublayer(self, path: str) -> tuple[Block, int]:
        """The layer of the sub-layer at `path`, and its number there."""
        stack, _, layer, name = path.split(".")
        block = next((each for each in self.blocks_of(stack) if int(layer) in each.numbers), None)
        if block is None or block.arrangement is None:
            raise Refusal("{path}: its residual connection was not found", path=path)
        return block, block.names.index(name)

    def rerun_layer(self, stack: StackName, layer: int, calls: Mapping[nn.Module, Sequence[Call]]) -> None:
        block = next(each for each in self.blocks_of(stack) if layer in each.numbers)
        number = block.numbers.index(layer)
        args, keywords = calls[block.module][number]
        token = PASS.set(Pass(calls=dict.fromkeys(block.sites, number), entered=set(self.embeddings.values())))
        try:
            block.module(*args, **keywords)
        finally:
            PASS.reset(token)

    @property
    def layers_run_alone(self) -> bool:
        found = {(block.stack, number) for block in self.blocks for number in block.numbers}
        return found == {(name, layer) for name, stack in self.stacks.items() for layer in range(len(stack.layers))}

    def parameters_by_part(self) -> dict[str, int]:
        stacks = {block.module: block.stack for block in self.blocks}
        counts = dict.fromkeys(("embeddings", "positions", *self.stacks, "output"), 0)
        parts: dict[nn.Parameter, str] = {}
        for module, name in stacks.items():
            parts |= dict.fromkeys(module.parameters(), name)
        for embedding in self.embeddings.values():
            parts |= dict.fromkeys(embedding.tokens.parameters(), "embeddings")
            if embedding.table is not None:
                parts |= dict.fromkeys(embedding.table.parameters(), "positions")
        for parameter in self.model.parameters():
            counts[parts.get(parameter, "output")] += parameter.numel()
        return counts

    def parameters_by_block(self) -> dict[tuple[str, int], dict[str, int]]:
        counts: dict[tuple[str, int], dict[str, int]] = {}
        for block in self.blocks:
            for number in block.numbers[:1]:  # later ones share its weights
                named = {}
                for module, site in self.sites.items():
                    if site not in block.sites:
                        continue
                    kind = "cross_attn" if self._place(site.points[0])[0] == "cross" else "self_attn"
                    found = self.attention_parts[site]
                    parts = {module, found.w_o, *(heads.module for heads in found.projections.values())} - {None}
                    named[kind] = sum(p.numel() for p in {p for part in parts for p in part.parameters()})
                total = sum(parameter.numel() for parameter in block.module.parameters())
                norms = 0
                if block.arrangement:
                    calls = {c.module for c in (*block.arrangement.norms, *block.arrangement.after_norms) if c}
                    norms = sum(p.numel() for module in calls for p in module.parameters())
                named["feed_forward"] = total - norms - sum(named.values())
                counts[block.stack, number] = named | {"norms": norms}
        return counts

    def parts_of(self, points: AttentionPoints) -> AttentionParts:
        """Where an attention's queries, keys and values come from."""
        return next(found for site, found in self.attention_parts.items() if points in site.points)

    def projections(self, points: AttentionPoints) -> Projections | None:
        """The matrices of an attention; None where one of them was not found."""
        if points not in self._projections:
            self._projections[points] = self._read_projections(points)
        return self._projections[points]

    def _read_projections(self, points: AttentionPoints) -> Projections | None:
        found = self.parts_of(points)
        if not found.whole:
            return None
        if found.latents:
            return _latent_projections(found, points)
        copies = {"q": 1, "k": points.n_heads // points.n_kv_heads, "v": points.n_heads // points.n_kv_heads}
        learned = {name: head_matrices(found.projections[name], copies[name]) for name in "qkv"}
        arrays = {
            f"{part}_{name}": each for name, pair in learned.items() for part, each in zip("wb", pair, strict=True)
        }
        w, b = matrix(found.w_o)
        arrays |= {"w_o": w.unflatten(0, (points.n_heads, -1)), "b_o": torch.zeros_like(w[0]) if b is None else b}
        arrays |= {name: arrays[name].cpu().numpy() for name in ("w_o", "b_o")}
        biases = [heads.module.bias is not None for heads in found.projections.values()] + [b is not None]
        return Projections(**arrays, biases=any(biases), query_factor=found.projections["q"].factor)

    def qk_norms(self, points: AttentionPoints) -> tuple[Norm, Norm] | None:
        """The norms of its queries and keys."""
        norms = self.parts_of(points).norms
        read = [read_called_norm(norms[name][1]) for name in "qk" if name in norms]
        if len(read) < 2 or None in read:
            return None
        # Command R+ keeps its heads' factors as (heads, d_k).
        return tuple(
            replace(norm, gamma=norm.gamma[:, None], beta=None if norm.beta is None else norm.beta[:, None])
            if norm.gamma.ndim == 2
            else norm
            for norm in read
        )

    def leave_out(self, points: AttentionPoints, names: Iterable[str]) -> None:
        """Forget the matrices of these steps, q, k, v or out: the model does more there than was found."""
        site = next(site for site in self.sites.values() if points in site.points)
        found = self.attention_parts[site]
        kept = {name: heads for name, heads in found.projections.items() if name not in names}
        latents = {} if {*names} & {"q", "k", "v"} else found.latents
        w_o = None if "out" in names else found.w_o
        self.attention_parts[site] = replace(found, projections=kept, w_o=w_o, latents=latents)
        self._projections.clear()
        self.config = replace(self.config, positions=self._name_positions())

    def blocks_of(self, stack: str) -> list[Block]:
        """The layers of a stack, in order."""
        return [block for block in self.blocks if block.stack == stack]

    # --- finding ---

    def _address(self, calls: Sequence[AttentionCall]) -> None:
        """A kind and a layer for each attention that ran; source and target differ in length in the probe."""
        both = self.model.config.is_encoder_decoder
        encoder = set(self.model.get_encoder().modules()) if both else set()
        causal = all(_is_causal(call) for call in calls)
        self._points: dict[tuple[str, int], AttentionPoints] = {}
        self._biased = False
        self.sites: dict[nn.Module, HookedAttention] = {}
        for call in calls:
            if not both:
                kind = "decoder_self" if causal else "encoder_self"
            elif call.module in encoder:
                kind = "encoder_self"
            else:
                kind = "cross" if call.key.shape[2] == SOURCE_TOKENS else "decoder_self"
            layer = sum(name == kind for name, _ in self._points)
            points = self._points[kind, layer] = AttentionPoints(call)
            out, weights = compute(points, call)
            self._biased |= score_bias(call, visible(call.mask, weights)) is not None
            points.error = max(float((out - call.out).abs().max()), float((weights - call.weights).abs().max()))
            site = self.sites.setdefault(call.module, HookedAttention([]))
            site.points.append(points)
            site.exact &= points.error <= EXACT
        for stack in ("encoder", "decoder"):
            layers = [layer for kind, layer in self._points if kind == f"{stack}_self"]
            if layers:
                setattr(self, stack, nn.Module())
                getattr(self, stack).layers = nn.ModuleList(nn.Module() for _ in layers)
        for place, points in self._points.items():
            path, name = path_of(*place).rsplit(".", 1)
            setattr(self.get_submodule(path), name, points)

    def _find_attentions(
        self, calls: Sequence[AttentionCall], seen: Sequence[Event]
    ) -> dict[HookedAttention, AttentionParts]:
        at = [-1, *(i for i, each in enumerate(seen) if isinstance(each, AttentionCall)), len(seen)]
        found: dict[HookedAttention, AttentionParts] = {}
        for i, call in enumerate(calls):
            site = self.sites[call.module]
            if site not in found:
                found[site] = find_parts(call, seen[at[i] + 1 : at[i + 1]], seen[at[i + 1] : at[i + 2]], seen)
                if not found[site].whole:
                    found[site] = _with_latents(found[site], call, seen[at[i] + 1 : at[i + 1]], seen)
                self.notes += _missing(self._place(site.points[0]), site, found[site])
        return found

    def _find_blocks(self, seen: Sequence[Event]) -> list[Block]:
        blocks: dict[nn.Module, Block] = {}
        owner = {}
        for module, site in self.sites.items():
            if (layer := block_of(self.model, module)) is not None:
                stack = "encoder" if self._place(site.points[0])[0] == "encoder_self" else "decoder"
                blocks.setdefault(layer, Block(layer, stack, [])).sites.append(site)
                owner |= dict.fromkeys(layer.modules(), layer)
        start, done = 0, set()
        for i, event in enumerate(seen):
            block = blocks.get(event.module)
            if block is None or not isinstance(event, ModuleCall):
                continue
            inner = [each for each in seen[start:i] if owner.get(each.module) is block.module]
            start = i + 1
            if block.module not in done:
                done.add(block.module)
                self._find_block(block, event, inner)
        for name in self.stacks:
            calls = [each for each in seen if isinstance(each, ModuleCall)]
            own = [each for each in calls if (block := blocks.get(each.module)) and block.stack == name]
            if not all(close(before.y, after.x) for before, after in pairwise(own)):
                for block in blocks.values():
                    block.arrangement = None if block.stack == name else block.arrangement
                self.notes.append(
                    sentence(
                        "{stack}: other layers stand between those with attention; its residual stream is not shown.",
                        stack=name,
                    )
                )
        return list(blocks.values())

    def _find_block(self, block: Block, event: ModuleCall, inner: Sequence[Event]) -> None:
        own = {module for module, site in self.sites.items() if site in block.sites}
        parts = [self.attention_parts[site] for site in block.sites]
        outputs = [each.w_o for each in parts]
        own = {part for module in own for part in module.modules()} | set(outputs)
        own |= {heads.module for each in parts for heads in each.projections.values()}
        block.arrangement = find_arrangement(event, inner, outputs, own)
        stack = getattr(self, block.stack)
        block.numbers = [self._place(points)[1] for points in block.sites[0].points]
        block.layers = [stack.layers[number] for number in block.numbers]
        kinds = [self._place(site.points[0])[0] for site in block.sites]
        block.names = [*("cross_attn" if kind == "cross" else "self_attn" for kind in kinds), "feed_forward"]
        if block.arrangement is None:
            place = self._place(block.sites[0].points[0])
            self.notes.append(
                sentence(
                    "{stack}, layer {layer}: sub-layers and norms do not add up to its output; its residual stream is "
                    "not shown.",
                    stack=block.stack,
                    layer=place[1],
                )
            )
            return
        norms = zip(block.arrangement.norms, block.arrangement.after_norms, strict=True)
        block.norms = [(read_called_norm(norm), read_called_norm(after)) for norm, after in norms]
        for layer in block.layers:
            inside = [name for name in ("gate", "up") if block.arrangement.gate]
            inside += ["z"] if block.arrangement.activating else []
            layer.feed_forward = _points("hidden", "out", *inside)
            layer.feed_forward.w_2 = block.arrangement.w_2
            for name in block.names:
                setattr(layer, f"{name}_residual", _points("before", "normed", "contribution"))
            layer.end = HookPoint()

    def _place(self, points: AttentionPoints) -> tuple[str, int]:
        return next(place for place, each in self._points.items() if each is points)

    def _own_blocks(self, stack: str) -> set[nn.Module]:
        return {block.module for block in self.blocks_of(stack)}

    def _describe(self, call: AttentionCall) -> HookedConfig:
        config, found = self.model.config.get_text_config(), self.attention_parts[self.sites[call.module]]
        table = self.embeddings[next(iter(self.stacks))]
        arrangement = self.blocks[0].arrangement if self.blocks else None
        norm = next((each for each in self.blocks[0].norms[-1] if each), None) if arrangement else None
        hidden = arrangement and getattr(arrangement.w_2, "weight", None)
        # The embeddings of ALBERT and ELECTRA are narrower than their layers.
        d_model = table.tokens.weight.shape[-1] if found.w_o is None else matrix(found.w_o)[0].shape[-1]
        counts = {stack: len(getattr(self, stack).layers) if hasattr(self, stack) else 0 for stack in EMBEDDINGS}
        tied = table.tokens is not None and getattr(self.output, "weight", None) is table.tokens.weight
        return HookedConfig(
            vocab_size=config.vocab_size,
            d_model=d_model,
            n_heads=call.query.shape[1],
            n_kv_heads=call.key.shape[1],
            d_key=call.query.shape[-1],
            d_value=call.value.shape[-1],
            d_ff=0 if hidden is None else max(hidden.shape) if arrangement.gate is None else hidden.numel() // d_model,
            n_encoder_layers=counts["encoder"],
            n_decoder_layers=counts["decoder"],
            dropout=0.0,
            max_len=_longest(config, table),
            norm=arrangement.placement if arrangement and arrangement.placement in ("post", "res-post") else "pre",
            positions=self._name_positions(),
            activation=_activation(arrangement),
            tie_embeddings=tied,
            norm_function="rms_norm" if norm and norm.kind == "RMSNorm" else "layer_norm",
            biases=found.w_o is not None and found.w_o.bias is not None,
            qk_norm=bool(found.norms),
            scale_embeddings=table.scale != 1,
        )

    def _name_positions(self) -> str:
        """How the model encodes positions; "none" only where every step was found and none of them depends on them."""
        tables = list(self.embeddings.values())
        if any(found.rotated for found in self.attention_parts.values()):
            return "rope"
        if added := next((table for table in tables if table.rows is not None), None):
            return "learned" if added.learned else "sinusoidal"
        if self._biased:
            return "relative bias"
        whole = all({"q", "k"} <= found.projections.keys() for found in self.attention_parts.values())
        whole &= all(table.known and not table.moving for table in tables) and self.layers_run_alone
        whole &= len(self.blocks) >= (getattr(self.model.config.get_text_config(), "num_hidden_layers", 0) or 0)
        return "none" if whole and all(block.arrangement for block in self.blocks) else "unread"

    # --- hooks ---

    def _attach(self) -> None:
        self.model.register_forward_pre_hook(_begin_pass)
        for module, site in self.sites.items():
            _attach_site(module, site, self.attention_parts[site])
        for name, embedding in self.embeddings.items():
            for first in self.blocks_of(name)[:1]:
                embedding.attach(first.module, first.sites[0])
        for block in self.blocks:
            let_calls_be_kept(block.module)
            if block.arrangement:
                self._attach_block(block)
        if "encoder" in self.stacks and "decoder" in self.stacks:
            _after(self.model.get_encoder(), self.memory, edits=False)
        last = self.head.final_norm or (self.blocks_of(list(self.stacks)[-1])[-1].module if self.blocks else None)
        if last is not None:
            _after(last, self.final, edits=False)

    def _attach_block(self, block: Block) -> None:
        arrangement, names = block.arrangement, block.names
        place = partial(_Place, block.sites[0], block.layers)
        block.module.register_forward_pre_hook(
            partial(_lead_stream, place("self_attn_residual", "before")), with_kwargs=True
        )
        _after(block.module, partial(_carry_on, block.module))
        _after(block.module, place("", "end", done=True))
        w_2 = arrangement.w_2
        if hasattr(w_2, "weight"):
            w_2.register_forward_pre_hook(
                partial(_read_stream, place("feed_forward", "hidden", done=True)), with_kwargs=True
            )
        if gate := arrangement.gate:
            _after(gate.gate, place("feed_forward", "gate", done=True), edits=False)
            _after(gate.up, place("feed_forward", "up", done=True, part=gate.up_part), edits=False)
        if arrangement.activating:
            z = place("feed_forward", "z", done=True)
            arrangement.activating.register_forward_pre_hook(partial(_read_first, z))
        _after(w_2, place("feed_forward", "out", done=True))
        for i, name in enumerate(names):
            # Before the first attention of a layer, it has not been counted yet.
            done = i > 0 or arrangement.placement == "post"
            if norm := arrangement.norms[i]:
                _after(norm.module, place(f"{name}_residual", "normed", done=done))
            if after := arrangement.after_norms[i]:
                _after(after.module, place(f"{name}_residual", "contribution", done=True))
            if i and self._can_move_stream(block, i):
                _attach_before(block, i, place(f"{name}_residual", "before", done=True))


class _DrawingFrom(TorchFunctionMode):
    """Inside the block, random numbers that this thread puts into tensors come from a generator of its own."""

    def __init__(self, numbers: torch.Generator) -> None:
        self.numbers = numbers
        super().__init__()

    def __torch_function__(self, function: Callable, types: Any, args: tuple = (), keywords: Any = None) -> Any:
        draws = getattr(function, "__name__", "") in ("normal_", "uniform_", "kaiming_uniform_")
        return function(*args, **{**(keywords or {}), **({"generator": self.numbers} if draws else {})})


@dataclass(frozen=True, eq=False)
class _Place:
    """Calls a hook point of the layer that is running."""

    site: HookedAttention
    layers: list[nn.Module]
    module: str
    point: str
    done: bool = False
    part: Callable[[Tensor], Tensor] | None = None

    def __call__(self, x: Tensor) -> Tensor:
        layer = self.layers[layer_of(self.site, self.done)]
        holder = getattr(layer, self.module) if self.module else layer
        return getattr(holder, self.point)(batched(x if self.part is None else self.part(x)))


def _attach_site(module: nn.Module, site: HookedAttention, found: AttentionParts) -> None:
    module.attention_site = site
    _after(found.w_o or module, partial(_call_point, site, "out"), edits=found.w_o is not None)
    for name, heads in found.projections.items():
        if name != "v":
            heads.module.register_forward_pre_hook(
                partial(_read_input, site, {"q": "query_input", "k": "key_input"}[name]), with_kwargs=True
            )
        if name in found.norms or name in found.rotated:
            _after(heads.module, partial(_call_point, site, f"{name}_pre", heads.cut), edits=False)
    for name, (heads, _) in found.norms.items():
        _after(heads.module, partial(_call_norm, site, f"{name}_normed", heads), edits=False)
        if found.norm_last:
            read = partial(_read_first, partial(_call_norm, site, f"{name}_turned", heads))
            heads.module.register_forward_pre_hook(read)
    for shared in {heads.module for heads, _ in found.norms.values() if heads.calls > 1}:
        shared.register_forward_hook(_count_call)  # after the hooks that ask how often it has been called
    if found.latents:
        _attach_latents(site, found)
    if found.rotated:
        module.register_forward_pre_hook(partial(_read_angles, site), with_kwargs=True)


def _attach_latents(site: HookedAttention, found: AttentionParts) -> None:
    """The same for the steps A, RMSNorm and B of queries and of keys and values."""
    for side, name in (("q", "q"), ("kv", "k")):
        modules = found.latents[name].modules
        first = modules.get("down") or modules["direct"]
        point = {"q": "query_input", "k": "key_input"}[name]
        first.register_forward_pre_hook(partial(_read_input, site, point), with_kwargs=True)
        for step, part in modules.items():
            if step != "direct" or "up" not in modules:
                _after(part, partial(_call_point, site, f"{side}_{'up' if step == 'direct' else step}"), edits=False)


def _attach_before(block: Block, i: int, point: _Place) -> None:
    """The stream that reaches a layer's second or third sub-layer: what a norm made, or what a norm reads."""
    norms = block.arrangement.norms
    if block.arrangement.placement == "post":
        _after(norms[i - 1].module, point)
    else:
        norms[i].module.register_forward_pre_hook(partial(_move_stream, block.module, point), with_kwargs=True)


def _latent_projections(found: AttentionParts, points: AttentionPoints) -> Projections:
    """One matrix a head for the three steps of each, as `model.trace.Latent` says."""
    arrays = {
        f"{part}_{name}": each
        for name in "qkv"
        for part, each in zip("wb", found.latents[name].matrices(), strict=True)
    }
    w, b = matrix(found.w_o)
    arrays |= {"w_o": w.unflatten(0, (points.n_heads, -1)), "b_o": torch.zeros_like(w[0]) if b is None else b}
    biases = any(bool(each.any()) for name, each in arrays.items() if name.startswith("b_"))
    return Projections(**{name: each.to(w.dtype).cpu().numpy() for name, each in arrays.items()}, biases=biases)


def _points(*names: str) -> nn.Module:
    module = nn.Module()
    for name in names:
        setattr(module, name, HookPoint())
    return module


def _is_causal(call: AttentionCall) -> bool:
    """True if no position sees a later one: told by the mask that was used, not by what a model says of itself."""
    if call.mask is None:
        return False
    hidden = ~call.mask if call.mask.dtype == torch.bool else call.mask < torch.finfo(call.mask.dtype).min / 2
    later = torch.ones(call.mask.shape[-2:], dtype=torch.bool, device=call.mask.device).triu(1)
    return bool(hidden[..., later].all())


def _missing(place: tuple[str, int], site: HookedAttention, found: AttentionParts) -> list[Sentence]:
    path, notes = path_of(*place), []
    if not site.exact:
        notes.append(
            sentence(
                "{path}: softmax(q kᵀ) v does not repeat what the model computes; only its weights are read.", path=path
            )
        )
    lacking = [f"W_{name.upper()}" for name in "qkv" if name not in found.projections.keys() | found.latents.keys()]
    if found.w_o is None:
        lacking.append("W_O")
    if lacking:
        notes.append(sentence("{path}: {matrices} could not be read.", path=path, matrices=series(lacking)))
    return notes


def _with_latents(
    found: AttentionParts, call: AttentionCall, earlier: Sequence[Event], seen: Sequence[Event]
) -> AttentionParts:
    """The parts, with queries, keys and values that pass through a latent vector, if they do."""
    latents = None if found.w_o is None else find_latents(call, earlier, angles_of(call, seen))
    if latents is None:
        return found
    return AttentionParts({}, {}, ("q", "k"), latents.layout, found.w_o, latents=latents.sources, start=latents.start)


def _activation(arrangement: BlockLayout | None) -> str:
    """As a TransformerConfig names it, where it has a name for it."""
    if arrangement is None:
        return "other"
    name = arrangement.activation
    gated = {"silu": "swiglu", "gelu": "geglu", "gelu, by tanh": "geglu, by tanh"}
    return gated.get(name, f"gated {name}") if arrangement.gate else name


def _longest(config: Any, table: FoundEmbedding) -> int:
    """Positions that the model has: rows of its table, or what its configuration says."""
    if table.positions is not None and table.learned:
        return len(table.positions)
    return getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None) or 512


def _begin_pass(*_: Any) -> None:
    run = PASS.get()
    if run is None or run.seen is None:
        PASS.set(Pass())


def _after(module: nn.Module, point: Callable[[Tensor], Tensor], edits: bool = True) -> None:
    """Lead a module's output through a hook point; without `edits` it is only read there."""
    module.register_forward_hook(partial(_lead_through, point, edits))


def _lead_through(point: Callable[[Tensor], Tensor], edits: bool, _module: nn.Module, _args: Any, out: Any) -> Any:
    first = out[0] if isinstance(out, tuple) else getattr(out, "last_hidden_state", out)
    edited = point(first)
    if not edits or edited is first:
        return None
    edited = edited.reshape(first.shape)
    return (edited, *out[1:]) if isinstance(out, tuple) else edited


def _call_point(site: HookedAttention, name: str, x: Tensor | Callable, *rest: Tensor) -> Tensor:
    """The site's point of the layer that is running; a projection is read before the attention, W_O after it."""
    x, cut = (rest[0], x) if rest else (x, None)
    points = site.points[layer_of(site, done=name == "out")]
    return getattr(points, name)(batched(x) if cut is None else cut(x))


def _call_norm(site: HookedAttention, name: str, heads: HeadColumns, x: Tensor) -> None:
    """As `_call_point`, of a norm that may be run on queries and on keys: only the call that the heads come from."""
    if _this_pass().norms.get(heads.module, 0) % heads.calls == heads.call:
        _call_point(site, name, heads.cut, x)


def _count_call(module: nn.Module, _args: Any, _out: Any) -> None:
    calls = _this_pass().norms
    calls[module] = calls.get(module, 0) + 1


def _read_input(site: HookedAttention, name: str, _module: nn.Module, args: tuple, keywords: Mapping[str, Any]) -> None:
    getattr(site.points[layer_of(site)], name)(batched(args[0] if args else next(iter(keywords.values()))))


def _read_stream(place: _Place, _module: nn.Module, args: tuple, keywords: Mapping[str, Any]) -> None:
    place(args[0] if args else keywords["hidden_states"])


def _lead_stream(
    place: _Place, block: nn.Module, args: tuple, keywords: Mapping[str, Any]
) -> tuple[tuple, Mapping[str, Any]] | None:
    """As `_read_stream`, of a layer's input, with which the layer goes on."""
    first = args[0] if args else keywords["hidden_states"]
    _this_pass().moved.pop(block, None)  # of a pass that an error has ended
    x = batched(first)
    edited = place(x)
    if edited is x:
        return None
    edited = edited.reshape(first.shape)
    return ((edited, *args[1:]), keywords) if args else (args, {**keywords, "hidden_states": edited})


def _move_stream(
    block: nn.Module, place: _Place, _module: nn.Module, args: tuple, keywords: Mapping[str, Any]
) -> tuple[tuple, Mapping[str, Any]] | None:
    """As `_lead_stream`, of what a norm in the middle of a layer reads.

    The layer's own residual connection keeps the stream as it was: what an edit adds to it is added again before the
    next norm, and at the layer's end.
    """
    first = args[0] if args else keywords["hidden_states"]
    x = _carry_on(block, batched(first), done=False)
    edited = place(x)
    if edited is x and block not in _this_pass().moved:
        return None
    _this_pass().moved[block] = edited - batched(first)
    edited = edited.reshape(first.shape)
    return ((edited, *args[1:]), keywords) if args else (args, {**keywords, "hidden_states": edited})


def _carry_on(block: nn.Module, x: Tensor, done: bool = True) -> Tensor:
    """The stream of a layer with what edits have added to it; `done`: at the layer's end."""
    moved = _this_pass().moved
    added = moved.pop(block, None) if done else moved.get(block)
    return x if added is None else x + added.reshape(x.shape)


def _this_pass() -> Pass:
    """An encoder that runs by itself has begun none."""
    run = PASS.get()
    if run is None:
        PASS.set(run := Pass())
    return run


def _read_first(point: Callable[[Tensor], Any], _module: nn.Module, args: tuple) -> None:
    point(args[0])


def _read_angles(site: HookedAttention, _module: nn.Module, _args: tuple, keywords: Mapping[str, Any]) -> None:
    points = site.points[layer_of(site)]
    for name, angle in zip(("cos", "sin"), cos_and_sin(keywords["position_embeddings"]), strict=True):
        getattr(points, name)(angle)
