"""A headless Chromium, driven through the pipe of its DevTools protocol: no port, no package."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_SECONDS = 120  # for any answer; a busy machine starts a browser slowly


def find_chromium() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for path in map(shutil.which, names) if path), None)


class Chromium:
    """One page. ``requests``: the addresses that it asked for since it was opened."""

    def __init__(self, process: subprocess.Popen[bytes], commands: int, answers: int) -> None:
        self.requests: list[str] = []
        self._process, self._commands, self._answers = process, commands, answers
        self._buffer, self._number, self._session = b"", 0, ""
        self._events: list[str] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Network", "Runtime"):
            self._call(f"{domain}.enable")

    def open(self, page: Path, *, width: int, height: int, dark: bool) -> None:
        """Shows a file on a screen of so many CSS pixels, and waits until it has loaded."""
        self.requests.clear()
        self._events.clear()
        screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": True}
        self._call("Emulation.setDeviceMetricsOverride", **screen)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])
        self._call("Page.navigate", url=page.resolve().as_uri())
        while "Page.loadEventFired" not in self._events:
            self._take(self._read())

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        answer = self._call("Runtime.evaluate", expression=expression, returnByValue=True)
        return answer["result"].get("value")

    def picture(self) -> bytes:
        """The whole page as PNG."""
        answer = self._call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        return base64.b64decode(answer["data"])

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]  # type: ignore[no-any-return]
            self._take(answer)

    def _take(self, event: dict[str, Any]) -> None:
        self._events.append(event.get("method", ""))
        if event.get("method") == "Network.requestWillBeSent":
            self.requests.append(event["params"]["request"]["url"])

    def _read(self) -> dict[str, Any]:
        deadline = time.monotonic() + _SECONDS
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._answers], [], [], deadline - time.monotonic())
            piece = os.read(self._answers, 1 << 20) if ready else b""
            assert piece, f"chromium did not answer; its status: {self._process.poll()}"
            self._buffer += piece
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)  # type: ignore[no-any-return]


@contextmanager
def chromium(program: str, profile: Path) -> Iterator[Chromium]:
    """A browser with a fresh profile in this folder, ended at the end."""
    to_read, commands = os.pipe()  # of the browser's file 3
    answers, to_write = os.pipe()  # of its file 4
    # The shell puts the pipes where the browser looks for them; a root's browser has no sandbox.
    script = f'exec "$@" 3<&{to_read} 4>&{to_write}'
    options = ["--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu"]
    options += ["--no-first-run", "--disable-background-networking", f"--user-data-dir={profile}"]
    process = subprocess.Popen(
        ["bash", "-c", script, "bash", program, *options],
        pass_fds=(to_read, to_write),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_read)
    os.close(to_write)
    try:
        yield Chromium(process, commands, answers)
    finally:
        os.close(commands)  # which ends the browser
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(answers)
