"""Another language: its words where it has them, English as a whole where it has not, and a list of what it lacks."""

import ast
import json
import re
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from model import interventions
from model.checkpoints.translator import Translator
from model.language import (
    ENGLISH,
    Language,
    Numeral,
    Refusal,
    Sentence,
    has_words,
    in_this_language,
    joined,
    language,
    sentence,
    speak,
    speaking,
    tr,
    tr_error,
)
from model.needs import Need
from pages import Page
from pages import text as texts
from pages.frame.address import language as switch
from pages.frame.beside.right_side import PAIRS
from pages.lessons.station import read_lesson
from pages.text import best_language, catalogue, check, languages, read_language, skeleton, update
from pages.text.catalogue import read_catalogue
from pages.views import words
from pages.views.learn import glossary
from tests.model.interventions.test_every_intervention import EVERY
from tests.pages.figures import address, visible_texts
from tests.pages.test_pages import EVERY_PAGE
from viz.drawing import html_page, sources
from viz.figure import figure
from viz.labels import lacks
from viz.steps.arithmetic import explain_step, result_chain
from viz.steps.head import Choice, head_of
from viz.steps.steps import all_steps

GERMAN = """
[language]
name = "Erfunden"
decimal = ","
group = "."

[strings]
"Layer" = "Lage"
"Beam 4" = "Strahl 4"
"Masks" = "Larven"
"Padding" = "Füllung"
"{count:,} characters" = "{count:,} Zeichen"
"needs {part}" = "braucht {part}"
"an encoder" = "einen Codierer"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """That of a language which is made up, beside the English texts."""
    copy = tmp_path / "text"
    shutil.copytree(texts.TEXT, copy, ignore=shutil.ignore_patterns("de", "zh", "__pycache__"))
    for module in (texts, words, check, glossary, catalogue, update):
        monkeypatch.setattr(module, "TEXT", copy)
    (copy / "xx").mkdir()
    (copy / "xx/strings.toml").write_text(GERMAN, "utf-8")
    _forget()
    yield copy / "xx"
    _forget()
    speak(ENGLISH)


def _forget() -> None:
    of_words = texts.languages, catalogue.messages, words._sections, words._engine, words._compiled
    of_check = check.messages_in_english, check.facts_in_english
    for cached in (*of_words, *of_check, glossary._terms, switch._labels):
        cached.cache_clear()


def write(folder: Path, domain: str, *messages: str) -> None:
    """A catalogue of these messages."""
    (folder / f"{domain}.po").write_text("\n\n".join(messages), "utf-8")
    _forget()


def message(english: str, own: str, *comments: str) -> str:
    return "\n".join(
        [*comments, f"msgid {json.dumps(english, ensure_ascii=False)}", f"msgstr {json.dumps(own, ensure_ascii=False)}"]
    )


def in_the_language(page: str, title: str, **facts: object) -> str:
    with speaking(languages()["xx"]):
        return " ".join(block.text for block in words.blocks_of(page, title, facts))


@pytest.mark.usefixtures("folder")
def test_what_a_language_lacks_is_english_as_a_whole() -> None:
    with speaking(languages()["xx"]):
        assert tr("Layer") == "Lage"
        assert tr("{count:,} characters", count=1234) == "1.234 Zeichen"
        assert tr("{count:,} letters of {part}", count=1234, part=Need.ENCODER) == "1,234 letters of an encoder"
        assert tr("needs {part}", part=Need.ENCODER) == "braucht einen Codierer"
        assert tr("{braces} that somebody has typed") == "{braces} that somebody has typed"


@pytest.mark.usefixtures("folder")
def test_an_error_keeps_its_english_and_can_be_said_in_another_language() -> None:
    error = Refusal("{count:,} characters", count=5000)
    assert str(error) == "5,000 characters"
    with speaking(languages()["xx"]):
        assert tr_error(error) == "5.000 Zeichen"
        assert tr_error(ValueError("Plain")) == "Plain"


def test_every_kind_of_refusal_is_known_to_the_check_of_the_translations() -> None:
    """A kind that it does not know could stay English without anybody noticing."""
    trees = [ast.parse(path.read_text("utf-8")) for part in check.PARTS for path in (check.ROOT / part).rglob("*.py")]
    bases = {
        node.name: {getattr(base, "id", "") for base in node.bases}
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    kinds: set[str] = {"Refusal"}
    while more := {name for name, above in bases.items() if above & kinds} - kinds:
        kinds |= more
    assert kinds <= {*check.REFUSES}


@pytest.mark.usefixtures("folder")
def test_a_list_is_said_in_the_language_and_what_has_no_words_needs_none() -> None:
    assert joined([3]) == "3"
    assert joined([Need.ENCODER, 3, 4]) == "an encoder, 3 and 4"
    with speaking(languages()["xx"]):
        assert tr(sentence("{one} · {other}", one=1.5, other=Need.ENCODER)) == "1,5 · einen Codierer"


def lacking(said: str, one: Language) -> list[str]:
    """Of a sentence, and of those in it: what a language does not have, and parts that were put together before."""
    if not isinstance(said, Sentence):
        return [said] if " " in said else []
    own = [said.template] if has_words(said.template) and said.template not in one.strings else []
    return own + [text for fact in said.facts.values() if isinstance(fact, str) for text in lacking(fact, one)]


SEVERAL = (
    *EVERY,
    interventions.HeadGate(1.0),
    interventions.HeadGate(0.5, mode="mean", kind="encoder_self"),
    interventions.ForbidSource(tuple(range(12)), "cross"),
    interventions.ForbidSource(()),
    interventions.MaskEdit(((0, 1),), ((2, 0), (2, 1)), "cross", 0, 1),
    interventions.SublayerOff(),
    interventions.NormOff("encoder"),
    interventions.PositionsOff("target"),
)


@pytest.mark.parametrize("change", SEVERAL, ids=lambda change: repr(change)[:60])
def test_every_language_says_what_a_change_does(change: interventions.Intervention) -> None:
    for code in list(languages())[1:]:
        assert lacking(interventions.describe(change), languages()[code]) == []


@pytest.mark.usefixtures("folder")
def test_what_is_drawn_later_is_in_the_language_of_its_run() -> None:
    with speaking(languages()["xx"]):
        later = in_this_language(lambda: tr("Layer"))
    assert (later(), tr("Layer"), language()) == ("Lage", "Layer", ENGLISH)


SURPRISED = (
    'Its translation averages −log p = {{ surprise | f(".2f") }} nats per token; '
    '98 of 100 held-out sentences stay below {{ usual | f(".2f") }}.'
)
UNFAMILIAR = {"strange": 0, "tokens": 4, "surprise": 2.5, "usual": 1.5, "about": "So."}
UNFAMILIAR |= {"characters": 4.0, "usual_characters": 2.4}


@pytest.mark.parametrize("flag", ["", "#, fuzzy"])
def test_a_sentence_that_is_missing_or_fuzzy_is_english_with_its_numbers(folder: Path, flag: str) -> None:
    write(folder, "texts", message("The model was not trained on text like this.", "x"))
    write(folder, "texts", message(SURPRISED, "Seltsam: {{ surprise | f('.2f') }}.", flag))
    said = in_the_language("home", "An unfamiliar text", **UNFAMILIAR)
    assert ("2.50 nats" if flag else "Seltsam: 2,50.") in said
    assert "The model was not trained" in said


def test_a_sentence_may_be_said_otherwise_in_one_place(folder: Path) -> None:
    elsewhere = message("Nothing is measured until you press the button.", "Drück.")
    here = f'msgctxt "home.md: An unfamiliar text"\n{message(SURPRISED, "Hier.")}'
    write(folder, "texts", elsewhere, message(SURPRISED, "Dort."), here)
    assert "Hier." in in_the_language("home", "An unfamiliar text", **UNFAMILIAR)


@pytest.mark.parametrize("path", sorted(texts.TEXT.glob("*.md")), ids=lambda path: path.stem)
def test_the_pieces_of_a_text_are_the_text(path: Path) -> None:
    text = path.read_text("utf-8")
    assert "".join(piece for _, piece in skeleton.pieces(text)) == text


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("> {{ n }} {% if n %}a{% endif %}. [?](glossary:a)\n", ["{{ n }} {% if n %}a{% endif %}."]),
        ("% if n\nWords.\n% endif\n", ["Words."]),
        ("![What it shows](maps \"Its title\")\n", ["What it shows", "Its title"]),
        ("[Open it](masks?part=Padding)\n", ["Open it"]),
        ("{% set each %}{% for one in all %}{{ one }} here{% endfor %}{% endset %}\n", ["{{ one }} here"]),
        ("$$x = 2.5 y$$\n\n$$x = y$$\n", ["$$x = 2.5 y$$"]),
        ("::: closed A title\n{{ number | f(\".2f\") }}\n:::\n", ["A title"]),
    ],
)  # fmt: skip
def test_a_message_is_a_sentence_with_its_facts_and_without_its_marks(text: str, messages: list[str]) -> None:
    assert [piece for is_message, piece in skeleton.pieces(text) if is_message] == messages


def test_a_sentence_of_the_english_has_one_choice_at_most_and_no_loop(folder: Path) -> None:
    assert list(check.faults_of_english()) == []
    path = folder.parent / "home.md"
    choices, loop = (
        "Of{% if a %} a{% endif %} or{% if b %} b{% endif %}.",
        "{% for x in y %}one {{ x }}{% endfor %} and.",
    )
    path.write_text(f"# Home\n\n{choices}\n\n{loop}\n", "utf-8")
    _forget()
    assert [fault.partition(":")[0] for fault in check.faults_of_english()] == ["home.md", "home.md"]


def test_a_symbol_of_a_sentence_is_set_as_a_formula_in_every_language(folder: Path) -> None:
    for path in folder.parent.glob("*.md"):
        path.unlink()  # the test above reads them all
    path = folder.parent / "home.md"
    path.write_text("# Home\n\nThe width d_model and $W_Q$ of {{ d_v }}, `d_k`.\n", "utf-8")
    _forget()
    assert [fault.partition(" ")[0] for fault in check.faults_of_english()] == ["d_model"]
    path.write_text(r"# Home" "\n\n" r"The width $d_{\text{model}}$." "\n", "utf-8")
    message = r"The width $d_{\\text{model}}$."
    (folder / "texts.po").write_text(f'msgid "{message}"\nmsgstr "Die Breite d_model."\n', "utf-8")
    _forget()
    assert list(check.faults_of_english()) == []
    assert any("d_model is no formula" in fault for fault in check.faults(folder))


@pytest.mark.usefixtures("folder")
def test_a_power_of_ten_is_written_as_in_print_in_every_language() -> None:
    for number, english in {
        "3.3e+18": "3.3 · 10¹⁸",
        "1e-09": "10⁻⁹",
        "−1.5e−07": "−1.5 · 10⁻⁷",
        "+21e3": "+21 · 10³",
    }.items():
        for one in languages().values():
            assert one.number(number) == english.replace(".", one.decimal)
    assert [ENGLISH.number(text) for text in ("1,200", "0.5", "bc25e9", "2e")] == ["1,200", "0.5", "bc25e9", "2e"]


def test_german_parts_a_list_of_decimals_with_semicolons_and_chinese_counts_in_wan() -> None:
    listed = re.compile(r"\| f\(.[+,]*\.\d[^}]*}}[^.;]*{% if not loop.last %}, {% endif %}")
    german, chinese = (
        "\n".join(one.own for path in texts.TEXT.glob(f"{code}/*.po") for one in read_catalogue(path))
        for code in ("de", "zh")
    )
    assert listed.findall(german) == []
    assert re.findall(r"/ 1e6\) \| f\([^)]*\) }} ?(?:百万|M\b(?!B)).*", chinese) == []


@pytest.mark.usefixtures("folder")
def test_a_decimal_comma_in_a_formula_is_no_list() -> None:
    with speaking(languages()["xx"]):
        (formula,) = words._parsed("$$x = 2,5$$", language())
    assert formula.text == "x = 2{,}5"
    (formula,) = words._parsed("$$x = 2,5$$", language())
    assert formula.text == "x = 2,5", "the same text is read again in another language"


ABLATION = "The same training, or the same run, without one part, to see what that part is worth."


def test_a_term_is_found_by_its_english_name_and_has_other_names_in_each_language(folder: Path) -> None:
    also = 'msgctxt "also"\n' + message("glossary.toml: ablation", "Ausbau; weglassen")
    write(folder, "lessons", message("ablation", "Weglassen"), message(ABLATION, "Ohne."), also)
    with speaking(languages()["xx"]):
        known = {term.key: term for term in glossary.terms()}
    assert (known["ablation"].name, known["ablation"].text) == ("Weglassen", "Ohne.")
    assert known["ablation"].also == ("Ausbau", "weglassen")
    assert known["attention"].name == "attention"


def test_a_text_of_a_lesson_is_in_the_language_when_all_of_its_messages_are(folder: Path) -> None:
    with speaking(languages()["xx"]):
        english = read_lesson("first_steps").stations[0]
    write(folder, "lessons", message(english.question.ask, "Wohin?"))
    with speaking(languages()["xx"]):
        own = read_lesson("first_steps").stations[0]
    assert own.question.ask == "Wohin?"
    assert own.question.answer == english.question.answer


def test_what_is_missing_stale_or_different_is_listed(folder: Path) -> None:
    write(folder, "texts", message(SURPRISED, "Es ist {{ surprise }}."))
    found = list(check.faults(folder))
    assert "texts.po: missing, of home.md: An unfamiliar text: The model was not trained on text like this." in found
    assert not any(SURPRISED[:40] in line for line in found)
    assert any(line.startswith("strings.toml: missing") for line in found)
    assert "strings.toml: nothing says this any more: needs {part}" in found
    write(folder, "texts", message(SURPRISED, "Es ist {{ surprises }}."), message("Gone.", "Fort."))
    found = list(check.faults(folder))
    assert "texts.po: does not name the same, of home.md: An unfamiliar text: surprises" in found
    assert "texts.po: nothing in the English: Gone." in found
    write(folder, "texts", message(SURPRISED, "Es ist {{ surprise }}.", "#, fuzzy"))
    assert any(line.startswith("texts.po: stale, of home.md: An unfamiliar text") for line in check.faults(folder))


def test_other_placeholders_are_listed(folder: Path) -> None:
    english = "There is no {control} {value} here; {shown} is shown instead."
    strings = f'{GERMAN}"{english}" = "{{control}} {{value}} fehlt."\n'
    (folder / "strings.toml").write_text(strings, "utf-8")
    assert f"strings.toml: other placeholders: {english}" in list(check.faults(folder))


@pytest.mark.parametrize(
    "strings", ['[strings]\n"Layer" = "Lage"\n', "[language]\nname = \n", '[language]\nname = "X"\ncolour = "red"\n']
)
def test_a_language_that_does_not_say_what_it_is_breaks_alone_and_in_a_sentence(
    folder: Path, strings: str, capsys: pytest.CaptureFixture
) -> None:
    (folder / "strings.toml").write_text(strings, "utf-8")
    _forget()
    assert [*languages()] == ["en"]
    assert "pages/text/xx/strings.toml" in capsys.readouterr().err
    with pytest.raises(ValueError, match=r"pages/text/xx/strings\.toml"):
        read_language(folder)
    assert any("pages/text/xx/strings.toml" in line for line in check.faults(folder))


CATALOGUE = r"""
# A comment.
msgid ""
msgstr "Language: xx\n"

#. home.md: A place
#, fuzzy
msgctxt "home.md: A place"
msgid "One \"quoted\" "
"text\\ and\n"
"its second line"
msgstr ""
"Ein\tText"
msgid "No line between"
msgstr "Keine Zeile"

#~ msgid "Gone"
#~ msgstr "Fort"
"""


def test_a_catalogue_is_read_as_gettext_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "texts.po"
    path.write_text(CATALOGUE, "utf-8")
    first, second = read_catalogue(path)
    assert (first.context, first.is_fuzzy) == ("home.md: A place", True)
    assert (first.english, first.own) == ('One "quoted" text\\ and\nits second line', "Ein\tText")
    assert (second.english, second.own, second.context, second.is_fuzzy) == (
        "No line between",
        "Keine Zeile",
        "",
        False,
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('msgid "a"\nmsgstr "b\n', 2),
        ('msgid "a"\n\nmsgid "b"\nmsgstr "c"\n', 3),
        ('msgid "a"\nmsgstr "b"\n\n<<<<<<< HEAD\n', 4),
        ('msgid "a"\nmsgstr "b"\n\nmsgid "a"\nmsgstr "c"\n', 5),
        ('msgid "a"\nmsgid_plural "b"\nmsgstr[0] "c"\n', 2),
        ('"a"\n', 1),
        ('msgid "a"\n', 2),
    ],
)
def test_a_malformed_catalogue_is_english_and_its_line_is_named(
    folder: Path, text: str, line: int, capsys: pytest.CaptureFixture
) -> None:
    write(folder, "texts", text)
    with pytest.raises(ValueError, match=rf"pages/text/xx/texts\.po, line {line}: "):
        list(read_catalogue(folder / "texts.po"))
    assert "2.50 nats" in in_the_language("home", "An unfamiliar text", **UNFAMILIAR)
    assert f"texts.po, line {line}: " in capsys.readouterr().err
    assert any(f"line {line}: " in fault for fault in check.faults(folder))


def test_a_catalogue_follows_the_english(folder: Path) -> None:
    """A new language begins with every message; a second time nothing changes; what has changed is fuzzy."""
    path = folder / "texts.po"
    update.update(path)
    begun = {one.english: one for one in read_catalogue(path)}
    assert not any(one.own for one in begun.values())
    write(folder, "texts", message(SURPRISED, "Es ist {{ surprise }}."))
    update.update(path)
    first = path.read_text("utf-8")
    update.update(path)
    assert path.read_text("utf-8") == first
    assert not re.search(r"^#: |\d{4}-\d\d-\d\d \d\d:", first, re.MULTILINE)
    english = folder.parent / "home.md"
    english.write_text(english.read_text("utf-8").replace("98 of 100", "99 of 100"), "utf-8")
    _forget()
    update.update(path)
    changed = [one for one in read_catalogue(path) if one.own]
    assert [(one.own, one.is_fuzzy, "99 of 100" in one.english) for one in changed] == [
        ("Es ist {{ surprise }}.", True, True)
    ]
    assert len(set(first.splitlines()) ^ set(path.read_text("utf-8").splitlines())) < 6


def test_a_fact_is_renamed_in_the_english_and_in_every_translation_at_once(folder: Path) -> None:
    write(folder, "texts", message(SURPRISED, "Es ist {{ surprise | f('.2f') }}."))
    update.update(folder / "texts.po")
    update.rename_fact("home.md", "surprise", "strangeness")
    _forget()
    update.update(folder / "texts.po")
    facts = {name: value for name, value in UNFAMILIAR.items() if name != "surprise"} | {"strangeness": 2.5}
    assert "Es ist 2,50." in in_the_language("home", "An unfamiliar text", **facts)
    assert "{{ surprise" not in (folder.parent / "home.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("asked", "preferred", "best"),
    [("xx", ("en-GB",), "xx"), ("", ("xx-AT", "en"), "xx"), (None, ("fr", "XX", "en"), "xx"), ("qq", (None,), "en")],
)
@pytest.mark.usefixtures("folder")
def test_the_language_is_that_of_the_link_or_else_of_the_browser(
    asked: str | None, preferred: tuple[str | None, ...], best: str
) -> None:
    assert best_language(asked, *preferred).code == best


@pytest.mark.usefixtures("folder")
def test_a_link_brings_the_language_and_keeps_it_and_labels_are_known_in_any(open_app: Callable) -> None:
    app = open_app("pages/masks.py", lang="xx", target="Beam 4", part="Padding")
    assert app.query_params["lang"] in ("xx", ["xx"])
    assert [tab.label for tab in app.tabs][1] == "Füllung"
    assert app.session_state["part"] == "Füllung"
    assert "Lage" in [slider.label for slider in app.select_slider]
    assert app.session_state["target"] == "beam"


@pytest.mark.usefixtures("folder")
def test_who_turns_the_language_keeps_what_was_chosen(open_app: Callable) -> None:
    app = open_app("pages/masks.py", lang="xx", part="Padding", head="1")
    app.menu_button(key=switch.SWITCH).click("en").run()
    assert app.query_params["lang"] in ("en", ["en"])
    assert (app.session_state["part"], app.session_state["head"]) == ("Padding", 1)


def test_a_language_that_is_not_there_leaves_the_address(open_app: Callable) -> None:
    app = open_app("pages/masks.py", lang="qq", head="1")
    assert "lang" not in address(app)
    assert address(app)["head"] == "1"


def test_every_language_has_words_for_no_more_and_no_other_facts_than_the_english() -> None:
    """What is missing may be missing for a while; what is there names what the English names."""
    for code in list(languages())[1:]:
        wrong = [line for line in check.faults(texts.TEXT / code) if "missing" not in line and "stale" not in line]
        assert wrong == []


def test_the_numbers_of_a_chart_and_the_page_of_a_picture_are_in_its_language() -> None:
    assert "separators" not in figure([{"type": "bar", "y": [1.5]}]).to_dict()["layout"]
    with speaking(Language("xx", "Erfunden", ",", ".", {"Zoom in": "Näher"})):
        assert figure([{"type": "bar", "y": [1.5]}]).to_dict()["layout"]["separators"] == ",."
        assert '<html lang="xx">' in html_page("Title", "")
        assert sources("beam_tree")[0].startswith('const WORDS = {"Zoom in": "Näher"};')


SAYING = {*check.SAYS, "say_label", "say_options"}
"""functions that give a text in the language of the run, or one that is said later"""
TEXT_CALLS = {
    "markdown", "caption", "write", "info", "warning", "error", "success", "text",
    "header", "subheader", "title", "button", "toggle", "expander", "popover", "metric",
    "download_button", "link_button", "page_link", "text_input", "text_area", "checkbox", "radio", "selectbox",
    "pills", "toast", "progress", "spinner", "number_input", "slider", "file_uploader", "segmented_control",
    "select", "choice", "number", "several", "steps",
}  # fmt: skip
"""of Streamlit and of pages/widgets/controls.py: their first argument is read by visitors"""
TEXT_ARGUMENTS = "label", "help", "placeholder", "caption"
PROGRAMS = {
    "model/checkpoints/tokenizer.py": "whoever trains a vocabulary",
    "pages/frame/server/command_line.py": "the terminal",
    "pages/lessons/question.py": "whoever writes a question",
    "pages/site/": "the terminal",
    "pages/text/": "whoever translates",
    "pages/views/__init__.py": "whoever calls a view",
    "pages/views/__main__.py": "the terminal",
    "pages/views/controls.py": "whoever calls a view",
    "pages/views/examples.py": "whoever calls a view",
    "pages/views/words.py": "whoever writes a text",
    "viz/canvas/": "whoever draws a picture",
    "viz/drawing.py": "whoever draws a picture",
    "viz/notebook.py": "whoever calls it",
    "viz/paper/page.py": "whoever calls it",
    "viz/steps/head.py": "whoever calls it",
}
"""file or folder -> who reads the errors of its mistakes, in English; no visitor does"""
NAMES = {"Attention Explorer", "**Attention Explorer**", "PNG"}


def english_parts(node: ast.AST) -> Iterator[str]:
    """Texts with words in an argument that no function says in the language of the run."""
    match node:
        case ast.Call() | ast.Compare() | ast.Subscript():
            return
        case ast.Constant(value=str()):
            words = re.sub(r":[a-z/_]+[:[]|:material/|<[^>]*>|\*\*", " ", node.value)
            if re.search("[A-Za-z]{2}", words) and words.strip() not in NAMES:
                yield node.value
        case ast.IfExp():
            yield from (*english_parts(node.body), *english_parts(node.orelse))
        case _:
            for child in ast.iter_child_nodes(node):
                yield from english_parts(child)


def trees(*folders: str) -> Iterator[tuple[str, ast.Module]]:
    for path in (path for folder in folders for path in sorted(check.ROOT.glob(folder))):
        yield path.relative_to(check.ROOT).as_posix(), ast.parse(path.read_text("utf-8"))


def test_what_visitors_read_is_said_in_the_language_and_never_composed() -> None:
    """A text call gets what `tr` gives, no English literal and no f-string with words."""
    found = []
    for name, tree in trees("app.py", "pages/frame/**/*.py", "pages/widgets/*.py", "pages/compute/*.py"):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in TEXT_CALLS:
                given = [*node.args[:1], *(each.value for each in node.keywords if each.arg in TEXT_ARGUMENTS)]
                found += [f"{name}:{node.lineno}: {text}" for part in given for text in english_parts(part)]
    assert found == []


NO_WORDS = {
    *("Enter", "Escape", "Home", "name open", "node kept"),
    *("Arial, Helvetica, sans-serif", "Download plot", "Unscaled"),
}
"""texts of scripts that no visitor reads: keys, classes, fonts, what Plotly calls its button, types of changes"""


def test_a_script_takes_its_words_from_the_page_and_says_no_others() -> None:
    """A text of several words, or a word with a capital, is in `tr`, or an error that is thrown for a developer."""
    text = re.compile(r'(tr\(\s*|SAID = .*)?("(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`)')
    filled = re.compile(r"\$\{(?:[^{}]|\{[^{}]*\})*\}")
    found = []
    for path in [*check.SCRIPTS.glob("**/*.js"), *check.ROOT.glob("viz/site/js/page/*.js")]:
        for number, line in enumerate(path.read_text("utf-8").split("\n"), 1):
            script = re.sub(r"(^|\s)//.*", "", line)
            for said, literal in text.findall("" if re.search("new (Error|NotRecorded)", script) else script):
                words = filled.sub(" ", literal[1:-1])
                spoken = re.search(r"(^|[^.\w-])[A-Za-z]{2,} [a-z]{2,}", words) or re.fullmatch(
                    "[A-Z][a-z]+( .)?", words
                )
                if spoken and not said and words not in NO_WORDS:
                    found.append(f"{path.name}:{number}: {literal}")
    assert not found, "\n".join(found)


def test_an_error_that_visitors_may_read_is_a_sentence() -> None:
    found = []
    of_the_model = "model/checkpoints/**/*.py", "model/interventions/*.py", "model/network/config.py"
    for name, tree in trees("pages/**/*.py", "viz/**/*.py", *of_the_model):
        for node in ast.walk(tree):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and not name.startswith((*PROGRAMS,)):
                says = getattr(node.exc.func, "id", "") in check.REFUSES
                composed = [part for part in node.exc.args if not (says and isinstance(part, ast.Constant))]
                found += [f"{name}:{node.lineno}: {text}" for part in composed for text in english_parts(part)]
    assert found == []


def test_no_translation_replaces_english_words_of_a_fact() -> None:
    """A fact with words is a sentence, which each language says; the English may change it, too."""
    for path in (path for code in list(languages())[1:] for path in (texts.TEXT / code).glob("*.po")):
        replacing = [
            one for one in read_catalogue(path) if one.own.count("| replace(") > one.english.count("| replace(")
        ]
        assert replacing == []


@pytest.mark.parametrize("code", [*languages()][1:])
def test_every_language_has_the_words_of_the_strips_of_each_step(code: str, translator: Translator) -> None:
    attention = translator.trace("Two dogs", "Zwei Hunde").attention("decoder_self", 1)
    head, choice = head_of(attention, 0), Choice(0, 1)
    for step in range(len(all_steps())):
        shown = explain_step(step, head, choice)
        rows = [row.label for strip in shown.strips for row in strip.rows]
        sentences = [text for strip in shown.strips for text in (strip.title, strip.result)]
        with speaking(languages()[code]):
            assert not [text for pair in result_chain(head, choice) for text in pair if lacks(text)]
            assert not [text for text in rows if lacks(text)]
        assert not [text for one in sentences for text in lacking(one, languages()[code])]


@cache
def english_of_the_code() -> list[str]:
    """Texts of several words in the code, and parts of f-strings, but for example sentences."""
    files = (check.ROOT / "checkpoints").glob("*/examples.json")
    examples = {text for path in files for text in check.texts_in(json.loads(path.read_text("utf-8")))}
    examples |= {text for pair in PAIRS.values() for text in pair}
    texts_of_code = {text for text in check.texts_of_code() if re.search(r"[A-Za-z]{2,} [a-z]{2,}", text)}
    return sorted(texts_of_code - examples)


@pytest.mark.parametrize("page", EVERY_PAGE, ids=lambda page: page.name)
@pytest.mark.usefixtures("open_feet")
def test_every_page_says_all_in_every_language(page: Page, open_app: Callable) -> None:
    """What two languages say alike is a name, a token or English: it must not be a text of the code."""
    said, number = [], EVERY_PAGE.index(page)
    for code in list(languages())[1:]:
        with speaking(languages()[code]):
            titles = [tr(title) for title in dict.fromkeys(view.tab or view.title for view in page.views)]
        tab = {page.tabs_key: titles[number % len(titles)]} if titles and page.name != "learn" else {}
        said.append({*visible_texts(open_app(page.path, lang=code, **tab))})
    alike = {text.replace("\\", "") for text in set.intersection(*said)} - NAMES
    parts = [part for part in english_of_the_code() if re.search(r"[A-Za-z]{2,} [a-z]{2,} [a-z]{2,}", part)]
    assert sorted(text for text in alike if text in english_of_the_code() or any(part in text for part in parts)) == []
    # A browser sets the end of a line as a space, which Chinese does not have between its sentences.
    assert [text for text in set.union(*said) if re.search(r"[。，；：！？][ \n][\u4e00-\u9fff]", text)] == []


@pytest.mark.parametrize("made", ["en", "de"])
def test_a_number_on_a_slider_is_written_as_the_language_writes_it_and_travels(made: str, open_app: Callable) -> None:
    written = {"en": "0.8", "de": "0,8", "zh": "0.8"}
    link = {"source": "A dog sleeps.", "part": {"en": "Sampling", "de": "Ziehen (Sampling)"}[made]}
    for opened in written:
        app = open_app("pages/decoding.py", lang=opened, **link, **{"decoding-temperature": written[made]})
        slider = app.select_slider(key="decoding-temperature")
        assert slider.value == 0.8
        assert slider.format_func(slider.value) == written[opened]


def test_a_number_that_a_slider_does_not_have_gets_a_note_in_the_language(open_app: Callable) -> None:
    notes = {}
    for code in languages():
        app = open_app("pages/decoding.py", lang=code, **{"decoding-alpha": "0.65"})
        assert app.select_slider(key="decoding-alpha").value == 0.6
        notes[code] = {note.value for note in app.info}
    assert all(notes.values())
    assert not notes["en"] & (notes["de"] | notes["zh"])


@pytest.mark.parametrize("link", ["2", "2.0"])
def test_a_link_to_a_number_of_a_slider_may_write_it_with_a_decimal_or_without(link: str, open_app: Callable) -> None:
    app = open_app("pages/decoding.py", part="Beam", **{"decoding-alpha": link})
    assert app.select_slider(key="decoding-alpha").value == 2.0
    assert not [note for note in app.info if link in note.value]


@pytest.mark.parametrize(
    ("count", "german", "chinese"),
    [("2.84 M", "2,84 Mio.", "284 万"), ("263 k", "263 Tsd.", "26.3 万"), ("6.3 G", "6,3 Mrd.", "63 亿")],
)
def test_a_large_count_is_in_the_units_of_the_language(count: str, german: str, chinese: str) -> None:
    said = {}
    for code, one in languages().items():
        with speaking(one):
            said[code] = tr(Numeral(count))
    assert said == {"en": count, "de": german, "zh": chinese}
