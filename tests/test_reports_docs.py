"""What the documentation says exists, and what exists is documented."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from study_tables import ROOT, SCHEMA, study_tables

from whencount.collections.registry import SOURCES
from whencount.diagnostics import TIER_1, TIER_2
from whencount.ranking_diagnostics import TIER_3, pseudo_columns

DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def keys_of(schema: dict[str, Any]) -> Iterator[str]:
    for key, rules in schema.get("properties", {}).items():
        yield key
        yield from keys_of(rules)
    other = schema.get("additionalProperties")
    if isinstance(other, dict):
        yield from keys_of(other)


def test_every_key_of_the_configuration_is_explained() -> None:
    text = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    schema = yaml.safe_load(SCHEMA.read_text(encoding="utf-8"))
    missing = [key for key in set(keys_of(schema)) if not re.search(rf"[`.]{key}\b", text)]
    assert missing == []


def test_every_column_is_explained() -> None:
    text = (ROOT / "docs" / "tables.md").read_text(encoding="utf-8")
    tables = study_tables()
    columns = {
        *tables.rows.columns,
        *tables.significance.columns,
        *tables.shares.columns,
        *tables.references.columns,
        *TIER_1,
        *TIER_2,
        *TIER_3,
        *pseudo_columns("bm25"),
    }
    # One of a kind stands for all: q000 ... q111, p_full, p_idf, ...
    series = re.compile(
        r"(q|tie_share_|expected_)[01]{3}|(score|pseudo).+_(?!000)[01]{3}|(p|main_effect)_(saturation|length)"
    )
    missing = [name for name in columns if not series.fullmatch(name) and f"`{name}`" not in text]
    assert missing == []


def test_every_source_of_collections_is_explained() -> None:
    text = (ROOT / "docs" / "collections.md").read_text(encoding="utf-8")
    assert [name for name in SOURCES if f"## `{name}`" not in text] == []


@pytest.mark.parametrize("document", DOCS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if not re.match(r"https?://", target):
            assert (document.parent / target).exists(), target


def test_modules_of_the_architecture_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = text[text.index("| module") : text.index("## Rules")]
    package = ROOT / "src" / "whencount"
    named = {
        name.rstrip("/")
        for line in table.splitlines()[2:]
        if line.startswith("|")
        for name in re.findall(r"`([a-z_]+/?)`", line.split("|")[1])
    }
    present = {
        path.stem
        for path in package.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    } - {"__init__"}
    assert named == present
