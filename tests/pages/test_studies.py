"""Our own studies on Training: the figures are the shipped tables; the small checkpoints open by name alone."""

from collections.abc import Callable
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

from model.analysis.heads.induction import measure_repetition
from model.analysis.inside.warm_up import WEIGHT_KINDS
from model.background import induction
from model.background.studies import compare_with_paper, read_study
from model.checkpoints.snapshots import open_snapshot, snapshot_steps
from model.checkpoints.store import (
    CHECKPOINTS_VARIABLE,
    available_checkpoints,
    load_checkpoint,
    study_checkpoints,
)
from model.network.config import TransformerConfig
from pages.views.model.training import ablations, norm_and_residual, scaling, warm_up
from pages.views.model.training.dropping import DROPPED_RATE
from pages.views.model.training.studies import NORM_RUNS
from pages.views.model.training.why_warm_up import WAYS
from tests.pages.conftest import SHIPPED, TYPED
from tests.pages.figures import figure, numbers, words


def test_the_figure_has_each_seed_of_the_table(run_at: Callable) -> None:
    rows = compare_with_paper(read_study("ablations"))
    drawn = figure(ablations(run_at()), "ablations")["data"]
    seeds = next(t for t in drawn if t["name"] == "ours, a seed each")
    expected = np.concatenate([row.bleus for row in rows]) - rows[0].bleus.mean()
    assert np.allclose(numbers(seeds["customdata"]).astype(float), expected)
    inside = np.array(seeds["marker"]["symbol"]) == "circle"
    assert np.allclose(numbers(seeds["x"]).astype(float)[inside], expected[inside])


def test_the_losses_are_those_of_the_table(run_at: Callable) -> None:
    dots = next(t for t in figure(scaling(run_at()), "scaling")["data"] if t["name"] == "end of a run")
    ends = read_study("scaling").groupby("run")["dev_loss"].last()
    assert sorted(numbers(dots["y"]).astype(float)) == pytest.approx(sorted(ends))


@pytest.mark.parametrize(("chosen", "name"), [("base: h = 4, dₖ = 16", "base"), ("1 head", "heads-1")])
def test_the_chosen_run_opens_alone_and_beside_base(open_shipped: Callable, chosen: str, name: str) -> None:
    app = open_shipped("pages/training.py", training="Ablations", ablation=chosen, source="Two dogs run.")
    pages = {urlsplit(link.proto.url).path: parse_qs(urlsplit(link.proto.url).query) for link in app.get("link_button")}
    alone = {"checkpoint": [f"studies/{name}"], "source": ["Two dogs run."]}
    beside = alone | {"checkpoint": ["studies/base"], "side_mode": ["Checkpoints"]}
    beside["side_checkpoint"] = alone["checkpoint"]
    assert pages == {"heads_and_layers": alone} | ({} if name == "base" else {"side_by_side": beside})


def test_a_study_opens_by_its_name_and_a_forged_name_does_not(open_shipped: Callable) -> None:
    assert "studies/base" in study_checkpoints()
    assert not any("studies" in name for name in available_checkpoints())
    app = open_shipped(checkpoint="studies/base", source="Two dogs run.")
    assert app.selectbox(key="checkpoint").value == "studies/base"
    for forged in ("studies/../en-de", "../studies/base", "/etc", "studies/nothing"):
        app = open_shipped(checkpoint=forged, source="Two dogs run.")
        assert app.selectbox(key="checkpoint").value == "en-de"
        assert "that does not exist" in words(app)


def test_the_head_that_forms_is_the_tables_and_a_chosen_step_is_that_of_its_weights(open_shipped: Callable) -> None:
    folder = SHIPPED / induction.CHECKPOINT
    measured, step = induction.read_forming(folder), snapshot_steps(folder)[1]
    app = open_shipped("pages/training.py", training="An induction head forms", forming=str(step))
    drawn = [numbers(line["y"]).astype(float) for line in figure(app, "training-losses")["data"]]
    assert np.allclose(drawn, measured.losses)
    opened = open_snapshot(load_checkpoint(induction.CHECKPOINT, "cpu"), step)
    now, table = measure_repetition(opened), app.dataframe[0].value
    assert table["loss without it"].tolist() == pytest.approx(now.without, rel=1e-4)
    assert f"{now.second:.3f}" in words(app)
    (link,) = (urlsplit(each.proto.url) for each in app.get("link_button"))
    query = {name: value for name, (value,) in parse_qs(link.query).items()}
    layer, head = measured.heads[measured.induction]
    place = {"checkpoint": induction.CHECKPOINT, "layer": str(layer), "head": str(head)}
    attention = opened.trace(query.pop("source")).attention(induction.KIND, layer)
    assert (link.path, query) == ("heads_and_layers", place)
    seen = attention.mask[head]
    maps = [numbers(data["z"]).astype(float) for data in figure(app, "training-maps")["data"] if "z" in data]
    assert sum(np.allclose(one[seen], attention.pattern[head][seen], atol=1e-5) for one in maps) == 1


def test_between_saved_steps_the_first_and_the_last_move_of_the_weights_are_told(open_shipped: Callable) -> None:
    app = open_shipped(
        "pages/training.py", checkpoint="multi30k-tiny", inside="Why warm-up", training="One training step", **TYPED
    )
    steps = snapshot_steps(SHIPPED / "multi30k-tiny")
    assert words(app).count("From step") == 2
    assert f"to {steps[-1]:,}" in words(app)


def test_the_runs_without_norm_or_residual_are_those_of_the_tables(run_at: Callable, monkeypatch) -> None:
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(SHIPPED))
    run = run_at()
    logs, gradients = read_study("norm_and_residual"), read_study("gradients_by_layer")
    result = norm_and_residual(run, trained="no-residual")
    table = result.shows["table"].frame
    assert list(table["model"]) == list(dict.fromkeys(name for name in NORM_RUNS if name in set(gradients["run"])))
    ends = logs.groupby("run").last()
    for _, row in table.iterrows():
        assert row["loss, nats per token"] == pytest.approx(ends["dev_loss"].get(row["model"], np.nan), nan_ok=True)
    of_run = gradients[(gradients["run"] == "post-6") & (gradients["stack"] == "decoder")]
    assert np.array_equal(result.shows["decoder"].lines["post-norm, 6"].y, of_run["gradient"])
    link = parse_qs(result.facts["run"]["link"])
    opened = load_checkpoint(link["checkpoint"][0], "cpu")
    assert not opened.config.residual
    assert opened.trace(link["source"][0]).sublayers[0].adds is False


def test_every_run_of_norm_and_residual_ships_with_its_weights_and_all_together_are_small(
    run_at: Callable, monkeypatch
) -> None:
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(SHIPPED))
    result = norm_and_residual(run_at())
    ends = read_study("norm_and_residual").groupby("run")["dev_exact"].last().to_dict()
    assert result.facts["ends"] == ends
    assert set(ends) == set(NORM_RUNS)
    assert {f"studies/{name}" for name in NORM_RUNS} <= set(study_checkpoints())
    assert sum((SHIPPED / "studies" / name / "model.safetensors").stat().st_size for name in NORM_RUNS) < 10e6


def test_each_shipped_run_has_the_norm_and_the_layers_of_its_name(monkeypatch) -> None:
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(SHIPPED))
    for name, (depth, _, _) in NORM_RUNS.items():
        if f"studies/{name}" in study_checkpoints():
            config = load_checkpoint(f"studies/{name}", "cpu").config
            assert (config.n_encoder_layers, config.n_decoder_layers) == (depth, depth)
            assert config.norm == ("pre" if name.startswith("pre") else "post")
            assert config.norm_function == {"no-norm": "none", "batch-norm": "batch_norm"}.get(name, "layer_norm")


def test_the_fair_warm_up_has_the_same_peak_and_is_shown(run_at: Callable) -> None:
    study = read_study("warm_up")
    peaks = study.groupby("way")["rate"].max()
    assert peaks["same peak"] == pytest.approx(peaks["warm-up"], rel=0.05)
    assert peaks["highest rate"] > 10 * peaks["warm-up"]
    result = warm_up(run_at())
    ends = study[study["step"] == study["step"].max()].groupby("way")["dev_exact"]
    assert study.groupby("way")["seed"].nunique().to_dict() == dict.fromkeys(ends.groups, result.facts["runs"])
    assert result.facts["runs"] >= 3
    for way, shares in zip(("warm-up", "same peak", "highest rate"), result.facts["ends"].values(), strict=True):
        own = ends.get_group(way)
        assert shares == pytest.approx((own.mean(), own.min(), own.max()))
    apart = ends.get_group("warm-up").min() > ends.get_group("same peak").max()
    assert result.facts["apart"] == apart


@pytest.mark.parametrize("kind", WEIGHT_KINDS)
def test_the_sizes_of_updates_are_those_of_the_table_times_the_rate(run_at: Callable, kind: str) -> None:
    study = read_study("warm_up").dropna(subset="rate")
    result = warm_up(run_at(), weights=kind)
    for way, (name, *_) in WAYS.items():
        rows = study[study["way"] == way]
        by_step = rows.assign(size=rows["rate"] * rows[f"update_{kind}"]).groupby("step")
        size, ratio = (result.shows[each].lines[name] for each in ("size", "ratio"))
        assert np.array_equal(ratio.x, [*by_step.groups])
        assert np.allclose(ratio.y, by_step[f"update_{kind}"].mean())
        assert np.allclose(ratio.between, [by_step[f"update_{kind}"].min(), by_step[f"update_{kind}"].max()])
        drawn = by_step["size"].mean()
        assert np.allclose(size.y, drawn[drawn > 0])
        assert result.facts["shares"][name] == pytest.approx(
            drawn[1] / rows[rows["step"] == 1][f"weights_{kind}"].mean()
        )


@pytest.mark.parametrize(("own", "offered"), [(0.3, [0.3, 0.1]), (0.1, [0.1]), (0.0, [0.1])])
def test_a_models_own_dropout_rate_is_offered_beside_the_papers(own: float, offered: list[float]) -> None:
    run = SimpleNamespace(opened=SimpleNamespace(config=TransformerConfig(dropout=own)))
    assert list(DROPPED_RATE.offer(run, {}).options) == offered
