"""Run every benchmark and write docs/performance.md; `make bench` calls this.

Run as `python -m benchmarks.run_all [--million]`. Results are kept in build/benchmarks as JSON,
so that `--write` can write the page again without measuring.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks import advise_million, search
from benchmarks.measure import machine
from benchmarks.page import page

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "build" / "benchmarks"
PACKAGES = ("numpy", "numba", "scipy", "bm25s", "splade-index", "torch", "pytrec_eval-terrier")
OTHERS = ("analysis", "sae", "sae_trainers", "pages", "pruning")


def versions() -> dict[str, str]:
    """Versions of the packages that the numbers depend on; those not installed are left out."""
    found = {"python": sys.version.split()[0]}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def measure(million: bool) -> None:
    """Run all, keeping each benchmark's rows as soon as it is done."""
    KEPT.mkdir(parents=True, exist_ok=True)
    facts: dict[str, Any] = {"machine": machine(), "versions": versions()}
    _keep("facts", facts)
    for name in OTHERS:
        try:
            rows = importlib.import_module(f"benchmarks.{name}").run()
        except ImportError as error:
            print(f"benchmarks.{name} is left out: {error}", file=sys.stderr)
            continue
        _keep(name, rows)
    if million:
        _keep("advise_million", advise_million.run())
    _keep("search", search.run(million))


def _keep(name: str, rows: Any) -> None:
    (KEPT / f"{name}.json").write_text(json.dumps(rows, indent=1) + "\n")
    print(f"{name}: kept in {KEPT / name}.json", file=sys.stderr)


def main() -> None:
    """Measure, unless --write, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--million", action="store_true", help="also 1,000,000 documents: 8 GB")
    parser.add_argument("--write", action="store_true", help="only write the page again")
    chosen = parser.parse_args()
    if not chosen.write:
        measure(chosen.million)
    kept = {path.stem: json.loads(path.read_text()) for path in sorted(KEPT.glob("*.json"))}
    (ROOT / "docs" / "performance.md").write_text(page(kept))


if __name__ == "__main__":
    main()
