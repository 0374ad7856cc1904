"""The files that serve the app to others: what a container may do, and that the app needs no more."""

import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import closing
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.soak.client import Session
from tests.soak.server import ROOT, serving

OF_TOOLS = {".git", ".venv", "__pycache__", ".pytest_cache", ".ruff_cache", ".hypothesis", ".import_linter_cache"}
"""what the tests themselves write into the checkout"""


def written_last(folder: Path) -> dict[Path, float]:
    return {
        path: path.stat().st_mtime
        for path in folder.rglob("*")
        if not OF_TOOLS & set(path.parts) and path.is_file() and not path.is_symlink()
    }


def test_the_app_writes_nothing_in_its_folder(saved_checkpoints: Path, tmp_path: Path) -> None:
    before = written_last(ROOT)
    with serving(tmp_path / "log.txt", saved_checkpoints) as server, closing(Session(server.port)) as session:
        session.open()
        session.go("masks")
        assert session.problems() == []
    assert written_last(ROOT) == before


@pytest.mark.parametrize("name", ["app", "proxy"])
def test_a_container_of_compose_writes_nothing_and_gets_no_rights(name: str) -> None:
    service = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text("utf-8"))["services"][name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "cap_add" not in service
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["deploy"]["resources"]["limits"].keys() >= {"pids", "memory"}
    assert service["ulimits"]["nofile"] > 4096
    image_names_a_user = name == "app" and re.search(
        r"^USER (?!root|0)", (ROOT / "Dockerfile").read_text("utf-8"), re.M
    )
    assert image_names_a_user or not str(service["user"]).startswith("0")


def test_a_pod_of_kubernetes_writes_nothing_and_gets_no_rights() -> None:
    kinds = {each["kind"]: each for each in yaml.safe_load_all((ROOT / "deploy/kubernetes.yaml").read_text("utf-8"))}
    pod = kinds["Deployment"]["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in pod["containers"]:
        assert container["securityContext"] == {
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {mount["mountPath"] for mount in container["volumeMounts"]} == {"/tmp"}
    annotations = kinds["Ingress"]["metadata"]["annotations"]
    assert annotations["nginx.ingress.kubernetes.io/enable-access-log"] == "false"


OF_A_GPU = re.compile("nvidia|cuda|triton")
"""packages that PyTorch's other builds bring along, pinned by PyTorch itself"""


def needed(files: Iterable[Path]) -> Iterator[str]:
    """The packages that files of requirements name, and what these need in turn, by their normalised names."""
    lines = [line for file in files for line in file.read_text("utf-8").splitlines() if line and line[0] not in "#-"]
    waiting, seen = [Requirement(line) for line in lines], set()
    while waiting:
        wanted = waiting.pop()
        for extra in {"", *wanted.extras} - {extra for name, extra in seen if name == wanted.name}:
            seen.add((wanted.name, extra))
            further = map(Requirement, metadata.requires(wanted.name) or [])
            waiting += [each for each in further if not each.marker or each.marker.evaluate({"extra": extra})]
    return (canonicalize_name(name) for name, _ in seen)


def test_every_package_that_the_tests_run_with_is_pinned() -> None:
    files = [ROOT / "requirements.txt", *ROOT.glob("tests/*requirements.txt"), *ROOT.glob("model/**/*requirements.txt")]
    files.remove(ROOT / "model/training/digits-requirements.txt")  # of a study, in an environment of its own
    lines = (ROOT / "deploy/constraints.txt").read_text("utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines if not line.startswith("#"))
    found = {name: metadata.version(name).partition("+")[0] for name in needed(files) if not OF_A_GPU.match(name)}
    assert found.keys() <= pinned.keys()
    if os.environ.get("CI") == "true":  # there make has installed them; who installs without make may have newer ones
        assert found.items() <= pinned.items()
    for path in ("Makefile", "Dockerfile"):
        assert "deploy/constraints.txt" in (ROOT / path).read_text("utf-8")


def test_make_takes_a_smaller_pytorch_as_the_image_does() -> None:
    command = ["make", "--dry-run", "VENV=none", "TORCH=torch==2.13.0+cpu", "PYTHON=python", "run"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert (
        "-m pip install --disable-pip-version-check -c deploy/constraints.txt torch==2.13.0+cpu -r requirements" in said
    )
    assert re.search(
        r"^RUN pip install .*-c deploy/constraints.txt \$TORCH -r", (ROOT / "Dockerfile").read_text(), re.M
    )


def test_the_user_of_the_image_is_the_one_that_kubernetes_runs() -> None:
    image = (ROOT / "Dockerfile").read_text("utf-8")
    kinds = yaml.safe_load_all((ROOT / "deploy/kubernetes.yaml").read_text("utf-8"))
    deployment = next(each for each in kinds if each["kind"] == "Deployment")
    number = deployment["spec"]["template"]["spec"]["securityContext"]["runAsUser"]
    assert f"--uid {number}" in image
