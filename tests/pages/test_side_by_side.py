"""The page "Side by side" without a browser: both sides and their difference are the runs' tensors."""

import copy
import dataclasses
import io
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from model.analysis.heads.two_heads import join, piece_table, word_table
from model.run import Run
from pages.views.experiment.side_by_side import revisions
from tests.model.tiny import random_model
from tests.pages.figures import figure, numbers, words
from tests.pages.test_pages import holds
from tests.pages.widgets.test_export import assert_equal_to_file, programs_of

if TYPE_CHECKING:
    from model.checkpoints.translator import Translator

PAGE = "pages/side_by_side.py"
SOURCE, TEXT = "a dog and a cat", "Ein Hund mit einer Katze."
HERE = {"source": SOURCE, "target": "Typed", "typed": TEXT, "kind": "Cross-attention", "layer": "1", "head": "2"}


@pytest.fixture
def another(checkpoint_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A second checkpoint beside the first: other weights, another vocabulary, fewer heads."""
    from model.checkpoints.store import CHECKPOINTS_VARIABLE, save_checkpoint
    from model.network.config import TransformerConfig
    from tests.model.tiny import random_model, train_tiny_tokenizer

    shutil.copytree(checkpoint_folder, tmp_path / "both")
    tokenizer = train_tiny_tokenizer(310)
    sizes = {"d_model": 16, "n_heads": 2, "d_ff": 32, "n_encoder_layers": 1, "n_decoder_layers": 1, "max_len": 128}
    model = random_model(TransformerConfig(vocab_size=len(tokenizer), **sizes), seed=1)
    save_checkpoint(tmp_path / "both" / "other", model, tokenizer, dict(model.named_parameters()))
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(tmp_path / "both"))
    return "other"


def maps(app) -> list[np.ndarray]:
    """Left, right and, where there is one, the difference: what has a colour; minus infinity elsewhere."""
    found: dict[str, list[np.ndarray]] = {}
    for heat in figure(app, "side_by_side-maps")["data"]:
        if "coloraxis" in heat:
            found.setdefault(heat.get("xaxis", "x"), []).append(numbers(heat["z"]))
    return [np.nanmax([np.where(np.isnan(z), -np.inf, z) for z in parts], axis=0) for parts in found.values()]


def test_two_heads_of_one_run(open_app: Callable, translator: "Translator") -> None:
    app = open_app(PAGE, **HERE, side_layer="0", side_head="3")
    assert not app.exception
    trace = translator.trace(SOURCE, TEXT)
    one, other = trace.attention("cross", 1).pattern[2], trace.attention("cross", 0).pattern[3]
    left, right, difference = maps(app)
    assert np.array_equal(left, one)
    assert np.array_equal(right, other)
    assert np.array_equal(difference, other - one)
    app = open_app(PAGE, **HERE, side_layer="0", side_head="3", part="Query by query")
    bars = numbers(figure(app, "side_by_side-rows")["data"][0]["y"])
    assert bars == pytest.approx(np.abs(other.astype(float) - one).sum(axis=1) / 2, abs=1e-6)
    assert holds(app) == 3


def test_heads_of_two_kinds_have_no_difference_and_the_page_says_why(open_app: Callable) -> None:
    app = open_app(PAGE, **HERE, side_kind="Encoder self-attention")
    assert not app.exception
    assert len(maps(app)) == 2
    assert "No difference is drawn" in words(app)


def test_the_table_of_two_kinds_holds_one_side_after_the_other(translator: "Translator") -> None:
    from model.run import Run
    from pages.views.experiment.side_by_side import maps

    trace = translator.trace(SOURCE, TEXT)
    left, right = (Run.of(translator, trace, kind) for kind in ("cross", "decoder_self"))
    table = maps(left, right=right).shows["maps"].table()
    for side, kind in (("left", "cross"), ("right", "decoder_self")):
        assert np.array_equal(table[table.side == side]["value"], trace.attention(kind, 0).pattern[0].ravel())


def test_two_sentences_are_aligned_by_their_tokens(open_app: Callable, translator: "Translator") -> None:
    here = HERE | {"kind": "Encoder self-attention", "target": "Greedy"}
    app = open_app(PAGE, **here, side_mode="Sentences", side_sentence="a dog and a ball")
    assert not app.exception
    sides = [
        piece_table(translator.trace(text, beam_size=1).attention("encoder_self", 1), 2)
        for text in (SOURCE, "a dog and a ball")
    ]
    joined = join(*sides)
    left, right, difference = maps(app)
    assert np.array_equal(left, sides[0].weights)
    assert np.array_equal(right, sides[1].weights)
    assert np.array_equal(difference, np.where(np.isnan(joined.difference), -np.inf, joined.difference))
    assert "that only one side has" in words(app)
    assert "checked on both runs" in words(app)
    assert holds(app) == 3


def test_a_pair_of_sentences_goes_to_both_sides(open_app: Callable) -> None:
    app = open_app(PAGE, target="Greedy", side_mode="Sentences")
    app.selectbox(key="side_example").set_value("Subject and object swapped").run()
    assert not app.exception
    assert app.text_area(key="source").value == "The dog chased the cat."
    assert app.text_area(key="side_sentence").value == "The cat chased the dog."


def test_two_checkpoints_are_compared_by_words(open_app: Callable, translator: "Translator", another: str) -> None:
    from model.checkpoints.store import load_checkpoint

    app = open_app(PAGE, **HERE, side_mode="Checkpoints")
    assert not app.exception
    other = load_checkpoint(another, "cpu").trace(SOURCE, TEXT)
    own = translator.trace(SOURCE, TEXT)
    sides = word_table(own.attention("cross", 1), 2), word_table(other.attention("cross", 0), 1)
    assert other.src_tokens != own.src_tokens
    left, right, difference = maps(app)
    assert np.array_equal(left, sides[0].weights.astype(np.float32))
    assert np.array_equal(right, sides[1].weights.astype(np.float32))
    assert difference == pytest.approx(sides[1].weights - sides[0].weights, abs=1e-6)


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
@pytest.mark.usefixtures("another")
def test_files_name_both_runs_and_the_python_makes_both_again(
    query: dict[str, str], right: tuple[str, str], open_app: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    files: dict[str, bytes] = {}
    monkeypatch.setattr(
        "streamlit.download_button", lambda _label, data, file_name, **_: files.update({file_name: data()})
    )
    app = open_app(PAGE, **HERE, **query)
    assert not app.exception
    programs = programs_of(app)
    assert [name.split("-")[1] for name in programs] == ["queries" if "part" in query else "maps"]
    for title, program in programs.items():
        (name,) = [name for name in files if name.startswith(f"{title}-") and name.endswith(".npz")]
        assert_equal_to_file(program, files[name])
        with np.load(io.BytesIO(files[name])) as file:
            assert (str(file["right_source"]), str(file["right_checkpoint"])) == right


def test_a_right_side_that_is_no_run_is_refused(translator: "Translator") -> None:
    from model.run import Run
    from pages.views.experiment.side_by_side import numbers

    run = Run.of(translator, translator.trace(SOURCE, TEXT))
    with pytest.raises(ValueError, match="right is a Run"):
        numbers(run, right="another sentence")


def test_a_model_whose_layers_are_not_all_of_one_kind_offers_those_that_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from pages.frame.beside import right_side

    offered: list = []
    monkeypatch.setattr(right_side, "choice", lambda offer, *_, **__: (offered.append(offer.options), "same")[1])
    for meant, shown, notes in ((3, 3, 0), (0, 1, 1), (9, 7, 1)):
        told: list[str] = []
        assert right_side._number("layer", "side_layer", "same", ((1, 3, 7), meant), told) == shown
        assert len(told) == notes
    assert list(offered[0]) == ["same", 1, 3, 7]


def test_two_models_that_write_other_words_are_compared_once_one_is_forced(open_app: Callable, another: str) -> None:
    assert another
    app = open_app(PAGE, **(HERE | {"target": "Greedy"}), side_mode="Checkpoints")
    assert not app.exception
    assert len(maps(app)) == 2
    assert "the two models generated different words" in words(app)
    app.toggle(key="side_forced").set_value(True).run()
    assert not app.exception
    assert holds(app) == 3


def test_without_another_checkpoint_the_page_says_how_to_get_one(open_app: Callable) -> None:
    app = open_app(PAGE, **HERE, side_mode="Checkpoints")
    assert "There is no other checkpoint" in words(app)
    assert holds(app) == 3


@pytest.mark.parametrize("sentence", ["", "   ", "<b>*x*</b> $a$ :red[b] `c`", "A dog runs. " * 40])
def test_any_text_may_stand_on_the_right(open_app: Callable, sentence: str) -> None:
    app = open_app(PAGE, **(HERE | {"target": "Greedy"}), side_mode="Sentences")
    app.text_area(key="side_sentence").set_value(sentence).run()
    assert not app.exception
    assert ("both sides show the sidebar's selection" in words(app)) == (not sentence.strip())
    assert "<b>*x*" not in " ".join(element.proto.body for element in app.get("html"))
    assert holds(app) == 3


def test_a_forged_link_falls_back_with_a_note(open_app: Callable) -> None:
    app = open_app(PAGE, **HERE, side_mode="Forged", side_kind="x", side_layer="99", side_head="17")
    assert not app.exception
    assert words(app).count("that does not exist") == 4
    assert app.segmented_control(key="side_mode").value == "heads"


def test_reset_takes_the_right_side_along(open_app: Callable) -> None:
    app = open_app(PAGE, **HERE, side_mode="Sentences", side_sentence="a ball")
    next(button for button in app.sidebar.button if button.label == "Reset").click().run()
    assert not app.exception
    assert app.segmented_control(key="side_mode").value == "heads"
    app.segmented_control(key="side_mode").set_value("sentences").run()
    assert app.text_area(key="side_sentence").value.endswith("too wide.")


@pytest.mark.parametrize(("kind", "layer", "head"), [("encoder_self", 1, 2), ("cross", 0, 3)])
def test_revisions_name_the_head_whose_weights_were_changed(translator, kind: str, layer: int, head: int) -> None:
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


def test_models_of_other_sizes_are_no_revisions(translator) -> None:
    wider = dataclasses.replace(translator.config, d_ff=48)
    other = dataclasses.replace(translator, model=random_model(wider), hash="another")
    run, right = (Run.of(each, each.trace("Two dogs play.", "Zwei Hunde.")) for each in (translator, other))
    assert revisions(run, right=right).facts["state"] == "other"
