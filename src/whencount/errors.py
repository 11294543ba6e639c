"""Faults that a person can cause, told in one sentence."""

from __future__ import annotations


class InputError(ValueError):
    """Bad input: the message names the place, what was found there, and the remedy.

    The command line prints the message alone, without a traceback, and ends with exit status 2.
    """
