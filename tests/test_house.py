"""The rules of the house, read from the source: who may import whom, where state lives, how long a file may be."""

import ast
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[1]
MODEL, VIZ = sorted(ROOT.glob("model/**/*.py")), sorted(ROOT.glob("viz/**/*.py"))
PAGES = sorted(set(ROOT.glob("pages/*.py")) - {ROOT / "pages/__init__.py"})
COMPONENTS = sorted(ROOT.glob("pages/*/*.py"))
TESTS = sorted(ROOT.glob("tests/**/*.py"))
SCRIPTS = sorted(ROOT.glob("viz/canvas/js/*/*.js")) + sorted(ROOT.glob("viz/canvas/js/*/*.css"))
LIBRARY = [*MODEL, *VIZ, ROOT / "pages/__init__.py", *COMPONENTS]
PYTHON = [ROOT / "app.py", *PAGES, *LIBRARY, *TESTS]

STATE = {"session_state", "cache_data", "cache_resource"}
EFFECTS = {"open", "print", "read_text", "read_bytes", "write_text", "write_bytes", "mkdir", "load", "urlopen", "run"}


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def broken(files: list[Path], rule: Callable[[str, str], object]) -> dict[str, object]:
    """What `rule` finds in the files, by their names: it gets a file's text and the name of its package."""
    found = {named(path): rule(path.read_text("utf-8"), package_of(path)) for path in files}
    return {name: what for name, what in found.items() if what}


def imported(source: str, package: str = "") -> set[str]:
    """Every module that `source` imports anywhere, by its full name; a relative import starts from `package`."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*parents, *([node.module] if node.module else [])])
            found |= {f"{module}.{alias.name}" for alias in node.names}
    return found


def foreign(source: str, package: str, allowed: set[str]) -> set[str]:
    """The packages, other than Python's own, that `source` imports though they are not `allowed`."""
    return {name.split(".")[0] for name in imported(source, package)} - sys.stdlib_module_names - allowed


def happens_on_import(source: str) -> list[str]:
    """Top-level statements that do more than name things."""
    guards = ("__name__ == '__main__'", "TYPE_CHECKING")
    happening = []
    for node in ast.parse(source).body:
        defines = isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        names = isinstance(node, ast.Assign | ast.AnnAssign) and not EFFECTS & set(called(node))
        guarded = isinstance(node, ast.If) and ast.unparse(node.test) in guards
        if not (defines or text or names or guarded):
            happening.append(ast.unparse(node))
    return happening


def called(node: ast.AST) -> Iterator[str]:
    """Names of the functions and methods that a statement calls."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call):
            yield call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def state_used(source: str) -> set[str]:
    """Streamlit's state and caches, however they are reached."""
    nodes = list(ast.walk(ast.parse(source)))
    names = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    names |= {node.id for node in nodes if isinstance(node, ast.Name)}
    names |= {alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}
    return names & STATE


def long_functions(source: str, limit: int = 40) -> list[str]:
    """Functions of more than `limit` lines, from `def` on."""
    functions = (
        node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return [f.name for f in functions if f.end_lineno - f.lineno + 1 > limit]


def charts_without_a_name(source: str) -> list[int]:
    """Lines that call `chart` and do not say what it is to people who cannot see it."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    charts = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "chart"]
    return [call.lineno for call in charts if "alt" not in {word.arg for word in call.keywords}]


def package_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).parent.parts)


def test_the_model_knows_nothing_of_how_it_is_shown():
    shown_with = {"streamlit", "plotly", "viz", "pages", "app", "tests"}
    assert (
        broken(MODEL, lambda text, package: {name.split(".")[0] for name in imported(text, package)} & shown_with) == {}
    )


def test_a_trace_needs_numpy_alone():
    assert broken([ROOT / "model/trace.py"], partial(foreign, allowed={"numpy"})) == {}


def test_drawings_know_arrays_and_nothing_of_where_they_come_from():
    assert broken(VIZ, partial(foreign, allowed={"numpy", "pandas", "plotly", "viz"})) == {}


def test_pages_neither_compute_nor_draw():
    allowed = {"streamlit", "numpy", "pandas", "model", "viz", "pages"}
    assert broken([*PAGES, *COMPONENTS], partial(foreign, allowed=allowed)) == {}


def test_nobody_imports_a_page():
    pages = {f"pages.{page.stem}" for page in PAGES}

    def pages_imported(text: str, package: str) -> set[str]:
        return {name for name in imported(text, package) if ".".join(name.split(".")[:2]) in pages}

    assert broken([*PAGES, *COMPONENTS, ROOT / "app.py"], pages_imported) == {}


def test_the_router_knows_the_pages_alone():
    assert broken([ROOT / "app.py"], partial(foreign, allowed={"streamlit", "pages"})) == {}


def test_state_and_caches_live_with_the_shared_widgets():
    assert broken([ROOT / "app.py", *PAGES, *MODEL, *VIZ], lambda text, _: state_used(text)) == {}


def test_nothing_happens_on_import():
    assert broken(LIBRARY, lambda text, _: happens_on_import(text)) == {}


def test_a_page_first_opens_itself():
    def first(text: str) -> str:
        return happens_on_import(text.replace("open_page(", "run("))[0]

    assert broken(PAGES, lambda text, _: first(text) != "view = run(__file__)") == {}


def test_a_function_has_at_most_40_lines():
    assert broken(PYTHON, lambda text, _: long_functions(text)) == {}


def test_every_chart_has_a_name_for_people_who_cannot_see_it() -> None:
    assert broken([*PAGES, *COMPONENTS], lambda text, _: charts_without_a_name(text)) == {}


def test_these_rules_do_notice():
    assert imported("import a.b as c\ndef f():\n    from d.e import g, h") == {"a.b", "d.e.g", "d.e.h"}
    assert imported("from . import x\nfrom .y import z\nfrom ..q import r", "pages.components") == {
        "pages.components.x",
        "pages.components.y.z",
        "pages.q.r",
    }
    assert foreign("import os, torch\nfrom numpy import array", "", {"numpy"}) == {"torch"}
    assert state_used("import streamlit as st\nst.session_state['a']") == {"session_state"}
    assert state_used("from streamlit import cache_data") == {"cache_data"}
    assert not happens_on_import('"""Text."""\nimport a\nA = tuple(range(3))\nif __name__ == "__main__":\n    main()')
    assert len(happens_on_import("main()\nA = Path('x').read_text()\nfor i in A:\n    pass\nwith b:\n    pass")) == 4
    assert long_functions("def f():\n" + "    pass\n" * 40) == ["f"]
    assert not long_functions("def f():\n" + "    pass\n" * 39)
    assert charts_without_a_name("chart(a, alt='b')\nchart(c)") == [2]
    assert broken([ROOT / "app.py"], lambda text, _: text[:3]) == {"app.py": '"""'}
    assert MODEL
    assert VIZ
    assert PAGES
    assert COMPONENTS
