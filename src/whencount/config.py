"""The configuration of a study: read, checked against its schema, defaults filled in."""

from __future__ import annotations

import copy
import difflib
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match

from whencount.errors import InputError
from whencount.expert_config import check_experts
from whencount.latent_config import check_latent_terms
from whencount.learned_config import check_learned_sparse
from whencount.naming import RANDOM_BASES, Representation
from whencount.page_config import check_pages
from whencount.yaml_files import read_yaml

BYTES_PER_PASSAGE = 500
"""A passage of a corpus file is taken to have this many bytes, those of MS MARCO about 350."""

BASES = ("identity", "gaussian", "pca", "kmeans", "pq", "rq", "sae")
"""The names of `whencount.bases.BASES`, here so that a check imports no torch."""


SETTINGS = ("pages", "experts")
"""The settings beside retrieval that predictors may be put to the test on."""


_NO_RETRIEVAL: dict[str, Any] = {
    "encoder": {},
    "fit": {"text": {}},
    "granularities": [],
    "bases": {},
    "collections": {},
    "families": {},
}
"""What stands for the keys of retrieval in a study of other settings alone."""


def load(path: str | Path, schema: str | Path) -> dict[str, Any]:
    """Read a YAML configuration and validate it.

    Raises:
        InputError: the file is missing, as `whencount.yaml_files.read_yaml`, or as `validate` with
            the file named.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); check the path") from error
    config = read_yaml(content, path)
    if not isinstance(config, dict):
        raise InputError(f"{path} is empty or not a mapping; start from config.yaml")
    try:
        return validate(config, schema)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def validate(config: Mapping[str, Any], schema: str | Path) -> dict[str, Any]:
    """Check `config` against the JSON Schema in the file `schema` and fill in its defaults.

    Beyond the schema it checks that families name representations and collections that exist.

    Raises:
        InputError: names the path of the faulty key, what was found and what is allowed.
    """
    rules = yaml.safe_load(Path(schema).read_text())
    checked: dict[str, Any] = copy.deepcopy(dict(config))
    _refuse_not_finite(checked, [])
    _add_folders(checked)
    _name_sources(checked, rules)
    _spell_out_transfer(checked)
    alone = _is_without_retrieval(checked)
    if alone:
        rules["required"] = ["study"]
        for key in _NO_RETRIEVAL:
            checked.pop(key, None)
    error = best_match(Draft202012Validator(rules).iter_errors(checked))
    if error is not None:
        raise InputError(_sentence(error))
    if alone:
        checked.update(copy.deepcopy(_NO_RETRIEVAL))
    _fill(checked, rules, rules)
    if not alone:
        _check_names(checked)
    elif checked["transfer"]:
        raise InputError(
            "configuration, transfer: predictors are fitted on retrieval, and this study has none;"
            " add the keys of retrieval (config.yaml has them), or write transfer: false"
        )
    check_pages(checked)
    check_experts(checked)
    check_latent_terms(checked)
    check_learned_sparse(checked)
    _choose_shards(checked)
    return checked


def _is_without_retrieval(config: Mapping[str, Any]) -> bool:
    """Whether a study has another setting and nothing of retrieval, or the stand-ins for it."""
    if not any(config.get(name) for name in SETTINGS):
        return False
    encoder = config.get("encoder")
    return not (isinstance(encoder, dict) and "source" in encoder) and not any(
        config.get(key) for key in _NO_RETRIEVAL if key not in ("encoder", "fit")
    )


def representation_names(config: Mapping[str, Any]) -> list[str]:
    """Every `basis_granularity`, `basis_shared_granularity` of the shared, `name_external`."""
    names = [f"{basis}_{grain}" for basis in config["bases"] for grain in config["granularities"]]
    names += [
        f"{basis}_shared_{grain}" for basis in config["shared"] for grain in config["granularities"]
    ]
    names += [f"{name}_external" for name in config.get("external", {})]
    return names


def freeze_options(study: Mapping[str, Any]) -> dict[str, Any]:
    """What of a checked configuration a freeze depends on."""
    statistics, transfer = study["statistics"], study["transfer"]
    options = {key: transfer[key] for key in ("reference", "sign_accuracy", "mae_ratio", "draws")}
    options |= {key: statistics[key] for key in ("family", "collections") if key in statistics}
    return options | {"seed": study["seed"]}


def _add_folders(config: dict[str, Any]) -> None:
    """Turn every folder of `folders` into a collection of source `beir`, named after it.

    The key is emptied, so that a checked configuration can be checked again.
    """
    folders, collections = config.get("folders"), config.get("collections")
    if not isinstance(folders, list) or not isinstance(collections, dict):
        return
    for folder in folders:
        if not isinstance(folder, str):
            continue
        name = re.sub(r"[^a-z0-9_-]+", "-", Path(folder).resolve().name.lower()).strip("-_")
        if not name or name in collections:
            raise InputError(
                f"configuration, folders: {folder!r} would be called {name!r}, which is taken or"
                " empty; give it under collections with a name of its own"
            )
        collections[name] = {"source": "beir", "path": folder}
    if all(isinstance(folder, str) for folder in folders):
        config["folders"] = []


def _name_sources(config: dict[str, Any], rules: Mapping[str, Any]) -> None:
    """Where a collection has no source, its own name tells it: a source, or a published one."""
    collections = config.get("collections")
    if not isinstance(collections, dict):
        return
    entry = rules["properties"]["collections"]["additionalProperties"]
    sources = entry["properties"]["source"]["enum"]
    for name in [name for name, options in collections.items() if options is None]:
        collections[name] = {}
    for name, options in collections.items():
        if not isinstance(options, dict):
            continue
        wanted = options.get("id", name) if options.get("source") == "published" else name
        if options.get("source", "published") != "published" or wanted in sources:
            if "source" not in options:
                options["source"] = name
            continue
        from whencount.collections.catalogue import PUBLISHED

        known = [*PUBLISHED, *([] if "source" in options else sources)]
        if wanted not in PUBLISHED:
            near = difflib.get_close_matches(str(wanted), known, n=1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise InputError(
                f"configuration, collections.{name}: no published collection is called"
                f" {wanted!r}{hint}; give it a source, or name one of {', '.join(known)}"
            )
        options["source"] = "published"


def _spell_out_transfer(config: dict[str, Any]) -> None:
    """`transfer: true` is the test with its defaults, on every setting that the study has.

    On the command line (`--config transfer=false`) the word arrives as text.
    """
    transfer = config.get("transfer")
    if isinstance(transfer, str) and transfer.lower() in ("true", "false"):
        config["transfer"] = transfer = transfer.lower() == "true"
    if transfer is True:
        config["transfer"] = transfer = {}
    if isinstance(transfer, dict):
        found = [name for name in SETTINGS if config.get(name)]
        if found:
            transfer.setdefault("settings", found)


def _choose_shards(config: dict[str, Any]) -> None:
    """Where a collection does not say into how many shards its corpus goes, its size does.

    The number is fixed by the configuration and the file alone, so that every job sees the same.
    """
    from whencount.collections.catalogue import entry_for

    for name, options in config["collections"].items():
        if "shards" in options:
            continue
        entry = entry_for(name, options)
        passages = entry.documents if entry is not None else _passages_of_file(options)
        options["shards"] = max(1, math.ceil(passages / config["passages_per_shard"]))


def _passages_of_file(options: Mapping[str, Any]) -> float:
    """How many passages a file of them may hold, by its size; 0 where there is none to see."""
    folder, file = options.get("path"), options.get("documents")
    if options["source"] == "beir":
        path = Path(str(folder)) / "corpus.jsonl"
    elif options["source"] == "trec":
        path = Path(str(file))
    else:
        return 0
    try:
        return path.stat().st_size / BYTES_PER_PASSAGE
    except OSError:
        # What is missing is told, with the remedy, by the job that reads it.
        return 0


def _where(path: Iterator[Any] | Any) -> str:
    return ".".join(str(part) for part in path) or "the top level"


def _sentence(error: ValidationError) -> str:
    rule: Any = error.validator_value
    where = _where(error.absolute_path)
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        schema: Any = error.schema
        allowed = list(schema.get("properties", {}))
        unknown = [key for key in error.instance if key not in allowed]
        listed = ", ".join(repr(key) for key in unknown)
        near = difflib.get_close_matches(str(unknown[0]), allowed, n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        if not allowed:
            return f"configuration, {where}: unknown key {listed}; it takes no keys"
        return f"configuration, {where}: unknown key {listed}{hint}; allowed: {', '.join(allowed)}"
    if error.validator == "enum":
        allowed_values = ", ".join(str(value) for value in rule)
        return (
            f"configuration, {where}: {error.instance!r} is not allowed; choose one of"
            f" {allowed_values}"
        )
    return f"configuration, {where}: {error.message}{_allowed(error)}"


def _allowed(error: ValidationError) -> str:
    rule: Any = error.validator_value
    phrases = {
        "minimum": f"; it must be at least {rule}",
        "maximum": f"; it must be at most {rule}",
        "exclusiveMinimum": f"; it must be above {rule}",
        "exclusiveMaximum": f"; it must be below {rule}",
        "type": f"; give a value of type {rule}",
    }
    return phrases.get(str(error.validator), "")


def _refuse_not_finite(value: Any, path: list[Any]) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"configuration, {_where(path)}: {value} is no finite number; give one")
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            _refuse_not_finite(part, [*path, key])


def _fill(value: Any, rules: Mapping[str, Any], root: Mapping[str, Any]) -> None:
    if not isinstance(value, dict):
        return
    properties = rules.get("properties", {})
    for key, sub in properties.items():
        if "default" in sub:
            value.setdefault(key, copy.deepcopy(sub["default"]))
        if key in value:
            _fill(value[key], _resolve(sub, root), root)
    other = rules.get("additionalProperties")
    if isinstance(other, Mapping):
        for key in value.keys() - properties.keys():
            _fill(value[key], _resolve(other, root), root)


def _resolve(rules: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = rules.get("$ref")
    if reference is None:
        return rules
    found: Any = root
    for part in reference.removeprefix("#/").split("/"):
        found = found[part]
    return {**found, **{key: sub for key, sub in rules.items() if key != "$ref"}}


def _check_names(config: Mapping[str, Any]) -> None:
    for basis in config["bases"]:
        _must_be(basis, list(BASES), "bases", "basis")
    for basis in config["shared"]:
        _must_be(basis, list(config["bases"]), "shared", "basis")
        if "token" not in config["granularities"]:
            raise InputError(
                "configuration, shared: a shared dictionary is fitted on token states; add token"
                " to granularities"
            )
    known = {
        "representations": representation_names(config),
        "collections": list(config["collections"]),
    }
    for family, cells in config["families"].items():
        for key, names in known.items():
            for name in cells.get(key, []):
                _must_be(name, names, f"families.{family}.{key}", key[:-1])
    _check_references(config)
    statistics = config["statistics"]
    _must_be(statistics["family"], list(config["families"]), "statistics.family", "family")
    for name in statistics.get("collections", []):
        _must_be(name, known["collections"], "statistics.collections", "collection")
    _check_reported(config)
    for name, options in config["collections"].items():
        corpus = options.get("corpus", name)
        _must_be(corpus, known["collections"], f"collections.{name}.corpus", "collection")
        if "corpus" in config["collections"][corpus]:
            raise InputError(
                f"configuration, collections.{name}.corpus: {corpus!r} borrows its documents"
                f" itself; name {config['collections'][corpus]['corpus']!r}"
            )


def _check_reported(config: Mapping[str, Any]) -> None:
    """There must be rows to report, or the study would end with nothing to say."""
    name, everywhere = config["statistics"]["family"], list(config["collections"])
    family = config["families"][name]
    there = family.get("collections", everywhere)
    if not set(there) & set(config["statistics"].get("collections", everywhere)):
        raise InputError(
            f"configuration, statistics.collections: the reported family {name!r} is about"
            f" {', '.join(there)} alone; name one of these, or give the family more"
        )
    parsed = map(Representation.parse, representation_names(config))
    default = [one.name for one in parsed if not (one.shared or one.external)]
    names = map(Representation.parse, family.get("representations", default))
    if 0 not in family.get("seeds", [0]) and not any(one.basis in RANDOM_BASES for one in names):
        raise InputError(
            f"configuration, families.{name}.seeds: none of its representations draws random"
            " numbers, so it has no row without the seed 0; add 0"
        )


def check_transfer(config: Mapping[str, Any]) -> None:
    """Whether a checked configuration can put predictors to the test on other settings.

    Asked for once the test is: a study that has not come so far does not need it.

    Raises:
        InputError: it tests no transfer, or lacks a setting, the reference or a second corpus.
    """
    transfer = config["transfer"]
    if not transfer:
        raise InputError(
            "configuration, transfer: it is false, so no transfer is tested; write transfer: true,"
            " or the mapping that docs/configuration.md explains"
        )
    if not transfer.get("settings"):
        raise InputError(
            "configuration, transfer: there is no setting to put predictors to the test on; add"
            f" {' or '.join(SETTINGS)}, or write transfer: false"
        )
    for name in transfer["settings"]:
        if not config.get(name):
            raise InputError(
                f"configuration, transfer.settings: the study has no {name}; add the key {name}, or"
                " take it out there"
            )
    if transfer["reference"] not in config["references"]:
        raise InputError(
            f"configuration, transfer.reference: the study has no reference"
            f" {transfer['reference']!r}; add it to references, or name one of"
            f" {', '.join(config['references'])}"
        )
    everywhere, family = list(config["collections"]), config["statistics"]["family"]
    there = set(config["families"][family].get("collections", everywhere))
    there &= set(config["statistics"].get("collections", everywhere))
    corpora = {config["collections"][name].get("corpus", name) for name in there}
    if len(corpora) < 2:
        raise InputError(
            "configuration, transfer: its thresholds are errors on corpora held out, which needs"
            f" two corpora and not {', '.join(sorted(corpora))} alone; add a collection, or write"
            " transfer: false"
        )


def _check_references(config: Mapping[str, Any]) -> None:
    references = config["references"]
    missing = [name for name in ("bm25", "dense") if name not in references]
    if "rrf" in references and missing:
        raise InputError(
            f"configuration, references.rrf: it fuses bm25 and dense; add {missing[0]}, or take"
            " rrf out"
        )
    for name in config["external"]:
        if name in references or name in config["bases"]:
            raise InputError(
                f"configuration, external.{name}: a reference or a basis is called so already;"
                " give it another name"
            )


def _must_be(name: str, known: list[str], where: str, noun: str) -> None:
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise InputError(
            f"configuration, {where}: no {noun} is called {name!r}{hint}; there are"
            f" {', '.join(known)}"
        )
