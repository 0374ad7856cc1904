"""Training: resumable at any step, bit for bit; what it leaves on disk; and that it learns."""

import copy
import random
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

from model.checkpoints.files import sha256
from model.checkpoints.snapshots import newest_step
from model.checkpoints.store import MODELS_VARIABLE, CheckpointError, load_checkpoint
from model.checkpoints.tokenizer import train_tokenizer
from model.hooks import recording
from model.network.config import PAD, TransformerConfig
from model.network.encoder_decoder import Transformer
from model.training.data import Batch, Text, encode_pairs
from model.training.loss import label_smoothed_loss
from model.training.schedule import noam
from model.training.trainer import SNAPSHOT_STEPS, Trainer, TrainingOptions
from tests.model.tiny import SENTENCES

OPTIONS = TrainingOptions(steps=12, max_tokens=90, warmup=10, sampling=0.2, evaluate_every=4, average=2)
TIMES = ["hours", "tokens_per_second"]


@pytest.fixture
def new_trainer(tokenizer):
    """A function of a folder and options that starts a trainer with dropout, sampling and a tiny model."""

    def new(folder: Path, options: TrainingOptions = OPTIONS, dropout: float = 0.3, rank: int = 0) -> Trainer:
        config = TransformerConfig(
            len(tokenizer), d_model=16, n_heads=2, d_ff=16, n_encoder_layers=1, n_decoder_layers=1, dropout=dropout
        )
        torch.manual_seed(options.seed)
        trainer = Trainer(
            folder, Transformer(config), tokenizer, [Text(SENTENCES)], options, lambda model: measure(model)
        )
        trainer.rank = rank
        return trainer

    return new


def measure(model: Transformer) -> dict[str, float]:
    """Draws random numbers, as an evaluation may, and depends on the weights."""
    assert not model.training
    return {"dev_loss": model.output.weight.square().mean().item() + 0 * torch.rand(1).item()}


def run(trainer: Trainer, until: int | None = None) -> Trainer:
    """To the end, or killed right after `until` steps and a save."""
    for progress in trainer.run():
        if progress.step == until:
            trainer.save()
            break
    return trainer


def assert_same_training(one: Trainer, other: Trainer) -> None:
    assert replace(one.progress, seconds=0) == replace(other.progress, seconds=0)
    for name, tensor in one.model.state_dict().items():
        assert torch.equal(tensor, other.model.state_dict()[name]), name
    for ours, theirs in zip(one.optimizers, other.optimizers, strict=True):
        for moments, others in zip(ours.state.values(), theirs.state.values(), strict=True):
            assert moments
            assert all(torch.equal(moments[name], others[name]) for name in moments)


def assert_same_files(one: Path, other: Path) -> None:
    """Weights, averages, snapshots and vocabulary byte for byte; the log but for its times."""
    files = sorted(
        path.relative_to(one) for path in one.rglob("*") if path.suffix in (".safetensors", ".model", ".json")
    )
    assert files == sorted(
        p.relative_to(other) for p in other.rglob("*") if p.suffix in (".safetensors", ".model", ".json")
    )
    for file in files:
        assert (one / file).read_bytes() == (other / file).read_bytes(), file
    logs = [pd.read_csv(folder / "log.csv").drop(columns=TIMES) for folder in (one, other)]
    pd.testing.assert_frame_equal(*logs, check_exact=True)


def resumed(trainer: Trainer) -> Trainer:
    """Where the folder's state is, after other random numbers."""
    torch.rand(100)
    trainer.resume()
    return trainer


@pytest.mark.parametrize(("killed_after", "optimizer"), [(1, "adam"), (4, "adam"), (7, "muon"), (11, "muon")])
def test_a_resumed_run_is_the_uninterrupted_run_bit_for_bit(new_trainer, tmp_path, killed_after, optimizer):
    options = replace(OPTIONS, optimizer=optimizer)
    whole = run(new_trainer(tmp_path / "whole", options))
    run(new_trainer(tmp_path / "parts", options), until=killed_after)
    again = resumed(new_trainer(tmp_path / "parts", options))
    assert again.progress.step == killed_after
    assert_same_training(whole, run(again))
    assert_same_files(tmp_path / "whole", tmp_path / "parts")


def test_steps_that_were_lost_are_done_again_the_same_way(new_trainer, tmp_path):
    """The state is from step 3; the log and the averages went on to step 8 before the machine stopped."""
    whole, killed = run(new_trainer(tmp_path / "whole")), new_trainer(tmp_path / "parts")
    for progress in killed.run():
        if progress.step == 3:
            killed.save()
            state = (tmp_path / "parts" / "state.pt").read_bytes()
        if progress.step == 9:
            break
    (tmp_path / "parts" / "state.pt").write_bytes(state)
    assert_same_training(whole, run(resumed(new_trainer(tmp_path / "parts"))))
    assert_same_files(tmp_path / "whole", tmp_path / "parts")


def test_another_process_draws_other_dropout_and_resumes_it_too(new_trainer, tmp_path):
    one_batch = replace(OPTIONS, max_tokens=10_000, sampling=0.0)
    first, second = (run(new_trainer(tmp_path / f"rank-{rank}", one_batch, rank=rank)) for rank in (0, 1))
    assert not torch.equal(first.model.output.weight, second.model.output.weight)
    (tmp_path / "parts").mkdir()
    run(new_trainer(tmp_path / "parts", one_batch, rank=1), until=5)
    resumed = new_trainer(tmp_path / "parts", one_batch, rank=1)
    resumed.resume()
    assert_same_training(second, run(resumed))


def test_a_finished_run_stays_as_it_is(new_trainer, tmp_path):
    finished = run(new_trainer(tmp_path))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    again = new_trainer(tmp_path)
    again.resume()
    assert_same_training(finished, run(again))
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


def test_who_opens_the_folder_while_it_is_written_gets_whole_weights_with_their_own_hash(new_trainer, tmp_path):
    """A reader opens it again and again while every step saves a checkpoint."""
    trainer, saved, steps = new_trainer(tmp_path, replace(OPTIONS, steps=16, evaluate_every=1)), {}, []

    def train() -> None:
        for progress in trainer.run():
            path = tmp_path / "model.safetensors"
            saved[sha256(path)] = load_file(path)
            steps.append((progress.step, newest_step(str(tmp_path))))

    writer = Thread(target=train)
    writer.start()
    opened = []
    while writer.is_alive():
        if (tmp_path / "config.json").exists():
            opened.append(load_checkpoint(str(tmp_path), "cpu"))
    writer.join()
    assert steps == [(step, step) for step in range(1, 17)]
    assert len({each.hash for each in opened}) > 1
    for each in opened:
        for name, weights in each.model.weights().items():
            assert torch.equal(weights, saved[each.hash][name].float()), name


def test_a_folder_in_which_training_has_only_begun_says_when_it_opens(new_trainer, tmp_path, monkeypatch):
    for progress in new_trainer(tmp_path).run():
        if progress.step == 2:
            break
    (tmp_path / "tokenizer.model").write_bytes(b"")  # as the command line has written it before
    monkeypatch.setenv(MODELS_VARIABLE, str(tmp_path))
    with pytest.raises(CheckpointError, match=r"no checkpoint yet: .* at its first evaluation"):
        load_checkpoint(str(tmp_path), "cpu")


def test_zero_minutes_are_one_step(new_trainer, tmp_path):
    trainer = new_trainer(tmp_path)
    assert [progress.step for progress in trainer.run(minutes=0)] == [1]
    assert (tmp_path / "state.pt").exists()


def test_the_weights_are_kept_at_half_powers_of_ten(new_trainer, tmp_path):
    trainer = run(new_trainer(tmp_path, replace(OPTIONS, steps=33, evaluate_every=33)))
    assert sorted(path.name for path in (tmp_path / "snapshots").iterdir()) == [
        f"step-{step:06}.safetensors" for step in (0, 10, 32)
    ]
    assert len(SNAPSHOT_STEPS) >= 8
    first = load_file(tmp_path / "snapshots" / "step-000000.safetensors")
    assert first.keys() == dict(trainer.model.named_parameters()).keys()
    assert not torch.equal(
        first["output.weight" if "output.weight" in first else "src_embedding.tokens.weight"].float(),
        trainer.model.output.weight,
    )


def test_the_log_has_a_row_for_each_evaluation(new_trainer, tmp_path):
    run(new_trainer(tmp_path))
    log = pd.read_csv(tmp_path / "log.csv")
    columns = ["step", "epoch", "learning_rate", "tokens", "train_loss", "hours", "tokens_per_second", "dev_loss"]
    assert log.columns.tolist() == columns
    assert log["step"].tolist() == [4, 8, 12]
    assert log["learning_rate"].tolist() == pytest.approx([noam(step, 16, 10) for step in (4, 8, 12)], rel=1e-5)
    assert (log[["train_loss", "tokens_per_second"]] > 0).all(axis=None)


def test_the_log_counts_the_tokens_that_the_model_has_read_without_padding(new_trainer, tmp_path):
    trainer = new_trainer(tmp_path, replace(OPTIONS, sampling=0.0, max_tokens=10_000, steps=4, evaluate_every=2))
    run(trainer)
    pairs = encode_pairs(trainer.tokenizer, SENTENCES, 100)
    epoch = sum(len(src) + len(tgt) - 1 for src, tgt in pairs)
    assert pd.read_csv(tmp_path / "log.csv")["tokens"].tolist() == [2 * epoch, 4 * epoch]


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_only_queries_and_keys_decay(new_trainer, tmp_path, optimizer):
    """Beside a run without decay, the first step shrinks W_Q and W_K by rate times decay, and nothing else."""
    options = replace(OPTIONS, steps=1, max_tokens=10_000, sampling=0.0, optimizer=optimizer)
    start = copy.deepcopy(new_trainer(tmp_path / "start", options, dropout=0.0).model)
    plain, decayed = (
        run(new_trainer(tmp_path / f"{decay}", replace(options, decay_qk=decay), dropout=0.0)).model
        for decay in (0.0, 0.5)
    )
    for name, before in start.named_parameters():
        one, other = plain.get_parameter(name), decayed.get_parameter(name)
        if name.endswith(("w_q.weight", "w_k.weight")):
            torch.testing.assert_close(one - other, noam(1, 16, 10) * 0.5 * before, rtol=1e-3, atol=1e-7)
        else:
            assert torch.equal(one, other), name


def test_a_run_ends_with_scores_within_its_limit(new_trainer, tokenizer, tmp_path):
    """The last step of a cooldown has a rate of 0, so its scores are those of the end, but for the clip after it."""
    options = replace(OPTIONS, steps=8, max_tokens=10_000, sampling=0.0, lr_factor=2, cooldown=4)
    pairs, largest = Batch.of(encode_pairs(tokenizer, SENTENCES, 100)), {}
    for limit in (0.1, 0.0):
        model = run(new_trainer(tmp_path / f"{limit}", replace(options, clip_scores=limit), dropout=0.0)).model
        with torch.no_grad(), recording(model) as found:
            model(*pairs.inputs)
        largest[limit] = float(found["encoder.layers.0.self_attn.masked"].max())
    assert largest[0.1] == pytest.approx(0.1, rel=1e-3)
    assert largest[0.0] > 0.2


def test_the_checkpoint_is_the_mean_of_the_last_evaluations_in_half_precision(new_trainer, tmp_path):
    trainer, kept = new_trainer(tmp_path), []
    for progress in trainer.run():
        if progress.step % OPTIONS.evaluate_every == 0:
            kept.append({name: tensor.detach().clone() for name, tensor in trainer.model.named_parameters()})
    model = load_checkpoint(str(tmp_path), device="cpu").model
    for name, parameter in model.named_parameters():
        mean = torch.stack([weights[name] for weights in kept[-2:]]).mean(dim=0)
        assert torch.equal(parameter, mean.half().float()), name


def test_evaluation_does_not_change_what_is_trained(new_trainer, tmp_path):
    often = run(new_trainer(tmp_path / "often", replace(OPTIONS, evaluate_every=1)))
    seldom = run(new_trainer(tmp_path / "seldom", replace(OPTIONS, evaluate_every=12)))
    for name, tensor in often.model.state_dict().items():
        assert torch.equal(tensor, seldom.model.state_dict()[name]), name


def test_one_step_is_adam_on_the_mean_loss_per_token(new_trainer, tmp_path):
    """With a batch of everything, no dropout and no sampling; at step 1 Adam moves each weight by the rate."""
    options = replace(OPTIONS, steps=1, max_tokens=10_000, sampling=0.0)
    trainer = new_trainer(tmp_path, options, dropout=0.0)
    before = copy.deepcopy(trainer.model)
    batch = Batch.of(encode_pairs(trainer.tokenizer, SENTENCES, 100))
    loss = label_smoothed_loss(before(batch.src, batch.tgt_in), batch.tgt_out, options.label_smoothing)
    (loss / (batch.tgt_out != PAD).sum()).backward()
    run(trainer)
    rate = noam(1, 16, 10)
    group = trainer.optimizers[0].param_groups[0]
    assert (group["lr"], group["betas"], group["eps"]) == (rate, (0.9, 0.98), 1e-9)
    for name, tensor in trainer.model.named_parameters():
        torch.testing.assert_close(tensor.grad, before.get_parameter(name).grad, rtol=1e-4, atol=1e-6)
        moved = (tensor - before.get_parameter(name)).detach().abs()
        assert moved.max() <= rate * 1.01, name
        large = tensor.grad.abs() > 1e-4
        torch.testing.assert_close(moved[large], torch.full_like(moved[large], rate), rtol=1e-2, atol=0)


def test_muon_moves_the_matrices_of_the_layers_in_steps_as_large_as_adams(new_trainer, tmp_path):
    """The singular values of a step are alike: no direction of a matrix learns much faster than another."""
    options = replace(OPTIONS, steps=1, max_tokens=10_000, sampling=0.0, optimizer="muon")
    trainer = new_trainer(tmp_path, options, dropout=0.0)
    before = copy.deepcopy(trainer.model)
    run(trainer)
    rate = noam(1, 16, 10)
    for name, tensor in trainer.model.named_parameters():
        moved = (tensor - before.get_parameter(name)).detach()
        if tensor.ndim == 2 and ".layers." in name:
            values = torch.linalg.svdvals(moved)
            assert 0.05 * rate < moved.square().mean().sqrt() < rate, name
            assert values[0] < 3 * values[len(values) // 2], name
        else:
            assert moved.abs().max() <= rate * 1.01, name


def test_pairs_that_are_all_too_long_are_refused(new_trainer, tmp_path):
    trainer = new_trainer(tmp_path)
    trainer.texts = [Text([("x" * 2000, "y")])]
    with pytest.raises(ValueError, match="no example has at most max_len = 512 tokens"):
        run(trainer)


def test_a_tiny_model_learns_to_reverse_sentences_it_has_not_seen(tmp_path):
    rng = random.Random(0)
    texts = [" ".join(rng.choices("abcdefgh", k=rng.randint(2, 4))) for _ in range(500)]
    train, unseen = texts[:400], sorted(set(texts[400:]) - set(texts[:400]))
    tokenizer = train_tokenizer(train, 276)
    config = TransformerConfig(276, d_model=32, n_heads=4, d_ff=64, n_encoder_layers=1, n_decoder_layers=1, dropout=0.0)
    options = TrainingOptions(
        steps=150, max_tokens=500, warmup=30, lr_factor=0.4, label_smoothing=0.0, evaluate_every=50, average=1
    )
    run(
        Trainer(
            tmp_path, Transformer(config), tokenizer, [Text([(t, t[::-1]) for t in train])], options, lambda _model: {}
        )
    )
    losses = pd.read_csv(tmp_path / "log.csv")["train_loss"]
    assert losses.iloc[-1] < losses.iloc[0] / 4
    reversed_texts = load_checkpoint(str(tmp_path), device="cpu").translate(unseen, beam_size=1)
    right = sum(found == text[::-1] for text, found in zip(unseen, reversed_texts, strict=True))
    assert right > len(unseen) / 6, f"{right} of {len(unseen)}; who guesses gets none"
