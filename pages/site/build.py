"""Puts the page together, in each language and two forms: for any static host, and as a single file.

Both come from one template, and their words from pages/text, as the app's do.
"""

import base64
import hashlib
import html
import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup

from model.analysis.stream.whole_model import model_boxes
from model.checkpoints.store import checkpoint_path, load_checkpoint
from model.checkpoints.translator import Translator
from model.language import ENGLISH, Language, language, later, speaking, tr
from model.run import TAUS, Run
from model.trace import Trace
from pages.site.recording import Place, recording
from pages.text import languages
from pages.views.attention.temperature import SCOPES
from pages.views.model import whole_model
from pages.views.words import section_text, titles
from viz.canvas.whole_model import MOST_CELLS
from viz.site import scripts
from viz.site.pictures import headers
from viz.site.scripts import SITE, WORKER, joined
from viz.steps.steps import all_steps

STORY = "site"
"""text of pages/text; a section that no other part of the page names is a step"""
NO_STEPS = ("lead", "opening", "explore", "claims", "footer")
SENTENCE = "I have never seen such a beautiful sunset."
PLACE: Place = ("cross", 2, 1)
"""where the page begins"""
QUERY_ROW = 5
BEAM = 4
TEXTS = {"encoder": "source", "decoder": "target"}
"""what each stack reads, by the names of page.js"""
FILES = ("model.safetensors", "tokenizer.model")
BYTES_OF_A_PART = 150_000
"""of these files, in a script of the page that has them inside"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'; "
TRAINING = "How it was trained"
"""section of a model card: a table of steps and commands, a good part of what the page may weigh"""
MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable("table")
"""for our own texts alone"""
OLD = later(
    "This browser is too old to run the model: the translation above was recorded. A current Firefox, Chrome, "
    "Edge or Safari runs it on your own sentence."
)
NOTICE = """
addEventListener("load", function () {
  if (!window.started) document.getElementById("note").textContent = OLD;
});"""
"""in the words of old browsers: scripts that they do not understand run before the page has loaded"""
EXPLAINED = {
    "embedding": "tokens",
    "positions": "positions",
    "self_attn": "projections",
    "cross_attn": "projections",
    "softmax": "beam",
}
"""part of the model -> the step of the story that explains it"""
MORE = {
    "mean": later("this head at its mean"),
    "half": later("this head at half of its z"),
    "uniform": later("this head looks at everything alike"),
    "cell": later("the chosen cell forbidden, or allowed where the mask hides it"),
    "alone": later("the chosen query looks only at the chosen key"),
    "turned": later("this head's weights in reverse order"),
    "value": later("the value of the chosen key is 0 in this head"),
    "token": later("nothing sees the chosen token of the source"),
    "window": later("this attention sees only neighbours"),
    "undivided": later("the scores of this head are not divided"),
    "shared": later("the heads of this layer share their keys and values"),
    "lift": later("the decoder sees later words"),
    "sublayer": later("this attention off"),
    "residual": later("no residual connection around this attention"),
    "norm": later("no norm after this attention"),
    "positions": later("no positions"),
    "reversed": later("the source's positions reversed"),
}
"""changes that the list below the story offers, by the name that page.js has for them"""


@dataclass(frozen=True)
class Site:
    """What both forms of the page share."""

    translator: Translator
    checkpoint: str
    app: str
    """address of the full app, for links; empty where nobody serves it"""

    @property
    def folder(self) -> Path:
        return checkpoint_path(self.checkpoint)

    @cached_property
    def trace(self) -> Trace:
        """The run that the page begins with."""
        return self.translator.trace(SENTENCE)

    @cached_property
    def run(self) -> Run:
        return Run.of(self.translator, self.trace)

    @property
    def headers(self) -> dict[str, Any]:
        """Of the pictures, in the language of this run."""
        return headers(self.trace, TAUS, SCOPES["head"]) | {"model": _whole_model(self.run, _headings(_facts(self)))}

    @property
    def place(self) -> Place:
        """Where the page begins: in a smaller model, the last layer or head."""
        config = self.translator.model.config
        kind, layer, head = PLACE
        return kind, min(layer, config.n_decoder_layers - 1), min(head, config.n_heads - 1)


def build(out: Path, checkpoint: str, app: str) -> None:
    """Write `out`/index.html with its files beside it, and `out`/attention-explorer.html, which has all inside.

    Other languages have the same as index.de.html and attention-explorer.de.html.

    Args:
        out: a folder; what the page of an earlier call left there is written over.
        checkpoint: name or folder of a translator.
        app: address at which the full app runs, with a slash at its end; empty if nobody serves it: the page then says
            how to start it, and leads to it only on the computer that serves the page.

    Raises:
        ValueError: the checkpoint is not a translator, or does not have the paper's network.
    """
    translator = load_checkpoint(checkpoint, "cpu")
    if not isinstance(translator, Translator) or not translator.model.config.classic:
        raise ValueError(f"The page runs translators with the network of the paper; {checkpoint} is another model.")
    site = Site(translator, checkpoint, app)
    out.mkdir(parents=True, exist_ok=True)
    recorded = recording(site.trace, site.place, site.headers["steps"], model_boxes(translator, site.trace))
    names = {}
    for name in FILES:
        # With its hash in its name, a browser may keep a file for ever.
        digest = hashlib.sha256((site.folder / name).read_bytes()).hexdigest()
        names[name] = _described(site, name, f"{digest[:12]}-{name}", digest)
        shutil.copy(site.folder / name, out / names[name]["name"])
    shutil.copy(SITE / "js/service-worker.js", out / "service-worker.js")
    inside = [_described(site, name, name, names[name]["hash"]) for name in FILES]
    for spoken in languages().values():
        with speaking(spoken):
            (out / _file("index", spoken)).write_text(page(site, recorded, list(names.values())), encoding="utf-8")
            text = page(site, recorded, inside, inside=True)
            (out / _file("attention-explorer", spoken)).write_text(text, encoding="utf-8")


def _file(name: str, spoken: Language) -> str:
    return f"{name}.html" if spoken is ENGLISH else f"{name}.{spoken.code}.html"


def _described(site: Site, file: str, name: str, digest: str) -> dict[str, Any]:
    return {"name": name, "hash": digest, "size": (site.folder / file).stat().st_size}


def page(
    site: Site,
    recorded: tuple[Mapping[str, Any], Mapping[str, Any]],
    files: Sequence[Mapping[str, Any]],
    inside: bool = False,
) -> str:
    """The page as HTML, in the language of this run.

    Args:
        site: its model and address.
        recorded: of `recording`.
        files: name, hash and size of the checkpoint's files, the weights first.
        inside: whether these files are in the page, which then may ask no one for anything.
    """
    first, others = recorded
    rest = [_json("recorded-head", others), _block("text/plain", "worker", joined(WORKER))]
    if inside:
        rest += [part for name in FILES for part in _parts(name, (site.folder / name).read_bytes())]
    script = _inside_html(scripts.page())
    late = f"var OLD = {json.dumps(tr(OLD))};{NOTICE}"
    policy = POLICY + f"script-src {_hash(late)} {_hash(script)}; "
    policy += "worker-src blob:" if inside else "worker-src 'self' blob:; connect-src 'self'"
    sections = _sections(_facts(site))
    steps = "\n".join(text for name, text in sections.items() if name not in NO_STEPS)
    parts = {
        "style": scripts.style_of(SITE / "style.css"),
        # A single file may lie where the others are not.
        "alternates": "" if inside else _alternates(),
        "switch": "" if inside else _switch(),
        "lead": sections["lead"],
        "opening": sections["opening"],
        "explore": sections["explore"] + _explore() + _claims(sections["claims"]),
        "footer": sections["footer"] + _card(site, inside),
        "steps": steps,
        "first": "\n".join((_json("words", _words(site, files, inside)), _json("recording", first))),
        # At once, not after the whole page has come: the first picture needs no more than what stands above.
        "scripts": f'<script>{late}</script>\n<script type="module" async>{script}</script>',
        "rest": "\n".join(rest),
    }
    facts = {
        "policy": Markup(policy),
        "sentence": first["text"],
        "translation": first["translation"],
        "size": sum(file["size"] for file in files) / 1e6,
        "old": tr(OLD),
        "app": site.app,
    }
    return _filled(SITE / "page.html", facts | {name: Markup(text) for name, text in parts.items()})


def _filled(template: Path | str, facts: Mapping[str, Any]) -> str:
    """HTML with its words in the language of this run; facts are escaped unless they are `Markup`."""
    text = template.read_text(encoding="utf-8") if isinstance(template, Path) else template
    engine = Environment(undefined=StrictUndefined, autoescape=True, keep_trailing_newline=True)
    return engine.from_string(text).render(facts, tr=tr, language=language())


def _alternates() -> str:
    """For search engines: the same page in other languages."""
    named = {one.code: _file("index", one) for one in languages().values()} | {"x-default": _file("index", ENGLISH)}
    return "\n".join(f'<link rel="alternate" hreflang="{code}" href="{name}">' for code, name in named.items())


def _switch() -> str:
    """Links to the same page in other languages; page.js lets them keep sentence, head and step.

    They stand where they are always in reach: whoever scrolls up to them would leave the step.
    """
    links = (
        f'<b lang="{one.code}">{one.name}</b>'
        if one is language()
        else f'<a href="{_file("index", one)}" hreflang="{one.code}" lang="{one.code}">{one.name}</a>'
        for one in languages().values()
    )
    return f'<span id="languages" role="group" aria-label="{html.escape(tr("Language"))}">{" · ".join(links)}</span>'


def _json(name: str, value: Any) -> str:
    return _block("application/json", name, json.dumps(value, separators=(",", ":"), ensure_ascii=False))


def _words(site: Site, files: Sequence[Mapping[str, Any]], inside: bool) -> dict[str, Any]:
    """What Python and the page both say; it stands in Python."""
    kind, layer, head = site.place
    kinds = {
        each.name: {
            "title": tr(each.title),
            "queries": TEXTS[each.queries],
            "keys": TEXTS[each.keys],
            "paths": [each.path(layer) for layer in each.layers],
        }
        for each in site.trace.kinds
    }
    return {
        "config": json.loads((site.folder / "config.json").read_text(encoding="utf-8"))["model"],
        "checkpoint": site.folder.name,
        "files": list(files),
        "kinds": kinds,
        "headers": site.headers,
        "cells": MOST_CELLS,
        "steps": [tr(step.title) for step in all_steps()],
        "place": {"kind": kind, "layer": layer, "head": head},
        "query": QUERY_ROW,
        "beam": BEAM,
        "app": site.app,
        "language": language().code,
        "quotes": language().quotes,
        "serviceWorker": not inside,
    }


def _whole_model(run: Run, headings: Mapping[str, str]) -> dict[str, Any]:
    """The header of the whole model's picture, without what differs from run to run; `headings` of the steps."""
    header = whole_model.figure(run).shows["whole_model"].drawing.header
    boxes = []
    for box in header["boxes"]:
        step = EXPLAINED.get(box["part"], "")
        heads = box["heads"] and {name: box["heads"][name] for name in ("count", "array")}
        boxes.append(box | {"heads": heads, "page": headings.get(step, ""), "opens": {"step": step}})
    rows = [{name: row[name] for name in ("name", "title")} for row in header["rows"]]
    return {name: header[name] for name in ("title", "stacks", "scale")} | {"boxes": boxes, "rows": rows}


def _facts(site: Site) -> dict[str, Any]:
    config = site.translator.model.config
    n_heads, layers = config.n_heads, config.n_encoder_layers + 2 * config.n_decoder_layers
    names = ("d_model", "n_heads", "n_encoder_layers", "n_decoder_layers", "vocab_size", "d_k")
    return {name: getattr(config, name) for name in names} | {
        "all_heads": n_heads * layers,
        "beam": BEAM,
        "app": site.app,
        "parameters": sum(site.translator.model.parameters_by_part().values()) / 1e6,
    }


def _texts(facts: Mapping[str, Any]) -> dict[str, str]:
    """Name -> Markdown of each section of the story."""
    return {name: section_text(STORY, name, facts).strip() for name in titles(STORY)}


def _headings(facts: Mapping[str, Any]) -> dict[str, str]:
    return {name: found[1] for name, text in _texts(facts).items() if (found := re.match("## (.+)", text))}


def _sections(facts: Mapping[str, Any]) -> dict[str, str]:
    """Name -> HTML of the story's parts; the steps are numbered."""
    sections: dict[str, str] = {}
    for name, text in _texts(facts).items():
        written, *places = re.split(r"^(?=::: )", text, flags=re.MULTILINE)
        body = MARKDOWN.render(written) + "".join(_place(place.strip().removeprefix("::: ")) for place in places)
        number = "" if name in NO_STEPS else f"{sum(each not in NO_STEPS for each in sections) + 1}. "
        body = body.replace("<h2>", f'<h2 id="{name}-title">{number}')
        step = f'<section class="step" id="{name}" aria-labelledby="{name}-title">\n{body}</section>'
        sections[name] = body if name in NO_STEPS else step
    return sections


def _place(name: str, **facts: Any) -> str:
    """The part of a step that a script fills, of viz/site/places.html."""
    kind, _, which = name.partition(" ")
    _, *parts = re.split(r"^<!-- (\w+) -->\n", (SITE / "places.html").read_text(encoding="utf-8"), flags=re.MULTILINE)
    return _filled(dict(zip(parts[::2], parts[1::2], strict=True))[kind], {"name": which, **facts})


def _explore() -> str:
    offered = "".join(f'<option value="{name}">{html.escape(tr(text))}</option>' for name, text in MORE.items())
    return _place("explore", offered=Markup(offered))


def _claims(text: str) -> str:
    """The list with a place for what the page finds beside each."""
    return re.sub(r"<li>(\w+): (.*)</li>", r'<li data-claim="\1">\2 <small></small></li>', text)


def _card(site: Site, inside: bool) -> str:
    """The model card without the commands of its training; it says what the terms are. Empty if there is none.

    It is in English, so the pages of other languages lead to the English page, unless that may not be there.
    """
    card = site.folder / "README.md"
    if not card.exists():
        return ""
    summary = html.escape(tr("Model card and data terms"))
    if language() is not ENGLISH and not inside:
        return f'<p><a href="{_file("index", ENGLISH)}#card" hreflang="en">{summary}</a></p>'
    first, *others = card.read_text(encoding="utf-8").split("\n## ")
    shown = "\n## ".join([first, *(each for each in others if not each.startswith(TRAINING))])
    text = MarkdownIt("commonmark", {"html": False}).enable("table").render(shown)
    # The card's headings stand below the page's.
    text = re.sub(r"(</?h)([1-4])>", lambda found: f"{found[1]}{int(found[2]) + 2}>", text)
    return f'<details id="card"><summary>{summary}</summary><div lang="en">{text}</div></details>'


def _block(kind: str, name: str, text: str) -> str:
    """Data for a script; no text in it can end the element."""
    escaped = text.replace("<", "\\u003c") if kind.endswith("json") else _inside_html(text)
    return f'<script type="{kind}" id="{name}">{escaped}</script>'


def _parts(name: str, content: bytes) -> Iterator[str]:
    """A file in the page, in scripts of one class: one of megabytes keeps WebKit busy for longer."""
    for start in range(0, len(content), BYTES_OF_A_PART):
        text = base64.b64encode(content[start : start + BYTES_OF_A_PART]).decode()
        yield f'<script type="text/plain" class="{name}">{text}</script>'


def _inside_html(script: str) -> str:
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _hash(script: str) -> str:
    """As a content security policy names a script that may run."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
