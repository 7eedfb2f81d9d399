# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""GPS models as files of other simulators, compared with the errors these will produce."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from sim_sensors.core.errors import ParameterError, not_among
from sim_sensors.gps.gps import GaussianNoise, GnssNoise, GpsModel
from sim_sensors.sensor.sensor import SensorModel
from .comparison import TOLERANCE, AxisComparison, Export
from .error_curves import position_increments, position_std
from .gps_simulators import (
    CarlaGnss,
    GazeboNavSat,
    GnssInsSimGps,
    GpsSimulator,
    HectorGps,
    PegasusGps,
    Px4Gps,
    WebotsGps,
)
from .imu_export import imu_from_text, is_imu_file
from .imu_simulator import six_digits
from .increment_fit import fit_increments

GPS_SIMULATORS: Mapping[str, GpsSimulator] = {
    simulator.name: simulator
    for simulator in (
        GazeboNavSat(), CarlaGnss(), Px4Gps(), HectorGps(), PegasusGps(), WebotsGps(),
        GnssInsSimGps(),
    )
}  # fmt: skip
LONGEST_LAG = 100.0
_PER_DECADE = 20
_AXES = ('east', 'north', 'up')


@dataclasses.dataclass(frozen=True, eq=False)
class GpsExport(Export):
    """File for the receiver of a simulator, and the errors that the simulator produces from it.

    `source_std` and `simulated_std` are the standard deviations of a fix, m, east, north and up.
    """

    simulator: GpsSimulator
    model: GpsModel
    source_std: tuple[float, ...]
    simulated_std: tuple[float, ...]

    @property
    def scatter(self) -> str:
        """Sentence with both standard deviations if they differ by more than 10 %, or empty.

        The simulator then matches the change from fix to fix, but not how far the error wanders.
        """
        if np.allclose(self.source_std, self.simulated_std, rtol=TOLERANCE, atol=0.0):
            return ''
        source, simulated = (
            '/'.join(f'{value:.2g}' for value in values)
            for values in (self.source_std, self.simulated_std)
        )
        return (
            f'Standard deviation of a fix, east/north/up: {source} m in the model, {simulated} m '
            f'in {self.simulator.title}, which is fitted to the change from fix to fix.'
        )

    def cause(self, axis: AxisComparison, last: float, ratio: float) -> str:
        """Return the cause of a misfit; see `Misfit`."""
        return 'drift' if self.simulator.law.drift_time is None else 'shape'


def export_gps(
    source: GpsModel,
    simulator: str,
    *,
    rate: float | None = None,
    span: tuple[float, float] | None = None,
) -> GpsExport:
    """Return the file of a simulator for a receiver model.

    Parameters
    ----------
    source : GpsModel
        Model whose noise is `gnss` or `gaussian`.
    simulator : str
        Name in `GPS_SIMULATORS`.
    rate : float, optional
        Rate of the simulated receiver, Hz. By default the fixed rate of the simulator if it has
        one, otherwise that of the model.
    span : tuple of float, optional
        Smallest and largest lag of the fitted increments, s. By default from one interval between
        fixes to 100 s.
    """
    if simulator not in GPS_SIMULATORS:
        problem = f'{simulator!r} has no receiver whose position errors can be set'
        raise ParameterError('--to', '', not_among(problem, simulator, GPS_SIMULATORS))
    chosen = GPS_SIMULATORS[simulator]
    errors = _errors(source)
    hertz = six_digits(float(rate or chosen.rate or source.rate))
    first, last = span or (1.0 / min(hertz, source.rate), LONGEST_LAG)
    if not 0.0 < first < last:
        raise ParameterError(
            '--range', '', f'{first:g},{last:g} is not allowed; must be two increasing lags, s'
        )
    count = max(2, round(_PER_DECADE * np.log10(last / first)) + 1)
    lags = np.geomspace(first, last, count)
    target = position_increments(errors, lags)
    model = chosen.model(fit_increments(chosen.law, lags, target, errors), hertz)
    produced = position_increments(chosen.produced(model), lags)
    omitted = [] if chosen.law.has_constant or not any(errors.mean) else ['noise.mean']
    if any(errors.turn_on_std):
        omitted.append('noise.turn_on_std')
    features = {
        'states': any(source.states.dwell),
        'outages': source.outages.any,
        'jamming': source.jamming.any,
        'spoofing': source.spoofing.any,
        'faults': source.faults,
    }
    omitted += [name for name, is_set in features.items() if is_set]
    if errors.tails != GnssNoise().tails:
        omitted.append('noise.tails')
    axes = tuple(
        AxisComparison(axis, lags, np.sqrt(target[:, index]), np.sqrt(produced[:, index]))
        for index, axis in enumerate(_AXES)
        if target[:, index].all()
    )
    return GpsExport(
        chosen, model, chosen.write(model), axes, tuple(omitted),
        tuple(position_std(errors).tolist()), tuple(position_std(chosen.produced(model)).tolist()),
    )  # fmt: skip


def _errors(source: GpsModel) -> GnssNoise:
    """Return the errors of a receiver; ParameterError if its noise is not gnss or gaussian."""
    if isinstance(source.noise, GnssNoise):
        return source.noise
    if isinstance(source.noise, GaussianNoise):
        return GnssNoise(mean=source.noise.mean, white_std=source.noise.std)
    raise ParameterError(
        'gps', 'noise.model', f'{source.noise.kind!r} is not exported; must be gnss, as '
        '`sim2real characterize` writes, or gaussian'
    )  # fmt: skip


def sensor_from_text(text: str, where: str, name: str) -> tuple[str, SensorModel[Any]]:
    """Return the title of the simulator and the sensor model of an IMU or GPS file.

    `text` is the content of the file and `name` its name. Raises ParameterError for other files.
    """
    if not is_imu_file(text, name):
        for simulator in GPS_SIMULATORS.values():
            endings = (simulator.suffix, '.sdf', '.world', '.urdf', '.xml')
            if simulator.mark in text and name.endswith(endings):
                return simulator.title, simulator.read(text, where)
    simulator_of_imu, model = imu_from_text(text, where, name)
    return simulator_of_imu.title, model
