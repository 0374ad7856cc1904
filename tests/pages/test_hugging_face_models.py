"""Every page with a Llama, two BERTs and a Marian of others: checked against the model, or what it needs."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from model.analysis.heads.evenness import untrained_evenness
from model.checkpoints.chat import write_turns
from model.checkpoints.store import MODELS_VARIABLE, load_checkpoint
from model.interventions import AttentionTemperature
from model.needs import Need
from model.trace import Turn
from pages import PAGES, page_of
from pages.compute.trace_file import TRACE_VARIABLE, link_to, open_trace_file
from pages.frame.server import command_line
from tests.model.checkpoints.huggingface.folders import save_chat_model, save_family, save_marian
from tests.model.checkpoints.huggingface.rxnmapper import FOLDER as RXNMAPPER
from tests.pages.figures import PRINTED, figure, numbers, read_number, tabs_of, words
from tests.pages.test_often_told_wrong import offered as claims_offered
from tests.pages.test_pages import assert_checked, holds, missing_at, said

pytest.importorskip("streamlit")

EVERY_PAGE = [page for pages in PAGES.values() for page in pages]
NAMES = ("GPT-2", "BERT", "Llama, grouped", "Gemma 2", "GPT-NeoX", "gpt-oss", "ModernBERT", "T5", "OLMo 2", "Granite")
HEADLESS = "BERT without a head"
REACTION = "CN(C)C=O.Fc1ncccc1F.O=C([O-])[O-].CC(C)S.[K+].[K+]>>CC(C)Sc1ncccc1F"
SENTENCE = "Two dogs run through the snow. 🤖"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Folder by family."""
    folder = tmp_path_factory.mktemp("others")
    saved = {name: str(save_family(folder / name.split(",")[0], name)) for name in NAMES}
    saved |= {"Chat": str(save_chat_model(folder / "chat"))}
    saved |= {"Marian": str(save_marian(folder / "opus-mt-en-de"))}
    return saved | {HEADLESS: str(save_family(folder / HEADLESS, "BERT", head=False))}


@pytest.fixture
def open_model_page(open_app: Callable, models: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Callable:
    monkeypatch.setenv(MODELS_VARIABLE, ",".join(models.values()))
    return lambda page, name, **query: open_app(page, **{"checkpoint": models[name], "source": SENTENCE} | query)


CASES = {
    "Marian": {},
    HEADLESS: {},
    "BERT": {"source": "The cat sat on the [MASK]. [SEP] It didn't run."},
    "Chat": {"chat": "true", "turns": "User: Hi\nAssistant: Ja.", "new_tokens": "4"},
}
"""family -> what every page is opened with: a sentence, a pair of sentences, a chat with a Llama; GPT-2 is opened in
widgets/test_export.py"""


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("page", EVERY_PAGE, ids=lambda page: page.path)
def test_a_page_that_nobody_has_opened_shows_the_model_that_the_app_was_started_with_and_is_checked(
    page, name, models, open_app, monkeypatch
):
    titles = []
    monkeypatch.setenv(MODELS_VARIABLE, models[name])
    monkeypatch.setattr("streamlit.set_page_config", lambda page_title="", **_: titles.append(page_title))
    app = open_app(page.path, **{"source": SENTENCE} | CASES[name])
    features = load_checkpoint(models[name], "cpu").features
    assert_checked(app, missing_at(page, features))
    shown = Path(models[name]).name
    assert shown in app.title[0].value
    assert f"· {shown} ·" in titles[-1]
    assert app.selectbox(key="checkpoint").value == models[name]
    assert app.query_params["checkpoint"] in (shown, [shown])


@pytest.mark.parametrize(
    ("name", "formula", "equation"),
    [
        ("GPT-2", r"x^{(s-1)} + \mathrm{Sublayer}(\mathrm{LayerNorm}(x^{(s-1)}))", r"\mathrm{LayerNorm}(x)_"),
        ("Gemma 2", r"\mathrm{RMSNorm}(\mathrm{Sublayer}(\mathrm{RMSNorm}(x", r"\mathrm{RMSNorm}(\mathrm{Sublayer}("),
        ("OLMo 2", r"+ \mathrm{RMSNorm}(\mathrm{Sublayer}(x^{(s-1)}))", r"\mathrm{RMSNorm}(y)_"),
        ("Granite", r"+ 0.22\,\mathrm{Sublayer}(\mathrm{RMSNorm}(x", r"+ 0.22\,\mathrm{Sublayer}("),
        ("GPT-NeoX", r"\mathrm{Sublayer}(\mathrm{LayerNorm}(u))", r"\mathrm{LayerNorm}(u)_"),
        ("ModernBERT", r"\mathrm{Sublayer}(\mathrm{LayerNorm}(x", r"\mathrm{LayerNorm}(x)_"),
    ],
)
def test_layer_by_layer_says_where_the_models_norms_stand(name, formula, equation, open_model_page):
    app = open_model_page("pages/layer_by_layer.py", name)
    assert not app.exception
    formulas = [latex.value for latex in app.latex]
    assert any(formula in each for each in formulas)
    inside = {"layers_tab": "Inside one sub-layer"}
    app = open_model_page("pages/layer_by_layer.py", name, **inside)
    assert not app.exception
    assert any(equation in latex.value for latex in app.latex)
    if name == "ModernBERT":
        app = open_model_page("pages/layer_by_layer.py", name, layers_step="0 self-attention", **inside)
        assert not app.exception
        assert any("without a norm" in caption.value for caption in app.caption)


@pytest.mark.parametrize(
    ("name", "formula"),
    [
        ("Gemma 2", r"\mathrm{Norm}'\big(\mathrm{Sublayer}(\mathrm{Norm}(x^{(s-1)}))\big)"),
        ("GPT-NeoX", r"\mathrm{FFN}\big(\mathrm{Norm}'(x^{(l-1)})\big)"),
    ],
)
def test_since_2017_has_the_formula_of_norms_that_stand_elsewhere(name, formula, open_model_page):
    app = open_model_page("pages/since_2017.py", name, since="Pre-norm")
    assert not app.exception
    assert any(formula in latex.value for latex in app.latex)


def test_gelu_by_tanh_is_called_so(open_model_page):
    app = open_model_page("pages/since_2017.py", "GPT-2", since="SwiGLU")
    assert not app.exception
    assert "GELU (tanh approximation)" in words(app)
    assert "GELU (tanh approximation)" not in words(open_model_page("pages/since_2017.py", "GPT-NeoX", since="SwiGLU"))


@pytest.mark.parametrize("page", ["temperature", "masks", "attention_step_by_step"])
def test_a_page_that_computes_rows_without_a_sink_does_not_open_a_model_with_one(page, open_model_page):
    app = open_model_page(f"pages/{page}.py", "gpt-oss")
    assert "This page needs rows of attention weights that sum to 1" in said(app)
    assert holds(open_model_page("pages/heads_and_layers.py", "gpt-oss")) == 3


@pytest.mark.parametrize("name", ["GPT-2", "Llama, grouped", "ModernBERT", "T5"])
def test_the_weights_of_a_head_are_read_from_hugging_face_models(name, open_model_page):
    app = open_model_page("pages/heads_and_layers.py", name, heads_part="Weights of the head")
    assert not app.exception
    assert numbers(figure(app, "heads_and_layers-values")["data"][0]["y"]).min() >= 0
    assert ("The OV circuit as a dictionary" in words(app)) == (name != "T5"), "its encoder writes nothing"
    assert ("share $W_K$ and $W_V$" in words(app)) == (name == "Llama, grouped")


def test_an_encoder_decoder_writes_its_own_target(open_model_page):
    app = open_model_page("pages/translate.py", "T5")
    assert not app.exception
    assert holds(app) == 3


def test_a_link_opens_no_model_that_the_app_was_not_started_with(models, open_app, monkeypatch):
    for forged in (models["GPT-2"], "openai-community/gpt2", "../../etc"):
        monkeypatch.delenv(MODELS_VARIABLE, raising=False)
        app = open_app("pages/masks.py", checkpoint=forged)
        assert not app.exception
        assert forged not in app.selectbox(key="checkpoint").options
        assert app.selectbox(key="checkpoint").value != forged


def test_the_command_line_offers_models_first(models, open_app, monkeypatch):
    monkeypatch.setenv(MODELS_VARIABLE, "")
    command_line.read_arguments(["--model", models["GPT-2"], "--model", models["Llama, grouped"]])
    options = open_app("pages/masks.py").selectbox(key="checkpoint").options
    assert list(options[:2]) == [Path(models[name]).name for name in ("GPT-2", "Llama, grouped")]
    with pytest.raises(SystemExit):
        command_line.read_arguments(["--modle", "gpt2"])


def test_the_card_of_a_model_of_others_blames_nobody(models, open_model_page):
    readme = Path(models[HEADLESS]) / "README.md"
    readme.write_text("---\nlicense: mit\n---\n# A model\n")
    app = open_model_page("pages/model_card.py", HEADLESS)
    scores = open_model_page("pages/model_card.py", HEADLESS, card="Scores")
    assert not app.exception
    assert not scores.exception
    for each in (app, scores):
        assert "has changed since" not in said(each), "its config.json has no hash that could differ"
    assert "model.evaluate" not in said(scores)
    assert "model.train" not in said(scores)
    size = (Path(models[HEADLESS]) / "model.safetensors").stat().st_size
    assert any(f"weights file: **{size / 1e6:.3g} MB**" in text.value for text in app.markdown)
    app = open_model_page("pages/model_card.py", HEADLESS, card="Data, terms, limits")
    assert "### A model" in [text.value for text in app.markdown]


def test_a_hidden_atom_is_filled_in_by_a_model_with_real_weights(open_app, monkeypatch):
    monkeypatch.setenv(MODELS_VARIABLE, str(RXNMAPPER))
    hidden = REACTION.replace("Fc1ncccc1F", "F[MASK]1ncccc1F", 1)
    app = open_app("pages/fill_in.py", checkpoint=str(RXNMAPPER), source=hidden)
    assert not app.exception
    assert holds(app) == 3
    assert numbers(figure(app, "fill_in-candidates")["data"][0]["x"]).max() > 0.9


def test_the_app_begins_with_a_page_that_the_model_has(models, open_app, monkeypatch):
    monkeypatch.setenv(MODELS_VARIABLE, models[HEADLESS])
    app = open_app()
    assert not app.exception
    assert app.title[0].value.startswith(page_of("attention_step_by_step.py").heading)
    assert holds(app) == 3
    assert app.button(key="source-send").label == "Read", "it has no head that could fill in a mask"


def test_each_token_of_a_pair_says_which_sentence_it_is_of(models, open_app, monkeypatch):
    monkeypatch.setenv(MODELS_VARIABLE, models["BERT"])
    query = {"checkpoint": models["BERT"], "source": "The cat sat. [SEP] A dog runs."}
    app = open_app("pages/tokens_and_embeddings.py", **query, tokens_tab="Pieces and bytes")
    assert not app.exception
    groups = app.dataframe[0].value["part of"].tolist()
    middle = app.dataframe[0].value["token"].tolist().index("[SEP]")
    assert app.dataframe[0].value["kind"].tolist()[middle] == "special token"
    assert set(groups[: middle + 1]) == {"sentence A"}
    assert set(groups[middle + 1 :]) == {"sentence B"}
    assert "embedding of its token type" in words(open_app("pages/tokens_and_embeddings.py", **query))
    assert "means the sum of the two" in words(
        open_app("pages/positional_encoding.py", checkpoint=models["BERT"], part="Your sentence")
    )


def test_a_large_model_begins_with_fewer_new_tokens(models, open_model_page, monkeypatch):
    sizes = {n: sum(load_checkpoint(models[n], "cpu").parameters_by_part().values()) for n in ("GPT-2", "Chat")}
    monkeypatch.setattr("pages.compute.runs.WEIGHTS_READ", 5 * sizes["GPT-2"])
    app = open_model_page("pages/continue_text.py", "GPT-2")
    assert app.number_input(key="new_tokens").value == 5
    assert "begins with 5" in app.number_input(key="new_tokens").help
    fewer = 5 * sizes["GPT-2"] // sizes["Chat"]
    app.selectbox(key="checkpoint").set_value(models["Chat"]).run()
    assert app.number_input(key="new_tokens").value == fewer != 5
    app.toggle(key="chat").set_value(True).run()
    assert app.number_input(key="new_tokens").value == 12, "an answer is what a chat is about"
    app.number_input(key="new_tokens").set_value(7).run()
    app.toggle(key="chat").set_value(False).run()
    assert app.number_input(key="new_tokens").value == 7, "a number that was typed stays"
    assert not app.exception


def test_a_switch_wraps_a_message_in_the_chat_template(models, open_model_page):
    app = open_model_page("pages/continue_text.py", "Chat", new_tokens="4")
    assert "chat template" not in words(app)
    app.toggle(key="chat").set_value(True).run()
    assert not app.exception
    assert app.button(key="source-send").label == "Send"
    chat = load_checkpoint(models["Chat"], "cpu").tokenizer.describe_chat((Turn("user", SENTENCE),))
    counts = {role: chat.roles.count(role) for role in ("template", "user")}
    assert f"{counts['user']} of the user, 4 of the assistant, {counts['template']} of the template" in words(app)
    # Where there is no template, there is no switch, and a link cannot ask for one.
    app = open_model_page("pages/continue_text.py", "Llama, grouped", chat="true")
    assert not app.exception
    assert not [toggle for toggle in app.toggle if toggle.key == "chat"]
    assert "chat template" not in words(app)
    app = open_model_page("pages/continue_text.py", "Chat", chat="true", source=" ")
    assert "The message is empty" in said(app)


def test_a_reply_makes_the_answer_an_earlier_turn(models, open_model_page):
    app = open_model_page("pages/continue_text.py", "Chat", chat="true", new_tokens="4", source="Hello!")
    answer = load_checkpoint(models["Chat"], "cpu").trace((Turn("user", "Hello!"),), max_new_tokens=4).written
    app.chat_input(key="reply").set_value("And you?\nSay.").run()
    assert not app.exception
    assert app.text_area(key="turns").value == write_turns((Turn("user", "Hello!"), Turn("assistant", answer.strip())))
    assert app.query_params["turns"] == app.text_area(key="turns").value
    assert app.text_area(key="source").value == "And you?\nSay."
    (chat,) = (element.value for element in app.get("html") if 'class="turns"' in element.value)
    assert chat.index("Hello!") < chat.index("assistant") < chat.index("And you?") < chat.index("written now")
    assert holds(app) == 3


@pytest.mark.parametrize(
    ("turns", "sentence"),
    [
        ("Hello", "Each of the earlier turns begins on a new line with its role"),
        ("User: Hi\nAssistant:", "Turn 1 of the chat, assistant, is empty"),
        ("System: " + "word " * 300, "tokens; at most 64 fit"),
        ("User: " + "9" * 400, "tokens; at most 64 fit"),
    ],
)
def test_turns_that_a_link_gets_wrong_are_answered_by_a_sentence(turns, sentence, open_model_page):
    app = open_model_page("pages/continue_text.py", "Chat", chat="true", turns=turns)
    assert not app.exception
    assert sentence in said(app)


def test_each_token_of_a_chat_says_its_role(open_model_page):
    app = open_model_page(
        "pages/tokens_and_embeddings.py",
        "Chat",
        chat="true",
        turns="System: Go.",
        source="A dog.",
        new_tokens="4",
        tokens_tab="Pieces and bytes",
    )
    assert not app.exception
    table = app.dataframe[0].value
    assert table["part of"].tolist()[0] == "template"
    assert table["part of"].tolist()[-5:] == ["generation prompt", *["assistant"] * 4]
    assert "system" in table["part of"].tolist()
    at = table["token"].tolist().index("<|user|>")
    assert table["part of"].tolist()[at : at + 3] == ["template", "template", "user"]
    assert table["kind"].tolist()[at] == "special token"


def test_the_file_of_a_chat_is_asked_for_as_a_chat(models, open_app, tmp_path, monkeypatch):
    monkeypatch.setenv(MODELS_VARIABLE, models["Chat"])
    opened = load_checkpoint(models["Chat"], "cpu")
    opened.trace((Turn("system", "Go."), Turn("user", "A dog runs.")), max_new_tokens=4).save(tmp_path / "chat.npz")
    file = open_trace_file(str(tmp_path / "chat.npz"))
    assert (file.request.source, file.request.chat) == ("A dog runs.", "System: Go.")
    assert (link_to(file)["chat"], link_to(file)["turns"]) == ("true", "System: Go.")
    monkeypatch.setenv(TRACE_VARIABLE, str(tmp_path / "chat.npz"))
    app = open_app()
    assert not app.exception
    assert app.title[0].value.startswith(page_of("continue_text.py").heading)
    assert "arrays are equal, bit for bit" in said(app)
    assert app.toggle(key="chat").value
    open_trace_file.cache_clear()


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("BERT", ["embedding", "+ position and type", "= sum, before a norm"]),
        ("GPT-2", ["embedding", "+ positional encoding", "= input of layer 0"]),
        ("Llama, grouped", ["embedding", "+ no positional encoding", "= input of layer 0"]),
        ("Marian", ["embedding × √d_model", "+ positional encoding", "= input of layer 0"]),
    ],
)
def test_what_is_added_to_an_embedding_is_called_what_it_is(name, rows, open_model_page):
    app = open_model_page("pages/tokens_and_embeddings.py", name, tokens_position="2", tokens_dimension="3")
    assert not app.exception
    assert list(figure(app, "tokens_and_embeddings-strips")["data"][0]["y"]) == rows
    (equation,) = [latex.value for latex in app.latex if r"\begin{aligned} x_{3}" in latex.value]
    assert (r"\cdot\sqrt{32}" in equation) == (name == "Marian")
    assert ("(P + T)" in equation) == (name == "BERT")
    assert r"\cdot 1 " not in equation


@pytest.mark.parametrize("name", ["BERT", "Marian", "Llama, grouped"])
def test_pads_in_a_batch_get_no_weight(name, open_model_page):
    app = open_model_page("pages/masks.py", name, part="Padding")
    assert not app.exception
    assert "Largest weight on a pad, over all heads of all attentions: **exactly 0**" in words(app)


def test_a_temperature_turns_the_vectors_of_a_model_without_probabilities(models, open_model_page):
    query = {"tau": "0.5", "scope": "Everywhere", "part": "Before and after"}
    app = open_model_page("pages/temperature.py", HEADLESS, **query)
    assert not app.exception
    assert "The model writes" not in words(app)
    opened = load_checkpoint(models[HEADLESS], "cpu")
    runs = [opened.trace(SENTENCE, interventions=each) for each in ((), (AttentionTemperature(0.5),))]
    before, after = (run.streams["encoder"].final.astype(float) for run in runs)
    wanted = [np.corrcoef(np.r_[a, -a], np.r_[b, -b])[0, 1] for a, b in zip(before, after, strict=True)]
    drawn = numbers(figure(app, "temperature-vectors")["data"][0]["y"])
    np.testing.assert_allclose(np.cos(np.radians(drawn)), wanted, atol=1e-5)
    assert drawn.max() > 1
    for part in ("One row", "Move the query"):
        app = open_model_page("pages/temperature.py", HEADLESS, part=part)
        assert not app.exception
        assert holds(app) == 3


@pytest.mark.parametrize("name", ["GPT-2", "Marian", "gpt-oss"])
def test_common_claims_are_tested_as_far_as_a_hugging_face_model_has_what_they_need(name, models, open_model_page):
    opened = load_checkpoint(models[name], "cpu")
    app = open_model_page("pages/often_told_wrong.py", name, source="Two dogs run.")
    offered = claims_offered(app)
    assert {"heads", "untrained"} - offered == ({"untrained"} if name == "gpt-oss" else set())
    # What takes less than a second is there at once: a bar for each sub-layer.
    each = figure(app, "often_told_wrong-each")["data"][0]
    assert len(each["x"]) == len(opened.trace("Two dogs run.").sublayers)
    for claim in sorted(offered & {"untrained"}):
        app.button(key=f"claim-{claim}").click().run()
        assert not app.exception, claim
    if name == "GPT-2":
        trace = opened.trace("Two dogs run.", max_new_tokens=12)
        assert all(f"{each:.1%}" in words(app) for each in untrained_evenness(opened, trace))


CAPPED = r"50\tanh\!\left(\frac{"
FORMULAS = [
    ("Gemma 2", "masks", {}, [CAPPED], []),
    (
        "Gemma 2",
        "layer_by_layer",
        {"layers_tab": "Neurons"},
        [r"\mathrm{GELU}_{\tanh}(x W_{\mathrm{gate}}) \odot"],
        ["b_2", "max"],
    ),
    ("Gemma 2", "layer_by_layer", {"layers_tab": "Logit lens"}, [r"30\tanh"], []),
    ("OLMo 2", "layer_by_layer", {"layers_tab": "Logit lens"}, [r"\mathrm{RMSNorm}(x^{(s)})\,W_{out}"], []),
    ("Gemma 2", "attention_step_by_step", {"step": "4"}, [r"50\tanh\Big("], ["b_Q", "b_O"]),
    ("T5", "temperature", {}, [r"q_i \cdot k_j + b_{ij}"], ["sqrt"]),
    ("BERT", "layer_by_layer", {"layers_tab": "Logit lens"}, [r"f(x^{(s)})\,W_{out}^{\top} + b_{out}"], []),
    ("Marian", "tokens_and_embeddings", {}, [r"\cdot\sqrt{d_{model}} + PE_{pos}"], []),
    ("Llama, grouped", "tokens_and_embeddings", {}, [r"x_{pos} = E_{token},"], ["PE_"]),
]
"""family, page, what is open on it, and what its formulas have and have not"""


@pytest.mark.parametrize(("name", "page", "query", "has", "lacks"), FORMULAS)
def test_formulas_are_those_of_the_model(name, page, query, has, lacks, open_model_page):
    app = open_model_page(f"pages/{page}.py", name, **query)
    assert not app.exception
    formulas = " ".join(latex.value for latex in app.latex).replace(r"\vphantom{\boxed", "")
    assert all(part in formulas for part in has)
    assert not any(part in formulas for part in lacks)


def test_the_lens_of_an_encoder_alone_ends_with_its_own_logits(models, open_model_page):
    app = open_model_page("pages/layer_by_layer.py", "BERT", layers_tab="Logit lens")
    assert "The output matrix reads only the decoder" not in words(app)
    opened = load_checkpoint(models["BERT"], "cpu")
    last = numbers(figure(app, "layer_by_layer-lens-map")["data"][0]["z"])[:, -1].astype(float)
    np.testing.assert_allclose(last, opened.trace(SENTENCE).probabilities.max(axis=-1), atol=1e-6)


def test_scores_without_rotation_are_the_multiplicative_form(open_model_page):
    said = words(open_model_page("pages/why_attention.py", "Llama, grouped", why="Scoring functions"))
    assert "equivalent only before this model changes queries and keys (rotate)" in said
    assert read_number(re.search(rf"before that: largest difference \*\*{PRINTED}\*\*", said)[1]) < 1e-4


def test_claims_that_do_not_apply_say_so_before_the_others_are_asked_for(open_model_page):
    said = words(open_model_page("pages/verification.py", "BERT"))
    assert "**6** does not apply to this run. An encoder reads in both directions" in said
    assert "**8a, 8b** does not apply" not in said
    assert "**8a, 8b** do not apply to this run. An encoder reads the whole text at once" in said


def test_rows_that_share_with_a_sink_are_not_said_to_sum_to_one(open_model_page):
    app = open_model_page("pages/heads_and_layers.py", "gpt-oss")
    assert "its weights over the keys sum to less than 1" in words(app)
    assert any(r"\big|\; s_h" in latex.value for latex in app.latex)
    assert "weights of each query sum to at most 1" in words(app)


def test_cross_attention_without_a_bias_is_not_taken_for_alibi(open_model_page):
    app = open_model_page("pages/positional_encoding.py", "T5", kind="Cross-attention", part="The encoding")
    assert not app.exception
    assert "**ALiBi**" not in words(app)
    assert "Shown instead: decoder self-attention" in words(app)


@pytest.mark.parametrize(
    ("page", "query"),
    [
        ("continue_text", {}),
        ("gradients", {"part": "Does attention explain?"}),
        ("efficient_attention", {"efficient": "Linear attention"}),
    ],
)
def test_a_text_of_a_single_token_without_a_start_token_is_shown(page, query, open_model_page):
    app = open_model_page(f"pages/{page}.py", "GPT-2", source="A", new_tokens="0", **query)
    assert not app.exception
    assert holds(app) == 3
    assert "nan" not in words(app)


@pytest.mark.parametrize(("name", "lacks"), [("gpt-oss", "Through the softmax"), ("GPT-2", ""), ("Granite", "")])
def test_a_tab_that_the_model_cannot_fill_is_named_with_what_it_needs(name, lacks, open_model_page):
    app = open_model_page("pages/gradients.py", name)
    assert not app.exception
    missing = [caption.value for caption in app.caption if caption.value.startswith("The tab")]
    of_rows = [each for each in missing if Need.FULL_ROWS in each]
    assert len(of_rows) == bool(lacks)
    assert all(lacks in each for each in of_rows)
    assert all(Need.OWN_LAYERS in each for each in missing if each not in of_rows), "replaced weights, zeroed values"
    assert ("Through the softmax" in tabs_of(app)[1]) == (not lacks)


@pytest.mark.parametrize(("name", "undone"), [("Granite", "divided by 8"), ("GPT-2", "divided by √dₖ")])
def test_scores_are_divided_by_the_root_of_d_k_only_where_the_model_does_that(name, undone, open_model_page):
    """Granite multiplies its scores by 0.125, which is 1/√dₖ for no width of its heads here."""
    app = open_model_page("pages/gradients.py", name, part="Through the softmax")
    assert not app.exception
    assert f"not {undone}" in words(app)
    names = {shape.get("name") for shape in figure(app, "gradients-jacobian-size")["layout"]["shapes"]}
    assert f"not {undone}" in names
    curves = figure(open_model_page("pages/gradients.py", name), "gradients-decoder")["data"]
    assert f"not {undone}" in [curve["name"] for curve in curves]


@pytest.mark.parametrize("text", ["def f(x):\n    return x", "Q: one\nA: two\n\nQ:", "  The cat sat "])
def test_a_text_reaches_the_model_as_it_was_typed(text, models, open_model_page):
    """The numbers on the page, and the Python under it, are those of the whole text, white space included."""
    app = open_model_page("pages/tokens_and_embeddings.py", "GPT-2", source=text, new_tokens="0")
    assert not app.exception
    assert "as typed" not in words(app)
    trace = load_checkpoint(models["GPT-2"], "cpu").trace(text)
    assert trace.source == text
    assert any(f"Request(source={text!r}" in code.value for code in app.code)


@pytest.mark.parametrize("name", ["OLMo 2", "Granite"])
@pytest.mark.parametrize("page", ["since_2017", "layer_by_layer", "whole_model", "gradients", "attention_step_by_step"])
def test_norms_after_the_sublayer_and_multipliers_are_named_on_every_page_of_the_stream(name, page, open_model_page):
    app = open_model_page(f"pages/{page}.py", name, **({"since": "Pre-norm"} if page == "since_2017" else {}))
    assert not app.exception
    assert holds(app) == 3
    assert "Norm: none" not in said(app)
    if name == "OLMo 2":
        assert "on both sides" not in said(app)
        assert "before each sub-layer, and again after it" not in said(app)


@pytest.mark.parametrize(
    ("page", "query"),
    [
        ("attention_step_by_step", {"step": "3"}),
        ("gradients", {"part": "Through the softmax"}),
        ("temperature", {}),
    ],
)
@pytest.mark.parametrize(("name", "own"), [("Granite", True), ("Llama, grouped", False)])
def test_a_model_that_divides_by_another_number_than_the_root_is_said_to(
    name, own, page, query, models, open_model_page
):
    attention = load_checkpoint(models[name], "cpu").trace(SENTENCE).attention("decoder_self", 0)
    assert attention.divides_by_root != own
    said = words(open_model_page(f"pages/{page}.py", name, **query))
    divides = "Divide by" if page == "attention_step_by_step" else "division by"
    assert (f"{divides} {1 / attention.scale:.4g}" in said) == own
    assert bool(re.search(f"{divides} √d[_ₖ]", said)) != own


def test_a_page_of_matrices_ends_with_the_number_where_they_do_not_give_the_run(open_app, tmp_path, monkeypatch):
    folder = save_family(tmp_path / "clipped", "OLMo, clipped")
    monkeypatch.setenv(MODELS_VARIABLE, str(folder))
    app = open_app("pages/attention_step_by_step.py", checkpoint=str(folder), source=SENTENCE)
    assert not app.exception
    assert not any("do not give" in text.value for text in app.text)
    # A token that no text has which is read at opening gets queries beyond a limit that all others stay below.
    clipped = tmp_path / "clipped more"
    shutil.copytree(folder, clipped)
    weights = load_file(clipped / "model.safetensors")
    matrix = weights["model.layers.0.self_attn.q_proj.weight"]
    longest = matrix[matrix.norm(dim=1).argmax()]
    token = pytest.importorskip("transformers").AutoTokenizer.from_pretrained(folder)("snow", add_special_tokens=False)[
        "input_ids"
    ][-1]
    weights["model.embed_tokens.weight"][token] = longest
    save_file(weights, clipped / "model.safetensors", metadata={"format": "pt"})
    largest = float(torch.nn.functional.layer_norm(longest, longest.shape) @ longest)
    settings = json.loads((folder / "config.json").read_text())
    (clipped / "config.json").write_text(json.dumps(settings | {"clip_qkv": 0.9 * largest}))
    monkeypatch.setenv(MODELS_VARIABLE, str(clipped))
    for text, differs in (("A dog runs.", False), (SENTENCE, True)):
        app = open_app("pages/attention_step_by_step.py", checkpoint=str(clipped), source=text)
        assert not app.exception
        assert any(re.search(r"q: differs by \d", text.value) for text in app.text) == differs


def test_the_verification_page_lists_the_state_of_every_step(open_model_page):
    app = open_model_page("pages/verification.py", "OLMo 2", claims="Every step of this run")
    assert not app.exception
    assert any("steps are read" in text.value for text in app.markdown)
    (frame,) = (each.value for each in app.dataframe if "state" in each.value)
    assert set(frame["state"]) == {"read"}
    assert {"q", "pattern", "residual", "logits"} <= set(frame["computes"])
