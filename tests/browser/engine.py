"""The model in JavaScript beside the one in Python, on lines of a file: how closely do they agree?

    python -m tests.browser.engine FILE [--checkpoint en-de] [--lines 10000] [--translations 1000] [--traces 30] \
        [--start 0]

FILE has an English sentence a line; what follows a tab is not read. Exit status 1 if anything differs. It says how many
translations it has compared; one that was stopped goes on from there with --start. Of a language model
(--checkpoint everyday-lm) it compares what follows the first words of each line, greedily and drawn, and says how far
both are from double precision.
"""

import argparse
import base64
import functools
import itertools
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np
import torch

from model.checkpoints.language_model import LanguageModel
from model.checkpoints.store import load_checkpoint
from model.checkpoints.translator import Translator
from model.generation.sampling import Sampling
from model.generation.search import beam_search
from model.interventions import Intervention
from model.interventions.link import encode
from model.network.config import BOS, EOS
from model.tracer import record
from tests.browser.chromium import chromium
from viz.site.scripts import WORKER, joined

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parents[2]
ADDRESS = "http://engine.test"
"""no such machine: what the page asks for there comes from files"""
CLOSE = 1e-5
"""of an array's largest number"""
BESIDE = ("miniature", "plane")
"""what the page itself computes"""
SOME = 50
"""sentences that one call translates, so that none lasts longer than a browser's patience"""

LOAD = """async (config) => {
    const read = async (name) => (await fetch(name)).arrayBuffer();
    const { network, safetensors, tokenizer } = modules;
    window.model = new network.Transformer(config, safetensors.readSafetensors(await read("model.safetensors")));
    window.tokenizer = new tokenizer.Tokenizer(new Uint8Array(await read("tokenizer.model")));
}"""
TRACE = """({ ids, source, target, changes, paths }) => {
    const edits = modules.interventions.editsOf(changes, model);
    const kept = ids ? model.traceText(ids, edits) : model.trace(source, target, edits);
    const wanted = [...kept].filter(([path]) => !paths || paths.includes(path));
    let letters = "";
    for (const [, { values }] of wanted) {
        const bytes = new Uint8Array(values.buffer);
        for (let at = 0; at < bytes.length; at += 8192)
            letters += String.fromCharCode(...bytes.subarray(at, at + 8192));
    }
    const described = wanted.map(([path, { shape, values }]) => [path, shape, values.constructor.name]);
    return { described, bytes: btoa(letters) };
}"""
TRANSLATE = """({ sources, size, changes }) => {
    const { decoding, interventions } = modules;
    const options = { edits: interventions.editsOf(changes, model), cached: interventions.areCached(changes), size };
    return sources.map((source) => size > 1
        ? decoding.finish(decoding.beamSearch(model, source, options))
        : [decoding.finish(decoding.greedy(model, source, options))]);
}"""
WRITE = """({ prompts, most, changes }) => {
    const { decoding, interventions, sampling } = modules;
    const options = { edits: interventions.editsOf(changes, model), cached: interventions.areCached(changes), most };
    return prompts.map(({ ids, ...drawn }) => "seed" in drawn
        ? decoding.finish(sampling.sample(model, ids, { ...options, ...drawn }))
        : decoding.finish(decoding.greedy(model, ids, options)));
}"""
TYPES = {"Float32Array": "<f4", "Uint8Array": "u1"}
HOSTILE = (
    *("", " ", "  ", " a", "a ", "a  b", "\t", "\n", "a\nb", "\r\n", "▁", "▁▁", "a▁b", "\ufdd0", "\ufdd0\ufdd1"),
    *("\ufdd1\ufdd2", "\ufdd0▁", "<s>", "</s>", "<unk>", "<pad>", "<0x0A>", "<0xE2>", "<mask>", "\x00", "a\x00b"),
    *("\x7f\x80\x9f", "\ufffd", "\ufffe\uffff", "\ufeff", "\ufeffa", "a\ufeff", "\ud800", "a\udfffb", "\udc00\ud800"),
    *(
        "😀",
        "👨\u200d👩\u200d👧",
        "e\u0301",
        "é",
        "\u212b",
        "Ａ",
        "\u202eabc\u202c",
        "\u200b",
        "\u00a0",
        "\u3000",
        "中文测试",
    ),
    *("Привет, мир", "مرحبا", "नमस्ते", "ภาษาไทย", "한국어", "Donaudampfschifffahrtsgesellschaftskapitän", "ß ẞ ſ"),
    *("ﬁ ﬂ", "…—–„“‚‘»«", "1234567890" * 20, "a" * 500, "http://example.com/?q=a%20b&c=d#e", "'" * 50),
    *("\u0300" * 30, "\U0010ffff", "\U000e0001", "I\u0307", "İ"),
)
"""lines that tokenizers stumble over"""
RANGES = (
    (32, 127),
    (0, 0x250),
    (0x2000, 0x2600),
    (0x4E00, 0x9FFF),
    (0xD700, 0xE100),
    (0x1F300, 0x1FAFF),
    (0, 0x10FFFF),
)
"""of characters in random lines"""
REPEATED = "aemnos0135-.!? "


class Engine:
    """The JavaScript of the static page with one checkpoint, in a page of Chromium of its own."""

    def __init__(self, page: "Page", checkpoint: Path) -> None:
        self._page = page
        page.route(f"{ADDRESS}/", lambda route: route.fulfill(content_type="text/html", body="<!DOCTYPE html>"))
        page.route(
            f"{ADDRESS}/*.*", lambda route: route.fulfill(path=checkpoint / urlsplit(route.request.url).path[1:])
        )
        page.goto(ADDRESS)
        page.add_script_tag(content=f"{joined((*WORKER, *BESIDE))}\nwindow.modules = modules;")
        page.evaluate(LOAD, json.loads((checkpoint / "config.json").read_text())["model"])

    @classmethod
    def open(cls, browser: "Browser", checkpoint: Path) -> "Engine":
        page = browser.new_context().new_page()
        page.set_default_timeout(120_000)
        return cls(page, checkpoint)

    def evaluate(self, script: str, argument: object = None) -> Any:
        return self._page.evaluate(script, argument)

    def ids(self, lines: Sequence[str]) -> list[list[int]]:
        """Token ids of each line."""
        # As JSON in ASCII: a lone surrogate does not travel otherwise.
        return self.evaluate("(lines) => JSON.parse(lines).map((line) => tokenizer.encode(line))", json.dumps(lines))

    def texts(self, ids: Sequence[Sequence[int]]) -> list[str]:
        """The text of each list of ids."""
        return self.evaluate("(lists) => lists.map((ids) => tokenizer.decode(ids))", list(map(list, ids)))

    def trace(
        self, source: Sequence[int], target: Sequence[int], changes: Sequence[Intervention] = ()
    ) -> dict[str, np.ndarray]:
        """Every array of a teacher-forced run, by hook path; source and target end with </s>."""
        return self._arrays({"source": list(source), "target": list(target), "changes": as_fields(changes)})

    def trace_text(
        self, ids: Sequence[int], changes: Sequence[Intervention] = (), paths: Sequence[str] = ()
    ) -> dict[str, np.ndarray]:
        """The same of a model of one stack, of what it reads; of these hook paths alone, if any are named."""
        return self._arrays({"ids": list(ids), "changes": as_fields(changes), "paths": list(paths) or None})

    def _arrays(self, question: dict[str, Any]) -> dict[str, np.ndarray]:
        answer = self.evaluate(TRACE, question)
        numbers, place, arrays = base64.b64decode(answer["bytes"]), 0, {}
        for path, shape, kind in answer["described"]:
            arrays[path] = np.frombuffer(numbers, TYPES[kind], int(np.prod(shape)), place).reshape(shape)
            place += arrays[path].nbytes
        return arrays

    def translate(
        self, sources: Sequence[Sequence[int]], size: int, changes: Sequence[Intervention] = ()
    ) -> list[list[tuple[int, ...]]]:
        """Each source's translations, best first; greedy if `size` is 1."""
        answers = []
        for start in range(0, len(sources), SOME):
            some = list(map(list, sources[start : start + SOME]))
            question = {"sources": some, "size": size, "changes": as_fields(changes)}
            answers += self.evaluate(TRANSLATE, question)
        return [[tuple(each["tokens"]) for each in found] for found in answers]

    def write(
        self, prompts: Sequence[Mapping[str, Any]], most: int, changes: Sequence[Intervention] = ()
    ) -> list[list[int]]:
        """What a language model writes after each prompt, without its end token.

        Args:
            prompts: `ids`, and to draw instead of taking the most probable token each time `seed`, `temperature`,
                `topK`, `topP`.
            most: tokens.
            changes: to the model.
        """
        question = {"prompts": list(prompts), "most": most, "changes": as_fields(changes)}
        found = self.evaluate(WRITE, question)
        return [[token for token in each["tokens"] if token != EOS] for each in found]

    def throttle(self, rate: float) -> None:
        """Let the page's thread run this many times slower than the machine."""
        session = self._page.context.new_cdp_session(self._page)
        session.send("Emulation.setCPUThrottlingRate", {"rate": rate})

    def close(self) -> None:
        self._page.context.close()


def as_fields(changes: Sequence[Intervention]) -> list[dict[str, Any]]:
    """Interventions as the page has them: what a link says of each."""
    return [{"type": name} | values for name, values in json.loads(encode(changes) or "[]")]


def differences(ours: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Hook path -> largest difference over the array's largest number; infinite where path, shape or type differ."""
    found = dict.fromkeys(ours.keys() ^ other.keys(), float("inf"))
    for path in ours.keys() & other.keys():
        a, b = ours[path], other[path]
        if a.shape != b.shape or (a.dtype == bool and b.dtype != np.uint8):
            found[path] = float("inf")
            continue
        a, b = a.astype(np.float64), b.astype(np.float64)
        finite = np.isfinite(a)
        if not np.array_equal(a[~finite], b[~finite], equal_nan=True) or not np.isfinite(b[finite]).all():
            found[path] = float("inf")
            continue
        scale = np.abs(a[finite]).max(initial=0) or 1.0
        found[path] = float(np.abs(a[finite] - b[finite]).max(initial=0) / scale)
    return found


def recorded(
    translator: Translator, source: Sequence[int], target: Sequence[int], changes: Sequence[Intervention] = ()
) -> dict[str, np.ndarray]:
    """What Python has at every hook path of the same run."""
    return record(translator.model, [source, [BOS, *target[:-1]]], changes)


def sources_of(translator: Translator, lines: Sequence[str]) -> list[list[int]]:
    return [[*translator.tokenizer.encode(line), EOS] for line in lines]


def greedily(translator: Translator, source: list[int], changes: Sequence[Intervention] = ()) -> tuple[int, ...]:
    return translator._decode([source], 1, 0.6, changes)[0].tokens


def strange_lines(count: int, rng: random.Random) -> list[str]:
    """Random characters from everywhere; and repeated ones, which can be cut in several ways that are equally good."""

    def characters() -> str:
        return "".join(chr(rng.randint(*rng.choice(RANGES))) for _ in range(rng.randint(1, 40)))

    def repeated() -> str:
        return "".join(rng.choice(REPEATED) * rng.randint(1, 6) for _ in range(rng.randint(1, 12)))

    lines = [rng.choice((characters, repeated))() for _ in range(count - len(HOSTILE))]
    # Two lone surrogates beside each other are one character to a browser, and in JSON.
    return [*HOSTILE, *(line.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass") for line in lines)]


def random_ids(translator: Translator, count: int, rng: random.Random) -> list[list[int]]:
    """Ids that no text need have: of all pieces, and of bytes that are parts of characters."""
    most = len(translator.tokenizer)
    return [
        [rng.randrange(*limits) for _ in range(rng.randint(1, 12))] for limits in [(0, most), (4, 260)] * (count // 2)
    ]


def compare_text(engine: Engine, translator: Translator, lines: Sequence[str]) -> Iterator[tuple[str, int]]:
    """What was compared, and how many of it differ: ids of lines and of strange ones, texts of ids."""
    rng = random.Random(0)
    tokenizer = translator.tokenizer
    all_lines = [*strange_lines(min(1000, max(len(lines) // 3, len(HOSTILE))), rng), *lines]
    ids = [tokenizer.encode(line) for line in all_lines]
    lists = [*random_ids(translator, 2000, rng), *ids]
    yield f"ids of {len(all_lines):,} lines", _unequal(ids, engine.ids(all_lines))
    yield f"texts of {len(lists):,} lists of ids", _unequal(map(tokenizer.decode, lists), engine.texts(lists))


def compare_runs(engine: Engine, translator: Translator, lines: Sequence[str]) -> Iterator[tuple[str, int]]:
    """The same of every array of the run on each line and its greedy translation."""
    sources = sources_of(translator, lines)
    worst = []
    for source in sources:
        target = greedily(translator, source)
        worst.append(max(differences(recorded(translator, source, target), engine.trace(source, target)).values()))
    furthest = f"of {len(worst)}; furthest {max(worst, default=0):.1e}"
    yield f"runs with an array further than {CLOSE} away, {furthest}", sum(distance > CLOSE for distance in worst)


def compare_translations(
    engine: Engine, translator: Translator, lines: Sequence[str], start: int, progress: Callable[[str], None] = print
) -> Iterator[tuple[str, int]]:
    """The same of translations, greedy and by beam search, from line `start` on; says every few how far it is."""
    differ = {"greedy": 0, "best of beam 4": 0, "all four of beam 4": 0}
    for begin in range(start, len(lines), SOME):
        sources = sources_of(translator, lines[begin : begin + SOME])
        # One source a batch, as the app decodes.
        found = [beam_search(translator.model, [source], 4, fast=translator.fast)[0] for source in sources]
        ours = [[hypothesis.tokens for hypothesis in four] for four in found]
        theirs = engine.translate(sources, 4)
        singles = [found[0] for found in engine.translate(sources, 1)]
        differ["greedy"] += _unequal([greedily(translator, source) for source in sources], singles)
        differ["best of beam 4"] += _unequal([four[0] for four in ours], [four[0] for four in theirs])
        differ["all four of beam 4"] += _unequal(ours, theirs)
        counts = ", ".join(f"{name} {count}" for name, count in differ.items())
        progress(f"{begin + len(sources):>6} of {len(lines):,} translated; differ: {counts}")
    for name, count in differ.items():
        yield f"{name}, translations of {max(len(lines) - start, 0):,} lines", count


DRAWN = (
    {"temperature": 1.0},
    {"temperature": 0.7, "topK": 50},
    {"temperature": 1.3, "topP": 0.9},
    {"temperature": 1.0, "topK": 200, "topP": 0.5},
)
"""ways of drawing the next token"""
NEW_TOKENS = 20


def prompts_of(model: LanguageModel, lines: Sequence[str], rng: random.Random) -> list[list[int]]:
    """The first words of each line, as ids."""
    words = [line.split() for line in lines]
    return [model._read(" ".join(each[: rng.randint(1, max(1, len(each) - 1))])) for each in words]


def drawn_by_python(model: LanguageModel, prompt: Mapping[str, Any], most: int) -> list[int]:
    """What the seed of a prompt, as `Engine.write` has it, draws in Python."""
    settings = Sampling(prompt["temperature"], prompt.get("topK", 0), prompt.get("topP", 1.0))
    numbers = torch.Generator().manual_seed(prompt["seed"])
    return model._write(prompt["ids"], most, settings, numbers, ())[0]


def compare_texts(engine: Engine, model: LanguageModel, lines: Sequence[str], traces: int) -> Iterator[tuple[str, int]]:
    """What was compared of a language model, and how many of it differ: what it writes, and the arrays of its runs."""
    prompts = prompts_of(model, lines, random.Random(0))
    expected = [model._write(prompt, NEW_TOKENS, None, torch.Generator(), ())[0] for prompt in prompts]
    found = engine.write([{"ids": prompt} for prompt in prompts], NEW_TOKENS)
    yield f"greedy continuations of {len(prompts)} beginnings", _unequal(expected, found)
    drawn = [{"ids": ids, "seed": i, **DRAWN[i % len(DRAWN)]} for i, ids in enumerate(prompts)]
    expected = [drawn_by_python(model, prompt, NEW_TOKENS) for prompt in drawn]
    yield f"seeded continuations of {len(prompts)} beginnings", _unequal(expected, engine.write(drawn, NEW_TOKENS))
    read = [model.model.frame(model.tokenizer.encode(line)) for line in lines[:traces]]
    single = [_with_bytes(record(model.model, [ids])) for ids in read]
    double = [record(deepcopy(model.model).double(), [ids]) for ids in read]
    theirs = [engine.trace_text(ids) for ids in read]
    pairs = zip(double, single, theirs, strict=True)
    far = [(max(differences(d, s).values()), max(differences(d, t).values())) for d, s, t in pairs]
    furthest = [max(each) for each in zip(*far, strict=True)]
    what = f"{len(read)} runs, furthest from double precision: PyTorch {furthest[0]:.1e}, the page {furthest[1]:.1e}"
    yield f"of {what}; those where the page is further than PyTorch", sum(page > torch for torch, page in far)


def _with_bytes(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Masks as the page has them."""
    return {path: array.view(np.uint8) if array.dtype == bool else array for path, array in arrays.items()}


def _unequal(ours: Any, other: Any) -> int:
    return sum(one != two for one, two in zip(ours, other, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--lines", type=int, default=10_000)
    parser.add_argument("--translations", type=int, default=1000, help="or continuations")
    parser.add_argument("--traces", type=int, default=30)
    parser.add_argument("--checkpoint", default="en-de")
    parser.add_argument("--start", type=int, default=0, help="translations to leave out, of a run that was stopped")
    options = parser.parse_args()
    text = options.file.read_text(encoding="utf-8").splitlines()
    lines = random.Random(0).sample([line.split("\t")[0] for line in text], min(options.lines, len(text)))
    differing = 0
    with chromium() as browser:
        engine = Engine.open(browser, ROOT / "checkpoints" / options.checkpoint)
        translator = load_checkpoint(options.checkpoint, "cpu")
        say = functools.partial(print, flush=True)
        comparisons = [compare_text(engine, translator, lines)]
        if isinstance(translator, LanguageModel):
            comparisons += [compare_texts(engine, translator, lines[: options.translations], options.traces)]
        else:
            comparisons += [
                compare_runs(engine, translator, lines[: options.traces]),
                compare_translations(engine, translator, lines[: options.translations], options.start, say),
            ]
        for what, count in itertools.chain.from_iterable(comparisons):
            say(f"{count:>6} differ: {what}")
            differing += count
    raise SystemExit(int(differing > 0))


if __name__ == "__main__":
    main()
