"""From a notebook to one page: run it with parameters, keep what it shows, embed everything.

The page holds no code, no script and no date. It loads nothing: its content security policy allows
styles of its own and images inside it, so a string from data that slipped through unescaped could
still do nothing. The same notebook and tables give the same bytes.
"""

from __future__ import annotations

import html
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from whencount.errors import InputError
from whencount.files import atomic_directory, atomic_file

_HERE = Path(__file__).parent
_HEADING = re.compile(r"<h([1-4])>(.*?)</h\1>", re.DOTALL)
_START_SECONDS = 120
_KERNEL = [sys.executable, "-P", "-m", "whencount.reports.kernel", "-f", "{connection_file}"]
_LONGEST_SOCKET = 95
"""Bytes of a socket's path without its number; 104 with it is the least limit of any system."""


def render(notebook: Path, parameters: Mapping[str, Any], figures: Path, out: Path) -> None:
    """Run a notebook and write its page and its figures; both whole, or neither.

    Args:
        notebook: an .ipynb whose cell of parameters is tagged `parameters`. It is not changed.
        parameters: what to set there: JSON values. Paths are best absolute; relative ones start at
            the working directory. `figures_folder` is added.
        figures: folder that receives the figures that the notebook keeps.
        out: the HTML page.

    Raises:
        InputError: the notebook is missing or not valid, one of its cells fails (the cell and the
            error are named), or a place cannot be written.
    """
    source = _read(Path(notebook))
    with atomic_directory(figures) as folder, _quiet_jupyter():
        values = {**parameters, "figures_folder": str(folder.absolute())}
        executed = _run(source, Path(notebook), values)
        page = _page(executed, str(parameters.get("study", "")), Path(notebook).parent)
        with atomic_file(out) as temporary:
            temporary.write_text(page, encoding="utf-8")
        if not any(folder.iterdir()):
            # No hypothesis could be tested, say. An empty folder is no artefact: nothing in it
            # could be checked, and no archive would hold it.
            (folder / "none.json").write_text("[]\n", encoding="utf-8")


def _read(path: Path) -> dict[str, Any]:
    import nbformat

    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); check the path") from error
    except ValueError as error:
        raise InputError(f"{path} is no notebook: not valid JSON ({error})") from None
    if not isinstance(content, dict) or content.get("nbformat") != 4:
        raise InputError(f"{path} is no notebook of format 4; open it in Jupyter and save it anew")
    try:
        nbformat.validate(content)
    except nbformat.ValidationError as error:
        reason = str(error).strip().splitlines()[0][:200]
        raise InputError(f"{path} is no valid notebook ({reason}); save it anew") from None
    return content


def _run(notebook: dict[str, Any], path: Path, parameters: dict[str, Any]) -> Any:
    try:
        import papermill
        from papermill.exceptions import PapermillExecutionError
    except ImportError as error:
        raise InputError(
            f"rendering a report needs the package {error.name}; install whencount[study]"
        ) from None
    from nbclient.exceptions import CellTimeoutError, DeadKernelError

    _installed("ipykernel")

    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        copy.write_text(json.dumps(notebook), encoding="utf-8")
        try:
            executed = papermill.execute_notebook(
                copy,
                None,
                parameters=parameters,
                kernel_name="python3",
                progress_bar=False,
                start_timeout=_START_SECONDS,
                extra_arguments=["--log-level=CRITICAL"],
                kernel_manager_class=_kernel_manager(Path(folder)),
            )
        except PapermillExecutionError as error:
            raise InputError(_failure(path, error)) from None
        except (DeadKernelError, CellTimeoutError, RuntimeError) as error:
            raise InputError(
                f"{path}: its kernel died or did not start ({error}); is there enough memory?"
            ) from error
    for cell in executed.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "stream" and output.name == "stderr":
                sys.stderr.write(output.text)
    return executed


def _kernel_manager(folder: Path) -> type:
    """A manager whose kernel is reached through sockets in `folder`, so that no port is opened."""
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager

    sockets = folder / "k"
    if len(os.fsencode(sockets)) > _LONGEST_SOCKET:
        raise InputError(
            f"the folder for temporary files, {folder.parent}, has too long a name for sockets;"
            " set TMPDIR to a shorter one"
        )

    # nbclient makes the manager itself and takes no arguments for it. The kernel is this Python's,
    # whatever one of that name a person has installed.
    class LocalKernelManager(AsyncKernelManager):
        def __init__(self, **options: Any) -> None:
            super().__init__(transport="ipc", ip=str(sockets), **options)
            self._kernel_spec = KernelSpec(argv=_KERNEL, display_name="Python", language="python")

    return LocalKernelManager


def _failure(path: Path, error: Any) -> str:
    """Which cell failed and why; the number counts the cells of the notebook as it is on disk."""
    line = next((one for one in error.source.splitlines() if one.strip()), "").strip()
    reason = " ".join(str(error.evalue).split())[:600]
    # papermill adds a cell with the parameters, and one at the top that tells of the failure.
    return (
        f"{path}: the cell that begins with {line[:80]!r} failed with {error.ename}: {reason};"
        " nothing was written"
    )


def page(title: str, study: str, body: str) -> str:
    """A whole page: the style, a header, the contents by its headings, the body.

    Args:
        title: plain text; an `<h1>` in the body takes its place, and is moved above the contents.
        study: its name, plain text; may be empty.
        body: HTML, with headings free of attributes.
    """
    from jinja2 import Environment

    body, headings = _anchored(body)
    title = next((text for level, _, text in headings if level == 1), title)
    # The page has its title above the contents, wherever the notebook gives it.
    body = re.sub(r"<h1\b.*?</h1>\s*", "", body, count=1, flags=re.DOTALL)
    environment = Environment(autoescape=True, keep_trailing_newline=True)
    template = environment.from_string((_HERE / "templates" / "page.html.j2").read_text("utf-8"))
    return template.render(
        title=title,
        study=study,
        version=version("whencount"),
        contents=[(anchor, text) for level, anchor, text in headings if level == 2],
        body=body,
        style=(_HERE / "templates" / "page.css").read_text("utf-8"),
    )


def _page(notebook: Any, study: str, folder: Path) -> str:
    from nbconvert import HTMLExporter

    exporter = HTMLExporter(  # type: ignore[no-untyped-call]
        template_name="whencount",
        extra_template_basedirs=[str(_HERE / "templates")],
        embed_images=True,
        exclude_anchor_links=True,
        exclude_input=True,
    )
    body, _ = exporter.from_notebook_node(notebook, {"metadata": {"path": str(folder)}})
    return page("Report", study, body)


def _anchored(body: str) -> tuple[str, list[tuple[int, str, str]]]:
    """Give every heading an id of its own; also return (level, id, plain text) of each."""
    headings: list[tuple[int, str, str]] = []
    taken: dict[str, int] = {}

    def anchor(match: re.Match[str]) -> str:
        level, inner = match.groups()
        text = html.unescape(re.sub(r"<[^>]*>", "", inner)).strip()
        slug = "-".join(re.findall(r"\w+", text.lower())) or "section"
        taken[slug] = taken.get(slug, 0) + 1
        if taken[slug] > 1:
            slug = f"{slug}-{taken[slug]}"
        headings.append((int(level), slug, text))
        return f'<h{level} id="{slug}">{inner}</h{level}>'

    return _HEADING.sub(anchor, body), headings


@contextmanager
def _quiet_jupyter() -> Iterator[None]:
    """Keep a person's Jupyter and IPython profiles out of the run, and the run out of their home.

    Start-up files and settings there would change the page.
    """
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "IPYTHONDIR": f"{folder}/ipython",
            "JUPYTER_CONFIG_DIR": f"{folder}/config",
            "JUPYTER_RUNTIME_DIR": f"{folder}/runtime",
            "MATPLOTLIBRC": str(_installed("matplotlib") / "mpl-data" / "matplotlibrc"),
            "PYTHONHASHSEED": "0",
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        }
        before = {name: os.environ.get(name) for name in settings}
        os.environ.update(settings)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value


def _installed(package: str) -> Path:
    """The folder of an installed package, found without importing it."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise InputError(
            f"rendering a report needs the package {package}; install whencount[study]"
        )
    return Path(spec.origin).parent
