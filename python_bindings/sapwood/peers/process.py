"""A peer in a process of its own, asked and answering in lines of JSON."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from sapwood.errors import SapwoodError
from sapwood.peers import Peer

_SERVE = Path(__file__).with_name("serve.py")
# Threads of a pool poll for a while after a pass, on the cores that the other side's turn needs.
SETTLE_SECONDS = 0.1


class PeerProcess:
    """``version`` is the peer's own. Raises SapwoodError where it cannot load the weights, or ends.

    ``python``: the interpreter that has the peer's package; it need not have ours.
    """

    def __init__(
        self, peer: Peer, python: str, weights: Path, *, threads: int, context_length: int
    ) -> None:
        if peer.program is None:
            raise ValueError(f"{peer.name}: {peer.differs}")
        self.peer = peer
        self._process = subprocess.Popen(
            [
                python,
                str(_SERVE),
                str(peer.program),
                str(weights),
                str(threads),
                str(context_length),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.version = str(self._read()["version"])

    def ask(self, what: str, **about: Any) -> dict[str, Any]:
        """What the method ``what`` of the program's ``Runtime`` returns."""
        stdin = self._process.stdin
        assert stdin is not None
        try:
            stdin.write(json.dumps({"what": what, **about}) + "\n")
            stdin.flush()
        except BrokenPipeError:
            pass  # it has ended, which reading says
        return self._read()

    def close(self) -> None:
        self._process.communicate()

    def _read(self) -> dict[str, Any]:
        stdout = self._process.stdout
        assert stdout is not None
        line = stdout.readline()
        try:
            answer: dict[str, Any] = json.loads(line)
        except ValueError:
            status = self._process.wait()
            raise SapwoodError(f"{self.peer.name}: ended with status {status}") from None
        if "error" in answer:
            self._process.wait()
            raise SapwoodError(f"{self.peer.name}: {answer['error']}")
        return answer
