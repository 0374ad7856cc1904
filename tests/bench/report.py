"""docs/speed.md: what `make bench` measured last, part by part. Only this file writes it."""

import os
import platform
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

REPORT = Path(__file__).parents[2] / "docs" / "speed.md"
HEADER = """# Speed

Written by `make bench`; each section says when and on what it was measured. Values are medians, with the fastest and
the slowest in brackets. Compare ratios, which come from one run side by side, rather than milliseconds: the same
machine varies by a third from hour to hour. Budgets are never times. `make bench ARGS="--only views,pages"` measures
some parts again and leaves the other sections as they are.
"""


def write_section(part: str, title: str, explanation: str, lines: Sequence[str], seconds: float) -> None:
    """Put one part's result into docs/speed.md, in place of what stood there for this part.

    Args:
        part: the name of the part, as `--only` takes it.
        title: heading of the section.
        explanation: what was measured and how.
        lines: Markdown.
        seconds: how long the measurement took.
    """
    sections = _sections()
    when = datetime.now(UTC).strftime("%d %B %Y").lstrip("0")
    load = " ".join(f"{load:.1f}" for load in os.getloadavg())
    machine = f"{when}; {os.cpu_count()} cores ({platform.machine()}), load average {load}; {seconds:.0f} s"
    sections[part] = "\n".join([f"## {title}", "", explanation, "", f"*{machine}*", "", *lines])
    body = "\n\n".join(f"<!-- {name} -->\n{section.strip()}" for name, section in sections.items())
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(f"{HEADER}\n{body}\n", encoding="utf-8")


def _sections() -> dict[str, str]:
    """The sections that are there, by part."""
    text = REPORT.read_text(encoding="utf-8") if REPORT.exists() else ""
    _, *rest = re.split(r"^<!-- (\w+) -->\n", text, flags=re.MULTILINE)
    return dict(zip(rest[::2], rest[1::2], strict=True))
