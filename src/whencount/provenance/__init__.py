"""Where every number comes from: hashes of the code, manifests of artefacts, their verification."""

from __future__ import annotations

from whencount.provenance.manifest import Manifest, locate, manifest_path, read_manifest
from whencount.provenance.recording import check_input, files_named, rebuild_command, recorded
from whencount.provenance.sources import package_hash, source_hash, stage_hash, stage_modules

__all__ = [
    "Manifest",
    "check_input",
    "files_named",
    "locate",
    "manifest_path",
    "package_hash",
    "read_manifest",
    "rebuild_command",
    "recorded",
    "source_hash",
    "stage_hash",
    "stage_modules",
]
