"""What each family learns from: pairs, next tokens, masked tokens."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model import train
from model.checkpoints.store import load_weights
from model.checkpoints.tokenizer import MASK, MASK_TOKEN, Tokenizer, train_tokenizer
from model.network.config import BOS, EOS, PAD, PRESETS
from model.network.families import new_network
from model.training.data import LineBatch, encode_lines
from model.training.tasks import TASKS
from tests.model.strategies import few

LINES = ["A dog runs through the snow.", "Two dogs play.", "The old man reads a book in the garden."] * 30


@pytest.fixture(scope="module")
def vocabulary() -> Tokenizer:
    return train_tokenizer(LINES, 286, masked=True)


def test_each_token_of_a_line_is_predicted_once_however_long_the_line(vocabulary):
    (short,) = encode_lines(vocabulary, LINES[:1], max_len=100)
    assert (short[0], short[-1]) == (BOS, EOS)
    pieces = encode_lines(vocabulary, LINES[:1], max_len=5)
    assert all(len(piece) <= 6 for piece in pieces)
    assert [token for piece in pieces for token in piece[1:]] == short[1:]


@pytest.mark.parametrize("preset", ["lm", "mlm"])
def test_a_line_longer_than_the_model_is_cut_into_pieces_that_it_can_read(preset, vocabulary):
    config = replace(PRESETS[preset], vocab_size=286, max_len=5)
    task = TASKS[config.family]
    pieces = task.encode(vocabulary, LINES[:1], config.max_len)
    assert len(pieces) > 1
    assert task.batch(pieces, config, "cpu", "").inputs[0].shape[1] == config.max_len


def test_a_language_model_predicts_the_token_that_follows():
    batch = LineBatch.of_next_tokens([[BOS, 7, 8, EOS], [BOS, 9, EOS]])
    assert batch.inputs[0].tolist() == [[BOS, 7, 8], [BOS, 9, EOS]]
    assert batch.targets.tolist() == [[7, 8, EOS], [9, EOS, PAD]]


@few
@given(st.lists(st.lists(st.integers(MASK + 1, 299), min_size=1, max_size=30), min_size=1, max_size=8), st.text())
def test_a_masked_model_guesses_hidden_tokens_and_at_least_one_of_each_line(lines, seed):
    lines = [[BOS, *line, EOS] for line in lines]
    batch = LineBatch.of_masked_tokens(lines, MASK, 300, seed)
    guessed = batch.targets != PAD
    original = LineBatch.of_masked_tokens(lines, MASK, 300, seed)
    assert torch.equal(batch.tokens, original.tokens)  # the seed decides
    assert guessed.any(dim=1).all()
    for row, line in enumerate(lines):
        for position, token in enumerate(line):
            if guessed[row, position]:
                assert batch.targets[row, position] == token > EOS
            else:
                assert batch.tokens[row, position] == token


def test_most_hidden_tokens_are_masked_some_are_replaced_and_some_stay():
    """Devlin et al. 2019: 15 % are chosen; of these 80 % become <mask>, 10 % a random token, 10 % stay."""
    line = [BOS, *[50] * 100_000, EOS]
    batch = LineBatch.of_masked_tokens([line], MASK, 300, "")
    chosen = batch.tokens[batch.targets != PAD]
    assert abs(len(chosen) / 100_000 - 0.15) < 0.01
    assert abs((chosen == MASK).float().mean() - 0.8) < 0.02
    assert abs((chosen == 50).float().mean() - 0.1) < 0.02


@pytest.mark.parametrize(("preset", "score"), [("lm", "dev_bits_per_byte"), ("mlm", "dev_accuracy")])
def test_each_family_trains_from_plain_lines_and_logs_its_own_score(preset, score, tmp_path):
    (tmp_path / "text.txt").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    sizes = ["--vocab-size=286", "--d-model=16", "--n-heads=4", "--n-kv-heads=2", "--d-ff=24"]
    sizes += ["--n-decoder-layers=1"] if preset == "lm" else ["--n-encoder-layers=1"]
    files = ["--train", str(tmp_path / "text.txt"), "--dev", str(tmp_path / "text.txt"), "--out", str(tmp_path / "run")]
    steps = ["--steps=60", "--evaluate-every=30", "--warmup=10", "--lr-factor=2", "--max-tokens=400", "--dropout=0"]
    train.main(["--preset", preset, *sizes, *files, *steps])
    header, *_, last = (tmp_path / "run" / "log.csv").read_text().splitlines()
    column = header.split(",").index("dev_loss")
    assert score in header.split(",")
    # Guessing loses ln 286 = 5.7 nats; from one evaluation to the next the loss may rise.
    assert float(last.split(",")[column]) < 0.75 * math.log(286)
    trainer = train.new_trainer(["--device", "cpu", "--resume", "--preset", preset, *sizes, *files])
    load_weights(new_network(trainer.model.config), tmp_path / "run" / "model.safetensors")
    assert (trainer.tokenizer.tokens([MASK]) == [f"\u2581{MASK_TOKEN}"]) == (preset == "mlm")
