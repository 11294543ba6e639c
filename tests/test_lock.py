from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
CONDA_NAMES = {"matplotlib-base": "matplotlib"}


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.fixture(scope="module")
def lock() -> dict[str, str]:
    pins = {}
    for line in (ROOT / "requirements.lock").read_text().splitlines():
        if line and not line.startswith("#"):
            name, version = line.split("==")
            pins[canonical(name)] = version
    return pins


def test_the_lock_holds_exact_pins_and_names_no_place_to_fetch_them(lock: dict[str, str]) -> None:
    text = (ROOT / "requirements.lock").read_text()
    assert "://" not in text
    assert not re.search(r"^-", text, re.MULTILINE)
    assert all(re.fullmatch(r"[0-9][\w.!]*", version) for version in lock.values())


def test_every_requirement_of_the_package_is_locked(lock: dict[str, str]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["study"]]
    wanted += [
        line
        for line in (ROOT / "requirements.in").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    names = {canonical(re.split(r"[\[=<>]", requirement)[0]) for requirement in wanted}
    assert not names - lock.keys()


@pytest.mark.parametrize("path", sorted((ROOT / "envs").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_environment_pins_what_the_lock_pins(path: Path, lock: dict[str, str]) -> None:
    environment = yaml.safe_load(path.read_text())
    pins: dict[str, str] = {}
    for entry in environment["dependencies"]:
        if isinstance(entry, dict):
            pins.update(requirement.split("==") for requirement in entry["pip"])
        elif "=" in entry:
            name, version = entry.split("=")
            pins[CONDA_NAMES.get(name, name)] = version
    assert pins.pop("python") == "3.11"
    assert {name: lock[canonical(name)] for name in pins} == pins


def test_every_rule_has_an_environment_that_exists() -> None:
    used = set()
    for rules in (ROOT / "workflow" / "rules").glob("*.smk"):
        used.update(re.findall(r"envs/(\w+\.yaml)", rules.read_text()))
    assert used
    assert used <= {path.name for path in (ROOT / "envs").glob("*.yaml")}


def test_every_package_whose_text_is_read_is_in_the_environment_that_reads_it() -> None:
    from whencount.collections import api_docs, fit_text, wiki_sections

    read = {*api_docs.PACKAGES, *fit_text.PACKAGES, wiki_sections.PACKAGE}
    for path in [ROOT / "config.yaml", *(ROOT / "configs").glob("*.yaml")]:
        study = yaml.safe_load(path.read_text())
        sources = [study.get("fit", {}).get("text", {}), *study.get("collections", {}).values()]
        sources.append(study.get("pages", {}).get("haystack", {}))
        for source in sources:
            read.update(source.get("packages", ()))
    environment = yaml.safe_load((ROOT / "envs" / "collections.yaml").read_text())
    (wheels,) = (entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict))
    # As wheels: the text is that of their files, which other builds leave out or change.
    assert {canonical(name) for name in read} <= {
        canonical(wheel.split("==")[0]) for wheel in wheels
    }


@pytest.mark.parametrize("path", sorted((ROOT / "envs").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_environment_is_given_the_package_itself(path: Path) -> None:
    script = path.with_suffix(".post-deploy.sh").read_text()
    link = (ROOT / "envs" / "link-package.sh").read_text()
    assert script == link or 'sh "$source/envs/link-package.sh"\n' in script


def test_packages_that_are_installed_alone_are_installed_so_everywhere(
    lock: dict[str, str],
) -> None:
    lines = (ROOT / "requirements-alone.in").read_text().splitlines()
    pins = [line.split("==") for line in lines if not line.startswith("#")]
    assert pins
    assert {name: lock[canonical(name)] for name, _ in pins} == dict(pins)
    makefile = (ROOT / "Makefile").read_text()
    assert "--no-deps -r requirements.lock" in makefile
    script = (ROOT / "envs" / "transformers.post-deploy.sh").read_text()
    assert '--no-deps -r "$source/requirements-alone.in"' in script
