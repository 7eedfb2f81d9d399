# SPDX-License-Identifier: Apache-2.0
"""Parameters of evaluation_node."""

from __future__ import annotations

import dataclasses

from sim2real_eval.metrics.speeds import SPEED_COMPONENTS
from sim2real_eval.ros.lockstep import JUDGES
from sim_sensors.parameters import Parameters, parameter

__all__ = ['EvaluationSettings']


@dataclasses.dataclass(frozen=True)
class EvaluationSettings(Parameters):
    """Parameters of evaluation_node that are no lists; `real` and `topics` are."""

    models: str = parameter(
        'paper',
        '',
        'GPS models, by comma: presets, YAML files, paper, all, or real to keep the recorded GPS.',
        read_only=True,
    )
    imu: str = parameter('chrono', '', 'IMU models likewise, or real.', read_only=True)
    judge: str = parameter(
        'judge_node',
        '',
        'Which nodes judge: ours, or ekf_node of robot_localization.',
        choices=JUDGES,
        read_only=True,
    )
    profile: str = parameter(
        'paper_released', '', 'Parameters of the judge that are shipped.', read_only=True
    )
    params_file: str = parameter(
        '', '', 'Parameter file of ekf_node instead of a profile.', read_only=True
    )
    navsat_params_file: str = parameter(
        '',
        '',
        'Parameter file of navsat_transform_node; empty: that which belongs to the other.',
        read_only=True,
    )
    case_file: str = parameter(
        '', '', 'case.yaml that sets clock, timers and delivery order.', read_only=True
    )
    out: str = parameter('', '', 'Folder to write.', read_only=True)
    overwrite: bool = parameter(False, '', 'Replace an older result in it.', read_only=True)
    seed: int = parameter(0, '1', 'Seed of all random draws.', minimum=0, read_only=True)
    repetitions: int = parameter(
        1, '1', 'Simulated runs per recording and model.', minimum=1, read_only=True
    )
    match_rates: bool = parameter(
        False, '', 'Simulate at the rates of the real sensors.', read_only=True
    )
    start_heading: bool = parameter(
        False, '', 'Start the filters with the true heading.', read_only=True
    )
    component: str = parameter(
        'horizontal', '', 'Speed that is compared.', choices=SPEED_COMPONENTS, read_only=True
    )
    scenario: str = parameter(
        '', '', 'Scenario label of all recordings; empty: their own.', read_only=True
    )
    rate_factor: float = parameter(
        0.0,
        '1',
        'Seconds of a run per second of wall time; 0: as fast as all keep up.',
        minimum=0.0,
        maximum=1e3,
        read_only=True,
    )
