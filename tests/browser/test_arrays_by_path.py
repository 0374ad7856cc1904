"""What a script makes of a run's arrays in Chromium is what Python makes of them, whichever way the arrays come."""

import base64
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from model.checkpoints.translator import Translator
from model.run import Run
from model.trace import Attention, Trace
from pages.views.explore.translate import explore
from tests.model.checkpoints.test_language_model import opened
from tests.viz.payload import decode, unpack
from viz.canvas.mosaic import Group, mosaic
from viz.drawing import Drawing, sources
from viz.steps.head import Choice, head_of
from viz.steps.steps import all_steps, picture

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

Array = np.ndarray
HEAD = 1
READ = """
const { parse, stringify } = JSON;
// Numbers as JSON has them, and infinity as a text.
const plain = (value) => parse(stringify(value, (_, each) =>
  ArrayBuffer.isView(each) ? Array.from(each, (number) => (Number.isFinite(number) ? number : String(number))) : each));
window.bytes = (code) => Uint8Array.from(atob(code), (letter) => letter.charCodeAt(0)).buffer;
const numbers = ({ values, shape, masks }) => ({ values: (masks ? Uint8Array : Float32Array).from(values), shape });
window.given = ([header, arrays]) =>
  ({ header, arrays: Object.fromEntries(Object.entries(arrays).map(([name, array]) => [name, numbers(array)])) });
window.drawn = (data) => {
  const { header, arrays } = unpack(data);
  return plain(equationsOf(header, arrays));
};
"""
GROUPS = """
window.coded = (data) => {
  const { header, arrays } = unpack(data);
  const unit = codeGroups(header.groups, arrays);
  const all = (layers) => layers.flatMap((layer) => [...layer]);
  return { unit, groups: header.groups.map(({ codes, largest, masked }) => ({ codes: all(codes), largest, masked })) };
};
// The codes that the pixels of a head show, -1 where they are hatched.
window.pixels = (codes, start, [rows, columns], [width, height]) => {
  const [image, hatch] = [new ImageData(width, height), new Uint32Array(HATCH * HATCH).fill(-1)];
  const spans = [pixelSpans(rows, height), pixelSpans(columns, width)];
  const table = Uint32Array.from({ length: CODES }, (_, code) => code);
  fillHead(image, Uint16Array.from(codes), start, columns, ...spans, table, hatch);
  return [...new Int32Array(image.data.buffer)];
};
"""


@pytest.fixture(scope="module")
def page(browser: "Browser") -> Iterator["Page"]:
    """A page with the scripts of the matrices and of the mosaic."""
    page = browser.new_page()
    for component, more in (("matrices", READ), ("mosaic", GROUPS)):
        script, _ = sources(component)
        page.add_script_tag(content=f"{{ {script.replace('export default ', '')}\n{more} }}")
    yield page
    page.close()


@pytest.fixture(scope="module")
def traces(translator: Translator) -> dict[str, Trace]:
    """Of a translator, and of a model that turns its queries and keys and learned no biases."""
    translated = translator.trace("a dog and a cat", target="Ein Hund mit einer Katze.")
    return {"translator": translated, "rotated": opened(translator.tokenizer).trace("a dog and a cat")}


def coded(drawing: Drawing) -> str:
    return base64.b64encode(drawing.data).decode()


def whole_arrays(attention: Attention, asked: dict[str, Array]) -> dict[str, Any]:
    """All of each array of which a picture asks a part, as a page without Python has them."""
    names = {factor.partition("[")[0] for name in asked for factor in name.split(" @ ")}
    arrays = {name: attention.array(name.removeprefix(f"{attention.path}.")) for name in names}
    return {
        name: {"values": array.ravel().tolist(), "shape": array.shape, "masks": array.dtype == bool}
        for name, array in arrays.items()
    }


def range_of(arrays: list[Array], robust: bool) -> float:
    """The end of a range of colours: the largest magnitude, or without outliers the 99.5 % quantile."""
    sizes = np.abs(np.concatenate([array.ravel() for array in arrays]))
    limit = float(np.quantile(sizes, 0.995))
    return limit if robust and sizes.max() > 1.5 * limit > 0 else float(sizes.max()) or 1.0


@pytest.mark.parametrize("as_bytes", [True, False], ids=["from Python", "from a page"])
@pytest.mark.parametrize(
    ("name", "kind"), [("translator", "cross"), ("translator", "decoder_self"), ("rotated", "decoder_self")]
)
def test_both_readers_of_the_table_make_the_same_matrices(
    page: "Page", traces: dict[str, Trace], name: str, kind: str, as_bytes: bool
) -> None:
    attention = traces[name].attention(kind, traces[name].kind(kind).layers[-1])
    head = head_of(attention, HEAD, tuple(f"note {i}" for i, _ in enumerate(attention.query_tokens)))
    for step in range(len(all_steps())):
        drawing = picture(step, head, Choice(), "title")
        header, sent = unpack(drawing)
        given = ("bytes", coded(drawing)) if as_bytes else ("given", [header, whole_arrays(attention, sent)])
        equations = page.evaluate("([read, data]) => drawn(window[read](data))", list(given))
        _, expected = decode(drawing)
        parts = [part for equation in equations for part in equation if isinstance(part, dict)]
        assert [*dict.fromkeys(part["symbol"] for part in parts)] == [*expected]
        for part in parts:
            row = expected[part["symbol"]]
            shape = part["rows"]["size"], part["columns"]["size"]
            values = np.array([float(str(v).replace("Infinity", "inf")) for v in part["values"]]).reshape(shape)
            np.testing.assert_allclose(values, row["values"], rtol=1e-6, atol=1e-6, err_msg=part["symbol"])
            # X is the input of queries and, of a self-attention, also of keys.
            for axis in ("rows", "columns") if part["symbol"] != "X" else ():
                assert part[axis]["labels"] == [*row[axis]["labels"]]
                assert part[axis]["name"] == row[axis]["name"]
            if row["allowed"] is not None:
                np.testing.assert_array_equal(np.reshape(part["allowed"], shape), row["allowed"])
            if "scale" not in row:
                limits = header["ranges"][row["range"]]
                arrays = [head.array(filled(array, header["facts"])) for array in (*limits.values(),)[0]]
                assert part["high"] == pytest.approx(range_of(arrays, "robust" in limits), rel=1e-5)
            assert (part["low"], part["result"]) == (
                -part["high"] if "scale" not in row else 0,
                bool(row.get("result")),
            )


def filled(name: str, facts: dict[str, Any]) -> str:
    return name.format(**facts)


@pytest.mark.parametrize("name", ["translator", "rotated"])
def test_the_boxes_of_explore_have_the_colours_of_their_own_numbers(
    page: "Page", traces: dict[str, Trace], name: str
) -> None:
    run = Run.of(None, traces[name], traces[name].kinds[-1].name, head=HEAD)
    drawing = explore(run, query=2, key=1).shows["explore"].drawing
    equations, (_, expected) = page.evaluate("(code) => drawn(bytes(code))", coded(drawing)), decode(drawing)
    for part in (part for equation in equations for part in equation if isinstance(part, dict)):
        row = expected[part["symbol"]]
        if part["scale"] != "RdBu_r":
            assert (part["low"], part["high"]) == (0, 1)
        elif part["symbol"] != "masked":
            shared = ("scores", "scaled") if part["symbol"] in ("scores", "scaled") else (part["symbol"],)
            arrays = [expected[symbol]["values"] for symbol in shared if symbol in expected]
            assert -part["low"] == part["high"] == pytest.approx(range_of(arrays, robust=False))
            assert [row["values"].shape] == [(part["rows"]["size"], part["columns"]["size"])]


@pytest.mark.parametrize("as_bytes", [True, False], ids=["from Python", "from a page"])
def test_the_mosaics_codes_are_made_of_patterns_and_masks(
    page: "Page", traces: dict[str, Trace], as_bytes: bool
) -> None:
    trace = traces["translator"]
    groups = []
    for kind in trace.kinds:
        layers = [trace.attention(kind.name, layer) for layer in kind.layers]
        weights, masks = (np.stack([getattr(layer, name) for layer in layers]) for name in ("pattern", "mask"))
        texts = layers[0].query_tokens, layers[0].key_tokens
        groups.append(Group(kind.name, kind.title, weights, *texts, masks, paths=[layer.path for layer in layers]))
    drawing = mosaic(groups)
    header, arrays = unpack(drawing)
    whole = {
        name: {"values": trace.array(name).ravel().tolist(), "shape": array.shape} for name, array in arrays.items()
    }
    whole = {name: array | {"masks": name.endswith("mask")} for name, array in whole.items()}
    given = ["bytes", coded(drawing)] if as_bytes else ["given", [header, whole]]
    made = page.evaluate("([read, data]) => coded(window[read](data))", given)
    for group, drawn in zip(groups, made["groups"], strict=True):
        codes = np.reshape(drawn["codes"], group.weights.shape)
        np.testing.assert_array_equal(codes > 0, group.allowed)
        np.testing.assert_allclose(
            np.where(codes, (codes - 1) * made["unit"], 0), group.weights, atol=0.51 * made["unit"]
        )
        assert drawn["masked"] == (not group.allowed.all())
    assert max(drawn["largest"] for drawn in made["groups"]) == 65534


def _cells_of(cells: int, pixels: int, at: int) -> slice:
    """The cells along a side that a pixel stands for: at least one."""
    start = at * cells // pixels
    return slice(start, max((at + 1) * cells // pixels, start + 1))


@pytest.mark.parametrize("size", [(4, 3), (11, 7), (3, 8), (40, 40)], ids=lambda size: "{} by {}".format(*size))
def test_a_pixel_shows_the_largest_of_its_cells_and_is_hatched_where_all_are_masked(
    page: "Page", size: tuple[int, int]
) -> None:
    width, height = 5, 6
    codes = np.random.default_rng(0).integers(0, 4, (2, *size)) ** 7
    (rows, columns), cells = size, codes[1]
    down = [_cells_of(rows, height, at) for at in range(height)]
    across = [_cells_of(columns, width, at) for at in range(width)]
    largest = [cells[one, other].max() for one in down for other in across]
    expected = [code or -1 for code in largest]
    given = [codes.ravel().tolist(), rows * columns, list(size), [width, height]]
    assert page.evaluate("(given) => pixels(...given)", given) == expected


@pytest.mark.parametrize("cells", [1, 7, 8, 9, 16, 17])
@pytest.mark.parametrize("hidden", [None, 0, -1], ids=["nothing", "the first cell", "the last cell"])
def test_a_mask_hides_what_it_says_however_many_bits_its_last_byte_has(
    page: "Page", cells: int, hidden: int | None
) -> None:
    allowed = np.ones((1, 1, 1, cells), bool)
    if hidden is not None:
        allowed[..., hidden] = False
    group = Group("cross", "Cross", np.full(allowed.shape, 0.5, np.float32), ["q"], ["k"] * cells, allowed)
    (made,) = page.evaluate("(code) => coded(bytes(code))", coded(mosaic([group])))["groups"]
    assert [code > 0 for code in made["codes"]] == allowed.ravel().tolist()
    assert made["masked"] == (hidden is not None)


def test_a_few_outliers_do_not_bleach_a_picture(page: "Page") -> None:
    def robust(values: Array) -> list[float]:
        data = {"range": {"robust": ["a"]}}, {"a": {"values": values.tolist(), "shape": values.shape}}
        header = {"ranges": data[0], "axes": {"one": {"title": ""}}}
        header["equations"] = [[{"symbol": "A", "array": "a", "rows": "one", "columns": "one", "range": "range"}]]
        ((part,),) = page.evaluate("(data) => drawn(given(data))", [header, data[1]])
        return [part["low"], part["high"]]

    ordinary = np.linspace(-1, 1, 1000)
    assert robust(ordinary) == [-1, 1]
    assert robust(np.append(ordinary, 50.0))[1] < 1.1
    assert robust(np.zeros(4)) == [-1, 1]


def test_an_array_that_is_not_there_is_named(page: "Page") -> None:
    header = {"equations": [[{"symbol": "Q", "array": "q[3]"}]], "path": "decoder.layers.0.cross_attn", "axes": {}}
    read = "(header) => { try { drawn({ header, arrays: {} }); } catch ({ message }) { return message; } }"
    assert "decoder.layers.0.cross_attn.q[3]" in page.evaluate(read, header)
