"""Changes to a run: frozen, hashable, applied through the hook points, for one context only.

Value first, address by keyword; None = all. Each acts at its own place in the model (mask before softmax, pattern
after it); at the same place they compose in the order given.

    from model.checkpoints.store import load_checkpoint
    from model.interventions import HeadGate, PermutedAttention

    translator = load_checkpoint()
    silent = HeadGate(0.0, kind="cross", layer=3, head=0)
    before = translator.trace("A dog runs through the snow.")
    after = translator.trace(before.source, before.translation, interventions=(silent, PermutedAttention(7, layer=0)))
    print(before.translation, "|", *translator.translate([before.source], interventions=(silent,)))
    print(after.probabilities - before.probabilities)
"""

from model.interventions.attention import AttentionTemperature, HeadGate, SharedKeysValues, Unscaled, ValueZeroing
from model.interventions.base import KINDS, SIDES, STACKS, SUBLAYERS, Intervention, Reading, applied
from model.interventions.blocks import NormOff, PositionsOff, PositionsShuffled, ResidualOff, SublayerOff
from model.interventions.describe import describe, place_in_words, scaling_in_words
from model.interventions.masks import ForbidSource, LiftCausalMask, MaskEdit, PatternMask
from model.interventions.patch import Patch
from model.interventions.patch import PatchFrom as PatchFrom
from model.interventions.patterns import FrozenPattern, PatternEdit, PermutedAttention, UniformAttention

__all__ = [
    "KINDS",
    "SIDES",
    "STACKS",
    "SUBLAYERS",
    "AttentionTemperature",
    "ForbidSource",
    "FrozenPattern",
    "HeadGate",
    "Intervention",
    "LiftCausalMask",
    "MaskEdit",
    "NormOff",
    "Patch",
    "PatternEdit",
    "PatternMask",
    "PermutedAttention",
    "PositionsOff",
    "PositionsShuffled",
    "Reading",
    "ResidualOff",
    "SharedKeysValues",
    "SublayerOff",
    "UniformAttention",
    "Unscaled",
    "ValueZeroing",
    "applied",
    "describe",
    "place_in_words",
    "scaling_in_words",
]
