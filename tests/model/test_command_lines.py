"""python -m model.translate and python -m model.evaluate; that every command begins when it is called."""

import io
import json
import re
import runpy
import shlex
from importlib import import_module
from pkgutil import iter_modules

import pytest

from model import commands, evaluate, translate
from model.checkpoints.store import DEFAULT_CHECKPOINT, load_checkpoint
from model.checkpoints.translator import Translator
from model.command_line import run_command
from model.commands import head_scores
from tests.model.tiny import SENTENCES

COUNTS = ("n-held-out", "n-copies")
COMMANDS = [
    *("model.train", "model.evaluate", "model.translate", "model.training.reversal_task"),
    *(f"model.commands.{module.name}" for module in iter_modules(commands.__path__)),
]

pytestmark = pytest.mark.usefixtures("checkpoint_folder")


@pytest.mark.parametrize("lines", [["Two dogs.", "", "The cat sat on the mat."], []])
def test_translate_writes_one_line_for_each_line(lines, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
    translate.main(["--checkpoint", DEFAULT_CHECKPOINT, "--beam-size", "2", "--device", "cpu"])
    expected = [translate.join_lines(text) for text in load_checkpoint(device="cpu").translate(lines, beam_size=2)]
    assert capsys.readouterr().out == "".join(f"{line}\n" for line in expected)


def test_a_line_break_in_a_translation_does_not_break_the_line(monkeypatch, capsys):
    monkeypatch.setattr(Translator, "translate", lambda _self, texts, _beam_size: ["ein\nHund\r\nda"] * len(texts))
    monkeypatch.setattr("sys.stdin", io.StringIO("a\nb\n"))
    translate.main(["--device", "cpu"])
    assert capsys.readouterr().out == "ein Hund da\nein Hund da\n"


@pytest.fixture
def type_in(monkeypatch):
    """A function that puts bytes on standard input."""
    return lambda data: monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data), encoding="ascii"))


@pytest.mark.parametrize(
    "odd", ["A\tdog.", "A\u2028dog.", "A\x85dog.", "A\rdog.", "A\vdog.", "A\fdog.", " A\u200b\0 dog.\r", "\ufeffA dog."]
)
def test_a_line_is_translated_as_the_app_and_the_python_face_do(type_in, capsys, odd):
    translator = load_checkpoint(device="cpu")
    type_in(f"{odd}\n{odd}\n".encode())
    translate.main(["--device", "cpu"])
    assert capsys.readouterr().out == 2 * f"{translate.join_lines(translator.translate(['A dog.'])[0])}\n"
    assert translator.trace(odd).src_ids == translator.trace(translator.truncate(odd)).src_ids


@pytest.mark.parametrize(("data", "line"), [(b"Caf\xe9\n", 1), (b"A dog.\n\nA caf\xe9.\n", 3), (b"A\n\xff\xfe", 2)])
def test_bytes_that_are_no_text_are_named_with_their_line(type_in, capsys, monkeypatch, data, line):
    type_in(data)
    monkeypatch.setattr("sys.argv", ["translate", "--device", "cpu"])
    with pytest.raises(SystemExit, match=f"^error: standard input, line {line} is not UTF-8: byte 0x"):
        run_command(translate.main)
    assert capsys.readouterr().out == ""


def test_evaluates_last_line_is_bleu_with_its_signature(data, capsys, tmp_path):
    output = tmp_path / "out.txt"
    evaluate.main([f"--data={data}", "--beam-size=1", "--device=cpu", f"--output={output}"])
    before, last = capsys.readouterr().out.splitlines()[-2:]
    number, resampled = r"\d+\.\d\d", r"nrefs:1\|bs:1000\|seed:12345"
    how = rf"{resampled}\|case:mixed\|eff:no\|tok:13a\|smooth:exp\|version:[\d.]+"
    assert re.fullmatch(rf"BLEU = {number} ± {number} {how}", last)
    assert re.fullmatch(rf"chrF2 = {number} ± {number} {resampled}\|.*\|nc:6\|nw:0\|.*", before)
    assert len(output.read_text(encoding="utf-8").split("\n")) == len(SENTENCES) + 1


def test_a_perfect_translation_scores_a_hundred_also_of_lower_cased_tokenised_text(data, capsys, monkeypatch, tmp_path):
    perfect, reference = dict(SENTENCES), tmp_path / "reference.de"
    monkeypatch.setattr(Translator, "translate", lambda _self, texts, *_rest: [perfect[text] for text in texts])
    tokenised = [target.lower().replace(".", " .") for _, target in SENTENCES]
    reference.write_text("".join(f"{line}\n" for line in tokenised), encoding="utf-8")
    evaluate.main([f"--data={data}", "--device=cpu", f"--lowercased-reference={reference}"])
    first, _, last = capsys.readouterr().out.splitlines()
    assert first.startswith("lower-cased, normalised, tokenised BLEU = 100.00 ± 0.00 nrefs:1|")
    assert "|tok:none" in first
    assert last.startswith("BLEU = 100.00 ± 0.00 ")


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


@pytest.mark.parametrize(
    ("command", "option"),
    [
        *(("translate", f"--beam-size={size}") for size in ("0", "-1", "1.5", "four", "")),
        *(("evaluate --data x", option) for option in ("--beam-size=0", "--alpha=nan", "--alpha=-1", "--alpha=inf")),
        *(
            ("commands.head_scores --checkpoint x --data x --of x", f"--sentences={number}")
            for number in ("0", "-3", "all")
        ),
        *(("commands.alignment --data x", f"--sentences={number}") for number in ("0", "-2", "few")),
        *(("commands.ablations --train x --dev x --out x --gather x", option) for option in ("--seeds=0", "--jobs=-1")),
        *(
            (f"{name} --out x", f"--steps={steps}")
            for name in ("commands.recurrence", "commands.induction")
            for steps in ("0", "-5")
        ),
        *(("commands.mixture --train x --without x --hold-out x --out x", f"--{name}=0") for name in COUNTS),
        *(("commands.compare x.npz y.npz", f"--tolerance={share}") for share in ("-1", "nan", "small")),
    ],
)
def test_a_number_out_of_its_range_is_refused_with_the_name_of_its_option(
    command, option, capsys, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    module, *arguments = shlex.split(command)
    with pytest.raises(SystemExit) as stopped:
        import_module(f"model.{module}").main([*arguments, option])
    assert stopped.value.code == 2
    name, _, value = option.partition("=")
    assert re.search(f"argument {name}: must be .*{re.escape(repr(value))}", capsys.readouterr().err)
    assert not list(tmp_path.iterdir())


def test_the_heads_of_text_that_looks_alike_are_measured_alike(data, tmp_path, checkpoint_folder):
    odd = tmp_path / "odd.tsv"
    odd.write_text(data.read_text(encoding="utf-8").replace(" ", "\u200b\u00a0 "), encoding="utf-8-sig")
    found, file = [], checkpoint_folder / DEFAULT_CHECKPOINT / "heads.json"
    try:
        for path in (data, odd):
            head_scores.main([f"--checkpoint={DEFAULT_CHECKPOINT}", f"--data={path}", "--of=a test", "--sentences=2"])
            found.append(json.loads(file.read_text(encoding="utf-8"))["heads"])
    finally:
        file.unlink(missing_ok=True)
    assert found[0] == found[1]


@pytest.mark.filterwarnings("ignore:.*found in sys.modules.*:RuntimeWarning")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_the_documents_name_does_something(command, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", [command, "--help"])
    with pytest.raises(SystemExit) as end:
        runpy.run_module(command, run_name="__main__")
    assert end.value.code == 0
    assert capsys.readouterr().out.startswith("usage: ")
