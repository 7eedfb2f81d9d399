# SPDX-License-Identifier: Apache-2.0
"""The runner for biases that walk, and truly do."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sim2real_eval.preintegration.measurements import PreintegratedCombinedMeasurements
from sim2real_eval.preintegration.params import ConstantBias, PreintegrationCombinedParams
from sim2real_eval.preintegration.runner import Draws, ScenarioRunner, noise_root
from sim_sensors.measurements import FloatArray
from sim_sensors.trajectory import Motion

__all__ = ['CombinedScenarioRunner']


class CombinedScenarioRunner(ScenarioRunner):
    """A `ScenarioRunner` whose true biases walk: b <- b + sqrt(C dt) w after every sample.

    The class of this name in [GTSAM] keeps them constant, so that the rows of the biases in its
    Monte Carlo covariance are 0 whatever the analytic one says. Here each corrupted integration
    starts at `bias`, plus a draw from `bias_acc_omega_init`.

    Parameters
    ----------
    scenario, params, imu_sample_time, bias, seed, run
        As for `ScenarioRunner`, the parameters being those of biases that walk.
    """

    measurements = PreintegratedCombinedMeasurements

    def __init__(
        self,
        scenario: Motion,
        params: PreintegrationCombinedParams,
        imu_sample_time: float = 0.01,
        bias: ConstantBias | None = None,
        *,
        seed: int = 0,
        run: str = 'scenario',
    ) -> None:
        super().__init__(scenario, params, imu_sample_time, bias, seed=seed, run=run)
        self._combined = params

    def _with_bias(self, errors: FloatArray, drawn: Draws) -> FloatArray:
        return np.hstack([errors, drawn.bias - self.bias.vector])

    def _draws(self, purpose: str, n: int, k: int) -> Iterator[Draws]:
        walk, first = self._stream(f'{purpose}/walk'), self._stream(f'{purpose}/first_bias')
        step = np.zeros((6, 6))
        step[:3, :3] = noise_root(self._combined.bias_acc_covariance * self._dt)
        step[3:, 3:] = noise_root(self._combined.bias_omega_covariance * self._dt)
        start = noise_root(self._combined.bias_acc_omega_init)
        for drawn in super()._draws(purpose, n, k):
            count = len(drawn.bias)
            way = np.zeros((count, k + 1, 6))
            way[:, 0] = first.standard_normal((count, 6)) @ start.T
            way[:, 1:] = walk.standard_normal((count, k, 6)) @ step.T
            way = np.cumsum(way, axis=1)
            yield Draws(
                drawn.force + way[:, :-1, :3],
                drawn.rate + way[:, :-1, 3:],
                drawn.bias + way[:, -1],
            )
