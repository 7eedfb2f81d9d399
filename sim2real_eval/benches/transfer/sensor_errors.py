# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Sizes of sensor errors, real and simulated, that explain why a filter is tuned otherwise."""

from __future__ import annotations

import math
import pickle
from collections.abc import Sequence

import numpy as np

from sim2real_eval.benches.tuning.evaluations import TuningSource
from sim2real_eval.signals.measured import SensorSeries, run_signals
from sim2real_eval.signals.options import SignalOptions
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.measurements import FloatArray

_SLOW_S = 1.0
"""Time over which errors are averaged to separate slow ones from noise, s."""

_SENSORS = {
    'position': 'GPS', 'angular_rate': 'gyroscope', 'specific_force': 'accelerometer'
}  # fmt: skip


def sensor_error_sizes(request: tuple[bytes, str]) -> dict[str, float]:
    """Return the size of the noise and of the slow errors of GPS, gyroscope and accelerometer.

    Noise is the deviation of successive differences over the square root of two. Slow errors are
    the root mean square of means over 1 s. The errors are those of `run_signals`; of the fixes
    only the horizontal ones count.

    Parameters
    ----------
    request : (bytes, str)
        Pickled sequence of TuningSource, and the base frame.

    Returns
    -------
    dict of str to float
        Sizes in SI units by `GPS noise`, `GPS slow errors` and so on. Empty without a truth.
    """
    sources: Sequence[TuningSource] = pickle.loads(request[0])
    squares: dict[str, list[float]] = {}
    options = SignalOptions(align='none', base_frame=request[1])
    for source in sources:
        recording = source.read()
        if recording.truth is None:
            return {}
        sensors = [role for role in ('imu', 'gps') if role in recording.roles]
        try:
            signals = run_signals(recording, options, sensors=sensors)
        except Sim2RealError:
            continue
        for name, sensor in _SENSORS.items():
            if name in signals.measured:
                noise, slow = _split(signals.measured[name])
                squares.setdefault(f'{sensor} noise', []).append(noise)
                squares.setdefault(f'{sensor} slow errors', []).append(slow)
    return {name: math.sqrt(float(np.mean(values))) for name, values in squares.items()}


def _split(series: SensorSeries) -> tuple[float, float]:
    """Return the mean squares of the noise and of the slow errors."""
    error: FloatArray = series.error[:, :2] if series.quantity.name == 'position' else series.error
    noise = float(np.mean(np.diff(error, axis=0) ** 2)) / 2.0
    count = max(round(_SLOW_S * series.rate), 1)
    whole = error[: len(error) // count * count].reshape(-1, count, error.shape[1])
    return noise, float(np.mean(whole.mean(axis=1) ** 2))


def error_ratios(real: dict[str, float], simulated: dict[str, float]) -> dict[str, float]:
    """Return the sizes of simulated errors over those of the real ones.

    Examples
    --------
    >>> error_ratios({'GPS noise': 0.02, 'gyroscope noise': 0.0}, {'GPS noise': 0.005})
    {'GPS noise': 0.25}
    """
    return {
        name: simulated[name] / size
        for name, size in real.items()
        if size > 0.0 and name in simulated
    }
