"""Every page with a Llama, two BERTs and a Marian of others: checked against the model, or what it needs."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from functools import cache
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
from model.run import Continuation, Place, Request, Run
from model.trace import Turn
from pages import page_of
from pages.compute.trace_file import TRACE_VARIABLE, link_to, open_trace_file
from pages.views import views_of
from pages.views.attention.attention_step_by_step import steps as matrices
from pages.views.attention.heads_and_layers import heads, weights
from pages.views.attention.masks import masks, padding
from pages.views.attention.positional_encoding import positions
from pages.views.attention.temperature import before_and_after, divided, live
from pages.views.beyond.efficient_attention import linear
from pages.views.beyond.since_2017 import placement
from pages.views.explore.continue_text import certainty
from pages.views.model import layer_by_layer as layers
from pages.views.model.gradients import explanation, jacobian, other_weights, value_zeroing
from pages.views.model.gradients import layers as gradients
from pages.views.model.tokens_and_embeddings import pieces, tokens
from pages.views.model.verification import steps
from pages.views.standalone import texts_of
from pages.views.words import Block
from tests.model.checkpoints.huggingface.families import tiny_model
from tests.model.checkpoints.huggingface.folders import save_chat_model, save_family, save_many_languages, save_marian
from tests.model.checkpoints.huggingface.rxnmapper import FOLDER as RXNMAPPER
from tests.model.checkpoints.huggingface.test_departures import DISTANCES, save
from tests.pages.figures import figure, holds, lines, maps, numbers, said, words
from tests.pages.test_pages import EVERY_PAGE, assert_checked, missing_at

NAMES = ("GPT-2", "BERT", "Llama, grouped", "Gemma 2", "GPT-NeoX", "gpt-oss", "ModernBERT", "T5", "OLMo 2", "Granite")
HEADLESS = "BERT without a head"
REACTION = "CN(C)C=O.Fc1ncccc1F.O=C([O-])[O-].CC(C)S.[K+].[K+]>>CC(C)Sc1ncccc1F"
SENTENCE = "Two dogs run through the snow. 🤖"
ASKED = Request(SENTENCE)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Folder by family."""
    folder = tmp_path_factory.mktemp("others")
    saved = {name: str(save_family(folder / name.split(",")[0], name)) for name in NAMES}
    saved |= {"Chat": str(save_chat_model(folder / "chat"))}
    saved |= {"Marian": str(save_marian(folder / "opus-mt-en-de"))}
    saved |= {"M2M100": str(save_many_languages(folder / "m2m", "M2M100"))}
    saved |= {"plain": str(save(folder / "plain", tiny_model("BERT")))}
    # A BERT that was trained with relative positions, which transformers no longer has.
    settings = {"position_embedding_type": "relative_key_query"}
    saved |= {"relative": str(save(folder / "relative", tiny_model("BERT"), settings, DISTANCES))}
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
"""family -> what its pages are opened with: a sentence, a pair of sentences, a chat with a Llama"""


@pytest.mark.parametrize(
    ("page", "name"),
    [(page, [*CASES][number % len(CASES)]) for number, page in enumerate(EVERY_PAGE)],
    ids=lambda value: getattr(value, "name", value),
)
def test_a_page_that_nobody_has_opened_shows_the_model_that_the_app_was_started_with_and_is_checked(
    page, name, models, run_of, open_app, monkeypatch
):
    """Each page with one family, each family on many pages; test_views.py has every view in every family."""
    titles = []
    monkeypatch.setenv(MODELS_VARIABLE, models[name])
    monkeypatch.setattr("streamlit.set_page_config", lambda page_title="", **_: titles.append(page_title))
    app = open_app(page.path, **{"source": SENTENCE} | CASES[name])
    assert_checked(app, missing_at(page, run_of(name).opened.features))
    shown = Path(models[name]).name
    assert shown in app.title[0].value
    assert f"· {shown} ·" in titles[-1]
    assert app.selectbox(key="checkpoint").value == models[name]
    assert app.query_params["checkpoint"] in (shown, [shown])


@pytest.fixture(scope="module")
def run_of(models: dict[str, str]) -> Callable[..., Run]:
    """The run of a model in its first layer, on SENTENCE or what else is asked for."""

    @cache
    def run_of(name: str, kind: str = "", request: Request = ASKED) -> Run:
        opened = load_checkpoint(models[name], "cpu")
        return Run.start(opened, request, Place(kind or opened.kinds[0].name, 0, 0))

    return run_of


@pytest.mark.parametrize("page", ["temperature", "masks", "attention_step_by_step"])
def test_a_page_that_computes_rows_without_a_sink_does_not_open_a_model_with_one(page, run_of):
    assert Need.FULL_ROWS in {*page_of(f"{page}.py").needs} - run_of("gpt-oss").opened.features


@pytest.mark.parametrize("name", ["GPT-2", "Llama, grouped", "ModernBERT", "T5"])
def test_the_weights_of_a_head_are_read_from_hugging_face_models(name, run_of):
    result = weights(run_of(name))
    assert lines(result, "values")[0].min() >= 0
    assert result.facts["dictionary"] == (name != "T5"), "its encoder writes nothing"
    assert bool(result.facts["mates"]) == (name == "Llama, grouped")


def test_a_link_opens_no_model_that_the_app_was_not_started_with(models, open_app, monkeypatch):
    for forged in (models["GPT-2"], "openai-community/gpt2", "../../etc"):
        monkeypatch.delenv(MODELS_VARIABLE, raising=False)
        app = open_app("pages/masks.py", checkpoint=forged)
        assert forged not in app.selectbox(key="checkpoint").options
        assert app.selectbox(key="checkpoint").value != forged


def test_the_card_of_a_model_of_others_blames_nobody(models, open_model_page):
    readme = Path(models[HEADLESS]) / "README.md"
    readme.write_text("---\nlicense: mit\n---\n# A model\n")
    app = open_model_page("pages/model_card.py", HEADLESS)
    scores = open_model_page("pages/model_card.py", HEADLESS, card="Scores")
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
    assert holds(app) == 3
    assert numbers(figure(app, "fill_in-candidates")["data"][0]["x"]).max() > 0.9


def test_the_app_begins_with_a_page_that_the_model_has(models, open_app, monkeypatch):
    monkeypatch.setenv(MODELS_VARIABLE, models[HEADLESS])
    app = open_app()
    assert app.title[0].value.startswith(page_of("attention_step_by_step.py").heading)
    assert holds(app) == 3
    assert app.button(key="source-send").label == "Read", "it has no head that could fill in a mask"


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


def test_a_switch_wraps_a_message_in_the_chat_template(models, open_model_page):
    app = open_model_page("pages/continue_text.py", "Chat", new_tokens="4")
    assert "chat template" not in words(app)
    app.toggle(key="chat").set_value(True).run()
    assert app.button(key="source-send").label == "Send"
    chat = load_checkpoint(models["Chat"], "cpu").tokenizer.describe_chat((Turn("user", SENTENCE),))
    counts = {role: chat.roles.count(role) for role in ("template", "user")}
    assert f"{counts['user']} of the user, 4 of the assistant, {counts['template']} of the template" in words(app)
    # Where there is no template, there is no switch, and a link cannot ask for one.
    app = open_model_page("pages/continue_text.py", "Llama, grouped", chat="true")
    assert not [toggle for toggle in app.toggle if toggle.key == "chat"]
    assert "chat template" not in words(app)
    app = open_model_page("pages/continue_text.py", "Chat", chat="true", source=" ")
    assert "The message is empty" in said(app)


def test_a_reply_makes_the_answer_an_earlier_turn(models, open_model_page):
    app = open_model_page("pages/continue_text.py", "Chat", chat="true", new_tokens="4", source="Hello!")
    answer = load_checkpoint(models["Chat"], "cpu").trace((Turn("user", "Hello!"),), max_new_tokens=4).written
    app.chat_input(key="reply").set_value("And you?\nSay.").run()
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
    assert sentence in said(app)


def test_each_token_of_a_pair_says_which_sentence_it_is_of(run_of):
    run = run_of("BERT", request=Request("The cat sat. [SEP] A dog runs."))
    table = pieces(run).shows["pieces"]
    middle = table["token"].tolist().index("[SEP]")
    assert table["kind"].tolist()[middle] == "special token"
    assert set(table["part of"][: middle + 1]) == {"sentence A"}
    assert set(table["part of"][middle + 1 :]) == {"sentence B"}


def test_each_token_of_a_chat_says_its_role(run_of):
    asked = Request("A dog.", continuation=Continuation(4), chat="System: Go.")
    table = pieces(run_of("Chat", request=asked)).shows["pieces"]
    roles = table["part of"].tolist()
    assert roles[0] == "template"
    assert roles[-5:] == ["generation prompt", *["assistant"] * 4]
    assert "system" in roles
    at = table["token"].tolist().index("<|user|>")
    assert roles[at : at + 3] == ["template", "template", "user"]
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
def test_what_is_added_to_an_embedding_is_called_what_it_is(name, rows, run_of):
    result = tokens(run_of(name), position=2, dimension=3)
    assert list(figure(result, "strips")["data"][0]["y"]) == rows
    equation = str(result.facts["equation"])
    assert (r"\cdot\sqrt{32}" in equation) == (name == "Marian")
    assert ("(P + T)" in equation) == (name == "BERT")
    assert r"\cdot 1 " not in equation


@pytest.mark.parametrize("name", ["BERT", "Marian", "Llama, grouped"])
def test_pads_in_a_batch_get_no_weight(name, run_of):
    assert padding(run_of(name)).facts["padded"].pad_weight == 0


def test_a_temperature_turns_the_vectors_of_a_model_without_probabilities(models):
    opened, change = load_checkpoint(models[HEADLESS], "cpu"), AttentionTemperature(0.5)
    request, place = Request(SENTENCE, interventions=(change,)), Place(opened.kinds[0].name, 0, 0)
    result = before_and_after(Run.start(opened, request, place, 0.5, "everywhere"))
    runs = [opened.trace(SENTENCE, interventions=each) for each in ((), (change,))]
    before, after = (run.streams["encoder"].final.astype(float) for run in runs)
    wanted = [np.corrcoef(np.r_[a, -a], np.r_[b, -b])[0, 1] for a, b in zip(before, after, strict=True)]
    (drawn,) = lines(result, "vectors")
    np.testing.assert_allclose(np.cos(np.radians(drawn)), wanted, atol=1e-5)
    assert (drawn.max() > 1, result.facts["writes"]) == (True, False)


@pytest.mark.parametrize("name", ["GPT-2", "Marian", "gpt-oss"])
def test_common_claims_are_tested_as_far_as_a_hugging_face_model_has_what_they_need(name, run_of):
    run, claims = run_of(name), {view.name: view for view in views_of("pages.views.learn.often_told_wrong")}
    lacking = {claim for claim in ("heads", "untrained") if claims[claim](run, outcome=None).facts["missing"]}
    assert lacking == ({"untrained"} if name == "gpt-oss" else set())
    assert len(claims["sublayers"](run).shows["each"].names) == len(run.trace.sublayers)
    if name == "GPT-2":
        facts = claims["untrained"](run).facts
        assert facts["untrained"] == pytest.approx(untrained_evenness(run.opened, run.trace))


CAPPED, PRE = r"50\tanh\!\left(\frac{", r"\mathrm{RMSNorm}(\mathrm{Sublayer}(\mathrm{RMSNorm}(x"
FORMULAS = [
    ("Gemma 2", masks, {}, [CAPPED], []),
    ("Gemma 2", layers.path, {}, [PRE], []),
    ("Gemma 2", layers.inside, {}, [r"\mathrm{RMSNorm}(\mathrm{Sublayer}("], []),
    ("Gemma 2", layers.neurons, {}, [r"\mathrm{GELU}_{\tanh}(x W_{\mathrm{gate}}) \odot"], ["b_2", "max"]),
    ("Gemma 2", layers.lens, {}, [r"30\tanh"], []),
    ("Gemma 2", matrices, {"step": 4}, [r"50\tanh\Big("], ["b_Q", "b_O"]),
    ("Gemma 2", placement, {}, [r"\mathrm{Norm}'\big(\mathrm{Sublayer}(\mathrm{Norm}(x^{(s-1)}))\big)"], []),
    ("GPT-NeoX", placement, {}, [r"\mathrm{FFN}\big(\mathrm{Norm}'(x^{(l-1)})\big)"], []),
    ("GPT-NeoX", layers.path, {}, [r"\mathrm{Sublayer}(\mathrm{LayerNorm}(u))"], []),
    ("GPT-NeoX", layers.inside, {}, [r"\mathrm{LayerNorm}(u)_"], []),
    ("GPT-2", layers.path, {}, [r"x^{(s-1)} + \mathrm{Sublayer}(\mathrm{LayerNorm}(x^{(s-1)}))"], []),
    ("GPT-2", layers.inside, {}, [r"\mathrm{LayerNorm}(x)_"], []),
    ("OLMo 2", layers.path, {}, [r"+ \mathrm{RMSNorm}(\mathrm{Sublayer}(x^{(s-1)}))"], []),
    ("OLMo 2", layers.inside, {}, [r"\mathrm{RMSNorm}(y)_"], []),
    ("OLMo 2", layers.lens, {}, [r"\mathrm{RMSNorm}(x^{(s)})\,W_{out}"], []),
    ("Granite", layers.path, {}, [r"+ 0.22\,\mathrm{Sublayer}(\mathrm{RMSNorm}(x"], []),
    ("Granite", layers.inside, {}, [r"+ 0.22\,\mathrm{Sublayer}("], []),
    ("ModernBERT", layers.path, {}, [r"\mathrm{Sublayer}(\mathrm{LayerNorm}(x"], []),
    ("ModernBERT", layers.inside, {}, [r"\mathrm{LayerNorm}(x)_"], []),
    ("ModernBERT", layers.inside, {"step": 1}, [], [r"\mathrm{LayerNorm}(x)_"]),
    ("gpt-oss", heads, {}, [r"\big|\; s_h"], []),
    ("T5", live, {}, [r"q_i \cdot k_j + b_{ij}"], ["sqrt"]),
    ("BERT", layers.lens, {}, [r"f(x^{(s)})\,W_{out}^{\top} + b_{out}"], []),
    ("Marian", tokens, {}, [r"\cdot\sqrt{d_{model}} + PE_{pos}"], []),
    ("Llama, grouped", tokens, {}, [r"x_{pos} = E_{token},"], ["PE_"]),
]
"""family, view, what is chosen in it, and what its formulas have and have not"""


@pytest.mark.parametrize(("name", "view", "chosen", "has", "lacks"), FORMULAS)
def test_formulas_are_those_of_the_model(name, view, chosen, has, lacks, run_of):
    formulas = " ".join(formulas_in(view(run_of(name), **chosen).blocks)).replace(r"\vphantom{\boxed", "")
    assert [part for part in has if part not in formulas] == []
    assert [part for part in lacks if part in formulas] == []


def formulas_in(blocks: list[Block]) -> Iterator[str]:
    for block in blocks:
        if block.holds_blocks:
            yield from formulas_in(block.items)
        elif block.kind == "formula":
            yield block.text


def test_the_lens_of_an_encoder_alone_ends_with_its_own_logits(run_of):
    run = run_of("BERT")
    last = maps(layers.lens(run), "lens-map")[0][:, -1]
    np.testing.assert_allclose(last, run.trace.probabilities.max(axis=-1), atol=1e-6)


def test_cross_attention_without_a_bias_is_not_taken_for_alibi(run_of):
    facts = positions(run_of("T5", "cross")).facts
    assert facts["elsewhere"] == "decoder self-attention"
    assert not facts["linear"]


@pytest.mark.parametrize("view", [certainty, explanation, linear], ids=lambda view: view.name)
def test_a_text_of_a_single_token_without_a_start_token_is_shown(view, run_of):
    result = view(run_of("GPT-2", request=Request("A")))
    assert not [text for text in texts_of(result.blocks) if "nan" in text]


@pytest.mark.parametrize(("name", "lacks"), [("gpt-oss", {Need.FULL_ROWS}), ("GPT-2", set()), ("Granite", set())])
def test_rows_without_a_sink_are_needed_where_the_softmax_is_differentiated(name, lacks, run_of):
    run = run_of(name)
    assert {*jacobian.missing(run)} == lacks
    assert Need.OWN_LAYERS in {*other_weights.missing(run)} & {*value_zeroing.missing(run)}


@pytest.mark.usefixtures("open_feet")
def test_a_text_reaches_the_model_as_it_was_typed(models, open_model_page):
    """The numbers on the page, and the Python under it, are those of the whole text, white space included."""
    text = "  Q: one\nA: two\n\nQ: "
    app = open_model_page("pages/tokens_and_embeddings.py", "GPT-2", source=text, new_tokens="0")
    assert "as typed" not in words(app)
    assert load_checkpoint(models["GPT-2"], "cpu").trace(text).source == text
    assert any(f"Request(source={text!r}" in code.value for code in app.code)


@pytest.mark.parametrize(("name", "undone"), [("Granite", "divided by 8"), ("GPT-2", "divided by √dₖ")])
def test_scores_are_divided_by_the_root_of_d_k_only_where_the_model_does_that(name, undone, run_of):
    """Granite multiplies its scores by 0.125, which is 1/√dₖ for no width of its heads here."""
    run = run_of(name)
    assert run.attention.divides_by_root == (name == "GPT-2")
    marks = {shape.get("name") for shape in figure(jacobian(run), "jacobian-size")["layout"]["shapes"]}
    assert f"not {undone}" in marks
    assert f"not {undone}" in gradients(run).shows["decoder"].lines
    assert divided(run).facts["divisor"] == undone.removeprefix("divided by ")


def test_a_page_of_matrices_ends_with_the_number_where_they_do_not_give_the_run(open_app, tmp_path, monkeypatch):
    folder = save_family(tmp_path / "clipped", "OLMo, clipped")
    monkeypatch.setenv(MODELS_VARIABLE, str(folder))
    app = open_app("pages/attention_step_by_step.py", checkpoint=str(folder), source=SENTENCE)
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
        assert any(re.search(r"q: differs by \d", text.value) for text in app.text) == differs


def test_the_verification_page_lists_the_state_of_every_step(run_of):
    (table,) = (one.frame for one in steps(run_of("OLMo 2")).shows.values())
    assert set(table["state"]) == {"read"}
    assert {"q", "pattern", "residual", "logits"} <= set(table["computes"])


def test_languages_are_chosen_in_the_sidebar_and_are_those_of_the_link(models, open_model_page):
    opened = load_checkpoint(models["M2M100"])
    chosen = {"source_language": "fr", "target_language": "tlh"}
    typed = {"source": "A dog runs.", "target": "Typed", "typed": "Ein Hund."}
    app = open_model_page("pages/masks.py", "M2M100", **typed, **chosen)
    assert holds(app) == 3
    boxes = [app.selectbox(key=key) for key in chosen]
    assert [each.value for each in boxes] == ["fr", opened.chosen_languages[1]]
    assert set(boxes[0].options) == set(opened.languages)
    assert any("does not exist" in note.value for note in app.info)


def test_a_file_of_a_trace_brings_its_languages(models, tmp_path, monkeypatch):
    monkeypatch.setenv(MODELS_VARIABLE, models["M2M100"])
    chosen = {"source_language": "fr", "target_language": "de"}
    load_checkpoint(models["M2M100"]).trace("A dog runs.", "Ein Hund.", **chosen).save(tmp_path / "run.npz")
    assert chosen.items() <= link_to(open_trace_file(str(tmp_path / "run.npz"))).items()


@pytest.mark.parametrize("page", ["heads_and_layers", "verification", "model_card", "continue_text"])
def test_every_page_says_in_red_what_of_its_folder_the_network_does_not_use_and_no_tick_stands_beside_it(
    page, open_model_page
):
    app = open_model_page(f"pages/{page}.py", "relative", source="5 17 42")
    line = "".join(each.value for each in app.error).replace("\\", "")
    assert "position_embedding_type: relative_key_query" in line
    assert "distance_embedding.weight in 3 layers" in line
    assert line.count("which this network does not use") == 1
    assert holds(app) == 0
    tables = [str(each.value.to_dict()) for each in app.dataframe]
    assert not any("✓" in text for text in [*(each.value for each in app.markdown), *tables])


def test_a_network_that_is_the_folders_has_no_red_line(open_model_page):
    app = open_model_page("pages/heads_and_layers.py", "plain", source="5 17 42")
    assert not app.error
    assert holds(app) == 3
