"""Run the tests of what has changed since the last commit, or in it where nothing has: `make check`.

A module's tests are those that import it and the file that has its name; a page's, also the cases that carry its name
in tests of all pages. Tests in a browser run only when they or the scripts in the page have changed. What a change does
further away is seen by `make test`.
"""

import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

import grimp

PACKAGES = "model", "pages", "viz", "tests"
ALL_PAGES = "pages"
"""the package itself has the list of pages; who imports it asks all of them"""
SCRIPTS = ".js", ".css"


def main() -> None:
    """Hand pytest the files and the cases, with the arguments of the command line."""
    files, words = touched(changed_files(), grimp.build_graph(*PACKAGES, cache_dir=".import_linter_cache"))
    if not files:
        sys.stderr.write("No test knows by name or import what has changed: make test runs them all.\n")
        return
    pytest = [sys.executable, "-m", "pytest", *sys.argv[1:], *sorted(files), "-k", " or ".join(sorted(words))]
    sys.exit(subprocess.call(pytest))


def changed_files() -> list[str]:
    """Paths that differ from the last commit, new ones too; of a clean tree, those that the last commit changed."""
    here = _git("diff", "--name-only", "HEAD") + _git("ls-files", "--others", "--exclude-standard")
    return here or _git("diff", "--name-only", "HEAD~1", "HEAD")


def touched(paths: Iterable[str], graph: grimp.ImportGraph) -> tuple[set[str], set[str]]:
    """Files of tests, and the words of which one is in the name of each of their cases that is to run.

    A file's own name runs all that is in it.
    """
    whole: set[str] = set()
    partly: set[str] = set()
    words: set[str] = set()
    for path in map(PurePosixPath, paths):
        if _is_test(path):
            whole.add(str(path))
            continue
        whole |= {str(test) for test in Path("tests").rglob(f"test_{path.stem}.py")}
        whole |= {test for test in _importers(path, graph) if path.parts[0] == "tests" or _is_quick(test)}
        if path.parts[0] == "pages" and (
            path.suffix == ".md" or path.is_relative_to("pages/views") or len(path.parts) == 2
        ):
            partly |= {test for test in _importers(PurePosixPath("pages/__init__.py"), graph) if _is_quick(test)}
            words.add(path.stem)
        if path.suffix in SCRIPTS:
            whole |= {str(test) for test in Path("tests/browser").glob("test_*.py")}
    whole = {test for test in whole if Path(test).exists()}
    return whole | partly, words | {PurePosixPath(test).name for test in whole}


def _importers(path: PurePosixPath, graph: grimp.ImportGraph) -> Iterator[str]:
    """The files of tests that import the module at `path`."""
    module = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
    if path.suffix == ".py" and module in graph.modules:
        for name in graph.find_modules_that_directly_import(module):
            test = PurePosixPath(*name.split(".")).with_suffix(".py")
            if _is_test(test):
                yield str(test)


def _is_test(path: PurePosixPath) -> bool:
    return path.parts[0] == "tests" and path.name.startswith("test_") and path.suffix == ".py"


def _is_quick(test: str) -> bool:
    return not PurePosixPath(test).is_relative_to("tests/browser")


def _git(*words: str) -> list[str]:
    run = subprocess.run(["git", *words], check=True, capture_output=True, text=True, encoding="utf-8")
    return run.stdout.splitlines()


if __name__ == "__main__":
    main()
