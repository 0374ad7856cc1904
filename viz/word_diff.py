"""Two texts, one above the other, with the words marked that only one of them has; HTML without live markup."""

import html
from difflib import SequenceMatcher

from viz.theme import FONT
from viz.tokens import visible

_STYLE = f"""<style>
.word-diff {{ display: grid; grid-template-columns: max-content 1fr; gap: 0.25rem 0.9rem; font-family: {FONT};
  align-items: baseline; }}
.word-diff dt {{ font-size: 0.85rem; opacity: 0.75; }}
.word-diff dd {{ margin: 0; font-size: 1.15rem; min-height: 1.6em; overflow-wrap: anywhere; }}
.word-diff del, .word-diff ins {{ border-radius: 0.25rem; padding: 0 0.15em; }}
.word-diff del {{ background: color-mix(in srgb, #D55E00 22%, transparent); text-decoration: line-through; }}
.word-diff ins {{ background: color-mix(in srgb, #0072B2 25%, transparent); text-decoration: underline; }}
@media (max-width: 640px) {{ .word-diff {{ grid-template-columns: 1fr; }} }}
</style>"""


def word_diff(before: str, after: str, names: tuple[str, str] = ("before", "after")) -> str:
    """HTML: both texts; struck through what only `before` has, underlined what only `after` has.

    Args:
        before: text, whatever it holds.
        after: text, whatever it holds.
        names: what stands before each.
    """
    old, new = before.split(), after.split()
    lines: tuple[list[str], list[str]] = ([], [])
    for change, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        lines[0].append(_marked(old[a:b], "" if change == "equal" else "del"))
        lines[1].append(_marked(new[c:d], "" if change == "equal" else "ins"))
    rows = (
        f"<dt>{html.escape(name)}</dt><dd><bdi>{' '.join(filter(None, line)) or '(nothing)'}</bdi></dd>"
        for name, line in zip(names, lines, strict=True)
    )
    return f'{_STYLE}<dl class="word-diff">{"".join(rows)}</dl>'


def _marked(words: list[str], tag: str) -> str:
    text = html.escape(visible(" ".join(words)))
    return f"<{tag}>{text}</{tag}>" if tag and text else text
