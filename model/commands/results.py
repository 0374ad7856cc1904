"""Write docs/results.md from what the checkpoints' folders say: sizes, hours, scores, studies.

python -m model.commands.results

Nothing is measured here. Parameters follow from config.json, the rest stands in metrics.json, log.csv and the studies'
tables; what a score is held against is named with the command that measured it.
"""

import argparse
import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from model.background.sizes import count_parameters
from model.checkpoints.card import in_digits, read_card
from model.checkpoints.files import read_text
from model.checkpoints.store import checkpoint_folder, stored_config
from model.command_line import run_command

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


YARDSTICKS = {
    "en-de": Yardstick("tatoeba-dev", "BLEU", "OPUS-MT transformer-big reports 43.7 on another Tatoeba set"),
    "multi30k-tiny": Yardstick(
        "multi30k-test2016",
        "lower-cased, normalised, tokenised BLEU",
        "text-only Transformer-Tiny, 2.6M parameters (Wu et al. 2021)",
        41.02,
    ),
    "everyday-lm": Yardstick(
        "both",
        "bits per byte",
        "interpolated, modified Kneser-Ney 5-gram model of the same text and pieces "
        "(`python -m tests.bench.kneser_ney`)",
        1.3482,
    ),
    "everyday-lm-2017": Yardstick("both", "bits per byte", "everyday-lm after as many steps on the same text", 1.2936),
    "everyday-mlm": Yardstick(
        "both",
        "masked-token accuracy",
        "5-gram models, on single hidden pieces (`python -m tests.bench.masked_guesses`): see the card",
    ),
}


def main(arguments: list[str] | None = None) -> None:
    """Write the page."""
    argparse.ArgumentParser(prog="python -m model.commands.results", description="Write docs/results.md.").parse_args(
        arguments
    )
    PAGE.write_text(results_page(), encoding="utf-8")


def results_page() -> str:
    """Markdown: the shipped checkpoints, what each part since 2017 bought, and our own Table 3."""
    studies = checkpoint_folder() / "studies"
    return "\n".join(
        [
            "# Results",
            "",
            "Written by `python -m model.commands.results` from the files in `checkpoints/`. How a number was measured",
            "stands in the model cards; how our layers compare with PyTorch's and Hugging Face's, in",
            "[How it is verified](verification.md).",
            "",
            "## Checkpoints",
            "",
            *_table(
                ("checkpoint", "family", "parameters", "file", "hours", "score", "yardstick"),
                [_checkpoint_row(name) for name in YARDSTICKS],
                right=(2, 3, 4),
            ),
            "",
            "Hours: by the clock on two CPU cores, beside other work, as `log.csv` has them.",
            "",
            "## What each part since 2017 buys",
            "",
            "Small language models that read the same text in the same order, one seed each",
            "([how](../checkpoints/studies/README.md)). Lower is better.",
            "",
            *_table(
                ("run", "parameters", "tokens", "bits per byte", "against 2017"),
                list(_part_rows(_read(studies / "since_2017.csv"))),
                right=(1, 2, 3, 4),
            ),
            "",
            "## Our own Table 3",
            "",
            "Small translators that differ from `base` in one choice each; means over the seeds.",
            "",
            *_table(
                ("run", "parameters", "seeds", "BLEU", "perplexity", "minutes a run"),
                list(_ablation_rows(_read(studies / "ablations.csv"))),
                right=(1, 2, 3, 4, 5),
            ),
            "",
        ]
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


def _part_rows(rows: Sequence[Mapping[str, str]]) -> Iterable[tuple[str, ...]]:
    ends = {row["run"]: row for row in rows}  # the last row of each run
    base = float(ends["part-2017"]["dev_bits_per_byte"])
    for run, end in ends.items():
        bits = float(end["dev_bits_per_byte"])
        against = "" if run == "part-2017" else _percent(bits / base - 1)
        yield run, f"{int(end['parameters']):,}", f"{int(end['tokens']):,}", f"{bits:.4f}", against


def _ablation_rows(rows: Sequence[Mapping[str, str]]) -> Iterable[tuple[str, ...]]:
    for name in dict.fromkeys(row["row"] for row in rows):
        runs = [row for row in rows if row["row"] == name]
        bleu, perplexity, minutes = (mean(float(run[key]) for run in runs) for key in ("bleu", "perplexity", "minutes"))
        parameters = int(runs[0]["parameters"])
        yield name, f"{parameters:,}", str(len(runs)), f"{bleu:.2f}", f"{perplexity:.2f}", f"{minutes:.1f}"


def _percent(share: float) -> str:
    return f"{share:+.1%}".replace("-", "−")


def _read(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(read_text(path).splitlines()))


def _table(header: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int]) -> list[str]:
    """Lines of a Markdown table; columns `right` are aligned on the right."""
    rule = ["---:" if column in right else "---" for column in range(len(header))]
    return [f"| {' | '.join(cells)} |" for cells in (header, rule, *rows)]


if __name__ == "__main__":
    run_command(main)
