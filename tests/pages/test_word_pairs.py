"""Word pairs: the picture is the cosine of two sentences, cut into their words, and a head's part in it is its own."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.processors import TemplateProcessing

from model.analysis.words import word_groups
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.huggingface import open_model
from model.checkpoints.store import MODELS_VARIABLE
from model.interventions import HeadGate
from model.needs import Need
from model.run import Place, Request, Run
from pages.views.experiment.side_by_side import word_pairs
from pages.views.standalone import texts_of
from tests.model.checkpoints.huggingface.folders import save_family
from tests.model.checkpoints.huggingface.test_pooling import write_modules
from tests.pages.figures import figure, numbers, words

LEFT, RIGHT = "A doghouse runs through snowstorms.", "The old cat reads a newspaper."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_family(tmp_path_factory.mktemp("sentences") / "BERT", "BERT", head=False)


def both(opened: Checkpoint) -> tuple[Run, Run]:
    place = Place("encoder_self", 0, 1)
    return tuple(Run(opened, Request(text), opened.trace(text), place) for text in (LEFT, RIGHT))


def cosine_of(*texts: np.ndarray) -> float:
    """Of the means, in double precision."""
    one, other = (text.astype(np.float64).mean(axis=0) for text in texts)
    return float(one @ other / np.sqrt((one @ one) * (other @ other)))


@pytest.mark.parametrize("whose", ["ours", "BERT"])
def test_the_cells_are_sums_over_pieces_and_the_picture_sums_to_the_cosine(whose: str, translator, folder) -> None:
    opened = translator if whose == "ours" else open_model(folder)
    left, right = both(opened)
    result = word_pairs(left, right=right)
    finals = [run.trace.memory for run in (left, right)]
    expected = cosine_of(*finals)
    picture, pieces = result.shows["pairs"], result.arrays()["pairs_of_tokens"]
    assert result.facts["sum"] == pytest.approx(expected, abs=1e-12)
    assert result.facts["cosine"] == pytest.approx(expected, abs=1e-12)
    assert pieces.shape == tuple(map(len, finals)), "special tokens, too"
    tokens = [run.trace.streams["encoder"].tokens for run in (left, right)]
    rows, columns = (word_groups(each.labels, each.special, each.words) for each in tokens)
    assert len(rows) < len(finals[0]), "some words have several pieces"
    shares = picture.maps[""].values
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            assert shares[i, j] == pytest.approx(sum(pieces[a, b] for a in row for b in column), abs=1e-15)
    (of_left,), (of_right,) = (result.shows[f"{side}_words"].series.values() for side in ("left", "right"))
    assert of_left.sum() == pytest.approx(expected)
    np.testing.assert_allclose(of_right, shares.sum(axis=0))


def test_without_a_head_it_is_the_cosine_of_runs_without_it(translator) -> None:
    left, right = both(translator)
    found = word_pairs(left, right=right, without=True).facts["head"]
    off = HeadGate(0.0, "encoder_self", 0, 1)
    expected = cosine_of(*(translator.trace(text, interventions=(off,)).memory for text in (LEFT, RIGHT)))
    assert found["cosine"] == pytest.approx(expected, abs=1e-6)
    assert len(found["most"]) == 3
    before = word_pairs(left, right=right, after="embedding", without=True)
    assert before.facts["head"]["most"] == []
    assert "is the same without" in "".join(texts_of(before.blocks))


def test_a_head_of_the_decoder_cannot_be_left_out_of_the_encoders_vectors(run_at: Callable) -> None:
    for kind, offered in (("encoder_self", True), ("cross", False)):
        assert ("without" in word_pairs.offers(run_at(kind))) == offered


@pytest.mark.parametrize(
    ("settings", "others", "state", "said"),
    [
        ({"pooling_mode": "mean"}, (), "pairs", "According to its folder"),
        ({"pooling_mode": "weightedmean"}, (), "pairs", "weighted by their positions"),
        ({"pooling_mode": ["cls", "mean"]}, (), "pairs", "concatenated"),
        ({"pooling_mode": "cls"}, (), "one", "“[CLS]” on the left"),
        ({"pooling_mode": "lasttoken"}, (), "one", "“[SEP]” on the right"),
        ({"pooling_mode": "max"}, (), "max", "max pooling"),
        ({"pooling_mode": "mean"}, ("Dense",), "others", "**Dense**"),
        ([], (), "pairs", "could not be read"),
        (None, (), "pairs", "no modules.json"),
    ],
)
def test_a_folder_says_how_it_pools_and_no_picture_is_drawn_where_there_is_no_sum(
    settings, others: tuple, state: str, said: str, folder: Path
) -> None:
    (folder / "modules.json").unlink(missing_ok=True)
    if settings is not None:
        write_modules(folder, settings, *others)
    left, right = both(open_model(folder))
    result = word_pairs(left, right=right)
    assert result.facts["state"] == state
    assert bool(result.shows) == (state == "pairs")
    assert said in "".join(texts_of(result.blocks)).replace("\\", "")


@pytest.mark.parametrize("ends", [False, True])
def test_a_decoder_pools_the_text_that_was_given_and_says_which_token_it_leaves_out(ends: bool, tmp_path: Path) -> None:
    save_family(tmp_path, "GPT-2")
    if ends:
        tokenizer = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
        end = [("<|endoftext|>", tokenizer.token_to_id("<|endoftext|>"))]
        tokenizer.post_processor = TemplateProcessing(single="$A <|endoftext|>", special_tokens=end)
        tokenizer.save(str(tmp_path / "tokenizer.json"))
    opened = open_model(write_modules(tmp_path, {"pooling_mode": "weightedmean"}))
    texts = [opened.trace(text, max_new_tokens=3) for text in (LEFT, RIGHT)]
    left, right = (Run(opened, Request(trace.source), trace, Place("decoder_self", 0, 1)) for trace in texts)
    result = word_pairs(left, right=right)
    given = [len(opened.tokenizer.encode(text)) for text in (LEFT, RIGHT)]
    assert result.facts["counts"] == tuple(given)
    one, other = (
        np.arange(1, count + 1) @ trace.streams["decoder"].final[:count].astype(float)
        for count, trace in zip(given, texts, strict=True)
    )
    assert result.facts["sum"] == pytest.approx(cosine_of(one[None], other[None]), abs=1e-12)
    assert ("goes on writing" in "".join(texts_of(result.blocks))) == ends


def test_where_the_layers_could_not_be_read_the_last_vectors_are_compared(folder: Path) -> None:
    (folder / "modules.json").unlink(missing_ok=True)
    opened = open_model(folder)
    opened.model.blocks[0].arrangement = None
    assert Need.STREAM not in opened.features
    left, right = both(opened)
    assert "after" not in word_pairs.offers(left)
    result = word_pairs(left, right=right)
    assert result.facts["sum"] == pytest.approx(cosine_of(left.trace.memory, right.trace.memory), abs=1e-12)


def test_a_first_visit_draws_two_sentences_of_a_brought_model(
    folder: Path, open_app: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_modules(folder, {"pooling_mode": "mean"}, "Normalize")
    monkeypatch.setenv(MODELS_VARIABLE, str(folder))
    app = open_app("pages/side_by_side.py", checkpoint=str(folder), source=LEFT, part="Word pairs")
    drawn = numbers(figure(app, "side_by_side-pairs")["data"][0]["z"]).astype(float)
    said = [float(found) for found in re.findall(r"\*\*(0\.\d{6})\*\*", words(app))]
    assert said == pytest.approx([drawn.sum()] * 2, abs=1e-5), "the cosine, and the sum of the picture"
