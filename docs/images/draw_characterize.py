# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Draw characterize.png: a simulated receiver at rest for half an hour, characterised.

Run it in any folder, from an environment with the package: `python draw_characterize.py`.
"""

from __future__ import annotations

from pathlib import Path

from sim2real_eval.characterization.gps_characterization import characterize_gps, check_models
from sim2real_eval.recording.recording import Recording
from sim2real_eval.report.gps_noise import gps_figure
from sim2real_eval.report.style import save_png
from sim_sensors.gps import gps
from sim_sensors.gps.gps import GnssNoise, GpsModel, HdopCovariance
from sim_sensors.motion.scenarios import Standstill

RECEIVER = GpsModel(
    rate=5.0,
    noise=GnssNoise(
        white_std=(0.006, 0.008, 0.015),
        gauss_markov_std=(0.01, 0.015, 0.03),
        gauss_markov_time=(20.0, 20.0, 30.0),
    ),
    covariance=HdopCovariance(),
)


def main() -> None:
    """Draw it."""
    fixes = gps.simulate(RECEIVER, Standstill(duration=1800.0), seed=3, run='picture')
    recording = Recording('simulated', 'standstill', '', {}, {}).with_messages('gps', fixes)
    result = characterize_gps([recording])
    for fit in result.axes:
        print(fit)
    check = check_models(result, 0)[0]
    save_png(gps_figure(result, check), Path(__file__).parent / 'characterize.png')


if __name__ == '__main__':
    main()
