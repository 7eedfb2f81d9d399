# SPDX-License-Identifier: Apache-2.0
"""Options of a study that are plain values: the one declaration of file, command and node."""

from __future__ import annotations

import dataclasses

from sim2real_eval.metrics.options import SPEED_COMPONENTS, MetricOptions
from sim2real_eval.metrics.uncertainty.result import UncertaintyOptions
from sim_sensors.core.parameters import Parameters, parameter


@dataclasses.dataclass(frozen=True)
class ComparedSensors(Parameters):
    """Which sensors are simulated on the true motion of real recordings.

    Options of `sim2real vepd`, parameters of evaluation_node and arguments of its launch file.
    """

    models: str = parameter(
        'paper',
        '',
        'GPS models, by comma: presets, YAML files, paper, all, or real to keep the recorded GPS.',
    )
    imu: str = parameter('chrono', '', 'IMU models likewise, or real.')


@dataclasses.dataclass(frozen=True)
class StudyOptions(Parameters):
    """How recordings are simulated, judged and compared.

    Keys of a study file, options of `sim2real vepd` and `sim2real study`, and parameters of
    evaluation_node, all of the same name.

    Attributes
    ----------
    metric : MetricOptions
    uncertainty : UncertaintyOptions
    """

    seed: int = parameter(
        0, '1', 'Seed of all random draws; equal seeds give equal bytes.', minimum=0
    )
    repetitions: int = parameter(1, '1', 'Simulated runs per recording and model.', minimum=1)
    match_rates: bool = parameter(False, '', 'Simulate at the rates of the real sensors.')
    start_heading: bool = parameter(
        False,
        '',
        'Start the judges with the true heading, for recordings whose IMU has no orientation.',
    )
    component: str = parameter(
        'horizontal', '', 'Speed that is compared.', choices=SPEED_COMPONENTS
    )
    metric: MetricOptions = dataclasses.field(default_factory=MetricOptions)
    uncertainty: UncertaintyOptions = dataclasses.field(default_factory=UncertaintyOptions)
