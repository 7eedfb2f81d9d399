# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Allan analysis of whole recordings: evenly spaced, at rest, without outliers, fitted."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from sim2real_eval.common.findings import Finding
from sim_sensors.core.measurements import FloatArray
from . import allan, findings
from .allan_covariance import degrees_of_freedom
from .allan_fit import MIN_AVERAGING_TIMES, AllanFit, model_variance, shape_of
from .axis_fit import AxisFit, fit_axis
from .bias_choice import BiasChoice, deviations_at, terms_together
from .imu_file import common_low_pass
from .lines import SpectralLine
from .noise_terms import NoiseTerms, combined
from .options import AllanOptions
from .screening import longest_standstill, resolution, screen, unit_warnings
from .signals import SignalFileError, Signals, evenly_spaced, quantity_of, unit_of

# Larger values are no measurement; single precision holds it, and double its square.
_LARGEST = 1e30
# Logarithm of the deviation by which a model that misses the curve is told.
_MISFIT = math.log(1.1)


@dataclasses.dataclass(frozen=True, eq=False)
class AxisResult:
    """One axis, named as in `signals.AXES`, of one recording."""

    axis: str
    curve: allan.AllanCurve
    # (k,) One-sigma band of the deviation, at all averaging times of the curve
    lower: FloatArray
    upper: FloatArray
    # (k,) Degrees of freedom under the fitted model, and the textbook's relative error
    freedom: FloatArray
    simple_error: FloatArray
    choice: BiasChoice
    model: FloatArray  # (k, 6) fitted variance by term
    # Coefficients read off with straight lines, or None
    graphical_estimate: dict[str, float | None]
    # Of the samples: bias and, in an accelerometer, gravity; and their step, 0 for none
    mean: float
    resolution: float
    replaced: int  # outliers

    @property
    def fit(self) -> AllanFit:
        """The fit that was chosen."""
        return self.choice.fit

    @property
    def terms(self) -> NoiseTerms:
        """The coefficients."""
        return self.fit.terms


@dataclasses.dataclass(frozen=True, eq=False)
class RecordingResult:
    """All axes of one recording: of so many samples as were analysed at `rate` Hz.

    The notes say what was left out or replaced, and what that does.
    """

    name: str
    rate: float
    samples: int
    axes: tuple[AxisResult, ...]
    notes: tuple[Finding, ...]

    @property
    def seconds(self) -> float:
        """Length of what was analysed."""
        return self.samples / self.rate


def prepared(signals: Signals, options: AllanOptions) -> Signals:
    """Return signals evenly spaced and at rest, with notes on what that took.

    SignalFileError when a value is no finite number, too little is left, or nothing is at rest.
    """
    good = (signals.values < _LARGEST) & (signals.values > -_LARGEST)
    if not good.all():
        bad = np.argwhere(~good)
        row, column = bad[0]
        value = signals.values[row, column]
        more = f' (and {len(bad) - 1} more values)' if len(bad) > 1 else ''
        raise SignalFileError(
            f'{signals.name}: {signals.axes[column]}: sample {row} is {value}; must be a '
            f'number below {_LARGEST:g}{more}'
        )
    even = evenly_spaced(signals)
    if not options.reject_motion:
        return even
    assert even.rate is not None
    still = longest_standstill(even, even.rate)
    if still.still == still.windows:
        return even
    note = findings.MOVES(
        moving=still.windows - still.still,
        windows=still.windows,
        start=still.start / even.rate,
        stop=still.stop / even.rate,
        share=(still.stop - still.start) / len(even),
    )
    return even.take(still.start, still.stop).with_notes(note)


def analyse(signals: Signals, options: AllanOptions | None = None) -> RecordingResult:
    """Analyse all axes of a recording.

    Sim2RealError when the record is too short, moves, or has no axis with noise.
    """
    options = options or AllanOptions()
    still = prepared(signals, options)
    assert still.rate is not None
    notes: list[Finding] = []
    fits = [_axis(still, axis, still.rate, options, notes) for axis in still.axes]
    results = tuple(result for result in fits if result is not None)
    if not results:
        raise SignalFileError(f'{still.name}: all axes are constant; there is no noise to analyse')
    notes += _low_pass_notes(results)
    notes += unit_warnings(
        {**still.left_out, **{result.axis: result.mean for result in results}},
        {result.axis: result.terms.white.value for result in results},
    )
    return RecordingResult(still.name, still.rate, len(still), results, (*still.notes, *notes))


def _axis(
    signals: Signals, axis: str, rate: float, options: AllanOptions, notes: list[Finding]
) -> AxisResult | None:
    """Return the result, None for a constant, and add to the notes."""
    values = signals.column(axis)
    screened = screen(values, rate, options.outliers, options.factor)
    if screened.replaced:
        notes.append(
            findings.OUTLIERS(
                axis,
                count=screened.replaced,
                samples=len(values),
                largest=screened.largest,
                unit=unit_of(axis),
                method=options.outliers,
                change=_change(screened.noise_ratio),
                gaussian=_change(screened.gaussian_ratio),
            )
        )
    n = len(values)
    octaves = allan.averaging_factors(n)
    count = int((octaves >= options.fit_from * rate * (1.0 - 1e-9)).sum())
    if count < MIN_AVERAGING_TIMES <= len(octaves):
        raise SignalFileError(
            f'--fit-from: {options.fit_from:g} s leaves {count} averaging times of '
            f'the {n / rate:.4g} s of {signals.name}; must be '
            f'{octaves[-MIN_AVERAGING_TIMES] / rate:.3g} s or less'
        )
    fitted = fit_axis(
        screened.values,
        rate,
        factors=allan.averaging_factors(n, options.points),
        fit_from=options.fit_from,
        detrend=options.detrend,
    )
    if fitted is None:
        notes.append(findings.CONSTANT(axis))
        return None
    curve, choice, fit = fitted.curve, fitted.choice, fitted.choice.fit
    notes += _axis_notes(axis, fitted, n / rate)
    freedom = degrees_of_freedom(
        n, curve.factors, fit.coefficients, fit.time, shape_of(fit.low_pass)
    )
    lower, upper = allan.confidence_band(curve, freedom)
    model = model_variance(fit, curve.dt, curve.tau)
    if fit.misfit:
        notes += _misfit_notes(axis, curve, model.sum(axis=1), (lower, upper), fitted.fitted[0])
    return AxisResult(
        axis=axis,
        curve=curve,
        lower=lower,
        upper=upper,
        freedom=freedom,
        simple_error=allan.simple_relative_error(curve),
        choice=choice,
        model=model,
        graphical_estimate=allan.read_off(curve.at(fitted.fitted)),
        mean=float(values.mean()),
        resolution=resolution(values),
        replaced=screened.replaced,
    )


def _low_pass_notes(results: Sequence[AxisResult]) -> list[Finding]:
    """Return a finding per sensor that has a low pass in the model."""
    terms: dict[str, list[NoiseTerms]] = {}
    for result in results:
        terms.setdefault(quantity_of(result.axis), []).append(result.terms)
    notes = []
    for quantity, rows in terms.items():
        width, order = common_low_pass(rows)
        if width:
            notes.append(
                findings.LOW_PASS(quantity, bandwidth=width, order=order, fit_from=2.0 / width)
            )
    return notes


def _axis_notes(axis: str, fitted: AxisFit, seconds: float) -> list[Finding]:
    """Return what the fit of an axis found: lines, trend, and a bias of either kind."""
    notes = []
    unit, rate = unit_of(axis), 1.0 / fitted.curve.dt
    trend, choice = fitted.trend, fitted.choice
    if fitted.lines:
        strongest = fitted.lines[0]
        notes.append(
            findings.LINES(
                axis,
                count=len(fitted.lines),
                frequency=strongest.frequency,
                rms=strongest.rms,
                unit=unit,
                setting=_vibration(axis, strongest),
            )
        )
    if trend.kind == 'exponential':
        time = trend.time / rate
        notes.append(
            findings.WARM_UP(
                axis,
                change=trend.change,
                unit=unit,
                time=time,
                wait=min(5.0 * time, 4.0 * seconds),
            )
        )
    elif trend.change:
        kinds = {'line': findings.DRIFTS, 'unclear': findings.DRIFT_UNCLEAR}
        finding = kinds.get(trend.kind, findings.DETRENDED)
        notes.append(finding(axis, change=trend.change, unit=unit, seconds=seconds))
    if not choice.separated:
        notes.append(_not_separated(axis, choice, fitted.curve))
    return notes


def _vibration(axis: str, line: SpectralLine) -> str:
    """Return the key of a model of an IMU with this line."""
    triad, _, letter = axis.rpartition('_')
    amplitude = f'{math.sqrt(2.0) * line.rms:.2g}'
    amplitudes = ', '.join(amplitude if name == letter else '0' for name in 'xyz')
    return (
        f'vibration: {{rotation_rate: {line.frequency:.4g}, harmonics: [1], '
        f'{triad}: [{amplitudes}]}}'
    )


def _misfit_notes(
    axis: str,
    curve: allan.AllanCurve,
    model: FloatArray,
    band: tuple[FloatArray, FloatArray],
    first: int,
) -> list[Finding]:
    """Return a finding where the model is further from the curve than its band by 10 %, or none.

    `model` is the fitted variance, `(k,)` u^2, and `first` the first averaging factor of the fit.
    """
    deviation = np.sqrt(model)
    away = np.log(np.maximum(deviation / band[1], band[0] / deviation))
    # Averages over more than a tenth of the record scatter too much to be judged.
    away[(curve.factors < first) | (curve.factors > 0.1 * curve.n)] = 0.0
    worst = int(np.argmax(away))
    if away[worst] < _MISFIT:
        return []
    ratio = float(deviation[worst] / curve.deviation[worst])
    return [findings.MISFIT(axis, time=float(curve.tau[worst]), ratio=ratio)]


def _not_separated(axis: str, choice: BiasChoice, curve: allan.AllanCurve) -> Finding:
    assert choice.markov is not None
    bias, time = choice.markov.terms.gauss_markov, choice.markov.terms.gauss_markov_time
    assert bias is not None
    assert time is not None
    has_flicker = choice.flicker.terms.bias_instability.observable
    flicker, markov = deviations_at(choice, curve.dt, 3600.0)
    return findings.NOT_SEPARATED(
        axis,
        kind='flicker' if has_flicker else 'a random walk',
        std=bias.value,
        unit=unit_of(axis),
        time=time.value,
        ratio=flicker / markov,
    )


def _change(ratio: float) -> float:
    # A rounded negative zero plus zero has no sign of its own.
    return round(ratio - 1.0, 4) + 0.0


def combined_terms(
    results: Sequence[RecordingResult], weights: str = 'uncertainty'
) -> dict[str, NoiseTerms]:
    """Return the terms of each axis over all recordings that have it.

    All recordings together say whether the bias flickers or is a Gauss-Markov process.
    """
    choices: dict[str, list[BiasChoice]] = {}
    for result in results:
        for axis_result in result.axes:
            choices.setdefault(axis_result.axis, []).append(axis_result.choice)
    # Gyroscope first, x before y before z, whichever recording came first.
    order = sorted(choices, key=lambda axis: (quantity_of(axis) != 'gyroscope', axis))
    return {axis: combined(terms_together(choices[axis]), weights) for axis in order}
