"""The scripts of the static page, joined: a file that opens from a disk cannot import modules."""

import re
from collections.abc import Iterable
from pathlib import Path

SITE = Path(__file__).parent
ENGINE = ("products", "safetensors", "tokenizer", "network", "decoding", "interventions")
"""the model, each file after those that it imports"""
WORKER = (*ENGINE, "worker")
"""what runs in a thread of its own"""
PAGE = ("products", "safetensors", "labels", "loading", "thread", "page")
"""what runs in the page itself"""
COMPONENTS = ("matrices", "mosaic", "beam_tree")
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
