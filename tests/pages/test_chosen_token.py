"""The chosen token: a page begins with a word worth a look, and a choice travels from page to page."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.store import load_checkpoint
from model.run import Run
from pages.frame.address.url import RENAMED
from pages.frame.bar.search import tokens_of
from pages.views.beyond import since_2017
from pages.views.chosen_token import first_key, first_query, key_of, query_of
from pages.views.model import layer_by_layer, tokens_and_embeddings, whole_model
from pages.widgets import controls
from tests.pages.conftest import TYPED
from tests.viz.payload import unpack
from viz.tokens import ARROW, word


@cache
def shipped() -> Checkpoint:
    return load_checkpoint("en-de")


@pytest.mark.parametrize(
    ("sentence", "kind", "expected"),
    [
        ("The animal didn't cross the street because it was too tired.", "encoder_self", "it"),
        ("I have not seen the dog.", "cross", "nicht"),
        ("The old man gave her the newspaper.", "encoder_self", "her"),
        ("We read a newspaper in the garden.", "encoder_self", "garden"),
        ("The dog sleeps in the garden.", "decoder_self", "Garten"),
    ],
    ids=["of an example", "of an example's cross-attention", "a pronoun", "the last word", "a German noun"],
)
def test_a_page_begins_with_a_word_that_the_sentence_is_about(sentence: str, kind: str, expected: str) -> None:
    opened = shipped()
    run = Run.of(opened, opened.trace(sentence), kind)
    rows = run.attention.predicts.labels if run.attention.predicts else run.attention.query_tokens
    assert word(rows[first_query(run)]) == expected
    assert query_of(replace(run, query=0)) == 0
    assert query_of(replace(run, query=10**6)) == first_query(run)
    row = run.attention.pattern[run.head, query_of(run)]
    assert row[key_of(run)] == row.max()
    assert first_key(replace(run, query=0)) == run.attention.pattern[run.head, 0].argmax()


@pytest.mark.parametrize("text", ["?", "🙂🙂", "שלום", "12 34", "a", "x" * 40])
def test_a_text_without_a_word_has_a_first_token_too(text: str) -> None:
    opened = shipped()
    trace = opened.trace(text, beam_size=1)
    for kind in trace.kinds:
        run = Run.of(opened, trace, kind.name)
        assert 0 <= first_query(run) < len(run.attention.query_tokens)


def test_a_choice_is_followed_by_other_pages_and_forgotten_with_the_sentence(open_app: Callable) -> None:
    here = {"kind": "Encoder self", "part": "Before or after the softmax"}
    app = open_app("pages/masks.py", **TYPED, **here)
    first = app.number_input(key="query").value
    chosen = 0 if first else 1
    app.number_input(key="query").set_value(chosen).run()
    app.switch_page("pages/temperature.py").run()
    assert app.number_input(key="query").value == chosen
    app.segmented_control(key="kind").set_value("cross").run()
    assert app.number_input(key="query").value != chosen
    app.segmented_control(key="kind").set_value("encoder_self").run()
    app.number_input(key="query").set_value(chosen).run()
    app.text_area(key="source").set_value("a cat and a dog and a cat").run()
    assert app.number_input(key="query").value != chosen


@pytest.mark.parametrize(
    ("clicked", "query", "key"),
    [
        ({"tau": 2.0}, 3, 2),
        ({"layer": 1, "head": 0}, 3, 2),
        ({"kind": "decoder_self"}, 3, 2),
        ({"kind": "encoder_self"}, 5, 6),
        ({"kind": "encoder_self", "query": 1}, 1, 6),
        ({"source": "Another text."}, 5, 6),
    ],
)
def test_a_click_keeps_the_token_until_its_text_is_another_one(
    clicked: dict[str, object], query: int, key: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = {"kind": "cross", "query": 3, "key": 2, controls.DEFAULTS: {"query": 5, "key": 6}}
    monkeypatch.setattr(controls.st, "session_state", state)
    controls.set_controls(clicked)
    assert (state["query"], state["key"]) == (query, key)


@pytest.mark.parametrize("name", RENAMED)
def test_a_row_in_an_older_link_is_the_chosen_token(open_app: Callable, name: str) -> None:
    app = open_app("pages/temperature.py", **TYPED, **{name: "2"})
    assert app.number_input(key="query").value == 2


@pytest.mark.parametrize(("kind", "stack"), [("encoder_self", "encoder"), ("cross", "decoder")])
def test_layers_and_the_whole_model_begin_with_the_chosen_token(run_at: Callable, kind: str, stack: str) -> None:
    run = replace(run_at(kind), query=2)
    assert layer_by_layer.STACK.offer(run, {}).start == stack
    assert layer_by_layer.TOKEN.offer(run, {"stack": stack}).start == 2
    header, _ = unpack(whole_model.figure(run).shows["whole_model"].drawing.data)
    assert header["chosen"]["positions"][stack] == 2


@pytest.mark.parametrize(("family", "after"), [("mlm", 0), ("lm", 1)])
def test_a_row_of_an_encoder_is_about_its_own_token_and_one_of_a_decoder_about_the_next(
    families: Path, family: str, after: int
) -> None:
    opened = load_checkpoint(families / family)
    trace = opened.trace("a dog <mask> a cat" if family == "mlm" else "a dog and a cat")
    run = replace(Run.of(opened, trace, ""), query=2)
    (stack,) = trace.streams
    side = tokens_and_embeddings.SIDES[stack]
    assert tokens_and_embeddings.POSITION.offer(run, {"side": side}).start == 2 + after
    for menu, values in ((layer_by_layer.TOKEN, {"stack": stack}), (since_2017.TOKEN, {})):
        offer = menu.offer(run, values)
        assert offer.start == 2
        assert all((ARROW in label) == bool(after) for label in offer.options.values())
        assert menu.named(run, values, f"{offer.options[2].partition(ARROW)[0]}{ARROW}dog") == [2] * (not after)
    said = {token.text for token in tokens_of(trace, run.kind)}
    assert ("<mask>" in said) == (family == "mlm")
