"""python -m model.commands.alignment: what it reads, prints and writes; its list is what other programs load."""

import json

import pytest

from model.analysis.heads.alignments import WORD
from model.checkpoints.store import DEFAULT_CHECKPOINT, save_checkpoint
from model.commands import alignment
from model.network.config import TransformerConfig
from tests.model.tiny import SENTENCES, random_model, train_tiny_tokenizer, write_pairs

pytestmark = pytest.mark.usefixtures("checkpoint_folder")
PAIRS = SENTENCES[:3]


def diagonal(source, target, first=0):
    """Links of each word with the word at its place, as far as there is one."""
    n = min(len(WORD.findall(text)) for text in (source, target))
    return " ".join(f"{i + first}-{i + first}" for i in range(n))


@pytest.fixture
def data(tmp_path):
    return write_pairs(tmp_path / "pairs.tsv", PAIRS)


@pytest.fixture
def run(tmp_path):
    """A function that runs the command with these options and returns what it wrote."""

    def run(*options):
        out = tmp_path / "report.json"
        alignment.main([f"--checkpoint={DEFAULT_CHECKPOINT}", "--device=cpu", f"--json={out}", *map(str, options)])
        return json.loads(out.read_text(encoding="utf-8"))

    return run


def test_the_reference_is_silver_wherever_it_is_named_if_nobody_aligned_the_pairs(data, run, capsys):
    written, printed = run("--data", data), capsys.readouterr().out
    assert written["reference"] == "silver"
    assert "Reference: silver" in printed
    assert "gold" not in json.dumps(written) + printed
    assert set(written["baselines"]) == {"diagonal"}
    assert written["pairs"] == len(PAIRS)


def test_gold_may_count_from_0_or_1_and_the_report_says_which(data, run, capsys, tmp_path):
    found = []
    for first in (0, 1):
        links = tmp_path / f"from{first}.txt"
        links.write_text("".join(f"{diagonal(*pair, first)}\n" for pair in PAIRS), encoding="utf-8")
        found.append(run("--data", data, "--gold", links, "--count-from", first, "--words", "marks"))
        assert f"count from {first}" in capsys.readouterr().out
        assert found[-1]["count_from"] == first
    assert found[0]["heads"] == found[1]["heads"]
    assert found[0]["reference"] == "gold"
    assert set(found[0]["baselines"]) == {"diagonal", "silver", "silver_possible"}


def test_a_file_with_sentences_needs_no_data_and_keeps_the_pairs_of_data_if_there_are_any(data, run, tmp_path):
    gold = tmp_path / "gold.tsv"
    rows = [f"{src}\t{tgt}\t{diagonal(src, tgt)}\n" for src, tgt in SENTENCES[2:5]]
    gold.write_text("# a comment\n" + "".join(rows), encoding="utf-8")
    assert run("--gold", gold)["pairs"] == 3
    assert run("--gold", gold, "--data", gold)["pairs"] == 3
    assert run("--gold", gold, "--data", data)["pairs"] == 1


def test_without_pairs_there_is_nothing_to_align(run):
    with pytest.raises(ValueError, match="there are no sentence pairs"):
        run()


def test_a_model_without_cross_attention_is_refused(data, tmp_path):
    tokenizer = train_tiny_tokenizer()
    model = random_model(TransformerConfig(len(tokenizer), 32, 4, 64, 0, 2, max_len=64))
    save_checkpoint(tmp_path / "lm", model, tokenizer, dict(model.named_parameters()))
    with pytest.raises(ValueError, match="only encoder-decoders align two texts"):
        alignment.main([f"--checkpoint={tmp_path / 'lm'}", f"--data={data}", "--device=cpu"])
