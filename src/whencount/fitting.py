"""From passages to fit states, and from fit states to a fitted representation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from whencount.arrays import ArrayWriter, segment_order
from whencount.bases import Basis, TrainingStates, basis_type, load_basis
from whencount.bases.base import thread_limit
from whencount.encoders import Encoder, StateBatch, available_threads, resolve_device
from whencount.encoding import packed_windows
from whencount.errors import InputError
from whencount.files import atomic_directory
from whencount.representations import RepresentationSpec, raw_values

__all__ = ["FitStates", "RepresentationSpec", "fit_basis", "fit_states"]

FORMAT = "whencount-fit-states-1"
WINDOW = 4096
"""Passages that are sorted by length together, and kept together where a pass may be broken off."""
_SCALE_PASSAGES_AT_ONCE = 64
_ARRAYS = (
    "pooled",
    "token_counts",
    "tokens",
    "token_passages",
    "scale_tokens",
    "scale_offsets",
    "validation",
)


@dataclass(frozen=True)
class FitStates:
    """States of the fit passages, memory-mapped from a directory (see `fit_states`).

    Attributes:
        pooled: shape (passages, dimensions), mean content-token state; zero without content.
        token_counts: int32, shape (passages,), content tokens of each passage.
        tokens: shape (sampled states, dimensions), passage by passage.
        token_passages: int32, shape (sampled states,), the passage each state is from.
        scale_tokens: shape (states, dimensions), all content-token states of the first passages.
        scale_offsets: int64, shape (scale passages + 1,).
        validation: bool, shape (passages,), the passages kept for validation.
        manifest: what was encoded and how.
    """

    pooled: NDArray[Any]
    token_counts: NDArray[np.int32]
    tokens: NDArray[Any]
    token_passages: NDArray[np.int32]
    scale_tokens: NDArray[Any]
    scale_offsets: NDArray[np.int64]
    validation: NDArray[np.bool_]
    manifest: Mapping[str, Any]

    @classmethod
    def load(cls, path: str | Path) -> FitStates:
        """Open a directory written by `fit_states`.

        Raises:
            InputError: it is not there, or not whole.
        """
        path = Path(path)
        try:
            manifest = json.loads((path / "manifest.json").read_text())
            if manifest.get("format") != FORMAT:
                raise InputError(f"{path}: not of format {FORMAT!r}; encode the passages again")
            arrays = {name: np.load(path / f"{name}.npy", mmap_mode="r") for name in _ARRAYS}
        except (OSError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                f"{path} holds no whole fit states ({error}); encode the fit passages again"
            ) from error
        return cls(**arrays, manifest=manifest)

    def training(self, granularity: str) -> TrainingStates:
        """The states that a basis of this granularity is fitted on, with the split's rows."""
        if granularity == "token":
            held_back = np.asarray(self.validation)[np.asarray(self.token_passages)]
            return TrainingStates(
                self.tokens, np.flatnonzero(~held_back), np.flatnonzero(held_back)
            )
        content = np.asarray(self.token_counts) > 0
        validation = np.asarray(self.validation)
        return TrainingStates(
            self.pooled,
            np.flatnonzero(content & ~validation),
            np.flatnonzero(content & validation),
        )


def fit_states(
    encoder: Encoder,
    passages: Iterable[tuple[str, str]],
    out: str | Path,
    *,
    seed: int = 0,
    states_per_passage: int = 10,
    maximum_states: int = 2_000_000,
    scale_passages: int = 1024,
    validation_share: float = 0.1,
    dtype: str = "float32",
    total: int | None = None,
    checkpoints: Path | None = None,
) -> FitStates:
    """Encode the fit passages (id, text) once and keep the states that bases are fitted on.

    The directory `out` appears whole. Validation passages are drawn with `seed`; the states of a
    passage are sampled with a seed derived from (seed, passage id), so they depend neither on the
    order of the passages nor on batches. Where there would be more than `maximum_states`, those of
    the last passages are left out. A folder `checkpoints` keeps finished windows
    (`whencount.encoding.packed_windows`).

    Raises:
        InputError: fewer than two passages with content, or a duplicate passage id.
    """
    seen: set[str] = set()
    width = encoder.dimensions
    with atomic_directory(out) as folder:
        writers = {
            name: ArrayWriter(folder / f"{name}.npy", dtype, width)
            for name in ("pooled", "tokens", "scale_tokens")
        }
        counts: list[NDArray[np.int64]] = []
        sampled: list[NDArray[np.int64]] = []
        done = kept = 0

        def work(batch: StateBatch, ids: list[str], first: int) -> _Kept:
            return _select(batch, ids, seed, states_per_passage, scale_passages - first)

        def pack(ids: list[str], parts: list[_Kept]) -> dict[str, NDArray[Any]]:
            window = _in_order(parts)
            return {field.name: getattr(window, field.name) for field in fields(_Kept)}

        for ids, arrays in packed_windows(
            encoder,
            passages,
            "passage",
            work,
            pack,
            checkpoints=checkpoints,
            window=WINDOW,
            total=total,
            noun="fit passage",
        ):
            _refuse_duplicates(ids, seen)
            window = _Kept(**arrays)
            writers["pooled"].append(window.pooled)
            writers["scale_tokens"].append(window.scale)
            writers["tokens"].append(window.sampled[: maximum_states - kept])
            owners = np.repeat(np.arange(len(ids)), window.sampled_counts)[: maximum_states - kept]
            sampled.append(owners + done)
            counts.append(window.counts)
            kept += len(owners)
            done += len(ids)
        for writer in writers.values():
            writer.close()
        token_counts = np.concatenate(counts) if counts else np.zeros(0, dtype=np.int64)
        if int((token_counts > 0).sum()) < 2:
            raise InputError(
                f"{int((token_counts > 0).sum())} fit passages have content; at least 2 are needed"
            )
        scale_offsets = np.zeros(min(scale_passages, done) + 1, dtype=np.int64)
        np.cumsum(token_counts[: len(scale_offsets) - 1], out=scale_offsets[1:])
        validation = np.zeros(done, dtype=np.bool_)
        held_back = min(max(1, round(validation_share * done)), done - 1) if validation_share else 0
        validation[np.random.default_rng(seed).permutation(done)[:held_back]] = True
        np.save(folder / "token_counts.npy", token_counts.astype(np.int32))
        np.save(folder / "token_passages.npy", np.concatenate(sampled).astype(np.int32))
        np.save(folder / "scale_offsets.npy", scale_offsets)
        np.save(folder / "validation.npy", validation)
        manifest = {
            "format": FORMAT,
            "encoder": encoder.description,
            "dimensions": width,
            "seed": seed,
            "passages": done,
            "validation_passages": held_back,
            "content_tokens": int(token_counts.sum()),
            "sampled_states": kept,
            "states_per_passage": states_per_passage,
            "maximum_states": maximum_states,
            "scale_passages": len(scale_offsets) - 1,
            "dtype": dtype,
        }
        (folder / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    return FitStates.load(out)


@dataclass(frozen=True)
class _Kept:
    """What a batch of passages leaves: arrays by passage, and states segment by segment."""

    positions: NDArray[np.int64]
    counts: NDArray[np.int64]
    pooled: NDArray[np.float32]
    sampled: NDArray[np.float32]
    sampled_counts: NDArray[np.int64]
    scale: NDArray[np.float32]
    scale_counts: NDArray[np.int64]


def _select(
    batch: StateBatch, ids: list[str], seed: int, states_per_passage: int, scale_count: int
) -> _Kept:
    counts = np.diff(batch.offsets)
    rows = sample_rows(
        np.asarray([passage_key(ids[position], seed) for position in batch.positions]),
        batch.offsets,
        states_per_passage,
    )
    scale_counts = np.where(batch.positions < scale_count, counts, 0)
    in_scale = np.flatnonzero(np.repeat(batch.positions < scale_count, counts))
    states = batch.states.cpu().numpy()
    return _Kept(
        batch.positions,
        counts,
        batch.pooled().cpu().numpy(),
        states[rows],
        np.minimum(counts, states_per_passage),
        states[in_scale],
        scale_counts,
    )


def _in_order(parts: list[_Kept]) -> _Kept:
    joined = _Kept(
        *(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(_Kept))
    )
    order = np.argsort(joined.positions)
    return _Kept(
        joined.positions[order],
        joined.counts[order],
        joined.pooled[order],
        joined.sampled[segment_order(joined.positions, joined.sampled_counts)],
        joined.sampled_counts[order],
        joined.scale[segment_order(joined.positions, joined.scale_counts)],
        joined.scale_counts[order],
    )


def passage_key(identifier: str, seed: int) -> np.uint64:
    """The seed of a passage's draws: the first 8 bytes of SHA-256 of "seed, NUL, id"."""
    digest = hashlib.sha256(f"{seed}\0{identifier}".encode()).digest()
    return np.uint64(int.from_bytes(digest[:8], "little"))


def sample_rows(
    keys: NDArray[np.uint64], offsets: NDArray[np.int64], count: int
) -> NDArray[np.int64]:
    """At most `count` rows of each segment, drawn without replacement, in row order.

    Row i of a segment gets the number splitmix64(key + i) (Steele, Lea & Flood 2014); the
    smallest numbers are taken, so a draw depends on the segment's key and length only.

    Args:
        keys: uint64, shape (segments,).
        offsets: int64, shape (segments + 1,).
        count: the most rows of a segment.
    """
    sizes = np.diff(offsets)
    segment = np.repeat(np.arange(len(sizes)), sizes)
    place = np.arange(int(offsets[-1])) - np.repeat(offsets[:-1], sizes)
    mixed = np.repeat(keys, sizes) + (place.astype(np.uint64) + np.uint64(1)) * np.uint64(
        0x9E3779B97F4A7C15
    )
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    order = np.lexsort((place, mixed, segment))
    # After sorting within segments, `place` is also the rank.
    return np.sort(order[place < count])


def _refuse_duplicates(ids: list[str], seen: set[str]) -> None:
    for identifier in ids:
        if identifier in seen:
            raise InputError(f"fit passage id {identifier!r} occurs twice; ids must be unique")
        seen.add(identifier)


def fit_basis(
    states: str | Path,
    spec: RepresentationSpec,
    out: str | Path,
    *,
    dictionary: str | Path | None = None,
    device: str = "auto",
    threads: int | None = None,
    checkpoints: Path | None = None,
) -> dict[str, Any]:
    """Fit the basis of a representation, find its scale, and write both to the directory `out`.

    The scale is the median positive value of the vectors of the first fit passages (1,024, unless
    `fit_states` was told otherwise).

    Args:
        states: a directory written by `fit_states`.
        spec: the representation.
        out: the directory, written whole: `basis.safetensors`, `basis.json`, `manifest.json`.
        dictionary: a directory written by `fit_basis` whose basis is taken as it is, so that only
            the scale is found anew (`sae_shared`: the directory of the token SAE).
        device: "auto", "cpu" or "cuda".
        threads: of the fit on a CPU; None takes every core.
        checkpoints: a folder where a long fit keeps how far it is; None keeps nothing.

    Returns:
        The manifest.

    Raises:
        InputError: unknown basis, granularity or option, too few states, or a dictionary that is
            not the one `spec` asks for.
    """
    data = FitStates.load(states)
    threads = threads or available_threads()
    device = resolve_device(device)
    fitted_on = spec.fitted_on or spec.granularity
    if dictionary is None:
        basis = basis_type(spec.basis).fit(
            data.training(fitted_on),
            spec.seed,
            spec.options,
            device,
            threads,
            checkpoints=checkpoints,
        )
    else:
        basis = _reuse(Path(dictionary), spec, fitted_on)
    scale, values = _scale(basis.to(device), spec.granularity, data, threads)
    basis.to("cpu")
    manifest = {
        "name": spec.name,
        "basis": spec.basis,
        "granularity": spec.granularity,
        "fitted_on": fitted_on,
        "seed": spec.seed,
        "options": asdict(basis.options),
        "dimensions": basis.dimensions,
        "vocabulary_size": basis.vocabulary_size,
        "scale": scale,
        "scale_values": values,
        "scale_passages": len(data.scale_offsets) - 1,
        "fit": basis.manifest,
        "fit_states": dict(data.manifest),
    }
    with atomic_directory(out) as folder:
        basis.save(folder)
        (folder / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    return manifest


def _reuse(path: Path, spec: RepresentationSpec, fitted_on: str) -> Basis[Any]:
    basis = load_basis(path)
    try:
        found = json.loads((path / "manifest.json").read_text())
    except (OSError, ValueError) as error:
        raise InputError(f"{path} has no readable manifest.json ({error}); fit it again") from error
    wanted = {
        "basis": spec.basis,
        "fitted_on": fitted_on,
        "seed": spec.seed,
        "options": asdict(basis_type(spec.basis).parse_options(spec.options)),
    }
    for key, value in wanted.items():
        if found.get(key) != value:
            raise InputError(
                f"{path}: its {key} is {found.get(key)!r}, but representation {spec.name!r} needs"
                f" {value!r}; name the directory of that fit"
            )
    return basis


def _scale(basis: Basis[Any], granularity: str, data: FitStates, threads: int) -> tuple[float, int]:
    """The median positive value over the scale passages, and of how many values it is."""
    device = next(iter(basis.tensors.values())).device if basis.tensors else torch.device("cpu")
    offsets = np.asarray(data.scale_offsets)
    found: list[NDArray[np.float64]] = []
    with thread_limit(threads):
        for start in range(0, len(offsets) - 1, _SCALE_PASSAGES_AT_ONCE):
            stop = min(start + _SCALE_PASSAGES_AT_ONCE, len(offsets) - 1)
            low, high = int(offsets[start]), int(offsets[stop])
            states = np.array(data.scale_tokens[low:high], dtype=np.float32)
            pooled = np.array(data.pooled[start:stop], dtype=np.float32)
            found.append(
                raw_values(
                    basis,
                    granularity,
                    torch.from_numpy(states).to(device),
                    torch.from_numpy(pooled).to(device),
                    offsets[start : stop + 1] - low,
                )[2]
            )
    values = np.concatenate(found) if found else np.zeros(0)
    # A basis may leave every scale passage without a feature; then nothing needs a unit.
    return (float(np.median(values)) if len(values) else 1.0), len(values)
