"""The tab "Broken on purpose": the run with the mistake is the model's, and the claims wait to be asked."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from model.proof.mistakes import MISTAKES, PADS, check_mistake, code_around, lines_of, run_mistake
from model.run import Run
from pages.views.experiment.what_if import broken
from tests.pages.figures import figure, numbers, words
from viz.figure import escape
from viz.html import word_diff
from viz.tokens import numbered

if TYPE_CHECKING:
    from model.checkpoints.translator import Translator

pytestmark = pytest.mark.usefixtures("fresh_caches")

PAGE, SOURCE, TEXT = "pages/what_if.py", "a dog and a cat", "Ein Hund mit einer Katze."
HERE = {"source": SOURCE, "target": "Typed", "typed": TEXT, "kind": "Cross-attention", "layer": "1", "head": "2"}


@pytest.mark.parametrize("name", ["transposed-mask", "no-padding-mask", "cross-reads-x", "half-precision-mask"])
def test_text_numbers_and_weights_are_those_of_the_broken_run(
    name: str, open_app: Callable, translator: "Translator"
) -> None:
    number = list(MISTAKES).index(name) + 1
    app = open_app(PAGE, **HERE, part="Broken on purpose", mistake=f"{number}. {MISTAKES[name].title}")
    assert not app.exception
    trace = translator.trace(SOURCE, TEXT)
    found = run_mistake(translator, trace, name, "cross", 1)
    maps = [numbers(t["z"]) for t in figure(app, "what_if-weights")["data"] if "masked" not in t["hovertemplate"]]
    right, wrong = maps[0], maps[-1]
    assert np.array_equal(right, trace.attention("cross", 1).pattern[2])
    assert np.array_equal(wrong, np.where(found.mask[2], found.pattern[2], np.nan), equal_nan=True)
    shown = "NaN" if np.isnan(found.log_p) else f"{found.log_p:.3f}".replace("-", "−")
    assert shown in [metric.value for metric in app.metric]
    decode = translator.tokenizer.decode
    compared = word_diff(decode(list(found.right)), decode(list(found.written)))
    assert compared in [element.proto.body for element in app.get("html")]
    (shown,) = (text.value for text in app.markdown if "```diff" in text.value)
    diffs = [part.strip("\n").splitlines() for part in re.findall("```diff\n(.*?)```", shown, re.DOTALL)]
    for lines, diff in zip(lines_of(translator.model, name), diffs, strict=True):
        right, wrong = (code.splitlines() for code in code_around(lines))
        assert [line[2:] for line in diff if line[0] != "-"] == right
        assert [line[2:] for line in diff if line[0] != "+"] == wrong


@pytest.mark.parametrize("name", ["no-scaling", "cross-reads-x"])
def test_claims_are_checked_when_asked(name: str, open_app: Callable, translator: "Translator") -> None:
    number = list(MISTAKES).index(name) + 1
    app = open_app(PAGE, **HERE, part="Broken on purpose", mistake=f"{number}. {MISTAKES[name].title}")
    assert "claims fail" not in words(app)
    app.button(key="mistake_check").click().run()
    assert not app.exception
    trace = translator.trace(SOURCE, TEXT)
    *_, verdict = check_mistake(translator, trace, name, "cross", 1, 2)
    if name == "cross-reads-x":
        assert verdict.refusal in words(app)
        return
    measured = [one for one in verdict.measurements if one.error is not None]
    assert f"{len(verdict.broken)} of {len(measured)} claims fail" in words(app)
    for one in verdict.broken:
        assert f"{one.claim.label} **{one.claim.title}**: error {one.error:.3g}" in words(app)


@pytest.mark.parametrize("text", ["Ein Hund.", "Ein Hund mit einer Katze.", "Ein Hund mit einer Katze und noch einer."])
@pytest.mark.parametrize("mistake", ["transposed-mask", "no-scaling", "cross-reads-x", "no-padding-mask"])
def test_keys_keep_their_names_whether_or_not_the_target_is_as_long_as_the_source(
    text: str, mistake: str, translator: "Translator"
) -> None:
    run = Run.of(translator, translator.trace(SOURCE, text), "cross", 1, 2)
    equally_long = replace(run, trace=translator.trace(SOURCE, translator.tokenizer.decode(run.trace.src_ids)))
    for one in (run, equally_long):
        *_, wrong = (heat.x for heat in broken(one, mistake=mistake, outcome=None).shows["weights"].data)
        tokens = one.trace.tgt_tokens if mistake == "cross-reads-x" else one.trace.src_tokens
        pads = ["<pad>"] * (PADS if mistake == "no-padding-mask" else 0)
        assert list(wrong) == escape(numbered([*tokens, *pads]))
