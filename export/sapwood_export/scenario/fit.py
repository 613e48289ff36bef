"""Fits the runtime's classifier: multinomial logistic regression over its own features.

Full-batch gradient descent in numpy on every prompt at once, from zero weights: nothing is
drawn, so that equal prompts give equal weights up to the rounding of sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sapwood import _runtime
from sapwood_export.scenario.prompts import NAMES, Prompt

_STEPS = 200
_RATE = 2.0
_MOMENTUM = 0.9
_DECAY = 1e-4  # of squared weights, against the mean loss
_LARGEST = 127


@dataclass(frozen=True)
class Weights:
    """``table`` [features][scenarios] in 8 bits, times the scale of words or of shape features."""

    table: NDArray[np.int8]
    word_scale: float
    shape_scale: float
    bias: NDArray[np.float64]

    def source(self) -> str:
        """As C++ that runtime_cpp/src/engine/scenario.cc includes."""
        rows = [",".join(str(value) for value in row) for row in self.table.tolist()]
        lines = ["{" + "},{".join(rows[at : at + 10]) + "}," for at in range(0, len(rows), 10)]
        bias = ", ".join(repr(float(value)) for value in self.bias)
        return (
            "// Written by scripts/make_scenario_weights. Do not edit.\n\n"
            f"inline constexpr double kWordScale = {self.word_scale!r};\n"
            f"inline constexpr double kShapeScale = {self.shape_scale!r};\n"
            f"inline constexpr double kBias[kScenarios] = {{{bias}}};\n"
            "inline constexpr int8_t kWeights[ScenarioFeatures::kCount][kScenarios] = {\n"
            + "\n".join(lines)
            + "\n};\n"
        )


def inputs_of(prompts: Sequence[Prompt]) -> NDArray[np.float32]:
    """[prompts][features]: a prompt's words share one vote, as the runtime counts them."""
    inputs = np.zeros((len(prompts), _runtime.SCENARIO_FEATURES), np.float32)
    for row, prompt in zip(inputs, prompts, strict=True):
        row[_runtime.scenario_features(prompt.text)] = 1
        words = row[: _runtime.SCENARIO_WORDS]
        words /= np.sqrt(max(1.0, float(words.sum())))
    return inputs


def fit(prompts: Sequence[Prompt]) -> Weights:
    """Every scenario counts alike, however many prompts it has."""
    inputs = inputs_of(prompts)
    labels = np.array([NAMES.index(prompt.scenario) for prompt in prompts])
    wanted = np.eye(len(NAMES), dtype=np.float32)[labels]
    share = 1 / (len(NAMES) * np.bincount(labels, minlength=len(NAMES)))[labels]
    table = np.zeros((inputs.shape[1], len(NAMES)), np.float32)
    bias = np.zeros(len(NAMES), np.float32)
    table_speed, bias_speed = np.zeros_like(table), np.zeros_like(bias)
    for _ in range(_STEPS):
        scores = inputs @ table + bias
        scores -= scores.max(axis=1, keepdims=True)
        laws = np.exp(scores)
        laws /= laws.sum(axis=1, keepdims=True)
        error = ((laws - wanted) * share[:, None]).astype(np.float32)
        table_speed = _MOMENTUM * table_speed - _RATE * (inputs.T @ error + _DECAY * table)
        bias_speed = _MOMENTUM * bias_speed - _RATE * error.sum(axis=0)
        table += table_speed
        bias += bias_speed
    words, shape = np.split(table, [_runtime.SCENARIO_WORDS])
    word_scale, shape_scale = (float(np.abs(part).max()) / _LARGEST for part in (words, shape))
    rounded = np.rint(np.vstack([words / word_scale, shape / shape_scale])).astype(np.int8)
    return Weights(rounded, word_scale, shape_scale, bias.astype(np.float64))


def accuracy(weights: Weights, prompts: Sequence[Prompt]) -> NDArray[np.float64]:
    """[true scenario][guessed scenario]: shares of the prompts of each."""
    inputs = inputs_of(prompts)
    table = weights.table.astype(np.float64)
    table[: _runtime.SCENARIO_WORDS] *= weights.word_scale
    table[_runtime.SCENARIO_WORDS :] *= weights.shape_scale
    guessed = (inputs @ table + weights.bias).argmax(axis=1)
    found = np.zeros((len(NAMES), len(NAMES)))
    for prompt, guess in zip(prompts, guessed, strict=True):
        found[NAMES.index(prompt.scenario), guess] += 1
    found /= np.maximum(found.sum(axis=1, keepdims=True), 1)
    return found
