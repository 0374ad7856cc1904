"""Small versions of `make soak`; that a killed training loses nothing is in tests/model/training/test_train.py."""

import gzip
import os
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("streamlit")
pytest.importorskip("websockets")

from model.checkpoints.store import load_checkpoint, save_checkpoint
from model.checkpoints.translator import Translator
from pages.frame.server.html_page import SCRIPTS
from tests.bench.coldstart import ONE_CHART
from tests.soak import classroom, closed, faults, load, proxy, replicas
from tests.soak.client import Session
from tests.soak.server import Server, serving

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to look at the server")


@pytest.fixture(scope="module")
def server(saved_checkpoints: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("soak") / "log.txt", saved_checkpoints) as server:
        yield server


def test_six_sessions_at_once_each_get_their_own_answers(server: Server, checkpoint_folder: Path) -> None:
    assert checkpoint_folder
    tally, opened = load.crowd(server, 6, 6.0, load_checkpoint(device="cpu"))
    for session in opened:
        session.close()
    assert tally.errors == []
    assert tally.crossed == 0
    assert len(tally.seconds) >= 6
    assert server.complaints() == []


def test_the_load_notices_an_answer_that_is_somebody_else_s(translator: Translator) -> None:
    (one, *_), (other, *_) = (load.cases(number, translator) for number in (0, 1))
    first, second = (load.Answer.expected(case.traced(translator)) for case in (one, other))
    assert first.same(first)
    assert not first.same(second)


def test_a_class_makes_every_kind_of_move_and_meets_no_error(server: Server) -> None:
    visitor = classroom.Visitor(server.port, 0)
    visitor.session.open()
    for kind in (*classroom.MOVES, *classroom.MOVES):
        visitor.move(kind)
        assert visitor.session.problems() == []
    assert np.isfinite(visitor.session.cells("side_by_side-encoder_map")[0]).any()
    visitor.session.close()
    tally = classroom.teach([server], [classroom.Visitor(server.port, number) for number in (1, 2)], 1.0, (0.0, 0.1))
    assert tally.errors == []
    typed = [classroom.write_sentence(number, count) for number in range(30) for count in range(30)]
    assert len(set(typed)) == len(typed)


def test_beside_a_class_one_trains_and_one_teaches_and_undoes_a_correction(server: Server) -> None:
    trainer, corrector = classroom.Trainer(server.port, 3), classroom.Corrector(server.port, 4)
    for visitor, moves in ((trainer, ("training",) * 3), (corrector, ("correction", "undo"))):
        visitor.session.open()
        for kind in moves:
            visitor.move(kind)
            assert visitor.session.problems() == []
    assert any("Step **" in text for text in trainer.session.texts())
    assert corrector.undone == 1
    tally = classroom.teach([server], [classroom.Visitor(server.port, 5)], 1.0, (0.0, 0.1), [trainer])
    assert tally.errors == []
    assert tally.by_move["training"]
    assert len(tally.seconds) == sum(len(seconds) for kind, seconds in tally.by_move.items() if kind != "training")
    assert server.complaints() == []


def test_a_server_of_another_page_sends_it_whole_at_every_rerun(tmp_path: Path) -> None:
    with serving(tmp_path / "log.txt", script=ONE_CHART) as plain:
        session = Session(plain.port)
        for _ in range(2):
            session.open()
            assert [element.WhichOneof("type") for element in session.elements.values()].count("plotly_chart") == 1
        session.close()


@pytest.fixture
def nginx() -> None:
    """Without it the test is skipped, or fails with CI=true."""
    if proxy.nginx_program() is None:
        message = "needs nginx on the path"
        pytest.fail(message) if os.environ.get("CI") == "true" else pytest.skip(message)


@pytest.mark.usefixtures("nginx")
def test_behind_nginx_visitors_stay_with_their_process_and_survive_its_end(
    saved_checkpoints: Path, tmp_path: Path
) -> None:
    assert replicas.lose_one(tmp_path, saved_checkpoints, sessions=9) == []


@pytest.mark.usefixtures("nginx")
def test_nginx_sends_scripts_compressed_and_asks_the_app_for_each_once(saved_checkpoints: Path, tmp_path: Path) -> None:
    with serving(tmp_path / "server.log", saved_checkpoints) as server, proxy.balancing(tmp_path, [server]) as port:
        address = "static/js/" + next(SCRIPTS.glob("PlotlyChart.*.js")).name
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/{address}") as direct:
            script = direct.read()
        compressed = urllib.request.Request(f"http://127.0.0.1:{port}/{address}", headers={"Accept-Encoding": "gzip"})
        for _ in range(2):
            with urllib.request.urlopen(compressed) as answer:
                sent = answer.read()
            assert gzip.decompress(sent) == script
            assert len(sent) < len(script) / 2
            # The second answer comes without the app.
            server.kill()


def test_work_is_dropped_when_the_sessions_close(server: Server) -> None:
    _, idle = closed.ask_and_leave(server, sessions=3, clauses=1)
    assert idle < closed.AT_MOST
    assert server.complaints() == []


def test_a_link_brings_the_view_back_from_a_server_that_was_killed(saved_checkpoints: Path, tmp_path: Path) -> None:
    assert faults.server_killed(tmp_path, saved_checkpoints, sessions=2) == []


def test_a_full_disk_leaves_the_old_checkpoint_whole(translator: Translator, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    save_checkpoint(folder, translator.model, translator.tokenizer, dict(translator.model.named_parameters()))
    assert faults.disk_full(folder, 4096) == []
    load_checkpoint(str(folder), "cpu")


def test_a_disk_with_room_is_noticed(translator: Translator, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    save_checkpoint(folder, translator.model, translator.tokenizer, dict(translator.model.named_parameters()))
    assert any("did not fail" in problem for problem in faults.disk_full(folder, 10**9))
