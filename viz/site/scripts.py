"""The scripts of the static page, joined, in the language of this run: a file from a disk cannot import modules."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from model.language import language, later, tr
from viz.drawing import SCRIPTS, files_of, signs

SITE = Path(__file__).parent
ENGINE = (
    *("products", "half", "safetensors", "tokenizer", "network"),
    *("decoding", "sampling", "interventions", "boxes", "proof"),
)
"""the model, each file after those that it imports"""
WORKER = (*ENGINE, "worker")
"""what runs in a thread of its own"""
PAGE = ("half", "labels", "miniature", "plane", "loading", "thread")
"""what the page itself imports"""
PARTS = ("state", "{own}", "pictures", "drawing", "chosen", "model", "links", "story", "start")
"""the page itself, files of js/page that share one scope; {own}: translating or writing"""
COMPONENTS = ("chips", "whole_model", "matrices", "temperature", "mosaic", "lines", "own_vectors", "long_map")
"""the app's pictures that every page draws with"""
NEEDED = {"translating": (*COMPONENTS, "beam_tree"), "writing": COMPONENTS}
NOT_HERE = ("svg_pen.js", "save_svg.js")
"""scripts of the app's export box, which the page has not"""
CALLED = {"Temperature τ, redrawn in the browser": later("Temperature")}
"""where the page has a name of its own for what the app's scripts say"""

_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\.{1,2}/(\w+)\.js";$', re.MULTILINE)
_LEFT_OUT = re.compile(r"^ *(?://.*\n)?|(?<=[;{,)]) +// .*$", re.MULTILINE)
_LOOSE = re.compile(
    r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`|/(?![ /*])(?:[^/\\]|\\.)+/)"""
    r"| ?(=>|[=!]==|>=|<=|\*\*|\+=|(?<= )[+-](?= [^+-])|[=,:?{}<>*;()]|&&|\|\|) ?"
)
"""a text or a regular expression, which stays as it is; or a sign with spaces that it does not need"""
_LOOSE_IN_STYLE = re.compile(r" ?([{};,]) ?|(?<=:) ")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_SAID = re.compile(r'\btr\(\s*("(?:[^"\\\n]|\\.)*")([,)])')
_EXPORT = re.compile(r"^export (?=(?:async )?(?:class|function\*?|const) (\w+))", re.MULTILINE)


def joined(names: Iterable[str]) -> str:
    """Modules of `js` as one script: each keeps its own scope, and hands on in `modules` what it exports.

    Args:
        names: of the files, without ending; each after those that it imports.
    """
    return _tight("\n".join((_shortened(SCRIPTS / "shared/words.js"), *_modules(names))))


def page(own: str) -> str:
    """The script of the page itself, with the app's pictures.

    Args:
        own: what its model does, "translating" or "writing".
    """
    parts = [_imported(_shortened(SITE / f"js/page/{part.format(own=own)}.js")) for part in PARTS]
    scope = "(() => {", *parts, "})();"
    return _tight("\n".join((f"const SIGNS = {signs(language())};", pictures(NEEDED[own]), *_modules(PAGE), *scope)))


def _modules(names: Iterable[str]) -> Iterator[str]:
    yield "const modules = {};"
    for name in names:
        code = _shortened(SITE / f"js/{name}.js")
        exported = ", ".join(_EXPORT.findall(code))
        code = _EXPORT.sub("", _imported(code))
        yield f"modules.{name} = (() => {{\n{code}\nreturn {{ {exported} }};\n}})();"


def _imported(code: str) -> str:
    return _IMPORT.sub(r"const \1 = modules.\2;", code)


def pictures(components: Iterable[str]) -> str:
    """The app's pictures as one script: what they share stands in it once, the rest in a scope of each one's own.

    `window.components` then has the function that mounts each, and the HTML to mount it in.
    """
    files = {name: [file for file in files_of(name) if file.name not in NOT_HERE] for name in components}
    uses = Counter(file for each in files.values() for file in each)
    # The script that mounts makes the component's own view.
    shared = [file for file in uses if uses[file] > 1 and file.suffix == ".js" and file.name != "mount.js"]
    styles = {file.stem: style_of(file) for file in uses if file.suffix == ".css"}
    parts = [*map(_shortened, shared), f"const styles = {json.dumps(styles)};", "window.components = {};"]
    for name, each in files.items():
        own = "\n".join(_shortened(file) for file in each if file.suffix == ".js" and file not in shared)
        style = " + ".join(f"styles.{file.stem}" for file in each if file.suffix == ".css")
        inside = f"`<style>${{{style}}}</style><div class='{name} component'></div>`"
        mounts = f"window.components.{name} = {{ mount, html: {inside} }};"
        parts.append(f"{{\n{own.replace('export default ', '')}\n{mounts}\n}}")
    return "\n".join(parts)


def style_of(file: Path) -> str:
    """A style sheet without comments, and without spaces that it does not need."""
    text = " ".join(_COMMENT.sub("", file.read_text(encoding="utf-8")).split())
    return _LOOSE_IN_STYLE.sub(lambda sign: sign[1] or "", text)


def _shortened(file: Path) -> str:
    """The script without comments and without indentation: a fifth of what readers would load.

    Its words stand in it in the language of this run, those without facts without the function that says them.
    """
    return _SAID.sub(_say, _LEFT_OUT.sub("", file.read_text(encoding="utf-8")))


def _tight(script: str) -> str:
    """Without spaces and line ends that it does not need; a line on which a template may stand in another one stays."""

    def tight(line: str) -> str:
        return line if line.count("`") > 2 else _LOOSE.sub(lambda each: each[1] or each[2], line)

    # A line's end that is none of a statement's own.
    return re.sub(r"(?<=[;{,])\n+", "", "\n".join(map(tight, script.split("\n"))))


def _say(found: re.Match[str]) -> str:
    text = json.loads(found[1])
    said = json.dumps(tr(CALLED.get(text, text)), ensure_ascii=False)
    return said if found[2] == ")" else f"tr({said},"
