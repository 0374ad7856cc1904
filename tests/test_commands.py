"""What README and docs say to type works as printed; `python -m tests.commands` tries all of it, with `make`."""

import re
from pathlib import Path

import pytest

from tests.commands import NOT_HERE, Command, all_commands, copy_project, run

QUICK = ("README.md", "docs/notebook.md")
"""documents whose commands take a minute together"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("copy")
    copy_project(folder)
    return folder


def test_what_readme_and_some_of_docs_say_to_type_works(project: Path) -> None:
    """In order: what one command makes, the next one reads. `make` would install everything anew."""
    here = [each for each in all_commands() if each.document in QUICK and not each.not_here]
    tried = [each for each in here if not each.words.startswith("make")]
    assert len(tried) > len(QUICK)
    done = {command.shorter: run(command, project) for command in tried}
    failed = {words: outcome.output[-600:] for words, outcome in done.items() if outcome.status}
    assert failed == {}


def test_a_command_that_fails_is_seen(project: Path) -> None:
    assert run(Command("README.md", "python --no-such-option"), project).status != 0
    assert run(Command("README.md", "python -m http.server --no-such-option"), project).status != 0


@pytest.mark.parametrize("what", NOT_HERE)
def test_every_reason_not_to_run_a_command_has_a_command(what: str) -> None:
    assert any(re.search(what, command.words) for command in all_commands())
