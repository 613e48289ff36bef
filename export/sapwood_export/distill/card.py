"""The card of a draft: what it is, how it was made, how good it is."""

from __future__ import annotations

from typing import Any

from sapwood_export.distill.draft_folder import HEAD, DraftWeights


def card(name: str, weights: DraftWeights, record: dict[str, Any]) -> str:
    """Markdown, from the manifest's record of the training."""
    kind = (
        "a draft head of one decoder layer over the target's hidden states"
        if weights.kind == HEAD
        else f"{weights.parallel} parallel heads over the target's hidden states"
    )
    layers = ", ".join(str(layer) for layer in weights.feature_layers)
    rows = [
        "| tokens ahead | agrees with the target's first choice | the same after a right guess | "
        "accepted at temperature 1 |",
        "|---|---|---|---|",
    ]
    for depth, means in enumerate(record["held_out"]["by_depth"], start=1):
        rows.append(
            f"| {depth} | {means['top']:.3f} | {means['top_after_right']:.3f} | "
            f"{means['overlap']:.3f} |"
        )
    error = record["held_out"]["uncertainty_calibration_error"]
    first = record["held_out"]["by_depth"][0]
    return "\n".join(
        [
            f"# A draft for {name}",
            "",
            f"{kind[0].upper()}{kind[1:]} (layers {layers}) and the token embedding. It covers "
            f"{len(weights.vocabulary_ids):,} tokens of the vocabulary and those of the text "
            f"so far, together {100 * first['covered']:.1f} % of the target's first choices.",
            "",
            "The target made its data itself; nothing else went in. Trained with `sapwood distill` "
            f"on {record['tokens']:,} tokens (rows that counted, repetitions included) in "
            f"{record['minutes']:.0f} minutes, seed {record['seed']}.",
            "",
            "On held-out text of the same kind, packed as it runs:",
            "",
            *rows,
            "",
            f"Expected calibration error of the uncertainty network: {error:.3f}.",
            "",
            *_mix(record["data"]),
        ]
    )


def _mix(data: dict[str, Any]) -> list[str]:
    """The data's mix by category, where data.json has it."""
    mix = data.get("mix")
    if not isinstance(mix, dict):
        return []
    lines = ["| data | texts | tokens |", "|---|---|---|"]
    lines += [f"| {name} | {part['texts']:,} | {part['tokens']:,} |" for name, part in mix.items()]
    return [*lines, ""]
