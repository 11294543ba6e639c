"""A study described for other programs, after ir_metadata.

The keys are those of schema version 0.1 of Breuer, Keller and Schaer, "ir_metadata: An Extensible
Metadata Schema for IR Experiments", SIGIR 2022, https://doi.org/10.1145/3477495.3531738, which
orders what an experiment needs after PRIMAD: platform, research goal, implementation, method,
actor, data. The schema is for one run; here it describes a study, so `test collection` is a list.
What is not known is left out. The values come from manifests, the configuration and CITATION.cff.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from whencount.errors import InputError
from whencount.provenance.manifest import Manifest

SCHEMA_VERSION = 0.1
_CITATION = Path("CITATION.cff")
_LOCK = Path("requirements.lock")


def describe(manifests: Mapping[Path, Manifest], configuration: Path | None) -> str:
    """Write the metadata as YAML.

    Raises:
        InputError: the configuration or CITATION.cff is no YAML.
    """
    study = mapping_of(configuration) if configuration is not None else {}
    citation = mapping_of(_CITATION) if _CITATION.is_file() else {}
    found = list(manifests.values())
    record = {
        "schema-version": SCHEMA_VERSION,
        "run-version": 1.0,
        "tag": f"whencount-{study.get('study', 'study')}",
        "platform": _platform(found),
        "research goal": _research_goal(citation, study),
        "implementation": _implementation(found, citation),
        "method": _method(study),
        "actor": _actor(citation),
        "data": _data(manifests, study),
    }
    text = yaml.safe_dump(record, sort_keys=False, allow_unicode=True, width=100)
    return f"# ir_metadata.start\n{text}# ir_metadata.end\n"


def mapping_of(path: Path) -> dict[str, Any]:
    """A YAML file that holds a mapping.

    Raises:
        InputError: it is missing, no YAML, or something else.
    """
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); check the path") from error
    except yaml.YAMLError as error:
        raise InputError(f"{path} is not valid YAML: {error}") from None
    if not isinstance(found, dict):
        raise InputError(f"{path} is empty or not a mapping")
    return found


def _platform(manifests: list[Manifest]) -> dict[str, Any]:
    hosts = _distinct(dict(manifest.host) for manifest in manifests if manifest.host)
    gpus = sorted({name for manifest in manifests for name in manifest.gpu})
    host = hosts[0] if hosts else {}
    hardware: dict[str, Any] = {
        "cpu": {
            "model": host.get("processor"),
            "architecture": host.get("architecture"),
            "number of cores": host.get("cores"),
        },
        "ram": f"{host.get('memory_gib')} GB",
    }
    if gpus:
        hardware["gpu"] = {"architecture": gpus[0] if len(gpus) == 1 else gpus}
    platform: dict[str, Any] = {
        "hardware": hardware,
        "operating system": {
            "kernel": host.get("system"),
            "distribution": host.get("distribution"),
        },
        "software": {"libraries": {"python": _pins()}, "retrieval toolkit": ["whencount"]},
    }
    if len(hosts) > 1:
        platform["other hosts"] = hosts[1:]
    return platform


def _pins() -> list[str]:
    if not _LOCK.is_file():
        return []
    lines = _LOCK.read_text(encoding="utf-8").splitlines()
    return [line.split()[0] for line in lines if "==" in line and not line.startswith(("#", " "))]


def _research_goal(citation: Mapping[str, Any], study: Mapping[str, Any]) -> dict[str, Any]:
    goal: dict[str, Any] = {}
    if citation:
        goal["description"] = citation.get("title")
        goal["publication"] = {"abstract": " ".join(str(citation.get("abstract", "")).split())}
    goal["evaluation"] = {
        "reported measures": ["ndcg_cut_10"],
        "baseline": sorted(study.get("references", {})),
        "significance test": [
            {"name": "paired bootstrap over queries", "correction method": "holm"}
        ],
    }
    return goal


def _implementation(manifests: list[Manifest], citation: Mapping[str, Any]) -> dict[str, Any]:
    source: dict[str, Any] = {"lang": ["python"]}
    if "repository-code" in citation:
        source["repository"] = citation["repository-code"]
    return {
        "executable": {"cmd": "snakemake study --configfile config.yaml"},
        "source": source,
        "version": sorted({str(one.package.get("version")) for one in manifests}),
        "lock": sorted({str(one.package.get("lock")) for one in manifests}),
        "source hashes": {
            stage: sorted({one.source for one in manifests if one.stage == stage})
            for stage in sorted({one.stage for one in manifests})
        },
    }


def _method(study: Mapping[str, Any]) -> dict[str, Any]:
    retrieval: list[dict[str, Any]] = [
        {
            "name": name,
            "method": "inner product with switchable IDF, saturation, length normalisation",
            **{key: value for key, value in family.items() if key in ("budgets", "k1", "b")},
        }
        for name, family in study.get("families", {}).items()
    ]
    retrieval += [
        {"name": name, "method": name, **(options or {})}
        for name, options in sorted(study.get("references", {}).items())
    ]
    method: dict[str, Any] = {
        "automatic": True,
        "score ties": "document position in the collection",
    }
    if "encoder" in study:
        method["indexing"] = {"encoder": study["encoder"], "bases": study.get("bases", {})}
    return method | {"retrieval": retrieval}


def _actor(citation: Mapping[str, Any]) -> dict[str, Any]:
    names = [
        author.get("name") or f"{author.get('given-names', '')} {author.get('family-names', '')}"
        for author in citation.get("authors", [])
    ]
    return {"role": "experimenter", **({"name": names} if names else {})}


def _data(manifests: Mapping[Path, Manifest], study: Mapping[str, Any]) -> dict[str, Any]:
    collections = []
    for path, manifest in sorted(manifests.items()):
        if manifest.kind == "collection":
            options = study.get("collections", {}).get(path.name) or {}
            found: dict[str, Any] = {"name": path.name, "digest": manifest.digest}
            if options.get("source"):
                found["source"] = options["source"]
            if options.get("source") == "ir_datasets":
                found["ir_datasets"] = options.get("dataset") or options.get("id")
            collections.append(found)
    passages = [
        {"name": "passages that the bases are fitted on", "digest": manifest.digest}
        | {key: value for key, value in study.get("fit", {}).get("text", {}).items()}
        for manifest in manifests.values()
        if manifest.kind == "passages"
    ]
    return {"test collection": collections, "training data": passages}


def _distinct(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for record in records:
        if record not in found:
            found.append(record)
    return found
