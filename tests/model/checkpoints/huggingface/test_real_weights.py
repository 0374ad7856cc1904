"""A small Hugging Face model with real weights, read as it computes; its best-known head does what its authors say."""

import numpy as np
import pytest
import torch
from transformers import AutoModelForMaskedLM

from model.checkpoints.huggingface import open_model
from model.checkpoints.huggingface.opened import HookedMaskedModel
from model.interventions import HeadGate
from model.proof.checks import prove
from model.trace import Trace
from tests.model.checkpoints.huggingface.rxnmapper import FOLDER

REACTANTS, PRODUCT = "CN(C)C=O.Fc1ncccc1F.O=C([O-])[O-].CC(C)S.[K+].[K+]", "CC(C)Sc1ncccc1F"
REACTION = f"{REACTANTS}>>{PRODUCT}"
MAPS_ATOMS = ("encoder_self", 10, 5)
"""kind, layer and head, as in the package's core.py"""


@pytest.fixture(scope="module")
def opened() -> HookedMaskedModel:
    return open_model(FOLDER)


@pytest.fixture(scope="module")
def trace(opened: HookedMaskedModel) -> Trace:
    return opened.trace(REACTION)


def test_every_number_is_the_models_own(opened: HookedMaskedModel, trace: Trace) -> None:
    eager = AutoModelForMaskedLM.from_pretrained(FOLDER, attn_implementation="eager").eval()
    with torch.inference_mode():
        assert np.array_equal(trace.logits, eager(torch.tensor([trace.src_ids])).logits[0].numpy())
    assert len(trace.attentions) == 12, "one module, called twelve times"
    assert all(check.passed for check in prove(opened, trace))
    assert not opened.notes


def test_its_head_maps_the_atoms_of_the_product_to_those_of_the_reactants(trace: Trace) -> None:
    kind, layer, head = MAPS_ATOMS
    tokens, pattern = trace.streams["encoder"].tokens, trace.attention(kind, layer).pattern[head]
    at = {span[0]: position for position, span in enumerate(tokens.spans) if span}
    ring = [at[REACTION.index(">>") + 2 + i] for i in (6, 8, 9, 10, 11, 12, 14)]  # c1ncccc1F of the product
    fluoropyridine = [at[REACTION.index("Fc1ncccc1F") + i] for i in (1, 3, 4, 5, 6, 7, 9)]
    atoms = [position for start, position in at.items() if start < len(REACTANTS) and REACTION[start].isalpha()]
    assert [atoms[int(row.argmax())] for row in pattern[np.ix_(ring, atoms)]] == fluoropyridine
    sulfur = at[REACTION.index(">>") + 2 + 5]
    assert atoms[int(pattern[sulfur, atoms].argmax())] == at[len(REACTANTS.split(".[K+]")[0]) - 1]


def test_it_fills_in_a_hidden_atom(opened: HookedMaskedModel) -> None:
    (((best, probability), *_),) = opened.fill(REACTION.replace("Fc1ncccc1F", "F[MASK]1ncccc1F", 1))
    assert best == "c"
    assert probability > 0.9


def test_a_head_is_switched_off_in_one_layer_though_all_share_their_weights(
    opened: HookedMaskedModel, trace: Trace
) -> None:
    kind, layer, head = MAPS_ATOMS
    changed = opened.rerun(trace, (HeadGate(0.0, kind, layer, head),))
    for each in range(12):
        same = np.array_equal(changed.attention(kind, each).pattern, trace.attention(kind, each).pattern)
        assert same == (each <= layer)
