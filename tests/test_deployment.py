"""The files that serve the app to others: what a container may do, and that the app needs no more."""

import re
from contextlib import closing
from pathlib import Path

import pytest
import yaml

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


def test_the_user_of_the_image_is_the_one_that_kubernetes_runs() -> None:
    image = (ROOT / "Dockerfile").read_text("utf-8")
    kinds = yaml.safe_load_all((ROOT / "deploy/kubernetes.yaml").read_text("utf-8"))
    deployment = next(each for each in kinds if each["kind"] == "Deployment")
    number = deployment["spec"]["template"]["spec"]["securityContext"]["runAsUser"]
    assert f"--uid {number}" in image
