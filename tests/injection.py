"""Markup as a person may type it, and checkpoints whose names, tokens and files hold it."""

import json
from dataclasses import replace
from pathlib import Path

from sentencepiece import sentencepiece_model_pb2 as sentencepiece

from model.checkpoints.store import load_checkpoint, save_checkpoint
from model.checkpoints.tokenizer import Tokenizer, train_tokenizer
from tests.conftest import FIXTURE
from tests.model.checkpoints.test_language_model import MODERN
from tests.model.tiny import SENTENCES, random_model
from viz.tokens import WORD_START

FOREIGN = "foreign.invalid"
"""a host that does not exist: whatever is sent there has left the machine"""
FORMS = (
    "*z{}*",
    f"![z{{}}](http://{FOREIGN}/p.png)",
    "$z{}$",
    "<b>z{}</b>",
    "`z{}`",
    ":red[z{}]",
    ":smile:{}",
    ":material/home:{}",
    f"[z{{}}](http://{FOREIGN})",
    "z|{}",
    "~~z{}~~",
    "&amp;{}",
    "_z{}_",
    "<!--z{}-->",
    f"<img/src=http://{FOREIGN}/{{}}.png>",
    "%{{x}}{}",
    "5*3*{}",
)
"""one token each; the braces stand for its number"""
TYPED = (
    f"5*3*2 $x^2$ ![x](http://{FOREIGN}/p.png) :red[x] :material/home: :smile: <b>b</b> &amp; `c` [l](http://{FOREIGN})"
    " a|b <!-- c --> ~~s~~ -> -- >= # h"
)
"""a sentence, all of it to be read as it is"""
LITERAL = (
    "5*3*2",
    "$x^2$ $$y$$",
    f"![x](http://{FOREIGN}/p.png)",
    ":red[x] :blue-background[x] :small[x] :help[x]",
    ":material/home: :material_home: :streamlit:",
    ":smile: :+1: :-1: ::x:: a:b:c",
    "<b>b</b> <!-- c --> </p><script>1</script>",
    "&amp; &#58; &lt;",
    "`c` ``d``",
    f"[l](http://{FOREIGN}) [^1] [x]: http://a.b",
    "a | b || c",
    "~~s~~ ~t~",
    "_a_ __b__ **c** ***d",
    "# h",
    "> q",
    "1. one",
    "1) one",
    "- [ ] i",
    "+ i",
    "* * *",
    "---",
    "===",
    "a -> b <- c <-> d -- e >= f <= g ~= h",
    "--",
    f"www.{FOREIGN} http://{FOREIGN}/x HTTPS://a.b/c",
    f"me@{FOREIGN} a.b@c.de-f mailto:me@{FOREIGN}",
    "\\ \\\\ \\n \\*x\\*",
    "{x} {.cls} %{y}",
)
"""texts that a Markdown of some kind would show otherwise"""
MARKDOWN = f"# <b>z</b>\n\n![z](http://{FOREIGN}/p.png) <img src=http://{FOREIGN}/q.png>\n\n" + (
    f"```a`b\n![z](http://{FOREIGN}/r.png)\n```\n\n<div>\n```\n\n![z](http://{FOREIGN}/s.png)\n\n```\n</div>\n"
)
"""a README whose pictures hide behind what only looks like code"""
TRANSLATOR, LANGUAGE_MODEL, MASKED_MODEL = (f"{kind} *z* ![z](http:) <b>z<b> $z$" for kind in ("t", "lm", "mlm"))
"""names of checkpoints, and of their folders"""


def save_checkpoints(folder: Path) -> Path:
    """A checkpoint of each family, named and documented in markup, in which every word of the vocabulary is markup."""
    translator = load_checkpoint(str(FIXTURE), "cpu")
    _save(folder / TRANSLATOR, translator.model, translator.tokenizer)
    lines = [source for source, _ in SENTENCES]
    for name, layers in ((LANGUAGE_MODEL, (0, 2)), (MASKED_MODEL, (2, 0))):
        tokenizer = train_tokenizer(lines, 312, masked=name == MASKED_MODEL)
        config = replace(MODERN, vocab_size=312, n_encoder_layers=layers[0], n_decoder_layers=layers[1])
        _save(folder / name, random_model(config), tokenizer)
    return folder


def tokens_as_text(count: int) -> str:
    """The first `count` words of these vocabularies."""
    return " ".join(map(_form, range(count)))


def _form(number: int) -> str:
    return FORMS[number % len(FORMS)].format(number)


def _save(folder: Path, model: object, tokenizer: Tokenizer) -> None:
    save_checkpoint(folder, model, _renamed(tokenizer), dict(model.named_parameters()))
    (folder / "README.md").write_text(MARKDOWN)
    (folder / "examples.json").write_text(json.dumps({"sentences": [TYPED], "showing": [], "about": TYPED}))


def _renamed(tokenizer: Tokenizer) -> Tokenizer:
    """The same vocabulary with markup in place of each word, to be matched as a whole."""
    vocabulary = sentencepiece.ModelProto.FromString(tokenizer.serialized)
    words = [piece for piece in vocabulary.pieces if piece.type == piece.NORMAL and piece.piece != WORD_START]
    for number, piece in enumerate(words):
        start = WORD_START if piece.piece.startswith(WORD_START) else ""
        piece.piece, piece.type = start + _form(number), piece.USER_DEFINED
    return Tokenizer(vocabulary.SerializeToString())
