"""Side by side: both sides and their difference are the runs' tensors; the right side is chosen, linked and reset."""

import copy
import dataclasses
import io
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model.analysis.heads.two_heads import join, piece_table, word_table
from model.checkpoints.store import CHECKPOINTS_VARIABLE, load_checkpoint, save_checkpoint
from model.checkpoints.translator import Translator
from model.network.config import TransformerConfig
from model.run import Run
from pages.frame.beside import right_side
from pages.views.experiment import side_by_side as views
from pages.views.experiment.side_by_side import revisions
from tests.model.tiny import random_model, train_tiny_tokenizer
from tests.pages.conftest import SOURCE, TEXT, TYPED
from tests.pages.figures import figure, holds, lines, numbers, words
from tests.pages.widgets.test_export import assert_equal_to_file, programs_of

PAGE = "pages/side_by_side.py"
HERE = TYPED | {"kind": "Cross-attention", "layer": "1", "head": "2"}


@pytest.fixture
def another(checkpoint_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A second checkpoint beside the first: other weights, another vocabulary, fewer heads."""
    shutil.copytree(checkpoint_folder, tmp_path / "both")
    tokenizer = train_tiny_tokenizer(310)
    sizes = {"d_model": 16, "n_heads": 2, "d_ff": 32, "n_encoder_layers": 1, "n_decoder_layers": 1, "max_len": 128}
    model = random_model(TransformerConfig(vocab_size=len(tokenizer), **sizes), seed=1)
    save_checkpoint(tmp_path / "both" / "other", model, tokenizer, dict(model.named_parameters()))
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(tmp_path / "both"))
    return "other"


def sides(shown: Any, key: str = "maps") -> list[np.ndarray]:
    """Left, right and, where there is one, the difference: what has a colour; minus infinity elsewhere."""
    found: dict[str, list[np.ndarray]] = {}
    for heat in figure(shown, key)["data"]:
        if "coloraxis" in heat:
            found.setdefault(heat.get("xaxis", "x"), []).append(numbers(heat["z"]).astype(float))
    return [np.nanmax([np.where(np.isnan(z), -np.inf, z) for z in parts], axis=0) for parts in found.values()]


def test_two_heads_of_one_run_have_a_difference_and_heads_of_two_kinds_have_none(run_at: Callable) -> None:
    run, right = run_at("cross", 1, 2), run_at("cross", 0, 3)
    one, other = run.attention.pattern[2], right.attention.pattern[3]
    for drawn, expected in zip(sides(views.maps(run, right=right)), (one, other, other - one), strict=True):
        assert np.array_equal(drawn, expected)
    bars = lines(views.queries(run, right=right), "rows")[0]
    assert bars == pytest.approx(np.abs(other.astype(float) - one).sum(axis=1) / 2, abs=1e-6)
    right = run_at("decoder_self", 0, 1)
    result = views.maps(run, right=right)
    assert (result.facts["obstacle"], len(sides(result))) == ("kinds", 2)
    table = result.shows["maps"].table()
    for side, one in (("left", run), ("right", right)):
        assert np.array_equal(table[table.side == side]["value"], one.attention.pattern[one.head].ravel())


def test_two_sentences_are_aligned_by_their_tokens(open_app: Callable, translator: Translator) -> None:
    here = HERE | {"kind": "Encoder self-attention", "target": "Greedy"}
    app = open_app(PAGE, **here, side_mode="Sentences", side_sentence="a dog and a ball")
    tables = [
        piece_table(translator.trace(text, beam_size=1).attention("encoder_self", 1), 2)
        for text in (SOURCE, "a dog and a ball")
    ]
    joined = join(*tables)
    left, right, difference = sides(app, "side_by_side-maps")
    assert np.array_equal(left, tables[0].weights)
    assert np.array_equal(right, tables[1].weights)
    assert np.array_equal(difference, np.where(np.isnan(joined.difference), -np.inf, joined.difference))
    assert holds(app) == 3


def test_a_pair_of_sentences_goes_to_both_sides(open_app: Callable) -> None:
    app = open_app(PAGE, target="Greedy", side_mode="Sentences")
    app.selectbox(key="side_example").set_value("Subject and object swapped").run()
    assert app.text_area(key="source").value == "The dog chased the cat."
    assert app.text_area(key="side_sentence").value == "The cat chased the dog."


def test_two_checkpoints_are_compared_by_words(open_app: Callable, translator: Translator, another: str) -> None:
    app = open_app(PAGE, **HERE, side_mode="Checkpoints")
    other, own = (opened.trace(SOURCE, TEXT) for opened in (load_checkpoint(another, "cpu"), translator))
    left, right = word_table(own.attention("cross", 1), 2), word_table(other.attention("cross", 0), 1)
    assert other.src_tokens != own.src_tokens
    expected = left.weights, right.weights, right.weights - left.weights
    for drawn, weights in zip(sides(app, "side_by_side-maps"), expected, strict=True):
        assert drawn == pytest.approx(weights, abs=1e-6)


@pytest.mark.parametrize(
    ("query", "right"),
    [
        ({"side_kind": "Encoder self-attention"}, (SOURCE, "en-de")),
        (
            {"side_mode": "Sentences", "side_sentence": "a ball's \\", "tau": "2", "part": "Query by query"},
            ("a ball's \\", "en-de"),
        ),
        ({"side_mode": "Checkpoints"}, (SOURCE, "other")),
    ],
    ids=["a head", "a sentence", "a checkpoint"],
)
@pytest.mark.usefixtures("another", "open_feet")
def test_files_name_both_runs_and_the_python_makes_both_again(
    query: dict[str, str], right: tuple[str, str], open_app: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    files: dict[str, bytes] = {}

    def keep_arrays(_label: str, data: Callable[[], bytes], file_name: str, **_: Any) -> None:
        if file_name.endswith(".npz"):
            files[file_name] = data()

    monkeypatch.setattr("streamlit.download_button", keep_arrays)
    app = open_app(PAGE, **HERE, **query)
    programs = programs_of(app)
    assert [name.split("-")[1] for name in programs] == ["queries" if "part" in query else "maps"]
    for title, program in programs.items():
        (name,) = [name for name in files if name.startswith(f"{title}-")]
        assert_equal_to_file(program, files[name])
        with np.load(io.BytesIO(files[name])) as file:
            assert (str(file["right_source"]), str(file["right_checkpoint"])) == right


def test_a_right_side_that_is_no_run_is_refused(run_at: Callable) -> None:
    with pytest.raises(ValueError, match="right is a Run"):
        views.numbers(run_at(), right="another sentence")


def test_a_model_whose_layers_are_not_all_of_one_kind_offers_those_that_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    offered: list = []
    monkeypatch.setattr(right_side, "choice", lambda offer, *_, **__: (offered.append(offer.options), "same")[1])
    for meant, shown, notes in ((3, 3, 0), (0, 1, 1), (9, 7, 1)):
        told: list[str] = []
        assert right_side._number("layer", "side_layer", "same", ((1, 3, 7), meant), told) == shown
        assert len(told) == notes
    assert list(offered[0]) == ["same", 1, 3, 7]


@pytest.mark.usefixtures("another")
def test_two_models_that_write_other_words_are_compared_once_one_is_forced(open_app: Callable) -> None:
    app = open_app(PAGE, **(HERE | {"target": "Greedy"}), side_mode="Checkpoints")
    assert len(sides(app, "side_by_side-maps")) == 2
    app.toggle(key="side_forced").set_value(True).run()
    assert len(sides(app, "side_by_side-maps")) == holds(app) == 3


def test_any_text_may_stand_on_the_right(open_app: Callable) -> None:
    app = open_app(PAGE, **(HERE | {"target": "Greedy"}), side_mode="Sentences")
    for sentence in ("", "   ", "<b>*x*</b> $a$ :red[b] `c`", "A dog runs. " * 40):
        app.text_area(key="side_sentence").set_value(sentence).run()
        assert ("both sides show the sidebar's selection" in words(app)) == (not sentence.strip())
        assert holds(app) == 3, sentence


def test_reset_takes_the_right_side_along(open_app: Callable) -> None:
    app = open_app(PAGE, **HERE, side_mode="Sentences", side_sentence="a ball")
    next(button for button in app.sidebar.button if button.label == "Reset").click().run()
    assert app.segmented_control(key="side_mode").value == "heads"
    app.segmented_control(key="side_mode").set_value("sentences").run()
    assert app.text_area(key="side_sentence").value.endswith("too wide.")


@pytest.mark.parametrize(("kind", "layer", "head"), [("encoder_self", 1, 2), ("cross", 0, 3)])
def test_revisions_name_the_head_whose_weights_were_changed(
    translator: Translator, kind: str, layer: int, head: int
) -> None:
    model = copy.deepcopy(translator.model)
    model.attentions()[kind, layer][1].w_v.weight[head * 8 : (head + 1) * 8] *= 1.2
    other = dataclasses.replace(translator, model=model, hash="another")
    run = Run.of(translator, translator.trace("Two dogs play."))
    right = Run.of(other, other.rerun(run.trace, ()))
    found = revisions(run, right=right)
    assert found.facts["most"][0][1:3] == (layer, head)
    assert found.facts["first"] == f"{run.trace.kind(kind).queries}.layers.{layer}"
    drawn = found.shows["weights"].values
    assert {name: np.argwhere(table).tolist() for name, table in drawn.items() if table.any()} == {
        kind: [[layer, head]]
    }
    example = revisions(run, right=run)
    assert (example.facts["state"], example.facts["example"]) == ("compared", True)
    assert not {*example.facts["names"]} & {*found.facts["names"]}, "two small translators stand in for them"
    assert example.drawn.trace.checkpoint == example.facts["names"][0] != run.trace.checkpoint, "exports name them"
    assert found.drawn is None
    apart = found.shows["streams"].arrays()
    assert apart


def test_models_of_other_sizes_are_no_revisions(translator: Translator) -> None:
    wider = dataclasses.replace(translator.config, d_ff=48)
    other = dataclasses.replace(translator, model=random_model(wider), hash="another")
    run, right = (Run.of(each, each.trace("Two dogs play.", "Zwei Hunde.")) for each in (translator, other))
    assert revisions(run, right=right).facts["state"] == "other"
