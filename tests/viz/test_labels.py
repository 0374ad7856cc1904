"""The words of pictures and tables in another language: whole labels, numbers as it writes them, no visitor's words."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

from model.language import ENGLISH, Language, sentence, speaking
from viz.drawing import Drawing
from viz.figure import figure, heatmap, scatter
from viz.forms import Bars, Line, Lines, Map, Maps
from viz.labels import TYPED, lacks, say_label, say_table
from viz.tokens import Verbatim, as_plotly, labels

LABELS = {
    "head": "Kopf",
    "position": "Ort",
    "attention weight": "Gewicht",
    "query": "Frage",
    "key": "Antwort",
    "{} to {}": "{} bis {}",
    "layer {}": "Lage {}",
    "kind": "Art",
    "byte": "Byte",
    "step": "Schritt",
    "weight<br>{} to {}": "Gewicht<br>von {} bis {}",
}
OTHER = Language("xx", "Erfunden", ",", ".", {"in {place}": "bei {place}"}, LABELS, " %")


@pytest.fixture(autouse=True)
def other() -> Iterator[None]:
    with speaking(OTHER):
        yield


@pytest.mark.parametrize(
    ("english", "said"),
    [
        ("head", "Kopf"),
        ("layer 3", "Lage 3"),
        ("attention weight, 0 to 1,234.5", "Gewicht, 0 bis 1.234,5"),
        (
            "attention weight <b>%{z:.7g}</b><br>query %{y}<br>key %{x}",
            "Gewicht <b>%{z:.7g}</b><br>Frage %{y}<br>Antwort %{x}",
        ),
        ("weight<br>−0.5 to 0.5", "Gewicht<br>von −0,5 bis 0,5"),
        ("12.5%", "12,5 %"),
        ("something new", "something new"),
        ("√dₖ = 4", "√dₖ = 4"),
    ],
)
def test_a_label_is_said_part_by_part_with_its_numbers_or_stays_english(english: str, said: str) -> None:
    assert say_label(english) == said


def test_a_part_without_words_of_its_own_keeps_all_of_its_part_english() -> None:
    assert lacks("layer 3, head 2")
    assert say_label("layer 3, head 2") == "layer 3, head 2", "never half of it"
    assert not lacks("layer 3: attention weight")


def test_what_somebody_wrote_stays_whatever_it_is() -> None:
    assert say_label(as_plotly("head")) == "head"
    assert say_label(sentence("in {place}", place=as_plotly("head"))) == "bei head"
    tokens = ["\u2581head", "\u2581key", "\u2581step"]
    bars = Bars(labels(tokens), {"attention weight": np.ones(3)}, ("position", "attention weight")).draw().content
    assert bars["layout"]["xaxis"]["ticktext"] == ["head", "key", "step"]
    assert (bars["layout"]["xaxis"]["title"]["text"], bars["data"][0]["name"]) == ("Ort", "Gewicht")
    assert [name for (name,) in bars["data"][0]["customdata"]] == ["head", "key", "step"]
    maps = Maps(["head"], ["key", "step"], {"head": Map(np.eye(1, 2))}).draw().content
    assert maps["data"][0]["y"] == ["head"]
    assert maps["data"][0]["hovertemplate"].startswith("Gewicht <b>%{z:.7g}</b><br>Frage %{y}")


def test_a_figure_has_the_decimal_sign_of_its_language_everywhere() -> None:
    points = scatter(x=[1], y=[2], name="step", text=["0.5", Verbatim("0.5")], customdata=[["1.25", "head"]])
    drawn = figure([points], xaxis={"tickvals": [0.5], "ticktext": ["0.5"]}).content
    assert drawn["layout"]["separators"] == ",."
    assert drawn["layout"]["xaxis"]["ticktext"] == ["0,5"]
    assert drawn["data"][0]["text"] == ["0,5", "0.5"], "a token may be a number"
    assert drawn["data"][0]["customdata"] == [["1,25", "head"]]


def test_numbers_and_names_of_arrays_are_those_of_the_english() -> None:
    form = Lines({"head": Line(np.arange(2), np.arange(2.0))}, ("position", "attention weight"))
    assert [*form.arrays()] == ["head_x", "head_y"]
    assert form.draw().content["data"][0]["name"] == "Kopf"


def test_a_table_says_its_heads_and_the_words_of_the_app_but_no_typed_ones() -> None:
    frame = pd.DataFrame({"kind": ["byte"], "token": ["byte"], "head": [1]})
    said = say_table(frame)
    assert said.to_dict("list") == {"Art": ["Byte"], "token": ["byte"], "Kopf": [1]}
    frame.attrs[TYPED] = ["head"]
    assert [*say_table(frame)] == ["Art", "token", "head"]
    assert [*frame] == ["kind", "token", "head"]


def test_our_own_pictures_get_titles_and_no_other_words() -> None:
    header = {
        "title": "attention weight",
        "axes": {"key": {"title": "key"}},
        "labels": {"key": ["head"]},
        "name": "head",
    }
    sent = Drawing.pack("lines", header, {}).header
    assert (sent["title"], sent["axes"]["key"]["title"]) == ("Gewicht", "Antwort")
    assert sent["labels"] == {"key": ["head"]}


def test_a_heat_map_of_one_language_is_another_picture_to_plotly() -> None:
    def drawn() -> dict:
        return figure([heatmap(z=np.eye(2), hover="attention weight %{z}")]).content["layout"]

    with speaking(ENGLISH):
        english = drawn()
    assert drawn()["datarevision"] != english["datarevision"]
    assert "separators" not in english


def test_a_symbol_in_a_label_is_set_with_a_subscript_and_no_word_or_token_is() -> None:
    shown = figure(
        [scatter(x=["W_Q", "d_model"], y=[1, 2], name="W_Q W_Kᵀ, d_model and snake_Q", text=["W_Q", "d_model"])],
        title={"text": "embedding × √d_model"},
    ).to_dict()
    trace = shown["data"][0]
    assert trace["name"] == "W<sub>Q</sub> W<sub>K</sub>ᵀ, d<sub>model</sub> and snake_Q"
    assert shown["layout"]["title"]["text"] == "embedding × √d<sub>model</sub>"
    assert list(trace["x"]) == list(trace["text"]) == ["W_Q", "d_model"], "what somebody typed stays"
