"""How an answer is going, at this moment: what a person watches while it is made."""

from __future__ import annotations

import resource
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sapwood._runtime import SessionStats


@dataclass(frozen=True)
class Metrics:
    """Rates are of the latest sixteen steps, the tree is the latest step's.

    ``accepted_length`` is emitted tokens a step, the target's own token included. ``branching`` is
    the tree's nodes over its depth: a chain has 1, an empty tree 0. ``strategy`` is what steps
    draft by now in place of what ``mode`` asks for ("as asked": just that), and
    ``strategy_reason`` why that last changed, "" if it never did. ``kv_bytes`` is what text and
    earlier texts hold of the KV cache; ``peak_memory_bytes`` the most that the process ever had
    in memory. ``celsius`` is None where nothing measures it.
    """

    mode: str
    strategy: str
    strategy_reason: str
    tokens_per_second: float
    milliseconds_per_token: float
    accepted_length: float
    tree_nodes: int
    branching: float
    heat: str
    celsius: float | None
    memory_pressure: str
    kv_bytes: int
    peak_memory_bytes: int

    @classmethod
    def of(cls, counts: SessionStats, *, kv_bytes: int) -> Metrics:
        rate = counts.recent_tokens_per_second
        return cls(
            mode=counts.mode,
            strategy=counts.strategy,
            strategy_reason=counts.strategy_reason,
            tokens_per_second=rate,
            milliseconds_per_token=1e3 / rate if rate > 0 else 0.0,
            accepted_length=counts.recent_accepted_length,
            tree_nodes=counts.tree_nodes,
            branching=counts.tree_nodes / counts.tree_depth if counts.tree_depth > 0 else 0.0,
            heat=counts.heat,
            celsius=counts.celsius,
            memory_pressure=counts.memory_pressure,
            kv_bytes=kv_bytes,
            peak_memory_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        )

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def line(self) -> str:
        """One line for a person, of at most about a hundred characters."""
        parts = [
            f"{self.tokens_per_second:.1f} tokens/s",
            f"{self.accepted_length:.2f} a step",
            f"tree {self.tree_nodes} (x{self.branching:.1f})",
            self.mode if self.strategy == "as asked" else self._switched(),
        ]
        if self.celsius is not None:
            parts.append(f"{self.celsius:.0f} C")
        parts.append(f"KV {self.kv_bytes / 2**20:.0f} of {self.peak_memory_bytes / 2**20:.0f} MiB")
        return " | ".join(parts)

    def _switched(self) -> str:
        return f"{self.mode}: {self.strategy} ({self.strategy_reason})"
