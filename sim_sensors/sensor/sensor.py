# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Base classes of all sensors: the model, the sensor that it switches on, its measurement."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from sim_sensors.core.compilation import row_loop
from sim_sensors.core.config_files import (
    branch,
    file_phrase,
    first_phrase,
    merge_base,
    read_yaml_mapping,
)
from sim_sensors.core.errors import ParameterError, UnknownNameError, did_you_mean
from sim_sensors.core.measurements import FloatArray, IntArray, MessageArray, MessageParts
from sim_sensors.core.parameters import Parameters, from_variant, override, to_variant, variants
from sim_sensors.core.registry import Registry, is_in_file
from sim_sensors.core.seeding import streams
from sim_sensors.core.shared_parameters import Axes, with_lever_arm, with_mounting
from sim_sensors.core.shipped import config_path
from sim_sensors.motion.sampling import intervals, sample_blocks, sample_motion
from .catalogue import UPSTREAM, has_upstream, kinds, preset_names
from .delivery import Channel, Delivery
from .faults import Fault, FaultProcess, faults_from, to_entries

if TYPE_CHECKING:
    from sim_sensors.motion.trajectory import Motion, Trajectory
    from sim_sensors.world.world import World

# Keys of the IMU files of Kalibr, which users give by mistake.
_KALIBR_KEYS = {'gyroscope_noise_density', 'accelerometer_noise_density', 'imu0'}
_CONVERT = 'convert it: sim2real models --from {} --out FOLDER'

# Key of a model file with the parameters that `NAME:as_upstream` sets, besides every `variant`.
_UPSTREAM_KEY = 'as_upstream'

M = TypeVar('M', bound=MessageArray)
T = TypeVar('T', covariant=True)
Messages = TypeVar('Messages')
P = TypeVar('P', bound='SensorModel[Any]')
Mounted = TypeVar('Mounted', bound='MountedModel[Any]')


class SensorModel(Parameters, abc.ABC, Generic[Messages]):
    """Parameters of a sensor; `start` switches a sensor on.

    The base class of a kind of sensor, such as `ImuModel`, declares `name` and the other class
    attributes below. Models of the kind derive from it; those in its package need no registration.

    Attributes
    ----------
    name : str
        Name of the kind. Its folder in `config/`, its command-line option, its launch argument and
        the prefix of its node parameters have this name. It also labels the random streams.
    noun : str
        Noun of the kind with its article, for messages: `an IMU`.
    title : str
        The noun without its article.
    preset : str
        Model that a node takes by default.
    topic, message : str
        Relative name and ROS type of the topic of the measurements.
    node : str
        Name of the node.
    world : str
        World that the node takes by default; empty if the sensor needs no world file.
    more_topics : tuple of str
        Relative names of further topics of the node.
    silence : str
        Problem to report if the sensor never measures anything.
    ideal : callable, optional
        Improve a motion with the messages of a noise-free sensor of the kind:
        `ideal(motion, messages, origin_ns=..., mounting=..., **surroundings)`; see
        `sim_sensors.motion.ideal`. None if such messages add nothing to the motion.
    ideal_topic : str
        Relative name of the topic of the noise-free sensor.
    ideal_values : tuple of str
        Fields of its messages that must be finite.
    fault_kinds : tuple of type
        Faults that a sensor of the kind can have.
    faults : tuple of Fault
        Faults of the sensors of this model, by time; the key `faults` of a file.
    models : Registry
        Model classes of the kind by their `kind`, which is the key `model` of a file.
    """

    name: ClassVar[str] = ''
    noun: ClassVar[str] = ''
    title: ClassVar[str] = ''
    preset: ClassVar[str] = ''
    topic: ClassVar[str] = ''
    message: ClassVar[str] = ''
    node: ClassVar[str] = ''
    world: ClassVar[str] = ''
    more_topics: ClassVar[tuple[str, ...]] = ()
    silence: ClassVar[str] = (
        'a simulated sensor never measures anything; use another world or model'
    )
    ideal: ClassVar[Callable[..., Motion] | None] = None
    ideal_topic: ClassVar[str] = ''
    ideal_values: ClassVar[tuple[str, ...]] = ()
    models: ClassVar[Registry[Any]]

    fault_kinds: ClassVar[tuple[type[Fault], ...]] = ()
    faults: tuple[Fault, ...] = ()

    # Each kind declares these parameters itself, with its own defaults.
    rate: float
    frame_id: str
    lever_arm: Axes
    latency: float
    delivery: Delivery

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if 'name' in vars(cls):
            cls.title = cls.noun.partition(' ')[2]
            cls.models = variants(f'{cls.noun} model', cls)

    @classmethod
    def from_mapping(cls: type[P], mapping: Mapping[str, object], where: str, path: str = '') -> P:
        """Build from a plain mapping, whose key `faults` is a list; see `faults_from`."""
        faults = faults_from(mapping, cls.fault_kinds, where, path)
        left_out = 'faults' if cls.fault_kinds else ''
        rest = {name: value for name, value in mapping.items() if name != left_out}
        model: Any = super().from_mapping(rest, where, path)
        return dataclasses.replace(model, faults=faults) if faults else model  # type: ignore[no-any-return]

    def to_mapping(self) -> dict[str, Any]:
        """Return a plain mapping that `from_mapping` reads back to an equal model."""
        return {**super().to_mapping(), **to_entries(self.faults)}

    @abc.abstractmethod
    def start(self, *args: Any, **kwargs: Any) -> Sensor[Any]:
        """Switch a sensor on: `start(seed, run, sensor, **surroundings)`.

        The first three label its random streams; see `sim_sensors.core.seeding.stream`.
        """

    @staticmethod
    def surroundings(world: World) -> dict[str, Any]:
        """Return the keyword arguments that `start` and `simulate` take from a world."""
        return {}

    def channel(self, seed: int, run: str, sensor: str) -> Channel:
        """Return the channel that carries the messages of one sensor."""
        return self.delivery.start(seed, run, sensor, self.latency)

    def simulate(
        self,
        motion: Motion,
        *,
        seed: int,
        run: str,
        sensor: str = '',
        start_ns: int | None = None,
        origin_ns: int = 0,
        **surroundings: Any,
    ) -> Messages:
        """Measure a whole motion and return the messages that arrive.

        Parameters
        ----------
        motion : Motion
            Motion from its start to its end, in the frame of the world.
        seed, run, sensor
            Labels of the random streams; see `sim_sensors.core.seeding.stream`. `sensor` is the
            name of the kind by default.
        start_ns, origin_ns
            See `Sensor.measure_all`.
        **surroundings
            Keyword arguments of `start`: `gravity` of an IMU, m/s^2; `frame` of a GPS, the place
            of the motion on the Earth; `world` of a magnetometer, a camera and vision.

        Returns
        -------
        MessageArray
            Messages that arrive: features and poses of a camera, accepted poses of vision.

        Examples
        --------
        >>> from sim_sensors import load_gps, load_imu, load_mag, load_world, motion_of
        >>> motion = motion_of('standstill', duration=2.0)
        >>> measured = load_imu('ideal').simulate(motion, seed=1, run='1')
        >>> measured.linear_acceleration[0]
        array([0.     , 0.     , 9.80665])
        >>> fixes = load_gps('ch_gauss').simulate(motion, seed=1, run='1')
        >>> len(fixes), fixes.frame
        (21, 'gps_link')
        >>> room = load_world('chessboard')
        >>> field = load_mag('ideal').simulate(motion, seed=1, run='1', world=room)
        >>> field.magnetic_field.shape
        (201, 3)
        """
        device = self.start(seed, run, sensor or self.name, **surroundings)
        messages: Messages = device.simulate(motion, start_ns=start_ns, origin_ns=origin_ns)
        return messages

    @classmethod
    def names(cls) -> list[str]:
        """Return the names that `load` accepts: the presets, then models of other packages.

        A kind without presets lists all its models.
        """
        presets = preset_names(cls.name)
        ours = {*presets, *cls.models.names(installed=False)} if presets else set()
        return [*presets, *(name for name in cls.models.names() if name not in ours)]

    @classmethod
    def load(cls: type[P], name: str | Path, *, folder: Path | None = None) -> P:
        """Return a model by its name or its file.

        Parameters
        ----------
        name : str or Path
            A preset; a model of another package; the path of a YAML file; or a class in a file,
            `my_model.py:MyModel`. A class has its default parameters. The suffix
            `:as_upstream` sets every `variant` to that value, and applies the keys below
            `as_upstream` of the file.
        folder : Path, optional
            Folder of a relative path; by default the current folder.

        Raises
        ------
        ParameterError
            When there is no such model or variant, or the file is unreadable or wrong. The keys
            below `as_upstream` are checked without the suffix too.

        Examples
        --------
        >>> from sim_sensors import ImuModel
        >>> ImuModel.load('chrono').rate
        100.0
        """
        label = where = str(name)
        mapping: Mapping[str, object] = {'model': label}
        overrides: Mapping[str, Any] = {}
        if label.endswith(UPSTREAM):
            exact = cls.load(label.removesuffix(UPSTREAM), folder=folder)
            if not has_upstream(exact):
                raise ParameterError(
                    label, 'variant', f'the model has no such parameter; remove {UPSTREAM}'
                )
            return cls._as_upstream(exact, cls._upstream_overrides(label, folder), where)
        if is_in_file(label) or label.endswith('.py'):
            model_class: type[P] = cls.models.get(label, folder=folder)
            return model_class()
        if (path := cls._preset_path(label)) is not None:
            where = str(Path(folder or '', path))
            mapping = merge_base(
                cls.translate(read_yaml_mapping(Path(where)), where),
                Path(where),
                lambda base: cls._preset_path(base.removesuffix(UPSTREAM)),
                lambda base, place: to_variant(cls.load(base, folder=place)),
            )
            overrides = branch(mapping, _UPSTREAM_KEY, where)
            mapping = {key: mapping[key] for key in mapping if key != _UPSTREAM_KEY}
            cls._check_model_key(mapping, where)
        model: P = from_variant(cls.models, mapping, where)
        if overrides:
            cls._as_upstream(model, overrides, where)
        return model

    @classmethod
    def translate(cls, mapping: dict[str, Any], where: str) -> dict[str, Any]:
        """Return the mapping of a model for a file of another program; kinds override this.

        `mapping` is the content of the file named `where`. It is returned as it is if the file is
        one of this package.
        """
        return mapping

    @classmethod
    def _as_upstream(cls, exact: P, overrides: Mapping[str, Any], where: str) -> P:
        """Return a model with every `variant` set to as_upstream, and these parameters changed."""
        if not has_upstream(exact):
            raise ParameterError(where, _UPSTREAM_KEY, 'the model has no variant; must be removed')
        changed = _with_upstream(override(to_variant(exact), overrides))
        model: P = from_variant(cls.models, changed, where)
        return model

    @classmethod
    def _upstream_overrides(cls, name: str, folder: Path | None) -> Mapping[str, Any]:
        """Return the keys below `as_upstream` of a file: the parameters that its original needs.

        Those of its base are used, too, except for keys that the file itself has.
        """
        plain = name.removesuffix(UPSTREAM)
        path = None if is_in_file(plain) else cls._preset_path(plain)
        if path is None:
            return {}
        file = Path(folder or '', path)
        mapping = read_yaml_mapping(file)
        overrides = branch(mapping, _UPSTREAM_KEY, str(file))
        if 'base' not in mapping:
            return overrides
        own = {key: mapping[key] for key in mapping if key not in ('base', _UPSTREAM_KEY)}
        inherited = cls._upstream_overrides(mapping['base'], file.parent)
        return override(override(inherited, own), overrides)

    @classmethod
    def phrase(cls, name: str | Path, *, folder: Path | None = None) -> str:
        """Return a short description of a model: the first phrase of its file or its docstring.

        `name` and `folder` are those of `load`.

        Examples
        --------
        >>> from sim_sensors import GpsModel
        >>> GpsModel.phrase('ch_rw')
        'Chrono random walk: smooth bounded drift'
        """
        label = str(name).removesuffix(UPSTREAM)
        path = None if is_in_file(label) else cls._preset_path(label)
        if path is not None:
            return file_phrase(Path(folder or '', path))
        docstring = type(cls.load(name, folder=folder)).__doc__ or ''
        return first_phrase(docstring.strip().partition('\n')[0])

    @classmethod
    def _check_model_key(cls, mapping: Mapping[str, object], where: str) -> None:
        """Raise ParameterError for the file of another kind of sensor or of another program."""
        if 'model' not in mapping and not _KALIBR_KEYS.isdisjoint(mapping):
            raise ParameterError(where, '', f'is a Kalibr file; {_CONVERT.format(where)}')
        model = mapping.get('model')
        if model in cls.models.names(installed=False):
            return
        for kind in kinds():
            if model in kind.models.names(installed=False):
                raise ParameterError(
                    where, 'model', f'{model!r} is {kind.noun} model; must be {cls.noun} model'
                )

    @classmethod
    def _preset_path(cls, name: str) -> Path | None:
        """Return the path of a preset or of a given file; None for a model of another package."""
        path = Path(name)
        if path.suffix == '.sdf':
            raise ParameterError(name, '', f'is an SDF file; {_CONVERT.format(name)}')
        if path.suffix in ('.yaml', '.yml') or len(path.parts) > 1:
            return path
        if name in preset_names(cls.name):
            return config_path(cls.name, f'{name}.yaml')
        allowed = cls.names()
        if name in allowed:
            return None
        problem = f'is unknown{did_you_mean(name, allowed)}'
        for kind in kinds():
            if name in preset_names(kind.name):
                problem = f'is {kind.noun} model'
                break
        raise UnknownNameError(
            f'{cls.name} model',
            '',
            f'{name!r} {problem}; must be one of {", ".join(allowed)}, a path of a YAML file, or '
            'a class in a file, such as my_model.py:MyModel',
        )


def _with_upstream(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Return the mapping of a model with every `variant` set to as_upstream."""
    changed = {
        key: _with_upstream(entry) if isinstance(entry, Mapping) else entry
        for key, entry in mapping.items()
    }
    return changed | {'variant': 'as_upstream'} if 'variant' in changed else changed


def simulate(model: SensorModel[Messages], motion: Motion, **settings: Any) -> Messages:
    """Measure a whole motion with a model; for parameters see `SensorModel.simulate`.

    Examples
    --------
    >>> from sim_sensors import load_gps, motion_of, simulate_gps
    >>> model, motion = load_gps('ch_gauss'), motion_of('standstill', duration=2.0)
    >>> len(simulate_gps(model=model, motion=motion, seed=1, run='1'))
    21
    """
    if not isinstance(model, SensorModel):
        problem = 'is not allowed; must be a sensor model, such as load_gps(...)'
        raise ParameterError('simulate', 'model', f'{model!r} {problem}')
    return model.simulate(motion, **settings)


class MountedModel(SensorModel[Messages]):
    """Parameters of a sensor that is rotated in the body: roll, pitch, yaw about fixed axes."""

    mounting_rpy: Axes

    def mounted(self: Mounted, translation: ArrayLike, rotation: ArrayLike) -> Mounted:
        """Return the model with the mounting of a static transform of its frame.

        Parameters
        ----------
        translation : (3,)
            Position in the body, m.
        rotation : (4,)
            Quaternion x y z w, sensor to body.
        """
        from scipy.spatial.transform import Rotation

        mounting = Rotation.from_quat(np.asarray(rotation, dtype=np.float64))
        return with_mounting(with_lever_arm(self, translation), mounting)


@dataclasses.dataclass(frozen=True, eq=False)
class Measurement(Generic[M]):
    """Arrays that a sensor reports, and the errors in them."""

    message: ClassVar[type[Any]]
    """Class of the messages."""

    def messages(self, stamp_ns: IntArray, frame: str) -> M:
        """Return messages with the stamps `stamp_ns` `(n,)`, which arrive at once."""
        names = (field.name for field in dataclasses.fields(self.message))
        arrays = {name: getattr(self, name) for name in names if hasattr(self, name)}
        messages: M = self.message(stamp_ns=stamp_ns, arrival_ns=stamp_ns, frame=frame, **arrays)
        return messages


class Sensor(abc.ABC, Generic[T]):
    """A sensor that is switched on: a model and its state. Made by `start` of the model.

    Parameters
    ----------
    model : SensorModel
        Parameters of the sensor.
    seed, run, sensor
        Labels of its random streams; see `sim_sensors.core.seeding.stream`.
    first_interval : float
        Interval assumed before the first sample, s.

    Attributes
    ----------
    channel : Channel
        Channel that carries its messages.
    faults : FaultProcess
        Its faults, which can be switched while it measures.
    """

    def __init__(
        self, model: Any, seed: int, run: str, sensor: str, *, first_interval: float = 0.0
    ) -> None:
        self.model = model
        self.channel = model.channel(seed, run, sensor)
        self.faults = FaultProcess(
            model.fault_kinds, model.faults, streams(seed, run, sensor, 'fault')
        )
        self._first_interval = first_interval
        self._last: float | None = None

    def measure(self, truth: Trajectory) -> T:
        """Measure the motion of the body at the `n` times of `truth`.

        The times must follow those of earlier calls. Cutting a trajectory into several calls
        changes no bit.

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
        """Return the stamps `start_ns + round(k 1e9 / rate)` and the measurement at them.

        Parameters
        ----------
        motion : Motion
            Motion from its start to its end, in the frame of the world.
        start_ns : int or None
            First stamp; by default the start of the motion.
        origin_ns : int
            Stamp of motion time 0.

        Raises
        ------
        MotionError
            When `start_ns` is outside the motion.
        """
        self._prepare(motion)
        rate = self.model.rate
        stamp_ns, times = sample_motion(motion, rate, start_ns=start_ns, origin_ns=origin_ns)
        return stamp_ns, self.measure(motion.at(times))

    def simulate(
        self: Sensor[Measurement[M]],
        motion: Motion,
        *,
        start_ns: int | None = None,
        origin_ns: int = 0,
    ) -> M:
        """Measure a whole motion block by block and return the messages that arrive.

        Parameters, stamps and errors are those of `measure_all`.
        """
        self._prepare(motion)
        rate = self.model.rate
        blocks = sample_blocks(motion, rate, start_ns=start_ns, origin_ns=origin_ns)
        messages = MessageParts[M]()
        for stamp_ns, times in blocks:
            messages.add(self.deliver(stamp_ns, self.measure(motion.at(times))))
        return messages.concatenate()

    def deliver(self, stamp_ns: IntArray, measured: Any) -> Any:
        """Return those messages of the next measurements that arrive; see `Channel.deliver`."""
        return self.channel.deliver(measured.messages(stamp_ns, self.model.frame_id))

    def _prepare(self, motion: Motion) -> None:
        """Adapt the sensor to the whole motion before it is measured."""

    @abc.abstractmethod
    def _measure(self, truth: Trajectory, dt: FloatArray) -> T:
        """Measure at the times of `truth`, each `dt` `(n,)` s after the previous sample."""


class ReportedCovariance(Protocol):
    """Source of the published covariance of one triad; may hold state."""

    def state(self, measured: FloatArray, variance: FloatArray) -> FloatArray:
        """Return covariances `(n, 3, 3)` for values `(n, 3)` with white noise of that variance."""


class WhiteNoiseCovariance:
    """Covariance of white noise with a correlation of x with y, x with z and y with z."""

    def __init__(self, correlation: Axes = (0.0, 0.0, 0.0)) -> None:
        self._correlation = correlation

    def state(self, measured: FloatArray, variance: FloatArray) -> FloatArray:
        """Return matrices with `variance` on the diagonal."""
        matrices = np.zeros((len(variance), 3, 3))
        matrices[:, [0, 1, 2], [0, 1, 2]] = variance
        for i, j, c in zip((0, 0, 1), (1, 2, 2), self._correlation, strict=True):
            if c:
                shared = variance[:, i] * variance[:, j]
                matrices[:, i, j] = matrices[:, j, i] = c * np.sqrt(shared)
        return matrices


class UnknownCovariance:
    """Zeros, which sensor_msgs/Imu defines as unknown."""

    def state(self, measured: FloatArray, variance: FloatArray) -> FloatArray:
        """Return zeros."""
        return np.zeros((len(variance), 3, 3))


class OuterProductCovariance:
    """Matrix that Chrono's ROS handler publishes in place of a covariance.

    It is the outer product of the latest deviation from the running mean::

        (y[k] - m[k]) (y[k] - m[k])^T / max(k - 2, 1),   m[k] = mean of y[1] ... y[k]

    Its rank is one and it fades like 1/k. The handler counts from zero, hence the 2.
    """

    def __init__(self) -> None:
        self._state = np.zeros(4)  # mean (3,), count of samples

    def state(self, measured: FloatArray, variance: FloatArray) -> FloatArray:
        """Return the outer products."""
        return _outer_products(self._state, measured)


@row_loop
def _outer_products(state: FloatArray, measured: FloatArray) -> FloatArray:
    """Return the matrices `(n, 3, 3)` and advance `state` in place."""
    out = np.zeros((measured.shape[0], 3, 3))
    for k in range(measured.shape[0]):
        state[3] += 1.0
        for i in range(3):
            state[i] += (measured[k, i] - state[i]) / state[3]
        divisor = max(state[3] - 2.0, 1.0)
        for i in range(3):
            for j in range(3):
                out[k, i, j] = (measured[k, i] - state[i]) * (measured[k, j] - state[j]) / divisor
    return out
