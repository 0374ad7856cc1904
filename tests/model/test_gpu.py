"""On a GPU a run is the CPU's but for rounding: as trained, under every change, in every family; searches and training.

Skipped where PyTorch finds no GPU, as on the machine that checks changes.
"""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from model import train
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.huggingface import open_model
from model.checkpoints.store import load_checkpoint
from model.checkpoints.translator import Translator
from model.interventions import Intervention
from model.proof.steps import states_in_words, verify_steps
from model.trace import Trace, relative_error
from tests.conftest import FIXTURE
from tests.model.checkpoints.huggingface.families import FAMILIES, SOURCE, TARGET, tiny_model
from tests.model.interventions.test_every_intervention import EVERY
from tests.model.strategies import assert_bit_equal
from tests.model.tiny import SENTENCES

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no GPU")


GPU = "cuda"
TEXT, WRITTEN = "Two dogs play.", "Zwei Hunde rennen."
ROUNDING = 1e-4
"""of single precision after all layers, relative to the largest number of an array"""
NO_DOUBLE = "gpt-oss"
"""family whose experts PyTorch does not multiply in double precision"""


@pytest.fixture(scope="module")
def on_gpu() -> Translator:
    return load_checkpoint(str(FIXTURE), GPU)


def check_same(found: Trace, expected: Trace, rounding: float = ROUNDING) -> None:
    """Same tokens, same arrays but for rounding."""
    assert (found.src_ids, found.tgt_ids, found.next_ids) == (expected.src_ids, expected.tgt_ids, expected.next_ids)
    for path, error in errors_of(found, expected).items():
        assert error < rounding, path


def errors_of(found: Trace, expected: Trace) -> dict[str, float]:
    """Path of each array with elements -> its largest difference, relative to its largest number."""
    one, other = found.named_arrays(), expected.named_arrays()
    assert {path: array.shape for path, array in one.items()} == {path: array.shape for path, array in other.items()}
    return {
        path: relative_error(one[path].astype(float), array.astype(float))
        for path, array in other.items()
        if array.size
    }


def check_read(opened: Checkpoint, trace: Trace) -> None:
    steps = verify_steps(opened, trace)
    assert all(step.read for step in steps), states_in_words(steps)


def test_auto_is_the_gpu() -> None:
    assert load_checkpoint(str(FIXTURE)).device == "cuda:0"


@pytest.mark.parametrize("change", [(), *((change,) for change in EVERY)], ids=lambda c: repr(c)[:60])
def test_a_run_is_the_cpus_as_trained_and_under_every_change(
    translator: Translator, on_gpu: Translator, change: tuple[Intervention, ...]
) -> None:
    found = on_gpu.trace(TEXT, WRITTEN, interventions=change)
    check_same(found, translator.trace(TEXT, WRITTEN, interventions=change))
    check_read(on_gpu, found)
    assert np.array_equal(on_gpu.unrecorded_logits(found), found.logits)


@pytest.mark.parametrize("name", FAMILIES)
def test_models_of_transformers_are_read_there(name: str) -> None:
    target = TARGET if FAMILIES[name][0].endswith("ConditionalGeneration") or name == "Marian" else None
    there, here = open_model(tiny_model(name).to(GPU)), open_model(tiny_model(name))
    found, expected = there.trace(SOURCE, target), here.trace(SOURCE, target)
    check_read(there, found)
    rounding = ROUNDING
    if name != NO_DOUBLE:
        # T5's scores are large, and a softmax of large scores magnifies rounding, on a CPU no less.
        precise = open_model(tiny_model(name).double()).trace(SOURCE, target)
        rounding = max(rounding, 4 * max(errors_of(expected, precise).values()))
    check_same(found, expected, rounding)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_searches_find_what_the_cpu_finds(translator: Translator, on_gpu: Translator, beam_size: int) -> None:
    texts = [source for source, _ in SENTENCES]
    assert on_gpu.translate(texts, beam_size) == translator.translate(texts, beam_size)


def test_a_run_repeated_beside_others_is_the_same_to_the_last_bit(on_gpu: Translator) -> None:
    expected = on_gpu.trace(TEXT, WRITTEN)
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: on_gpu.trace(TEXT, WRITTEN), range(40)):
            assert_bit_equal(expected, found)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_model_is_trained_there_and_goes_on_where_it_stopped(data: Path, tmp_path: Path, precision: str) -> None:
    options = ["--preset=toy", "--vocab-size=360", "--max-len=40", "--max-tokens=200", "--evaluate-every=20"]
    files = ["--train", str(data), "--dev", str(data), "--out", str(tmp_path / "run")]
    for steps in (20, 60):
        train.main([*files, *options, f"--steps={steps}", "--device", GPU, "--precision", precision, "--resume"])
    losses = pd.read_csv(tmp_path / "run" / "log.csv")["dev_loss"].tolist()
    assert len(losses) == 3
    assert all(after < before for before, after in pairwise(losses))
    opened = load_checkpoint(str(tmp_path / "run"), GPU)
    check_read(opened, opened.trace(TEXT, WRITTEN))
