"""Broken on purpose: text, weights and code are those of the run with the mistake, and the claims wait to be asked."""

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from model.checkpoints.translator import Translator
from model.proof.mistakes import MISTAKES, PADS, check_mistake, code_around, lines_of, run_mistake
from model.run import Run
from pages.views.experiment.what_if import broken
from tests.pages.conftest import SOURCE, TYPED
from tests.pages.figures import maps, words
from viz.figure import escape
from viz.tokens import numbered

pytestmark = pytest.mark.usefixtures("short_texts")


@pytest.mark.parametrize("name", ["transposed-mask", "no-padding-mask", "cross-reads-x", "half-precision-mask"])
def test_text_numbers_and_weights_are_those_of_the_broken_run(name: str, run_at: Callable) -> None:
    run = run_at("cross", 1, 2)
    result, found = broken(run, mistake=name, outcome=None), run_mistake(run.opened, run.trace, name, "cross", 1)
    right, *_, wrong = maps(result, "weights")
    assert np.array_equal(right, run.attention.pattern[2])
    assert np.array_equal(wrong, np.where(found.mask[2], found.pattern[2], np.nan), equal_nan=True)
    text, decode = result.shows["text"], run.opened.tokenizer.decode
    assert list(text.scores.values()) == pytest.approx([run.trace.log_probability, found.log_p], nan_ok=True)
    assert (text.before, text.after) == (decode(list(found.right)), decode(list(found.written)))
    shown = result.shows["lines"].text
    diffs = [part.strip("\n").splitlines() for part in re.findall("```diff\n(.*?)```", shown, re.DOTALL)]
    for lines, diff in zip(lines_of(run.opened.model, name), diffs, strict=True):
        right, wrong = (code.splitlines() for code in code_around(lines))
        assert [line[2:] for line in diff if line[0] != "-"] == right
        assert [line[2:] for line in diff if line[0] != "+"] == wrong


@pytest.mark.usefixtures("fresh_caches")
def test_claims_are_checked_when_asked(open_app: Callable, run_at: Callable) -> None:
    number, place = list(MISTAKES).index("no-scaling") + 1, {"kind": "Cross-attention", "layer": "1", "head": "2"}
    part = {"part": "Broken on purpose", "mistake": f"{number}. {MISTAKES['no-scaling'].title}"}
    app, run = open_app("pages/what_if.py", **TYPED, **place, **part), run_at("cross", 1, 2)
    assert "claims fail" not in words(app)
    app.button(key="mistake_check").click().run()
    for name in ("no-scaling", "cross-reads-x"):
        *_, verdict = check_mistake(run.opened, run.trace, name, "cross", 1, 2)
        told = broken(run, outcome=verdict, mistake=name).facts["verdict"]
        assert told["refusal"] == verdict.refusal
        assert {label for label, *_ in told["broken"]} == {one.claim.label for one in verdict.broken}
        if name == "no-scaling":
            measured = [one for one in verdict.measurements if one.error is not None]
            assert f"{len(verdict.broken)} of {len(measured)} claims fail" in words(app)


@pytest.mark.parametrize(
    ("mistake", "text"),
    [
        ("transposed-mask", "Ein Hund."),
        ("no-scaling", "Ein Hund mit einer Katze und noch einer."),
        ("cross-reads-x", "Ein Hund."),
        ("no-padding-mask", "Ein Hund mit einer Katze und noch einer."),
    ],
)
def test_keys_keep_their_names_whether_or_not_the_target_is_as_long_as_the_source(
    mistake: str, text: str, translator: Translator
) -> None:
    run = Run.of(translator, translator.trace(SOURCE, text), "cross", 1, 2)
    equally_long = replace(run, trace=translator.trace(SOURCE, translator.tokenizer.decode(run.trace.src_ids)))
    for one in (run, equally_long):
        *_, wrong = (heat.x for heat in broken(one, mistake=mistake, outcome=None).shows["weights"].data)
        tokens = one.trace.tgt_tokens if mistake == "cross-reads-x" else one.trace.src_tokens
        pads = ["<pad>"] * (PADS if mistake == "no-padding-mask" else 0)
        assert list(wrong) == escape(numbered([*tokens, *pads]))
