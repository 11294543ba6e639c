"""What every basis is: fitted on states, encodes states into non-negative codes."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from whencount.errors import InputError

FORMAT = "whencount-basis-1"
_ROWS_AT_ONCE = 16_384


@dataclass(frozen=True)
class Codes:
    """Non-negative codes of n states.

    Attributes:
        values: float32, shape (n, width) with `features`, (n, vocabulary_size) without.
        features: int32, shape (n, width), distinct within a row; None where every feature has a
            value (the linear bases). Pairs of value 0 are no features.
        vocabulary_size: how many features there are.
    """

    values: torch.Tensor
    features: torch.Tensor | None
    vocabulary_size: int


@dataclass(frozen=True)
class TrainingStates:
    """States to fit a basis on.

    Attributes:
        states: shape (all, dimensions), float16 or float32, often memory-mapped.
        train: int64, rows to fit on.
        validation: int64, rows to judge the fit by, from other passages.
    """

    states: NDArray[Any]
    train: NDArray[np.int64]
    validation: NDArray[np.int64]

    @property
    def dimensions(self) -> int:
        """Width of a state."""
        return int(self.states.shape[1])

    def sample(self, count: int | None, seed: int) -> NDArray[np.float32]:
        """At most `count` training states, float32, drawn without replacement, in row order."""
        rows = self.train
        if count is not None and count < len(rows):
            rows = np.sort(np.random.default_rng(seed).choice(rows, count, replace=False))
        return self.rows(rows)

    def rows(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The given rows as float32."""
        return np.ascontiguousarray(self.states[rows], dtype=np.float32)


OptionsType = TypeVar("OptionsType")


class Basis(ABC, Generic[OptionsType]):
    """A fitted basis.

    A subclass is one file: a frozen dataclass of options with the published defaults, `fit_tensors`
    and `encode`. Everything it has learned lies in `tensors`.

    Attributes:
        name: what the basis is called in a config.
        options_type: its dataclass of options.
        resumable: whether `fit_tensors` takes `checkpoints`, a folder where it keeps how far it is.
        tensors: what was learned, float32.
        options: the options of the fit.
        dimensions: width of the states.
        manifest: seed, sizes and diagnostics of the fit; plain JSON.
    """

    name: ClassVar[str]
    options_type: ClassVar[type]
    resumable: ClassVar[bool] = False

    def __init__(
        self,
        tensors: Mapping[str, torch.Tensor],
        options: OptionsType,
        dimensions: int,
        manifest: Mapping[str, Any],
    ) -> None:
        self.tensors = dict(tensors)
        self.options = options
        self.dimensions = dimensions
        self.manifest = dict(manifest)

    @classmethod
    def parse_options(cls, options: Mapping[str, Any]) -> Any:
        """Check the options of a config against the dataclass.

        Whole numbers are counts and must be at least 1, other numbers at least 0.

        Raises:
            InputError: an unknown option, or a value of another type or out of range.
        """
        known = {field.name: field for field in fields(cls.options_type)}
        for key, value in options.items():
            if key not in known:
                raise InputError(
                    f"basis {cls.name}: unknown option {key!r}; the options are {sorted(known)}"
                )
            whole = isinstance(known[key].default, int)
            number = isinstance(value, int if whole else int | float) and value is not True
            if not number or not (1 if whole else 0) <= value < np.inf:
                raise InputError(
                    f"basis {cls.name}: option {key} is {value!r}; it must be a"
                    f" {'whole number of at least 1' if whole else 'number of at least 0'}"
                )
        return cls.options_type(**options)

    @classmethod
    def fit(
        cls,
        states: TrainingStates,
        seed: int,
        options: Mapping[str, Any],
        device: str = "cpu",
        threads: int = 1,
        checkpoints: Path | None = None,
    ) -> Basis[OptionsType]:
        """Fit the basis; deterministic for the same states, seed, options, device and threads.

        Raises:
            InputError: a bad option, too few states, or states that are not finite.
        """
        parsed = cls.parse_options(options)
        cls._require_finite(states)
        further = {"checkpoints": checkpoints} if cls.resumable else {}
        tensors, report = cls.fit_tensors(states, seed, parsed, device, threads, **further)
        manifest = {
            "seed": seed,
            "train_states": len(states.train),
            "validation_states": len(states.validation),
            **report,
        }
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        return cls(tensors, parsed, states.dimensions, manifest)

    @classmethod
    def _require_finite(cls, states: TrainingStates) -> None:
        for start in range(0, len(states.states), _ROWS_AT_ONCE):
            finite = np.isfinite(states.states[start : start + _ROWS_AT_ONCE]).all(axis=1)
            if not finite.all():
                row = start + int(np.flatnonzero(~finite)[0])
                raise InputError(
                    f"basis {cls.name}: state {row} has a value that is not finite; encode the fit"
                    " passages again (with precision fp32 if it was fp16)"
                )

    @classmethod
    @abstractmethod
    def fit_tensors(
        cls, states: TrainingStates, seed: int, options: Any, device: str, threads: int
    ) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
        """What is learned, and what to say about it in the manifest."""

    @property
    @abstractmethod
    def vocabulary_size(self) -> int:
        """How many features there are."""

    @abstractmethod
    def encode(self, states: torch.Tensor) -> Codes:
        """Codes of states, float32, shape (n, dimensions), on the basis's device.

        Safe to call from several threads.
        """

    def to(self, device: str | torch.device) -> Basis[OptionsType]:
        """The same basis on a device."""
        self.tensors = {name: tensor.to(device) for name, tensor in self.tensors.items()}
        return self

    def save(self, path: str | Path) -> None:
        """Write `basis.safetensors` and `basis.json` into an existing directory."""
        from safetensors.torch import save_file

        path = Path(path)
        save_file(self.tensors, path / "basis.safetensors")
        record = {
            "format": FORMAT,
            "basis": self.name,
            "dimensions": self.dimensions,
            "options": asdict(self.options),  # type: ignore[call-overload]
            "vocabulary_size": self.vocabulary_size,
            **self.manifest,
        }
        (path / "basis.json").write_text(json.dumps(record, indent=1) + "\n")


def require_states(states: TrainingStates, needed: int, basis: str, noun: str) -> None:
    """Refuse to fit `needed` centres on fewer states.

    Raises:
        InputError: there are fewer training states than that.
    """
    if len(states.train) < needed:
        raise InputError(
            f"basis {basis}: {needed} {noun} need at least as many training states, found"
            f" {len(states.train)}; give more fit passages or ask for fewer {noun}"
        )


@contextmanager
def thread_limit(threads: int) -> Iterator[None]:
    """Run numerical libraries with this many threads, so that a fit gives the same bytes again."""
    import faiss
    from threadpoolctl import threadpool_limits

    before_torch, before_faiss = torch.get_num_threads(), faiss.omp_get_max_threads()
    torch.set_num_threads(threads)
    faiss.omp_set_num_threads(threads)
    try:
        with threadpool_limits(threads):
            yield
    finally:
        torch.set_num_threads(before_torch)
        faiss.omp_set_num_threads(before_faiss)
