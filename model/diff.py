"""The older name of `model.compare` for the files of two runs: python -m model.diff before.npz after.npz."""

from model.command_line import run_command
from model.compare import compare_runs

if __name__ == "__main__":
    run_command(compare_runs)
