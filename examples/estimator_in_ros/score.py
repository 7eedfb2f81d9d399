# SPDX-License-Identifier: Apache-2.0
"""VEPD of estimates that a node made from real and from simulated sensors.

python score.py BAGS REAL_ESTIMATES SIMULATED_ESTIMATES --topic /my_filter/odometry
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import sim2real_eval as s2r
from sim2real_eval.metrics import VelocitySeries


def evaluated(bag: Path, estimate: Path, topic: str) -> s2r.EvaluatedRun:
    """Score the odometry in `estimate` against the truth in `bag`: horizontal speed."""
    truth = s2r.read_recording(bag).require('truth')
    alone = {'truth': topic, 'imu': None, 'gps': None}
    found = s2r.read_recording(estimate, topics=alone).require('truth')
    start = truth.stamp_ns[0]

    def seconds_and_speed(odometry):
        speed = np.hypot(odometry.linear_velocity[:, 0], odometry.linear_velocity[:, 1])
        return (odometry.stamp_ns - start) * 1e-9, speed

    series = VelocitySeries(*seconds_and_speed(found), *seconds_and_speed(truth), bag.name)
    return s2r.EvaluatedRun.of_series(series, bag.name)


def main(arguments: list[str] | None = None) -> s2r.VepdResult:
    """Score all bags of a folder; print VEPD and return it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ('bags', 'real', 'simulated'):
        parser.add_argument(name, type=Path)
    parser.add_argument('--topic', required=True)
    options = parser.parse_args(arguments)
    bags = sorted(path for path in options.bags.iterdir() if path.is_dir())
    sides = [
        [evaluated(bag, folder / bag.name, options.topic) for bag in bags]
        for folder in (options.real, options.simulated)
    ]
    result = s2r.vepd(*sides)
    print(result)
    return result


if __name__ == '__main__':
    main()
