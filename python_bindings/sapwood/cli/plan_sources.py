"""Where ``sapwood plan`` takes acceptance and costs from: what was given, else measured."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from sapwood.errors import SapwoodError
from sapwood.options import HostOptions, default_threads
from sapwood.plan import LONGEST, CostCurve, Costs, by_depth, constant

# Tokens that a draft reads before its first guess of a step: about what a step emits.
_UNREAD = 2


@dataclass(frozen=True)
class Given:
    """The command's options, as typed."""

    bundle: str | None
    acceptance: str | None
    decay: float
    draft_cost: float | None
    cost_curve: str | None
    overhead: float
    figures: Path | None
    draft: Path | None
    sampled: bool
    context: int
    longest: int | None
    host_options: HostOptions


@dataclass(frozen=True)
class Found:
    """``acceptance`` by depth, as deep as there is to plan. ``sources``: of what, in words."""

    acceptance: list[float]
    costs: Costs
    target_row_ms: float | None
    sources: dict[str, str]


@dataclass(frozen=True)
class _Draft:
    """Figures of a trained draft. Costs are in passes of the target over one row."""

    name: str
    acceptance: list[float]
    cost: float
    first_cost: float | None = None
    parallel: bool = False
    depths: int | None = None  # that it can guess; None: any
    target_row_ms: float | None = None


def gather(given: Given) -> Found:
    """Raises SapwoodError for what is missing, left over or impossible, by its option."""
    return _Gathering(given).found()


@dataclass(frozen=True)
class _Gathering:
    given: Given
    sources: dict[str, str] = field(default_factory=dict)

    def found(self) -> Found:
        given = self.given
        self._check()
        curve, target_row_ms = self._curve()
        draft_cost = given.draft_cost
        if draft_cost is None:
            draft = self._draft
            self.sources["draft cost"] = draft.name
            costs = Costs(draft.cost, draft.first_cost, draft.parallel, given.overhead, curve)
            if target_row_ms is None:
                target_row_ms = draft.target_row_ms
        else:
            self.sources["draft cost"] = "given"
            costs = Costs(draft_cost, overhead=given.overhead, verify=curve)
        known = self._known_acceptance()
        longest = self._longest(costs)
        if len(known) == 1:
            acceptance = constant(known[0], longest, given.decay)
        else:
            acceptance = by_depth(known, longest)
        return Found(acceptance, costs, target_row_ms, self.sources)

    def _check(self) -> None:
        given = self.given
        for option, value in (("--draft-cost", given.draft_cost), ("--overhead", given.overhead)):
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise SapwoodError(f"{option} {value:g}: give a number from 0 on")
        if not 0 < given.decay <= 1:
            raise SapwoodError(f"--decay {given.decay:g}: give a number above 0, 1 at most")
        one = given.acceptance is not None and "," not in given.acceptance
        if given.decay != 1 and not one:
            raise SapwoodError("--decay: goes with one --acceptance, that of the first guess")
        if given.figures is not None and given.draft is not None:
            raise SapwoodError("--figures, --draft: two sources for one thing; give one of them")
        if self._numbers_alone and given.draft_cost is None:
            raise SapwoodError(
                "--draft-cost: missing; give it beside --acceptance, or name a bundle or --figures"
            )

    @property
    def _numbers_alone(self) -> bool:
        given = self.given
        measured = (given.bundle, given.figures, given.draft)
        return given.acceptance is not None and all(each is None for each in measured)

    def _known_acceptance(self) -> list[float]:
        text = self.given.acceptance
        if text is None:
            self.sources["acceptance"] = self._draft.name + (
                ", sampling" if self.given.sampled else ", greedy"
            )
            return self._draft.acceptance
        self.sources["acceptance"] = "given"
        try:
            known = [float(part) for part in text.split(",")]
        except ValueError:
            known = []
        if not known or not all(0 <= each <= 1 for each in known):
            raise SapwoodError(f"--acceptance {text}: give numbers from 0 to 1")
        return known

    def _longest(self, costs: Costs) -> int:
        limits = []
        rows = costs.verify.most_rows
        if rows is not None:
            limits.append((rows - 1, f"the cost curve ends at {rows} rows"))
        if self.given.draft_cost is None and self._draft.depths is not None:
            limits.append((self._draft.depths, "the draft guesses no further"))
        longest = self.given.longest
        if longest is None:
            return min([LONGEST, *(limit for limit, _ in limits)])
        for limit, why in limits:
            if longest > limit:
                raise SapwoodError(f"--longest {longest}: at most {limit}, {why}")
        return longest

    def _curve(self) -> tuple[CostCurve, float | None]:
        """With the milliseconds of one row, where they are known."""
        text = self.given.cost_curve
        if text is not None:
            self.sources["verify cost"] = "given"
            return _parse_curve(text), None
        if self._numbers_alone:
            self.sources["verify cost"] = "any number of rows taken to cost one (no --cost-curve)"
            return CostCurve(), None
        return self._measured_curve()

    def _measured_curve(self) -> tuple[CostCurve, float]:
        from sapwood.cost_cache import CostKey, load_cost_table

        options = self.given.host_options
        threads = options["threads"] or default_threads()
        key = CostKey.of(self._manifest, host=options["host"], threads=threads, kv=options["kv"])
        table = load_cost_table(key)
        if table is None:
            raise SapwoodError(
                f"{self._folder}: no costs were measured here with {threads} threads, the host "
                f"{options['host']} and {options['kv']} caches; run `sapwood tune` with these "
                "first, or give --cost-curve"
            )
        curve = table.grid().at(self.given.context)
        points = tuple((rows, curve.milliseconds(rows)) for rows in table.rows)
        self.sources["verify cost"] = (
            f"measured by `sapwood tune` at {self.given.context:,} tokens, {threads} threads"
        )
        return CostCurve(points), points[0][1]

    @cached_property
    def _folder(self) -> Path:
        from sapwood.paths import resolve_bundle

        return resolve_bundle(self.given.bundle)

    @cached_property
    def _manifest(self) -> dict[str, Any]:
        from sapwood.manifest import read_manifest

        manifest = read_manifest(self._folder)
        if "target" not in manifest:
            raise SapwoodError(f"{self._folder}: not a bundle; name a folder of `sapwood export`")
        return manifest

    @cached_property
    def _draft(self) -> _Draft:
        if self.given.figures is not None:
            return _from_figures(self.given.figures, self.given.sampled)
        from sapwood.drafting import shipped_draft
        from sapwood.manifest import read_manifest
        from sapwood.paths import resolve_bundle

        named = self.given.draft
        folder = shipped_draft(self._manifest) if named is None else resolve_bundle(named)
        if folder is None:
            raise SapwoodError(
                f"{self._folder}: no draft was trained for it and came with Sapwood; give "
                "--acceptance and --draft-cost, --figures, or a trained --draft"
            )
        return _from_manifest(folder, read_manifest(folder), self.given.sampled)


def _parse_curve(text: str) -> CostCurve:
    try:
        pairs = [part.split(":") for part in text.split(",")]
        return CostCurve(tuple((int(rows), float(cost)) for rows, cost in pairs))
    except ValueError as error:
        why = str(error) if str(error).endswith(("from 1", "above 0")) else "not ROWS:COST,..."
        raise SapwoodError(f"--cost-curve {text}: {why}; give e.g. 1:1,4:1.1,8:1.6") from None


def _from_figures(path: Path, sampled: bool) -> _Draft:
    """What ``bench draft --json`` printed."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        passes = {
            (p["over"], p["rows"]): float(p["of_target_row"]) for p in document["cost"]["passes"]
        }
        key = "sampled" if sampled else "greedy_after_right"
        reading = min((rows for over, rows in passes if over == "text"), key=_far_from_unread)
        return _checked(
            _Draft(
                name=f"{path.name} (`sapwood bench draft`)",
                acceptance=_until_unknown([each[key] for each in document["by_depth"]]),
                cost=passes["nodes", 1],
                first_cost=passes["text", reading],
                parallel=document["kind"] == "parallel-heads",
                target_row_ms=float(document["cost"]["target_row_ms"]),
            )
        )
    except OSError as error:
        raise SapwoodError(f"--figures {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise SapwoodError(
            f"--figures {path}: not what `sapwood bench draft --json` prints"
        ) from error


def _from_manifest(folder: Path, manifest: Mapping[str, Any], sampled: bool) -> _Draft:
    """What ``sapwood distill`` wrote of the text it held out, and of the cost it reckoned with."""
    from sapwood.drafting import held_out_acceptance

    try:
        draft = manifest["draft"]
        (cost,) = (
            each["pass_cost"]
            for each in manifest["training"]["subset_sizes"]
            if each["size"] == draft["subset"]
        )
        return _checked(
            _Draft(
                name=f"the draft {folder.name} on the text its training held out",
                acceptance=_until_unknown(held_out_acceptance(manifest, sampled=sampled) or []),
                cost=float(cost),
                parallel=draft["parallel"] > 0,
                depths=draft["parallel"] or None,
            )
        )
    except (ValueError, KeyError, TypeError) as error:
        raise SapwoodError(
            f"{folder}: its manifest holds no figures of its training; give --figures, or "
            "--acceptance and --draft-cost"
        ) from error


def _far_from_unread(rows: int) -> int:
    return abs(rows - _UNREAD)


def _until_unknown(figures: Sequence[float | None]) -> list[float]:
    """Acceptance from the first depth on, as deep as it is known."""
    known = []
    for each in figures:
        if each is None:
            break
        known.append(float(each))
    return known


def _checked(draft: _Draft) -> _Draft:
    costs = (draft.cost, draft.first_cost or 0.0, draft.target_row_ms or 1.0)
    fit = draft.acceptance and all(0 <= each <= 1 for each in draft.acceptance)
    if not fit or not all(math.isfinite(each) and each >= 0 for each in costs):
        raise ValueError("figures that cannot be")
    return draft
