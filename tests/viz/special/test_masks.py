"""Pictures of masks show the run's own numbers, and masked cells have no colour (claims 11 to 13 and 18)."""

from model.trace import Trace
from viz.heatmap import row_names


def test_a_decoder_row_says_what_it_reads_and_predicts(trace: Trace) -> None:
    rows = row_names(trace.tgt_tokens, trace.next_tokens)
    assert rows[0].startswith("0 <s> → ")
    assert row_names(("▁Tor", ","), (",", "▁weil")) == ["0 Tor → “,”", "1 “,” → weil"]
    assert row_names(trace.src_tokens, None)[-1].endswith("</s>")
