"""`python dying.py WHEN NUMBER stage ...` runs `whencount stage ...` and dies at a rename.

Every file and folder gets its name by a rename, so these are the moments at which what stands on
the disk changes. WHEN is `before` or `after` the rename of that number, or `never`; death is
SIGKILL. Parts are made small, so that a small study has some: 16 texts, one training step.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from whencount import cli, encoding, fitting
from whencount.bases import sae_state

SMALL_WINDOW = 16


def main(when: str, number: int, arguments: list[str]) -> None:
    """Run the command with a deadly `os.replace`."""
    rename, done = os.replace, 0

    def replace(*paths: Any) -> None:
        nonlocal done
        done += 1
        if (when, number) == ("before", done):
            os.kill(os.getpid(), signal.SIGKILL)
        rename(*paths)
        if (when, number) == ("after", done):
            os.kill(os.getpid(), signal.SIGKILL)

    os.replace = replace  # type: ignore[assignment]
    defaults: Any = encoding.encode_collection.__kwdefaults__
    defaults["window"] = SMALL_WINDOW
    fitting.WINDOW = SMALL_WINDOW
    sae_state._SECONDS_BETWEEN = 0.0
    try:
        cli.main(arguments)
    finally:
        print(f"renames: {done}", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
