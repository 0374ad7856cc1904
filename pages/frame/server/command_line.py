"""What the person who starts the app may say: `streamlit run app.py -- --model NAME --model FOLDER --download`, or
`--trace run.npz`."""

import os
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

import streamlit as st
from streamlit import config

LOCAL_VARIABLE = "ATTENTION_EXPLORER_LOCAL"
"""whether the person at this machine may open other models on it"""
OF_PROXIES = ("forwarded", "via", "x-forwarded-", "x-real-ip", "x-client-ip", "cf-", "true-client-ip")
"""how names of headers begin that a proxy adds"""


def is_at_this_machine() -> bool:
    """Whether the app was started with --local, and the request comes from this machine and through no proxy."""
    return os.environ.get(LOCAL_VARIABLE) == "1" and comes_straight_from_here(st.context.headers.to_dict())


def comes_straight_from_here(headers: Mapping[str, str]) -> bool:
    """Whether the headers of a request name this machine as the host, and no proxy."""
    names = {name.casefold(): text for name, text in headers.items()}
    return is_loopback(urlsplit(f"//{names.get('host', '')}").hostname or "") and not any(
        name.startswith(OF_PROXIES) for name in names
    )


def is_loopback(host: str) -> bool:
    """Whether nobody but this machine is called so."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def read_arguments(arguments: Sequence[str]) -> bool:
    """Let visitors open the models that the command line names, which alone can download one, and the run in a file.

    Returns:
        Whether to show the app in the browser once it is served.

    Raises:
        SystemExit: --local for an app that listens to other machines; transformers is missing, a model is not there or
            could not be downloaded, the file is not a trace, or its run cannot be recomputed; the sentence says why.
    """
    parser = ArgumentParser(prog="streamlit run app.py --", allow_abbrev=False)
    parser.add_argument(
        "--model", action="append", default=[], help="a folder, or a name in checkpoints/ or the Hugging Face cache"
    )
    parser.add_argument("--download", action="store_true", help="bring models that are in neither into the cache first")
    parser.add_argument("--trace", help="a file that trace.save() wrote: the app begins with its run")
    parser.add_argument(
        "--local", action="store_true", help="let the person at this machine open the models on it, in the box Model"
    )
    parser.add_argument("--browser", action="store_true", help="show the app in this machine's browser")
    said = parser.parse_args(arguments)
    if said.local and not is_loopback(config.get_option("server.address") or ""):
        raise SystemExit("--local: the app listens to other machines, too. Start it with --server.address localhost.")
    os.environ[LOCAL_VARIABLE] = "1" if said.local else ""
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
    return said.browser
