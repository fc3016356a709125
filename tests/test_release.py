"""What is written in several places for a release says the same in all of them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import cutplane

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def _load(path: Path) -> dict[Any, Any]:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def _name(path: Path) -> str:
    return path.name


def _pythons() -> list[str]:
    prefix = "Programming Language :: Python :: 3."
    return [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if c.startswith(prefix)]


def _commands(job: dict[str, Any]) -> list[str]:
    return [step["run"] for step in job["steps"] if "run" in step]


# -- version ------------------------------------------------------------------


def test_version_is_the_same_everywhere() -> None:
    citation = _load(ROOT / "CITATION.cff")
    assert "version" in PROJECT["dynamic"]  # pyproject.toml reads cutplane.__version__
    assert citation["version"] == cutplane.__version__
    assert str(Version(cutplane.__version__)) == cutplane.__version__
    assert citation["license"] == PROJECT["license"]


def test_a_release_is_dated_in_the_changelog_and_the_citation() -> None:
    citation = _load(ROOT / "CITATION.cff")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    dated = dict(re.findall(r"^## \[([\d.]+)\] - (\d{4}-\d{2}-\d{2})$", changelog, re.MULTILINE))
    if Version(cutplane.__version__).is_devrelease:
        assert "## [Unreleased]" in changelog
        assert "date-released" not in citation
        assert Version(cutplane.__version__).base_version not in dated
    else:
        assert str(citation["date-released"]) == dated[cutplane.__version__]


# -- versions of Python and of dependencies ------------------------------------


def test_pythons_of_classifiers_matrix_and_requirement() -> None:
    pythons = _pythons()
    assert pythons == [f"3.{minor}" for minor in range(11, 11 + len(pythons))]
    assert PROJECT["requires-python"] == f">={pythons[0]}"
    jobs = _load(ROOT / ".github" / "workflows" / "tests.yml")["jobs"]
    assert jobs["tests"]["strategy"]["matrix"] == {
        "os": ["ubuntu-latest", "macos-latest", "windows-latest"],
        "python": pythons,
    }
    setup = next(s for s in jobs["oldest"]["steps"] if "setup-python" in s.get("uses", ""))
    assert setup["with"]["python-version"] == pythons[0]


def test_oldest_versions_are_the_lower_bounds() -> None:
    """Pins begin like the bounds (14 and 14.0.1), and no library of the user is left out."""
    extras = PROJECT["optional-dependencies"]
    bounds: dict[str, str] = {}
    for text in [*PROJECT["dependencies"], *(r for group in extras.values() for r in group)]:
        requirement = Requirement(text)
        (specifier,) = requirement.specifier
        assert specifier.operator == ">=", text
        assert bounds.setdefault(requirement.name, specifier.version) == specifier.version, text
    lines = (ROOT / ".ci" / "oldest.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    for name, pin in pins.items():
        assert f"{pin}.".startswith(f"{bounds[name]}."), name
    needed = [*PROJECT["dependencies"]]
    for group, requirements in extras.items():
        if group in ("tables", "onnx", "dask", "completion"):
            needed += requirements
    assert {Requirement(text).name for text in needed} <= set(pins)


# -- workflows ----------------------------------------------------------------


@pytest.mark.parametrize("path", WORKFLOWS, ids=_name)
def test_workflow_is_careful(path: Path) -> None:
    """It only reads, ends in time, cancels outdated runs, and uses pinned actions without token."""
    workflow = _load(path)
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["concurrency"]["cancel-in-progress"] is True
    assert True in workflow  # YAML 1.1 reads the key "on" so
    for name, job in workflow["jobs"].items():
        assert 0 < job["timeout-minutes"] <= 360, name
        assert "permissions" not in job, name
        for step in job["steps"]:
            assert ("run" in step) != ("uses" in step), name
            if "uses" in step:
                assert re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"]), step
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False, name
            assert "${{ github.event" not in step.get("run", ""), name  # no text of strangers


SCHEMAS = {
    "github-workflows": WORKFLOWS,
    "github-issue-forms": [path for path in FORMS if path.name != "config.yml"],
    "github-issue-config": [path for path in FORMS if path.name == "config.yml"],
    "dependabot": [ROOT / ".github" / "dependabot.yml"],
    "citation-file-format": [ROOT / "CITATION.cff"],
}


@pytest.mark.parametrize("schema", SCHEMAS)
def test_files_for_others_are_as_their_schema_says(schema: str) -> None:
    """The schemas come with check-jsonschema: no network is needed."""
    pytest.importorskip("check_jsonschema")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}"]
    done = subprocess.run([*command, *SCHEMAS[schema]], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_workflows_run_the_commands_of_the_project() -> None:
    jobs = _load(ROOT / ".github" / "workflows" / "tests.yml")["jobs"]
    run = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    for command in [*_commands(jobs["lint"])[1:], _commands(jobs["tests"])[-1]]:
        assert command in run
    assert "pip install -c .ci/oldest.txt '.[test]'" in _commands(jobs["oldest"])
    assert _commands(jobs["package"]) == [".ci/package dist"]
    assert "pytest tests/test_docs.py" in _commands(jobs["docs"])
    assert "python -m sphinx -W -b html docs build/site" in _commands(jobs["docs"])
    assert any("benchmarks" in command for command in _commands(jobs["benchmarks"]))
    nightly = _load(ROOT / ".github" / "workflows" / "nightly.yml")["jobs"]
    assert any("-m slow" in command for command in _commands(nightly["slow"]))


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
@pytest.mark.parametrize("name", ["run", "package"])
def test_scripts_can_be_run(name: str) -> None:
    assert os.access(ROOT / ".ci" / name, os.X_OK)


# -- forms and texts ----------------------------------------------------------


@pytest.mark.parametrize("path", [p for p in FORMS if p.name != "config.yml"], ids=_name)
def test_issue_form(path: Path) -> None:
    form = _load(path)
    assert form["name"] and form["description"]
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    ids = [field["id"] for field in fields]
    assert len(ids) == len(set(ids))
    assert all(field["attributes"]["label"] for field in fields)
    assert any(field.get("validations", {}).get("required") for field in fields)


def test_bug_form_asks_for_certificate_and_versions() -> None:
    text = (ROOT / ".github" / "ISSUE_TEMPLATE" / "bug.yml").read_text(encoding="utf-8")
    for wanted in ("model.certificate_", "cutplane info", "cutplane --version", "SECURITY.md"):
        assert wanted in text


def test_citation_has_what_the_format_requires() -> None:
    citation = _load(ROOT / "CITATION.cff")
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= set(citation)
    for reference in citation["references"]:
        assert {"type", "title", "authors"} <= set(reference)
