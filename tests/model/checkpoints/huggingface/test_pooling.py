"""Folders of sentence-transformers: how they pool is read, and the cosine of two texts is the one that they define."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf

from model.analysis.runs.one_word import cosine
from model.analysis.runs.sentence_pairs import pair_shares, pool, read_text, text_vectors
from model.checkpoints.huggingface import open_model
from model.checkpoints.pooling import MODES, Pooling, read_pooling
from tests.model.checkpoints.huggingface.folders import save_family

TEXTS = ("A dog runs through the snow.", "The cat sat on the mat, and a man reads a newspaper outside.")
OLDER = "sentence_transformers.models."
NEWER = {
    "Pooling": "sentence_transformers.sentence_transformer.modules.pooling.",
    "": "sentence_transformers.base.modules.",
}

DEFINITIONS = {
    "cls": lambda tokens: tokens[0],
    "lasttoken": lambda tokens: tokens[-1],
    "max": lambda tokens: np.array([max(column) for column in zip(*tokens, strict=True)]),
    "mean": lambda tokens: sum(tokens) / len(tokens),
    "mean_sqrt_len_tokens": lambda tokens: sum(tokens) / len(tokens) ** 0.5,
    "weightedmean": lambda tokens: (
        sum(place * token for place, token in enumerate(tokens, 1)) / sum(range(1, len(tokens) + 1))
    ),
}
"""of a text's vector, of those of its tokens"""


def write_modules(folder: Path, settings: Any, *others: str, newer: bool = False) -> Path:
    """Make a model's folder one of sentence-transformers, with further modules after the pooling."""
    places = {"Transformer": "", "Pooling": "1_Pooling"} | {name: f"{i}_{name}" for i, name in enumerate(others, 2)}
    kinds = {name: f"{NEWER.get(name, NEWER['']) if newer else OLDER}{name}" for name in places}
    modules = [{"idx": i, "name": str(i), "path": places[name], "type": kinds[name]} for i, name in enumerate(places)]
    (folder / "1_Pooling").mkdir(parents=True, exist_ok=True)
    (folder / "modules.json").write_text(json.dumps(modules), "utf-8")
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(settings), "utf-8")
    return folder


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_family(tmp_path_factory.mktemp("sentences") / "BERT", "BERT", head=False)


def by_definition(folder: Path, mode: str) -> float:
    """The cosine in double precision, of both texts in one batch with padding, token by token."""
    model = hf.AutoModel.from_pretrained(folder, dtype=torch.float64).eval()
    batch = hf.AutoTokenizer.from_pretrained(folder)(list(TEXTS), padding=True, return_tensors="pt")
    with torch.inference_mode():
        states = model(**batch).last_hidden_state.numpy()
    one, other = (
        DEFINITIONS[mode]([token for token, real in zip(tokens, mask, strict=True) if real])
        for tokens, mask in zip(states, batch["attention_mask"].numpy(), strict=True)
    )
    return float(one @ other / np.sqrt((one @ one) * (other @ other)))


@pytest.mark.parametrize("flag", MODES)
def test_each_way_of_pooling_gives_the_cosine_of_its_definition(flag: str, saved: Path) -> None:
    mode = MODES[flag]
    write_modules(saved, dict.fromkeys(MODES, False) | {flag: True, "word_embedding_dimension": 32}, "Normalize")
    opened = open_model(saved)
    assert opened.pooling == Pooling((mode,), stated=True)
    traces = [opened.trace(text) for text in TEXTS]
    assert read_text(traces[0])[1].labels[0] == "[CLS]"
    vectors = [list(text_vectors(trace).values())[-1] for trace in traces]
    expected = by_definition(saved, mode)
    assert cosine(*(pool(each, (mode,)) for each in vectors)) == pytest.approx(expected, abs=1e-6)
    if mode == "max":
        assert opened.pooling.makes == "max"
        with pytest.raises(ValueError, match="not a sum over tokens"):
            pair_shares(*vectors, (mode,))
        return
    shares = pair_shares(*vectors, (mode,))
    assert shares.shape == tuple(map(len, vectors))
    assert shares.sum() == pytest.approx(expected, abs=1e-6)
    assert opened.pooling.makes == ("one" if np.count_nonzero(shares) == 1 else "pairs")


def test_several_ways_stand_behind_each_other(saved: Path) -> None:
    modes = ("cls", "mean_sqrt_len_tokens")
    opened = open_model(write_modules(saved, {"pooling_mode": list(modes), "embedding_dimension": 32}, newer=True))
    assert (opened.pooling.modes, opened.pooling.makes) == (modes, "pairs")
    one, other = (list(text_vectors(opened.trace(text)).values())[-1].astype(float) for text in TEXTS)
    both = [np.concatenate([x[0], x.sum(axis=0) / len(x) ** 0.5]) for x in (one, other)]
    assert pair_shares(one, other, modes).sum() == pytest.approx(cosine(*both), abs=1e-12)


@pytest.mark.parametrize(
    ("settings", "others", "expected"),
    [
        ({"pooling_mode": "weightedmean"}, (), Pooling(("weightedmean",), stated=True)),
        ({"word_embedding_dimension": 32}, (), Pooling(stated=True)),
        ({"pooling_mode_mean_tokens": True}, ("Dense", "Normalize"), Pooling(stated=True, others=("Dense",))),
        ({"pooling_mode": "whitening"}, (), Pooling(("whitening",), stated=True, others=("whitening",))),
    ],
)
@pytest.mark.parametrize("newer", [False, True])
def test_settings_of_either_age_are_read(
    settings: dict, others: tuple, expected: Pooling, newer: bool, tmp_path: Path
) -> None:
    assert read_pooling(write_modules(tmp_path, settings, *others, newer=newer)) == expected
    assert (expected.makes == "others") == bool(expected.others)


def test_without_a_word_about_pooling_it_is_the_mean(tmp_path: Path) -> None:
    assert read_pooling(tmp_path) == Pooling(("mean",), stated=False)
    (tmp_path / "modules.json").write_text("[]", "utf-8")
    assert read_pooling(tmp_path) == Pooling(("mean",), stated=False)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[1]",
        "[[[",
        '[{"type": "a.Pooling"}]',
        '[{"type": "a.Pooling", "path": "../outside"}]',
        '[{"type": 3}]',
    ],
)
def test_files_that_cannot_be_read_are_said_to_be_so(text: str, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "config.json").write_text('{"pooling_mode": "max"}', "utf-8")
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "modules.json").write_text(text, "utf-8")
    found = read_pooling(folder)
    assert (found.modes, found.stated) == (("mean",), False)
    assert bool(found.problem) == (text != '[{"type": 3}]')
