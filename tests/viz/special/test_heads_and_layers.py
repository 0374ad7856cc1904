"""The picture of a head and the table of heads show the numbers they are given, under the right names."""

import numpy as np

from model.analysis.heads.head_tables import TableOptions, head_tables
from model.trace import Trace
from viz.heatmap import cells_table, row_names
from viz.special.heads_and_layers import MAP_HEIGHT, group_texts, head_map, word_names, word_rows


def opened(trace: Trace, kind: str, layer: int = 1, head: int = 2) -> tuple:
    tables, attention = head_tables(trace, kind, TableOptions()), trace.attention(kind, layer)
    rows = word_names(attention.query_tokens, tables.queries)
    keys = word_names(attention.key_tokens, tables.keys)
    return rows, keys, tables.values[layer, head], tables.mask[layer, head]


def test_the_map_has_one_height_and_one_range_that_its_colour_bar_states() -> None:
    figure = head_map(["a"], ["b", "c"], np.array([[0.5, 1.5]]), np.ones((1, 2), bool), "weight", 2.0)
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (0, 2)
    assert "0 to 2" in figure.layout.coloraxis.colorbar.title.text
    assert figure.layout.height == MAP_HEIGHT


def test_a_word_is_written_as_it_is_read_and_keeps_its_number() -> None:
    tokens = ("▁didn", "'", "t", "▁", "<0xF0>", "<0x9F>", "<0xA6>", "<0x96>", "</s>")
    groups = ((0, 1, 2), (3, 4, 5, 6, 7), (8,))
    assert word_names(tokens, groups) == ["0 didn't", "1 🦖", "2 </s>"]
    assert group_texts(tokens, ((1,), (2,))) == ["'", "-t"]
    assert group_texts(("▁a", "▁b", "</s>"), ((0, 1, 2),)) == ["a b </s>"]


def test_a_decoder_row_says_what_it_reads_and_what_it_predicts() -> None:
    reads, predicts = ("<s>", "▁Kü", "che"), ("▁Kü", "che", "</s>")
    assert word_rows(reads, predicts, ((0, 1), (2,))) == ["0 <s> Kü → Küche", "1 -che → </s>"]


def test_cells_list_queries_first(trace: Trace) -> None:
    rows, keys, values, mask = opened(trace, "cross")
    table = cells_table(rows, keys, {"visible": mask, "value": values})
    assert np.array_equal(table["value"].to_numpy().reshape(values.shape), values)
    assert list(table["key"][: len(keys)]) == keys
    assert table["query"][len(keys)] == rows[1]


def test_a_row_of_a_map_has_a_number_and_a_mark_in_quotation_marks(trace: Trace) -> None:
    rows = row_names(trace.tgt_tokens, trace.next_tokens)
    assert rows[0].startswith("0 <s> → ")
    assert row_names(("▁Tor", ","), (",", "▁weil")) == ["0 Tor → “,”", "1 “,” → weil"]
    assert row_names(trace.src_tokens, None)[-1].endswith("</s>")
