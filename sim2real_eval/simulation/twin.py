# SPDX-License-Identifier: Apache-2.0
"""Which sensors the simulated twin of a recording has, and how they are switched on."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from sim2real_eval.common.errors import RecordingError
from sim2real_eval.recording.recording import Recording
from sim_sensors.core.parameters import Parameters, to_variant
from sim_sensors.core.registry import file_of, source_digest
from sim_sensors.gps.gps import GpsModel
from sim_sensors.imu.imu import ImuModel
from sim_sensors.motion.trajectory import Motion
from sim_sensors.sensor.catalogue import SensorKind
from sim_sensors.vision.vision_pose import VISION
from sim_sensors.wheels.wheel_odometry import WHEELS
from sim_sensors.world.geodesy import LocalFrame
from sim_sensors.world.world import World
from .mounting import Placed

REAL_SENSOR = 'real'
"""Stands for a recording's own sensor where a model could be named."""

WHEEL_TOPIC = f'/{WHEELS.topic}'
"""Where simulated wheel odometry goes, and recorded one is expected."""

VISION_TOPIC = f'/{VISION.topic}'
"""Where simulated poses of a camera that sees tags go."""


@dataclasses.dataclass(frozen=True)
class Twin:
    """Which sensors a twin has; a recording's own stay where it has none of a kind.

    Attributes
    ----------
    label : str
        Name in tables and files.
    gps : GpsModel or None
        None: the recording's own fixes stay.
    imu : ImuModel or None
        None: the recording's own IMU stays.
    others : mapping
        Models of further kinds by the name of the kind: `mag`, `camera` ...
    phrase : str
        What its models are, in a few words; see `SensorKind.phrase`.
    shared_imu : str
        Name of the IMU model where all twins beside it have the same, which labels leave out.
    """

    label: str
    gps: GpsModel | None
    imu: ImuModel | None
    others: Mapping[str, Any] = dataclasses.field(default_factory=dict, hash=False)
    phrase: str = ''
    shared_imu: str = ''

    @property
    def models(self) -> dict[str, Any]:
        """All models by kind of sensor."""
        both = {'imu': self.imu, 'gps': self.gps}
        return {**{kind: one for kind, one in both.items() if one is not None}, **self.others}

    def to_mapping(self) -> dict[str, Any]:
        """Return the parameters of the models by kind, for provenance; `real` for own sensors.

        Where a class was loaded from a file, its path and digest are with them.
        """
        kinds = dict.fromkeys(['gps', 'imu', *self.others])
        return {
            kind: _provenance(self.models[kind]) if kind in self.models else REAL_SENSOR
            for kind in kinds
        }


def _provenance(model: Parameters) -> dict[str, Any]:
    own = model.to_mapping()
    parts = [type(one) for one in (model, *model.parts().values())]
    files = {str(path): source_digest(one) for one in parts if (path := file_of(one))}
    if not files:
        return own
    return {**to_variant(model), 'sha256': files}


@dataclasses.dataclass(frozen=True)
class TwinSensors:
    """How the sensors of a twin are switched on: the same in a batch run and on a live graph."""

    # Sensors by kind that stand in for one of the recording: IMU, GPS, magnetometer.
    placed: Mapping[str, Placed]
    seed: int
    # Label of the random streams; those of the sensors are the defaults, the names of the kinds.
    run: str
    # Where the velocity of the motion comes from, twist or position, as decided from the whole
    # truth.
    velocity: str
    origin: LocalFrame  # where on the Earth the truth is


def with_topic(
    recording: Recording,
    kind: SensorKind[Any, Any],
    model: Any,
    motion: Motion,
    world: World,
    *,
    seed: int,
    run: str,
    origin_ns: int,
    base_frame: str,
) -> Recording:
    """Return the recording with a sensor that has no role, in place of its own.

    A judge that asks for its topic takes it, such as wheel odometry and poses from tags.

    Raises Sim2RealError when the sensor cannot work in that world, or never measures anything.

    Parameters
    ----------
    model : Parameters
        Of that kind, mounted as it says.
    motion : Motion
        What is measured.
    world : World
        What surrounds the sensor.
    seed, run
        Labels of the random streams; see `sim_sensors.core.seeding.stream`.
    origin_ns : int
        Stamp of motion time 0, and of the first measurement.
    base_frame : str
        Frame of the body.
    """
    if hasattr(model, 'child_frame_id'):
        model = dataclasses.replace(model, child_frame_id=base_frame)
    measured = kind.simulate(
        model,
        motion,
        seed=seed,
        run=run,
        start_ns=origin_ns,
        origin_ns=origin_ns,
        **kind.surroundings(world),
    )
    if not len(measured):
        raise RecordingError(f'{recording.path or recording.name}: {kind.silence}')
    return dataclasses.replace(
        recording, messages={**recording.messages, f'/{kind.topic}': measured}
    )
