# SPDX-License-Identifier: Apache-2.0
"""What all sensors share: a model, the sensor that it switches on, and what that measures."""

from __future__ import annotations

import abc
import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from sim_sensors.core.compilation import compiled
from sim_sensors.core.measurements import Columns, FloatArray, IntArray, MessageArray
from sim_sensors.core.parameters import Parameters
from sim_sensors.core.shared_parameters import Axes, placed, turned
from sim_sensors.motion.sampling import intervals, sample_blocks, sample_motion
from .delivery import Channel, Delivery

if TYPE_CHECKING:
    from sim_sensors.motion.trajectory import Motion, Trajectory

A = TypeVar('A', bound=MessageArray)
T = TypeVar('T', covariant=True)
P = TypeVar('P', bound='MountedModel')


class SensorModel(Parameters, abc.ABC):
    """Parameters of a sensor, which `start` switches on. Each kind declares the shared ones."""

    rate: float
    frame_id: str
    lever_arm: Axes
    latency: float
    delivery: Delivery

    @abc.abstractmethod
    def start(self, *args: Any, **kwargs: Any) -> Sensor[Any]:
        """Switch a sensor on: `start(seed, run, sensor)`, and what it takes of a world by keyword.

        The three are the labels of its random streams; see `sim_sensors.core.seeding.stream`.
        """

    def channel(self, seed: int, run: str, sensor: str) -> Channel:
        """Return what carries the messages of the sensor that `start` gives."""
        return self.delivery.start(seed, run, sensor, self.latency)


class MountedModel(SensorModel):
    """Parameters of a sensor that is turned in the body, by roll, pitch, yaw about fixed axes."""

    mounting_rpy: Axes

    def mounted(self: P, translation: ArrayLike, rotation: ArrayLike) -> P:
        """Return the model mounted as a static transform of its frame says: at `translation`
        `(3,)` m in the body, turned by the quaternion x y z w `(4,)`, sensor to body.
        """
        turn = Rotation.from_quat(np.asarray(rotation, dtype=np.float64))
        return turned(placed(self, translation), turn)


@dataclasses.dataclass(frozen=True, eq=False)
class Measurement(Generic[A]):
    """What a sensor reports: the arrays of its messages, and the truth about them."""

    message: ClassVar[type[Any]]
    """Of the arrays that its messages have."""

    def messages(self, stamp_ns: IntArray, frame: str) -> A:
        """Return messages stamped `stamp_ns`, arriving at once."""
        fields = (field.name for field in dataclasses.fields(self.message))
        own = {name: getattr(self, name) for name in fields if hasattr(self, name)}
        made: A = self.message(stamp_ns=stamp_ns, arrival_ns=stamp_ns, frame=frame, **own)
        return made


class Sensor(abc.ABC, Generic[T]):
    """A sensor that is switched on: a model and its state. Made by `start` of the model.

    Parameters
    ----------
    model : SensorModel
        What it is.
    seed, run, sensor
        Labels of its random streams; see `sim_sensors.core.seeding.stream`.
    first_interval : float
        Interval to the first sample of all, s: before it there is none.

    Attributes
    ----------
    model : SensorModel
        As given.
    channel : Channel
        What carries its messages.
    """

    def __init__(
        self, model: Any, seed: int, run: str, sensor: str, *, first_interval: float = 0.0
    ) -> None:
        self.model = model
        self.channel = model.channel(seed, run, sensor)
        self._first_interval = first_interval
        self._last: float | None = None

    def measure(self, truth: Trajectory) -> T:
        """Measure at the times of `truth`, which must follow those measured before.

        Parameters
        ----------
        truth : Trajectory
            Motion of the body, `n` samples; cutting it into several calls changes no bit.

        Raises
        ------
        MotionError
            When a time does not follow the one before it.
        """
        times = truth.time
        dt = intervals(times, self._last, self._first_interval)
        if len(times):
            self._last = float(times[-1])
        return self._measure(truth, dt)

    def measure_all(
        self, motion: Motion, *, start_ns: int | None = None, origin_ns: int = 0
    ) -> tuple[IntArray, T]:
        """Return the stamps `start_ns + round(k 1e9 / rate)` and what is measured at them.

        Parameters
        ----------
        motion : Motion
            What is measured, from its start to its end, in the frame of the world.
        start_ns : int or None
            First stamp; None: the start of the motion.
        origin_ns : int
            Stamp of motion time 0.

        Raises
        ------
        MotionError
            When `start_ns` is outside the motion.
        """
        self._foresee(motion)
        rate = self.model.rate
        stamp_ns, times = sample_motion(motion, rate, start_ns=start_ns, origin_ns=origin_ns)
        return stamp_ns, self.measure(motion.at(times))

    def simulate(
        self: Sensor[Measurement[A]],
        motion: Motion,
        *,
        start_ns: int | None = None,
        origin_ns: int = 0,
    ) -> A:
        """Return the messages that arrive of a whole motion, measured a block at a time.

        Parameters, stamps and errors are those of `measure_all`.
        """
        self._foresee(motion)
        rate = self.model.rate
        blocks = sample_blocks(motion, rate, start_ns=start_ns, origin_ns=origin_ns)
        messages = Columns[A]()
        for stamp_ns, times in blocks:
            messages.add(self.deliver(stamp_ns, self.measure(motion.at(times))))
        return messages.joined()

    def deliver(self, stamp_ns: IntArray, measured: Any) -> Any:
        """Return the messages of the next measurements that arrive; see `Channel.deliver`."""
        return self.channel.deliver(measured.messages(stamp_ns, self.model.frame_id))

    def _foresee(self, motion: Motion) -> None:
        """Decide what depends on the whole motion, before it is measured."""

    @abc.abstractmethod
    def _measure(self, truth: Trajectory, dt: FloatArray) -> T:
        """Measure at the times of `truth`, each `dt` `(n,)` s after the sample before it."""


class ReportedCovariance(Protocol):
    """What is published as covariance of one triad, with whatever state that takes."""

    def state(self, measured: FloatArray, variance: FloatArray) -> FloatArray:
        """Return covariances `(n, 3, 3)` for values `(n, 3)` with white noise of that variance."""


class Diagonal:
    """The variance of the white noise, on the diagonal."""

    def state(self, measured: FloatArray, variance: FloatArray) -> FloatArray:
        """Return diag(variance)."""
        matrices = np.zeros((len(variance), 3, 3))
        matrices[:, [0, 1, 2], [0, 1, 2]] = variance
        return matrices


class Correlated:
    """The covariance of white noise with a correlation of x with y, x with z and y with z."""

    def __init__(self, correlation: Axes) -> None:
        self._correlation = correlation

    def state(self, measured: FloatArray, variance: FloatArray) -> FloatArray:
        """Return matrices with `variance` on the diagonal."""
        matrices = Diagonal().state(measured, variance)
        for i, j, c in zip((0, 0, 1), (1, 2, 2), self._correlation, strict=True):
            if c:
                matrices[:, i, j] = c * np.sqrt(variance[:, i] * variance[:, j])
                matrices[:, j, i] = matrices[:, i, j]
        return matrices


class Unknown:
    """Zeros, which sensor_msgs/Imu defines as unknown."""

    def state(self, measured: FloatArray, variance: FloatArray) -> FloatArray:
        """Return zeros."""
        return np.zeros((len(variance), 3, 3))


class OuterProduct:
    """What Chrono's ROS handler publishes in place of a covariance: the outer product of the
    latest deviation from the running mean over the count of samples less one,

        (y[k] - m[k]) (y[k] - m[k])^T / (k - 1),   m[k] = mean of y[1] ... y[k]

    which is a matrix of rank one and fades like 1/k. The first, which would be 0/0, is zero.
    """

    def __init__(self) -> None:
        # Mean, and count of samples.
        self._state = np.zeros(4)

    def state(self, measured: FloatArray, variance: FloatArray) -> FloatArray:
        """Return the outer products."""
        return _outer_products(self._state, measured)


@compiled
def _outer_products(state: FloatArray, measured: FloatArray) -> FloatArray:
    """Advance `state` in place."""
    out = np.zeros((measured.shape[0], 3, 3))
    for k in range(measured.shape[0]):
        state[3] += 1.0
        for i in range(3):
            state[i] += (measured[k, i] - state[i]) / state[3]
        if state[3] > 1.0:
            for i in range(3):
                for j in range(3):
                    product = (measured[k, i] - state[i]) * (measured[k, j] - state[j])
                    out[k, i, j] = product / (state[3] - 1.0)
    return out
