# SPDX-License-Identifier: Apache-2.0
"""Kinds of sensors, and their models by name: presets, files of the same form, and classes.

A folder of this package declares its kind as one `SensorKind`, and everything that names sensors
reads that declaration: the twin of a recording, the nodes, the launch files and the command line.
Nothing heavy is imported here: the command line names the kinds in its help.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sim_sensors.core.errors import ParameterError, UnknownNameError, did_you_mean
from sim_sensors.core.parameters import Parameters, from_variant, to_variant, variants
from sim_sensors.core.registry import Registry, is_in_file

if TYPE_CHECKING:
    from sim_sensors.motion.trajectory import Motion
    from sim_sensors.world.world import World
    from .sensor import SensorModel

UPSTREAM = ':as_upstream'
"""Behind the name of a model: the same numbers with the defects of the original."""

_KALIBR = {'gyroscope_noise_density', 'accelerometer_noise_density', 'imu0'}

P = TypeVar('P', bound='SensorModel')
A = TypeVar('A')


@dataclasses.dataclass(frozen=True, eq=False)
class SensorKind(Generic[P, A]):
    """A kind of sensor: all that the rest of the software has to know of it.

    Attributes
    ----------
    name : str
        That of its folder in `config/`, of the option on the command line, of the launch argument,
        of its parameters in a node, and the label of its random streams.
    one : str
        What one is called, with its article.
    base : type
        What its models derive from. The models in the folder of that class are found there.
    preset : str
        Model of a node where none is named.
    topic, message : str
        Relative name and ROS type of the topic of its measurements.
    node : str
        Name of its node.
    world : str
        World of its node where none is named; empty: it is in none.
    surroundings : callable
        What `simulate`, and `start` of a model, take of a world, by keyword.
    beside : tuple of str
        Relative names of further topics of its node.
    silence : str
        What is wrong when it never measures anything.
    ideal : callable, optional
        Returns a motion as a noise-free sensor of the kind measured it, for sensors of the kind to
        measure: `ideal(motion, messages, origin_ns=..., mounting=..., **surroundings)`; see
        `sim_sensors.motion.ideal`. None: such a sensor tells nothing that the motion does not.
    ideal_topic : str
        Relative name of the topic of that noise-free sensor.
    ideal_values : tuple of str
        Fields of its messages that have to be finite.
    """

    name: str
    one: str
    base: type[P]
    preset: str
    topic: str
    message: str
    node: str
    world: str
    surroundings: Callable[[World], dict[str, Any]]
    beside: tuple[str, ...] = ()
    silence: str = 'a simulated sensor never measures anything; must be another world or model'
    ideal: Callable[..., Motion] | None = None
    ideal_topic: str = ''
    ideal_values: tuple[str, ...] = ()

    @cached_property
    def models(self) -> Registry[type[P]]:
        """Classes of its models by the name that the key `model` of a file gives."""
        return variants(f'{self.one} model', self.base)

    @property
    def title(self) -> str:
        """What one is called, as the first word of a sentence."""
        return self.one.partition(' ')[2]

    def names(self) -> list[str]:
        """Return the names that `load` takes: the presets, then models of other packages.

        Where there are no presets, those are all models.
        """
        shipped = names(self.name)
        ours = {*shipped, *self.models.names(installed=False)} if shipped else set()
        return [*shipped, *(name for name in self.models.names() if name not in ours)]

    def load(self, name: str | Path, *, folder: Path | None = None) -> P:
        """Return a model by its name or its file.

        Parameters
        ----------
        name : str or Path
            A preset; a model of another package, which is then as by default; the path of a YAML
            file; or a class in a file, `my_model.py:MyModel`, as by default. With `:as_upstream`
            behind it, `variant` is that instead of what the file says.
        folder : Path, optional
            What a relative path is relative to; by default the current folder.

        Raises
        ------
        ParameterError
            When there is no such model, or the file is unreadable or wrong, or no such variant.

        Examples
        --------
        >>> KINDS.get('imu').load('chrono').rate
        100.0
        """
        from sim_sensors.core.config_files import read_yaml_mapping

        text = str(name)
        if text.endswith(UPSTREAM):
            plain = self.load(text.removesuffix(UPSTREAM), folder=folder)
            if not has_upstream(plain):
                raise ParameterError(
                    text, 'variant', 'the model has none; must be given without it'
                )
            return from_variant(self.models, _as_upstream(to_variant(plain)), text)
        if is_in_file(text) or text.endswith('.py'):
            return self.models.get(text, folder=folder)()
        path = self._path(text)
        if path is None:
            return from_variant(self.models, {'model': text}, text)
        path = Path(folder or '', path)
        mapping = read_yaml_mapping(path)
        self._check(mapping, str(path))
        return from_variant(self.models, mapping, str(path))

    def phrase(self, name: str | Path, *, folder: Path | None = None) -> str:
        """Return what a model is in a few words: how its file or its class begins.

        `name`, `folder`: as for `load`. Words end at the first semicolon or sentence.

        Examples
        --------
        >>> KINDS.get('gps').phrase('ch_rw')
        'Chrono random walk: smooth bounded drift'
        """
        from sim_sensors.core.config_files import file_phrase, first_phrase

        text = str(name).removesuffix(UPSTREAM)
        path = None if is_in_file(text) else self._path(text)
        if path is not None:
            return file_phrase(Path(folder or '', path))
        about = type(self.load(name, folder=folder)).__doc__ or ''
        return first_phrase(about.strip().partition('\n')[0])

    def simulate(
        self,
        model: P,
        motion: Motion,
        *,
        seed: int,
        run: str,
        sensor: str = '',
        start_ns: int | None = None,
        origin_ns: int = 0,
        **surroundings: Any,
    ) -> A:
        """Measure a whole motion with the sensor that `model.start` gives.

        Parameters
        ----------
        model : SensorModel
            Of this kind.
        motion : Motion
            From its start to its end, in the frame of the world.
        seed, run, sensor
            Labels of the random streams; see `sim_sensors.core.seeding.stream`. Without `sensor`
            it is the name of the kind.
        start_ns, origin_ns
            See `sim_sensors.sensor.sensor.Sensor.simulate`.
        **surroundings
            What `start` of the model takes of a world: `gravity` of an IMU, m/s^2; `frame` of a
            GPS, where on the Earth the motion is; `world` of a magnetometer, whose field it
            measures, of a camera, which sees it, and of vision, whose tags it finds.

        Returns
        -------
        MessageArray
            What arrives; of a camera its features and poses, of vision the poses it accepts.

        Examples
        --------
        >>> from sim_sensors import load_gps, load_imu, load_mag, load_world, motion_of
        >>> motion = motion_of('standstill', duration=2.0)
        >>> measured = KINDS.get('imu').simulate(load_imu('ideal'), motion, seed=1, run='1')
        >>> measured.linear_acceleration[0]
        array([0.     , 0.     , 9.80665])
        >>> fixes = KINDS.get('gps').simulate(load_gps('ch_gauss'), motion, seed=1, run='1')
        >>> len(fixes), fixes.frame
        (21, 'gps_link')
        >>> mag, camera, room = KINDS.get('mag'), KINDS.get('camera'), load_world('chessboard')
        >>> field = mag.simulate(load_mag('ideal'), motion, seed=1, run='1', world=room)
        >>> field.magnetic_field.shape
        (201, 3)
        >>> vga = camera.load('ideal_vga')
        >>> len(camera.simulate(vga, motion, seed=1, run='1', world=room).features)
        61
        """
        device = model.start(seed, run, sensor or self.name, **surroundings)
        arrived: A = device.simulate(motion, start_ns=start_ns, origin_ns=origin_ns)
        return arrived

    def _check(self, mapping: Mapping[str, object], where: str) -> None:
        """Raise ParameterError for a file of another sensor, or of another program."""
        if 'model' not in mapping and not _KALIBR.isdisjoint(mapping):
            raise ParameterError(
                where, '', f'is a Kalibr file; take the {self.name}.yaml beside it'
            )
        model = mapping.get('model')
        if model in self.models.names(installed=False):
            return
        for other in kinds():
            if model in other.models.names(installed=False):
                raise ParameterError(
                    where, 'model', f'{model!r} is {other.one} model; must be {self.one} model'
                )

    def _path(self, name: str) -> Path | None:
        """Path of a preset or the path given, which ends in .yaml or .yml or has a folder; None
        for a model of another package.
        """
        from sim_sensors.core.shipped import config_path

        given = Path(name)
        if given.suffix == '.sdf':
            raise ParameterError(name, '', f'is an SDF file; take the {self.name}.yaml beside it')
        if given.suffix in ('.yaml', '.yml') or len(given.parts) > 1:
            return given
        if name in names(self.name):
            return config_path(self.name, f'{name}.yaml')
        known = self.names()
        if name in known:
            return None
        problem = f'is unknown{did_you_mean(name, known)}'
        for other in kinds():
            if name in names(other.name):
                problem = f'is {other.one} model'
                break
        raise UnknownNameError(
            f'{self.name} model',
            '',
            f'{name!r} {problem}; must be one of {", ".join(known)}, a path of a YAML file, or a '
            'class in a file, such as my_model.py:MyModel',
        )


KINDS: Registry[SensorKind[Any, Any]] = Registry(
    'sim2real_sensors.sensor_kinds',
    'a kind of sensor',
    lambda one: isinstance(one, SensorKind),
    {
        'imu': 'sim_sensors.imu.imu:IMU',
        'gps': 'sim_sensors.gps.gps:GPS',
        'mag': 'sim_sensors.magnetometer.magnetometer:MAG',
        'camera': 'sim_sensors.camera.camera:CAMERA',
        'wheels': 'sim_sensors.wheels.wheel_odometry:WHEELS',
        'vision': 'sim_sensors.vision.vision_pose:VISION',
    },
)
"""All kinds of sensors by name."""


def kinds() -> list[SensorKind[Any, Any]]:
    """Return all kinds of sensors, in the order in which they are listed and simulated.

    One whose package cannot be imported is left out; `KINDS.get` says why.
    """
    found = []
    for name in KINDS.names():
        with contextlib.suppress(ParameterError):
            found.append(KINDS.get(name))
    return found


def names(kind: str) -> list[str]:
    """Return the names of the presets of a kind of sensor, such as `imu` or `wheels`, sorted.

    A kind of another package has none: its models are known by their classes.
    """
    from sim_sensors.core.shipped import config_names

    return config_names(kind) if kind in KINDS.names(installed=False) else []


def has_upstream(model: Parameters) -> bool:
    """Say whether a model or a part of it has a `variant` with the defects of its original."""
    from sim_sensors.core.shared_parameters import Upstream

    if isinstance(model, Upstream) and model.has_defects:
        return True
    parts = [getattr(model, field.name) for field in dataclasses.fields(model)]
    return any(has_upstream(part) for part in parts if isinstance(part, Parameters))


def _as_upstream(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Return the mapping with every `variant` as upstream."""
    changed: dict[str, Any] = {}
    for key, value in mapping.items():
        if key == 'variant':
            changed[key] = 'as_upstream'
        else:
            changed[key] = _as_upstream(value) if isinstance(value, Mapping) else value
    return changed
