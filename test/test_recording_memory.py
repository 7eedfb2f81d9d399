# SPDX-License-Identifier: Apache-2.0
"""Memory that a recording takes: what its messages measure, not their bytes or objects."""

from __future__ import annotations

import contextlib
import dataclasses
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sim2real_eval.api import simulate
from sim2real_eval.characterization.screening import StandstillOptions, longest_standstill, screen
from sim2real_eval.characterization.signals import evenly_spaced, signals_of
from sim2real_eval.cli.main import main as sim2real
from sim2real_eval.judge import JudgedRun, JudgeRequest, load_judge
from sim2real_eval.metrics import error_curves
from sim2real_eval.preflight.checks import check
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.writing import write_recording
from sim2real_eval.signals import lag
from sim2real_eval.signals.comparison import compare_signals
from sim_sensors.core import scratch
from sim_sensors.core.blocks import is_steady
from sim_sensors.core.measurements import Columns, ImuArray
from sim_sensors.core.shipped import config_path
from sim_sensors.imu.imu import load_imu
from sim_sensors.motion import motion_of

SMALL, LARGE = 20_000, 120_000
_SMALLER = """
import runpy, sys
from sim_sensors.core import blocks, scratch
blocks.BLOCK, scratch.LARGE = 1024, 1 << 16  # of which a recording has many
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name='__main__')
"""
# A message of a bag has 324 bytes; if each keeps its covariances, a message takes 312 and an
# estimate 1800. Seen are 12 to 145, of which 20 change from run to run. `vepd` has as many
# estimates, and draws: 270, where it took 1020 with the signals of a run in memory. `allan` takes
# 23, and 76 where the true motion lies between the samples.
MOST_BYTES = {'vepd': 500, 'allan': 60}
WRITING = ('write', 'judge', 'vepd')  # which find what is there already when they are repeated


def most_bytes(step: str) -> int:
    return MOST_BYTES.get(step, 250)


def imu(count: int) -> ImuArray:
    """Return messages at 1 kHz whose orientation and covariances never change."""
    stamps = np.arange(1, count + 1) * 1_000_000
    values = np.arange(3.0 * count).reshape(count, 3)
    stated = np.broadcast_to(np.eye(3), (count, 3, 3))
    attitude = np.broadcast_to([0.0, 0.0, 0.0, 1.0], (count, 4))
    return ImuArray(stamps, stamps, 'imu_link', attitude, values, -values, stated, stated, stated)


def written_and_read(folder: Path, count: int) -> ImuArray:
    """Return the IMU of a recording that went through a bag."""
    write_recording(Recording('r', 's', '', {'/imu': imu(count)}, {'imu': '/imu'}), folder)
    found = read_recording(folder).imu
    assert found is not None
    return found


def peak_kb() -> int:
    """Return the most memory that this program has had, kB.

    Not `ru_maxrss`, which begins with that of the process that started it.
    """
    lines = Path('/proc/self/status').read_text(encoding='ascii').splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith('VmHWM'))


def test_what_never_changes_is_kept_once_and_comes_back(tmp_path: Path) -> None:
    given, found = imu(20_000), written_and_read(tmp_path / 'bag', 20_000)
    for name in ('orientation', 'orientation_covariance', 'linear_acceleration_covariance'):
        assert is_steady(getattr(found, name)), name
    for name in ('stamp_ns', 'orientation', 'angular_velocity', 'angular_velocity_covariance'):
        np.testing.assert_array_equal(getattr(found, name), getattr(given, name))
    assert is_steady(found.take(found.stamp_ns > 5).orientation)


def test_messages_in_parts_are_those_at_once_wherever_a_value_first_changes() -> None:
    given = imu(60)
    covariance = np.array(given.orientation_covariance)
    covariance[40, 1, 1] = 2.0
    changing = ImuArray(
        given.stamp_ns, given.arrival_ns, 'imu_link', given.orientation, given.angular_velocity,
        given.linear_acceleration, covariance, covariance, covariance,
    )  # fmt: skip
    for size in (1, 7, 40, 41, 60):
        columns = Columns[ImuArray]()
        for start in range(0, 60, size):
            columns.add(changing.take(slice(start, start + size)))
        joined = columns.joined()
        np.testing.assert_array_equal(joined.orientation_covariance, covariance)
        np.testing.assert_array_equal(joined.angular_velocity, given.angular_velocity)


@pytest.mark.skipif(sys.platform != 'linux', reason='memory is read from /proc')
def test_no_step_takes_memory_by_the_length_of_a_recording(tmp_path: Path) -> None:
    """Bytes of memory by message of the IMU."""
    run = [sys.executable, '-c', _SMALLER, __file__, str(tmp_path)]
    lines = subprocess.run(run, check=True, capture_output=True, text=True).stdout.splitlines()
    taken = {step: float(number) for step, number in map(str.split, lines)}
    assert taken.keys() == STEPS.keys()
    for step, each in taken.items():
        assert each < most_bytes(step), step


def drive(count: int) -> Recording:
    """Return a drive with its truth and that many messages of an IMU."""
    model = dataclasses.replace(load_imu('chrono'), rate=1000.0)
    motion = motion_of('figure_eight', duration=(count - 1) / 1000.0)
    return simulate(motion, gps='baseline', imu=model)


def judged(recording: Recording) -> JudgedRun:
    return load_judge(JudgeRequest('embedded', config='clean')).judge(recording)


def vepd(recording: Recording, folder: Path) -> None:
    """Compare by a judge with as many estimates as the IMU has messages."""
    config = folder / 'fast.yaml'
    text = ''
    for node, name in (('ekf_filter_node', 'clean'), ('navsat_transform', 'clean_navsat')):
        shipped = config_path('judge', f'{name}.yaml').read_text(encoding='utf-8')
        text += shipped.replace('/**:', f'{node}:').replace('frequency: 50.0', 'frequency: 1000.0')
    config.write_text(text, encoding='utf-8')
    given = ['--real', str(folder / recording.name), '--judge-config', str(config)]
    out = str(folder / f'{recording.name}_vepd')
    with contextlib.redirect_stdout(sys.stderr):
        assert sim2real(['vepd', *given, '--models', 'ch_rw', '--jobs', '1', '--out', out]) == 0


def without_motion_and_outliers(recording: Recording) -> None:
    """Do to an IMU, of which one sample is missing, what comes before its Allan variance."""
    imu = recording.imu
    assert imu is not None
    kept = imu.take(imu.stamp_ns != imu.stamp_ns[1000])
    messages = {**recording.messages, recording.roles['imu']: kept}
    even = evenly_spaced(signals_of(dataclasses.replace(recording, messages=messages)))
    assert even.rate is not None
    options = StandstillOptions(
        window=0.05, speed_limit=100.0, turn_limit=10.0, rate_noise=10.0, noise_ratio=1e3
    )
    longest_standstill(even, even.rate, options)
    screen(even.column('gyroscope_x'), even.rate)


STEPS: dict[str, Callable[[Recording, Path], object]] = {
    'write': lambda one, folder: write_recording(one, folder / one.name),
    'read': lambda one, folder: read_recording(folder / one.name),
    'check': lambda one, folder: check(one),
    'judge': lambda one, folder: judged(one).write_csv(folder / f'{one.name}.csv'),
    'compare': lambda one, folder: compare_signals([one], [one]),
    'vepd': vepd,
    'allan': lambda one, folder: without_motion_and_outliers(one),
}


def main(folder: Path) -> None:
    lag._AT_ONCE = error_curves._AT_ONCE = 1 << 14
    small, large = drive(SMALL), drive(LARGE)
    for name, step in STEPS.items():
        # With what some blocks take, and modules, a first time.
        step(dataclasses.replace(small, name='small'), folder)
        seen = float('inf')
        # How the allocator cuts up memory may raise a peak, and nothing lowers it.
        for _ in range(1 if name in WRITING else 3):
            scratch.release()
            # The peak so far is forgotten.
            Path('/proc/self/clear_refs').write_text('5', encoding='ascii')
            before = peak_kb()
            step(dataclasses.replace(large, name='large'), folder)
            seen = min(seen, (peak_kb() - before) * 1024 / (LARGE - SMALL))
            if seen < most_bytes(name):
                break
        print(name, seen)


if __name__ == '__main__':
    main(Path(sys.argv[1]))
