"""The rules that choose experts, one short file each.

A new rule is one file with a class that obeys `whencount.experts.routing.Rule` and one line here.
"""

from __future__ import annotations

from whencount.errors import InputError
from whencount.experts.calibration import VARIANTS, Calibration
from whencount.experts.routing import Rule
from whencount.experts.rules.balanced import Balanced
from whencount.experts.rules.corrected import Corrected
from whencount.experts.rules.dense import Dense
from whencount.experts.rules.native import Native
from whencount.experts.rules.preserved import ExpertMask, Preserved
from whencount.experts.rules.random import RandomExperts
from whencount.scoring import CONFIGURATIONS, Configuration, Parameters

CONFIGURATION_RULES = tuple(str(configuration) for configuration in CONFIGURATIONS)
COMPARISON_RULES = ("native", "balanced", "preserved", "random", "dense")
RULES = (*CONFIGURATION_RULES, *COMPARISON_RULES)


def rule_named(
    name: str,
    calibration: Calibration,
    variant: str = "token",
    parameters: Parameters | None = None,
    seed: int = 0,
    preserved: ExpertMask | None = None,
) -> Rule:
    """A rule by the name that tables and configurations give it.

    Args:
        name: one of RULES.
        calibration: of this model at the same number of active experts.
        variant: `token` or `expert`, what a length is.
        parameters: k1 and b; the defaults where None.
        seed: of `random`.
        preserved: bool, shape (layers, experts), the experts that `preserved` keeps; see
            `whencount.experts.preservation`.

    Raises:
        InputError: an unknown name or variant, or `preserved` without its experts.
    """
    parameters = parameters or Parameters()
    if name not in RULES:
        raise InputError(f"rule {name!r} is not known; choose from {', '.join(RULES)}")
    if variant not in VARIANTS:
        raise InputError(f"variant {variant!r} is not known; choose from {', '.join(VARIANTS)}")
    if name == "native":
        return Native()
    if name == "dense":
        return Dense()
    if name == "random":
        return RandomExperts(seed)
    if name == "balanced":
        return Balanced(calibration)
    if name == "preserved":
        if preserved is None:
            raise InputError("rule 'preserved' needs the experts to preserve; find them first")
        full = Corrected(calibration, Configuration.parse("111"), variant, parameters)
        return Preserved(full, preserved)
    return Corrected(calibration, Configuration.parse(name), variant, parameters)
