"""Pages with a language model and with a masked one; widgets/test_export.py opens every page with both."""

import numpy as np
import pytest

from model.checkpoints.store import load_checkpoint
from model.generation.sampling import Sampling
from model.interventions import AttentionTemperature, HeadGate
from model.interventions.link import encode
from pages import PAGES
from tests.pages.figures import figure, numbers, words
from tests.pages.test_pages import holds, said
from viz.html import word_diff
from viz.tokens import visible

pytest.importorskip("streamlit")

EVERY_PAGE = [page for pages in PAGES.values() for page in pages]
CONTINUE = "pages/continue_text.py"


def test_the_sidebar_of_a_language_model_asks_for_a_text_and_its_length_not_for_a_translation(open_family):
    app = open_family("pages/heads_and_layers.py", checkpoint="lm", source="Two dogs", new_tokens="5")
    assert [area.label for area in app.text_area] == ["Text, English"]
    assert "target" not in app.session_state or not [c for c in app.segmented_control if c.key == "target"]
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
    assert not app.exception
    assert holds(app) == 3


def shown(app) -> str:
    """The text in large letters, without its tags."""
    import html
    import re

    (body,) = (element.proto.body for element in app.get("html") if 'class="given"' in element.proto.body)
    return html.unescape(re.sub("<style>.*</style>|<[^>]*>", "", body, flags=re.DOTALL))


@pytest.mark.parametrize("page", ["pages/attention_step_by_step.py", "pages/layer_by_layer.py"])
def test_the_arithmetic_on_screen_is_the_models_where_it_rotates_queries_and_has_another_norm(page, open_family):
    """What the learned matrix gives is not what is multiplied: both are drawn, and each sum is its own number."""
    app = open_family(page, checkpoint="lm", source="Two dogs run through the snow.", step="0")
    formulas = " ".join(element.value for element in app.latex)
    if page.endswith("layer_by_layer.py"):
        assert "RMSNorm" in formulas
        assert "LayerNorm" not in formulas
    else:
        assert "mathrm{pre}" in formulas
        assert "Then this model changes queries and keys: normalise, rotate." in " ".join(m.value for m in app.markdown)


@pytest.mark.parametrize(
    ("page", "query", "sentence"),
    [
        ("masks", {}, "This model does not divide its scores by √dₖ"),
        ("temperature", {}, ""),
        ("temperature", {"part": "Divided by √dₖ"}, "This model was trained without the division"),
        ("attention_step_by_step", {"step": "3"}, "This model leaves the division out"),
        ("heads_and_layers", {}, ""),
        ("decoding", {"part": "Two temperatures"}, ""),
        ("positional_encoding", {"part": "Learned, RoPE, ALiBi", "pe_scheme": "ALiBi"}, ""),
    ],
)
def test_a_model_that_does_not_divide_its_scores_is_not_said_to(page, query, sentence, open_family):
    app = open_family(f"pages/{page}.py", checkpoint="unscaled", source="Two dogs run.", **query)
    assert not app.exception
    assert holds(app) == 3
    formulas = [element.value for element in app.latex if "softmax" in element.value or "exp" in element.value]
    assert formulas or sentence
    assert not [formula for formula in formulas if r"\sqrt{d_k}" in formula.partition("vphantom")[0]]
    assert sentence in words(app)


OF_ONE_TEXT = (
    *("attention_step_by_step", "heads_and_layers", "tokens_and_embeddings", "temperature", "masks"),
    *(
        "layer_by_layer",
        "gradients",
        "since_2017",
        "efficient_attention",
        "what_if",
        "side_by_side",
        "decoding",
        "training",
    ),
    *("why_attention", "verification", "model_card"),
)
"""pages that a model without a translation opens, too"""


@pytest.mark.parametrize(
    ("page", "family"),
    # Only what has a decoder writes token by token.
    [(page, family) for page in OF_ONE_TEXT for family in ("lm", "mlm") if (page, family) != ("decoding", "mlm")],
)
def test_a_model_of_one_text_is_not_said_to_have_a_source_or_to_translate(page, family, open_family):
    app = open_family(f"pages/{page}.py", checkpoint=family, source="Two dogs run through the snow. " * 9)
    assert "The text has 279 characters" in said(app)
    about_the_page = words(app).replace(next(p.look_for for p in EVERY_PAGE if p.path == f"pages/{page}.py"), "")
    assert "ranslat" not in about_the_page
    assert "The source" not in about_the_page
    assert not {"Hide the longest source word", "Uniform cross-attention"} & {button.label for button in app.button}


def test_before_and_after_a_temperature_are_runs_on_the_same_text(families, open_family):
    language_model = load_checkpoint(str(families / "lm"), "cpu")
    plain = language_model.trace("Two dogs", max_new_tokens=4)
    hot = language_model.rerun(plain, [AttentionTemperature(0.5)])
    query = {"source": "Two dogs", "new_tokens": "4", "tau": "0.5", "scope": "Everywhere", "part": "Before and after"}
    app = open_family("pages/temperature.py", checkpoint="lm", **query)
    before, after, _difference = (numbers(bar["y"]) for bar in figure(app, "temperature-probabilities")["data"])
    assert before == pytest.approx(plain.target_probabilities, abs=1e-6)
    assert after == pytest.approx(hot.target_probabilities, abs=1e-6)


def test_what_if_lets_a_language_model_write_again(families, open_family):
    language_model = load_checkpoint(str(families / "lm"), "cpu")
    change = HeadGate(0.0, kind="decoder_self")
    app = open_family("pages/what_if.py", checkpoint="lm", source="Two dogs", new_tokens="6", changes=encode((change,)))
    before, after = (language_model.trace("Two dogs", max_new_tokens=6, interventions=c) for c in ((), (change,)))
    assert before.translation != after.translation
    written = [e.proto.body for e in app.get("html") if "compared" in e.proto.body][-1]
    assert written.endswith(word_diff(before.translation, after.translation)[-40:])


def test_side_by_side_offers_models_of_the_same_family_alone(open_family):
    app = open_family("pages/side_by_side.py", checkpoint="lm", side_mode="Checkpoints")
    assert not app.exception
    assert "no other checkpoint with these kinds of attention" in said(app)


def test_a_language_model_begins_with_a_text_that_can_go_on_and_a_translator_with_a_sentence(open_family) -> None:
    app = open_family(CONTINUE, checkpoint="lm", new_tokens="3")
    assert app.text_area(key="source").value[-1].isalnum()
    app.selectbox(key="checkpoint").set_value("unscaled").run()
    assert not app.exception
    assert app.text_area(key="source").value.endswith(".")
