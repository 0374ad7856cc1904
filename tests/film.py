"""python -m tests.film: take README's moving picture anew, of the app as it stands, with the shipped models."""

import io
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

from PIL import Image

from tests.browser.chromium import chromium
from tests.browser.conftest import ROOT, Visitor, open_window, serve
from tests.browser.test_temperature import LABEL

FILM = ROOT / ".github/walk.webp"
WINDOW, SIZE = {"width": 1280, "height": 720}, (960, 540)
SENTENCE = "The dog chased the cat because it was hungry."
SHORT, LONG = 150, 1600
"""milliseconds that a picture stays"""


def scenes(visitor: Visitor, address: str) -> Iterator[int]:
    """Act; for how long to show what is there now."""

    def go(path: str, **place: str | int) -> None:
        visitor.visit(f"{address}/{path}?{urlencode({'source': SENTENCE, 'lang': 'en'} | place)}")

    visitor.visit(address)
    yield LONG
    text = visitor.page.get_by_role("textbox", name="Source sentence")
    for end in (*range(4, len(SENTENCE), 6), len(SENTENCE)):
        text.fill(SENTENCE[:end])
        yield SHORT
    with visitor.rerun():
        text.press("Enter")
    yield LONG
    for head in (3, 5, 6):
        go("", query=7, head=head)
        yield LONG // 2
    for layer, head in ((0, 5), (2, 1), (3, 4)):
        go("heads_and_layers", layer=layer, head=head)
        yield LONG // 2
    for step in (2, 5, 6):
        go("attention_step_by_step", step=step, query=7)
        yield LONG
    go("temperature", query=7)
    slider = visitor.page.get_by_label(LABEL)
    box = slider.bounding_box()
    visitor.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    visitor.page.mouse.down()
    for share in (0.5, 0.55, 0.6, 0.65, 0.7, 0.6, 0.45, 0.3, 0.2, 0.1):
        visitor.page.mouse.move(box["x"] + box["width"] * share, box["y"] + box["height"] / 2)
        visitor.page.wait_for_timeout(300)
        yield SHORT
    visitor.page.mouse.up()
    visitor.page.locator(".temperature .badge", has_text="rerun").wait_for()
    visitor.settle()
    yield LONG
    go("decoding", part="Beam")
    yield LONG


def main() -> None:
    pictures, durations = [], []
    with (
        tempfile.TemporaryDirectory() as folder,
        serve(ROOT / "checkpoints", Path(folder) / "log.txt") as address,
        chromium() as browser,
    ):
        visitor = Visitor(open_window(browser, viewport=WINDOW))
        for duration in scenes(visitor, address):
            picture = Image.open(io.BytesIO(visitor.page.screenshot())).convert("RGB")
            pictures.append(picture.resize(SIZE, Image.Resampling.LANCZOS))
            durations.append(duration)
    first, *others = pictures
    first.save(FILM, save_all=True, append_images=others, duration=durations, loop=0, quality=80, method=6)


if __name__ == "__main__":
    main()
