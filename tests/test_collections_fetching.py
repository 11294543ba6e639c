"""Downloads: they go on, are checked, happen once, and say what to do by hand."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from collection_files import Host, running_host, without_network

from whencount.collections.fetching import Remote, check, fetch, size_in_words
from whencount.errors import InputError

CONTENT = np.random.default_rng(0).bytes(3_000_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    without_network(monkeypatch)
    with running_host() as running:
        yield running


def remote_for(host: Host, folder: Path, content: bytes = CONTENT, digest: str = SHA256) -> Remote:
    url = host.serve("/corpus.jsonl", content)
    return Remote(folder / "home" / "corpus.jsonl", (url,), len(CONTENT), "sha256", digest)


def half_of(remote: Remote, content: bytes) -> Path:
    part = remote.path.with_name("corpus.jsonl.part")
    part.parent.mkdir(parents=True)
    part.write_bytes(content)
    return part


def test_a_file_comes_whole_and_is_not_asked_for_again(host: Host, tmp_path: Path) -> None:
    remote = remote_for(host, tmp_path)
    fetch(remote)
    fetch(remote)
    assert remote.path.read_bytes() == CONTENT
    assert [entry.name for entry in remote.path.parent.iterdir()] == ["corpus.jsonl"]
    assert host.asked == [("/corpus.jsonl", "")]


def test_half_a_file_is_completed(host: Host, tmp_path: Path) -> None:
    remote = remote_for(host, tmp_path)
    half_of(remote, CONTENT[:1_000_000])
    fetch(remote)
    assert remote.path.read_bytes() == CONTENT
    assert host.asked == [("/corpus.jsonl", "bytes=1000000-")]


def test_a_broken_connection_is_taken_up_where_it_broke(host: Host, tmp_path: Path) -> None:
    remote = remote_for(host, tmp_path)
    host.break_after["/corpus.jsonl"] = 2_000_000
    fetch(remote)
    assert remote.path.read_bytes() == CONTENT
    assert [wanted for _, wanted in host.asked] == ["", "bytes=2000000-"]


def test_a_host_that_cannot_begin_in_the_middle_is_read_from_the_start(
    host: Host, tmp_path: Path
) -> None:
    remote = remote_for(host, tmp_path)
    half_of(remote, CONTENT[:1_000_000])
    host.ranges = False
    fetch(remote)
    assert remote.path.read_bytes() == CONTENT


def test_a_file_that_lacked_only_its_name_is_checked_and_kept(host: Host, tmp_path: Path) -> None:
    remote = remote_for(host, tmp_path)
    half_of(remote, CONTENT)
    fetch(remote)
    assert remote.path.read_bytes() == CONTENT


def test_more_than_the_whole_file_is_fetched_anew(host: Host, tmp_path: Path) -> None:
    remote = remote_for(host, tmp_path)
    half_of(remote, CONTENT + b"of another download")
    fetch(remote)
    assert remote.path.read_bytes() == CONTENT


def test_what_has_another_checksum_is_thrown_away(host: Host, tmp_path: Path) -> None:
    remote = remote_for(host, tmp_path, content=CONTENT[:-1] + b"?")
    with pytest.raises(InputError, match=r"corpus\.jsonl.*sha256.*removed.*put it at"):
        fetch(remote)
    assert list(remote.path.parent.iterdir()) == []


def test_the_second_address_serves_where_the_first_does_not(host: Host, tmp_path: Path) -> None:
    remote = remote_for(host, tmp_path)
    urls = (f"{host.address}/gone", *remote.urls)
    fetch(Remote(remote.path, urls, remote.bytes, "sha256", SHA256))
    assert remote.path.read_bytes() == CONTENT


def test_a_mirror_of_the_hub_is_asked_where_one_is_named(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.serve("/datasets/x/resolve/main/corpus.jsonl", CONTENT)
    monkeypatch.setenv("HF_ENDPOINT", f"{host.address}/")
    url = "https://huggingface.co/datasets/x/resolve/main/corpus.jsonl"
    fetch(Remote(tmp_path / "corpus.jsonl", (url,), None, "sha256", SHA256))
    assert (tmp_path / "corpus.jsonl").read_bytes() == CONTENT


def test_a_file_that_is_nowhere_names_its_address_size_and_place(
    host: Host, tmp_path: Path
) -> None:
    remote = Remote(tmp_path / "home" / "gone.zip", (f"{host.address}/gone.zip",), 2_816_079)
    with pytest.raises(InputError) as raised:
        fetch(remote)
    message = str(raised.value)
    for part in ("404 Not Found", f"{host.address}/gone.zip (2.8 MB)", f"at {remote.path}"):
        assert part in message
    assert list(remote.path.parent.iterdir()) == []


def test_a_host_that_cannot_be_reached_is_told(tmp_path: Path, host: Host) -> None:
    remote = Remote(tmp_path / "x.zip", ("https://127.0.0.2.example/x.zip",), 1)
    with pytest.raises(InputError, match=r"x\.zip could not be downloaded \(.*connect and run"):
        fetch(remote)


def test_what_came_before_the_last_break_is_kept_and_told(host: Host, tmp_path: Path) -> None:
    remote = remote_for(host, tmp_path)
    part = half_of(remote, CONTENT[:1_000_000])
    del host.files["/corpus.jsonl"]
    with pytest.raises(InputError, match=r"1,000,000 bytes of it are kept"):
        fetch(remote)
    assert part.read_bytes() == CONTENT[:1_000_000]


def test_of_several_that_want_a_file_one_fetches_it(host: Host, tmp_path: Path) -> None:
    remote = remote_for(host, tmp_path)
    faults: list[BaseException] = []

    def work() -> None:
        try:
            fetch(remote)
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert len(host.asked) == 1
    assert [entry.name for entry in remote.path.parent.iterdir()] == ["corpus.jsonl"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_told(host: Host, tmp_path: Path) -> None:
    remote = remote_for(host, tmp_path)
    remote.path.parent.mkdir()
    remote.path.with_name("corpus.jsonl.part").symlink_to("/dev/full")
    with pytest.raises(InputError, match=r"no space left while writing .*corpus\.jsonl"):
        fetch(remote)
    assert not remote.path.exists()


def test_too_little_space_is_told_before_the_first_byte(host: Host, tmp_path: Path) -> None:
    url = host.serve("/huge.zip", CONTENT)
    with pytest.raises(InputError, match=r"needs 1000000\.0 TB, but only .* are free there"):
        fetch(Remote(tmp_path / "huge.zip", (url,), 10**18))
    assert host.asked == []


def test_a_folder_that_cannot_be_written_is_told(host: Host, tmp_path: Path) -> None:
    remote = remote_for(host, tmp_path)
    remote.path.parent.mkdir()
    remote.path.parent.chmod(0o500)
    ordinary = 65534
    root = os.geteuid() == 0
    if root:
        os.seteuid(ordinary)
    try:
        with pytest.raises(InputError, match=r"corpus\.jsonl cannot be written.*another place"):
            fetch(remote)
    finally:
        if root:
            os.seteuid(0)
        remote.path.parent.chmod(0o700)


def test_a_file_below_a_file_is_told(host: Host, tmp_path: Path) -> None:
    remote = remote_for(host, tmp_path)
    (tmp_path / "home").write_text("no folder")
    with pytest.raises(InputError, match=r"corpus\.jsonl cannot be written"):
        fetch(remote)


def test_a_file_in_place_is_held_to_its_checksum(tmp_path: Path) -> None:
    path = tmp_path / "source.zip"
    path.write_bytes(CONTENT[:1000])
    remote = Remote(path, ("https://example.org/x.zip",), len(CONTENT), "sha256", SHA256)
    with pytest.raises(InputError) as raised:
        check(remote)
    for part in (str(path), "1,000 bytes", SHA256, "remove it", "https://example.org/x.zip"):
        assert part in str(raised.value)
    path.write_bytes(CONTENT)
    check(remote)


@pytest.mark.parametrize(
    ("size", "words"),
    [(999, "999 bytes"), (2_816_079, "2.8 MB"), (999_960, "1.0 MB"), (1_057_717_952, "1.1 GB")],
)
def test_sizes_read_as_a_person_writes_them(size: int, words: str) -> None:
    assert size_in_words(size) == words
