"""Parse sentences for model.commands.head_scores: python model/commands/silver_parses.py FILE OUT [--pipeline NAME].

It needs spaCy and an English pipeline, which the app does not: run it with a Python of their own. Beside these it needs
the standard library alone.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

PIPELINE = "en_core_web_sm"


def main(arguments: list[str] | None = None) -> None:
    """Write one line of JSON for each sentence: its text, and of each word the place, the governor, the relation and
    the part of speech."""
    parser = argparse.ArgumentParser(description="Parse sentences with spaCy.")
    parser.add_argument("file", type=Path, help="plain lines")
    parser.add_argument("out", type=Path, help="file of the parses")
    parser.add_argument("--pipeline", default=PIPELINE, help="name of an installed pipeline (default: %(default)s)")
    args = parser.parse_args(arguments)
    texts = [line for line in args.file.read_text(encoding="utf-8").split("\n") if line.strip()]
    with args.out.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(parse, ensure_ascii=False) + "\n" for parse in parses(texts, args.pipeline))


def parses(texts: list[str], pipeline: str) -> Iterator[dict]:
    """The parse of each text."""
    import spacy  # no requirement of this project

    for document in spacy.load(pipeline, exclude=["ner", "lemmatizer"]).pipe(texts):
        words = [[one.idx, one.idx + len(one), one.head.i, one.dep_, one.pos_] for one in document]
        yield {"text": document.text, "words": words}


if __name__ == "__main__":
    main()
