"""A file of hypotheses: read, checked against its schema, one frozen object per hypothesis."""

from __future__ import annotations

import difflib
import functools
import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from whencount.errors import InputError
from whencount.yaml_files import read_yaml

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

ALPHA = 0.05
"""Level of the tests where a file names none."""

ONLY = ""
"""The name of the setting of a hypothesis that has one alone."""

_SHIPPED = ("confirmatory.yaml", "held-back.yaml")


@dataclass(frozen=True)
class Hypothesis:
    """A named test.

    Attributes:
        name: `H2` say.
        statement: what it claims, in a sentence.
        test: the kind of test, a key of `whencount.hypotheses.testing.TESTS`.
        rows: which rows it is about (`whencount.hypotheses.selection.select`).
        options: what the kind of test takes, by the keys of the file.
        settings: for each setting its name and the choice of rows that it adds; `{ONLY: {}}` where
            there is one alone.
        published: for each setting the published estimate, comparison and p, where there are any.
    """

    name: str
    statement: str
    test: str
    rows: Mapping[str, Any]
    options: Mapping[str, Any]
    settings: Mapping[str, Mapping[str, Any]]
    published: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class HypothesisFile:
    """A file of hypotheses, as it was read.

    Attributes:
        path: where it is.
        sha256: of its bytes.
        alpha: level of the tests after Holm's correction.
        hypotheses: in the order of the file.
    """

    path: Path
    sha256: str
    alpha: float
    hypotheses: tuple[Hypothesis, ...]

    @property
    def name(self) -> str:
        """The file's name without folder and suffix; it names the registration."""
        return self.path.stem


def shipped_files() -> tuple[Path, ...]:
    """The files of hypotheses that come with whencount: H1 to H6, and the decision rule.

    In a checkout they are those of the folder `hypotheses/`.
    """
    folder = files("whencount") / "hypotheses"
    return tuple(Path(str(folder / name)).resolve() for name in _SHIPPED)


def load_file(path: str | Path) -> HypothesisFile:
    """Read a file of hypotheses and check it.

    Raises:
        InputError: the file is missing, not YAML, names a key twice, or breaks the schema; the
            sentence names the place, what was found and what is allowed.
    """
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    path = Path(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); check the path") from error
    parsed = read_yaml(content, path)
    if not isinstance(parsed, dict):
        raise InputError(
            f"{path} is empty or not a mapping; start from hypotheses/confirmatory.yaml"
        )
    _refuse_strange(parsed, path, ())
    faults = list(Draft202012Validator(_schema()).iter_errors(parsed))
    # A misspelt key is an unknown one, and one that is missing: the first tells more.
    unknown = (one for one in faults if one.validator == "additionalProperties")
    fault = next(unknown, None) or best_match(faults)
    if fault is not None:
        raise InputError(_sentence(fault, path))
    hypotheses = tuple(
        _hypothesis(str(name), entry, path) for name, entry in parsed["hypotheses"].items()
    )
    return HypothesisFile(
        path, hashlib.sha256(content).hexdigest(), float(parsed.get("alpha", ALPHA)), hypotheses
    )


@functools.cache
def _schema() -> Any:
    text = (files("whencount") / "hypotheses" / "schema.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text)


def _refuse_strange(value: Any, path: Path, place: tuple[str, ...]) -> None:
    """Refuse what YAML may hold and JSON not: keys that are no text, numbers that are none."""
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"{path}, {'.'.join(place)}: {value} is no finite number; give one")
    if isinstance(value, dict):
        for key, part in value.items():
            if not isinstance(key, str):
                where = ".".join(place) or "the top level"
                raise InputError(f"{path}, {where}: the key {key!r} is no text; put it in quotes")
            _refuse_strange(part, path, (*place, key))
    if isinstance(value, list):
        for number, part in enumerate(value):
            _refuse_strange(part, path, (*place, str(number)))


def _sentence(fault: ValidationError, path: Path) -> str:
    where = ".".join(str(part) for part in fault.absolute_path) or "the top level"
    rule: Any = fault.validator_value
    if fault.validator == "additionalProperties" and isinstance(fault.instance, dict):
        rules: Any = fault.schema
        allowed = sorted(rules.get("properties", {}))
        unknown = [key for key in fault.instance if key not in allowed]
        near = difflib.get_close_matches(unknown[0], allowed, n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        return (
            f"{path}, {where}: unknown key {unknown[0]!r}{hint}; allowed here: {', '.join(allowed)}"
        )
    if fault.validator == "enum":
        choices = ", ".join(str(value) for value in rule)
        return f"{path}, {where}: {fault.instance!r} is not allowed; choose one of {choices}"
    return f"{path}, {where}: {fault.message}; docs/hypotheses.md says what stands there"


def _hypothesis(name: str, entry: Mapping[str, Any], path: Path) -> Hypothesis:
    common = ("statement", "test", "rows", "settings", "published")
    options = {key: value for key, value in entry.items() if key not in common}
    if entry["test"] == "share_within" and options["low"] > options["high"]:
        raise InputError(
            f"{path}, hypotheses.{name}: low {options['low']} is above high {options['high']};"
            " exchange them"
        )
    settings = entry.get("settings", {ONLY: {}})
    published = entry.get("published", {})
    if not all(isinstance(value, dict) for value in published.values()):
        published = {ONLY: published}
    elif not published:
        published = {}
    strange = [setting for setting in published if setting not in settings]
    if strange:
        known = ", ".join(repr(setting) for setting in settings if setting != ONLY)
        raise InputError(
            f"{path}, hypotheses.{name}.published: "
            + (
                f"figures for {strange[0]!r}, but the settings are {known}; name one of them"
                if known
                else f"{strange[0]!r} is not allowed; choose estimate, comparison, p"
            )
        )
    return Hypothesis(
        name,
        " ".join(entry["statement"].split()),
        entry["test"],
        entry.get("rows", {}),
        options,
        settings,
        published,
    )
