"""The kernel that runs a report's notebook: IPython's, but one that opens no port.

Its sockets are files, as `rendering` asks for; but IPython's kernel also listens on a port of this
machine for what forked processes print. Notebooks of reports fork none.
"""

from __future__ import annotations

from typing import Any


def run() -> None:
    """Serve one notebook, until its client says that it is done."""
    from ipykernel import iostream, kernelapp

    class PublishingThread(iostream.IOPubThread):
        def __init__(self, socket: Any, pipe: bool = False, **options: Any) -> None:
            super().__init__(socket, pipe=False, **options)  # type: ignore[no-untyped-call]

    kernelapp.IOPubThread = PublishingThread  # type: ignore
    kernelapp.launch_new_instance()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    run()
