"""What README, CONTRIBUTING and docs promise: the recipe for a view works as printed, map and links lead somewhere."""

import ast
import base64
import gzip
import html
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from plotly.offline import get_plotlyjs

from model.checkpoints.translator import Translator
from model.run import Run
from pages.views import Result
from pages.views.attention import masks
from pages.views.attention.heads_and_layers import all_heads
from tests.model.checkpoints.huggingface.folders import save_chat_model

ROOT = Path(__file__).parents[1]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
DOCUMENTS = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(ROOT.glob("docs/*.md"))
DOCUMENTS += sorted(ROOT.glob(".github/*.md"))
COUNTING = ("README.md", "CHANGELOG.md", "docs/field.md", "docs/huggingface.md", "docs/verification.md")
FAMILIES = (ROOT / "docs" / "families.md").read_text("utf-8")
OPEN = """
import json
from streamlit.testing.v1 import AppTest
home = AppTest.from_file("app.py", default_timeout=60).run()
masks = AppTest.from_file("app.py", default_timeout=60).switch_page("pages/masks.py")
masks.query_params["part"] = "Rows"
masks = masks.run().number_input(key="masks-head").set_value(1).run()
page = AppTest.from_file("app.py", default_timeout=60).switch_page("pages/largest_weights.py")
page.query_params["part"] = "Rows"
page.run()
for app in (masks, page):
    assert not app.exception, app.exception[0].stack_trace
figure = json.loads(masks.get("plotly_chart")[-1].proto.spec)
cards = [one.proto.json for one in home.get("bidi_component") if one.proto.component_name == "cards"]
print(json.dumps({"cards": cards, "title": page.title[0].value,
                  "names": figure["data"][0]["y"], "words": [m.value for m in page.markdown],
                  "captions": [c.value for c in masks.caption], "of page": [c.value for c in page.caption]}))
"""
ENTRY = """\
[[Beyond]]
name = "largest_weights"
title = "Largest weights"
icon = "bar_chart"
summary = "See how concentrated each query is."
look_for = "A bar near 1 attends to a single key."
"""
ENVIRONMENT = {"PATH": "", "OMP_NUM_THREADS": "1"}


def blocks() -> list[tuple[str, str, str]]:
    """Path, place in that file, and the block of code or text, as the recipe names and prints them."""
    first_line = r"(?:#|<!--) ([\w/]+\.(?:py|md)), ([^\n]+?)(?: -->)?"
    return re.findall(rf"```(?:python|markdown)\n{first_line}\n(.*?)```", CONTRIBUTING, re.DOTALL)


def put(path: Path, place: str, block: str) -> None:
    """Write a block where the recipe says: at the end of a file, or before the line that it names."""
    lines = path.read_text("utf-8").splitlines(keepends=True)
    at = len(lines) if place == "at its end" else lines.index(f"{place.removeprefix('before ')}\n")
    apart = "\n\n" if path.suffix == ".py" else "\n"
    added = f"{apart}{block}" if at == len(lines) else f"{block}{apart}"
    path.write_text("".join([*lines[:at], added, *lines[at:]]), encoding="utf-8")


def run(folder: Path, *command: str, **environment: str) -> str:
    """What a command prints in the folder; it has to succeed."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=ENVIRONMENT | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def with_recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project with the recipe's view as a tab of Masks, and as a page of its own."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("pages", "viz", "model", ".streamlit"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__", "browser", "soak"))
    for name in ("app.py", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    (module, before, view), (text, before_text, words) = blocks()
    put(folder / module, before, view)
    put(folder / text, before_text, words)
    shutil.copy(folder / "pages/masks.py", folder / "pages/largest_weights.py")
    put(folder / "pages/pages.toml", "at its end", ENTRY)
    imports = (folder / module).read_text("utf-8").partition("MOST_PADS")[0]
    (folder / "pages/views/beyond/largest_weights.py").write_text(f"{imports}\n{view}", encoding="utf-8")
    (folder / "pages/text/largest_weights.md").write_text(words, encoding="utf-8")
    return folder


def test_the_recipe_for_a_view_works_as_printed(with_recipe: Path, saved_checkpoints: Path) -> None:
    output = run(with_recipe, "-c", OPEN, ATTENTION_EXPLORER_CHECKPOINTS=str(saved_checkpoints))
    page = json.loads(output.splitlines()[-1])
    assert page["title"] == "Largest weights"
    assert '"title": "Largest weights"' in page["cards"][0], "the home page has no card for the new page"
    assert page["names"][0].startswith("0 ")
    assert "A bar near 1 attends to a single key." in page["words"]
    for captions in (page["captions"], page["of page"]):
        assert any(caption.startswith("At the median row, half of the weight lies on") for caption in captions)


def test_the_view_of_the_recipe_is_on_the_command_line_at_once(with_recipe: Path, saved_checkpoints: Path) -> None:
    command = "-m", "pages.views", "a dog", "--view", "masks.rows", "--set", "head=1", "--json"
    result = json.loads(run(with_recipe, *command, ATTENTION_EXPLORER_CHECKPOINTS=str(saved_checkpoints)))
    assert np.array(result["arrays"]["ranked"]).sum(axis=-1) == pytest.approx(1, abs=1e-5)
    assert result["facts"]["half"] >= 1


@pytest.mark.parametrize("rule", ["ruff format --check", "ruff check", "lint-imports --no-cache"])
def test_the_recipe_passes_make_lint(rule: str, with_recipe: Path) -> None:
    program, *options = rule.split()
    files = ["pages/views/attention/masks.py", "pages/largest_weights.py"] if program == "ruff" else []
    command = [str(Path(sys.executable).parent / program), *options, *files]
    done = subprocess.run(command, cwd=with_recipe, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_recipe_passes_the_tests_that_hold_views(with_recipe: Path) -> None:
    """Those of its own cases, and that text and module have the same views in the same order."""
    run(with_recipe, "-m", "pytest", "-q", "-x", "tests/pages/test_views.py", "-k", "every_section or masks.rows")


def test_a_tab_in_a_notebook_takes_no_more_than_its_picture_needs(translator: Translator) -> None:
    """Plotly comes packed, and not at all where nothing is drawn with it."""
    run = Run.of(translator, translator.trace("A dog."))
    page = html.unescape(masks.orders(run)._repr_html_())
    assert len(page) < 2.5e6
    (code,) = re.findall(r"bring\('([^']+)'\)", page)
    assert gzip.decompress(base64.b64decode(code)).decode() == get_plotlyjs()
    assert not _brings_plotly(all_heads(run))


def test_in_a_notebook_the_first_cell_that_draws_with_plotly_brings_it(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when it runs again; a cell without Plotly is not the first, and without cells each output has its own."""
    run = Run.of(translator, translator.trace("A dog."))
    shell = SimpleNamespace(parent_header={})
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert [_brings_plotly(masks.orders(run)) for _ in range(2)] == [True, True]
    brings = {}
    for turn, (cell, result) in enumerate(zip("abcb", (all_heads(run), *[masks.orders(run)] * 3), strict=True)):
        shell.parent_header = {"metadata": {"cellId": cell}}
        brings[turn, cell] = _brings_plotly(result)
    assert brings == {(0, "a"): False, (1, "b"): True, (2, "c"): False, (3, "b"): True}
    monkeypatch.setitem(sys.modules, "google.colab", SimpleNamespace())
    shell.parent_header = {"metadata": {"cellId": "c"}}
    assert _brings_plotly(masks.orders(run))


def _brings_plotly(result: Result) -> bool:
    return "bring('" in html.unescape(result._repr_html_())


@pytest.mark.parametrize("name", ["README.md", "docs/notebook.md", "docs/huggingface.md"])
def test_every_block_of_python_runs_as_in_a_notebook(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Statement by statement; what a line gives is drawn, as that of the last line of a cell is."""
    if name == "docs/huggingface.md":
        save_chat_model(tmp_path / "path/to/folder")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", (ROOT / name).read_text("utf-8"), re.DOTALL):
        if "downloads/" in block:  # a model from the network
            continue
        for statement in ast.parse(block).body:
            if isinstance(statement, ast.Expr):
                given = eval(compile(ast.Expression(statement.value), name, "eval"), names)
                assert getattr(given, "_repr_html_", lambda: "none to draw")()
            else:
                exec(compile(ast.Module([statement], []), name, "exec"), names)
    assert names


def test_no_other_document_has_python_that_is_not_run() -> None:
    with_python = [path.relative_to(ROOT).as_posix() for path in DOCUMENTS if "```python" in path.read_text("utf-8")]
    assert with_python == ["README.md", "CONTRIBUTING.md", "docs/huggingface.md", "docs/notebook.md"]


def test_the_map_names_what_is_there() -> None:
    tree = re.search(r"## Where things are\n\n```\n(.*?)```", CONTRIBUTING, re.DOTALL)
    assert tree
    folder = ""
    for line in tree[1].splitlines():
        names, depth = line.split("  ")[0] if not line.startswith(" ") else line[2:].split("  ")[0], line[:2].isspace()
        for name in names.split():
            if not re.fullmatch(r"[\w./]+", name) or name.startswith("."):
                continue
            path = ROOT / (folder if depth else "") / name
            assert path.exists(), f"the map names {path.relative_to(ROOT)}"
        if not depth and names.endswith("/"):
            folder = names


def test_every_relative_link_leads_somewhere() -> None:
    for document in DOCUMENTS:
        prose = re.sub(r"```.*?```", "", document.read_text("utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", prose):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_every_page_counts_the_families_that_the_table_has() -> None:
    opened = sum(map(int, re.findall(r"^\| opened, [^|]+\| (\d+) \|", FAMILIES, re.MULTILINE)))
    count = re.compile(r"(\d+) families(?! of transformers)")
    said = {page: count.findall((ROOT / page).read_text("utf-8")) for page in COUNTING}
    assert said == {page: [str(opened)] * len(found) for page, found in said.items()}
    assert all(said.values())
