"""What `make check` runs after a change."""

from pathlib import Path

import grimp
import pytest

from pages import PAGES
from tests.touched import PACKAGES, touched


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(*PACKAGES, cache_dir=None)


def test_each_page_has_cases_of_its_own_in_the_test_of_all_views(graph):
    for page in (page for pages in PAGES.values() for page in pages):
        stem = Path(page.path).stem
        files, words = touched([f"pages/{stem}.py"], graph)
        assert "tests/pages/test_views.py" in files
        assert stem in words


def test_a_change_of_a_text_runs_what_a_change_of_its_view_runs_by_name(graph):
    files, words = touched(["pages/text/masks.md"], graph)
    assert {"tests/pages/test_masks.py", "tests/pages/test_views.py"} <= files
    assert words >= {"masks", "test_masks.py"}
    assert "test_views.py" not in words  # only its cases of this page


def test_a_module_runs_the_tests_that_import_it_and_no_browser(graph):
    files, words = touched(["model/hooks.py"], graph)
    assert {"tests/model/test_hooks.py", "tests/model/interventions/test_patch.py"} & files
    assert not any(file.startswith("tests/browser/") for file in files)
    assert words == {Path(file).name for file in files}


def test_a_changed_test_runs_and_a_file_that_no_test_knows_runs_nothing(graph):
    assert touched(["tests/test_house.py"], graph) == ({"tests/test_house.py"}, {"test_house.py"})
    assert touched(["LICENSE", "tests/test_gone.py"], graph) == (set(), set())
