"""The picture is the model: twenty claims about every picture of this project, and how far a run is from each.

A mistake keeps its size when the same run is computed in double precision; rounding shrinks by nine digits.
So each error is measured twice.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter

import torch

from model.checkpoints.translator import Translator
from model.network.embedding import sinusoids
from model.proof import measures, rerun_measures
from model.proof.measures import Case

MODEL, LIVE, DRAWN = (
    "tests/model/proof/test_claims.py",
    "tests/model/proof/test_claims_live.py",
    "tests/pages/test_claims.py",
)
HEADS = "tests/pages/test_heads_and_layers.py"


@dataclass(frozen=True)
class Claim:
    """One claim, and the error that a run may have at most."""

    number: int
    title: str
    compared: str
    """what is set beside what"""
    tests: tuple[str, ...]
    """files whose tests named `test_<number>_...` hold it for random models, sentences and changes"""
    measure: Callable[[Case], float | None] | None = None
    """None: nothing but tests can see it"""
    tolerance: float = 0.0
    """0: not one bit may differ"""
    double_tolerance: float = 0.0
    slow: bool = False
    """runs the model many times: waits for a button"""
    placed: bool = False
    """whether it is about one head: the one that is looked at"""
    double: bool = True
    """whether double precision says more"""


@dataclass(frozen=True)
class Measurement:
    """What one claim's measure found on one run."""

    claim: Claim
    error: float | None
    """in the run's own precision; None: this run has nothing to measure"""
    double: float | None
    """of the same run in double precision"""
    seconds: float
    """that both took"""

    @property
    def holds(self) -> bool:
        single = self.error is None or self.error <= self.claim.tolerance
        return single and (self.double is None or self.double <= self.claim.double_tolerance)


ROUNDED = {"tolerance": 5e-5, "double_tolerance": 1e-10}
"""of a chain of operations on numbers around 1; relative where they are larger"""
SUMMED = {"tolerance": 1e-6, "double_tolerance": 1e-12}
"""of weights that should sum to 1"""

CLAIMS = (
    Claim(
        1,
        "Runs repeat",
        "Every array on screen against a second run, bit for bit; no module is in training mode, so no dropout.",
        (MODEL,),
        rerun_measures.two_runs,
    ),
    Claim(
        2,
        "Watching changes nothing",
        "The logits on screen against those of a run that nobody records, bit for bit.",
        (MODEL, "tests/model/test_hooks.py"),
        measures.hooks,
    ),
    Claim(
        3,
        "The chain closes",
        "Each step from the embeddings to the logits, against the same step worked out in double precision from the "
        "step before it on screen.",
        (MODEL,),
        measures.chain,
        **ROUNDED,
    ),
    Claim(
        4,
        "Heads add up",
        "The sum of all heads' contributions z W_O, and b_O once, against each attention's output.",
        (MODEL,),
        measures.contributions,
        **ROUNDED,
    ),
    Claim(
        5,
        "Rows sum to 1",
        "The sum of each row of attention weights against 1; on masked keys they must be exactly 0.",
        (MODEL,),
        measures.rows,
        **SUMMED,
    ),
    Claim(
        6,
        "No row sees the future",
        "Each target token in turn is replaced by another one: every result in the rows before it against what it "
        "was, bit for bit.",
        (MODEL,),
        rerun_measures.causality,
        slow=True,
    ),
    Claim(
        7,
        "Padding changes nothing",
        "Weights and logits of the sentence alone against those beside a longer one in a padded batch; a pad's own "
        "weight must be exactly 0.",
        (MODEL, "tests/model/analysis/test_padded_batch.py"),
        rerun_measures.padding,
        **ROUNDED,
    ),
    Claim(
        8,
        "Rows are decoding steps",
        "Each row of logits on screen against the step of cached decoding that reads the same token.",
        (MODEL,),
        rerun_measures.cached_steps,
        slow=True,
        **ROUNDED,
    ),
    Claim(
        8,
        "Searches agree",
        "The greedy translation's tokens against the highest logit of each row; beam search with one beam against "
        "greedy search; the tree's best leaf against the translation found without drawing a tree.",
        (MODEL, "tests/model/generation/test_beam_tree.py"),
        rerun_measures.searches,
        slow=True,
        **ROUNDED,
    ),
    Claim(
        9,
        "τ = 1 changes nothing",
        "Every array on screen against runs with temperature 1, gate 1 and an empty mask edit, bit for bit; runs "
        "with temperatures 0.001 and 1,000 must be finite.",
        (MODEL,),
        rerun_measures.identities,
        slow=True,
    ),
    Claim(
        10,
        "A head takes its own part",
        "The sidebar's head gated to 0, and to its mean: the attention's output against the old one less that head's "
        "contribution, and with the mean's instead.",
        (LIVE,),
        rerun_measures.ablations,
        placed=True,
        **ROUNDED,
    ),
    Claim(
        11,
        "On screen is what ran",
        "What each page's figures hold (axes, head, order, format) against the arrays of the run.",
        (HEADS, "tests/pages/test_attention_step_by_step.py"),
    ),
    Claim(
        12,
        "Rows are queries",
        "Each score on screen against the product of its row's query and its column's key; row t reads token t and "
        "predicts token t + 1, and the start token is there.",
        (LIVE, DRAWN),
        measures.names,
        **ROUNDED,
    ),
    Claim(
        13,
        "Masked has no colour",
        "Every masked cell of every heat map: hatched or blank, never the colour of a low number; scaled and unscaled "
        "scores are named.",
        (DRAWN,),
    ),
    Claim(
        14,
        "Probabilities are whole",
        "The sum of each row's probabilities against 1; the listed candidates and “the rest” against the full row.",
        (LIVE,),
        measures.vocabulary,
        tolerance=1e-12,
        double_tolerance=1e-12,
    ),
    Claim(
        15,
        "Hidden weight is told",
        "What stays of each row without special tokens, plus the share said to be removed, against the whole row; "
        "renormalised rows against their old sum.",
        (LIVE, HEADS),
        measures.hidden_tokens,
        **SUMMED,
    ),
    Claim(
        16,
        "Words sum their pieces",
        "Rows merged into words (sum over keys, mean over queries), summed, against 1.",
        (LIVE,),
        measures.words,
        **SUMMED,
    ),
    Claim(
        17,
        "Positions are the paper's",
        "What the run added for each position against the model's table, and against the paper's sines and cosines.",
        (LIVE,),
        measures.positions,
        tolerance=1e-6,
        double_tolerance=1e-12,
    ),
    Claim(
        18,
        "Compared, one range",
        "The colour ranges of pictures side by side: equal, and written on the figure; scales that colour-blind "
        "people can read.",
        (DRAWN,),
    ),
    Claim(
        19,
        "Heads as in the code",
        "Head h of layer l on screen against rows h·d_k to (h + 1)·d_k of that layer's own W_Q, W_K and W_V.",
        (LIVE, DRAWN),
        measures.addresses,
    ),
    Claim(
        20,
        "Exports name the weights",
        "The SHA-256 that exports carry against that of the weights' file, read again now: digits that differ.",
        (LIVE, DRAWN),
        measures.weights_file,
        double=False,
    ),
)


def in_double_precision(translator: Translator) -> Translator:
    """The same weights in double precision, on the same device."""
    model = copy.deepcopy(translator.model).double()
    config = model.config
    if config.positions == "sinusoidal":
        for embedding in (model.src_embedding, model.tgt_embedding):
            table = sinusoids(config.max_len, config.d_model, torch.float64)
            embedding.positions = table.to(embedding.positions.device)
    return replace(translator, model=model)


def double_case(case: Case) -> Case:
    """The case's run once more, with the same tokens and interventions, in double precision."""
    twin = replace(case, translator=in_double_precision(case.translator))
    return replace(twin, trace=twin.again())


def measure_claim(claim: Claim, case: Case, double: Case) -> Measurement:
    """The claim's error on a run, and on the same run in double precision (`double_case`).

    Raises:
        ValueError: nothing but tests can see this claim.
    """
    if claim.measure is None:
        raise ValueError(f"claim {claim.number} is about what is drawn; {', '.join(claim.tests)} holds it")
    start = perf_counter()
    error = claim.measure(case)
    again = claim.measure(double) if claim.double and error is not None else None
    return Measurement(claim, error, again, perf_counter() - start)
