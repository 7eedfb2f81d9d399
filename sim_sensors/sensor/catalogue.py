# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Registry of the kinds of sensors.

A kind is the base class of its models, a `sim_sensors.sensor.sensor.SensorModel` that declares
the name, the topics and the presets of the kind. Classes are imported when they are asked for, so
that the command line can name the kinds in its help without delay.
"""

from __future__ import annotations

import contextlib
from typing import Any

from sim_sensors.core.errors import ParameterError
from sim_sensors.core.parameters import Parameters
from sim_sensors.core.registry import Registry

UPSTREAM = ':as_upstream'
"""Suffix of a model name that selects the variant with the defects of the original."""


def _is_kind(candidate: object) -> bool:
    # The base class is not imported here, so that naming the kinds needs no NumPy.
    return isinstance(candidate, type) and bool(
        getattr(candidate, 'name', '') and hasattr(candidate, 'surroundings')
    )


KINDS: Registry[Any] = Registry(
    'sim2real_sensors.sensor_kinds',
    'a kind of sensor',
    _is_kind,
    {
        'imu': 'sim_sensors.imu.imu:ImuModel',
        'gps': 'sim_sensors.gps.gps:GpsModel',
        'mag': 'sim_sensors.magnetometer.magnetometer:Magnetometer',
        'camera': 'sim_sensors.camera.camera:CameraModel',
        'wheels': 'sim_sensors.wheels.wheel_odometry:WheelOdometryModel',
        'vision': 'sim_sensors.vision.vision_pose:VisionModel',
    },
    needs='a base class derived from SensorModel with the class attribute name',
)
"""Base classes of all kinds of sensors by name."""


def kinds() -> list[Any]:
    """Return the base classes of all kinds, in the order in which they are simulated.

    A kind whose package cannot be imported is left out; `KINDS.get` names the problem.
    """
    classes = []
    for name in KINDS.names():
        with contextlib.suppress(ParameterError):
            classes.append(KINDS.get(name))
    return classes


def preset_names(kind: str) -> list[str]:
    """Return the sorted names of the presets of a kind of sensor, such as `imu` or `wheels`.

    A kind of another package has none: its models are known by their classes.
    """
    from sim_sensors.core.shipped import config_names

    return config_names(kind) if kind in KINDS.names(installed=False) else []


def has_upstream(model: Parameters) -> bool:
    """Return whether a model or a part of it has a `variant` with the defects of its original."""
    from sim_sensors.core.shared_parameters import Upstream

    if isinstance(model, Upstream) and model.has_defects:
        return True
    return any(map(has_upstream, model.parts().values()))


def SensorKind(base: Any, **attributes: Any) -> Any:  # noqa: N802
    """Declare the class attributes of a kind on its base class, as packages for 1.0 do.

    New packages declare them in the class body; see `sim_sensors.sensor.sensor.SensorModel`.

    Examples
    --------
    >>> from sim_sensors.sensor.sensor import SensorModel
    >>> class Barometer(SensorModel):
    ...     pass
    >>> SensorKind(Barometer, name='barometer', noun='a barometer').title
    'barometer'
    """
    from sim_sensors.core.parameters import variants

    renamed = {'one': 'noun', 'beside': 'more_topics'}
    for name, attribute in attributes.items():
        is_function = callable(attribute) and not isinstance(attribute, type)
        setattr(
            base, renamed.get(name, name), staticmethod(attribute) if is_function else attribute
        )
    base.title = base.noun.partition(' ')[2]
    base.models = variants(f'{base.noun} model', base)
    return base
