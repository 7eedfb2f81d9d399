# SPDX-License-Identifier: Apache-2.0
"""The folder that `sim2real scenario` writes: measurements, errors, record and plot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sim2real_eval.preintegration.study import ScenarioStudy
from sim2real_eval.provenance import versions
from sim2real_eval.report.scenario_plot import save_scenario_plot
from sim2real_eval.result_folder import check_result_folder, fresh_folder
from sim2real_eval.tables import write_csv, write_json
from sim_sensors.nav_state import NavState

__all__ = ['check_scenario_folder', 'scenario_record', 'write_scenario']

_MARK = 'scenario.json'
_AXES = tuple(f'{what}_{axis}' for what in ('force', 'rate') for axis in 'xyz')


def scenario_record(study: ScenarioStudy) -> dict[str, Any]:
    """Return everything but the series as a plain mapping, for JSON; SI units."""
    setup, pim = study.setup, study.pim
    return {
        'versions': versions(),
        'scenario': setup.name,
        # The sum of so many sample times, as GTSAM has it, ends in 1.9999999999999996.
        'duration_s': round(pim.delta_tij() / setup.dt) * setup.dt,
        'sample_time_s': setup.dt,
        'seed': setup.seed,
        'noise_of_first_run': setup.library or 'seed',
        'form': setup.params.form,
        'gravity': setup.params.n_gravity.tolist(),
        'bias': setup.bias.vector.tolist(),
        'estimated_bias': setup.estimated_bias.vector.tolist(),
        'delta_rij': pim.delta_rij().tolist(),
        'delta_pij': pim.delta_pij().tolist(),
        'delta_vij': pim.delta_vij().tolist(),
        'preint_meas_cov': pim.preint_meas_cov().tolist(),
        'predicted': _state(study.predicted),
        'truth': _state(study.truth),
        'error': study.error.tolist(),
        'error_without_noise': study.step_error.tolist(),
        'components': list(study.components),
        'runs': setup.runs,
        'predicted_covariance': study.predicted_covariance.tolist(),
        'estimated_covariance': study.estimated_covariance.tolist(),
        'agreement': {
            'statistic': study.agreement.statistic,
            'degrees_of_freedom': study.agreement.freedom,
            'probability': study.agreement.probability,
        },
    }


def check_scenario_folder(folder: str | Path, *, overwrite: bool) -> None:
    """Refuse a folder that may not be written, before the work; see `check_result_folder`."""
    check_result_folder(folder, _MARK, overwrite=overwrite)


def write_scenario(folder: str | Path, study: ScenarioStudy, *, overwrite: bool) -> Path:
    """Write the folder whole; return its path.

    Raises
    ------
    Sim2RealError
        When it exists and may not be replaced.
    """
    with fresh_folder(folder, _MARK, overwrite=overwrite) as fresh:
        write_csv(
            fresh / 'measurements.csv',
            ('time_s', *_AXES, *(f'ideal_{name}' for name in _AXES)),
            (
                [time, *measured, *ideal]
                for time, measured, ideal in zip(
                    study.time.tolist(), study.measured.tolist(), study.ideal.tolist(), strict=True
                )
            ),
        )
        write_csv(fresh / 'errors.csv', study.components, study.errors.tolist())
        write_json(fresh / _MARK, scenario_record(study))
        save_scenario_plot(fresh / 'scenario.png', study)
    return Path(folder)


def _state(state: NavState) -> dict[str, list[float]]:
    return {
        'orientation_xyzw': state.orientation.tolist(),
        'position': state.position.tolist(),
        'velocity': state.velocity.tolist(),
    }
