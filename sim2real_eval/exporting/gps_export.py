# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""GPS models as files of other simulators, with what these will produce."""

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
    """A file for the receiver of a simulator, and what the simulator makes of it.

    `source_std` and `simulated_std` are standard deviations of a position, m, east, north and up.
    """

    simulator: GpsSimulator
    model: GpsModel
    source_std: tuple[float, ...]
    simulated_std: tuple[float, ...]

    @property
    def scatter(self) -> str:
        """Sentence with the scatter of model and file where they differ by 10 %, or nothing.

        The simulator then follows the increments of a position, but not how far it wanders.
        """
        if np.allclose(self.source_std, self.simulated_std, rtol=TOLERANCE, atol=0.0):
            return ''
        source, simulated = (
            '/'.join(f'{value:.2g}' for value in values)
            for values in (self.source_std, self.simulated_std)
        )
        return (
            f'Standard deviation of a fix, east/north/up: {source} m in the model, {simulated} m '
            f'in {self.simulator.title}, which follows the change from fix to fix.'
        )

    def cause(self, axis: AxisComparison, last: float, ratio: float) -> str:
        """Return why the simulator does not follow; see `Misfit`."""
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
        With the noise `gnss` or `gaussian`.
    simulator : str
        Name in `GPS_SIMULATORS`.
    rate : float, optional
        Rate of the simulated receiver, Hz; by default that of the simulator, or else of the model.
    span : tuple of float, optional
        Lags of the increments that are fitted, s; by default from one fix to 100.
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
        'states': any(source.states.dwell), 'outages': source.outages.any, 'faults': source.faults,
    }  # fmt: skip
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
    """Return the errors of a receiver; raise ParameterError for another noise model."""
    if isinstance(source.noise, GnssNoise):
        return source.noise
    if isinstance(source.noise, GaussianNoise):
        return GnssNoise(mean=source.noise.mean, white_std=source.noise.std)
    raise ParameterError(
        'gps', 'noise.model', f'{source.noise.kind!r} is not exported; must be gnss, as '
        '`sim2real characterize` writes, or gaussian'
    )  # fmt: skip


def sensor_from_text(text: str, where: str, name: str) -> tuple[str, SensorModel[Any]]:
    """Return the simulator and the model of the IMU in a file, or else of the receiver.

    `name` is that of the file. A file of neither raises ParameterError.
    """
    if not is_imu_file(text, name):
        for simulator in GPS_SIMULATORS.values():
            endings = (simulator.suffix, '.sdf', '.world', '.urdf', '.xml')
            if simulator.mark in text and name.endswith(endings):
                return simulator.title, simulator.read(text, where)
    simulator_of_imu, model = imu_from_text(text, where, name)
    return simulator_of_imu.title, model
