"""The model card without a browser: its numbers are those of the folder and of the model, and a bare folder is said."""

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from model.background.sizes import count_parameters, multiply_adds
from model.checkpoints.store import CHECKPOINTS_VARIABLE, DEFAULT_CHECKPOINT
from model.checkpoints.translator import Translator
from model.evaluate import Measured, record_scores
from model.needs import Need
from model.network.config import TransformerConfig
from pages.views.model.model_card import summary as summary_of
from tests.pages.figures import canvases, figure, numbers, open_alone, words
from tests.viz.payload import unpack
from viz.forms import Document
from viz.special.model_card import ATTENTION

pytestmark = pytest.mark.usefixtures("fresh_caches")

README = "# About\n\nRead <b>this</b>.\n\n```\n# a comment\n```\n\n![picture](http://example.org/x.png)\n"


@pytest.fixture
def folder(saved_checkpoints: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tiny checkpoint in a folder of its own, with nothing but config.json, vocabulary and weights."""
    shutil.copytree(saved_checkpoints, tmp_path / "checkpoints")
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(tmp_path / "checkpoints"))
    return tmp_path / "checkpoints" / DEFAULT_CHECKPOINT


def open_page(tab: str | None = None, **state: object) -> AppTest:
    return open_alone("model_card", **state, **({"card": tab} if tab else {}))


def summary(page: AppTest) -> str:
    return next(text.value for text in page.markdown if "· parameters:" in text.value)


def test_scores_signatures_and_commands_are_those_of_the_file(folder: Path) -> None:
    record_scores(
        folder / "metrics.json",
        "a_set*",
        3,
        {"lower BLEU": Measured(12.344, "tok:none"), "BLEU": Measured(11.5, "tok:13a", 1.25)},
    )
    record_scores(folder / "metrics.json", "other", 1, {"BLEU": Measured(2.0, "tok:13a")})
    page = open_page("Scores")
    table = page.dataframe[0].value
    assert table["set"].tolist() == ["a_set*", "a_set*", "other"]
    assert table["score"].tolist() == ["12.34", "11.50 ± 1.25", "2.00"]
    assert table["sacreBLEU signature, or amount of text"].tolist() == ["tok:none", "tok:13a", "tok:13a"]
    (fenced,) = (text.value for text in page.markdown if text.value.startswith("```bash"))
    commands = fenced.splitlines()[1:-1]
    assert len(commands) == 2
    assert all(f"--checkpoint {DEFAULT_CHECKPOINT} --data FILE" in command for command in commands)
    assert summary(open_page()).startswith(r"BLEU, a\_set\*: **11.50 ± 1.25**")


@pytest.mark.parametrize(
    ("tab", "names"), [("Scores", ["metrics.json", "log.csv"]), ("Data, terms, limits", ["README.md"])]
)
def test_a_bare_folder_is_said_in_sentences(folder: Path, tab: str, names: list[str]) -> None:
    assert not (folder / "metrics.json").exists()
    page = open_page(tab)
    assert [info.value.split(":")[0].rstrip("\\") for info in page.info] == [
        f"This checkpoint has no {name}" for name in names
    ]
    assert summary(open_page()).startswith("Score: **not measured**")


def test_broken_scores_are_said_and_the_rest_is_shown(folder: Path) -> None:
    (folder / "metrics.json").write_text("{")
    assert "metrics.json cannot be read" in open_page("Scores").info[0].value
    assert len(canvases(open_page(), "whole_model")) == 1


def test_the_model_is_drawn_with_the_parameters_of_every_box_which_are_all_there_are(run_at: Callable) -> None:
    run = run_at()
    result, every = summary_of(run), sum(run.opened.parameters_by_part().values())
    header, _ = unpack(result.shows["model"].drawing)
    assert header["counts"]
    assert sum(box["parameters"] for box in header["boxes"] if not box["shared"]) == every
    names, counts = (result.arrays()[f"parameters_{name}"] for name in ("names", "parameters"))
    assert counts.sum() == every == result.facts["parameters"]
    attention = [box for box in header["boxes"] if box["part"] == "cross_attn"]
    assert counts[names.tolist().index("cross-attention")] == sum(box["parameters"] for box in attention)
    assert sum(share for *_, share in result.facts["kinds"]) == pytest.approx(1)


def test_a_model_whose_boxes_cannot_be_read_has_its_parameters_in_a_sentence(
    run_at: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacks = SimpleNamespace(figure=SimpleNamespace(missing=lambda _: [Need.STREAM]))
    monkeypatch.setattr("pages.views.model.model_card.whole_model", lacks)
    result = summary_of(run_at())
    assert not result.shows
    kinds = result.facts["kinds"]
    assert kinds
    assert any(all(f"{kind} **{count}**" in block.text for kind, count, _ in kinds) for block in result.blocks)


def test_the_end_of_the_log_is_its_last_row(folder: Path) -> None:
    (folder / "log.csv").write_text("step,epoch,hours,dev_bleu\n250,1,0.1,2\n1500,9,0.756,31.236\n")
    said = [caption.value for caption in open_page("Scores").caption if "log.csv" in caption.value]
    assert said == ["Last of 2 rows in log.csv: step 1,500, epoch 9, 0.76 hours; development BLEU, greedy 31.24."]


def test_configuration_and_parameters_stand_beside_the_papers(folder: Path, translator: Translator) -> None:
    page = open_page("Configuration")
    fields, parts, files = (table.value for table in page.dataframe)
    config = asdict(TransformerConfig(**json.loads((folder / "config.json").read_text())["model"]))
    assert dict(zip(fields["field"], fields[DEFAULT_CHECKPOINT], strict=True)) == {
        "scale_scores": "True",  # the default, where an older config.json does not name it
        **{name: str(value) for name, value in config.items()},
        "d_k": str(translator.model.config.d_k),
    }
    assert dict(zip(fields["field"], fields["paper's big"], strict=True))["d_model"] == "1024"
    counted = count_parameters(translator.model.config)
    assert parts[DEFAULT_CHECKPOINT].tolist() == [*counted.values(), sum(counted.values())]
    assert parts["paper's base"].iloc[-1] == 63_082_496
    assert f"{63_082_496 / 65e6 - 1:+.1%} from 65 M".replace("-", "−") in words(page)
    assert dict(zip(files["file"], files["bytes"], strict=True)) == {
        path.name: path.stat().st_size for path in folder.iterdir()
    }


@pytest.mark.usefixtures("folder")
def test_work_is_the_current_sentences(translator: Translator) -> None:
    source, target = "a dog and a cat", "Ein Hund."
    page = open_page("This sentence's work", source=source, target="typed", typed=target)
    trace = translator.trace(source, target=target)
    works = multiply_adds(translator.model.config, len(trace.src_tokens), len(trace.tgt_tokens))
    table = page.dataframe[0].value
    assert table["Q Kᵀ"].dropna().tolist() == [work.scores for work in works.values() if work.keys]
    assert table["learned matrices"].tolist() == [work.weights for work in works.values()]
    assert table["queries × keys"].iloc[2] == f"{len(trace.tgt_tokens)} × {len(trace.src_tokens)}"


@pytest.mark.usefixtures("folder")
def test_the_curve_is_attentions_work_at_every_length(translator: Translator) -> None:
    page = open_page("This sentence's work")
    drawn = next(trace for trace in figure(page, "model_card-curves")["data"] if trace["name"] == ATTENTION)
    for n, count in zip(numbers(drawn["x"]), numbers(drawn["y"]), strict=True):
        works = multiply_adds(translator.model.config, int(n), int(n)).values()
        assert count == sum(work.scores + work.weighted for work in works)
    assert np.diff(numbers(drawn["x"])).min() > 0


def test_the_readme_is_markdown_and_never_html_or_a_request(folder: Path) -> None:
    (folder / "README.md").write_text(README)
    shown = next(text for text in open_page("Data, terms, limits").markdown if "About" in text.value)
    assert not shown.allow_html
    assert shown.value == Document(README).calm.strip()
    assert shown.value.startswith("### About")
    assert "\n# a comment\n" in shown.value
    assert "![" not in shown.value


@pytest.mark.parametrize("tab", ["In short", "Scores", "Configuration", "Data, terms, limits"])
def test_other_weights_in_the_folder_than_in_the_model_are_said_beside_what_is_of_the_folder(
    folder: Path, tab: str
) -> None:
    page = open_page(tab)
    assert not any("has changed since" in info.value for info in page.info)
    config = json.loads((folder / "config.json").read_text())
    config["sha256"]["model.safetensors"] = "0" * 64
    (folder / "config.json").write_text(json.dumps(config))
    page.run()
    assert "has changed since" in page.info[0].value
