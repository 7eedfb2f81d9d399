# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Draw allan.png: a simulated gyroscope at rest, analysed, and the model of it simulated anew.

Run it in any folder, from an environment with the package: `python draw_allan.py`.
"""

from __future__ import annotations

from pathlib import Path

from sim2real_eval.characterization.analysis import analyse, combined_terms
from sim2real_eval.characterization.imu_file import chain_model
from sim2real_eval.characterization.recovered_parameters import reidentify, simulated_standstill
from sim2real_eval.characterization.signals import AXES, Signals
from sim2real_eval.report.allan import allan_figure
from sim2real_eval.report.style import save_png
from sim_sensors.imu.chain import GyroscopeChain, ImuChain

RATE, HOURS = 20.0, 6

SENSOR = ImuChain(
    rate=RATE,
    gyroscope=GyroscopeChain(
        noise_density=(2e-4, 1e-4, 1e-4),
        bias_instability=(3e-5, 3e-5, 1e-5),
        bias_instability_from=1.0 / RATE,
        bias_instability_to=HOURS * 3600.0,
        random_walk=(2e-6, 0.0, 6e-6),
        quantisation_noise=(0.0, 1.2e-5, 0.0),
    ),
)


def main() -> None:
    """Draw it."""
    values = simulated_standstill(SENSOR, int(RATE * HOURS * 3600), seed=7)[:, :3]
    result = analyse(Signals('simulated, 6 h', AXES[:3], values, None, RATE))
    terms = combined_terms([result])
    model = chain_model(terms, rate=RATE)
    again = reidentify(model, terms, result.samples, seed=8)
    for one in again.recovered_parameters:
        print(one)
    save_png(allan_figure([result], terms, again.curves), Path(__file__).parent / 'allan.png')


if __name__ == '__main__':
    main()
