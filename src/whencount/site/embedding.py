"""JSON that can stand in a script element, whatever texts it holds; the policy of such a page."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from typing import Any

_ESCAPES = str.maketrans({one: f"\\u{ord(one):04x}" for one in "<>&\u2028\u2029"})


def embedded(value: Any) -> str:
    """Compact JSON without a letter that HTML or JavaScript could take for markup.

    Keys are sorted; half a surrogate pair becomes a question mark.
    """
    plain = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return plain.encode("utf-8", "replace").decode().translate(_ESCAPES)


def shortened(value: float, digits: int = 5) -> float | int | None:
    """A number to so many significant digits; None for one that is not finite."""
    number = float(value)
    if not math.isfinite(number):
        return None
    cut = float(f"{number:.{digits}g}")
    return int(cut) if cut.is_integer() and abs(cut) < 1e15 else cut


def policy_hash(text: str) -> str:
    """What a content security policy calls an inline script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
