"""The scripts of the static page, joined: a file that opens from a disk cannot import modules."""

import json
import re
from collections.abc import Iterable
from pathlib import Path

from viz.drawing import SCRIPTS, files_of, sources

SITE = Path(__file__).parent
ENGINE = ("products", "safetensors", "tokenizer", "network", "decoding", "interventions")
"""the model, each file after those that it imports"""
WORKER = (*ENGINE, "worker")
"""what runs in a thread of its own"""
PAGE = ("safetensors", "labels", "loading", "thread", "page")
"""what runs in the page itself"""
COMPONENTS = ("matrices", "temperature", "mosaic", "lines", "beam_tree")
"""the app's pictures that the page draws with"""

_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:class|function\*?|const) (\w+))", re.MULTILINE)


def joined(names: Iterable[str]) -> str:
    """Modules of `js` as one script: each keeps its own scope, and hands on in `modules` what it exports.

    Args:
        names: of the files, without ending; each after those that it imports.
    """
    parts = []
    for name in names:
        code = (SITE / f"js/{name}.js").read_text(encoding="utf-8")
        exported = ", ".join(_EXPORT.findall(code))
        code = _EXPORT.sub("", _IMPORT.sub(r"const \1 = modules.\2;", code))
        parts.append(f"modules.{name} = (() => {{\n{code}\nreturn {{ {exported} }};\n}})();")
    return "\n".join(("const modules = {};", *parts))


def pictures(components: Iterable[str] = COMPONENTS) -> str:
    """The app's pictures as one script: what they share stands in it once, the rest in a scope of each one's own.

    `window.components` then has the function that mounts each, and the HTML to mount it in.
    """
    files = {name: [file for file in files_of(name) if file.suffix == ".js"] for name in components}
    shared = dict.fromkeys(file for each in files.values() for file in each if _is_shared(file))
    parts = [file.read_text(encoding="utf-8") for file in shared] + ["window.components = {};"]
    for name, each in files.items():
        own = "\n".join(file.read_text(encoding="utf-8") for file in each if not _is_shared(file))
        inside = json.dumps(f"<style>{sources(name)[1]}</style><div class='{name} component'></div>")
        mounts = f"window.components.{name} = {{ mount, html: {inside} }};"
        parts.append(f"{{\n{own.replace('export default ', '')}\n{mounts}\n}}")
    return "\n".join(parts)


def _is_shared(file: Path) -> bool:
    """Whether all pictures can have one copy of it: the script that mounts makes the component's own view."""
    return file.parent == SCRIPTS / "shared" and file.name != "mount.js"
