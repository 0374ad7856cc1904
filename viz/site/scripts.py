"""The scripts of the static page, joined: a file that opens from a disk cannot import modules."""

import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from viz.drawing import files_of

SITE = Path(__file__).parent
ENGINE = ("products", "half", "safetensors", "tokenizer", "network", "decoding", "interventions", "boxes", "proof")
"""the model, each file after those that it imports"""
WORKER = (*ENGINE, "worker")
"""what runs in a thread of its own"""
PAGE = ("half", "labels", "miniature", "plane", "loading", "thread", "page")
"""what runs in the page itself"""
COMPONENTS = (
    *("chips", "whole_model", "matrices", "temperature", "mosaic", "lines", "beam_tree", "move_query", "long_map"),
)
"""the app's pictures that the page draws with"""
CALLED = {'"Temperature τ, redrawn in the browser"': '"Temperature"'}
"""where the page has a name of its own for what the app's scripts say"""

_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.js";$', re.MULTILINE)
_LEFT_OUT = re.compile(r"^ *(?://.*\n)?|(?<=[;{,)]) +// .*$", re.MULTILINE)
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_SAID = re.compile(r'\btr\(("(?:[^"\\\n]|\\.)*")\)')
_EXPORT = re.compile(r"^export (?=(?:async )?(?:class|function\*?|const) (\w+))", re.MULTILINE)


def joined(names: Iterable[str]) -> str:
    """Modules of `js` as one script: each keeps its own scope, and hands on in `modules` what it exports.

    Args:
        names: of the files, without ending; each after those that it imports.
    """
    parts = []
    for name in names:
        code = _shortened(SITE / f"js/{name}.js")
        exported = ", ".join(_EXPORT.findall(code))
        code = _EXPORT.sub("", _IMPORT.sub(r"const \1 = modules.\2;", code))
        parts.append(f"modules.{name} = (() => {{\n{code}\nreturn {{ {exported} }};\n}})();")
    return "\n".join(("const modules = {};", *parts))


def pictures(components: Iterable[str] = COMPONENTS) -> str:
    """The app's pictures as one script: what they share stands in it once, the rest in a scope of each one's own.

    `window.components` then has the function that mounts each, and the HTML to mount it in.
    """
    files = {name: files_of(name) for name in components}
    uses = Counter(file for each in files.values() for file in each)
    # The script that mounts makes the component's own view.
    shared = [file for file in uses if uses[file] > 1 and file.suffix == ".js" and file.name != "mount.js"]
    styles = {file.stem: _style(file) for file in uses if file.suffix == ".css"}
    parts = [*map(_shortened, shared), f"const styles = {json.dumps(styles)};", "window.components = {};"]
    for name, each in files.items():
        own = "\n".join(_shortened(file) for file in each if file.suffix == ".js" and file not in shared)
        style = " + ".join(f"styles.{file.stem}" for file in each if file.suffix == ".css")
        inside = f"`<style>${{{style}}}</style><div class='{name} component'></div>`"
        mounts = f"window.components.{name} = {{ mount, html: {inside} }};"
        parts.append(f"{{\n{own.replace('export default ', '')}\n{mounts}\n}}")
    return "\n".join(parts)


def _style(file: Path) -> str:
    return " ".join(_COMMENT.sub("", file.read_text(encoding="utf-8")).split())


def _shortened(file: Path) -> str:
    """The script without comments and without indentation: a fifth of what readers would load.

    The page is in English, so its words stand there without the function that says them in another language.
    """
    return _SAID.sub(lambda said: CALLED.get(said[1], said[1]), _LEFT_OUT.sub("", file.read_text(encoding="utf-8")))
