"""How often a draft is right on held-out text, by depth, against the target's whole vocabulary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from sapwood_export.distill.drafts import foretell
from sapwood_export.distill.head import Weights
from sapwood_export.distill.text_tokens import TextTokens
from sapwood_export.distill.windows import Batch
from sapwood_export.models.decoder import rms_norm
from sapwood_export.spec import ModelSpec

_CHUNK_ROWS = 128  # rows whose logits over the whole vocabulary are held at a time


@dataclass(frozen=True)
class TargetOutput:
    """The target's last norm and its head, for exact labels."""

    norm: Tensor  # [h]
    head: Tensor  # [vocabulary, h], in the precision labels are computed in
    norm_epsilon: float

    def to(self, device: torch.device) -> TargetOutput:
        """The same there; shares its tensors where they are already."""
        return TargetOutput(self.norm.to(device), self.head.to(device), self.norm_epsilon)

    def states(self, final: Tensor) -> Tensor:
        """What the head reads, from last hidden states [..., h] of any precision."""
        return rms_norm(final.float(), self.norm, self.norm_epsilon).to(self.head.dtype)


@dataclass(frozen=True)
class Comparison:
    """Draft against target at R rows of one depth."""

    states: Tensor  # [R, h], what the draft's head read
    same_top: Tensor  # bool [R], the most probable token of both is the same
    covered: Tensor  # bool [R], the draft can say the target's most probable token
    overlap: Tensor  # float32 [R], sum of min(p, q) over the whole vocabulary
    rows: Tensor  # int64 [R], flat rows of the batch


@dataclass(frozen=True)
class DepthFigures:
    """Means over the rows of one depth, along the text: all tokens before are taken as right."""

    rows: int
    top: float  # greedy acceptance: both agree on the most probable token
    top_after_right: float  # the same where the draft's guess at the depth before was right
    overlap: float  # acceptance at temperature 1, sum of min(p, q)
    covered: float  # the draft can say the target's most probable token


@torch.no_grad()
def compare(
    kind: str,
    spec: ModelSpec,
    weights: Weights,
    vocabulary_ids: Tensor,
    target: TargetOutput,
    batch: Batch,
    depths: int,
) -> list[Comparison]:
    """One batch, depth by depth. ``vocabulary_ids`` int64 [subset].

    As it runs, the draft can say these and every token of the text so far.
    """
    final = batch.final.flatten(0, 1)
    in_subset = torch.zeros(target.head.shape[0], dtype=torch.bool)
    in_subset[vocabulary_ids] = True
    text = TextTokens.of(batch, in_subset)
    ids = torch.cat((vocabulary_ids, text.ids))
    entries = torch.full((target.head.shape[0],), -1)
    entries[ids] = torch.arange(len(ids))
    head = torch.cat((weights["head"], target.head[text.ids].to(weights["head"].dtype)))
    ahead = foretell(kind, spec, weights, batch, depths)
    parts: list[list[tuple[Tensor, Tensor, Tensor]]] = [[] for _ in ahead]
    # The rows of depth 1, in rising order, are all there are: their labels serve every depth.
    for rows in torch.split(ahead[0].label_rows, _CHUNK_ROWS):
        p = torch.softmax((target.states(final[rows]) @ target.head.T).float(), dim=-1)
        best = entries[p.argmax(dim=-1)]
        p = p[:, ids]
        for step, (foretold, part) in enumerate(zip(ahead, parts, strict=True)):
            begin, end = torch.searchsorted(
                foretold.label_rows, torch.stack((rows[0], rows[-1] + 1))
            ).tolist()
            own = torch.searchsorted(rows, foretold.label_rows[begin:end])
            sayable = torch.ones(end - begin, len(ids), dtype=torch.bool)
            sayable[:, len(vocabulary_ids) :] = text.seen(foretold.label_rows[begin:end] - step)
            logits = (foretold.states[begin:end].to(head.dtype) @ head.T).float()
            q = torch.softmax(logits.masked_fill(~sayable, float("-inf")), dim=-1)
            wanted = best[own]
            part.append(
                (
                    q.argmax(dim=-1) == wanted,
                    (wanted >= 0) & sayable.gather(1, wanted.clamp(min=0)[:, None])[:, 0],
                    torch.minimum(p[own], q).sum(dim=-1),
                )
            )
    results = []
    for foretold, part in zip(ahead, parts, strict=True):
        if part:
            same_top, covered, overlap = (torch.cat(pieces) for pieces in zip(*part, strict=True))
            results.append(
                Comparison(foretold.states, same_top, covered, overlap, foretold.label_rows)
            )
    return results


def figures(comparisons: Iterable[list[Comparison]]) -> list[DepthFigures]:
    """Means by depth over batches."""
    by_depth: list[list[tuple[Comparison, Tensor]]] = []
    for batch in comparisons:
        for depth, here in enumerate(batch):
            if depth == len(by_depth):
                by_depth.append([])
            before = batch[depth - 1] if depth > 0 else None
            by_depth[depth].append((here, _was_right(before, here)))
    return [_means(parts) for parts in by_depth]


def _was_right(before: Comparison | None, here: Comparison) -> Tensor:
    """Which rows have a guess at the depth before, one row earlier, that was right."""
    if before is None:
        return torch.ones(len(here.rows), dtype=torch.bool)
    right = before.rows[before.same_top]
    return torch.isin(here.rows - 1, right)


def _means(parts: list[tuple[Comparison, Tensor]]) -> DepthFigures:
    top = torch.cat([part.same_top for part, _ in parts]).float()
    right = torch.cat([right for _, right in parts])
    return DepthFigures(
        rows=len(top),
        top=_mean(top),
        top_after_right=_mean(top[right]),
        overlap=_mean(torch.cat([part.overlap for part, _ in parts])),
        covered=_mean(torch.cat([part.covered for part, _ in parts]).float()),
    )


def _mean(values: Tensor) -> float:
    return round(float(values.mean()), 4) if len(values) else 0.0


def batches_of(items: Iterable[Batch], rows: int) -> Iterator[Batch]:
    """The first batches that hold about ``rows`` counted rows."""
    seen = 0
    for batch in items:
        if seen >= rows:
            return
        yield batch
        seen += int(batch.counted.sum())
