"""The examples of both shipped checkpoints: what is said of each holds in that checkpoint's own run."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from model.analysis.words import attention_words, merge
from model.checkpoints.translator import Translator
from model.interventions import AttentionTemperature
from model.run import Request, Run
from model.trace import Trace
from pages.views.examples import (
    Example,
    Examples,
    examples_of,
    largest_weight,
    read_examples,
    strongest_head,
    unfamiliar,
)
from pages.views.explore import translate
from pages.views.words import blocks_of
from tests.pages.conftest import SHIPPED
from viz.tokens import as_markdown

BARELY = 0.02
"""how far a row's largest weight has to be above an equal share"""
BY_CHECKPOINT = {name: read_examples(SHIPPED / name) for name in ("en-de", "multi30k-tiny")}
SHOWING = BY_CHECKPOINT["en-de"].showing
EACH = [(name, one) for name, examples in BY_CHECKPOINT.items() for one in examples.showing if one.head is not None]
ASKED = [example for example in SHOWING if example.head is None]
"""those that name no head: each run says which of its heads comes closest"""


@cache
def opened(name: str) -> Translator:
    from model.checkpoints.store import load_checkpoint

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTENTION_EXPLORER_CHECKPOINTS", str(SHIPPED))
        return load_checkpoint(name, "cpu")


@cache
def traced(name: str, text: str) -> Trace:
    return opened(name).trace(text)


@pytest.mark.parametrize(("name", "example"), EACH, ids=[f"{name}: {example.label}" for name, example in EACH])
def test_the_head_of_an_example_gives_its_largest_weight_where_it_says(name: str, example: Example) -> None:
    trace = traced(name, example.sentence)
    found = largest_weight(example, trace)
    assert found
    query, key, weight = found
    row = trace.attention(example.kind, example.layer).pattern[example.head, query]
    assert row.argmax() == key
    assert weight == row[key] > 1 / len(row) + BARELY


def test_the_street_is_ahead_in_both_sentences_and_the_dog_by_far() -> None:
    tired, sure = (traced("en-de", example.sentence) for example in SHOWING[:2])
    wide = opened("en-de").trace(SHOWING[0].sentence.replace("tired", "wide"))
    for trace in (tired, wide):
        row = weights_of_it(trace)
        assert max(row, key=row.__getitem__) == "street"
    dog, *others = sorted(weights_of_it(sure).values(), reverse=True)
    assert dog == weights_of_it(sure)["dog"] > 2 * others[0]
    assert sure.src_tokens.index("\u2581it") - sure.src_tokens.index("\u2581dog") == 2


def test_who_ran_away_is_lost_in_the_encoder_and_kept_in_the_translation() -> None:
    trace = opened("en-de").trace(
        next(example.sentence for example in SHOWING if example.label == "Clauses in clauses.")
    )
    ran, cat = (trace.src_tokens.index(f"\u2581{word}") for word in ("ran", "cat"))
    encoder = [attention for (kind, _), attention in trace.attentions.items() if kind == "encoder_self"]
    assert max(attention.pattern[:, ran, cat].max() for attention in encoder) < 0.1
    assert trace.translation.startswith("Die Katze,")
    assert {"davon.", "weg."} & set(trace.translation.split())
    assert "Junge" not in trace.translation


def weights_of_it(trace: Trace) -> dict[str, float]:
    """The weight that "it" gives to each word in the head that both examples open."""
    attention = trace.attention(SHOWING[0].kind, SHOWING[0].layer)
    row = attention.pattern[SHOWING[0].head, attention.query_tokens.index("\u2581it")]
    return {key.removeprefix("\u2581"): float(weight) for key, weight in zip(attention.key_tokens, row, strict=True)}


def test_the_animal_is_tired_and_the_street_is_wide() -> None:
    tired = SHOWING[0].sentence
    animal, street = opened("en-de").translate([tired, tired.replace("tired", "wide")])
    assert "weil es zu" in animal
    assert "weil sie zu" in street


@pytest.mark.parametrize(
    ("name", "label", "words"),
    [
        ("en-de", "The verb goes", "werde lesen."),
        ("en-de", "Which", "Bank"),
        ("en-de", "A verb in", "Schalte aus."),
        ("en-de", "One verb", "fährt ab?"),
        ("multi30k-tiny", "The verb goes", "während schläft."),
        ("multi30k-tiny", "One verb", "rennt hinterher."),
        ("multi30k-tiny", "A verb in", "legt an."),
        ("multi30k-tiny", "An article", "einer Leiter."),
    ],
)
def test_what_is_said_of_the_translations_is_so(name: str, label: str, words: str) -> None:
    (example,) = (example for example in BY_CHECKPOINT[name].showing if example.label.startswith(label))
    translation = traced(name, example.sentence).translation
    assert [word for word in translation.split() if word in words.split()] == words.split(), translation


@pytest.mark.parametrize(
    ("interventions", "target", "shown"),
    [((), None, True), ((), "Ein Hund.", False), ((AttentionTemperature(0.99),), None, False)],
)
def test_a_note_is_shown_of_an_unchanged_run_on_the_models_own_translation(
    monkeypatch: pytest.MonkeyPatch, interventions: tuple, target: str | None, shown: bool
) -> None:
    (*_, (_, example)) = [(name, one) for name, one in EACH if name == "en-de"]
    trace = opened("en-de").trace(example.sentence, interventions=interventions)
    query, key, weight = largest_weight(example, trace)
    monkeypatch.setattr(translate, "examples_of", BY_CHECKPOINT.__getitem__)
    run = replace(Run.of(opened("en-de"), trace), request=Request(example.sentence, target))
    notes = [block for block in translate.alignment(run).blocks if block.kind == "box"]
    assert bool(notes) == shown
    if shown:
        (box,) = notes
        sentence, *links = box.items
        assert f"largest weight, {weight:.2f}, to “{example.key[0]}”. {example.why}" in sentence.text
        head = f"see={example.kind}.{example.layer}.{example.head}"
        assert [link.items[0].partition("?")[2] for link in links] == [head, f"{head}.{query}.{key}"]


@pytest.mark.parametrize("example", ASKED, ids=lambda example: example.label)
def test_an_example_without_a_head_names_the_strongest_of_all_and_says_only_what_the_run_shows(
    example: Example, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = traced("en-de", example.sentence)
    best = strongest_head(example, trace)
    if best is None:  # this model writes another word
        assert example.kind == "cross"
        return
    weights = [
        pattern[best.query, best.key]
        for (kind, _), a in trace.attentions.items()
        if kind == example.kind
        for pattern in a.pattern
    ]
    one_piece = all(
        f"\u2581{word}" in (*trace.src_tokens, *trace.next_tokens) for word, _ in (example.query, example.key)
    )
    assert best.heads == len(weights)
    assert best.weight == pytest.approx(max(weights)) if one_piece else best.weight >= max(weights) - 1e-6
    monkeypatch.setattr(translate, "examples_of", BY_CHECKPOINT.__getitem__)
    run = replace(Run.of(opened("en-de"), trace), request=Request(example.sentence))
    (box,) = (block for block in translate.alignment(run).blocks if block.kind == "box")
    text = box.items[0].text
    assert f"{best.weight:.3f}, {'the' if best.largest else 'not the'} largest of its row" in text
    assert f"equal weights would give {best.even:.3f}" in text
    assert ("a habit of position" in text) == (best.distance is not None and best.habit > 0.5)


def test_a_habit_is_the_share_of_rows_that_give_most_to_the_word_at_that_distance(translator: Translator) -> None:
    trace = translator.trace("a dog and a cat")
    asked = replace(ASKED[0], query=("dog", 0), key=("a", 0))
    best = strongest_head(asked, trace)
    attention = trace.attention("encoder_self", best.layer)
    queries, keys = attention_words(attention)
    words = ["".join(trace.src_tokens[i] for i in group) for group in queries]
    assert words[:2] == ["\u2581a", "\u2581dog"]
    rows = merge(attention.pattern[best.head], queries, keys)
    previous = [row for row in range(1, len(rows)) if rows[row].argmax() == row - 1]
    assert (best.distance, best.habit) == (1, pytest.approx(len(previous) / (len(rows) - 1)))
    back = strongest_head(replace(asked, query=("a", 0), key=("dog", 0)), trace)
    assert back.distance == -1
    assert strongest_head(replace(asked, key=("unicorn", 0)), trace) is None


def test_a_run_that_looks_elsewhere_is_not_claimed_to_look_there(translator: Translator) -> None:
    trace = translator.trace("a dog and a cat")
    row = trace.attention("encoder_self", 0).pattern[0, 0]
    tokens = [token.removeprefix("\u2581") for token in trace.src_tokens]
    named = [(token, tokens[:i].count(token)) for i, token in enumerate(tokens)]
    example = replace(SHOWING[0], layer=0, head=0, query=named[0], key=named[int(row.argmax())])
    assert largest_weight(example, trace) == (0, row.argmax(), row.max())
    assert largest_weight(replace(example, key=named[int(row.argmin())]), trace) is None
    assert largest_weight(replace(example, layer=99), trace) is None
    assert largest_weight(replace(example, query=("unicorn", 0)), trace) is None


@pytest.mark.parametrize("name", BY_CHECKPOINT)
def test_the_menu_has_every_sentence_once_and_those_that_show_something_first(name: str) -> None:
    found = BY_CHECKPOINT[name]
    assert not found.problem
    assert len(found.sentences) >= 10
    assert len(set(found.menu)) == len(found.menu)
    assert set(found.menu) == {example.sentence for example in found.showing} | set(found.sentences)
    assert found.menu[: len(found.showing)] == tuple(example.sentence for example in found.showing)


def test_a_checkpoint_without_examples_gets_the_shipped_sentences_without_heads(checkpoint_folder: Path) -> None:
    assert not (checkpoint_folder / "en-de" / "examples.json").exists()
    assert examples_of("en-de") == Examples((), BY_CHECKPOINT["en-de"].menu)


WHOLE = json.loads((SHIPPED / "en-de" / "examples.json").read_text(encoding="utf-8"))
BROKEN = {
    "not JSON": ("{", "Expecting property name"),
    "no sentences": (json.dumps({"showing": []}), "'sentences' is missing."),
    "no label": (json.dumps(WHOLE | {"showing": [{"sentence": "A dog."}]}), "'label' is missing."),
    "a layer in words": (
        json.dumps(WHOLE | {"showing": [WHOLE["showing"][0] | {"layer": "one"}]}),
        "'one' should be of type int.",
    ),
    "a number for a sentence": (json.dumps(WHOLE | {"sentences": [1]}), "1 should be of type str."),
}


@pytest.mark.parametrize(("text", "said"), BROKEN.values(), ids=list(BROKEN))
def test_a_broken_file_says_what_is_wrong_with_it(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "examples.json").write_text(text, encoding="utf-8")
    found = read_examples(tmp_path)
    assert not found.menu
    assert "examples.json cannot be read" in found.problem
    assert said in found.problem


def test_examples_that_somebody_has_written_anew_are_read_anew(tmp_path: Path) -> None:
    file = tmp_path / "examples.json"
    for changed, sentences in enumerate((["A dog."], ["A cat."], ["A dog.", "A cat."])):
        file.write_text(json.dumps({"showing": [], "sentences": sentences}), encoding="utf-8")
        os.utime(file, ns=(changed, changed))  # two changes may fall into one tick of the clock
        assert read_examples(tmp_path).menu == tuple(sentences)


def test_the_page_says_that_the_file_is_broken(
    open_app: Callable, checkpoint_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A file and not a patched function: a module that is first imported meanwhile would keep what is patched.
    folder = shutil.copytree(checkpoint_folder, tmp_path / "checkpoints")
    (folder / "en-de" / "examples.json").write_text("{", encoding="utf-8")
    monkeypatch.setenv("ATTENTION_EXPLORER_CHECKPOINTS", str(folder))
    app = open_app(source="a dog")
    assert any("examples.json cannot be read" in info.value for info in app.info)


@pytest.mark.parametrize(
    ("name", "familiar", "strange"),
    [
        ("en-de", "How are you?", "Ich habe heute keine Zeit, weil ich arbeiten muss."),
        ("multi30k-tiny", "A boy jumps into the water.", "Why didn't you call me last night?"),
    ],
)
def test_a_text_that_the_model_was_not_trained_for_gets_a_notice_with_the_measured_reason(
    name: str, familiar: str, strange: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    translator = opened(name)
    monkeypatch.setenv("ATTENTION_EXPLORER_CHECKPOINTS", str(SHIPPED))
    assert unfamiliar(translator.trace(familiar)) is None
    trace = translator.trace(strange)
    assert unfamiliar(trace)["surprise"] == pytest.approx(-trace.target_log_probabilities.mean())
    emoji = unfamiliar(translator.trace("I am happy 😀."))
    assert emoji["strange"] == 4
    (notice,) = blocks_of("home", "An unfamiliar text", emoji)
    assert as_markdown(examples_of(name).about) in notice.text


ENGLISH, GERMAN = "The children are playing in the garden.", "Ich habe heute keine Zeit, weil ich arbeiten muss."


@pytest.mark.parametrize("name", ["everyday-lm", "everyday-lm-2017", "everyday-mlm"])
def test_a_model_that_reads_has_its_notice_by_the_length_of_its_tokens(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = opened(name)
    monkeypatch.setenv("ATTENTION_EXPLORER_CHECKPOINTS", str(SHIPPED))
    assert unfamiliar(model.trace(ENGLISH)) is None
    facts = unfamiliar(trace := model.trace(GERMAN))
    (stream,) = trace.streams.values()
    assert facts["characters"] == pytest.approx(len(GERMAN) / (len(stream.tokens) - sum(stream.tokens.special)))
    (notice,) = blocks_of("home", "An unfamiliar text", facts)
    assert "characters" in notice.text
    assert "nats" not in notice.text
    # What the model wrote itself says nothing of the text, nor does a word or two.
    if hasattr(model, "continue_text"):
        assert unfamiliar(model.trace(GERMAN, max_new_tokens=8))["characters"] == facts["characters"]
    assert unfamiliar(model.trace("Hund")) is None


def notices(app: AppTest) -> int:
    return sum("not trained on text like this" in caption.value for caption in app.caption)


@pytest.mark.parametrize(
    ("page", "name"),
    [("translate", "en-de"), ("heads_and_layers", "everyday-lm"), ("fill_in", "everyday-mlm")],
)
def test_every_page_says_that_the_text_is_in_a_language_that_the_model_has_not_learned(
    page: str, name: str, open_shipped: Callable
) -> None:
    for text, said in ((GERMAN, 1), (ENGLISH, 0)):
        app = open_shipped(f"pages/{page}.py", checkpoint=name, source=text)
        assert notices(app) == said


def test_a_target_that_somebody_typed_says_nothing_of_the_text(open_shipped: Callable) -> None:
    assert unfamiliar(opened("en-de").trace(ENGLISH, ENGLISH)), "if it were the model's own translation"
    assert notices(open_shipped(checkpoint="en-de", source=ENGLISH, target="Typed", typed=ENGLISH)) == 0


@pytest.mark.parametrize(
    ("page", "link"),
    [
        ("side_by_side", {"side_mode": "Sentences", "side_sentence": GERMAN}),
        (
            "what_if",
            {"part": "Which heads matter", "which_on": "your own sentences", "which_sentences": GERMAN},
        ),
    ],
)
def test_so_does_a_box_on_a_page(page: str, link: dict[str, str], open_shipped: Callable) -> None:
    app = open_shipped(f"pages/{page}.py", checkpoint="everyday-lm", source=ENGLISH, **link)
    assert notices(app) == 1
