"""Three families: the matrix and the rerun are the model's, and each family's checkpoint can be opened."""

from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qsl

import numpy as np
import pytest

from model.analysis.heads.three_families import causal_encoder, join_attention
from model.checkpoints.store import load_checkpoint
from model.checkpoints.translator import Translator
from model.interventions import MaskEdit
from model.network.config import TransformerConfig
from model.run import Run
from pages.views.attention.three_families import MOST_DRAWN, joined, masks, one_way
from tests.pages.conftest import SOURCE, save_random
from tests.pages.figures import ends, figure, maps


def test_the_matrix_and_the_causal_encoder_are_the_runs(run_at: Callable, translator: Translator) -> None:
    matrix = join_attention(run_at().trace, 1, 3)
    drawn = maps(joined(run_at("encoder_self", 1, 3)), "matrix")[0]
    np.testing.assert_allclose(drawn[matrix["mask"]], matrix["weights"][matrix["mask"]], rtol=1e-5, atol=1e-7)
    assert np.isnan(drawn[~matrix["mask"]]).all()
    own = translator.trace(SOURCE, beam_size=1)
    after = translator.rerun(own, (causal_encoder(len(own.src_ids)),))
    result = one_way(Run.of(translator, own))
    for drawn, trace in zip(ends(result, "probabilities"), (own, after), strict=True):
        assert drawn == pytest.approx(trace.target_log_probabilities, abs=1e-4)
    assert result.facts["sums"] == pytest.approx((own.log_probability, after.log_probability), abs=1e-3)


def with_room(n: int, m: int) -> list[int]:
    """Positions of the tokens that are drawn, the source's first."""
    return [*range(min(n, MOST_DRAWN)), *range(n, n + min(m, MOST_DRAWN))]


def arrows(drawn: dict, panel: int, bold: bool) -> set[tuple[int, int]]:
    """Row and token of each arrow of a network, by their places in it."""
    lines = [
        one for one in drawn["data"] if one["mode"] == "lines" and one["xaxis"] == f"x{panel if panel > 1 else ''}"
    ]
    ends = (np.array(one["x"], float) for one in lines if bold or one["line"]["width"] == 1)
    return {(int(x[i + 1]), int(x[i])) for x in ends for i in range(0, len(x) - 1, 3)}


def test_the_networks_have_an_arrow_where_the_masks_of_the_run_let_a_row_read_a_token(run_at: Callable) -> None:
    hidden = MaskEdit(forbid=((2, 0),), kind="encoder_self", layer=1)
    run = run_at("cross", 1, 2, hidden)
    n, m = len(run.trace.src_ids), len(run.trace.tgt_tokens)
    result, whole = masks(run), join_attention(run.trace, 1, 2)["mask"]
    assert not whole[2, 0]
    parts = {"encoder_only": range(n), "decoder_only": range(n, n + m), "encoder_decoder": range(n + m)}
    drawn = [[at for at in part if at in with_room(n, m)] for part in parts.values()]
    for panel, (name, part) in enumerate(parts.items(), start=1):
        assert np.array_equal(result.arrays()[f"masks_{name}"], whole[np.ix_(part, part)])
        shown = whole[np.ix_(drawn[panel - 1], drawn[panel - 1])]
        assert arrows(figure(result, "masks"), panel, bold=True) == {*zip(*map(list, shown.nonzero()), strict=True)}


def test_rows_appear_one_after_another_and_the_last_one_is_bold(run_at: Callable) -> None:
    run = run_at("cross", 0, 0)
    room = with_room(len(run.trace.src_ids), len(run.trace.tgt_tokens))
    for rows in (1, 4, len(room)):
        result = masks(run, rows=rows)
        seen = figure(result, "masks")
        every, others = (arrows(seen, 3, bold) for bold in (True, False))
        assert {row for row, _ in every} == {*range(rows)}
        assert {row for row, _ in every - others} == {rows - 1}
        assert result.facts["row"] == room[rows - 1]
        assert sum(result.facts["reads"]) == join_attention(run.trace, 0, 0)["mask"][room[rows - 1]].sum()


def test_where_the_encoder_has_more_layers_the_last_common_one_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATTENTION_EXPLORER_CHECKPOINTS", str(tmp_path))
    save_random(tmp_path / "deep", TransformerConfig(d_model=32, n_heads=4, d_ff=16, max_len=48), 3, 1)
    deep = load_checkpoint("deep", device="cpu")
    run = Run.of(deep, deep.trace(SOURCE, "Ein Hund"), "encoder_self", 2, 0)
    assert joined(run).facts["layer"] == masks(run).facts["layer"] == 0


def test_of_a_long_text_the_networks_have_the_first_tokens_and_say_so(translator: Translator) -> None:
    run = Run.of(translator, translator.trace("a dog and a cat and a dog and a cat", "Ein Hund mit einer Katze."))
    result = masks(run)
    keys = [one for one in figure(result, "masks")["data"] if one["mode"] == "markers"]
    assert [len(one["x"]) for one in keys] == [MOST_DRAWN, MOST_DRAWN, 2 * MOST_DRAWN]
    assert any(f"first {MOST_DRAWN} tokens" in block.text for block in result.blocks)


@pytest.mark.parametrize("source", ["a dog and a cat", "50 % <b> & [x](y) ) #1?"])
def test_a_link_opens_a_checkpoint_of_each_family_on_the_same_text(open_family: Callable, source: str) -> None:
    app = open_family("pages/three_families.py", checkpoint="unscaled", source=source, target="Greedy")
    links = [button.proto.url.partition("?") for button in app.get("link_button")]
    pages = ("heads_and_layers", "continue_text", "fill_in")
    assert [page for page, *_ in links] == list(pages)
    assert [dict(parse_qsl(query)) for *_, query in links] == [
        {"checkpoint": name, "source": source} for name in ("unscaled", "lm", "mlm")
    ]


def test_a_family_of_which_no_checkpoint_is_there_is_named(
    run_at: Callable, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ATTENTION_EXPLORER_CHECKPOINTS", str(tmp_path))
    missing = [block.text for block in joined(run_at()).blocks if "no checkpoint of this family" in block.text]
    assert len(missing) == 3
