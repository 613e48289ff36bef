"""What one answer cost: counts, times and rates."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sapwood._runtime import SessionStats


@dataclass(frozen=True)
class Stats:
    """Counts and times of one answer. Seconds are wall time; rates are per second.

    ``mean_accepted_length`` is emitted tokens a step, the target's own token included, so plain
    decoding has 1. The prompt's last token is the first step's root: ``prefill_seconds`` covers
    the others. ``tokens_per_second`` is over the steps alone; ``first_token_seconds`` runs from
    the call of ``generate``. ``draft_seconds``, part of ``decode_seconds``, is for growing trees
    and learning from what came. ``cost_curve`` says where the budget of a tree comes from: "tuned"
    (``sapwood tune`` measured this device) or "learned" (from the session's own steps).
    ``peak_kv_slots`` counts text and draft; ``peak_draft_slots`` and ``mean_draft_slots``, the most
    and the mean of a step, what was held beyond the text. ``reused_prompt_tokens`` were in the
    cache already, from this conversation or an earlier text that begins alike. ``beta`` is where
    the controller ended.
    ``hidden_draft_share`` is the part of useful drafting that was done while the target verified
    (with ``draft_threads``; ``draft_seconds`` is then what was waited for).
    ``heat`` is the governor's state: "cool", or what it makes of the device's heat or power, and
    ``heat_reason`` why it last changed; ``memory_pressure`` likewise: "none", "low", "critical".
    ``strategy`` is what the latest step drafted in place of what ``mode`` asks for ("as asked":
    just that), ``strategy_reason`` why it last changed and ``strategy_changes`` how often it did.
    ``missed_deadlines`` counts stages of a step that hung or took far too long and drafts that
    failed; ``watchdog`` is the latest of these in words, "" if there were none.
    """

    mode: str
    verifier: str
    drafter: str
    host: str
    kernels: str
    threads: int
    prompt_tokens: int
    reused_prompt_tokens: int
    emitted_tokens: int
    steps: int
    rows_verified: int
    drafted_tokens: int
    accepted_tokens: int
    peak_kv_slots: int
    peak_draft_slots: int
    mean_draft_slots: float
    beta: float
    prefill_seconds: float
    decode_seconds: float
    draft_seconds: float
    first_token_seconds: float
    tokens_per_second: float
    prompt_tokens_per_second: float
    mean_accepted_length: float
    cost_curve: str
    hidden_draft_share: float
    heat: str
    heat_reason: str
    memory_pressure: str
    strategy: str
    strategy_reason: str
    strategy_changes: int
    missed_deadlines: int
    watchdog: str
    stop_reason: str

    @classmethod
    def of(
        cls,
        counts: SessionStats,
        *,
        drafter: str,
        host: str,
        kernels: str,
        threads: int,
        first_token_seconds: float,
        stop_reason: str,
    ) -> Stats:
        return cls(
            mode=counts.mode,
            verifier=counts.verifier,
            drafter=drafter,
            host=host,
            kernels=kernels,
            threads=threads,
            prompt_tokens=counts.prompt_tokens,
            reused_prompt_tokens=counts.reused_prompt_tokens,
            emitted_tokens=counts.emitted_tokens,
            steps=counts.steps,
            rows_verified=counts.rows_verified,
            drafted_tokens=counts.drafted_tokens,
            accepted_tokens=counts.accepted_tokens,
            peak_kv_slots=counts.peak_kv_slots,
            peak_draft_slots=counts.peak_draft_slots,
            mean_draft_slots=counts.mean_draft_slots,
            beta=counts.beta,
            prefill_seconds=counts.prefill_seconds,
            decode_seconds=counts.decode_seconds,
            draft_seconds=counts.draft_seconds,
            first_token_seconds=first_token_seconds,
            tokens_per_second=counts.tokens_per_second,
            prompt_tokens_per_second=counts.prompt_tokens_per_second,
            mean_accepted_length=counts.mean_accepted_length,
            cost_curve=counts.cost_curve,
            hidden_draft_share=counts.hidden_draft_share,
            heat=counts.heat,
            heat_reason=counts.heat_reason,
            memory_pressure=counts.memory_pressure,
            strategy=counts.strategy,
            strategy_reason=counts.strategy_reason,
            strategy_changes=counts.strategy_changes,
            missed_deadlines=counts.missed_deadlines,
            watchdog=counts.watchdog,
            stop_reason=stop_reason,
        )

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def _draft_share(self) -> str:
        if self.drafted_tokens == 0 or self.decode_seconds == 0:
            return ""
        hidden = f", {self.hidden_draft_share:.0%} hidden" if self.hidden_draft_share > 0 else ""
        share = self.draft_seconds / self.decode_seconds
        return f", {self.drafter} {share:.0%} of the time{hidden}"

    def _restraint(self) -> str:
        found = []
        if self.heat != "cool":
            found.append(f"{self.heat} ({self.heat_reason})")
        if self.memory_pressure != "none":
            found.append(f"memory {self.memory_pressure}")
        return f" | {', '.join(found)}: less speculation" if found else ""

    def line(self) -> str:
        """One line for a person."""
        return (
            f"{self.emitted_tokens} tokens at {self.tokens_per_second:.1f} tokens/s"
            f" | prompt {self.prompt_tokens} at {self.prompt_tokens_per_second:.0f} tokens/s"
            f" | {self.mode}: {self.mean_accepted_length:.2f} tokens a step, {self.steps} steps"
            f"{self._draft_share()}"
            f" | {self.host} ({self.kernels}), {self.threads} threads | {self.stop_reason}"
            f"{self._restraint()}"
            f"{' | ' + self.watchdog if self.watchdog else ''}"
        )
