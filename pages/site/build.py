"""Puts the page together, in two forms from one template: a folder for any static host, and a single file."""

import base64
import hashlib
import html
import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from string import Template
from typing import Any

from markdown_it import MarkdownIt

from model.analysis.stream.whole_model import model_boxes
from model.checkpoints.store import checkpoint_path, load_checkpoint
from model.checkpoints.translator import Translator
from model.run import TAUS, Run
from model.trace import Trace
from pages.site.recording import Place, recording
from pages.views import whole_model
from pages.views.temperature import SCOPES
from pages.views.words import fill
from viz.canvas.whole_model import MOST_CELLS
from viz.site.pictures import headers
from viz.site.scripts import PAGE, SITE, WORKER, joined, pictures
from viz.steps.steps import all_steps

STORY = Path(__file__).parent / "story.md"
SENTENCE = "I have never seen such a beautiful sunset."
PLACE: Place = ("cross", 2, 1)
"""where the page begins"""
QUERY_ROW = 5
BEAM = 4
TEXTS = {"encoder": "source", "decoder": "target"}
"""what each stack reads, by the names of page.js"""
FILES = ("model.safetensors", "tokenizer.model")
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'; "
TRAINING = "How it was trained"
"""section of a model card: a table of steps and commands, a good part of what the page may weigh"""
MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable("table")
"""for our own texts alone"""
OLD = (
    "This browser is too old to run the model: the translation above was recorded. "
    "A current Firefox, Chrome, Edge or Safari runs it on a sentence of yours."
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
    "mean": "this head at its mean",
    "half": "this head at half of its z",
    "uniform": "this head looks at everything alike",
    "cell": "the chosen cell forbidden, or allowed where the mask hides it",
    "alone": "the chosen query looks at the chosen key alone",
    "turned": "this head's weights in reverse order",
    "value": "the value of the chosen key is 0 in this head",
    "token": "nothing sees the chosen token of the source",
    "window": "this attention sees neighbours alone",
    "undivided": "the scores of this head are not divided",
    "shared": "the heads of this layer share their keys and values",
    "lift": "the decoder sees later words",
    "sublayer": "this attention off",
    "residual": "no residual connection around this attention",
    "norm": "no norm after this attention",
    "positions": "no positions",
    "reversed": "the source's positions reversed",
}
"""changes that the list below the story offers, by the name that page.js has for them"""


@dataclass(frozen=True)
class Site:
    """What both forms of the page share."""

    translator: Translator
    checkpoint: str
    app: str
    """address of the full app, for links"""

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

    @cached_property
    def headers(self) -> dict[str, Any]:
        return headers(self.trace, TAUS, SCOPES["head"]) | {"model": _whole_model(self.run)}

    @property
    def place(self) -> Place:
        """Where the page begins: in a smaller model, the last layer or head."""
        config = self.translator.model.config
        kind, layer, head = PLACE
        return kind, min(layer, config.n_decoder_layers - 1), min(head, config.n_heads - 1)


def build(out: Path, checkpoint: str, app: str) -> None:
    """Write `out`/index.html with its files beside it, and `out`/attention-explorer.html, which has all inside.

    Args:
        out: a folder; what the page of an earlier call left there is written over.
        checkpoint: name or folder of a translator.
        app: address at which the full app runs, with a slash at its end.

    Raises:
        ValueError: the checkpoint is no translator, or not of the paper's network.
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
    (out / "index.html").write_text(page(site, recorded, list(names.values())), encoding="utf-8")
    inside = [_described(site, name, name, names[name]["hash"]) for name in FILES]
    text = page(site, recorded, inside, inside=True)
    (out / "attention-explorer.html").write_text(text, encoding="utf-8")


def _described(site: Site, file: str, name: str, digest: str) -> dict[str, Any]:
    return {"name": name, "hash": digest, "size": (site.folder / file).stat().st_size}


def page(site: Site, recorded: Mapping[str, Any], files: Sequence[Mapping[str, Any]], inside: bool = False) -> str:
    """The page as HTML.

    Args:
        site: its model and address.
        recorded: of `recording`.
        files: name, hash and size of the checkpoint's files, the weights first.
        inside: whether these files are in the page, which then may ask no one for anything.
    """
    data = {"words": _words(site, files, inside), "recording": recorded}
    blocks = [
        _block("application/json", name, json.dumps(value, separators=(",", ":"))) for name, value in data.items()
    ]
    blocks.append(_block("text/plain", "worker", joined(WORKER)))
    if inside:
        contents = {name: base64.b64encode((site.folder / name).read_bytes()).decode() for name in FILES}
        blocks += [_block("text/plain", name, text) for name, text in contents.items()]
    scripts = [pictures(), joined(PAGE)]
    late = f"var OLD = {json.dumps(OLD)};{NOTICE}"
    policy = POLICY + f"script-src {' '.join(map(_hash, [late, *map(_inside_html, scripts)]))}; "
    policy += "worker-src blob:" if inside else "worker-src 'self' blob:; connect-src 'self'"
    sections = _sections(_facts(site))
    parts = {
        "policy": policy,
        "style": (SITE / "style.css").read_text(encoding="utf-8"),
        "lead": sections.pop("lead"),
        "opening": sections.pop("opening"),
        "explore": sections.pop("explore") + _explore() + _claims(sections.pop("claims")),
        "footer": sections.pop("footer") + _card(site),
        "steps": "\n".join(sections.values()),
        "sentence": html.escape(recorded["text"]),
        "translation": html.escape(recorded["translation"]),
        "size": f"{sum(file['size'] for file in files) / 1e6:.0f}",
        "old": OLD,
        "app": html.escape(site.app),
        "data": "\n".join(blocks),
        "scripts": "\n".join(
            [
                f"<script>{late}</script>",
                *(f'<script type="module">{_inside_html(script)}</script>' for script in scripts),
            ]
        ),
    }
    return Template((SITE / "page.html").read_text(encoding="utf-8")).substitute(parts)


def _words(site: Site, files: Sequence[Mapping[str, Any]], inside: bool) -> dict[str, Any]:
    """What Python and the page both say; it stands in Python."""
    kind, layer, head = site.place
    kinds = {
        each.name: {
            "title": each.title,
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
        "steps": [step.title for step in all_steps()],
        "place": {"kind": kind, "layer": layer, "head": head},
        "query": QUERY_ROW,
        "beam": BEAM,
        "app": site.app,
        "serviceWorker": not inside,
    }


def _whole_model(run: Run) -> dict[str, Any]:
    """The header of the whole model's picture, without what differs from run to run."""
    header = whole_model.figure(run).shows["whole_model"].drawing.header
    titles = dict(re.findall(r"^# (\w+): (.+)$", STORY.read_text(encoding="utf-8"), flags=re.MULTILINE))
    boxes = []
    for box in header["boxes"]:
        step = EXPLAINED.get(box["part"], "")
        heads = box["heads"] and {name: box["heads"][name] for name in ("count", "array")}
        boxes.append(box | {"heads": heads, "page": titles.get(step, ""), "opens": {"step": step}})
    rows = [{name: row[name] for name in ("name", "title")} for row in header["rows"]]
    return {name: header[name] for name in ("title", "stacks", "scale")} | {"boxes": boxes, "rows": rows}


def _facts(site: Site) -> dict[str, Any]:
    config = site.translator.model.config
    n_heads, layers = config.n_heads, config.n_encoder_layers + 2 * config.n_decoder_layers
    sizes = {name: getattr(config, name) for name in ("d_model", "n_heads", "n_encoder_layers", "n_decoder_layers")}
    parameters = sum(site.translator.model.parameters_by_part().values())
    return sizes | {
        "vocab_size": f"{config.vocab_size:,}",
        "d_k": config.d_k,
        "all_heads": n_heads * layers,
        "beam": BEAM,
        "parameters": f"{parameters / 1e6:.1f}",
    }


def _sections(facts: Mapping[str, Any]) -> dict[str, str]:
    """Name -> HTML of the story's parts; a part with a title is a step."""
    _, *parts = re.split(r"^# (\w+)(?:: (.+))?\n", STORY.read_text(encoding="utf-8"), flags=re.MULTILINE)
    sections = {}
    for name, title, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        written, *places = re.split(r"^(?=::: )", fill(text, facts), flags=re.MULTILINE)
        body = MARKDOWN.render(written) + "".join(_place(place.strip().removeprefix("::: ")) for place in places)
        number = sum(each.startswith("<section") for each in sections.values()) + 1
        heading = f'<h2 id="{name}-title">{number}. {html.escape(title)}</h2>' if title else ""
        sections[name] = (
            f'<section class="step" id="{name}" aria-labelledby="{name}-title">\n{heading}\n{body}</section>'
            if title
            else body
        )
    return sections


def _place(name: str) -> str:
    """The part of a step that a script fills, of viz/site/places.html."""
    kind, _, which = name.partition(" ")
    _, *parts = re.split(r"^<!-- (\w+) -->\n", (SITE / "places.html").read_text(encoding="utf-8"), flags=re.MULTILINE)
    return Template(dict(zip(parts[::2], parts[1::2], strict=True))[kind]).substitute(name=which)


def _explore() -> str:
    offered = "".join(f'<option value="{name}">{text}</option>' for name, text in MORE.items())
    return _place("explore").replace("OFFERED", offered)


def _claims(text: str) -> str:
    """The list with a place for what the page finds beside each."""
    return re.sub(r"<li>(\w+): (.*)</li>", r'<li data-claim="\1">\2 <small></small></li>', text)


def _card(site: Site) -> str:
    """The model card without the commands of its training; it says what the terms are. Empty if there is none."""
    card = site.folder / "README.md"
    if not card.exists():
        return ""
    first, *others = card.read_text(encoding="utf-8").split("\n## ")
    shown = "\n## ".join([first, *(each for each in others if not each.startswith(TRAINING))])
    text = MarkdownIt("commonmark", {"html": False}).enable("table").render(shown)
    # The card's headings stand below the page's.
    text = re.sub(r"(</?h)([1-4])>", lambda found: f"{found[1]}{int(found[2]) + 2}>", text)
    return f'<details id="card"><summary>Model card and terms of the data</summary><div>{text}</div></details>'


def _block(kind: str, name: str, text: str) -> str:
    """Data for a script; no text in it can end the element."""
    escaped = text.replace("<", "\\u003c") if kind.endswith("json") else _inside_html(text)
    return f'<script type="{kind}" id="{name}">{escaped}</script>'


def _inside_html(script: str) -> str:
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _hash(script: str) -> str:
    """As a content security policy names a script that may run."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
