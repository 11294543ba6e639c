"""Where every number comes from: hashes of the code, manifests of artefacts, their verification."""

from __future__ import annotations

from whencount.provenance.sources import package_hash, source_hash, stage_hash, stage_modules

__all__ = ["package_hash", "source_hash", "stage_hash", "stage_modules"]
