"""What the README promises: its recipe for a view works as printed, its map and its links lead somewhere."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
OPEN = """
import json
from streamlit.testing.v1 import AppTest
home = AppTest.from_file("app.py", default_timeout=60).run()
page = AppTest.from_file("app.py", default_timeout=60).switch_page("pages/largest_weights.py").run()
figure = json.loads(page.get("plotly_chart")[0].proto.spec)
assert not page.exception, page.exception[0].stack_trace
print(json.dumps({"cards": [link.proto.label for link in home.get("page_link")], "title": page.title[0].value,
                  "bars": figure["data"][0]["x"], "words": [m.value for m in page.markdown]}))
"""


def code_blocks() -> dict[str, str]:
    """Path named in its first line -> the Python block of the README."""
    blocks = re.findall(r"```python\n# ([\w/]+\.py)[^\n]*\n(.*?)```", README, re.DOTALL)
    return dict(blocks)


def test_the_recipe_for_a_view_works_as_printed(tmp_path: Path, saved_checkpoints: Path) -> None:
    for name in ("pages", "viz", "model", ".streamlit"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "app.py", tmp_path)
    blocks = code_blocks()
    line = blocks.pop("pages/__init__.py")
    for path, code in blocks.items():
        assert not (tmp_path / path).exists(), "the recipe adds a view; it does not replace one"
        (tmp_path / path).write_text(code, encoding="utf-8")
    pages = tmp_path / "pages/__init__.py"
    before = pages.read_text("utf-8")
    section = re.search(r'"Background": \(\n', before)
    assert section
    pages.write_text(before[: section.end()] + line + before[section.end() :], encoding="utf-8")

    check_rules(tmp_path, [*blocks, "pages/__init__.py"])
    environment = {"ATTENTION_EXPLORER_CHECKPOINTS": str(saved_checkpoints), "PATH": "", "OMP_NUM_THREADS": "1"}
    run = subprocess.run(
        [sys.executable, "-c", OPEN], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    shown = json.loads(run.stdout.splitlines()[-1])
    assert shown["title"] == "Largest weights"
    assert any("Largest weights" in card for card in shown["cards"]), "the home page has no card for the new page"
    assert shown["bars"][0].startswith("0 ")
    assert "A bar near 1 attends to a single key." in shown["words"]


def check_rules(folder: Path, files: list[str]) -> None:
    """What `make lint` holds, for these files."""
    shutil.copy(ROOT / "pyproject.toml", folder)
    scripts = Path(sys.executable).parent
    for rule in (["ruff", "format", "--check", *files], ["ruff", "check", *files], ["lint-imports", "--no-cache"]):
        run = subprocess.run(
            [scripts / rule[0], *rule[1:]], cwd=folder, capture_output=True, text=True, check=False, timeout=120
        )
        assert run.returncode == 0, run.stdout + run.stderr


def test_the_map_names_what_is_there() -> None:
    tree = re.search(r"## Where things are\n\n```\n(.*?)```", README, re.DOTALL)
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
    for document in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", document.read_text("utf-8")):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"
