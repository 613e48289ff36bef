"""A client of the engine's protocol (docs/engine-protocol.md) for the tests."""

from __future__ import annotations

import json
import os
import select
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from conftest import REPOSITORY

HELLO, LOAD, GENERATE, CANCEL, PING, THERMAL, SHUTDOWN, TRACE = range(1, 9)
HELLO_REPLY, LOADED, TEXT, TREE, STATS, DONE, PONG, ERROR, READING, TRACED = range(129, 139)

Frame = tuple[int, dict[str, Any]]
SECONDS = 60  # longer than any answer here takes on the slowest machine


def find_engine() -> Path:
    """The executable of the preset release; SAPWOOD_ENGINE names another."""
    release = REPOSITORY / "build" / "release" / "runtime_cpp" / "sapwood_engine"
    path = Path(os.environ.get("SAPWOOD_ENGINE") or release)
    if not path.is_file():
        pytest.skip("sapwood_engine is not built; scripts/build_engine makes it")
    return path


class EngineProcess:
    """A running ``sapwood_engine serve``; frames in and out."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(
            [*command, "serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._in, self._out = self.process.stdin, self.process.stdout
        self._read = b""

    def send_bytes(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[self._in.write(view) :]

    def send(self, kind: int, **fields: Any) -> None:
        payload = json.dumps(fields, ensure_ascii=False).encode()
        self.send_bytes(struct.pack("<IB", len(payload), kind) + payload)

    def receive(self, seconds: float = SECONDS) -> Frame:
        """The next frame. Raises TimeoutError, or EOFError where the process has ended."""
        end = time.monotonic() + seconds
        while True:
            if len(self._read) >= 5:
                length, kind = struct.unpack_from("<IB", self._read)
                if len(self._read) >= 5 + length:
                    payload = self._read[5 : 5 + length]
                    self._read = self._read[5 + length :]
                    return kind, json.loads(payload.decode("utf-8"))
            left = end - time.monotonic()
            if left <= 0 or not select.select([self._out], [], [], left)[0]:
                raise TimeoutError
            data = os.read(self._out.fileno(), 1 << 16)
            if not data:
                raise EOFError
            self._read += data

    def receive_until(self, *kinds: int, seconds: float = SECONDS) -> list[Frame]:
        """Frames up to the first of one of these types."""
        frames: list[Frame] = []
        while not frames or frames[-1][0] not in kinds:
            frames.append(self.receive(seconds))
        return frames

    def ask(self, kind: int, *replies: int, **fields: Any) -> dict[str, Any]:
        self.send(kind, **fields)
        return self.receive_until(*replies)[-1][1]

    def greet_and_load(self, bundle: Path, **options: Any) -> dict[str, Any]:
        self.ask(HELLO, HELLO_REPLY, protocol=1)
        return self.ask(LOAD, LOADED, ERROR, id=1, bundle=str(bundle), **options)

    def answer(self, number: int, **fields: Any) -> tuple[str, dict[str, Any]]:
        """The text of an answer, and its last frame."""
        self.send(GENERATE, id=number, **fields)
        frames = self.receive_until(DONE, ERROR)
        return "".join(f["text"] for kind, f in frames if kind == TEXT), frames[-1][1]

    def end(self) -> tuple[int, str]:
        """Closes the input and waits: exit status and standard error."""
        self._in.close()
        assert self.process.stderr is not None
        error = self.process.stderr.read().decode()
        return self.process.wait(SECONDS), error


@contextmanager
def engine_process(*command: str | Path) -> Iterator[EngineProcess]:
    engine = EngineProcess([str(part) for part in command])
    try:
        yield engine
    finally:
        engine.process.kill()
        engine.process.wait()
        for pipe in (engine.process.stdin, engine.process.stdout, engine.process.stderr):
            assert pipe is not None
            pipe.close()
