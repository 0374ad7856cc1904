"""What each part of a model wrote: its residual stream, scores and logits as sums over embedding, heads and the rest.

With the scale of each norm frozen at its value in the run, all that lies between a part and the stream is linear, so
the sums are exact (Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits").
"""

from model.analysis.written.of_logits import logit_parts, logit_parts_by_key, logit_parts_of_all
from model.analysis.written.of_scores import score_parts, side_parts
from model.analysis.written.of_stream import head_of_part, last_parts, shares_of_last, stages, total, written_parts

__all__ = [
    "head_of_part",
    "last_parts",
    "logit_parts",
    "logit_parts_by_key",
    "logit_parts_of_all",
    "score_parts",
    "shares_of_last",
    "side_parts",
    "stages",
    "total",
    "written_parts",
]
