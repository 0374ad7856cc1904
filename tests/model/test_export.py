"""A translator written for other tools computes there what it computes here."""

import json
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from model.checkpoints.store import save_checkpoint
from model.command_line import run_command
from model.commands import export
from model.extras import EXTRAS
from model.network.config import EOS
from tests.model.tiny import SENTENCES, random_model

ROOT = Path(__file__).parents[2]
TEXTS = [source for source, _ in SENTENCES] + ["Unseen words, 42 % “quoted” …", "Zażółć 🙂"]


@pytest.fixture(scope="module")
def folders(translator, tmp_path_factory):
    """The trained tiny model in both formats."""
    folder = tmp_path_factory.mktemp("exports")
    save_checkpoint(folder / "ours", translator.model, translator.tokenizer, dict(translator.model.named_parameters()))
    for name in export.FORMATS:
        export.main(["--checkpoint", str(folder / "ours"), "--format", name, "--out", str(folder / name)])
    return folder


def test_transformers_opens_the_folder_and_gives_our_numbers_and_translations(folders, translator):
    transformers = pytest.importorskip("transformers")
    theirs = transformers.AutoModelForSeq2SeqLM.from_pretrained(folders / "marian", attn_implementation="eager").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders / "marian")
    for text in TEXTS:
        ids = tokenizer(text, return_tensors="pt").input_ids
        assert ids[0].tolist() == [*translator.tokenizer.encode(text), EOS]
        trace = translator.trace(text, beam_size=1)
        with torch.inference_mode():
            found = theirs(input_ids=ids, decoder_input_ids=torch.tensor([trace.tgt_ids]), output_attentions=True)
            wrote = theirs.generate(ids, num_beams=1, do_sample=False, max_new_tokens=len(trace.next_ids))
        np.testing.assert_allclose(found.logits[0], trace.logits, rtol=1e-3, atol=1e-3)
        assert len(found.cross_attentions) == translator.model.config.n_decoder_layers
        for layer, weights in enumerate(found.cross_attentions):
            np.testing.assert_allclose(weights[0], trace.attention("cross", layer).pattern, atol=1e-4)
        assert tokenizer.decode(wrote[0], skip_special_tokens=True) == trace.translation


def test_the_folder_opens_here_and_gives_the_same_translations(folders, translator):
    huggingface = pytest.importorskip("model.checkpoints.huggingface")
    theirs = huggingface.open_model(folders / "marian")
    assert not theirs.notes
    # Greedily: among finished beams transformers chooses by another function of their length.
    assert theirs.translate(TEXTS, beam_size=1) == translator.translate(TEXTS, beam_size=1)
    wanted = translator.trace(TEXTS[0])
    found = theirs.trace_ids(TEXTS[0], wanted.next_ids)
    assert (found.src_ids, found.tgt_ids) == (wanted.src_ids, wanted.tgt_ids)


def test_ctranslate2_opens_the_folder_and_gives_our_probabilities(folders, translator):
    ctranslate2 = pytest.importorskip("ctranslate2")
    theirs = ctranslate2.Translator(str(folders / "ctranslate2"), compute_type="float32", intra_threads=1)
    for text in TEXTS:
        trace = translator.trace(text, beam_size=1)
        (scored,) = theirs.score_batch([list(trace.src_tokens[:-1])], [list(trace.next_tokens[:-1])])
        np.testing.assert_allclose(scored.log_probs, trace.target_log_probabilities, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("format", export.FORMATS)
def test_the_program_that_the_export_prints_translates(format, folders, translator, tmp_path, capsys):
    pytest.importorskip({"marian": "transformers"}.get(format, format))
    export.main(["--checkpoint", str(folders / "ours"), "--format", format, "--out", str(tmp_path / "it's")])
    program = capsys.readouterr().out
    exec(program, {})
    assert capsys.readouterr().out.strip() == translator.translate(["The cat sat on the mat."], beam_size=1)[0]


@pytest.mark.parametrize("first", [1, 3, 4])
def test_ctranslate2_returns_the_mean_of_the_first_heads_of_the_layer_that_a_report_names(
    first, folders, translator, tmp_path
):
    """In the row that predicts a token: that is what its converters' alignment_layer and alignment_heads mean."""
    ctranslate2 = pytest.importorskip("ctranslate2")
    report, out = tmp_path / "report.json", tmp_path / "out"
    chosen = {"alignment_layer": 0, "alignment_heads": first}
    report.write_text(json.dumps({"alignment_heads": [[0, 1]], "ctranslate2": chosen}), encoding="utf-8")
    ours = str(folders / "ours")
    export.main(["--checkpoint", ours, "--format", "ctranslate2", "--out", str(out), "--alignment", str(report)])
    theirs = ctranslate2.Translator(str(out), compute_type="float32", intra_threads=1)
    trace = translator.trace(TEXTS[0], beam_size=1)
    (wrote,) = theirs.translate_batch([list(trace.src_tokens[:-1])], beam_size=1, return_attention=True)
    assert wrote.hypotheses[0] == list(trace.next_tokens[:-1])
    expected = trace.attention("cross", 0).pattern[:first].mean(axis=0)
    rows = len(wrote.attention[0])
    np.testing.assert_allclose(wrote.attention[0], expected[:rows, : len(wrote.attention[0][0])], atol=1e-4)


def test_a_marian_folder_keeps_the_list_of_alignment_heads(folders, tmp_path):
    transformers = pytest.importorskip("transformers")
    report, out = tmp_path / "report.json", tmp_path / "out"
    chosen = {"alignment_layer": 1, "alignment_heads": 2}
    report.write_text(json.dumps({"alignment_heads": [[1, 3], [0, 2]], "ctranslate2": chosen}), encoding="utf-8")
    export.main(["--checkpoint", str(folders / "ours"), "--out", str(out), "--alignment", str(report)])
    assert transformers.GenerationConfig.from_pretrained(out).alignment_heads == [[1, 3], [0, 2]]
    assert not hasattr(transformers.GenerationConfig.from_pretrained(folders / "marian"), "alignment_heads")


@pytest.mark.parametrize(
    ("report", "message"),
    [
        ("{}", "is no report of model.commands.alignment"),
        ("no json", "is no report of model.commands.alignment"),
        ('{"alignment_heads": [[9, 0]], "ctranslate2": {"alignment_layer": 0, "alignment_heads": 1}}', "names layer 9"),
        ('{"alignment_heads": [], "ctranslate2": {"alignment_layer": 1, "alignment_heads": 5}}', "head 4; the model"),
    ],
)
def test_a_report_that_is_none_or_of_another_model_is_refused(report, message, folders, tmp_path, capsys):
    file = tmp_path / "report.json"
    file.write_text(report, encoding="utf-8")
    with pytest.raises(SystemExit):
        export.main(["--checkpoint", str(folders / "ours"), "--out", str(tmp_path / "out"), "--alignment", str(file)])
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "change", [{"norm": "pre"}, {"tie_embeddings": False}, {"positions": "learned"}, {"scale_scores": False}]
)
def test_what_these_tools_cannot_be_is_refused(change, translator, tmp_path, capsys):
    model = random_model(replace(translator.model.config, **change))
    save_checkpoint(tmp_path / "other", model, translator.tokenizer, dict(model.named_parameters()))
    with pytest.raises(SystemExit):
        export.main(["--checkpoint", str(tmp_path / "other"), "--out", str(tmp_path / "out")])
    assert "only models with the paper's parts" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("format", "package"), [("marian", "transformers"), ("ctranslate2", "ctranslate2")])
def test_without_the_package_of_a_format_a_sentence_says_what_installs_it(
    format, package, folders, tmp_path, monkeypatch
):
    for module in (package, f"{package}.specs"):  # a part that was imported before would stay
        monkeypatch.setitem(sys.modules, module, None)
    command = ["--checkpoint", str(folders / "ours"), "--format", format, "--out", str(tmp_path / "out")]
    with pytest.raises(SystemExit) as ended:
        run_command(lambda: export.main(command))
    assert str(ended.value.code).startswith(f"error: {package} is not installed. Run: pip install -r ")


def test_what_a_sentence_says_to_install_has_the_package_and_is_an_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["metadata"]["hooks"]
    of_extras = project["requirements_txt"]["optional-dependencies"]
    files = {command.removeprefix("pip install -r ") for command in EXTRAS.values()}
    assert set(of_extras["export"]) == files
    assert set(of_extras["huggingface"]) < files
    for package in {"transformers", "ctranslate2"}:
        file = ROOT / EXTRAS[package].removeprefix("pip install -r ")
        pinned = [line for line in file.read_text("utf-8").splitlines() if line.startswith(f"{package}==")]
        assert pinned
        assert pinned[0] in (ROOT / "tests/requirements.txt").read_text("utf-8").splitlines()


def test_a_notebook_without_transformers_is_told_what_installs_it():
    """In a process of its own: what was imported before would stay."""
    program = "import sys; sys.modules['transformers'] = None; from model.checkpoints.huggingface import open_model"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    last = done.stderr.strip().splitlines()[-1]
    assert last == f"ModuleNotFoundError: transformers is not installed. Run: {EXTRAS['transformers']}"


def test_nothing_is_overwritten(folders, capsys):
    with pytest.raises(SystemExit):
        export.main(["--checkpoint", str(folders / "ours"), "--out", str(folders / "marian")])
    assert "not an empty folder" in capsys.readouterr().err
