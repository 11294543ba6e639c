from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from whencount import cards
from whencount.errors import InputError

ROOT = Path(__file__).parents[1]
# Takes cards, notes when it has them, keeps them for a while (or until its input ends), notes the
# end. The notes are whole lines appended at once, so their order is that of the kernel.
HOLDER = """
import os, sys, time
from whencount.cards import claim
notes, count, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
taken = claim(count).cards
assert os.environ["CUDA_VISIBLE_DEVICES"] == ",".join(taken)
def note(word):
    descriptor = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{word} {os.getpid()} {','.join(taken)}\\n".encode())
    os.close(descriptor)
note("has")
time.sleep(seconds)
note("leaves")
"""


@pytest.fixture(autouse=True)
def no_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*cards.SCHEDULERS, cards.VISIBLE, cards.CARDS):
        monkeypatch.delenv(name, raising=False)


def holder(
    notes: Path, names: str, count: int = 1, seconds: float = 0.3
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(notes), str(count), str(seconds)],
        env=os.environ | {cards.CARDS: names},
    )


def events(notes: Path) -> list[tuple[str, int, list[str]]]:
    if not notes.exists():
        return []
    lines = [line.split() for line in notes.read_text().splitlines()]
    return [(word, int(process), names.split(",")) for word, process, names in lines]


def wait_for(notes: Path, count: int) -> None:
    end = time.monotonic() + 60
    while len(events(notes)) < count:
        assert time.monotonic() < end
        time.sleep(0.02)


def test_no_two_jobs_at_once_ever_have_the_same_card(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    # Names of this test alone, since the machine may have holders of its own.
    own = f"a{os.getpid()},b{os.getpid()},c{os.getpid()}"
    running = [holder(notes, own, count=1 + (number % 3 == 0)) for number in range(9)]
    assert [process.wait(timeout=120) for process in running] == [0] * 9
    held: dict[str, int] = {}
    most = 0
    for word, process, names in events(notes):
        for name in names:
            if word == "has":
                assert name not in held
                held[name] = process
            else:
                assert held.pop(name) == process
        most = max(most, len(held))
    assert not held
    assert most > 1
    assert len(events(notes)) == 18


def test_a_killed_job_lets_its_card_go_at_once(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    own = f"k{os.getpid()}"
    first = holder(notes, own, seconds=600)
    wait_for(notes, 1)
    second = holder(notes, own, seconds=0)
    time.sleep(0.5)
    assert len(events(notes)) == 1
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    assert second.wait(timeout=60) == 0
    assert [word for word, _, _ in events(notes)] == ["has", "has", "leaves"]


def test_a_child_that_may_still_compute_keeps_the_card(tmp_path: Path) -> None:
    name = f"p{os.getpid()}"
    script = (
        "import os, sys, time; from whencount.cards import claim; claim(1)\n"
        "if os.fork(): os._exit(0)\n"
        "print('held', flush=True); sys.stdin.read()"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script],
        env=os.environ | {cards.CARDS: name},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert parent.stdout is not None
    assert parent.stdin is not None
    assert parent.stdout.readline() == b"held\n"
    parent.wait()
    assert cards._hold(f"job  card {name}") is None
    parent.stdin.close()
    end = time.monotonic() + 30
    while (hold := cards._hold(f"job  card {name}")) is None:
        assert time.monotonic() < end
        time.sleep(0.02)
    hold.close()
    parent.stdout.close()


def test_a_job_of_a_scheduler_keeps_the_cards_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv(cards.VISIBLE, "3")
    assert cards.claim(1).cards == ("3",)
    assert os.environ[cards.VISIBLE] == "3"


def test_a_job_that_was_given_a_whole_node_chooses_among_its_cards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", f"test-{os.getpid()}")
    monkeypatch.setenv(cards.VISIBLE, "0,1,2,3")
    assert cards.claim(1).cards == ("0",)
    assert os.environ[cards.VISIBLE] == "0"
    cards._release()


def test_a_process_that_wants_no_card_sees_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cards.VISIBLE, "0,1")
    assert cards.claim(0).cards == ()
    assert os.environ[cards.VISIBLE] == ""


def test_a_machine_without_cards_computes_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert cards.claim(1) == cards.Claim((), "none there")


def test_cards_are_those_that_the_driver_lists(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\nprintf '0\\n1\\n2\\n'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert cards.available() == ["0", "1", "2"]
    monkeypatch.setenv(cards.VISIBLE, "1, 2")
    assert cards.available() == ["1", "2"]
    monkeypatch.setenv(cards.CARDS, "4")
    assert cards.available() == ["0", "1", "2", "3"]


def test_more_cards_than_there_are_is_refused_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(cards.CARDS, "2")
    with pytest.raises(InputError, match="3 cards are asked for and 2 may be used"):
        cards.claim(3)
    monkeypatch.setenv(cards.CARDS, "1,1")
    with pytest.raises(InputError, match="names a card twice"):
        cards.claim(1)


def test_a_step_of_the_workflow_holds_its_card_before_torch_could_see_another() -> None:
    name = f"s{os.getpid()}"
    code = (
        "import os, sys\nfrom whencount.cli import main\n"
        "try: main(['stage', '--cards', '1', 'encode', '--help'])\n"
        "except SystemExit: print(os.environ['CUDA_VISIBLE_DEVICES'], 'torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {cards.CARDS: name},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == f"{name} False"


WORKFLOW = """
import sys

PYTHON = sys.executable

rule all:
    input: expand("done.{number}", number=range(5))

# The first attempt of the first job fails while it holds a card.
rule one:
    output: "done.{number}"
    resources: gpu=1
    shell:
        "{PYTHON} holder.py notes {resources.gpu} 0.5;"
        " if [ {wildcards.number} = 0 ] && ! [ -e failed ]; then touch failed; exit 1; fi;"
        " touch {output}"
"""


def test_the_workstation_profile_gives_jobs_at_once_different_cards(tmp_path: Path) -> None:
    (tmp_path / "Snakefile").write_text(WORKFLOW)
    (tmp_path / "holder.py").write_text(HOLDER)
    own = [f"w{number}-{os.getpid()}" for number in range(2)]
    subprocess.run(
        [
            *[sys.executable, "-m", "snakemake", "--profile", "workstation", "-d", str(tmp_path)],
            *["-s", str(tmp_path / "Snakefile"), "--cores", "5", "--latency-wait", "1"],
        ],
        env=os.environ | {cards.CARDS: ",".join(own)},
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    assert {path.name for path in tmp_path.glob("done.*")} == {f"done.{n}" for n in range(5)}
    held: set[str] = set()
    used = set()
    for word, _, (name,) in events(tmp_path / "notes"):
        if word == "has":
            assert name not in held
            held.add(name)
            used.add(name)
        else:
            held.remove(name)
    assert not held
    assert used == set(own)
    assert len(events(tmp_path / "notes")) == 2 * 6
