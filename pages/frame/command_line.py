"""What the person who starts the app may say: `streamlit run app.py -- --model NAME --model FOLDER --download`."""

from argparse import ArgumentParser
from collections.abc import Sequence


def offer_models(arguments: Sequence[str]) -> None:
    """Let visitors open the models of others that the command line names; this alone can download one.

    Raises:
        CheckpointError: transformers is missing, or a model could not be downloaded.
    """
    parser = ArgumentParser(prog="streamlit run app.py --", allow_abbrev=False)
    parser.add_argument("--model", action="append", default=[], help="a folder, or a name in the Hugging Face cache")
    parser.add_argument("--download", action="store_true", help="bring models that are in neither into the cache first")
    said = parser.parse_args(arguments)
    if said.model or said.download:
        # Imported here, because importing torch takes seconds.
        from model.checkpoints import store

        store.offer_models(said.model, said.download)
