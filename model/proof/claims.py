"""What is on screen is what the model computed: twenty-one claims, and the error of a run for each of them.

Each error is measured twice, because a mistake keeps its size when the same run is computed in double precision, while
rounding shrinks by nine digits. Tests named `test_<number>_...` hold each claim for random models, sentences and
interventions.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from model.analysis.double_precision import in_double_precision
from model.proof import measures, rerun_measures
from model.proof.checks import CHAIN, ROWS, WATCHING, chain_closes, hooks_change_nothing, rows_sum_to_one
from model.proof.measures import Case
from model.trace import Array


@dataclass(frozen=True)
class Claim:
    """One claim, how to measure it on a run, and the largest error allowed."""

    number: int
    title: str
    compared: str
    """what is compared with what"""
    measure: Callable[[Case], float | str] | None = None
    """the error, or a sentence on why the claim does not apply to the run; None: the claim is about figures, which
    only tests can check"""
    tolerance: float = 0.0
    """largest error in the run's own precision; 0: bit-equal"""
    double_tolerance: float = 0.0
    """largest error of the same run in double precision"""
    slow: bool = False
    """whether it runs the model many times"""
    why_not: Callable[[Case], str] = lambda _case: ""
    """of a slow claim: why it does not apply, where that is known without a run; empty if it may"""
    of_head: bool = False
    """whether it depends on the head of the `Case`, or on its attention"""
    double: bool = True
    """whether to measure it in double precision too"""
    part: str = ""
    """a or b, where one claim has two measurements"""

    @property
    def label(self) -> str:
        """Number and part, as on screen: "8a"."""
        return f"{self.number}{self.part}"


@dataclass(frozen=True)
class Measurement:
    """The error of one claim on one run."""

    claim: Claim
    error: float | None
    """in the run's own precision; None where the claim does not apply"""
    double: float | None
    """of the same run in double precision"""
    seconds: float
    """of computation, for both"""
    reason: str = ""
    """why the claim does not apply to this run; empty where it does"""

    @property
    def holds(self) -> bool:
        single = self.error is None or self.error <= self.claim.tolerance
        return single and (self.double is None or self.double <= self.claim.double_tolerance)


ROUNDED = {"tolerance": 5e-5, "double_tolerance": 1e-10}
"""tolerances for a chain of operations on numbers around 1; `relative_error` scales larger ones"""
SUMMED = {"tolerance": 1e-6, "double_tolerance": 1e-12}
"""tolerances for weights that should sum to 1"""

CLAIMS = (
    Claim(
        1,
        "Runs repeat",
        "Every array on screen against a second run, bit for bit; no module is in training mode, so no dropout.",
        rerun_measures.two_runs,
    ),
    Claim(
        2,
        WATCHING,
        "The logits on screen against those of an unrecorded run, bit for bit.",
        lambda case: hooks_change_nothing(case.opened, case.trace).error,
    ),
    Claim(
        3,
        CHAIN,
        "Each step from the embeddings to the logits, against the same step computed in double precision from "
        "the step before it on screen.",
        lambda case: chain_closes(case.opened, case.trace).error,
        **ROUNDED,
    ),
    Claim(
        4,
        "Heads add up",
        r"The sum of all heads' contributions $z\,W_O$, and $b_O$ once, against each attention's output.",
        measures.contributions,
        **ROUNDED,
    ),
    Claim(
        5,
        ROWS,
        "The sum of each row of attention weights against 1; on masked keys they must be exactly 0.",
        lambda case: rows_sum_to_one(case.trace).error,
        **SUMMED,
    ),
    Claim(
        6,
        "No row sees the future",
        "Each token that the decoder reads is replaced by another one in turn. In the rows before it, bit for bit "
        "against the run on screen: q, k, v, scores, attention weights, z and outputs of every attention, every "
        "sub-layer, the logits.",
        rerun_measures.causality,
        slow=True,
        why_not=rerun_measures.sees_all,
    ),
    Claim(
        7,
        "Padding changes nothing",
        "Weights and logits of the text alone against those beside a longer one in a padded batch; a pad's own "
        "weight must be exactly 0.",
        rerun_measures.padding,
        of_head=True,
        **ROUNDED,
    ),
    Claim(
        8,
        "Rows are decoding steps",
        "Each row of logits on screen against the step of cached decoding that reads the same token.",
        rerun_measures.cached_steps,
        slow=True,
        why_not=rerun_measures.cannot_decode,
        part="a",
        **ROUNDED,
    ),
    Claim(
        8,
        "Searches agree",
        "The logits of the tokens that greedy search writes against the highest logit of each row; log p of beam "
        "search with one beam against greedy search, per token; the score of the best leaf of the beam tree against "
        "that of beam search without a tree. Absolute errors.",
        rerun_measures.searches,
        slow=True,
        why_not=rerun_measures.cannot_decode,
        part="b",
        **ROUNDED,
    ),
    Claim(
        9,
        "τ = 1 changes nothing",
        "Every array on screen against runs with temperature 1, gate 1 and an empty mask edit, bit for bit; runs "
        "with temperatures 0.001 and 1,000 must be finite.",
        rerun_measures.identities,
        slow=True,
    ),
    Claim(
        10,
        "A head removes its own part",
        "The sidebar's head gated to 0, and to its mean: the attention's output against the old one minus that head's "
        "contribution, and against the old one with the mean's contribution instead.",
        rerun_measures.ablations,
        of_head=True,
        **ROUNDED,
    ),
    Claim(
        11,
        "The screen shows the run",
        "What each page's figures hold (axes, head, order, format) against the arrays of the run.",
    ),
    Claim(
        12,
        "Rows are queries",
        "Each score on screen against the product of its row's query and its column's key. Labels: a decoder's row t "
        "reads token t and predicts token t + 1, and the text begins with the start token where the model has one.",
        measures.labels_and_scores,
        **ROUNDED,
    ),
    Claim(
        13,
        "Masked has no colour",
        "Every masked cell of every heat map is hatched or blank, never coloured like a low number; scaled and "
        "unscaled scores are named.",
    ),
    Claim(
        14,
        "Probabilities are whole",
        "The sum of each row's probabilities against 1; the listed candidates and “the rest” against the full row.",
        measures.vocabulary,
        tolerance=1e-12,
        double_tolerance=1e-12,
    ),
    Claim(
        15,
        "Hidden weight is reported",
        "What remains of each row without special tokens, plus the share said to be removed, against the whole row; "
        "renormalised rows against their old sum.",
        measures.hidden_tokens,
        **SUMMED,
    ),
    Claim(
        16,
        "Words sum their pieces",
        "Rows merged into words (sum over keys, mean over queries), summed, against 1.",
        measures.words,
        **SUMMED,
    ),
    Claim(
        17,
        "Positions are the model's",
        "What the run did for each position. Added vectors: against the model's table, sinusoids also against the "
        "paper's sines and cosines. RoPE: the angles against m θᵢ at position m. A bias by distance: against ALiBi's "
        "slopes, or between pairs at the same offset.",
        measures.positions,
        tolerance=1e-6,
        double_tolerance=1e-12,
    ),
    Claim(
        18,
        "Compared maps share one range",
        "The colour ranges of maps side by side are equal and written on the figure; the colour scales are readable "
        "for colour-blind people.",
    ),
    Claim(
        19,
        "Heads as in the code",
        r"Head h of layer l on screen against its columns of that layer's $W_Q$, $W_K$ and $W_V$ in the model "
        r"($Q = X\,W_Q$): h·dₖ to (h + 1)·dₖ, where each is a matrix of its own and no heads share keys and values.",
        measures.addresses,
    ),
    Claim(
        20,
        "Exports name the weights",
        "The SHA-256 in the exports against that of the weights file, read again now: digits that differ.",
        measures.weights_file,
        double=False,
    ),
    Claim(
        21,
        "Parts add up",
        "The sums over what embedding, positions, heads, feed-forwards and biases wrote, each norm with the scale that "
        "it had in the run: against the residual stream before each sub-layer and each stack's output, against the "
        "scores of the sidebar's head, and against logits of written tokens.",
        measures.written,
        of_head=True,
        **ROUNDED,
    ),
)


def double_case(case: Case) -> Case:
    """The case with its run repeated in double precision, on the same tokens and with the same interventions.

    A Hugging Face model is not run again.
    """
    if not case.own_layers:
        return case
    twin = replace(case, opened=in_double_precision(case.opened))
    return replace(twin, trace=twin.again())


def measure_claim(claim: Claim, case: Case, double: Case) -> Measurement:
    """The claim's error on a run, and on the same run in double precision (`double_case`).

    Raises:
        ValueError: the claim is about figures, which only tests can check.
    """
    if claim.measure is None:
        raise ValueError(f"claim {claim.number} is about figures; the tests named test_{claim.number}_ check it")
    start = perf_counter()
    found = claim.measure(case)
    if isinstance(found, str):
        return Measurement(claim, None, None, perf_counter() - start, found)
    # Hugging Face models compute some steps in single precision, whatever the precision of their weights.
    double_error = claim.measure(double) if claim.double and case.own_layers else None
    return Measurement(claim, found, double_error, perf_counter() - start)


def measure_claims(case: Case, claims: Sequence[Claim]) -> Iterator[tuple[float, dict[Claim, Measurement]]]:
    """Measure claims one after another.

    Yields:
        the share that is done, and the measurements so far.
    """
    double, measured = double_case(case), {}
    for number, claim in enumerate(claims, start=1):
        measured[claim] = measure_claim(claim, case, double)
        yield number / len(claims), dict(measured)


def error_arrays(results: Mapping[Claim, Measurement]) -> dict[str, Array]:
    """Label, error and error in double precision of every measurable claim; NaN where there is none."""
    claims = [claim for claim in CLAIMS if claim.measure]
    rows = [(results[c].error, results[c].double) if c in results else (None, None) for c in claims]
    errors = np.array(rows, dtype=float).T
    return {"claim": np.array([claim.label for claim in claims]), "error": errors[0], "error_double": errors[1]}
