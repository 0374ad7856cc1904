"""A checkpoint's folder read as a card: what is there, and a sentence for what is not."""

import json
import shlex
from pathlib import Path

import pytest

from model.background.table_3 import TABLE_3, rounded_millions
from model.checkpoints.card import Score, evaluate_command, read_card
from model.checkpoints.files import atomic_write
from model.checkpoints.store import sha256
from model.evaluate import Measured, record_scores

SHIPPED = Path(__file__).parents[3] / "checkpoints" / "multi30k-tiny"


def test_what_evaluate_records_is_read_back(tmp_path: Path) -> None:
    scores = {
        "lower-cased BLEU": Measured(39.094, "tok:none"),
        "chrF2": Measured(61.238, "nc:6", 1.015),
        "BLEU": Measured(38.731, "tok:13a", 0.5),
    }
    record_scores(tmp_path / "metrics.json", "a set", 4, scores)
    record_scores(tmp_path / "metrics.json", "other", 1, {"BLEU": Measured(3.0, "tok:13a")})
    read = read_card(tmp_path).scores
    assert read == (
        Score("a set", "lower-cased BLEU", 39.09, 4, "tok:none"),
        Score("a set", "chrF2", 61.24, 4, "nc:6", 1.01),
        Score("a set", "BLEU", 38.73, 4, "tok:13a", 0.5),
        Score("other", "BLEU", 3.0, 1, "tok:13a"),
    )


def test_the_command_says_beam_set_and_reference_and_survives_a_shell(tmp_path: Path) -> None:
    scores = {"lower-cased BLEU": Measured(39.0, "x"), "BLEU": Measured(38.0, "y")}
    record_scores(tmp_path / "metrics.json", "a set; rm", 7, scores)
    record_scores(tmp_path / "metrics.json", "plain", 1, {"BLEU": Measured(3.0, "y")})
    read = read_card(tmp_path).scores
    words = shlex.split(evaluate_command("my model", "a set; rm", read))
    assert words[3:] == [
        *("--checkpoint", "my model", "--data", "FILE", "--beam-size", "7"),
        *("--lowercased-reference", "REFERENCE", "--record", "a set; rm"),
    ]
    assert "--lowercased-reference" not in evaluate_command("my model", "plain", read)


def test_an_empty_folder_is_all_sentences(tmp_path: Path) -> None:
    card = read_card(tmp_path)
    assert set(card.missing) == {"metrics.json", "log.csv", "README.md", "config.json"}
    assert all(sentence.startswith(f"This checkpoint has no {name}: ") for name, sentence in card.missing.items())
    assert (card.scores, card.log, card.readme, card.weights_hash, dict(card.files)) == ((), (), "", "", {})


def scored(value: str, beam_size: str = "4") -> str:
    return f'{{"a": {{"beam_size": {beam_size}, "scores": {{"BLEU": {{"value": {value}, "signature": ""}}}}}}}}'


BROKEN = {
    "metrics.json": [
        *("", '{"dev": {"beam', "[1, 2, 3]", "null", '{"a": 1}', "[" * 100_000, b"\xff\xfe\x00"),
        *(scored(value) for value in ("NaN", "1" + "0" * 400, '"much"')),
        scored("1", beam_size="1e999"),
    ],
    "log.csv": [
        *("step,dev_loss\none,two\n", "step,dev_loss\ninf,1\n", "step,dev_loss\nnan,1\n", "step,dev_loss\n1,2,3,4\n"),
        *("step\n" + "1" * 200_000, 'step,dev_loss\n1,"2\n3,4\n', b"\xff\xfe\x00"),
    ],
    "README.md": [b"\xff\xfe\xff"],
}


@pytest.mark.parametrize(("name", "content"), [(name, content) for name, those in BROKEN.items() for content in those])
def test_a_broken_file_is_a_sentence_without_a_path(tmp_path: Path, name: str, content: str | bytes) -> None:
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    card = read_card(tmp_path)
    assert (card.scores, card.log, card.readme) == ((), (), "")
    assert card.missing[name].startswith(f"This checkpoint's {name} cannot be read")
    assert str(tmp_path) not in card.missing[name]


def test_unfinished_files_of_a_save_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with atomic_write(tmp_path / "config.json") as path:
        path.write_bytes(b"half")
        assert read_card(tmp_path).files == {"config.json": 2}


def test_the_shipped_checkpoint_lacks_nothing_and_its_card_is_its_files() -> None:
    card = read_card(SHIPPED)
    assert not card.missing
    assert card.readme == (SHIPPED / "README.md").read_text("utf-8")
    assert card.weights_hash == sha256(SHIPPED / "model.safetensors")
    assert {score.dataset for score in card.scores} == set(json.loads((SHIPPED / "metrics.json").read_text("utf-8")))
    assert sum(card.files.values()) == sum(path.stat().st_size for path in SHIPPED.rglob("*") if path.is_file())
    last = (SHIPPED / "log.csv").read_text("utf-8").splitlines()[-1].split(",")
    assert card.log[-1]["step"] == float(last[0])
    assert list(card.log[-1].values()) == [float(cell) for cell in last]


def test_table_3_has_the_papers_five_groups_between_base_and_big() -> None:
    assert "".join(dict.fromkeys(row.group for row in TABLE_3)) == "ABCDE"
    assert (TABLE_3[0].change, TABLE_3[-1].change) == ("base", "big")
    assert (rounded_millions("base"), rounded_millions("big")) == (65, 213)
    assert min(TABLE_3, key=lambda row: row.perplexity).change == "big"
