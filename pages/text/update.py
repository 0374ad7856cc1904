"""The catalogues follow the English: python -m pages.text.update [LANG ...], or `make words` for all languages.

Takes the messages of the English into pages/text/LANG/texts.po and lessons.po: a new one is there to be translated, a
changed one keeps its translation as fuzzy, which is not said until somebody has looked at it, and one that nothing says
any more goes. A new language begins so. Then lists what pages/text/check.py finds. `--rename FILE OLD NEW` renames a
fact in the English of a file and in every message and translation at once, so that nothing becomes fuzzy; the view that
gives the fact is renamed by hand.
"""

import argparse
import re
import sys
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po, write_po

from pages.lessons.question import FOLDER
from pages.text.catalogue import ALSO, DOMAINS, TEXT
from pages.text.check import catalogues, facts_in_english, faults, messages_in_english
from pages.text.skeleton import TAG

HEAD = """\
# Sentences of Attention Explorer. docs/translating.md says how they are translated; `make words` brings them to the
# English of today. A line "#. file: section" says where a sentence stands.
msgid ""
msgstr ""
"Language: {}\\n"
"MIME-Version: 1.0\\n"
"Content-Type: text/plain; charset=utf-8\\n"
"Content-Transfer-Encoding: 8bit\\n"

"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("languages", nargs="*", help="folders of pages/text; without any, all that have a catalogue")
    parser.add_argument("--rename", nargs=3, metavar=("FILE", "OLD", "NEW"), help="such as masks.md pads padding")
    arguments = parser.parse_args()
    codes = arguments.languages or catalogues()
    if arguments.rename:
        codes = catalogues()
        rename_fact(*arguments.rename)
    for code in codes:
        for domain in DOMAINS:
            update(TEXT / code / f"{domain}.po")
    sys.stdout.write("".join(f"{code}/{line}\n" for code in codes for line in faults(TEXT / code)))


def update(path: Path) -> None:
    """Bring a catalogue to the English of today, or begin it."""
    catalogue, english = read(path), Catalog()
    for message, places in messages_in_english(path.stem).items():
        english.add(message, auto_comments=places)
        for place in places:
            if catalogue.get(message, place):
                english.add(message, context=place)
    for place in facts_in_english(path.stem):
        if catalogue.get(place, ALSO):
            english.add(place, context=ALSO)
    catalogue.update(english, update_creation_date=False)
    write(path, catalogue)


def rename_fact(file: str, old: str, new: str) -> None:
    """Rename a fact in the English of a file, such as masks.md or lessons/heads.toml, and in all catalogues."""
    path = (FOLDER.parent if file.startswith("lessons/") else TEXT) / file
    path.write_text(_renamed(path.read_text(encoding="utf-8"), old, new), encoding="utf-8")
    for code in catalogues():
        for domain in DOMAINS:
            path = TEXT / code / f"{domain}.po"
            catalogue = read(path)
            for one in [one for one in catalogue if one.id and _renamed(one.id, old, new) != one.id]:
                catalogue.add(
                    _renamed(one.id, old, new), _renamed(one.string, old, new), flags=one.flags, context=one.context
                )
            write(path, catalogue)


def _renamed(text: str, old: str, new: str) -> str:
    """A template with the fact of another name; not an attribute, nor a text in quotation marks."""
    name = re.compile(rf"""(?<![\w."']){re.escape(old)}(?![\w"'])""")
    return TAG.sub(lambda tag: name.sub(new, tag[0]), text)


def read(path: Path) -> Catalog:
    """A catalogue, empty where there is none yet."""
    if not path.is_file():
        return Catalog(path.parent.name)
    with path.open("rb") as file:
        return read_po(file)


def write(path: Path, catalogue: Catalog) -> None:
    """Without dates and line numbers, so that a changed sentence is a change of a few lines."""
    catalogue.obsolete.clear()
    for one in catalogue:
        one.flags -= {"python-format", "python-brace-format"}  # as which Babel reads the tags of jinja2
    with path.open("wb") as file:
        file.write(HEAD.format(path.parent.name).encode())
        write_po(file, catalogue, width=0, no_location=True, omit_header=True)


if __name__ == "__main__":
    main()
