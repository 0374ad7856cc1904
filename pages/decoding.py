"""Decoding: a text written step by step, greedily, with beam search, by sampling, and what the cache saves."""

from model.analysis.view_arrays import step_arrays
from model.generation.beam_tree import BeamTree
from model.generation.sampling import draw, sample, sampling_distribution
from model.generation.search import beam_steps, greedy, length_penalty
from model.generation.step_cost import cached_step, time_steps, uncached_step
from model.generation.steps import steps_of
from pages.frame.open_page import open_page
from pages.parts.beam_search import show_beam, show_greedy
from pages.parts.decoding import choose_step, show_step, wording
from pages.parts.sampling import show_cost, show_sampling, show_temperatures
from pages.widgets.controls import tabs
from pages.widgets.explain import explain, show_code
from pages.widgets.export import Picture, export
from pages.widgets.proof_strip import proof_strip
from pages.widgets.snippet import Call
from viz.charts.translate import probability_table

TABS = {
    "Greedy": show_greedy,
    "Beam": show_beam,
    "Sampling": show_sampling,
    "Two temperatures": show_temperatures,
    "Cost": show_cost,
}

view = open_page(__file__)
trace = view.trace
step = choose_step(view)
figure, probabilities, alignment = show_step(view, step)
tabs(TABS, "part", view, step, default="Beam")
explain(
    f"The decoder generates from left to right: each step reads the {wording(trace).given} and everything generated so "
    "far, and gives every token of the vocabulary a probability. Decoding turns these into text: greedy decoding "
    "takes the most probable token of each step, beam search keeps several prefixes, sampling draws at random.",
    r"\log p(Y \mid X) = \sum_{t} \log p(y_t \mid y_1 \dots y_{t-1},\, X)",
    "3, 3.4 and 6.1",
)
show_code(
    steps_of(view.translator.model),
    greedy,
    beam_steps,
    BeamTree,
    length_penalty,
    sampling_distribution,
    draw,
    sample,
    cached_step,
    uncached_step,
    time_steps,
)
export(
    view,
    f"decoding-step-{step}",
    Call(step_arrays, trace, trace.first_written + step, alignment.layer, alignment.head),
    probability_table(trace.next_tokens, trace.next_ids, trace.target_probabilities),
    (Picture(f"Next token at step {step}", "decoding-next", figure),),
)
proof_strip(view)
