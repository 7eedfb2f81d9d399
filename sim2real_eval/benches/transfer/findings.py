# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Findings about a transfer."""

from __future__ import annotations

import math

from sim2real_eval.common.findings import Finding, assumed, decisive
from sim2real_eval.study.options import MIN_BLOCKS
from .result import ModelTransfer, ParameterDifference, Transfer

DIFFERENCE = assumed(
    'transfer.parameter',
    '{model}: {parameter} is tuned to {simulated} in simulation and to {real} on the robot, which '
    'explains {share:.0%} of the loss{cause}',
    'The filter trusts its prediction and its inputs as the simulated errors suggest.',
    'give the model the errors of your sensors: `sim2real fit`, or `sim2real allan` and '
    '`sim2real characterize`',
)
ONE_DRIVE = decisive(
    'transfer.one_drive',
    '{blocks:d} blocks are parts of {drives:d} {noun}: intervals and p-values hold for these '
    'drives, not for others',
    'Errors of one drive share the sky, the road and the state of the receiver.',
    f'record at least {MIN_BLOCKS} drives',
)
LIKELIHOOD = decisive(
    'transfer.likelihood',
    'the loss is the likelihood of the innovations: it shows whether the filter agrees with its '
    'inputs, not whether it is right',
    'It predicts the cost on the robot worse than an error does.',
    'record a ground truth, and take an --objective that uses it',
)
GIVEN_IS_GOOD = assumed(
    'transfer.given_is_good',
    'the given filter has about the error of one tuned on the real recordings ({excess:+.1%})',
    'There is nothing to gain by tuning here, in simulation or on the robot.',
    'keep the parameters as given, or tune others with --parameters',
)
OVER_FITTED = assumed(
    'transfer.over_fitted',
    'on held-out blocks the given filter has {excess:.1%} less error than one tuned on the other '
    'real recordings: these are too few or too different to tune with',
    'Transfer losses are then compared with a filter that is not a good one.',
    'record more drives, or tune fewer --parameters',
)
AT_BOUND = assumed(
    'transfer.at_bound',
    '{parameter} ends at its bound, {value}, on the real recordings',
    'The best value may be beyond it.',
    'start from another value',
)

_MIN_GAIN = 0.02
_NONE = 0.001  # ratio of error sizes below which a sensor has almost no errors
_FAR = 1.25  # ratio of error sizes that is named as a cause


def of_transfer(transfer: Transfer) -> list[Finding]:
    """Return the findings about a transfer."""
    notes = []
    if transfer.drives < transfer.blocks:
        noun = 'drive' if transfer.drives == 1 else 'drives'
        notes.append(ONE_DRIVE(blocks=transfer.blocks, drives=transfer.drives, noun=noun))
    if transfer.quantity == 'likelihood':
        notes.append(LIKELIHOOD())
    if transfer.is_error:
        excess = transfer.untuned / transfer.reference - 1.0
        if excess < -_MIN_GAIN:
            notes.append(OVER_FITTED(excess=-excess))
        elif excess < _MIN_GAIN:
            notes.append(GIVEN_IS_GOOD(excess=excess))
    notes += [
        AT_BOUND(parameter=parameter.name, value=parameter.format_value(value))
        for parameter, value in zip(transfer.parameters, transfer.values, strict=True)
        if parameter.is_at_bound(value)
    ]
    return notes + [
        _difference_finding(model, difference)
        for model in transfer.models
        for difference in model.differences[:1]
    ]


def _difference_finding(model: ModelTransfer, difference: ParameterDifference) -> Finding:
    parameter = difference.parameter
    return DIFFERENCE(
        model=model.model,
        parameter=parameter.name,
        simulated=parameter.format_value(difference.simulated),
        real=parameter.format_value(difference.real),
        share=min(difference.share, 1.0),
        cause=describe_cause(model),
    )


def describe_cause(model: ModelTransfer) -> str:
    """Return which simulated sensor errors differ most from the real ones, or an empty string."""
    far = [
        name
        for name, ratio in model.error_ratios.items()
        if ratio <= 0.0 or abs(math.log(ratio)) >= math.log(_FAR)
    ]
    if not far:
        return ''
    ratios = model.error_ratios
    name = max(far, key=lambda part: abs(math.log(max(ratios[part], 1e-12))))
    if ratios[name] < _NONE:
        return f'; the simulated {name} has almost no errors'
    return f'; simulated {name}: {ratios[name]:.2g} times the real size'
