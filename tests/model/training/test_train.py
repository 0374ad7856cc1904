"""The training command line: killed and resumed, in several processes, and its refusals."""

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

from model import train
from model.checkpoints.store import load_checkpoint, save_checkpoint
from model.network.batch import token_batches
from model.network.config import TransformerConfig
from model.training.data import encode_pairs, read_pairs
from model.training.trainer import TrainingDiverged, TrainingOptions
from tests.model.tiny import SENTENCES
from tests.model.training.test_trainer import assert_same_files

TWO_BATCHES, ONE_BATCH = 150, 2000
"""Tokens a batch, so that all sentences make this many batches."""
ROOT = Path(__file__).parents[3]
ENVIRONMENT = os.environ | {
    "PYTHONPATH": str(ROOT),
    "OMP_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "PASSIVE",
    "CUDA_VISIBLE_DEVICES": "",
}


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """As the subprocesses have: sums in another order would end in other last bits."""
    torch.set_num_threads(1)


@pytest.fixture
def command(data: Path, tmp_path: Path):
    """A function of an output folder and more options that gives train's arguments."""
    development = tmp_path / "development.tsv"
    development.write_text("A dog runs.\tEin Hund rennt.\n", encoding="utf-8")

    def arguments(out: str, **options: object) -> list[str]:
        small = {"preset": "toy", "vocab_size": 360, "max_len": 40, "max_tokens": 60}
        options = small | {"steps": 15, "evaluate_every": 5} | options
        fixed = ["--train", str(data), "--dev", str(development), "--out", str(tmp_path / out), "--device", "cpu"]
        return fixed + [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]

    return arguments


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system cannot kill a process outright")
def test_a_run_killed_outright_and_resumed_ends_as_the_uninterrupted_one(command, tmp_path):
    options = {"sampling": 0.2, "dropout": 0.3, "average": 2}
    endless = command("killed", **options, steps=100_000)
    killed = subprocess.Popen([sys.executable, "-m", "model.train", *endless], env=ENVIRONMENT)
    state, deadline = tmp_path / "killed" / "state.pt", time.monotonic() + 120
    while not state.exists() and killed.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    reached = torch.load(state, weights_only=True)["progress"]["step"]
    assert reached > 0
    options["steps"] = reached + 10
    train.main([*command("killed", **options), "--resume"])
    train.main(command("whole", **options))
    assert_same_files(tmp_path / "killed", tmp_path / "whole")
    one, other = (torch.load(tmp_path / name / "state.pt", weights_only=True) for name in ("killed", "whole"))
    for name, tensor in one["model"].items():
        assert torch.equal(tensor, other["model"][name]), name
    for number, moments in one["optimizers"][0]["state"].items():
        for name, tensor in moments.items():
            assert torch.equal(tensor, other["optimizers"][0]["state"][number][name]), (number, name)


@pytest.mark.parametrize("factor", ["1e9", "1e38"])
def test_a_run_that_diverges_stops_with_the_step_and_goes_on_from_the_last_finite_weights(command, tmp_path, factor):
    """Once at its beginning, and once after it has saved a state."""
    folder = tmp_path / "run"

    def finite() -> bool:
        files = [load_file(path) for path in folder.rglob("*.safetensors")]
        states = [torch.load(folder / "state.pt", weights_only=True)["model"]]
        return all(tensor.isfinite().all() for weights in [*files, *states] for tensor in weights.values())

    for steps, start in ((4, 0), (8, 4)):
        with pytest.raises(TrainingDiverged, match=r"diverged at step \d+: .* smaller --lr-factor"):
            train.main([*command("run", steps=8, evaluate_every=4, lr_factor=factor), "--resume"])
        assert finite()
        assert torch.load(folder / "state.pt", weights_only=True)["progress"]["step"] == start
        train.main([*command("run", steps=steps, evaluate_every=4, lr_factor=1), "--resume"])
        assert finite()
    assert pd.read_csv(folder / "log.csv")["step"].tolist() == [4, 8]
    assert load_checkpoint(str(folder), "cpu").translate(["A dog."], 1)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("steps", value) for value in ("-5", "0", "many")),
        *(("evaluate_every", value) for value in ("0", "-1")),
        *(("minutes", value) for value in ("-1", "nan", "inf")),
        *(("max_tokens", value) for value in ("0", "-7")),
        *(("dropout", value) for value in ("2", "1", "-0.1", "nan")),
        *(("seed", value) for value in ("one", "1.5", str(2**70))),
        *(("lr_factor", value) for value in ("0", "-1", "nan", "inf")),
        *(("label_smoothing", value) for value in ("1", "nan")),
        *(("vocab_size", "0"), ("warmup", "-1"), ("cooldown", "-1"), ("average", "0"), ("sampling", "-0.5")),
        *(("n_heads", "5"), ("max_len", "0"), ("d_model", "63"), ("window", "-1")),
        *(("preset", "huge"), ("precision", "low")),
    ],
)
def test_an_option_out_of_its_range_is_refused_by_its_name(command, capsys, tmp_path, option, value):
    with pytest.raises(SystemExit) as stopped:
        train.main(command("out", **{option: value}))
    assert stopped.value.code == 2
    sentence = capsys.readouterr().err.splitlines()[-1]
    assert f"--{option.replace('_', '-')}" in sentence
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("size", "why"), [(9999, "too large for this text"), (280, "too small for"), (1, "alone are 260")]
)
def test_a_vocabulary_that_a_text_cannot_give_is_refused_in_words(command, size, why):
    with pytest.raises(ValueError, match=rf"^A vocabulary of {size:,} pieces .*{why}.*--vocab-size") as refused:
        train.main(command("out", vocab_size=size))
    assert ".cc" not in str(refused.value)


def test_two_processes_hold_the_same_weights_and_learn_what_one_learns(command, tmp_path):
    """Without dropout, and with two batches an epoch for two processes where one process has both in one batch."""
    options = {"dropout": 0.0, "steps": 3, "evaluate_every": 3, "warmup": 100}
    script = Path(__file__).with_name("rank_weights.py")
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(script)]
    subprocess.run(
        [*torchrun, *command("two", max_tokens=TWO_BATCHES, **options)], env=ENVIRONMENT, check=True, timeout=240
    )
    train.main(command("one", max_tokens=ONE_BATCH, **options))

    ranks = [torch.load(tmp_path / "two" / f"rank-{rank}.pt", weights_only=True) for rank in (0, 1)]
    alone = torch.load(tmp_path / "one" / "state.pt", weights_only=True)
    start = train.new_trainer([*command("two", **options), "--resume"])
    lengths = [max(map(len, pair)) for pair in encode_pairs(start.tokenizer, start.texts[0].examples, 40)]
    assert [len(token_batches(lengths, size, "")) for size in (TWO_BATCHES, ONE_BATCH)] == [2, 1], (
        "the test's own premise"
    )
    for name, tensor in ranks[0].items():
        assert torch.equal(tensor, ranks[1][name]), name
        # A key's bias moves a whole row of scores, which softmax does not see: its gradient is rounding alone.
        if not name.endswith("w_k.bias"):
            torch.testing.assert_close(tensor, alone["model"][name], rtol=0, atol=1e-5)
    logs = [pd.read_csv(tmp_path / name / "log.csv") for name in ("one", "two")]
    assert logs[0]["train_loss"].tolist() == pytest.approx(logs[1]["train_loss"].tolist(), rel=1e-4)


def test_it_says_how_far_it_is_and_leaves_what_can_be_opened_and_a_log_of_loss_and_bleu(command, tmp_path, capsys):
    train.main(command("run", steps=2, evaluate_every=1, minutes=5))
    first, *_, last = capsys.readouterr().err.splitlines()
    assert first.startswith("step 1 of 2, ")
    assert last.startswith(f"{tmp_path / 'run'}: step 2 of 2, dev_loss ")
    assert last.endswith(f"--model {tmp_path / 'run'}")
    translator = load_checkpoint(str(tmp_path / "run"), device="cpu")
    assert translator.model.config.d_model == 64
    assert len(translator.tokenizer) == translator.model.config.vocab_size == 360
    log = pd.read_csv(tmp_path / "run" / "log.csv")
    assert {"train_loss", "dev_loss", "dev_bleu", "tokens_per_second", "learning_rate"} <= set(log.columns)
    assert log["step"].tolist() == [1, 2]
    places = [column for column in log.columns if column.startswith("evenness_")]
    assert places == [f"evenness_{kind.name}_{layer}" for kind in translator.model.kinds for layer in kind.layers]
    assert log["evenness"].between(log[places].min(axis=1), log[places].max(axis=1)).all()
    assert (log["largest_score"] > 0).all()


def test_heads_that_look_at_single_tokens_are_warned_of(command, tmp_path, capsys):
    train.main(command("even", steps=1, evaluate_every=1))
    assert "entropy collapse" not in capsys.readouterr().err
    start = load_checkpoint(str(tmp_path / "even"), device="cpu")
    for _, attention in start.model.attentions().values():
        attention.w_q.weight.data.mul_(300)
    save_checkpoint(tmp_path / "sharp", start.model, start.tokenizer, start.model.weights())
    train.main([*command("collapsed", steps=1, evaluate_every=1), "--start-from", str(tmp_path / "sharp")])
    assert "entropy collapse" in capsys.readouterr().err


def test_development_pairs_that_do_not_fit_are_left_out_of_loss_and_bleu(command, tmp_path):
    arguments, development = command("run", steps=1, evaluate_every=1), tmp_path / "dev.tsv"
    development.write_text(f"{'x' * 60}\ty\nA dog.\tEin Hund.\n", encoding="utf-8")
    arguments[arguments.index("--dev") + 1] = str(development)
    train.main(arguments)
    development.write_text(f"{'x' * 60}\ty\n", encoding="utf-8")
    with pytest.raises(ValueError, match="has no example of at most max_len = 40 tokens"):
        train.main([*arguments, "--resume"])


def test_a_run_may_start_from_another_s_weights_and_vocabulary_if_they_fit(command, tmp_path):
    train.main(command("first", steps=1, evaluate_every=1))
    first = load_checkpoint(str(tmp_path / "first"), device="cpu")
    arguments = [*command("second", dropout=0.25), "--start-from", str(tmp_path / "first")]
    trainer = train.new_trainer(arguments)
    assert trainer.tokenizer.serialized == first.tokenizer.serialized
    assert trainer.model.config == replace(first.model.config, dropout=0.25)
    for name, tensor in first.model.state_dict().items():
        assert torch.equal(trainer.model.state_dict()[name], tensor), name
    assert trainer.progress.step == 0
    with pytest.raises(ValueError, match="do not fit this configuration"):
        train.main([*arguments, "--norm=pre"])


@pytest.mark.parametrize(
    ("flags", "changed"),
    [
        (["--norm=pre", "--no-tie-embeddings", "--activation=gelu"], {"norm": "pre", "tie_embeddings": False}),
        (["--positions=learned", "--n-heads=8", "--no-scale-scores"], {"positions": "learned", "scale_scores": False}),
    ],
)
def test_every_choice_of_the_configuration_can_be_trained_and_opened(command, tmp_path, flags, changed):
    train.main([*command("run", steps=3, evaluate_every=3, warmup=0, dropout=0, label_smoothing=0), *flags])
    translator = load_checkpoint(str(tmp_path / "run"), device="cpu")
    config = translator.model.config
    assert {name: getattr(config, name) for name in changed} == changed
    assert config.dropout == 0
    trace = translator.trace("A dog runs.", "Ein Hund rennt.")
    attention = trace.attention("cross", 0)
    divisor = attention.d_k**0.5 if config.scale_scores else 1.0
    assert attention.scaled == pytest.approx(attention.scores / divisor, rel=1e-6)
    rate = pd.read_csv(tmp_path / "run" / "log.csv")["learning_rate"].item()
    assert rate == pytest.approx((config.d_model * 3) ** -0.5, rel=1e-5)


def test_a_vocabulary_that_was_there_is_used_and_named_with_how_to_start_anew(command, tmp_path, capsys):
    train.main(command("run", steps=1, evaluate_every=1))
    assert "was there before" not in capsys.readouterr().err, "this run learned it"
    (tmp_path / "run" / "state.pt").unlink()
    before = (tmp_path / "run" / "tokenizer.model").read_bytes()
    train.main(command("run", steps=1, evaluate_every=1))
    said = capsys.readouterr().err
    assert f"{tmp_path / 'run' / 'tokenizer.model'} was there before" in said
    assert "delete it" in said
    assert (tmp_path / "run" / "tokenizer.model").read_bytes() == before


def test_the_help_explains_every_option(capsys):
    with pytest.raises(SystemExit):
        train.main(["--help"])
    printed = capsys.readouterr().out
    for name in (*TransformerConfig.__dataclass_fields__, *TrainingOptions.__dataclass_fields__):
        assert f"--{name.replace('_', '-')} " in printed.replace(",", " ")
        assert train.HELP[name].split()[0] in printed


def test_a_run_is_not_started_over_another(command, tmp_path, capsys):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "state.pt").touch()
    with pytest.raises(SystemExit):
        train.main(command("run"))
    assert re.search(r"run already contains a run: add --resume", capsys.readouterr().err)


def test_a_vocabulary_of_another_size_is_refused(command, tmp_path, tokenizer):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "tokenizer.model").write_bytes(tokenizer.serialized)
    with pytest.raises(ValueError, match=r"tokenizer\.model has 360 pieces: pass --vocab-size 360"):
        train.main(command("run", vocab_size=370))


def test_the_trained_pairs_are_those_of_all_files_named(command):
    arguments = command("run")
    data = arguments[1]
    arguments.insert(2, data)
    assert read_pairs(train._parse(arguments).train) == list(SENTENCES) * 2
