"""What the command lines share: numbers within limits, and a sentence instead of a traceback."""

import math
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from typing import NoReturn

from model.extras import say_missing


def command_parser(command: str, description: str) -> ArgumentParser:
    """Of the words after `python -m model.COMMAND`."""
    return ArgumentParser(prog=f"python -m model.{command}", description=description)


def whole_number(least: int) -> Callable[[str], int]:
    """The type of an option that takes a whole number, `least` or more."""

    def read(text: str) -> int:
        if not text.strip().removeprefix("+").isdecimal() or not text.isascii() or int(text) < least:
            raise ArgumentTypeError(f"must be a whole number, {least} or more, got {text!r}")
        return int(text)

    return read


def real_number(least: float, finite: bool = True) -> Callable[[str], float]:
    """The type of an option that takes a number, `least` or more; infinity only if it need not be `finite`."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not value >= least or (finite and value == math.inf):
            raise ArgumentTypeError(f"must be a number, {least:g} or more, got {text!r}")
        return value

    return read


def run_command(main: Callable[[], int | None]) -> NoReturn:
    """Run a command and exit: with 1 and one sentence where its input is at fault, with no traceback."""
    try:
        sys.exit(main())
    except ModuleNotFoundError as error:
        sys.exit(f"error: {say_missing(error)}")
    except (ValueError, OSError) as error:
        sys.exit(f"error: {error}")
