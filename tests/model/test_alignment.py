"""python -m model.commands.alignment: what it reads, prints and writes; its list is what other programs load."""

import json

import numpy as np
import pytest
import torch

from model.analysis.heads.alignments import WORD
from model.checkpoints.store import DEFAULT_CHECKPOINT, save_checkpoint
from model.commands import alignment
from model.commands.export import to_marian
from model.network.config import TransformerConfig
from tests.model.tiny import SENTENCES, random_model, train_tiny_tokenizer

pytestmark = pytest.mark.usefixtures("checkpoint_folder")
PAIRS = SENTENCES[:3]


def diagonal(source, target, first=0):
    """Links of each word with the word at its place, as far as there is one."""
    n = min(len(WORD.findall(text)) for text in (source, target))
    return " ".join(f"{i + first}-{i + first}" for i in range(n))


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in PAIRS), encoding="utf-8")
    return path


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


def test_the_list_is_in_the_order_of_the_error_rates_and_complete(data, run, capsys):
    written = run("--data", data)
    rates = {(row["layer"], row["head"]): min(row["aer_predicts"], row["aer_reads"]) for row in written["heads"]}
    listed = [rates[layer, head] for layer, head in written["alignment_heads"]]
    assert listed == sorted(listed)
    assert listed[0] == min(rates.values())
    assert len(listed) == sum(rate <= min(rates.values()) + written["within"] + 1e-9 for rate in rates.values())
    assert f"alignment_heads = {written['alignment_heads']}" in capsys.readouterr().out


def test_a_malformed_line_is_named_with_file_and_line(data, run, tmp_path):
    links = tmp_path / "links.txt"
    links.write_text("0-0\n0-0 1=1\n0-0\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"links\.txt, line 2: '1=1' is no link"):
        run("--data", data, "--gold", links)
    with pytest.raises(ValueError, match="there are no sentence pairs"):
        run()


def test_a_model_without_cross_attention_is_refused(data, tmp_path):
    tokenizer = train_tiny_tokenizer()
    model = random_model(TransformerConfig(len(tokenizer), 32, 4, 64, 0, 2, max_len=64))
    save_checkpoint(tmp_path / "lm", model, tokenizer, dict(model.named_parameters()))
    with pytest.raises(ValueError, match="only encoder-decoders align two texts"):
        alignment.main([f"--checkpoint={tmp_path / 'lm'}", f"--data={data}", "--device=cpu"])


def test_whisper_style_configurations_hold_the_list_and_select_our_heads(data, run, translator, tmp_path):
    """As transformers and CTranslate2 use it: cross_attentions[layer][:, head]."""
    transformers = pytest.importorskip("transformers")
    listed = run("--data", data)["alignment_heads"]
    transformers.GenerationConfig(alignment_heads=listed).save_pretrained(tmp_path)
    kept = transformers.GenerationConfig.from_pretrained(tmp_path).alignment_heads
    assert kept == listed
    trace = translator.trace(*PAIRS[0])
    theirs = to_marian(translator.model)
    theirs.set_attn_implementation("eager")
    with torch.inference_mode():
        found = theirs(
            input_ids=torch.tensor([trace.src_ids]),
            decoder_input_ids=torch.tensor([trace.tgt_ids]),
            output_attentions=True,
        )
    for layer, head in kept:
        ours = trace.attention("cross", layer).pattern[head]
        np.testing.assert_allclose(found.cross_attentions[layer][0, head], ours, atol=1e-4)
