"""The page of results is what the checkpoints' own files say."""

from model.checkpoints.card import in_digits, read_card
from model.checkpoints.store import checkpoint_folder
from model.commands.results import PAGE, YARDSTICKS, results_page


def test_the_page_is_what_the_command_writes():
    assert PAGE.read_text(encoding="utf-8") == results_page(), "run `python -m model.commands.results`"


def test_each_checkpoint_is_in_the_table_with_its_score():
    page = results_page()
    for name in YARDSTICKS:
        (line,) = (line for line in page.splitlines() if line.startswith(f"| [{name}]"))
        card = read_card(checkpoint_folder() / name)
        scores = [f"{in_digits(each.metric, each.value)} {each.metric} ({each.dataset})" for each in card.scores]
        assert any(score in line for score in scores)
