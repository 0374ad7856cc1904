"""Pictures as one file: nothing is asked of a network, and nothing that was typed becomes part of the page."""

import re
from html.parser import HTMLParser

import numpy as np
import plotly.graph_objects as go
import pytest

from viz.drawing import SCRIPTS, Drawing, sources, standalone_html

COMPONENTS = sorted(path.stem for path in SCRIPTS.glob("*/*.css") if path.parent.name != "shared")
HOSTILE = "</script><img src=x onerror=alert(1)>"


class Tags(HTMLParser):
    """Start tags of a page, in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        del attrs
        self.found.append(tag)


@pytest.mark.parametrize("data", [b"\x00\xff</script>", {"text": HOSTILE}], ids=["bytes", "values"])
def test_a_page_has_the_tags_that_it_has_without_what_was_typed(data: bytes | dict) -> None:
    plain = standalone_html("Title", [Drawing("mosaic", b"")], {"source": "A dog."})
    typed = standalone_html(HOSTILE, [Drawing("mosaic", data)], {"source": HOSTILE})
    assert Tags(typed).found == Tags(plain).found
    assert "img" not in Tags(typed).found


def test_a_page_may_ask_nobody_for_anything() -> None:
    page = standalone_html("Title", [go.Figure(go.Bar(y=[1])), Drawing("lines", b"")], {})
    assert "default-src 'none'" in page
    assert not re.search(r"<(script|link|img)[^>]*(src|href)=", page)


def test_plotly_comes_along_only_with_a_plotly_figure() -> None:
    drawing = Drawing("lines", b"")
    alone = standalone_html("Title", [drawing], {})
    both = standalone_html("Title", [drawing, go.Figure()], {})
    assert len(alone) < 100_000 < len(both)


def test_the_facts_stand_on_the_page() -> None:
    page = standalone_html("Title", [], {"checkpoint": "en-de", "view": "/masks?layer=1&head=2"})
    assert "<dt>checkpoint</dt><dd dir='auto'>en-de</dd>" in page
    assert "/masks?layer=1&amp;head=2" in page


def test_the_files_that_a_script_needs_come_before_it_and_once() -> None:
    script, style = sources("mosaic")
    files = ("shared/elements.js", "shared/mount.js", "shared/picture.js", "mosaic/mosaic_draw.js", "mosaic/mosaic.js")
    texts = [(SCRIPTS / name).read_text(encoding="utf-8") for name in files]
    places = [script.index(text) for text in texts]
    assert places == sorted(places)
    assert [script.count(text) for text in texts] == [1] * len(files)
    assert style.startswith((SCRIPTS / "shared/component.css").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", COMPONENTS)
def test_every_component_has_one_view_and_one_way_to_mount_it(name: str) -> None:
    code, _ = sources(name)
    assert code.count("export default function mount(") == 1
    assert len(re.findall(r"^class View\b", code, re.MULTILINE)) == 1


def test_a_drawing_says_what_its_header_and_its_arrays_names_are() -> None:
    header, arrays = {"title": "3 Köpfe", "labels": ["é", ""]}, {"a.pattern[3]": np.ones((2, 3)), "mask": np.eye(3) > 0}
    drawing = Drawing.pack("lines", header, arrays)
    assert (drawing.header, drawing.names) == (header, [*arrays])
    plain = Drawing("beam_tree", header)
    assert (plain.header, plain.names) == (header, [])


def test_every_number_that_a_script_writes_has_the_signs_of_the_language():
    scripts = [file for folder in ("canvas", "site") for file in (SCRIPTS.parents[1] / folder / "js").rglob("*.js")]
    lines = [(file.name, line.strip()) for file in scripts for line in file.read_text("utf-8").splitlines()]
    formatted = [one for one in lines if re.search(r"\.to(Fixed|Precision|Exponential|LocaleString)\(", one[1])]
    said = re.compile(r"written\(|Number\(|toFixed\(0\)|replace\(/\\d/g|documentElement\.lang")
    assert formatted
    assert [one for one in formatted if not said.search(one[1])] == []
