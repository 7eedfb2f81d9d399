# SPDX-License-Identifier: Apache-2.0
"""Satellite positioning: true motion in, fixes with errors and a stated covariance out.

The error of the position and the covariance that is stated are independent parts of a model, so
that every error can be given with every covariance; models of equal error and labels share every
bit of their positions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from sim_sensors.core.errors import ParameterError
from sim_sensors.core.measurements import FixArray, FloatArray, IntArray
from sim_sensors.core.parameters import VariedParameters, parameter
from sim_sensors.core.registry import Registry
from sim_sensors.core.shared_parameters import Axes, latency, lever_arm, placed, sample_rate
from sim_sensors.sensor.catalogue import SensorKind
from sim_sensors.sensor.delivery import Delivery
from sim_sensors.sensor.sensor import Measurement, Sensor, SensorModel
from sim_sensors.world.geodesy import DEFAULT_ORIGIN, GEODESIES, LocalFrame, to_geodetic
from .covariance import COVARIANCE_TYPES, POSITION_COVARIANCES, PositionCovariance, ZeroCovariance
from .fix_states import FixStates, Outages, SilentChannel
from .position_noise import POSITION_NOISES, NoNoise, PositionNoise

if TYPE_CHECKING:
    from sim_sensors.motion.trajectory import Trajectory
    from sim_sensors.sensor.delivery import Channel
    from .fix_states import BoolArray

PAPER_MODELS = ('ch_gauss', 'ch_rw', 'airsim', 'ch_gauss_airsim', 'ch_rw_airsim')
"""Presets that the paper compares, in its order."""


@dataclasses.dataclass(frozen=True, eq=False)
class GpsMeasurement(Measurement[FixArray]):
    """What a GPS reports, and the error in it."""

    message: ClassVar[type[FixArray]] = FixArray

    # As in `sim_sensors.core.measurements.FixArray`
    latitude: FloatArray
    longitude: FloatArray
    altitude: FloatArray
    position_covariance: FloatArray
    covariance_type: int  # NavSatFix position_covariance_type of what is a fix
    # (n, 3) Error that the positions have, m, east-north-up of the local frame
    position_error: FloatArray
    # (n,) NavSatFix status; negative: no fix, the last one is repeated (NaN before the first)
    status: IntArray

    @property
    def position_covariance_type(self) -> IntArray:
        """That of each message, `(n,)`: unknown where there is no fix."""
        return np.where(self.status < 0, COVARIANCE_TYPES['unknown'], self.covariance_type)


@dataclasses.dataclass(frozen=True)
class GpsModel(SensorModel, VariedParameters):
    """A GPS: an error of the position and a covariance that is stated for it.

    Examples
    --------
    >>> from sim_sensors import load_gps
    >>> load_gps('ch_gauss').rate, GpsModel(rate=5.0).rate
    (10.0, 5.0)
    """

    kind: ClassVar[str] = 'gps'
    varied: ClassVar[Mapping[str, Registry[Any]]] = {
        'noise': POSITION_NOISES,
        'covariance': POSITION_COVARIANCES,
    }

    rate: float = sample_rate(10.0, 'Fixes per second.')
    frame_id: str = parameter('gps_link', '', 'Frame of the messages.', read_only=True)
    lever_arm: Axes = lever_arm('antenna')
    latency: float = latency()
    geodesy: str = parameter(
        'wgs84',
        '',
        'How metres become degrees: on the ellipsoid, or as a simulator does it.',
        choices=GEODESIES,
    )
    delivery: Delivery = dataclasses.field(default_factory=Delivery)
    states: FixStates = dataclasses.field(default_factory=FixStates)
    outages: Outages = dataclasses.field(default_factory=Outages)
    noise: PositionNoise = dataclasses.field(default_factory=NoNoise)
    covariance: PositionCovariance = dataclasses.field(default_factory=ZeroCovariance)

    def mounted(self, translation: ArrayLike) -> GpsModel:
        """Return the model with its antenna at `translation` `(3,)` m in the body."""
        return placed(self, translation)

    def start(
        self, seed: int, run: str, sensor: str = 'gps', *, frame: LocalFrame = DEFAULT_ORIGIN
    ) -> GpsSensor:
        """Switch a receiver on; see `SensorModel.start`.

        `frame` says where on the Earth the positions of the motion are.
        """
        return GpsSensor(self, seed, run, sensor, frame)

    def channel(self, seed: int, run: str, sensor: str) -> Channel:
        """Return what carries the messages of the receiver that `start` gives."""
        channel = super().channel(seed, run, sensor)
        if not (self.outages.silent and self.outages.any):
            return channel
        return SilentChannel(channel, self.outages.start(seed, run, sensor))


class GpsSensor(Sensor[GpsMeasurement]):
    """A GPS that is switched on: a model and its state. Made by `GpsModel.start`.

    The first fix has the initial state: no walked error, the initial HDOP.
    """

    model: GpsModel

    def __init__(
        self, model: GpsModel, seed: int, run: str, sensor: str, frame: LocalFrame
    ) -> None:
        super().__init__(model, seed, run, sensor)
        self._frame = frame
        self._noise = model.noise.start(seed, run, sensor)
        self._covariance = model.covariance.start()
        self._states = model.states.start(seed, run, sensor)
        self._outages = model.outages.start(seed, run, sensor)
        self._first: float | None = None
        self._fix: FloatArray = np.full(3, np.nan)
        self._error = self._from_noise('value', getattr(self._noise, 'value', None), (3,))

    @property
    def position_error(self) -> FloatArray:
        """Error of the latest fix, `(3,)` m, east-north-up; that of the noise before the first."""
        return self._error

    def _measure(self, truth: Trajectory, dt: FloatArray) -> GpsMeasurement:
        times = truth.time
        if len(times) and self._first is None:
            self._first = float(times[0])
        elapsed = times - (self._first or 0.0)
        state = self._states.at(elapsed)
        status = np.asarray(self.model.states.status).astype(np.int64)[state]
        status[self._outages.at(elapsed)] = -1
        antenna = truth.at_lever_arm(np.asarray(self.model.lever_arm)).position
        error = np.asarray(self.model.states.error_scale)[state][:, None] * self._from_noise(
            'advance(dt)', self._noise.advance(dt), (len(dt), 3)
        )
        geodetic, error = self._positions(antenna, error, status >= 0)
        variance = np.asarray(self.model.states.stated_scale)[state][:, None] ** 2
        variance = variance * self._covariance.advance(dt)
        covariance = np.zeros((len(times), 3, 3))
        covariance[:, [0, 1, 2], [0, 1, 2]] = np.where(status[:, None] < 0, 0.0, variance)
        if len(times):
            self._error = error[-1].copy()
        return GpsMeasurement(
            latitude=geodetic[:, 0].copy(),
            longitude=geodetic[:, 1].copy(),
            altitude=geodetic[:, 2].copy(),
            position_covariance=covariance,
            covariance_type=COVARIANCE_TYPES[self.model.covariance.type],
            position_error=error,
            status=status,
        )

    def _from_noise(
        self, what: str, given: ArrayLike | None, shape: tuple[int, ...]
    ) -> FloatArray:
        """Return an error that the noise gave, which may be the code of another package."""
        values = np.array(given, dtype=np.float64)
        if values.shape != shape:
            where = f'noise {type(self.model.noise).__name__}'
            found = 'is missing' if given is None else f'has shape {values.shape}'
            raise ParameterError(where, what, f'{found}; must be an array {shape}, m')
        return values

    def _positions(
        self, antenna: FloatArray, error: FloatArray, has_fix: BoolArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return latitude, longitude, altitude `(n, 3)`, and the error that they have in m."""
        is_angular = self.model.noise.is_angular
        place = antenna if is_angular else antenna + error
        geodetic = np.stack(to_geodetic(self.model.geodesy, self._frame, place), axis=1)
        if is_angular:
            geodetic = geodetic + error[:, [1, 0, 2]]
        if is_angular or self.model.geodesy != 'wgs84':
            error = self._frame.to_enu(*geodetic.T) - antenna
        if not has_fix.all():
            geodetic = self._repeated(geodetic, has_fix)
            is_old = ~has_fix & np.isfinite(geodetic).all(axis=1)
            error[~has_fix] = np.nan
            error[is_old] = self._frame.to_enu(*geodetic[is_old].T) - antenna[is_old]
        if len(geodetic):
            self._fix = geodetic[-1].copy()
        return geodetic, error

    def _repeated(self, geodetic: FloatArray, has_fix: BoolArray) -> FloatArray:
        """Return positions with those that are no fix replaced by the fix before them."""
        known = np.concatenate([self._fix[None], geodetic])
        rows = np.where(has_fix, np.arange(1, len(known)), 0)
        return known[np.maximum.accumulate(rows)]


GPS: SensorKind[GpsModel, FixArray] = SensorKind(
    name='gps',
    one='a GPS',
    base=GpsModel,
    preset='ch_gauss',
    topic='gps/fix',
    message='sensor_msgs/msg/NavSatFix',
    node='gps_node',
    world='',
    surroundings=lambda world: {'frame': world.frame},
)
load_gps, simulate = GPS.load, GPS.simulate
