# SPDX-License-Identifier: Apache-2.0
"""What may be found of what judges can see."""

from __future__ import annotations

from sim2real_eval.common.findings import assumed, decisive

SMALLEST = decisive(
    'sensitivity.smallest',
    'would not have seen {noun} below {size:.2g} {unit} (95 % interval {low:.2g} to {high:.2g}) '
    'in {runs:d} runs, at {power:g %} power',
    'A smaller error of a sensor model stays hidden in most studies of so many runs with this '
    'judge.',
)
JUMP = decisive(
    'sensitivity.jump',
    'sees {noun} of {size:.3g} {unit} at {after:.0f %} power in {runs:d} runs, but {low:.3g} '
    '{unit} at {before:.0f %}: {power:g %} lies in a jump',
    'A gate or timeout may begin to refuse messages there. No size has the wanted power.',
)
UNSEEN = decisive(
    'sensitivity.unseen',
    'would not have seen {noun} of {most:.2g} {unit} in {runs:d} runs: {found:.0f %} power, less '
    'than {power:g %}',
    'The judge does not use the measurement, refuses it, or has better ones.',
    'do not conclude from its VEPD that a model has no such error',
)
AT_ONCE = assumed(
    'sensitivity.at_once',
    'sees {noun} of {least:.2g} {unit}, the least that was tried',
    'The smallest error that is seen is smaller.',
)
NOT_THERE = assumed(
    'sensitivity.not_there',
    '{noun} cannot be injected: the messages do not hold the quantity',
    'Nothing is known of what a judge would see.',
    'give sensors that publish it',
)
