"""The sentences to begin with: what is said of each is so in the checkpoint that the project ships."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from model.checkpoints.translator import Translator
    from model.trace import Trace

pytest.importorskip("streamlit")

from pages.frame.examples import EXAMPLES, MENU, SHOWING, Example, largest_weight

SHIPPED = Path(__file__).parents[3] / "checkpoints"
BARELY = 0.02
"""how far a row's largest weight has to be above an equal share"""


@pytest.fixture(scope="module")
def shipped() -> "Translator":
    from model.checkpoints.store import DEFAULT_CHECKPOINT, load_checkpoint

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTENTION_EXPLORER_CHECKPOINTS", str(SHIPPED))
        return load_checkpoint(DEFAULT_CHECKPOINT, "cpu")


@pytest.mark.parametrize("example", SHOWING, ids=lambda example: example.label)
def test_the_head_of_an_example_gives_its_largest_weight_where_it_says(example: Example, shipped: "Translator") -> None:
    trace = shipped.trace(example.sentence)
    found = largest_weight(example, trace)
    assert found
    query, key, weight = found
    row = trace.attention(example.kind, example.layer).pattern[example.head, query]
    assert row.argmax() == key
    assert weight == row[key] > 1 / len(row) + BARELY


def test_animal_and_street_are_close_together_and_the_dog_is_far_ahead(shipped: "Translator") -> None:
    undecided, sure = (shipped.trace(example.sentence) for example in SHOWING[:2])
    row = weights_of_it(undecided)
    assert row["street"] - row["animal"] < 0.08
    assert min(row["street"], row["animal"]) > 2 / len(undecided.src_tokens)
    dog, *others = sorted(weights_of_it(sure).values(), reverse=True)
    assert dog == weights_of_it(sure)["dog"] > 2 * others[0]


def weights_of_it(trace: "Trace") -> dict[str, float]:
    """The weight that "it" gives to each word in the head that both examples open."""
    attention = trace.attention(SHOWING[0].kind, SHOWING[0].layer)
    row = attention.pattern[SHOWING[0].head, attention.query_tokens.index("\u2581it")]
    return {key.removeprefix("\u2581"): float(weight) for key, weight in zip(attention.key_tokens, row, strict=True)}


def test_tired_or_wide_the_translation_says_the_same_pronoun(shipped: "Translator") -> None:
    tired = SHOWING[0].sentence
    translations = shipped.translate([tired, tired.replace("tired", "wide")])
    assert all("weil es zu" in translation for translation in translations)


def test_what_is_said_of_the_translations_is_so(shipped: "Translator") -> None:
    said = {
        "The verb goes": "werde lesen.",
        "Which": "Bank",
        "A verb in": "Schalte aus.",
        "One verb": "fährt ab?",
    }
    for label, words in said.items():
        (example,) = (example for example in SHOWING if example.label.startswith(label))
        translation = shipped.trace(example.sentence).translation
        assert all(word in translation.split() for word in words.split()), translation


def test_a_run_that_looks_elsewhere_is_not_claimed_to_look_there(translator: "Translator") -> None:
    from dataclasses import replace

    trace = translator.trace("a dog and a cat")
    row = trace.attention("encoder_self", 0).pattern[0, 0]
    tokens = [token.removeprefix("\u2581") for token in trace.src_tokens]
    named = [(token, tokens[:i].count(token)) for i, token in enumerate(tokens)]
    example = replace(SHOWING[0], layer=0, head=0, query=named[0], key=named[int(row.argmax())])
    assert largest_weight(example, trace) == (0, row.argmax(), row.max())
    assert largest_weight(replace(example, key=named[int(row.argmin())]), trace) is None
    assert largest_weight(replace(example, layer=99), trace) is None
    assert largest_weight(replace(example, query=("unicorn", 0)), trace) is None


def test_the_menu_has_over_ten_sentences_that_show_something_and_the_everyday_ones_each_once() -> None:
    assert len(SHOWING) == 11
    assert len(EXAMPLES) >= 20
    assert len(set(MENU)) == len(MENU)
    assert set(MENU) == {example.sentence for example in SHOWING} | set(EXAMPLES)
    assert MENU[: len(SHOWING)] == tuple(example.sentence for example in SHOWING)
