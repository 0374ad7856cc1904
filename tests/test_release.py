"""What a release says of itself, and what the repository's pages and workflows name, is so."""

import re
import subprocess
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from model import VERSION
from pages import PAGES
from tests.readme import LINE, line, published_at

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))
FORMS = sorted(set(ROOT.glob(".github/ISSUE_TEMPLATE/*.yml")) - {ROOT / ".github/ISSUE_TEMPLATE/config.yml"})


def test_the_version_is_said_alike_wherever_it_stands() -> None:
    newest = re.search(r"^## \[(.+?)\] - (.+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert newest
    assert newest.groups() == (citation["version"], citation["date-released"])
    assert citation["version"] == VERSION


def test_readme_is_read_in_five_minutes() -> None:
    assert len(README.splitlines()) <= 95
    assert len(README.split()) <= 950


def test_readme_says_where_the_pages_are_published_as_pyproject_does() -> None:
    assert [found[0] for found in LINE.finditer(README)] == [line(published_at())]
    assert "](https://example.org/)" in line("https://example.org/")
    assert "make site" in line("")


def test_readme_leads_to_pages_and_tabs_of_the_app() -> None:
    tabs = {page.path.removeprefix("pages/").removesuffix(".py"): page for pages in PAGES.values() for page in pages}
    links = [urlsplit(link) for link in re.findall(r"\]\(http://localhost:8501/([^)]*)\)", README)]
    assert links
    for link in links:
        page = tabs[link.path or "translate"]
        for tab in parse_qs(link.query).get("part", []):
            assert tab in [view.title for view in page.views]


def test_readme_has_the_scores_of_the_results() -> None:
    results = (ROOT / "docs/results.md").read_text("utf-8")
    rows = re.findall(r"^\| \[([\w-]+)\]\(.*?\), (\S+) \| ([\d,]+) \| ([\d.]+) ", README, re.MULTILINE)
    assert rows
    for name, family, parameters, score in rows:
        (row,) = re.findall(rf"^\| \[{name}\].*$", results, re.MULTILINE)
        cells = row.split(" | ")
        assert cells[1:3] == [family, parameters]
        assert cells[5].startswith(f"{score} ")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_calls_targets_that_the_makefile_has_and_files_that_are_there(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text("utf-8"))
    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        assert job["permissions"]
        steps = job.get("steps", [])
        for command in re.findall(r"^make .+$", "\n".join(step.get("run", "") for step in steps), re.MULTILINE):
            dry = ["make", "--dry-run", "VENV=none", "PYTHON=python", *command.split()[1:]]
            subprocess.run(dry, cwd=ROOT, check=True, capture_output=True)
        for used in [job, *steps]:
            if name := used.get("uses"):
                assert (ROOT / name).is_file() if name.startswith("./") else re.search(r"@[0-9a-f]{40}$", name)


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_a_form_has_what_github_asks_of_one(path: Path) -> None:
    """Name, description, and fields with a name of their own and a label."""
    form = yaml.safe_load(path.read_text("utf-8"))
    assert {"name", "description", "body"} <= form.keys()
    names = [field["id"] for field in form["body"]]
    assert len(set(names)) == len(names)
    assert all(field["type"] in ("input", "textarea") and field["attributes"]["label"] for field in form["body"])


def test_a_report_asks_for_the_link_and_for_what_runs() -> None:
    (report,) = (path.read_text("utf-8") for path in FORMS if "attention-explorer --about" in path.read_text("utf-8"))
    required = {field["id"] for field in yaml.safe_load(report)["body"] if field.get("validations", {}).get("required")}
    assert required >= {"link", "about"}


def test_the_space_listens_where_the_image_does() -> None:
    head = yaml.safe_load((ROOT / "deploy/space/README.md").read_text("utf-8").split("---")[1])
    assert head["sdk"] == "docker"
    assert f"EXPOSE {head['app_port']}\n" in (ROOT / "Dockerfile").read_text("utf-8")
