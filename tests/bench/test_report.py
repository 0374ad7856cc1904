"""docs/speed.md: a part that is measured again replaces its own section and no other."""

from pathlib import Path

import pytest

from tests.bench import report


@pytest.fixture(autouse=True)
def report_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "docs" / "speed.md"
    monkeypatch.setattr(report, "REPORT", path)
    return path


def test_a_part_replaces_its_own_section_and_leaves_the_others(report_file: Path) -> None:
    report.write_section("views", "Views", "How.", ["| old |"], 3.0)
    report.write_section("peers", "Peers", "How.", ["| 1 | 2 |"], 4.0)
    before = report_file.read_text("utf-8")
    report.write_section("views", "Views", "How.", ["| new |"], 5.0)
    after = report_file.read_text("utf-8")
    assert "| old |" in before
    assert "| old |" not in after
    assert after.index("| new |") < after.index("| 1 | 2 |")
    assert after.count("## Views") == after.count("## Peers") == 1


def test_the_report_says_when_and_on_what_it_was_measured(report_file: Path) -> None:
    report.write_section("views", "Views", "How.", ["| 1 |"], 3.0)
    assert "load average" in report_file.read_text("utf-8")
