"""DynamicTreePrune and BlockSparseVerify in torch: the reference for the compiled operators.

Shapes and meaning: runtime_cpp/src/tree/dynamic_tree_prune.h and
runtime_cpp/src/verify/block_sparse_verify.h. Probabilities are in double here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

TARGET_STREAM, ACCEPTANCE_STREAM, RACE_STREAM = 0, 2, 3  # runtime_cpp/src/verify/random.h
_RACING = 6.0  # nats below the likeliest token, as in runtime_cpp/src/verify/race.h
_DRAWS_PER_STEP = 1 << 16
_MASK32 = (1 << 32) - 1
ROOT = -1


def dynamic_tree_prune(
    logits: Tensor,
    entropy_threshold: Tensor,
    uncertainty: Tensor | None,
    max_tree_width: int,
    beta_base: float,
    rho_min: float,
    rho_max: float,
    entropy_low: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """logits [R, V], entropy_threshold [1] nats -> what soft truncation keeps, [R, W] each.

    uncertainty [R] in [0, 1]: what a trained head says (``uncertainty_head``); None: the entropy
    rule.
    Returns (kept_indices int32, -1 beyond; importance_weights float32, 0 beyond; tree_mask uint8).
    """
    vocabulary = logits.shape[1]
    log_q = torch.log_softmax(logits.double(), dim=-1)
    q = log_q.exp()
    entropy = -torch.where(q > 0, q * log_q, torch.zeros_like(q)).sum(-1)
    if uncertainty is None:
        high = entropy_threshold.double()
        uncertainty = ((entropy - entropy_low) / (high - entropy_low)).clamp(0, 1)
    elif not bool(((uncertainty >= 0) & (uncertainty <= 1)).all()):
        raise ValueError("an uncertainty must be in [0, 1]")
    ratio = (beta_base * (1 - uncertainty.double())).clamp(rho_min, rho_max)
    width = min(max_tree_width, vocabulary)
    order = torch.sort(logits, dim=-1, descending=True, stable=True).indices[:, :width]
    likeliest = q.gather(1, order)
    before = likeliest.cumsum(-1) - likeliest
    possible = likeliest > 0
    kept = possible & (before < (1 - ratio).unsqueeze(-1))
    kept[:, 0] = True
    mass = (likeliest * kept).sum(-1, keepdim=True).clamp(max=1)

    def padded(values: Tensor, filler: float) -> Tensor:
        return torch.nn.functional.pad(values, (0, max_tree_width - width), value=filler)

    indices = torch.where(kept, order, -1).to(torch.int32)
    weights = torch.where(kept, 1 / mass, 0).float()
    return padded(indices, -1), padded(weights, 0), padded(kept.to(torch.uint8), 0)


def uncertainty_head(hidden: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    """hidden [R, H] -> [R]: sigmoid(w2 . relu(W1 h + b1) + b2) (MATH.md, section 3).

    w1 [units, H], b1 and w2 [units], b2 []: as runtime_cpp/src/tree/uncertainty_head.h takes them.
    In a draft's graph these are plain ONNX operators ahead of DynamicTreePrune.
    """
    return torch.sigmoid(torch.relu(hidden @ w1.T + b1) @ w2 + b2)


def dynamic_tree_prune_shape(
    logits: Tensor,
    entropy_threshold: Tensor,
    uncertainty: Tensor | None,
    max_tree_width: int,
    *options: float,
) -> tuple[Tensor, Tensor, Tensor]:
    shape = (logits.shape[0], max_tree_width)
    return (
        logits.new_empty(shape, dtype=torch.int32),
        logits.new_empty(shape, dtype=torch.float32),
        logits.new_empty(shape, dtype=torch.uint8),
    )


# --- random numbers and decisions ----------------------------------------------------------------


def counter_uniform(seed: int, index: int, stream: int, item: int = 0) -> float:
    """Philox4x32-10 (Salmon et al., 2011) at (index, stream, item) under ``seed``: [0, 1)."""
    c = [index & _MASK32, index >> 32, stream, item]
    key = [seed & _MASK32, seed >> 32]
    for _ in range(10):
        first, second = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [
            (second >> 32) ^ c[1] ^ key[0],
            second & _MASK32,
            (first >> 32) ^ c[3] ^ key[1],
            first & _MASK32,
        ]
        key = [(key[0] + 0x9E3779B9) & _MASK32, (key[1] + 0xBB67AE85) & _MASK32]
    return float(((c[1] << 32 | c[0]) >> 11) * 2.0**-53)


def choose(weights: Tensor, u: float) -> int:
    """Inverse CDF, strict: an entry of weight zero never comes out."""
    target, cumulative, chosen = u * float(weights.sum()), 0.0, 0
    for index in torch.nonzero(weights > 0).reshape(-1).tolist():
        chosen = int(index)
        cumulative += float(weights[chosen])
        if cumulative > target:
            break
    return chosen


def race(law: Tensor, seed: int, index: int) -> int:
    """A draw from ``law`` [V]: the winner of a race, as in runtime_cpp/src/verify/race.h."""

    def exponential(item: int) -> float:
        return -math.log(counter_uniform(seed, index, RACE_STREAM, item) + 2.0**-54)

    runs = law >= law.max() * math.exp(-_RACING)
    first, winner = min(
        (exponential(x) / float(law[x]), x) for x in torch.nonzero(runs)[:, 0].tolist()
    )
    others = law.masked_fill(runs, 0)
    mass = float(others.sum())
    if mass > 0 and exponential(_MASK32) / mass < first:
        return choose(others, counter_uniform(seed, index, TARGET_STREAM))
    return int(winner)


class Chance:
    """The draws of one step, in order."""

    def __init__(self, seed: int, position: int) -> None:
        self._seed, self._next = seed, position * _DRAWS_PER_STEP

    def uniform(self) -> float:
        u = counter_uniform(self._seed, self._next, ACCEPTANCE_STREAM)
        self._next += 1
        return u

    def accept(self, probability: float) -> bool:
        return self.uniform() < probability


# --- the tree -------------------------------------------------------------------------------------


@dataclass
class Tree:
    """Nodes in breadth-first order; children in the order of drawing."""

    tokens: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    children: dict[int, list[int]] = field(default_factory=dict)
    proposals: dict[int, Tensor] = field(default_factory=dict)  # q~ [V], double

    def path(self, node: int) -> list[int]:
        path: list[int] = []
        while node != ROOT:
            path.insert(0, node)
            node = self.parents[node]
        return path


def read_tree(draft_logits: Tensor, tree_mask: Tensor, importance_weights: Tensor) -> Tree:
    """The tree that mask and weights describe; see block_sparse_verify.h."""
    tree = Tree()
    width = tree_mask.shape[1]
    order = torch.sort(draft_logits, dim=-1, descending=True, stable=True).indices[:, :width]
    q = torch.softmax(draft_logits.double(), dim=-1)
    for row in range(draft_logits.shape[0]):
        marks = tree_mask[row].tolist()
        ranks = sorted((k for k in range(width) if marks[k]), key=lambda k: marks[k])
        for k in ranks:
            tree.children.setdefault(row - 1, []).append(len(tree.tokens))
            tree.tokens.append(int(order[row, k]))
            tree.parents.append(row - 1)
        if ranks:
            proposal = torch.zeros_like(q[row])
            kept = order[row, importance_weights[row, : order.shape[1]] > 0]
            proposal[kept] = q[row, kept]
            tree.proposals[row - 1] = proposal / proposal.sum().clamp(min=1e-300)
    if len(tree.tokens) != draft_logits.shape[0] - 1:
        raise ValueError(
            f"tree_mask has {len(tree.tokens)} children for {draft_logits.shape[0] - 1} rows "
            "beyond the root"
        )
    return tree


Law = Callable[[int], Tensor]  # node -> p [V], double


def _target_draw(tree: Tree, law: Law, seed: int, position: int) -> tuple[int, int]:
    node, index = ROOT, position
    while True:
        token = race(law(node), seed, index)
        index += 1
        for child in tree.children.get(node, []):
            if tree.tokens[child] == token:
                node = child
                break
        else:
            return node, token


def _rejection(tree: Tree, law: Law, chance: Chance) -> tuple[int, int]:
    node = ROOT
    while True:
        r = law(node)
        q = tree.proposals.get(node)
        for child in tree.children.get(node, []):
            assert q is not None
            x = tree.tokens[child]
            if chance.accept(float(r[x] / q[x])):
                node = child
                break
            r, q = _without(r, q, x, 1.0)
        else:
            return node, choose(r, chance.uniform())


def _without(r: Tensor, q: Tensor, x: int, w: float) -> tuple[Tensor, Tensor]:
    """r and q once the child x was rejected at a node of weight ``w``."""
    residual = (w * r - q).clamp(min=0)
    left = q.clone()
    left[x] = 0
    total = left.sum()
    return (
        residual / residual.sum() if residual.sum() > 0 else r,
        left / total if total > 0 else left,
    )


def _traversal(tree: Tree, law: Law, chance: Chance) -> tuple[int, int]:
    def visit(node: int, w: float) -> tuple[int, int] | None:
        r, q = law(node), tree.proposals.get(node)
        for child in tree.children.get(node, []):
            assert q is not None
            x = tree.tokens[child]
            found = visit(child, min(1.0, w * float(r[x] / q[x])))
            if found is not None:
                return found
            excess = float((w * r - q).clamp(min=0).sum())
            r, q = _without(r, q, x, w)
            w = 1.0 if node == ROOT or excess + 1 - w <= 0 else excess / (excess + 1 - w)
        if node == ROOT or chance.accept(w):
            return node, choose(r, chance.uniform())
        return None

    found = visit(ROOT, 1.0)
    assert found is not None
    return found


def block_sparse_verify(
    target_logits: Tensor,
    draft_logits: Tensor,
    tree_mask: Tensor,
    importance_weights: Tensor,
    draw: Tensor | None,
    verifier: str,
    temperature: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """(accepted_length [1], new_kv_indices [R - 1], next_token [1]), int32 each."""
    seed, position = (0, 0) if draw is None else (int(value) & _MASK32 for value in draw.tolist())
    tree = read_tree(draft_logits, tree_mask, importance_weights)

    def law(node: int) -> Tensor:
        row = target_logits[node + 1].double()
        if temperature == 0:
            certain = torch.zeros_like(row)
            certain[int(row.argmax())] = 1
            return certain
        return torch.softmax(row / temperature, dim=-1)

    if verifier == "target_draw":
        node, token = _target_draw(tree, law, seed, position)
    elif temperature == 0:
        raise ValueError(f"the verifier {verifier} needs a temperature above 0: use target_draw")
    elif verifier == "rejection":
        node, token = _rejection(tree, law, Chance(seed, position))
    elif verifier in ("block", "traversal"):  # on a chain they are the same
        node, token = _traversal(tree, law, Chance(seed, position))
    else:
        raise ValueError(f"there is no verifier '{verifier}'")
    path: Sequence[int] = tree.path(node)
    indices = torch.full((target_logits.shape[0] - 1,), -1, dtype=torch.int32)
    indices[: len(path)] = torch.tensor(path, dtype=torch.int32)
    return (
        torch.tensor([len(path)], dtype=torch.int32),
        indices,
        torch.tensor([token], dtype=torch.int32),
    )


def block_sparse_verify_shape(
    target_logits: Tensor, *inputs: Tensor | str | float | None
) -> tuple[Tensor, Tensor, Tensor]:
    one = target_logits.new_empty((1,), dtype=torch.int32)
    nodes = target_logits.new_empty((target_logits.shape[0] - 1,), dtype=torch.int32)
    return one, nodes, torch.empty_like(one)
