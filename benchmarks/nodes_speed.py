# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""What sensor nodes cost and how fast they answer, beside a relay that has no model."""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring import machine, parse, spread, table, write

from sim_sensors.core.measurements import OdometryArray
from sim_sensors.motion.motions import motion_of, truth_of

# Real time at each rate of odometry and IMU alike.
RATES = (100.0, 1000.0)
SECONDS = 4.0
# Odometry messages a second of wall time, of 100 Hz motion, with /clock.
LADDER = (500.0, 1000.0, 1500.0, 2000.0, 3000.0, 4000.0, 6000.0)
# Fast enough to hold for ever: what came in 4 s is answered so soon after.
LAG_S = 0.5

RELAY = 'relay, no model'
IMU = 'imu_node'
BOTH = 'sensors_node, IMU + GPS'
CANDIDATES = {RELAY: ('relay', 0), IMU: ('imu_node', 1), BOTH: ('sensors_node', 2)}


def command(name: str, rate: float) -> tuple[list[str], int]:
    kind, sensors = CANDIDATES[name]
    if not sensors:
        return [str(Path(__file__).with_name('relay.py'))], 0
    parameters = ['diagnostics_period:=0.1', f'imu.rate:={rate}']
    words = [word for parameter in parameters for word in ('-p', parameter)]
    return ['-m', f'sim_sensors.ros.{kind}', '--ros-args', *words], sensors


def motion(count: int, rate: float, start_ns: int) -> OdometryArray:
    """Return `count` samples of a circle; a pause of more than 60 s starts a sensor anew."""
    circle = motion_of('circle', seed=0, run='', duration=max(count / rate, 5.0), parameters={})
    return truth_of(circle, rate=rate, start_ns=start_ns).take(slice(0, count))


def answers(truth: OdometryArray, drive: Any, waits_for: int) -> list[float]:
    """Seconds from the odometry message that let a measurement be made to its receipt."""
    stamps = truth.stamp_ns.tolist()
    return [
        drive.received_s[stamp] - drive.published_s[k + waits_for]
        for k, stamp in enumerate(stamps[: len(stamps) - waits_for])
        if stamp in drive.received_s
    ]


def at_real_time(name: str, rate: float, warm: bool = True) -> dict[str, float]:
    """CPU share and answer times with odometry and IMU both at `rate`."""
    from node_driver import driver

    program, sensors = command(name, rate)
    waits_for = 2 if sensors else 0
    with driver(program, sensors) as driven:
        first = motion(int(rate), rate, 10**18)
        if warm:
            driven.drive(first, rate)
        truth = motion(int(SECONDS * rate), rate, 2 * 10**18)
        drive = driven.drive(truth, rate)
    times = sorted(answers(truth, drive, waits_for))
    cuts = statistics.quantiles(times, n=100, method='inclusive')
    return {
        'cpu': drive.cpu,
        'median_ms': cuts[49] * 1e3,
        'p99_ms': cuts[98] * 1e3,
        'lost': float(drive.sent - waits_for - len(times)),
    }


def largest_rate(name: str) -> float:
    """Largest rate of the ladder without loss or lag; 0 when there is none.

    Each rung may be tried twice: other load can starve the driver itself.
    """
    from node_driver import driver

    best = 0.0
    program, sensors = command(name, 100.0)
    waits_for = 2 if sensors else 0
    with driver(program, sensors) as driven:
        for k, rate in enumerate(LADDER, 1):
            for attempt in range(2):
                start_ns = k * 10**18 + attempt * 10**17
                drive = driven.drive(
                    motion(int(SECONDS * rate), 100.0, start_ns), rate, clock=True
                )
                received = len(drive.received_s)
                lag = max(drive.received_s.values(), default=0.0) - drive.published_s[-1]
                whole = drive.heard == drive.sent and received == drive.sent - waits_for
                if whole and drive.wall_s < 1.05 * SECONDS and lag < LAG_S:
                    best = rate
                    break
            if best < rate:
                break
    return best


def report(result: dict[str, Any]) -> None:
    rows = [
        (
            f'{name} at {rate} Hz',
            f'{found["cpu"]["median"]:.0%}',
            f'{found["cpu_of_relay"]["median"]:.1f}' if 'cpu_of_relay' in found else '',
            f'{found["median_ms"]["median"]:.2f}',
            f'{found["p99_ms"]["median"]:.1f}',
            f'{found["lost"]:.0f}',
        )
        for name, rates in result['real_time'].items()
        for rate, found in rates.items()
    ]
    table(('odometry and IMU', 'CPU', 'x relay', 'median ms', 'p99 ms', 'lost'), rows)
    print()
    table(
        ('odometry/s without loss', 'median', 'worst'),
        [
            (name, f'{found["median"]:,.0f}', f'{found["worst"]:,.0f}')
            for name, found in result['sustained'].items()
        ],
    )


def measure(repetitions: int) -> dict[str, Any]:
    """Let the candidates take turns, so that other load falls on all alike."""
    single = (RELAY, IMU)
    found: dict[tuple[str, float], list[dict[str, float]]] = {}
    sustained: dict[str, list[float]] = {name: [] for name in CANDIDATES}
    for _ in range(repetitions):
        for rate in RATES:
            for name in single:
                found.setdefault((name, rate), []).append(at_real_time(name, rate))
        for name in CANDIDATES:
            sustained[name].append(largest_rate(name))
    real_time: dict[str, dict[str, Any]] = {name: {} for name in single}
    for (name, rate), runs in found.items():
        keys = ('cpu', 'median_ms', 'p99_ms')
        figures: dict[str, Any] = {key: spread([run[key] for run in runs]) for key in keys}
        figures['lost'] = sum(run['lost'] for run in runs)
        if name != RELAY:
            pairs = zip(runs, found[RELAY, rate], strict=True)
            figures['cpu_of_relay'] = spread(
                [one['cpu'] / max(r['cpu'], 0.01) for one, r in pairs]
            )
            # What no node can avoid: motion is final only when two more samples are there.
            figures['inherent_wait_ms'] = 2e3 / rate
        real_time[name][f'{rate:g}'] = figures
    return {
        'real_time': real_time,
        'sustained': {
            name: {**spread(rates), 'worst': min(rates)} for name, rates in sustained.items()
        },
    }


def main() -> None:
    options = parse(__doc__ or '', repetitions=5, json_option=True)
    try:
        import rclpy  # noqa: F401
    except ImportError:
        print('nodes_speed: skipped, no ROS 2 (rclpy) here; pip install ".[ros]" gets it')
        return
    result = measure(options.repetitions)
    if options.json:
        print(json.dumps({'machine': machine(), **result}, indent=2))
        return
    report(result)
    write(options.out, 'nodes_speed', result)


if __name__ == '__main__':
    main()
