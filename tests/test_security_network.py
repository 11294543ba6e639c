"""Rendering a page opens no port: nothing listens on a network, not even on this machine's own."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from whencount.errors import InputError
from whencount.reports import render, rendering

LISTENERS = """\
import os, psutil
tree = [psutil.Process(), *psutil.Process().parents()]
tree = tree[: [one.pid for one in tree].index(top) + 1]
print("looked at", len(tree), "processes")
open_ports = []
for one in tree:
    open_ports += [c.laddr.port for c in one.net_connections("inet") if c.status == "LISTEN"]
print("listening:", open_ports)
"""


def notebook(path: Path, top: int) -> Path:
    """A notebook that looks for ports of its own process and those above it, up to this one."""
    cell: dict[str, Any] = {"cell_type": "code", "metadata": {}, "outputs": [], "id": "ports"}
    cell |= {"execution_count": None, "source": f"top = {top}\n{LISTENERS}"}
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    content = {"cells": [cell], "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def listeners(folder: Path) -> str:
    import os

    source = notebook(folder / "ports.ipynb", os.getpid())
    render(source, {}, folder / "figures", folder / "page.html")
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert re.search(r"looked at [2-9] processes", page)
    found = re.search(r"listening: (\[.*?\])", page)
    assert found is not None
    return found[1]


def test_no_port_is_open_while_a_page_is_rendered(tmp_path: Path) -> None:
    assert listeners(tmp_path) == "[]"


def test_the_look_for_ports_finds_those_of_an_ordinary_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jupyter_client.manager import AsyncKernelManager

    monkeypatch.setattr(rendering, "_kernel_manager", lambda folder: AsyncKernelManager)
    assert listeners(tmp_path) != "[]"


def test_a_temporary_folder_with_too_long_a_name_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    source = notebook(tmp_path / "ports.ipynb", 1)
    with pytest.raises(InputError, match="set TMPDIR to a shorter one"):
        render(source, {}, tmp_path / "figures", tmp_path / "page.html")
