"""Pages with a language model and with a masked one; widgets/test_export.py opens every page with both."""

import numpy as np
import pytest

from model.checkpoints.store import load_checkpoint
from model.generation.sampling import Sampling
from model.run import Run
from pages.views.standalone import texts_of
from tests.pages.figures import figure, holds, numbers, said
from tests.pages.test_pages import EVERY_PAGE
from viz.tokens import visible

CONTINUE = "pages/continue_text.py"


def test_the_sidebar_of_a_language_model_asks_for_a_text_and_its_length_not_for_a_translation(open_family):
    for family in ("mlm", "lm"):
        app = open_family("pages/heads_and_layers.py", checkpoint=family, source="Two dogs", new_tokens="5")
        assert [area.label for area in app.text_area] == ["Text, English"]
        assert not [control for control in app.segmented_control if control.key == "target"]
    assert "Attention  \nDecoder self, the only one" in [caption.value for caption in app.caption]
    assert app.number_input(key="new_tokens").value == 5


def test_continue_a_text_shows_what_the_model_writes_and_the_same_seed_writes_it_again(families, open_family):
    language_model = load_checkpoint(str(families / "lm"), "cpu")
    app = open_family(CONTINUE, checkpoint="lm", source="Two dogs", new_tokens="6")
    (greedy,) = language_model.continue_text(["Two dogs"], max_new_tokens=6, temperature=0)
    assert shown(app) == visible(greedy)
    app.segmented_control(key="writing").set_value("sample").run()
    app.number_input(key="decoding-seed").set_value(3).run()
    (sampled,) = language_model.continue_text(["Two dogs"], max_new_tokens=6, seed=3)
    assert shown(app) == visible(sampled)
    trace = language_model.trace("Two dogs", max_new_tokens=6, sampling=Sampling(), seed=3)
    bars = numbers(figure(app, "continue_text-certainty")["data"][0]["y"])
    np.testing.assert_array_equal(bars, trace.target_probabilities)
    assert holds(app) == 3


def shown(app) -> str:
    """The text in large letters, without its tags."""
    import html
    import re

    (body,) = (element.proto.body for element in app.get("html") if 'class="given"' in element.proto.body)
    return html.unescape(re.sub("<style>.*</style>|<[^>]*>", "", body, flags=re.DOTALL))


@pytest.mark.parametrize(
    ("page", "query"),
    [
        ("temperature", {}),
        ("attention_step_by_step", {"step": "4"}),
        ("heads_and_layers", {}),
        ("positional_encoding", {"part": "Learned, RoPE, ALiBi", "pe_scheme": "ALiBi"}),
    ],
)
def test_a_model_that_does_not_divide_its_scores_is_not_said_to(page, query, open_family):
    app = open_family(f"pages/{page}.py", checkpoint="unscaled", source="Two dogs run.", **query)
    assert holds(app) == 3
    formulas = [element.value for element in app.latex if "softmax" in element.value or "exp" in element.value]
    assert formulas
    assert not [formula for formula in formulas if r"\sqrt{d_k}" in formula.partition("vphantom")[0]]


OF_ONE_TEXT = (
    *("attention_step_by_step", "heads_and_layers", "tokens_and_embeddings", "temperature", "masks", "layer_by_layer"),
    *("gradients", "since_2017", "efficient_attention", "what_if", "side_by_side", "decoding", "training"),
    *("why_attention", "verification", "model_card"),
)
"""pages that a model without a translation opens, too"""


@pytest.mark.parametrize("family", ["lm", "mlm"])
def test_a_model_of_one_text_is_not_said_to_have_a_source_or_to_translate(family, families):
    opened = load_checkpoint(str(families / family), "cpu")
    run = Run.of(opened, opened.trace("Two dogs run through the snow."))
    for view in (page.views[0] for page in EVERY_PAGE if page.name in OF_ONE_TEXT):
        if not view.missing(run):
            texts = texts_of(view(run, **({"outcome": None} if view.on_request else {})).blocks)
            assert not [text for text in texts if "ranslat" in text or "The source" in text], view.title


def test_side_by_side_offers_models_of_the_same_family_alone(open_family):
    app = open_family("pages/side_by_side.py", checkpoint="lm", side_mode="Checkpoints")
    assert "no other checkpoint with these kinds of attention" in said(app)


def test_a_language_model_begins_with_a_text_that_can_go_on_and_a_translator_with_a_sentence(open_family) -> None:
    app = open_family(CONTINUE, checkpoint="lm", new_tokens="3")
    assert app.text_area(key="source").value[-1].isalnum()
    app.selectbox(key="checkpoint").set_value("unscaled").run()
    assert app.text_area(key="source").value.endswith(".")
