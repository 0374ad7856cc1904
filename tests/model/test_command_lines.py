"""python -m model.translate and python -m model.evaluate; that every command begins when it is called."""

import io
import json
import re
import runpy

import pytest

from model import evaluate, translate
from model.checkpoints.store import DEFAULT_CHECKPOINT, load_checkpoint
from model.checkpoints.translator import Translator
from tests.model.tiny import SENTENCES

pytestmark = pytest.mark.usefixtures("checkpoint_folder")


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in SENTENCES), encoding="utf-8")
    return path


def test_translate_writes_one_line_for_each_line(monkeypatch, capsys):
    lines = ["Two dogs.", "", "The cat sat on the mat."]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines) + "\n"))
    translate.main(["--checkpoint", DEFAULT_CHECKPOINT, "--beam-size", "2", "--device", "cpu"])
    expected = [translate.join_lines(text) for text in load_checkpoint(device="cpu").translate(lines, beam_size=2)]
    assert capsys.readouterr().out == "".join(f"{line}\n" for line in expected)
    assert expected[1] == ""


def test_a_line_break_in_a_translation_does_not_break_the_line(monkeypatch, capsys):
    monkeypatch.setattr(Translator, "translate", lambda _self, texts, _beam_size: ["ein\nHund\r\nda"] * len(texts))
    monkeypatch.setattr("sys.stdin", io.StringIO("a\nb\n"))
    translate.main(["--device", "cpu"])
    assert capsys.readouterr().out == "ein Hund da\nein Hund da\n"


def test_no_input_gives_no_output(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    translate.main(["--device", "cpu"])
    assert capsys.readouterr().out == ""


def test_evaluates_last_line_is_bleu_with_its_signature(data, capsys, tmp_path):
    output = tmp_path / "out.txt"
    evaluate.main([f"--data={data}", "--beam-size=1", "--device=cpu", f"--output={output}"])
    last = capsys.readouterr().out.splitlines()[-1]
    assert re.fullmatch(r"BLEU = \d+\.\d\d nrefs:1\|case:mixed\|eff:no\|tok:13a\|smooth:exp\|version:[\d.]+", last)
    assert len(output.read_text(encoding="utf-8").split("\n")) == len(SENTENCES) + 1


def test_a_perfect_translation_scores_a_hundred(data, capsys, monkeypatch):
    perfect = dict(SENTENCES)
    monkeypatch.setattr(Translator, "translate", lambda _self, texts, *_rest: [perfect[text] for text in texts])
    evaluate.main([f"--data={data}", "--device=cpu"])
    assert capsys.readouterr().out.splitlines()[-1].startswith("BLEU = 100.00 ")


def test_like_for_like_compares_lower_cased_normalised_tokenised_text(data, capsys, monkeypatch, tmp_path):
    perfect, reference = dict(SENTENCES), tmp_path / "reference.de"
    monkeypatch.setattr(Translator, "translate", lambda _self, texts, *_rest: [perfect[text] for text in texts])
    tokenised = [target.lower().replace(".", " .") for _, target in SENTENCES]
    reference.write_text("".join(f"{line}\n" for line in tokenised), encoding="utf-8")
    evaluate.main([f"--data={data}", "--device=cpu", f"--lowercased-reference={reference}"])
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("lower-cased, normalised, tokenised BLEU = 100.00 nrefs:1|case:mixed|eff:no|tok:none")
    assert last.startswith("BLEU = 100.00 ")


def test_scores_can_be_kept_beside_the_checkpoint(data, checkpoint_folder):
    metrics = checkpoint_folder / DEFAULT_CHECKPOINT / "metrics.json"
    try:
        for name in ("first", "second"):
            evaluate.main([f"--data={data}", "--beam-size=1", "--device=cpu", f"--record={name}"])
        kept = json.loads(metrics.read_text(encoding="utf-8"))
    finally:
        metrics.unlink(missing_ok=True)
    assert kept.keys() == {"first", "second"}
    assert kept["first"]["beam_size"] == 1
    assert kept["first"]["scores"]["BLEU"]["signature"].startswith("nrefs:1|")


@pytest.mark.parametrize("main", [translate.main, evaluate.main])
def test_help_and_wrong_options_are_argparses(main, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["--help"])
    assert stopped.value.code == 0
    assert "--checkpoint" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stopped:
        main(["--beam-size", "many"])
    assert stopped.value.code == 2


def test_an_unknown_checkpoint_is_answered_with_the_known_ones(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("A dog."))
    with pytest.raises(ValueError, match=f"no checkpoint 'en-fr'.*Available in .*: {DEFAULT_CHECKPOINT}"):
        translate.main(["--checkpoint", "en-fr"])


@pytest.mark.filterwarnings("ignore:.*found in sys.modules.*:RuntimeWarning")
@pytest.mark.parametrize(
    "command",
    [
        *("model.train", "model.evaluate", "model.translate", "model.ablations"),
        *("model.training.curves", "model.training.rivals", "model.training.reversal_task"),
    ],
)
def test_a_command_that_the_documents_name_does_something(command, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", [command, "--help"])
    with pytest.raises(SystemExit) as end:
        runpy.run_module(command, run_name="__main__")
    assert end.value.code == 0
    assert capsys.readouterr().out.startswith("usage: ")
