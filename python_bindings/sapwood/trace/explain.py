"""Where a trace's time went, and the usual bottlenecks in words, with what to change.

Every rule compares what a trace shows with what it would have to show for the thing to be no
trouble; its threshold stands beside it. All look at whole steps of decoding.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean, median, quantiles

from sapwood.errors import SapwoodError
from sapwood.trace.events import COUNTER, STAGE, Event

# Of the time that accepted guesses save: drafting, or rows beyond the first, may not eat this much.
_DRAFT_EATS = 0.6
_WIDTH_EATS = 0.6
_SYNC_SHARE = 0.05  # of a step
_GAP_SHARE = 0.10  # of a step, in no stage
_SAMPLING_SHARE = 0.10
_ROWS_A_RUN = 64  # of the cache: a text of n slots may lie in 2 + n / 64 stretches
_CONTENTION = 1.5  # a slow pass (of ten the slowest) against a usual one of as many rows
_HOT_CELSIUS = 45.0  # MATH.md, section 7
_SLOWED = 1.15  # passes of the last third against those of the first
_ENOUGH = 8  # passes of the same rows that say something


@dataclass(frozen=True)
class Finding:
    """A bottleneck: what it is, and what to change."""

    rule: str
    words: str
    advice: str


@dataclass(frozen=True)
class Step:
    """Times in nanoseconds."""

    begin: int
    end: int
    rows: int
    accepted: int
    stages: dict[str, int]  # by name, what was spent in it

    def spent(self, *names: str) -> int:
        return sum(self.stages.get(name, 0) for name in names)

    @property
    def length(self) -> int:
        return self.end - self.begin


@dataclass(frozen=True)
class Explanation:
    """What ``sapwood trace explain`` says."""

    steps: int
    tokens_a_step: float
    milliseconds_a_step: float
    shares: dict[str, float]  # of decoding, by stage, and "between stages"
    findings: list[Finding]


def explain(events: Sequence[Event]) -> Explanation:
    """Raises SapwoodError for a trace without a whole step."""
    steps = steps_of(events)
    if not steps:
        raise SapwoodError("the trace holds no whole step; record one with `sapwood trace run`")
    total = sum(step.length for step in steps)
    spent: dict[str, int] = defaultdict(int)
    for step in steps:
        for name, time in _outer(step).items():
            spent[name] += time
    shares = {name: time / total for name, time in sorted(spent.items(), key=lambda s: -s[1])}
    shares["between stages"] = max(0.0, 1 - sum(shares.values()))
    counters: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        if event.kind == COUNTER:
            counters[event.name].append(event)
    found = [finding for rule in RULES if (finding := rule(steps, counters)) is not None]
    return Explanation(
        steps=len(steps),
        tokens_a_step=1 + mean(step.accepted for step in steps),
        milliseconds_a_step=total / len(steps) / 1e6,
        shares=shares,
        findings=found,
    )


_DRAFT, _PRUNE, _SYNC = "Draft_Generate", "Prune_Controller", "Sync_Draft2Target"
_VERIFY, _SAMPLE, _LEARN = "Target_Verify", "Accept_Reject_Sample", "Learn"


def steps_of(events: Sequence[Event]) -> list[Step]:
    """The steps whose pass is in the trace. A stage belongs to the latest pass that began before
    the next draft; steps count from 1 again with every answer."""
    stages = sorted((e for e in events if e.kind == STAGE and e.step > 0), key=lambda e: e.begin)
    groups: list[list[Event]] = []
    for stage in stages:
        if not groups or groups[-1][0].step != stage.step:
            groups.append([])
        groups[-1].append(stage)
    steps = []
    for group in groups:
        passes = [stage for stage in group if stage.name == _VERIFY]
        if len(passes) != 1:
            continue
        spent: dict[str, int] = defaultdict(int)
        for stage in group:
            spent[stage.name] += stage.duration
        end = max(stage.end for stage in group)
        accepted = max(stage.accepted for stage in group)
        steps.append(Step(group[0].begin, end, passes[0].rows, accepted, dict(spent)))
    return steps


Counters = dict[str, list[Event]]


def _one_row(steps: Sequence[Step]) -> float:
    """What a pass of one row takes, or of the fewest rows there are."""
    fewest = min(step.rows for step in steps)
    return median(step.spent(_VERIFY) for step in steps if step.rows == fewest)


def slow_draft(steps: Sequence[Step], _: Counters) -> Finding | None:
    """Drafting costs about what its accepted guesses save."""
    drafting = sum(step.spent(_DRAFT, _LEARN) for step in steps)
    saved = sum(step.accepted for step in steps) * _one_row(steps)
    if drafting <= _DRAFT_EATS * saved or drafting < 0.02 * sum(s.length for s in steps):
        return None
    accepted = mean(step.accepted for step in steps)
    return Finding(
        "draft too slow for its acceptance",
        f"drafting takes {drafting / len(steps) / 1e6:.2f} ms a step, and the {accepted:.2f} "
        f"guesses accepted in it save {saved / len(steps) / 1e6:.2f} ms",
        "use a drafter that costs less (--drafter mix), or train a draft for this target "
        "(sapwood distill)",
    )


def wide_tree(steps: Sequence[Step], _: Counters) -> Finding | None:
    """Rows beyond the first cost about what accepted guesses save."""
    one = _one_row(steps)
    wider = sum(max(0.0, step.spent(_VERIFY) - one) for step in steps)
    saved = sum(step.accepted for step in steps) * one
    rows = mean(step.rows for step in steps)
    if rows < 1.5 or wider <= _WIDTH_EATS * saved or wider < 0.05 * one * len(steps):
        return None
    return Finding(
        "tree too wide for the cost curve",
        f"a pass verifies {rows:.1f} rows and takes {wider / len(steps) / 1e6:.2f} ms more than "
        f"one of the fewest; accepted guesses save {saved / len(steps) / 1e6:.2f} ms",
        "use --mode dynamic, which stops where a row no longer pays, and let sapwood tune measure "
        "what a row costs here; with --mode fixed, fewer nodes",
    )


def sync_gaps(steps: Sequence[Step], _: Counters) -> Finding | None:
    """Time between draft and target, or in no stage at all."""
    total = sum(step.length for step in steps)
    waiting = sum(step.spent(_SYNC) for step in steps)
    # Stages that run side by side leave no gap: only what none of them covers counts.
    covered = sum(min(step.length, sum(_outer(step).values())) for step in steps)
    gaps = total - covered
    if waiting <= _SYNC_SHARE * total and gaps <= _GAP_SHARE * total:
        return None
    return Finding(
        "synchronisation gaps",
        f"{100 * waiting / total:.0f} % of a step is spent handing the draft to the target, and "
        f"{100 * gaps / total:.0f} % between stages",
        "fewer threads than cores leaves room for the one that hands over; with draft and target "
        "on units of their own, double buffering hides the draft",
    )


def _outer(step: Step) -> dict[str, int]:
    """Its stages but for pruning, which lies inside drafting."""
    return {name: time for name, time in step.stages.items() if name != _PRUNE}


def slow_sampling(steps: Sequence[Step], _: Counters) -> Finding | None:
    """Accepting and sampling take a visible share."""
    total = sum(step.length for step in steps)
    sampling = sum(step.spent(_SAMPLE) for step in steps)
    if sampling <= _SAMPLING_SHARE * total:
        return None
    return Finding(
        "sampling on a large vocabulary",
        f"accepting and sampling take {100 * sampling / total:.0f} % of a step, "
        f"{sampling / len(steps) / 1e6:.2f} ms",
        "--top-k 64 or --min-p leave fewer tokens to draw from; greedy decoding (--temperature 0) "
        "needs the likeliest one alone",
    )


def scattered_cache(_: Sequence[Step], counters: Counters) -> Finding | None:
    """The text's slots lie in many stretches."""
    runs, slots = counters.get("KV runs", []), counters.get("KV slots", [])
    if not runs or not slots:
        return None
    most, taken = max(event.value for event in runs), max(event.value for event in slots)
    if most <= 2 + taken / _ROWS_A_RUN:
        return None
    return Finding(
        "KV fragmentation",
        f"the text's {taken:.0f} slots lie in {most:.0f} stretches, so attention reads them in "
        "pieces",
        "end conversations that are no longer needed, or give the engine a longer context than "
        "its texts, so that free slots lie together",
    )


def contention(steps: Sequence[Step], _: Counters) -> Finding | None:
    """Passes of as many rows take very different times."""
    worst = 0.0
    for rows in {step.rows for step in steps}:
        times = [step.spent(_VERIFY) for step in steps if step.rows == rows]
        if len(times) >= _ENOUGH:
            worst = max(worst, quantiles(times, n=10)[-1] / median(times))
    if worst < _CONTENTION:
        return None
    return Finding(
        "thread contention",
        f"of passes of as many rows, one in ten takes {worst:.1f} times what the usual one takes",
        "fewer threads (--threads), so that none waits for a core that does other work; on a "
        "phone, those of the fast cores alone",
    )


def heat(steps: Sequence[Step], counters: Counters) -> Finding | None:
    """It became hot, and passes became slower."""
    temperatures = counters.get("temperature", [])
    if not temperatures or max(event.value for event in temperatures) < _HOT_CELSIUS:
        return None
    third = len(steps) // 3
    ratios = []
    for rows in {step.rows for step in steps}:
        early = [step.spent(_VERIFY) for step in steps[:third] if step.rows == rows]
        late = [step.spent(_VERIFY) for step in steps[-third:] if step.rows == rows]
        if len(early) >= _ENOUGH and len(late) >= _ENOUGH:
            ratios.append(median(late) / median(early))
    if not ratios or median(ratios) < _SLOWED:
        return None
    hottest = max(event.value for event in temperatures)
    return Finding(
        "heat",
        f"it reached {hottest:.0f} C, and passes became {median(ratios):.2f} times as slow",
        "fewer threads or a pause between answers; a smaller tree does less work in the same time",
    )


RULES: tuple[Callable[[Sequence[Step], Counters], Finding | None], ...] = (
    slow_draft,
    wide_tree,
    sync_gaps,
    slow_sampling,
    scattered_cache,
    contention,
    heat,
)
