"""Views on the command line: python -m pages.views "The cat sat." --view masks.orders --set row=3 --json."""

import argparse
from collections.abc import Iterable
from typing import Any

from model.checkpoints.store import DEFAULT_CHECKPOINT, CheckpointError, load_checkpoint
from model.language import speak
from model.run import Run
from pages import EVERY
from pages.text import languages
from pages.views import OUTCOME, View
from pages.views.standalone import texts_of, to_html, to_json

ALL = "all"


def main(arguments: list[str] | None = None) -> None:
    """Print a view of a run: its text, or all of it as JSON or as an HTML page."""
    parser = argparse.ArgumentParser(prog="python -m pages.views", description="Print a view of a run.")
    parser.add_argument("text", nargs="?", default="", help="what the model reads")
    parser.add_argument("--view", metavar="PAGE.NAME", help="such as masks.orders; see --list; with --html also all")
    parser.add_argument("--list", action="store_true", help="print all views with their controls and titles")
    parser.add_argument("--checkpoint", default=DEFAULT_CHECKPOINT, help="name or folder (default: %(default)s)")
    parser.add_argument("--device", default="auto", help="cpu, cuda, cuda:1, ... (default: auto)")
    parser.add_argument("--target", help="what a translator is made to write (default: it writes its own)")
    parser.add_argument("--kind", default="", help="of attention, such as cross (default: the first that there is)")
    parser.add_argument("--layer", type=int, default=0)
    parser.add_argument("--head", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="the value of a control")
    parser.add_argument("--lang", default="en", choices=languages(), help="of the text (default: %(default)s)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="facts, text and arrays")
    form.add_argument("--html", action="store_true", help="a page that opens from a file")
    args = parser.parse_args(arguments)
    views = {f"{view.page}.{view.name}": view for page in EVERY for view in page.views}
    if args.list:
        print("\n".join(_describe(views)))
        return
    if args.view not in views and not (args.view == ALL and args.html):
        parser.error(f"--view is one of {', '.join(views)}")
    speak(languages()[args.lang])
    try:
        opened = load_checkpoint(args.checkpoint, args.device)
        run = Run.of(opened, opened.trace(args.text, args.target), args.kind, args.layer, args.head)
        if args.view == ALL:
            having = [view for view in views.values() if not view.missing(run)]
            print(to_html(ALL, [view(run, **({OUTCOME: None} if view.on_request else {})) for view in having]))
            return
        result = views[args.view](run, **_chosen(views[args.view], run, args.set))
    except (CheckpointError, TypeError, ValueError) as error:
        parser.error(str(error))
    if args.json:
        print(to_json(result))
    else:
        print(to_html(result.view.title, [result]) if args.html else "\n\n".join(texts_of(result.blocks)))


def _describe(views: dict[str, View]) -> Iterable[str]:
    width = max(map(len, views))
    for name, view in views.items():
        controls = f" ({', '.join(view.controls)})" if view.controls else ""
        yield f"{name:{width}}  {view.title}{controls}"


def _chosen(view: View, run: Run, settings: list[str]) -> dict[str, Any]:
    """Values of controls by name, from texts such as row=3.

    Raises:
        ValueError: a text is not of that form.
    """
    offers, chosen = view.offers(run), {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise ValueError(f"--set takes NAME=VALUE, not {setting!r}.")
        chosen[name] = offers[name].read(text) if name in offers else text
    return chosen


if __name__ == "__main__":
    main()
