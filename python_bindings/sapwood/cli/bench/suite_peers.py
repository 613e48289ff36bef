"""``sapwood bench suite --peers``: other runtimes beside ours, on the bundle's own GGUF file."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from sapwood.cli.bench.suite_counts import Answer, Outcome
from sapwood.cli.common import messages_console
from sapwood.errors import SapwoodError
from sapwood.peers import PEERS, Peer
from sapwood.peers.process import SETTLE_SECONDS, PeerProcess


def check_weights(weights: Path, manifest: Mapping[str, Any], temperature: float) -> None:
    """Raises SapwoodError where peers would not run what the bundle runs."""
    if not weights.is_file():
        raise SapwoodError(f"--peers {weights}: no such file; give the .gguf of the bundle")
    source = manifest.get("source", {})
    if source.get("kind") != "gguf" or source.get("file") != weights.name:
        raise SapwoodError(
            f"--peers {weights}: the bundle was made of {source.get('file', 'something else')}; "
            "peers are measured on the same GGUF file"
        )
    if temperature != 0:
        raise SapwoodError("--peers: peers are compared greedily; leave --temperature at 0")


def installed_peers() -> tuple[list[Peer], dict[str, str]]:
    """Those that can be measured here; and of the others, why they are left out, by name."""
    left_out = {}
    for peer in PEERS:
        if peer.program is None:
            left_out[peer.name] = peer.differs
        elif not peer.installed:
            left_out[peer.name] = f"not installed; run: pip install {peer.package}"
    return [peer for peer in PEERS if peer.name not in left_out], left_out


@contextmanager
def opened(
    peers: Sequence[Peer], weights: Path, *, threads: int, context_length: int
) -> Iterator[dict[str, PeerProcess]]:
    """Peers by name, each loaded in a process of its own, all ended at the end."""
    with ExitStack() as stack:
        processes = {}
        for peer in peers:
            with messages_console().status(f"{peer.name} is loading"):
                process = PeerProcess(
                    peer, sys.executable, weights, threads=threads, context_length=context_length
                )
            stack.callback(process.close)
            processes[peer.name] = process
        yield processes


def answer(process: PeerProcess, ids: Sequence[int], most: int, eos: Sequence[int]) -> Answer:
    """The peer's turn, once our threads have come to rest; and rest for its own after it."""
    time.sleep(SETTLE_SECONDS)
    found = process.ask("answer", ids=list(ids), most=most, eos=list(eos))
    time.sleep(SETTLE_SECONDS)
    return Answer.of_plain(found["ids"], found["seconds"])


def describe(
    peers: Sequence[Peer],
    versions: Mapping[str, str],
    figures: Mapping[str, Any],
    outcomes: Sequence[Outcome],
    reference: str,
) -> dict[str, Any]:
    """The figures by peer, with its version, what is not comparable, and how often its text was
    ours token for token."""
    return {
        peer.name: {
            **figures[peer.name],
            "version": versions[peer.name],
            "differs": peer.differs,
            "equal_answers": sum(not each.differs(peer.name, reference) for each in outcomes),
        }
        for peer in peers
    }
