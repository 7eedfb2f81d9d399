# SPDX-License-Identifier: Apache-2.0
"""What every position error of a GPS is, and the generic ones: none, white, and that of GNSS."""

from __future__ import annotations

import abc
import dataclasses
from typing import ClassVar

import numpy as np

from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import Parameters, non_negative, parameter, variants
from sim_sensors.core.seeding import stream, streams
from sim_sensors.core.shared_parameters import Axes, Upstream, axes, share
from sim_sensors.noise.processes import GaussMarkov, Process, RandomWalk, Remembered, TurnOn, White


@dataclasses.dataclass(frozen=True)
class PositionNoise(Parameters, abc.ABC):
    """Position error of a GPS: parameters that start a process of metres east, north, up."""

    @property
    def is_angular(self) -> bool:
        """Whether the error is degrees of longitude, degrees of latitude and metres up instead."""
        return False

    @abc.abstractmethod
    def start(self, seed: int, run: str, sensor: str) -> Process:
        """Return the process with its state, three axes; its first interval is 0 s."""


@dataclasses.dataclass(frozen=True)
class UpstreamNoise(Upstream, PositionNoise):
    """Error of a GPS of another simulator, as it should be or with the defects that it has."""


class ProcessSum:
    """Sum of processes, added in the order given."""

    def __init__(self, *parts: Process) -> None:
        self._parts = parts

    @property
    def value(self) -> FloatArray:
        """Value at the latest sample, `(3,)`."""
        total = np.zeros(3)
        for part in self._parts:
            total = total + part.value
        return total

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the values at the next samples, `(n, 3)`."""
        total = np.zeros((len(dt), 3))
        for part in self._parts:
            total = total + part.advance(dt)
        return total


@dataclasses.dataclass(frozen=True)
class NoNoise(PositionNoise):
    """No position error, as in the presets `baseline` and `airsim`."""

    kind: ClassVar[str] = 'none'

    def start(self, seed: int, run: str, sensor: str) -> Process:
        """Return the sum of nothing."""
        return ProcessSum()


@dataclasses.dataclass(frozen=True)
class GaussianNoise(PositionNoise):
    """Ch:Gauss, white position error: independent from fix to fix and from axis to axis.

    Per axis::

        e = N(mean, std)

    The default of 3 cm is the accuracy of RTK and the paper's number. The preset `chrono_default`
    has the numbers of Chrono's own demo: mean 1, 1, 1 m and std 2, 3, 1 m. Positions differenced
    at 10 Hz have an error of std sqrt(2)/dt = 0.424 m/s with a lag-1 correlation of -0.5. This is
    why the model scores badly with a judge that differentiates positions.

    References
    ----------
    [Chrono] `ChNoiseNormal`; [ART].
    """

    kind: ClassVar[str] = 'gaussian'

    mean: Axes = axes('m', 'Mean error (east, north, up).')
    std: Axes = axes('m', 'Standard deviation of each fix (east, north, up).', 0.03, minimum=0.0)

    def start(self, seed: int, run: str, sensor: str) -> Process:
        """Return the white noise."""
        return White(stream(seed, run, sensor, 'position_white'), self.std, self.mean)


@dataclasses.dataclass(frozen=True)
class GnssNoise(PositionNoise):
    """A GNSS receiver: constant, white, Gauss-Markov and random-walk errors.

    Per axis, each part exactly discretised and with its own random stream::

        e = mean + turn_on_std w0 + white_std s w + m + r

    m is a Gauss-Markov process (atmosphere, orbits, multipath) that starts in its stationary law,
    r a random walk from zero.

    The factor s belongs to a fix, not to an axis: a disturbance of one axis disturbs the others.

    - `tails: student_t`: s = sqrt((v - 2) / chi2_v), so each axis follows Student's t with v
      degrees of freedom and the standard deviation white_std.
    - `tails: contaminated`: s = outlier_scale with probability outlier_share, else 1. The standard
      deviation is white_std sqrt(1 + outlier_share (outlier_scale^2 - 1)).

    The defaults are zero: measure your receiver.

    References
    ----------
    [Rankin1994] for white noise and Gauss-Markov; [Huber1981] for the tails.
    """

    kind: ClassVar[str] = 'gnss'

    mean: Axes = axes('m', 'Constant error (east, north, up).')
    turn_on_std: Axes = axes(
        'm', 'Deviation of an error drawn once when switched on.', minimum=0.0
    )
    white_std: Axes = axes('m', 'White part: deviation of each fix.', minimum=0.0)
    tails: str = parameter(
        'normal',
        '',
        'Law of the white part: normal; student_t with the deviation white_std; contaminated: '
        'some fixes have outlier_scale times the deviation white_std.',
        choices=('normal', 'student_t', 'contaminated'),
    )
    degrees_of_freedom: float = parameter(
        5.0, '1', 'Of student_t: fewer make heavier tails; must be > 2.', above=2.0
    )
    outlier_share: float = share(0.05, 'Of contaminated: share of the fixes that are outliers.')
    outlier_scale: float = non_negative(
        10.0, '1', 'Of contaminated: deviation of an outlier over white_std.'
    )
    gauss_markov_std: Axes = axes('m', 'Stationary deviation of the wandering part.', minimum=0.0)
    gauss_markov_time: Axes = axes('s', 'Correlation time of that.', 100.0, above=0.0)
    random_walk: Axes = axes(
        'm/sqrt(s)', 'Density of the random walk: its deviation after 1 s.', minimum=0.0
    )

    def start(self, seed: int, run: str, sensor: str) -> Process:
        """Return the sum of its parts."""
        rng = streams(seed, run, sensor, 'position')
        parts: list[Process] = []
        if any(self.mean) or any(self.turn_on_std):
            parts.append(TurnOn(rng('turn_on'), self.turn_on_std, self.mean))
        if any(self.white_std):
            parts.append(HeavyTailed(self, rng('white'), rng('tails')))
        if any(self.gauss_markov_std):
            parts.append(
                GaussMarkov(rng('gauss_markov'), self.gauss_markov_std, self.gauss_markov_time)
            )
        if any(self.random_walk):
            parts.append(RandomWalk(rng('random_walk'), self.random_walk))
        return ProcessSum(*parts)


class HeavyTailed(Remembered):
    """White noise whose deviation may differ from fix to fix, then on all axes alike: what throws
    one axis of a fix off throws the others too.

    With y = std w s the factor s is 1 (normal), sqrt((v - 2) / c) with c chi-squared of v degrees
    of freedom (student_t: each axis is Student's t, scaled to the deviation std), or
    outlier_scale with probability outlier_share (contaminated). `rng` and `tails_rng` are the
    streams of w and s: with another law the same w are used.
    """

    def __init__(
        self, noise: GnssNoise, rng: np.random.Generator, tails_rng: np.random.Generator
    ) -> None:
        super().__init__(0.0, 3)
        self._noise = noise
        self._rng, self._tails_rng = rng, tails_rng

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the next `len(dt)` fixes, `(n, 3)`; the lengths of the intervals are not used."""
        normals = self._rng.standard_normal((len(dt), 3))
        values: FloatArray = np.asarray(self._noise.white_std) * normals
        if self._noise.tails != 'normal':
            values = values * self._factors(len(dt))[:, None]
        return self.keep_last(values)

    def _factors(self, n: int) -> FloatArray:
        if self._noise.tails == 'student_t':
            freedom = self._noise.degrees_of_freedom
            chi2 = 2.0 * self._tails_rng.standard_gamma(0.5 * freedom, n)
            return np.sqrt((freedom - 2.0) / chi2)
        is_outlier = self._tails_rng.random(n) < self._noise.outlier_share
        return np.where(is_outlier, self._noise.outlier_scale, 1.0)


POSITION_NOISES = variants('a position noise', PositionNoise)
