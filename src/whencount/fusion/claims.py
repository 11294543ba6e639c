"""Every claim of the derivation, held against a run: what was computed, and the verdict.

A claim is `refuted` where its refutation rule says so, `held` where the rule could have said so
and did not, and `undecided` where the run holds nothing that the rule could speak about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pandas as pd

from whencount.fusion.rules import ROW_LOCAL
from whencount.fusion.summary import BASE, KEYS
from whencount.fusion.worlds import redundant_difference
from whencount.wording import joined, number, percent, plural, signed

HELD, REFUTED, UNDECIDED = "held", "refuted", "undecided"
Tables = Mapping[str, pd.DataFrame]


@dataclass(frozen=True)
class Claim:
    """A claim with its refutation rule.

    Attributes:
        name: short.
        claim: in words.
        refuted_when: in words.
        compute: from the tables to a verdict and the numbers it rests on, in words.
    """

    name: str
    claim: str
    refuted_when: str
    compute: Callable[[Tables], tuple[str, str]]


def claims_table(tables: Tables) -> pd.DataFrame:
    """All claims: `claim`, `statement`, `refuted_when`, `verdict`, `evidence` (string)."""
    lines = []
    for one in CLAIMS:
        verdict, evidence = one.compute(tables)
        lines.append((one.name, one.claim, one.refuted_when, verdict, evidence))
    columns = ["claim", "statement", "refuted_when", "verdict", "evidence"]
    return pd.DataFrame(lines, columns=columns).astype("str")


def _tasks(tables: Tables, rule: str) -> pd.DataFrame:
    return tables["rules"][tables["rules"]["rule"] == rule]


def _losing(tables: Tables, rule: str = "reciprocal_rank") -> pd.DataFrame:
    """Events of the tasks on which a rule is below dense-first."""
    mine = _tasks(tables, rule)
    keys = mine.loc[mine["difference"] < 0, list(KEYS)]
    events = tables["events"]
    return events[events["rule"] == rule].merge(keys, on=list(KEYS))


def _row_local(tables: Tables) -> tuple[str, str]:
    told, beaten = [], []
    for rule in ROW_LOCAL:
        mine = _tasks(tables, rule)
        above = int((mine["difference"] > 0).sum())
        told.append(f"{rule} is above the dense order on {above} of {plural(len(mine), 'task')}")
        beaten.append(len(mine) > 0 and above == len(mine))
    arms = tables["rules"]["dense_arm"].nunique()
    if arms < 2:
        return UNDECIDED, f"one dense arm only; {joined(told)}"
    return (REFUTED if any(beaten) else HELD), f"{joined(told)} (tasks of {arms} dense arms)"


def _lifted(tables: Tables) -> tuple[str, str]:
    losing = _losing(tables)
    intruders = losing["intruder_lifted"] + losing["intruder_lexical_only"]
    losing, intruders = losing[intruders > 0], intruders[intruders > 0]
    if losing.empty:
        return UNDECIDED, "RRF loses on no task here"
    shares = losing["intruder_lifted"] / intruders
    told = [
        f"{task.collection} ({task.dense_arm}) {percent(share)}"
        for task, share in zip(losing.itertuples(), shares, strict=True)
    ]
    verdict = REFUTED if (shares <= 0.5).any() else HELD
    return verdict, f"lifted dense rows among the intruders: {joined(told)}"


def _membership(tables: Tables) -> tuple[str, str]:
    losing = _losing(tables)
    losing = losing[losing["loss"] > 0]
    if losing.empty:
        return UNDECIDED, "RRF loses on no task here"
    shares = losing["loss_nothing_left"] / losing["loss"]
    told = [
        f"{task.collection} ({task.dense_arm}) {percent(share)}"
        for task, share in zip(losing.itertuples(), shares, strict=True)
    ]
    verdict = REFUTED if (shares >= 0.5).any() else HELD
    return verdict, f"loss from queries where nothing relevant left the top ten: {joined(told)}"


def _reversals(tables: Tables) -> tuple[str, str]:
    mine = tables["reversals"]
    if mine.empty or not mine["pairs"].sum():
        return UNDECIDED, "no pair of rows to check"
    told = [
        f"{rule}: {int(lines['reversals'].sum()):,} reversals among {int(lines['pairs'].sum()):,}"
        f" pairs, {int(lines['violations'].sum()):,} against the condition"
        for rule, lines in mine.groupby("rule", sort=True)
    ]
    return (REFUTED if mine["violations"].sum() else HELD), "; ".join(told)


def _redundant_law(tables: Tables) -> tuple[str, str]:
    worst, pairs = redundant_difference()
    verdict = HELD if worst == 0 else REFUTED
    return verdict, f"{worst:,} strict reversals among {pairs:,} pairs of a synthetic law"


def _redundancy(tables: Tables) -> tuple[str, str]:
    checks = tables["checks"]
    mine = checks[checks["check"] == "redundancy"]
    keys = _losing(tables)[list(KEYS)].drop_duplicates()
    mine = mine.merge(keys, on=list(KEYS))
    low = mine[mine["quantity"] != "upper end"]
    high = mine[mine["quantity"] == "upper end"]
    known = low["bound"].notna().to_numpy()
    if not known.any():
        return UNDECIDED, "RRF loses on no task here, or no J could be estimated where it does"
    told, apart = [], []
    lower, upper = (low["bound"].to_numpy(dtype=float), high["value"].to_numpy(dtype=float))
    means = low["value"].to_numpy(dtype=float)
    names = [f"{one.collection} ({one.dense_arm})" for one in low.itertuples()]
    for at in known.nonzero()[0]:
        interval = f"[{signed(lower[at])}, {signed(upper[at])}]"
        told.append(f"{names[at]} {signed(means[at])} {interval}")
        apart.append(lower[at] > 0 or upper[at] < 0)
    evidence = f"J of relevant rows less J of their dense neighbours, held out: {joined(told)}"
    return (REFUTED if any(apart) else HELD), evidence


def _selector(tables: Tables) -> tuple[str, str]:
    rules = tables["rules"]
    wide = rules.pivot(index=list(KEYS), columns="rule", values="ndcg_10")
    if "most_significant" not in wide:
        return UNDECIDED, "no selector was run"
    short = wide[[BASE, "lexical_first"]].max(axis=1) - wide["most_significant"]
    worst = short.idxmax()
    arm, collection = worst if isinstance(worst, tuple) else (worst, "")
    evidence = (
        f"largest shortfall against the better constant arm: {number(short.max())} on"
        f" {collection} ({arm}); above .01 on {int((short > 0.01).sum())} of"
        f" {plural(len(short), 'task')}"
    )
    return (REFUTED if short.max() > 0.01 else HELD), evidence


def _maximum(tables: Tables) -> tuple[str, str]:
    checks = tables["checks"]
    mine = checks[(checks["check"] == "null_maximum") & (checks["count"] > 0)]
    if mine.empty:
        return UNDECIDED, "no held-out queries"
    levels = mine["quantity"].str.split().str[1].astype(float)
    reach = checks[checks["check"] == "smallest_maximum_tail"]
    above = mine["bound"].to_numpy() > levels.to_numpy()
    blind = float(reach["value"].max())
    evidence = (
        f"{int(above.sum())} of {len(mine)} shares of held-out all-null queries lie above their"
        f" level with their lower bound; with so many draws a maximum's tail can be as small as"
        f" {number(float(reach['value'].min()))} to {number(blind)}"
    )
    if not above.any() and blind > 0.1:
        return UNDECIDED, evidence
    return (REFUTED if above.any() else HELD), evidence


def _extinction(tables: Tables) -> tuple[str, str]:
    checks = tables["checks"]
    gate = checks[checks["check"] == "gate"]
    wrong = gate[gate["quantity"] == "contradictions"]
    small = gate[gate["quantity"] == "pools of at most 30 rows"]["value"].sum()
    rows = wrong["count"].sum()
    evidence = (
        f"{int(wrong['value'].sum()):,} contradictions among {int(rows):,} lexical-only rows, in"
        f" pools of which {int(small):,} have at most 30 rows"
    )
    if not rows or not small:
        return UNDECIDED, evidence
    return (REFUTED if wrong["value"].sum() else HELD), evidence


def _reservation(tables: Tables) -> tuple[str, str]:
    checks = tables["checks"]
    mine = checks[checks["check"] == "reservation"]
    short = mine[mine["quantity"] == "outputs that are too short"]
    without = mine[mine["quantity"] == "would be too short without a reserve"]["value"].sum()
    evidence = (
        f"{int(short['value'].sum()):,} of {int(short['count'].sum()):,} outputs are too short;"
        f" {int(without):,} would be without the reserve"
    )
    return (REFUTED if short["value"].sum() else HELD), evidence


def _independence(tables: Tables) -> tuple[str, str]:
    checks = tables["checks"]
    mine = checks[(checks["check"] == "candidate_independence") & (checks["count"] > 0)]
    if mine.empty:
        return UNDECIDED, "no profile could be estimated"
    worst = float(mine["value"].max())
    evidence = f"largest difference {worst:.1e} over {int(mine['count'].sum()):,} rows"
    return (REFUTED if worst > 1e-12 else HELD), evidence


def _binding(tables: Tables) -> tuple[str, str]:
    mine = _tasks(tables, "joint_density")
    means = mine.groupby("dense_arm")["difference"].mean()
    if means.empty:
        return UNDECIDED, "no profile could be estimated"
    told = joined([f"{arm} {signed(value)}" for arm, value in means.items()])
    evidence = f"mean over tasks of nDCG(S*) less nDCG(dense): {told}"
    if (means <= 0).any():
        return REFUTED, evidence
    return (HELD if len(means) > 1 else UNDECIDED), evidence


CLAIMS = (
    Claim(
        "row_local",
        "Row-local rules are not distribution-free.",
        "a row-local rule beats the dense order on every task of both encoders",
        _row_local,
    ),
    Claim(
        "lifted_rows",
        "Losses come mostly from dense rows lifted by lexical votes.",
        "their share among intruders is at most 50 % on a task where RRF loses",
        _lifted,
    ),
    Claim(
        "membership",
        "Changes of who is in the top ten explain the loss.",
        "at least half of the loss is from queries where nothing relevant left the top ten",
        _membership,
    ),
    Claim(
        "conditions",
        "The exact conditions tell every reversal of a pair (RRF, square-root mixture, S*).",
        "one strict pair against its condition, outside 1e-12",
        _reversals,
    ),
    Claim(
        "redundant_law",
        "Redundancy gives the dense order under S*.",
        "one strict reversal of unequal dense ratios under exact densities",
        _redundant_law,
    ),
    Claim(
        "redundant_data",
        "The data have that redundancy where fusion loses.",
        "the held-out J of relevant rows differs from that of their neighbours, interval off 0",
        _redundancy,
    ),
    Claim(
        "selector",
        "A maximum-significance selector is non-inferior.",
        "it is more than .01 below the better constant arm on a task",
        _selector,
    ),
    Claim(
        "null_maximum",
        "The null of the maximum is calibrated.",
        "a one-sided 95 % lower bound lies above its level (.01, .05, .10)",
        _maximum,
    ),
    Claim(
        "extinction",
        "Rows of the lexical list alone die out exactly in pools of at most 30 rows.",
        "one contradicting row",
        _extinction,
    ),
    Claim(
        "reservation",
        "Reservation prevents starvation.",
        "one output smaller than min(10, n)",
        _reservation,
    ),
    Claim(
        "independence",
        "S* of a row does not depend on the candidates beside it.",
        "a difference above 1e-12 when depth or list vary",
        _independence,
    ),
    Claim(
        "binding",
        "S* is above the dense order in the mean, for a weak and a strong encoder.",
        "the mean over tasks of the difference is at most 0 for either",
        _binding,
    ),
)
