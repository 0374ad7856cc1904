"""What a folder says and the network made of it does not use: whether the file is the network.

Every other check compares the run with what transformers computes today. This one compares that with the folder: a
setting that no code reads, or a weight that has no place inside a part that runs, belonged to the network that was
trained.
"""

import ast
import inspect
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig

from model.checkpoints.huggingface.files import few_of
from model.checkpoints.huggingface.network import HookedModel
from model.checkpoints.huggingface.probe import call_model, probe_ids
from model.language import Sentence, sentence

ABOUT = re.compile(
    r"position|rope|rotary|alibi|relative|mask|causal|bidirectional|window|sliding|dual_chunk|attention_chunk|norm|"
    r"(^|_)eps(ilon)?$|scale|scaling|scalar|multiplier|softcap|clip_qkv|layer_types"
)
"""names of settings of a position, mask, norm or scale"""
NOT_ABOUT = re.compile(
    r"^(max|n|num|init|initializer|vision|image|video|audio|mm|mtp|extra)_|^original_max_position|_token|_prob$|_index$|"
    r"^mask_(time|feature)|renormalize|dim_multiplier"
)
"""sizes, which the shapes of the weights tell, first values, tokens, training, and other towers"""
NOTHING = (None, False, 0, 1, 0.0, 1.0, "", "none", "absolute", "default", "standard", "full_attention")
"""values with which a setting that its class does not know changes nothing; older versions of transformers wrote
position_embedding_type = "absolute" for many families, also for those that rotate"""
PLUMBING = ("transformers.configuration_utils", "transformers.cache_utils", "transformers.generation")
"""code that reads settings for other purposes than a forward pass"""
COMPUTED = ("inv_freq", "position_ids", "masked_bias")
"""tensors that older versions stored, and today's compute"""
BESIDE = re.compile(r"pos|wpe|norm|rotary|rope|alibi|relative|(^|_)ln(_|$)")
"""names of tables and norms that stand beside the layers"""
OTHER_PARTS = re.compile(r"pooler|vision|image|audio|video|mtp|head")
MOST_CHARACTERS = 60
"""of a value in a sentence"""


# --- which settings are read ---


@dataclass(frozen=True)
class Watched:
    """What a model did at construction and in one forward pass."""

    read: Mapping[type, set[str]]
    """class of a configuration -> the settings that were read of it"""
    ran: frozenset[nn.Module]
    """the modules that were called"""


def watch(config: PreTrainedConfig) -> dict[type, set[str]]:
    """Let a configuration, and those in it, note from now on which of their settings the code of a model reads.

    Copies note their reads in the same place. `run_watched` ends it.
    """
    read: dict[type, set[str]] = {}
    for each in _configs(config):
        kind = type(each)
        each.__class__ = _watching(kind, read.setdefault(kind, set()))
    return read


def _watching(kind: type, read: set[str]) -> type:
    """A class of configurations that notes its reads; else, the same class by name and behaviour."""

    def look_up(self: PreTrainedConfig, name: str) -> Any:
        if name == "__class__":  # what a configuration makes of its own class is not watched
            return kind
        caller = sys._getframe(1).f_globals.get("__name__", "")
        if caller.startswith("transformers.") and not caller.startswith(PLUMBING):
            read.add(_own_name(kind, name))
        return kind.__getattribute__(self, name)

    return type(kind.__name__, (kind,), {"__getattribute__": look_up, "watches": kind})


def _own_name(kind: type, name: str) -> str:
    """The class's own name of a setting, such as n_embd for hidden_size."""
    return kind.attribute_map.get(name, name)


def _configs(value: Any) -> Iterator[PreTrainedConfig]:
    """A configuration and those in it; none where `value` is anything else."""
    if isinstance(value, PreTrainedConfig):
        for inner in list(vars(value).values()):
            yield from _configs(inner)
        yield value


@torch.inference_mode()
def run_watched(model: nn.Module, read: Mapping[type, set[str]]) -> Watched:
    """Run a model that was made from a watched configuration once, on the probe's tokens, and stop watching."""
    ran: set[nn.Module] = set()
    hooks = [module.register_forward_hook(lambda module, *_: ran.add(module)) for module in model.modules()]
    try:
        with suppress(Exception):  # what does not run is refused in a sentence when its attention is read
            call_model(model.eval(), [torch.tensor([ids]) for ids in probe_ids(model)])
    finally:
        for hook in hooks:
            hook.remove()
        for held in [value for module in model.modules() for value in vars(module).values()]:
            for config in _configs(held):
                config.__class__ = getattr(type(config), "watches", type(config))
    return Watched(read, frozenset(ran))


def unread_settings(settings: Mapping[str, Any], model: nn.Module, watched: Watched) -> dict[str, Any]:
    """Settings in config.json of positions, masks, norms and scales that differ from the class's default and that the
    model that was made of it, and watched, never read.

    One from which another follows, as RoPE's angles do from its base, is read where that other one is. One that the
    family's code names is only switched off, by another setting.
    """
    config = model.config.get_text_config()
    written, kind = _described(settings, config), type(config)
    read = watched.read.get(kind, set())
    try:
        usual = kind()
    except Exception:  # a class without defaults has none to differ from
        return {}
    found = {}
    for name, value in written.items():
        own = _own_name(kind, name)
        if not ABOUT.search(name) or NOT_ABOUT.search(name) or own in read:
            continue
        if known := own in vars(usual):
            value = vars(config).get(own, value)
            differs = value != vars(usual)[own]
        else:
            differs = not _changes_nothing(value)
        if differs and not _consequences(kind, written, name) & read and own not in _named_in_code(model, kind, known):
            found[name] = value
    return found


def _described(settings: Mapping[str, Any], config: PreTrainedConfig) -> Mapping[str, Any]:
    """The part of config.json that describes this configuration: all of it, or one in it, such as text_config."""
    inner = (value for value in settings.values() if isinstance(value, dict))
    parts = (settings, *inner)
    return next((part for part in parts if part.get("model_type") == config.model_type), settings)


def _changes_nothing(value: Any) -> bool:
    if isinstance(value, list | dict):
        return all(map(_changes_nothing, value))
    return any(type(value) is type(each) and value == each for each in NOTHING)


def _consequences(kind: type, written: Mapping[str, Any], name: str) -> set[str]:
    """Other settings that have another value because of this one."""
    rest = {each: value for each, value in written.items() if each != name}
    try:
        with_it, without = vars(kind(**written)), vars(kind(**rest))
    except Exception:  # it cannot be left out
        return set()
    nothing = object()
    return {each for each in with_it if each != name and with_it[each] != without.get(each, nothing)}


def _named_in_code(model: nn.Module, kind: type, as_attribute: bool) -> set[str]:
    """Strings in the code of the model's family, and attributes if asked for; declarations of settings are neither."""
    kinds = {*map(type, model.modules()), *kind.__mro__}
    found: set[str] = set()
    for module in {each.__module__ for each in kinds if each.__module__.startswith("transformers.models.")}:
        for node in ast.walk(ast.parse(inspect.getsource(sys.modules[module]))):
            if as_attribute and isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return found


# --- which settings say what the network does anyway ---


def name_settings(unread: Mapping[str, Any], model: HookedModel) -> list[str]:
    """Each setting that was never read with its value, but for those that say what the network was found to do."""
    found = {
        name: str(value)
        for name, value in unread.items()
        if not any(re.search(pattern, name) and does(value, model) for pattern, does in FOUND.items())
    }
    return [
        f"{name}: {value if len(value) <= MOST_CHARACTERS else f'{value[:MOST_CHARACTERS]}…'}"
        for name, value in found.items()
    ]


def _has_positions(value: Any, model: HookedModel) -> bool:
    names = {"rope": "rop|rotary", "sinusoidal": "sin", "learned": "learned", "none": "nope", "relative bias": "alibi"}
    return re.search(names.get(model.config.positions, "$^"), str(value)) is not None


def _has_order(value: Any, model: HookedModel) -> bool:
    before = value if isinstance(value, bool) else str(value).startswith("pre")
    return before == (model.config.norm == "pre")


def _has_norm(value: Any, model: HookedModel) -> bool:
    rms = value if isinstance(value, bool) else "rms" in str(value).lower()
    return rms == (model.config.norm_function == "rms_norm")


def _has_epsilon(value: Any, model: HookedModel) -> bool:
    norms = [norm for block in model.blocks for pair in block.norms for norm in pair]
    return any(norm.eps == value for norm in (*norms, *model.final_norms.values()) if norm)


def _divides_by_root(value: Any, model: HookedModel) -> bool:
    roots = [abs(points.divisor / points.d_k**0.5 - 1) < 1e-5 for _, points in model.attentions().values()]
    return bool(value) == all(roots)


FOUND: Mapping[str, Callable[[Any, HookedModel], bool]] = {
    r"^pos(ition(al)?)?_emb": _has_positions,
    r"^(use_)?(rope|rotary)(_emb)?$": lambda value, model: bool(value) == (model.config.positions == "rope"),
    r"^static_position": lambda value, model: bool(value) == (model.config.positions == "sinusoidal"),
    r"^normalize_before$|^pre_?norm$|layer_norm_before|^layernorm_variant$": _has_order,
    r"^normalize_embedding$": lambda value, model: bool(value) == any(each.norm for each in model.embeddings.values()),
    r"^add_final_layer_norm$": lambda value, model: bool(value) == any(model.final_norms.values()),
    r"^(layer_?)?norm_type$|^normalization(_function|_type)?$|rms_?norm$": _has_norm,
    r"(^|_)eps(ilon)?$": _has_epsilon,
    r"^scale_emb": lambda value, model: bool(value) == model.config.scale_embeddings,
    r"^scale_att": _divides_by_root,
    r"^(is_)?causal$": lambda value, model: all(bool(value) == kind.causal for kind in model.kinds if not kind.crosses),
}
"""settings of other versions and other families, by name -> whether the network does what they say"""


# --- which weights are left over ---


def weights_inside(left: Mapping[str, Tensor], model: nn.Module, ran: frozenset[nn.Module]) -> dict[str, str]:
    """Of the weights without a place, those that belong inside a part that ran, with what they are called there.

    Whole layers, heads, poolers and other towers are none; nor is what holds no learned number, or adds 0.
    """
    return {name: place for name, tensor in left.items() if (place := _place_inside(name, tensor, model, ran))}


def name_weights(inside: Mapping[str, str]) -> list[Sentence | str]:
    """Each by its name, those of several layers together."""
    return [
        name if count == 1 else sentence("{name} in {count} layers", name=name, count=count)
        for name, count in Counter(inside.values()).items()
    ]


def say_departures(settings: Sequence[str], weights: Sequence[Sentence | str]) -> tuple[Sentence, ...]:
    """What a folder says and holds and the network made of it does not use, in one sentence; none: it uses all."""
    names = {"settings": settings, "weights": weights}
    facts = {name: few_of(each) for name, each in names.items() if each}
    if len(facts) == 2:
        return (sentence("This folder says {settings} and holds {weights}, which this network does not use.", **facts),)
    if settings:
        return (sentence("This folder says {settings}, which this network does not use.", **facts),)
    return (sentence("This folder holds {weights}, which this network does not use.", **facts),) if weights else ()


def _place_inside(name: str, tensor: Tensor, model: nn.Module, ran: frozenset[nn.Module]) -> str:
    last = name.rpartition(".")[2]
    if not tensor.is_floating_point() or last in COMPUTED or (last == "bias" and not tensor.any()):
        return ""
    prefix = f"{model.base_model_prefix}."
    names = dict.fromkeys((name, name.removeprefix(prefix), prefix + name))
    path, whole = max(((_owner(each, model), each) for each in names), key=lambda found: len(found[0]))
    owner, missing = model.get_submodule(path), whole.removeprefix(path).strip(".").partition(".")[0]
    parts = path.split(".")
    if layer := next((".".join(parts[: i + 1]) for i, part in enumerate(parts) if part.isdigit()), ""):
        return whole.removeprefix(f"{layer}.") if model.get_submodule(layer) in ran else ""
    if "pooler" in path or OTHER_PARTS.search(missing):
        return ""
    if any(isinstance(each, nn.ModuleList) for each in owner.modules()):  # it stands beside the layers
        return whole if BESIDE.search(missing) else ""
    within = owner in set(model.base_model.modules()) or not any(owner.children())
    return whole if owner in ran and within else ""


def _owner(name: str, model: nn.Module) -> str:
    """Path of the innermost module of the model around a weight of that name; empty: the model itself."""
    owner = model
    parts = name.split(".")[:-1]
    for i, part in enumerate(parts):
        owner = getattr(owner, part, None)
        if not isinstance(owner, nn.Module):
            return ".".join(parts[:i])
    return ".".join(parts)
