"""Rules of the code that neither ruff nor import-linter can hold: what happens on import, where state lives.

test_readme.py runs both on a copy of the project.
"""

import ast
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
MODEL, VIZ = sorted(ROOT.glob("model/**/*.py")), sorted(ROOT.glob("viz/**/*.py"))
PAGES = sorted(set(ROOT.glob("pages/*.py")) - {ROOT / "pages/__init__.py"})
COMPONENTS = sorted(ROOT.glob("pages/*/**/*.py"))
LIBRARY = [*MODEL, *VIZ, ROOT / "pages/__init__.py", *COMPONENTS]

STATE = {"session_state", "cache_data", "cache_resource"}
EFFECTS = {"open", "print", "read_text", "read_bytes", "write_text", "write_bytes", "mkdir", "load", "urlopen", "run"}


def violations(files: list[Path], rule: Callable[[str], object]) -> dict[str, object]:
    """What `rule` finds in the text of each file, by the file's name; files without a finding are left out."""
    found = {path.relative_to(ROOT).as_posix(): rule(path.read_text("utf-8")) for path in files}
    return {name: what for name, what in found.items() if what}


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


def packages_imported(source: str) -> set[str]:
    nodes = list(ast.walk(ast.parse(source)))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    return {name.split(".")[0] for name in names}


def charts_without_a_name(source: str) -> list[int]:
    """Lines that call `chart` without saying what it shows to people who cannot see it."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    charts = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "chart"]
    return [call.lineno for call in charts if "alt" not in {word.arg for word in call.keywords}]


def test_nothing_imports_a_page() -> None:
    """A page is a script that Streamlit runs: import-linter would need the name of each in its contract."""
    scripts = {f"pages.{path.stem}" for path in PAGES}

    def pages_imported(source: str) -> set[str]:
        nodes = list(ast.walk(ast.parse(source)))
        names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        for node in nodes:
            if isinstance(node, ast.ImportFrom):
                names |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
        return scripts & names

    assert pages_imported("from pages import masks") == pages_imported("import pages.masks") == {"pages.masks"}
    assert violations([*LIBRARY, *PAGES, ROOT / "app.py"], pages_imported) == {}


def test_the_app_imports_pages_and_streamlit_with_its_server_only() -> None:
    packages = packages_imported((ROOT / "app.py").read_text("utf-8"))
    # Starlette is the server inside Streamlit; middleware can be added to it there alone.
    assert packages - sys.stdlib_module_names <= {"streamlit", "starlette", "pages"}


def test_state_and_caches_live_with_the_shared_widgets() -> None:
    assert violations([ROOT / "app.py", *PAGES, *MODEL, *VIZ], state_used) == {}


def test_caches_live_in_compute() -> None:
    components = [path for path in COMPONENTS if path.parent.name != "compute"]
    assert violations(components, lambda text: state_used(text) - {"session_state"}) == {}


def test_nothing_happens_on_import() -> None:
    assert violations(LIBRARY, happens_on_import) == {}


def test_a_page_first_opens_itself() -> None:
    def first(text: str) -> str:
        return happens_on_import(text.replace("open_page(", "run("))[0]

    opens = "run = run(__file__)", "show_page(__file__"
    assert violations(PAGES, lambda text: not first(text).startswith(opens)) == {}


def test_every_chart_has_a_name_for_people_who_cannot_see_it() -> None:
    assert violations([*PAGES, *COMPONENTS], charts_without_a_name) == {}


def test_these_rules_notice_violations() -> None:
    assert packages_imported("import a.b as c\ndef f():\n    from d.e import g, h") == {"a", "d"}
    assert state_used("import streamlit as st\nst.session_state['a']") == {"session_state"}
    assert state_used("from streamlit import cache_data") == {"cache_data"}
    assert not happens_on_import('"""Text."""\nimport a\nA = tuple(range(3))\nif __name__ == "__main__":\n    main()')
    assert len(happens_on_import("main()\nA = Path('x').read_text()\nfor i in A:\n    pass\nwith b:\n    pass")) == 4
    assert charts_without_a_name("chart(a, alt='b')\nchart(c)") == [2]
    assert violations([ROOT / "app.py"], lambda text: text[:3]) == {"app.py": '"""'}
    assert all((MODEL, VIZ, PAGES, COMPONENTS))


def keys_drawn() -> set[str]:
    """What pages call their elements: in quotes in their code, or page and picture in the text of a view."""
    quoted = {
        key
        for path in [ROOT / "app.py", *PAGES, *COMPONENTS]
        for key in re.findall(r'(?<=")[\w-]+(?=")', path.read_text("utf-8"))
    }
    texts = {path.stem: path.read_text("utf-8") for path in ROOT.glob("pages/text/*.md")}
    named = {f"{page}-{name}" for page, text in texts.items() for name in re.findall(r"!\[[^\]]*\]\(([\w-]+)", text)}
    return quoted | named | {f"roomy-{name}" for name in named}


def test_the_style_sheets_are_about_elements_that_are_drawn() -> None:
    sheets = [path.read_text("utf-8") for path in ROOT.glob("pages/frame/style/*.css")]
    styled = set(re.findall(r"\.st-key-([\w-]+)", "".join(sheets)))
    assert styled
    assert not styled - keys_drawn()


def test_what_ci_runs_once_more_is_there() -> None:
    named = re.findall(r"\btests/[\w/]+(?:\.py)?", (ROOT / ".ci/run").read_text("utf-8"))
    assert len(named) > 10
    assert not [path for path in named if not (ROOT / path).exists()]
