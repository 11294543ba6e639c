"""Keep transformers from filling a log with bars."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Import and use transformers inside: it shows errors only, and no bar per loaded tensor."""
    # Read at the first import of transformers.
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        logging.enable_progress_bar()  # type: ignore[no-untyped-call]
