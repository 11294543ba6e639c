"""A real browser without a window, driven through its DevTools pipe; no driver is needed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_SECONDS = 60.0
_CODES = {
    **{"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "End": 35, "Home": 36},
    **{"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40},
}
_COMPLAINTS = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")


def find() -> str | None:
    """The browser's command, where there is one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Page:
    """One open page.

    Every method sends a command of the DevTools protocol and waits for its answer.
    """

    def __init__(self, reading: int, writing: int) -> None:
        self._reading, self._writing = reading, writing
        self._number = 0
        self._rest = b""
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        """What the browser told of its own accord: requests, messages, faults, once watched."""

    def command(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command, hand back its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session and not method.startswith(("Target.", "Browser.")):
            message["sessionId"] = self._session
        os.write(self._writing, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                result: dict[str, Any] = answer["result"]
                return result
            if "method" in answer:
                self.events.append(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            piece = os.read(self._reading, 1 << 16)
            assert piece, "the browser closed its pipe"
            self._rest += piece
        first, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(first)
        return message

    def open(self, path: Path, width: int = 1200, height: int = 900) -> None:
        """Load a file in a window of this size."""
        target = self.command("Target.createTarget", url="about:blank")["targetId"]
        attached = self.command("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.command(f"{domain}.enable")
        self.command("Page.navigate", url=path.resolve().as_uri())
        self.until("document.readyState === 'complete'")

    def value(self, expression: str) -> Any:
        """What a JavaScript expression gives."""
        answer = self.command("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, expression: str) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + _SECONDS
        while not self.value(expression):
            assert time.monotonic() < end, f"never true: {expression}"
            time.sleep(0.05)

    def press(self, key: str) -> None:
        """Press and release a key, as a keyboard does."""
        text = key if len(key) == 1 else {"Enter": "\r"}.get(key, "")
        code = _CODES.get(key, 0)
        self.command(
            "Input.dispatchKeyEvent",
            type="keyDown", key=key, windowsVirtualKeyCode=code, **({"text": text} if text else {}),
        )  # fmt: skip
        self.command("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def click(self, x: float, y: float) -> None:
        """Press and release the mouse at a place of the window, as a hand does."""
        for kind, buttons in (("mouseMoved", 0), ("mousePressed", 1), ("mouseReleased", 0)):
            button = "none" if kind == "mouseMoved" else "left"
            self.command(
                "Input.dispatchMouseEvent",
                type=kind, x=x, y=y, button=button, buttons=buttons, clickCount=1,
            )  # fmt: skip

    def prefer(self, **features: str) -> None:
        """Set what a person prefers, `prefers_color_scheme="dark"` say."""
        listed = [{"name": name.replace("_", "-"), "value": one} for name, one in features.items()]
        self.command("Emulation.setEmulatedMedia", features=listed)

    def complaints(self) -> list[str]:
        """What went wrong so far: exceptions, errors and warnings of the console and the log."""
        told = [event["params"] for event in self.events if event["method"] in _COMPLAINTS]
        bad = [one for one in told if one.get("entry", one).get("level", "error") == "error"]
        return [json.dumps(one) for one in bad if one.get("type", "error") in ("error", "warning")]

    def requests(self) -> list[str]:
        """The addresses that were asked for so far."""
        asked = [e["params"] for e in self.events if e["method"] == "Network.requestWillBeSent"]
        return [one["request"]["url"] for one in asked]

    def write(self, text: str) -> None:
        """Type a text, key by key."""
        for letter in text:
            self.press(letter)

    def choose_file(self, selector: str, path: Path) -> None:
        """Give a file to an input."""
        root = self.command("DOM.getDocument")["root"]["nodeId"]
        node = self.command("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.command("DOM.setFileInputFiles", files=[str(path.resolve())], nodeId=node)

    def keep_downloads(self, folder: Path) -> None:
        """Where exported files go."""
        self.command(
            "Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder.resolve())
        )


@contextmanager
def browser(profile: Path) -> Iterator[Page]:
    """Start a browser with a profile of its own, and end it."""
    command = find()
    assert command is not None
    to_read, to_write = os.pipe()
    from_read, from_write = os.pipe()
    options = [
        "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        "--no-first-run", "--disable-extensions", "--disable-background-networking",
        "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank",
    ]  # fmt: skip

    def connect() -> None:
        # The browser reads commands from 3 and writes answers to 4.
        reading, writing = os.dup(to_read), os.dup(from_write)
        os.dup2(reading, 3)
        os.dup2(writing, 4)

    process = subprocess.Popen(
        [command, *options],
        preexec_fn=connect,  # noqa: PLW1509 - nothing else gives a child these two numbers
        pass_fds=(3, 4, to_read, from_write),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_read)
    os.close(from_write)
    try:
        yield Page(from_read, to_write)
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(from_read)
        os.close(to_write)
