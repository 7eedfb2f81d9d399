# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Sensor nodes for an hour at 1 kHz: memory, CPU and loss, and what bursts of 5 kHz do.

    python benchmarks/nodes_soak.py --minutes 60

Odometry comes in blocks, with stamps that go on from block to block. Memory that grows shows as a
slope over them, whose 95 % interval (Theil and Sen) should hold zero; the first blocks, in which
caches fill, are left out. A burst ends every block.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from measuring import table, write
from nodes_speed import BOTH, command, motion
from scipy.stats import theilslopes

RATE = 1000.0
BURST = 5000.0
BLOCK_S = 20.0
BURST_S = 0.2
# Whose memory still fills caches.
_WARM = 3


@dataclasses.dataclass(frozen=True)
class Block:
    """What came of 20 s and the burst behind them."""

    cpu: float
    sent: int
    lost: int
    burst_sent: int
    burst_lost: int
    resident_mib: float


def soak(minutes: float) -> list[Block]:
    """Drive IMU and GPS in one process; return what came of every block."""
    from node_driver import driver

    program, sensors = command(BOTH, RATE)
    blocks: list[Block] = []
    start_ns = 10**18
    with driver(program, sensors) as driven:
        for _ in range(max(round(minutes * 60.0 / BLOCK_S), _WARM + 3)):
            found = []
            for seconds, rate in ((BLOCK_S, RATE), (BURST_S, BURST)):
                # The motion of a burst is at 1 kHz too, and comes five times as fast.
                truth = motion(round(seconds * rate), RATE, start_ns)
                found.append(driven.drive(truth, rate))
                start_ns = int(truth.stamp_ns[-1]) + round(1e9 / RATE)
            usual, burst = found
            blocks.append(
                Block(
                    usual.cpu,
                    usual.sent,
                    usual.sent - usual.heard,
                    burst.sent,
                    burst.sent - burst.heard,
                    driven.resident_mib(),
                )
            )
            if not len(blocks) % 15:
                print(f'{len(blocks) * BLOCK_S / 60.0:g} min: {blocks[-1]}', flush=True)
    return blocks


def summary(blocks: list[Block]) -> dict[str, Any]:
    kept = blocks[_WARM:]
    hours = np.arange(len(kept)) * (BLOCK_S + BURST_S) / 3600.0
    slope, _, low, high = theilslopes([one.resident_mib for one in kept], hours)
    return {
        'minutes': len(blocks) * BLOCK_S / 60.0,
        'messages': sum(one.sent + one.burst_sent for one in blocks),
        'lost': sum(one.lost for one in blocks),
        'lost_in_bursts': sum(one.burst_lost for one in blocks),
        'bursts': sum(one.burst_sent for one in blocks),
        'cpu': float(np.median([one.cpu for one in kept])),
        'resident_mib': [kept[0].resident_mib, kept[-1].resident_mib],
        'slope_mib_per_hour': [float(slope), float(low), float(high)],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or '').partition('\n')[0])
    parser.add_argument('--minutes', type=float, default=60.0, help='default %(default)s')
    parser.add_argument('--out', type=Path, default=Path(__file__).parent / 'results')
    options = parser.parse_args()
    try:
        import rclpy  # noqa: F401
    except ImportError:
        print('nodes_soak: skipped, no ROS 2 (rclpy) here; pip install ".[ros]" gets it')
        return
    found = summary(soak(options.minutes))
    first, last = found['resident_mib']
    slope, low, high = found['slope_mib_per_hour']
    table(
        ('minutes', 'messages', 'lost', 'lost of bursts', 'CPU', 'MiB', 'MiB an hour'),
        [
            (
                f'{found["minutes"]:.0f}',
                f'{found["messages"]:,}',
                f'{found["lost"]}',
                f'{found["lost_in_bursts"]} of {found["bursts"]:,}',
                f'{found["cpu"]:.0%}',
                f'{first:.1f} to {last:.1f}',
                f'{slope:.2f} ({low:.2f} to {high:.2f})',
            )
        ],
    )
    write(options.out, 'nodes_soak', found)


if __name__ == '__main__':
    main()
