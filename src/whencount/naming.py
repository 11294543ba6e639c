"""Names of the study: bases and their families, representations, jobs, cells and rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

KEYS = (
    "representation",
    "basis",
    "granularity",
    "collection",
    "corpus",
    "budget",
    "query_budget",
    "document_budget",
    "k1",
    "b",
    "seed",
    "control",
)
"""The columns that name a row."""

CELL_KEYS = ("representation", "collection", "seed", "budget", "k1", "b", "control")
"""The fewest columns that tell a row from every other."""

RANDOM_BASES = frozenset({"gaussian", "kmeans", "pq", "rq", "sae"})
"""Bases whose fit draws random numbers; the others are fitted with seed 0 only."""

BASIS_FAMILIES: Mapping[str, str] = {
    "identity": "linear",
    "gaussian": "linear",
    "pca": "linear",
    "kmeans": "clustered",
    "pq": "quantised",
    "rq": "quantised",
    "sae": "learned",
    "sae_shared": "learned",
}
"""The family of each basis, as the column `basis` of rows.parquet names it (study, section 2)."""


def basis_family(basis: str) -> str:
    """The family of a basis; one of no family, an external one say, is a family of its own."""
    return BASIS_FAMILIES.get(basis, basis)


@dataclass(frozen=True, order=True)
class Representation:
    """A basis at a granularity.

    Attributes:
        basis: `sae` say.
        granularity: `pooled` or `token`; `external` for vectors that another model makes, which
            have no basis here (`splade_external`: basis `splade`).
        shared: True for the token-fitted dictionary used at either granularity.
    """

    basis: str
    granularity: str
    shared: bool = False

    @property
    def name(self) -> str:
        """`sae_token`, or `sae_shared_token` for a shared dictionary."""
        return f"{self.basis}{'_shared' if self.shared else ''}_{self.granularity}"

    @property
    def external(self) -> bool:
        """Whether no basis makes its vectors."""
        return self.granularity == "external"

    @property
    def fitted_on(self) -> str:
        """The granularity whose states the basis is fitted on."""
        return "token" if self.shared else self.granularity

    @classmethod
    def parse(cls, name: str) -> Representation:
        """The inverse of `name`."""
        basis, granularity = name.rsplit("_", 1)
        if granularity == "external":
            return cls(basis, granularity)
        return cls(basis.removesuffix("_shared"), granularity, basis.endswith("_shared"))


@dataclass(frozen=True, order=True)
class Job:
    """What one scoring job reads: the vectors of a representation of a collection at a seed."""

    representation: str
    collection: str
    seed: int

    @property
    def name(self) -> str:
        """The stem of its files, `sae_token.limit.seed0` say."""
        return f"{self.representation}.{self.collection}.seed{self.seed}"


@dataclass(frozen=True, order=True)
class Cell:
    """One row of a job: budget (`32/128` or `native`), (k1, b) and control (`` for none)."""

    budget: str
    k1: float
    b: float
    control: str = ""

    @property
    def budgets(self) -> tuple[int | None, int | None]:
        """Query and document budget; None keeps every weight."""
        return parse_budget(self.budget)

    @property
    def checkpoint(self) -> str:
        """Name of the file that a job keeps its result in, with that of others, until all stand."""
        return f"{self.budget.replace('/', '-')}.{self.control or 'none'}.npz"


def parse_budget(budget: str) -> tuple[int | None, int | None]:
    """`32/128` as (32, 128), `native` as (None, None)."""
    if budget == "native":
        return None, None
    query, document = budget.split("/")
    return int(query), int(document)
