"""The paper, line by line: quotes are cited, numbers are the run's, figures are ranked, and the file is the model."""

import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from model.analysis.stream.whole_model import model_boxes
from model.background.paper import FIGURES
from model.background.paper_results import TABLE_2
from model.background.table_3 import TABLE_3
from model.background.then_and_now import BASE, BIG, GNMT, training_of
from model.run import Run
from pages.views import views_of
from pages.views.attention.attention_step_by_step import own_vectors
from pages.views.attention.temperature import widths
from pages.views.learn.paper import (
    LINE_BY_LINE,
    figure_1,
    figure_2,
    figures,
    objections,
    paper_results,
    program,
    stacks,
    table_3,
    why,
)
from tests.pages.figures import words
from tests.viz.canvas.test_lines import decode as decode_lines
from tests.viz.payload import unpack

PAGE = "pages/paper.py"
SOURCE = "a dog sees a cat and a small dog"
PAPER = "https://arxiv.org/abs/1706.03762"
TEXT = (Path(__file__).parents[2] / "pages/text/paper.md").read_text(encoding="utf-8")
LINES = [view for view in views_of("pages.views.learn.paper") if view.tab == LINE_BY_LINE]


@pytest.fixture(scope="module")
def run(translator) -> Run:
    return Run.of(translator, translator.trace(SOURCE))


def test_every_line_has_a_quote_a_number_something_to_see_a_view_and_the_paper(run: Run) -> None:
    boxes = [block.items for view in LINES for block in view(run).blocks if block.kind == "box"]
    assert len(boxes) >= 25
    for quote, *said, look, link in (box if box[-2].kind != "link" else box[:-1] for box in boxes):
        assert re.search("“.+”", quote.text)
        assert len(re.sub("[*“”]", "", quote.text)) < 200, "a short quote"
        assert said
        assert any(re.search(r"\d|as in the paper|no decoder", one.text) for one in (*said, quote))
        assert look.kind == "caption"
        assert PAPER in look.text
        assert link.kind == "link"


def test_the_paper_is_told_in_its_own_order_below_a_picture_of_the_model() -> None:
    first, *_ = re.findall(r"(?m)^# (.*)$", TEXT)
    assert first == figure_1.title
    told = TEXT.split("# Figures 3 to 5")[0].partition("# Abstract")[2]
    cited = [re.search(r"sections? (\d[\d.]*)", text) for text in told.split("\n> ")]
    numbers = [tuple(map(int, found[1].rstrip(".").split("."))) for found in cited if found]
    assert numbers == sorted(numbers)
    assert numbers[0][0] == 1
    assert numbers[-1][0] == 7


def test_the_residual_connection_is_computed_again(run: Run) -> None:
    sublayer = run.trace.sublayers[0]
    assert stacks(run).facts["block"]["error"] == np.abs(sublayer.norm(sublayer.added) - sublayer.after).max()


def test_a_hugging_face_model_has_no_program_and_says_why(run: Run) -> None:
    without = replace(run, checkpoint=OtherFeatures(run.checkpoint))
    assert program.missing(run) == []
    with pytest.raises(ValueError, match="layers of this project's own code"):
        program(without)


class OtherFeatures:
    """A checkpoint without layers of this project."""

    def __init__(self, checkpoint) -> None:
        self.features = checkpoint.features - {*program.needs}


@pytest.mark.parametrize("number", FIGURES)
def test_a_sentence_that_a_model_cannot_read_is_said(number: int, run: Run) -> None:
    result = figures(run, figure=number)
    if result.facts["problem"]:
        assert result.shows == {}
        assert "Shorten it" in result.facts["problem"]
    else:
        assert set(result.shows) == {"lines", "ranking", "table"}


def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sentences that the tests' model can read."""
    for number, figure in FIGURES.items():
        one = replace(figure, sentence="a dog sees a cat and a small dog runs", query="runs", key="cat")
        monkeypatch.setitem(FIGURES, number, one)


@pytest.mark.parametrize("number", FIGURES)
def test_the_two_words_of_a_figure_are_ranked_among_all_far_cells(
    number: int, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    short(monkeypatch)
    result = figures(run, figure=number)
    facts, weights = result.facts, result.numbers["weights"]
    header, drawn = decode_lines(result.shows["lines"].drawing)
    rows = {header["queries"][row] for row in np.argwhere(~np.isnan(drawn))[:, 1]}
    assert (rows == {facts["pair"]["query"]}) == facts["alone"]
    assert facts["cells"] == len(weights)
    if facts["pair"]["rank"]:
        assert facts["pair"]["rank"] == (weights > facts["pair"]["weight"]).sum() + 1
        assert result.shows["ranking"].lines["the paper's two words"].y == [facts["pair"]["weight"]]
    assert result.shows["table"].frame["weight"].tolist() == weights[: len(result.shows["table"].frame)].tolist()
    assert result.values["layer"] == facts["pair"]["layer"], "the lines begin where the weight is"


def test_a_quote_what_this_run_says_of_it_and_what_to_see_are_one_element(open_app: Callable) -> None:
    quotes = [one.value for one in open_app(PAGE).markdown if one.value.startswith("**“")]
    assert quotes
    for text in quotes:
        quote, *said = text.split("\n\n")
        assert quote.endswith("”**")
        assert said
        assert said[-1].startswith("> "), "a caption, as pages/text writes it"


def test_table_1_counts_at_the_length_and_width_of_this_run(run: Run) -> None:
    result, n, d = why(run), len(run.trace.src_tokens), run.opened.config.d_model
    arrays = result.arrays()
    assert arrays["table_1_layer"].tolist() == ["self-attention", "recurrent"]
    assert arrays["table_1_operations here"].tolist() == [n * n * d, n * d * d]
    assert arrays["table_1_sequential here"].tolist() == [1, n]
    assert arrays["table_1_longest path here"].tolist() == [1, n - 1]
    (table,) = (block.text for block in result.blocks if block.text.startswith("|"))
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    assert [[row[0], *row[2:]] for row in rows] == [
        ["self-attention", f"{n * n * d:,}", "1", "1"],
        ["recurrent", f"{n * d * d:,}", f"{n:,}", f"{n - 1:,}"],
    ]


def test_table_3_is_cited_as_the_papers_and_ours_stand_beside_it(run: Run) -> None:
    result = table_3(run)
    table = result.shows["rows"].frame
    assert table["PPL (dev)"].tolist() == [row.perplexity for row in TABLE_3]
    assert table["BLEU against base"].iloc[0] == 0
    drawn, both = result.shows["beside"].series, table[(table["ours changes"] != "") & (table["changed"] != "base")]
    for name, column in (("the paper's", "BLEU against base"), ("ours", "ours: BLEU against base")):
        assert drawn[name].tolist() == both[column].tolist()
    assert any("not ours" in block.text and "1706.03762" in block.text for block in result.blocks)
    beside = table["ours changes"] != ""
    assert beside.sum() == result.facts["ours"]
    assert table["ours: BLEU against base"].notna().tolist() == beside.tolist()


def test_the_replies_to_the_objections_of_2017_are_counted_on_the_run(run: Run) -> None:
    facts, trace = objections(run).facts, run.trace
    one = trace.attention("encoder_self", 0)
    n, d_model = len(trace.src_tokens), run.opened.config.d_model
    projections = 4 * n * d_model * one.n_heads * one.d_k
    assert facts["kept"] == one.k.size + one.v.size
    assert facts["share"] == pytest.approx(
        2 * one.scores.size * one.d_k / (2 * one.scores.size * one.d_k + projections)
    )
    assert facts["even"] == pytest.approx(projections / (2 * one.n_heads * n * one.d_k))
    assert (facts["steps"], facts["state"]) == (n - 1, 2 * d_model)
    far = facts["far"]
    rows, columns = np.nonzero(np.abs(np.subtract.outer(np.arange(n), np.arange(n))) == far["apart"])
    head = trace.attention("encoder_self", far["layer"]).pattern[far["head"]]
    assert far["weight"] in head[rows, columns]


def test_the_parsers_of_table_4_are_all_there(run: Run) -> None:
    shows = paper_results(run).shows
    assert len(shows["parses"].frame) == 12
    points = {name: (line.x[0], line.y[0]) for name, line in shows["bought"].lines.items()}
    assert points == {row.system: (row.en_de_operations, row.en_de) for row in TABLE_2 if row.en_de_operations}
    operations, bleu = points.pop(BASE)
    before = [point for name, point in points.items() if name != BIG]
    assert all(operations < others and bleu > theirs for others, theirs in before), "as the sentence says"


def test_the_program_on_the_page_can_be_copied_and_saved(open_app: Callable) -> None:
    app = open_app(PAGE, source="a dog", paper="The whole program")
    (code,) = [one.value for one in app.code if "class Transformer(" in one.value]
    compile(code, "whole-program.py", "exec")
    assert [one.label for one in app.get("download_button") if "whole-program-en-de-" in str(one)] != []


@pytest.mark.parametrize(
    ("page", "tab", "says"),
    [
        (PAGE, {"paper": "Line by line"}, "based solely on attention mechanisms"),
        ("pages/often_told_wrong.py", {}, "overflow half precision"),
    ],
)
def test_present_shows_the_words_of_a_tab_that_is_read(page: str, tab: dict, says: str, open_app: Callable) -> None:
    app = open_app(page, source="a dog", present="true", **tab)
    assert says in words(app)


@pytest.mark.parametrize("typed", ["", "one two", "1 2 3", "<script>alert(1)</script>", "1; " * 40])
def test_a_bench_that_cannot_count_says_what_to_type(typed: str, run: Run) -> None:
    for name in ("query", "keys", "values"):
        result = own_vectors(run, **{name: typed})
        assert result.shows == {}
        assert result.facts["problem"].endswith(".")


def test_the_bench_counts_what_is_typed(open_app: Callable) -> None:
    query = {"own_query": "1 0; 0 2", "own_keys": "a 1 0; b 0 1", "own_values": "1; 3", "own_divides": "no"}
    app = open_app("pages/attention_step_by_step.py", source="a dog", part="Your own vectors", **query)
    share = math.e / (math.e + 1)
    assert f"z of 0 q = {share:.3f} · (1) + {1 - share:.3f} · (3) = **({3 - 2 * share:.4g})**" in words(app)


def test_heads_stand_at_their_own_width(run: Run) -> None:
    lines = widths(run).shows["variance"].lines
    (of_heads,) = [line for name, line in lines.items() if name.startswith("heads")]
    assert set(of_heads.x) == {run.attention.d_k}
    kind = run.trace.kind(run.kind)
    assert len(of_heads.y) == len(kind.layers) * kind.heads


@pytest.mark.parametrize("name", [GNMT, BASE, BIG])
def test_device_hours_times_the_papers_speeds_are_the_operations_of_its_table_2(name: str) -> None:
    (printed,) = (row.en_fr_operations for row in TABLE_2 if row.system.removesuffix(" + RL") == name)
    assert training_of(name).operations == pytest.approx(printed, rel=0.02)


def test_figure_1_has_every_box_of_the_run_and_figure_2_the_matrices_of_the_chosen_box(run: Run) -> None:
    boxes = model_boxes(run.opened, run.trace)
    header, _ = unpack(figure_1(run).shows["figure_1"].drawing)
    assert [(box["name"], box["parameters"]) for box in header["boxes"]] == [
        (box.name, box.parameters) for box in boxes
    ]
    assert header["counts"], "a box says how many parameters it has"
    for step, name in ((2, "scores"), (4, "mask"), (5, "pattern"), (6, "z")):
        header, arrays = unpack(figure_2(run, step=step).shows["figure_2"].drawing)
        assert header["step"] == step - 1
        drawn = arrays[f"{run.attention.path}.{name}[{run.head}]"]
        np.testing.assert_array_equal(drawn, run.attention.array(name)[run.head])
