from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ASKED = 128 + signal.SIGTERM

# What a handler raises inside a finaliser is printed and lost; so it is in some imports.
SWALLOWED = """
import os, signal, sys
from whencount.interruption import heed_polite_kills, leave_if_asked
heed_polite_kills()
class Dying:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        sum(range(1000))
def swallow():
    Dying()
swallow()
print("went on", flush=True)
"""


def run(program: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)


def test_a_polite_kill_that_was_swallowed_is_asked_after() -> None:
    done = run(SWALLOWED + "leave_if_asked()\nprint('too far')")
    assert done.returncode == ASKED
    assert done.stdout == "went on\n"


@pytest.mark.parametrize("writer", ["atomic_file", "atomic_directory"])
def test_nothing_gets_its_final_name_after_a_swallowed_polite_kill(
    tmp_path: Path, writer: str
) -> None:
    program = SWALLOWED + (
        f"from whencount.files import {writer}\n"
        f"with {writer}({str(tmp_path / 'out')!r}) as inside:\n"
        "    (inside / 'x' if inside.is_dir() else inside).write_text('x')\n"
    )
    assert run(program).returncode == ASKED
    assert list(tmp_path.iterdir()) == []


def test_long_work_ends_at_its_next_step_after_a_swallowed_polite_kill() -> None:
    program = SWALLOWED.replace("swallow()\nprint", "print") + (
        "from whencount.progress import progress\n"
        "for number in progress(range(5), 5, 'working'):\n"
        "    print(number, flush=True)\n"
        "    if number == 1: swallow()\n"
    )
    done = run(program)
    assert done.returncode == ASKED
    assert done.stdout.split()[-2:] == ["0", "1"]


def test_without_a_polite_kill_work_goes_on() -> None:
    done = run("from whencount.interruption import leave_if_asked\nleave_if_asked()\nprint('on')")
    assert (done.returncode, done.stdout) == (0, "on\n")
