"""What the person who starts the app may say: `streamlit run app.py -- --model NAME --model FOLDER --download`, or
`--trace run.npz`."""

import os
from argparse import ArgumentParser
from collections.abc import Sequence


def read_arguments(arguments: Sequence[str]) -> None:
    """Let visitors open the models that the command line names, which alone can download one, and the run in a file.

    Raises:
        SystemExit: transformers is missing, a model is not there or could not be downloaded, the file is no trace, or
            its run cannot be computed again; the sentence says why.
    """
    parser = ArgumentParser(prog="streamlit run app.py --", allow_abbrev=False)
    parser.add_argument("--model", action="append", default=[], help="a folder, or a name in the Hugging Face cache")
    parser.add_argument("--download", action="store_true", help="bring models that are in neither into the cache first")
    parser.add_argument("--trace", help="a file that trace.save() wrote: the app begins with its run")
    said = parser.parse_args(arguments)
    if said.model or said.download:
        # Imported here, because importing torch takes seconds.
        from model.checkpoints import store

        try:
            store.offer_models(said.model, said.download)
            for name in said.model:
                store.find_offered_model(name)
        except store.CheckpointError as error:
            raise SystemExit(f"--model: {error}") from None
    if path := said.trace or os.environ.get("ATTENTION_EXPLORER_TRACE"):
        from pages.compute import trace_file

        try:
            trace_file.open_trace_file(path)
        except (OSError, ValueError) as error:
            raise SystemExit(f"--trace: {error}") from None
        os.environ[trace_file.TRACE_VARIABLE] = path
