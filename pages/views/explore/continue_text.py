"""Continue a text: how probable each token was, those given and the model's own, and what else it considered."""

from dataclasses import replace

from model.checkpoints.language_model import LanguageModel
from model.generation.sampling import sampling_distribution
from model.language import joined, sentence
from model.needs import Need
from model.run import Run
from pages.text import names_in
from pages.views import Result, answer, view
from pages.views.shared import POSITION, written_tokens
from viz.tokens import labels

WHOSE = names_in("roles")
"""role -> whose its tokens are"""


@view(
    "How sure the model was",
    code=(LanguageModel.continue_text, LanguageModel.log_probability, sampling_distribution),
    needs=(Need.LANGUAGE_MODEL,),
)
def certainty(run: Run, position: int = POSITION) -> Result:
    """The probability of each token of the text, of what was given and of what follows, and the alternatives."""
    trace, given = run.trace, run.trace.first_written
    roles, logs = trace.streams["decoder"].tokens.roles or (), trace.target_log_probabilities
    result = written_tokens(
        run,
        position,
        sentence("Tokens, their ids, and the probability the model gave each; click one for its alternatives"),
    )
    facts = {
        "roles": joined(sentence(whose, count=roles.count(role)) for role, whose in WHOSE.items() if role in roles)
        if roles
        else "",
        "tokens": len(roles),
        "given": given,
        "given_sum": logs[:given].sum(),
        "given_mean": -logs[:given].mean() if given else None,
        "written": len(logs) - given,
        "written_sum": logs[given:].sum(),
    }
    return replace(result, facts=result.facts | facts)


@answer
def one_line(run: Run) -> Result:
    """How many tokens the model wrote after the text, and how sure it was of the first."""
    trace, given = run.trace, run.trace.first_written
    written = len(trace.next_ids) - given
    first = {"first": labels(trace.next_tokens)[given], "p": trace.target_probabilities[given]} if written else {}
    return Result(facts={"written": written, "given": given, "asked": run.request.continuation is not None} | first)
