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
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.store import checkpoint_path, load_checkpoint
from model.language import ENGLISH, Language, language, later, speaking, tr
from model.run import TAUS, Run
from model.trace import Trace
from pages.site import FIRST
from pages.site.recording import Place, recording
from pages.site.tasks import WRITTEN, Task, first_place, first_run, task_of
from pages.text import languages, names_in
from pages.views.attention.temperature import SCOPES
from pages.views.model import whole_model
from pages.views.words import section_text, titles
from viz.canvas.whole_model import MOST_CELLS
from viz.site import scripts
from viz.site.pictures import headers
from viz.site.scripts import SITE, WORKER, joined
from viz.steps.steps import all_steps

NO_STEPS = ("lead", "opening", "explore", "claims", "footer")
BEAM = 4
DRAWN = {"temperature": 0, "topK": 0, "topP": 1, "seed": 0}
"""how a language model's next token is chosen at first: the most probable one"""
TEXTS = {"encoder": "source", "decoder": "target"}
"""what each stack reads, by the names of the page"""
ALONE = "attention-explorer"
"""name of the first page from a disk"""
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
MORE = names_in("changes_on_the_site")
"""changes that the list below the story offers, by the name that the page has for them"""


@dataclass(frozen=True)
class Site:
    """One page, in both of its forms."""

    opened: Checkpoint
    checkpoint: str
    app: str
    """address of the full app, for links; empty where nobody serves it"""
    file: str
    """of the form for a web server, without its ending"""
    others: Mapping[str, Task]
    """the other pages in the folder, by their files"""

    @property
    def folder(self) -> Path:
        return checkpoint_path(self.checkpoint)

    @cached_property
    def task(self) -> Task:
        return task_of(self.opened)

    @cached_property
    def first(self) -> tuple[Trace, Mapping[str, Any]]:
        """The run that the page begins with, and its texts."""
        return first_run(self.opened)

    @property
    def trace(self) -> Trace:
        return self.first[0]

    @cached_property
    def run(self) -> Run:
        return Run.of(self.opened, self.trace)

    @cached_property
    def place(self) -> Place:
        """Where the page begins."""
        return first_place(self.opened)

    @property
    def headers(self) -> dict[str, Any]:
        """Of the pictures, in the language of this run."""
        headings = {name: found[1] for name, text in _texts(self).items() if (found := re.match("## (.+)", text))}
        model = _whole_model(self.run, self.task, headings)
        return headers(self.trace, TAUS, SCOPES["head"]) | {"model": model}


def build(out: Path, checkpoints: Sequence[str], app: str) -> None:
    """Write a page for each checkpoint: a file with others beside it, and a file that has all inside.

    The first is `out`/index.html and `out`/attention-explorer.html; another has the name of what its model does, as
    continue.html and attention-explorer-continue.html. Other languages have the same as index.de.html.

    Args:
        out: a folder; what pages of an earlier call left there is written over.
        checkpoints: names or folders of a translator, a language model, or one of each.
        app: address at which the full app runs, with a slash at its end; empty if nobody serves it: the page then says
            how to start it, and leads to it only on the computer that serves the page.

    Raises:
        ValueError: the page does not run such a model, or two that do the same are named.
    """
    opened = [load_checkpoint(checkpoint, "cpu") for checkpoint in checkpoints]
    tasks = {FIRST if not i else task_of(each).name: task_of(each) for i, each in enumerate(opened)}
    if len({task.name for task in tasks.values()}) < len(checkpoints):
        raise ValueError("A folder has one page to translate and one to continue a text: name one checkpoint of each.")
    out.mkdir(parents=True, exist_ok=True)
    shutil.copy(SITE / "js/service-worker.js", out / "service-worker.js")
    for model, checkpoint, file in zip(opened, checkpoints, tasks, strict=True):
        others = {name: task for name, task in tasks.items() if name != file}
        _write(out, Site(model, checkpoint, app, file, others))


def _write(out: Path, site: Site) -> None:
    trace, said = site.first
    recorded = recording(trace, site.place, site.headers["steps"], model_boxes(site.opened, trace), said)
    names = {}
    for name in FILES:
        # With its hash in its name, a browser may keep a file for ever.
        digest = hashlib.sha256((site.folder / name).read_bytes()).hexdigest()
        names[name] = _described(site, name, f"{digest[:12]}-{name}", digest)
        shutil.copy(site.folder / name, out / names[name]["name"])
    inside = [_described(site, name, name, names[name]["hash"]) for name in FILES]
    for spoken in languages().values():
        with speaking(spoken):
            engine = joined(WORKER)
            name = f"{hashlib.sha256(engine.encode()).hexdigest()[:12]}-engine.js"
            (out / name).write_text(engine, encoding="utf-8")
            text = page(site, recorded, list(names.values()), engine=name)
            (out / _file(site.file, spoken)).write_text(text, encoding="utf-8")
            text = page(site, recorded, inside)
            (out / _file(_alone(site.file), spoken)).write_text(text, encoding="utf-8")


def _alone(file: str) -> str:
    """The name of the form that has all inside."""
    return ALONE if file == FIRST else f"{ALONE}-{file}"


def _file(name: str, spoken: Language) -> str:
    return f"{name}.html" if spoken is ENGLISH else f"{name}.{spoken.code}.html"


def _described(site: Site, file: str, name: str, digest: str) -> dict[str, Any]:
    return {"name": name, "hash": digest, "size": (site.folder / file).stat().st_size}


def page(
    site: Site,
    recorded: tuple[Mapping[str, Any], Mapping[str, Any]],
    files: Sequence[Mapping[str, Any]],
    engine: str = "",
) -> str:
    """The page as HTML, in the language of this run, with name, hash and size of the checkpoint's `files`, the weights
    first.

    `engine` is the file of the script that runs the model; empty: it is in the page, as are the checkpoint's files, and
    the page may ask no one for anything.
    """
    first, others = recorded
    inside, rest = not engine, [_json("recorded-head", others)]
    if inside:
        rest += [_block("text/plain", "engine", joined(WORKER))]
        rest += [part for name in FILES for part in _parts(name, (site.folder / name).read_bytes())]
    script = _inside_html(scripts.page(site.task.script))
    late = f"var OLD = {json.dumps(tr(OLD))};{NOTICE}"
    policy = POLICY + f"script-src {_hash(late)} {_hash(script)}; "
    policy += "worker-src blob:" if inside else "worker-src 'self'; connect-src 'self'"
    sections = _sections(site)
    names = (name for name in MORE if name not in site.task.lacks)
    offered = Markup("".join(f'<option value="{name}">{html.escape(tr(MORE[name]))}</option>' for name in names))
    # Each has a place for what the page finds beside it.
    claims = re.sub(r"<li>(\w+): (.*)</li>", r'<li data-claim="\1">\2 <small></small></li>', sections["claims"])
    steps = "\n".join(text for name, text in sections.items() if name not in NO_STEPS)
    parts = {
        "style": scripts.style_of(SITE / "style.css"),
        # A single file may lie where the others are not.
        "alternates": "" if inside else _alternates(site),
        "switch": "" if inside else _switch(site),
        "tasks": _tasks(site, inside),
        "lead": sections["lead"],
        "opening": sections["opening"],
        "explore": sections["explore"] + _place("explore", offered=offered, task=site.task) + claims,
        "footer": sections["footer"] + _card(site, inside),
        "steps": steps,
        "first": "\n".join((_json("words", _words(site, files, engine)), _json("recording", first))),
        # At once, not after the whole page has come: the first picture needs no more than what stands above.
        "scripts": f'<script>{late}</script>\n<script type="module" async>{script}</script>',
        "rest": "\n".join(rest),
    }
    facts = {
        "policy": Markup(policy),
        "task": site.task,
        "sentence": first["text"],
        "written": first["written"],
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


def _alternates(site: Site) -> str:
    """For search engines: the same page in other languages."""
    named = {one.code: _file(site.file, one) for one in languages().values()}
    named["x-default"] = _file(site.file, ENGLISH)
    return "\n".join(f'<link rel="alternate" hreflang="{code}" href="{name}">' for code, name in named.items())


def _switch(site: Site) -> str:
    """Links to the same page in other languages; the page lets them keep sentence, head and step.

    They stand where they are always in reach: whoever scrolls up to them would leave the step.
    """
    links = (
        f'<b lang="{one.code}">{one.name}</b>'
        if one is language()
        else f'<a href="{_file(site.file, one)}" hreflang="{one.code}" lang="{one.code}">{one.name}</a>'
        for one in languages().values()
    )
    return f'<span id="languages" role="group" aria-label="{html.escape(tr("Language"))}">{" · ".join(links)}</span>'


def _tasks(site: Site, inside: bool) -> str:
    """What the pages of this folder let people do: this page's task, and links to the others."""
    if not site.others:
        return ""
    own = f'<b aria-current="page">{html.escape(tr(site.task.title))}</b>'
    links = (
        f'<a href="{_file(_alone(file) if inside else file, language())}">{html.escape(tr(task.title))}</a>'
        for file, task in site.others.items()
    )
    order = [own, *links] if site.file == FIRST else [*links, own]
    label = html.escape(tr("What the model does"))
    return f'<p id="tasks" role="group" aria-label="{label}">{"".join(order)}</p>'


def _json(name: str, value: Any) -> str:
    return _block("application/json", name, json.dumps(value, separators=(",", ":"), ensure_ascii=False))


def _words(site: Site, files: Sequence[Mapping[str, Any]], engine: str) -> dict[str, Any]:
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
        "query": site.task.row,
        "reads": site.task.reads,
        "page": site.task.page,
        "begin": site.opened.tokenizer.start,
        "end": site.opened.tokenizer.end,
        "drawn": DRAWN,
        "most": WRITTEN,
        "beam": BEAM,
        "app": site.app,
        "language": language().code,
        "quotes": language().quotes,
    } | ({"engine": engine, "serviceWorker": True} if engine else {})


def _whole_model(run: Run, task: Task, headings: Mapping[str, str]) -> dict[str, Any]:
    """The header of the whole model's picture, without what differs from run to run; `headings` of the steps."""
    header = whole_model.figure(run).shows["whole_model"].drawing.header
    boxes = []
    for box in header["boxes"]:
        step = task.explained.get(box["part"], "")
        heads = box["heads"] and {name: box["heads"][name] for name in ("count", "array")}
        own = {"heads": heads, "page": headings.get(step, ""), "opens": {"step": step}, "work": _work(run, box)}
        boxes.append(box | own)
    rows = [{name: row[name] for name in ("name", "title")} for row in header["rows"]]
    return {name: header[name] for name in ("title", "stacks", "scale")} | {"boxes": boxes, "rows": rows}


def _work(run: Run, box: Mapping[str, Any]) -> list[int]:
    """Multiply-adds of a box for each query, for each key, and for each pair of them."""
    config = run.opened.model.config
    if box["heads"]:
        shared = config.kv_heads * config.d_k
        return [2 * config.d_model**2, 2 * config.d_model * shared, 2 * config.d_model]
    if box["part"] == "feed_forward":
        return [(3 if config.gated else 2) * config.d_model * config.d_ff, 0, 0]
    return [config.d_model * config.vocab_size if box["part"] == "output" else 0, 0, 0]


def _facts(site: Site) -> dict[str, Any]:
    config = site.opened.model.config
    n_heads, layers = config.n_heads, config.n_encoder_layers + config.n_decoder_layers * len(site.trace.kinds[-2:])
    names = ("d_model", "n_heads", "n_encoder_layers", "n_decoder_layers", "vocab_size", "d_k", "positions")
    return {name: getattr(config, name) for name in names} | {
        "all_heads": n_heads * layers,
        "kv_heads": config.kv_heads,
        "beam": BEAM,
        "app": site.app,
        "parameters": sum(site.opened.model.parameters_by_part().values()) / 1e6,
    }


def _texts(site: Site) -> dict[str, str]:
    """Name -> Markdown of each section of the story."""
    facts = _facts(site)
    texts = {name: section_text(site.task.story, name, facts).strip() for name in titles(site.task.story)}
    return {name: text for name, text in texts.items() if text}


def _sections(site: Site) -> dict[str, str]:
    """Name -> HTML of the story's parts; the steps are numbered."""
    sections: dict[str, str] = {}
    kinds = [(kind.name, tr(kind.title)) for kind in site.trace.kinds]
    for name, text in _texts(site).items():
        written, *places = re.split(r"^(?=::: )", text, flags=re.MULTILINE)
        shown = (_place(place.strip().removeprefix("::: "), kinds=kinds, task=site.task) for place in places)
        body = MARKDOWN.render(written) + "".join(shown)
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


def _card(site: Site, inside: bool) -> str:
    """The model card without the commands of its training; it says what the terms are. Empty if there is none.

    It is in English, so the pages of other languages lead to the English page, unless that may not be there.
    """
    card = site.folder / "README.md"
    if not card.exists():
        return ""
    summary = html.escape(tr("Model card and data terms"))
    if language() is not ENGLISH and not inside:
        return f'<p><a href="{_file(site.file, ENGLISH)}#card" hreflang="en">{summary}</a></p>'
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
