"""Write docs/results.md from what the checkpoints' folders say: sizes, hours, scores, studies.

python -m model.commands.results

Nothing is measured here. Parameters follow from config.json, the rest stands in metrics.json, log.csv and the studies'
tables; what a score is held against is named with the command that measured it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from model.background.sizes import count_parameters
from model.beside import read_beside
from model.checkpoints.card import in_digits, read_card
from model.checkpoints.store import checkpoint_folder, stored_config
from model.command_line import command_parser, run_command

PAGE = Path(__file__).parents[2] / "docs" / "results.md"
FAMILIES = {"encoder_decoder": "encoder-decoder", "decoder": "decoder-only", "encoder": "encoder-only"}


@dataclass(frozen=True)
class Yardstick:
    """Which score of a checkpoint is in the table, and what it is held against."""

    dataset: str
    metric: str
    what: str
    value: float | None = None
    """of the same metric on the same text; None: nothing is directly comparable"""


YARDSTICKS = {name: Yardstick(**row) for name, row in read_beside(__file__).items()}
"""by checkpoint"""


def main(arguments: list[str] | None = None) -> None:
    """Write the page."""
    command_parser("commands.results", "Write docs/results.md.").parse_args(arguments)
    PAGE.write_text(results_page(), encoding="utf-8")


def results_page() -> str:
    """Markdown: the shipped checkpoints, what each part since 2017 bought, and our own Table 3."""
    studies = checkpoint_folder() / "studies"
    return (
        Path(__file__)
        .with_suffix(".md")
        .read_text("utf-8")
        .format(
            checkpoints=_table(
                ("checkpoint", "family", "parameters", "file", "hours", "score", "yardstick"),
                map(_checkpoint_row, YARDSTICKS),
                right=(2, 3, 4),
            ),
            parts=_table(
                ("run", "parameters", "tokens", "bits per byte", "against 2017"),
                _part_rows(pd.read_csv(studies / "since_2017.csv")),
                right=(1, 2, 3, 4),
            ),
            ablations=_table(
                ("run", "parameters", "seeds", "BLEU", "perplexity", "minutes a run"),
                _ablation_rows(pd.read_csv(studies / "ablations.csv")),
                right=(1, 2, 3, 4, 5),
            ),
        )
    )


def _checkpoint_row(name: str) -> tuple[str, ...]:
    config, card, yardstick = stored_config(name), read_card(checkpoint_folder() / name), YARDSTICKS[name]
    (score,) = (s for s in card.scores if (s.dataset, s.metric) == (yardstick.dataset, yardstick.metric))
    against = yardstick.what
    if yardstick.value is not None:
        against = f"{yardstick.value:g}, {_percent(score.value / yardstick.value - 1)}: {against}"
    return (
        f"[{name}](../checkpoints/{name}/README.md)",
        FAMILIES[config.family],
        f"{sum(count_parameters(config).values()):,}",
        f"{card.files['model.safetensors'] / 1e6:.1f} MB",
        f"{card.log[-1]['hours']:.1f}",
        f"{in_digits(score.metric, score.value)} {score.metric} ({score.dataset})",
        against,
    )


def _part_rows(logs: pd.DataFrame) -> Iterable[tuple[str, ...]]:
    ends = logs.groupby("run", sort=False).last()
    base = ends.dev_bits_per_byte["part-2017"]
    for run, end in ends.iterrows():
        bits = end.dev_bits_per_byte
        against = "" if run == "part-2017" else _percent(bits / base - 1)
        yield run, f"{end.parameters:,.0f}", f"{end.tokens:,.0f}", f"{bits:.4f}", against


def _ablation_rows(runs: pd.DataFrame) -> Iterable[tuple[str, ...]]:
    groups = runs.groupby("row", sort=False)
    for name, mean in groups.mean().iterrows():
        numbers = (f"{mean[each]:.{digits}f}" for each, digits in (("bleu", 2), ("perplexity", 2), ("minutes", 1)))
        yield name, f"{mean.parameters:,.0f}", str(len(groups.groups[name])), *numbers


def _percent(share: float) -> str:
    return f"{share:+.1%}".replace("-", "−")


def _table(header: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int]) -> str:
    """A Markdown table; columns `right` are aligned on the right."""
    rule = ["---:" if column in right else "---" for column in range(len(header))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *rows))


if __name__ == "__main__":
    run_command(main)
