"""All that the routing of a model shows before any outcome: frequencies, statistics, the reference.

It is measured on calibration documents that nothing is evaluated on, and knows no quality of a
corrected rule, so it may be computed before predictors are frozen.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whencount.errors import InputError
from whencount.experts.calibrating import calibrate
from whencount.experts.calibration import Calibration, calibration_of, calibration_table
from whencount.experts.documents import Documents, fixed_documents
from whencount.experts.preservation import effects_table, removal_effects
from whencount.experts.reference import layer_agreement, output_agreement
from whencount.experts.routing import Rule
from whencount.experts.rules import CONFIGURATION_RULES, rule_named
from whencount.experts.statistics import choice_statistics, index_statistics, routing_shares
from whencount.experts.texts import part_of
from whencount.files import atomic_directory
from whencount.ranking_diagnostics import pseudo_columns
from whencount.scoring import Parameters
from whencount.tables import read_table, write_table

if TYPE_CHECKING:
    import pandas as pd

    from whencount.language_models import LanguageModel

REFERENCE = "dense"
"""The label-free reference, as the columns of its pseudo-labels name it."""

_CALIBRATION = "calibration.parquet"
_PRESERVATION = "preservation.parquet"
_STATISTICS = "statistics.parquet"
_AGREEMENT = "agreement.parquet"
_ROUTING = "routing.parquet"


@dataclass(frozen=True)
class NamedRule:
    """A rule as tables name it.

    Attributes:
        name: `000` ... `111`, `native`, `balanced`, ...
        variant: `token` or `expert` of a configuration, empty for a comparison.
        rule: what chooses.
    """

    name: str
    variant: str
    rule: Rule


@dataclass(frozen=True)
class RoutingStudy:
    """What is compared.

    Attributes:
        active: experts per token.
        variants: of length.
        comparisons: rules beside the configurations; `native` is always there.
        parameters: k1 and b.
        preserved_share: share of all experts that `preserved` keeps.
        seed: of random experts.
    """

    active: int
    variants: Sequence[str] = ("token", "expert")
    comparisons: Sequence[str] = ("balanced", "preserved", "random", "dense")
    parameters: Parameters = field(default_factory=Parameters)
    preserved_share: float = 0.05
    seed: int = 0

    @classmethod
    def of(cls, options: Mapping[str, Any], active: int, seed: int) -> RoutingStudy:
        """The study that a configuration's key `experts` describes, at one number of experts."""
        return cls(
            active,
            tuple(options["variants"]),
            tuple(options["comparisons"]),
            Parameters(float(options["k1"]), float(options["b"])),
            float(options["preserved_share"]),
            seed,
        )

    def configurations(self, calibration: Calibration) -> list[NamedRule]:
        """The eight configurations in every variant."""
        return [
            NamedRule(name, variant, rule_named(name, calibration, variant, self.parameters))
            for variant in self.variants
            for name in CONFIGURATION_RULES
        ]

    def others(
        self, calibration: Calibration, preserved: NDArray[np.bool_] | None
    ) -> list[NamedRule]:
        """Native routing and the comparisons; `preserved` fills up by 111 in the first variant."""
        names = ["native", *(name for name in self.comparisons if name != "native")]
        first = self.variants[0]
        return [
            NamedRule(
                name,
                "",
                rule_named(name, calibration, first, self.parameters, self.seed, preserved),
            )
            for name in names
        ]


@dataclass(frozen=True)
class Prepared:
    """What `prepare_routing` wrote.

    Attributes:
        calibration: of the model at this number of active experts.
        preserved: bool, shape (layers, experts), None where the study does not preserve.
        statistics: a line per variant: variant, the label-free columns of rows.
        routing: layer, expert, frequency, rule, variant, share, entered, left.
    """

    calibration: Calibration
    preserved: NDArray[np.bool_] | None
    statistics: pd.DataFrame
    routing: pd.DataFrame


def prepare_routing(
    model: LanguageModel,
    text: pd.DataFrame,
    options: Mapping[str, Any],
    study: RoutingStudy,
    out: str | Path,
    checkpoints: Path | None = None,
) -> None:
    """Measure a model on the calibration documents of a text and write a folder of tables.

    calibration.parquet has frequencies and norms, preservation.parquet what the loss gains without
    an expert, statistics.parquet the label-free columns of rows, agreement.parquet how near each
    rule is to the dense mixture (minus KL at the output, minus the relative squared distance per
    layer), routing.parquet the share of tokens that each rule sends to each expert.

    Args:
        model: frozen.
        text: of `whencount.experts.texts.prepare_text`.
        options: `documents` of `tokens` tokens each; the first `costly_documents` of them serve
            for what takes many passes, preservation and agreement; `tokens_per_pass`.
        study: what is compared.
        out: the folder to write, whole or not at all.
        checkpoints: a folder that keeps finished tables; None keeps none.

    Raises:
        InputError: too little text, documents longer than the model takes, or hidden states that
            overflow.
    """
    tokens = int(options["tokens"])
    if tokens > model.context_limit:
        raise InputError(
            f"calibration: documents of {tokens} tokens, and {model.name} takes"
            f" {model.context_limit}; lower tokens"
        )
    texts = (document.text for document in part_of(text, "calibration"))
    documents = fixed_documents(texts, model.encode, tokens, int(options["documents"]))
    if len(documents) < int(options["documents"]):
        print(
            f"the calibration text fills {len(documents)} of {options['documents']} documents",
            file=sys.stderr,
            flush=True,
        )
    costly = documents[: int(options["costly_documents"])]
    per_pass = int(options.get("tokens_per_pass", 4096))
    batch = max(1, per_pass // tokens)

    def kept(name: str, make: Callable[[], pd.DataFrame]) -> pd.DataFrame:
        return kept_table(checkpoints and checkpoints / name, make)

    tables = {
        _CALIBRATION: kept(
            _CALIBRATION,
            lambda: calibration_table(calibrate(model.model, documents, study.active, batch)),
        )
    }
    calibration = calibration_of(tables[_CALIBRATION])
    preserved = None
    if "preserved" in study.comparisons:
        tables[_PRESERVATION] = kept(
            _PRESERVATION,
            lambda: effects_table(
                removal_effects(
                    model.model,
                    costly,
                    finalists=min(1.0, 2 * study.preserved_share),
                    tokens_per_pass=per_pass,
                ),
                study.preserved_share,
            ),
        )
        preserved = _preserved(tables[_PRESERVATION])
    rules = study.configurations(calibration)
    tables[_AGREEMENT] = kept(
        _AGREEMENT, lambda: _agreement(model, costly, rules, calibration, batch)
    )
    tables[_STATISTICS] = kept(
        _STATISTICS,
        lambda: _statistics(model, documents, calibration, study, tables[_AGREEMENT], batch),
    )
    everyone = [*study.others(calibration, preserved), *rules]
    tables[_ROUTING] = kept(
        _ROUTING, lambda: _routing(model, documents, everyone, calibration, batch)
    )
    with atomic_directory(out) as folder:
        for name, table in tables.items():
            write_table(table, folder / name)


def read_prepared(folder: str | Path) -> Prepared:
    """Read what `prepare_routing` wrote.

    Raises:
        InputError: a table is missing or damaged.
    """
    place = Path(folder)
    effects = place / _PRESERVATION
    return Prepared(
        calibration_of(read_table(place / _CALIBRATION)),
        _preserved(read_table(effects)) if effects.exists() else None,
        read_table(place / _STATISTICS),
        read_table(place / _ROUTING),
    )


def kept_table(path: Path | None, make: Callable[[], pd.DataFrame]) -> pd.DataFrame:
    """The table that a file keeps; made, and kept there, where it is missing or damaged."""
    if path is not None and path.exists():
        try:
            return read_table(path)
        except InputError as error:
            print(f"{error}; its work is done again", file=sys.stderr, flush=True)
    table = make()
    if path is not None:
        write_table(table, path)
    return table


def _preserved(effects: pd.DataFrame) -> NDArray[np.bool_]:
    layers = effects["layer"].nunique()
    return effects["preserved"].to_numpy(dtype=np.bool_).reshape(layers, -1)


def _agreement(
    model: LanguageModel,
    documents: Documents,
    rules: Sequence[NamedRule],
    calibration: Calibration,
    batch: int,
) -> pd.DataFrame:
    """Columns rule, variant, output, and layer_N for the routed layers."""
    import pandas as pd

    plain = [one.rule for one in rules]
    output = output_agreement(model.model, documents, plain, calibration.active, batch)
    layers = layer_agreement(model.model, documents, plain, calibration.active, batch)
    table = pd.DataFrame(
        {
            "rule": [one.name for one in rules],
            "variant": [one.variant for one in rules],
            "output": output,
        }
    )
    for place, layer in enumerate(calibration.layers):
        table[f"layer_{layer}"] = layers[:, place]
    return table


def _statistics(
    model: LanguageModel,
    documents: Documents,
    calibration: Calibration,
    study: RoutingStudy,
    agreement: pd.DataFrame,
    batch: int,
) -> pd.DataFrame:
    import pandas as pd

    lines = []
    for variant in study.variants:
        nearness = agreement[agreement["variant"] == variant].set_index("rule")["output"]
        lines.append(
            {"variant": variant}
            | index_statistics(calibration, variant)
            | choice_statistics(
                model.model, documents, calibration, variant, study.parameters, batch
            )
            | {
                column: float(nearness[name])
                for name, column in zip(CONFIGURATION_RULES, pseudo_columns(REFERENCE), strict=True)
            }
        )
    return pd.DataFrame(lines)


def _routing(
    model: LanguageModel,
    documents: Documents,
    rules: Sequence[NamedRule],
    calibration: Calibration,
    batch: int,
) -> pd.DataFrame:
    import pandas as pd

    layers, experts = calibration.routed.shape
    shares = routing_shares(
        model.model, documents, [one.rule for one in rules], calibration.active, batch
    )
    parts = []
    for one, found in zip(rules, shares, strict=True):
        parts.append(
            pd.DataFrame(
                {
                    "layer": np.repeat(np.array(calibration.layers, dtype=np.int64), experts),
                    "expert": np.tile(np.arange(experts, dtype=np.int64), layers),
                    "frequency": calibration.frequency.reshape(-1),
                    "rule": one.name,
                    "variant": one.variant,
                    "share": found.routed.reshape(-1) / found.tokens,
                    "entered": found.entered.reshape(-1) / found.tokens,
                    "left": found.left.reshape(-1) / found.tokens,
                }
            )
        )
    return pd.concat(parts, ignore_index=True)
