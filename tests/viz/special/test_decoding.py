"""Figures of decoding show the numbers they were given, and no token becomes markup."""

from types import SimpleNamespace

from model.generation.beam_tree import beam_tree
from model.network.config import EOS
from viz.canvas.beam_tree import hypotheses_table, tree_picture
from viz.special.decoding import progress_line

EVIL = "\u2581<img src=x>"


def test_the_line_tells_written_chosen_and_coming_apart() -> None:
    line = progress_line(("\u2581Ein", "\u2581Hund", EVIL), 1, 0, "translation")
    assert 'class="given"' not in line
    assert line.count('class="past"') == line.count('class="now"') == line.count('class="later"') == 1
    assert line.index('class="past"') < line.index('class="now"') < line.index('class="later"')
    assert "<img" not in line


def test_the_line_has_the_prompt_first_and_counts_steps_after_it() -> None:
    line = progress_line((EVIL, "a", "b"), 1, 1, "continuation")
    states = ["given", "past", "now"]
    assert [line.count(f'class="{state}"') for state in states] == [1, 1, 1]
    assert sorted(states, key=lambda state: line.index(f'class="{state}"')) == states
    assert 'title="step 1: chosen at this step"' in line
    assert 'aria-label="The continuation at step 1"' in line
    assert "<img" not in line


def test_the_payload_is_the_tree(translator) -> None:
    tree = beam_tree(translator.model, [*translator.tokenizer.encode("a dog"), EOS], 2)
    pieces = translator.tokenizer.tokens([node.token for node in tree.nodes])
    scores = [node.log_probability / 2 for node in tree.nodes]
    paths = tree.path(tree.ends[0]), tree.path(tree.ends[1])
    payload = tree_picture(tree.nodes, pieces, scores, paths, tree.ends, 3, "<s>").data
    for drawn, node, score in zip(payload["nodes"], tree.nodes, scores, strict=True):
        assert (drawn["step"], drawn["rank"], drawn["parent"], drawn["fate"]) == (
            node.step,
            node.rank,
            node.parent,
            node.fate,
        )
        assert (drawn["token"], drawn["total"]) == (node.token_log_probability, node.log_probability)
        assert drawn["score"] == score
    assert payload["winner"] == list(paths[0])
    assert payload["chosen"] == list(paths[1])
    assert payload["ranked"] == list(tree.ends)


def test_a_payload_writes_invisible_characters_out() -> None:
    node = SimpleNamespace(step=0, rank=0, parent=-1, token_log_probability=-1, log_probability=-1, fate="kept")
    payload = tree_picture([node], ["\u202ex"], [-1.0], ([0], [0]), [0], 0, "\u202ez").data
    assert payload["nodes"][0]["label"] == "-U+202Ex"
    assert payload["start"] == "-U+202Ez"


def test_the_table_divides_by_the_penalty() -> None:
    table = hypotheses_table(["a", "b"], [-2.0, -6.0], [3, 7], [1.0, 2.0], "translation")
    assert list(table["score"]) == [-2.0, -3.0]
    assert list(table["rank"]) == [1, 2]
