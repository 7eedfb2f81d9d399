# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Real sensors, their twins, and the filter on both: [Ligorio2015], tables 2 to 4.

Without a recording, a stand-in is simulated, with errors, delays and noise of the motion capture
that the twin does not have.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from sim2real_eval.benches.settings import AttitudeSettings
from sim2real_eval.recording.recording import Recording, StaticTransform
from sim2real_eval.recording.truth import low_pass_truth
from sim2real_eval.signals.comparison import SignalComparison, compare_runs
from sim2real_eval.signals.measured import SensorSignals, run_signals
from sim2real_eval.signals.options import SignalOptions
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.simulation.twin_maker import make_twin_maker, synthetic_recording
from sim_sensors.camera.camera import CameraModel, load_camera
from sim_sensors.camera.lens import PlumbBob
from sim_sensors.core import rotations
from sim_sensors.core.seeding import stream
from sim_sensors.imu.chain import ImuChain
from sim_sensors.imu.imu import ImuModel, load_imu
from sim_sensors.magnetometer.magnetometer import Magnetometer, load_mag
from sim_sensors.motion.odometry import OdometryMotion
from sim_sensors.motion.trajectory import Motion
from sim_sensors.world.world import Dipoles, World
from .filter import AttitudeError
from .study import AttitudeRun, AttitudeStudy, combine_runs, estimate_recorded_run

SIMULATED = 'twin'
STAND_IN = 'stand_in'
"""Name of the recording that stands in for a real one."""

# Delays of the stamps, s, and noise of the attitude as measured on BROAD, see
# docs/explanation/attitude.md. The camera stamps the end of an exposure of 30 ms, 15 ms after its
# middle.
_DELAYS = {'imu': 0.004, 'mag': 0.015, 'features': 0.015, 'camera_pose': 0.015}
_ROTATION_STD, _POSITION_STD, _CUTOFF_HZ = 0.00175, 0.0001, 6.0  # rad, m
_MISALIGNED_RPY = (0.004, -0.003, 0.005)  # of the motion capture against the board, rad
_IRON = {'position': (1.0, 0.3, -0.4), 'moment': (0.0, 0.0, 8.0)}  # m, A m^2


@dataclasses.dataclass(frozen=True, eq=False)
class Validation:
    """Signals of real and simulated sensors, and the filter on both."""

    comparison: SignalComparison
    real: AttitudeStudy
    simulated: AttitudeStudy


@dataclasses.dataclass(frozen=True, eq=False)
class ValidatedModels:
    """Models to simulate on the recorded truth, for the sensors that the recording has."""

    imu: ImuModel
    mag: Magnetometer | None = None
    camera: CameraModel | None = None

    def twin(self, recording: Recording) -> Twin:
        """Return the twin of the sensors that a recording has."""
        optional_models: dict[str, Any] = {}
        if self.mag is not None and recording.mag is not None:
            optional_models['mag'] = self.mag
        if self.camera is not None and recording.features is not None:
            optional_models['camera'] = self.camera
        return Twin(SIMULATED, None, self.imu, optional_models)


def simulate_stand_in(motion: Motion, world: World, *, seed: int) -> Recording:
    """Return a simulated recording in place of the real one of [Ligorio2015].

    Its MTx and webcam have calibration errors, its messages are late, and there is iron nearby.
    Its motion capture is noisy and not aligned with the board. Camera info and transforms state
    the nominal calibration. None of this depends on the models that are compared with it.
    """
    camera = load_camera('webcam_vga')
    unit = Twin(
        STAND_IN,
        None,
        _uncalibrated_imu(),
        {'mag': _uncalibrated_magnetometer(), 'camera': _uncalibrated_camera(camera)},
    )
    iron = Dipoles(np.array([_IRON['position']]), np.array([_IRON['moment']]))
    recording = synthetic_recording(
        motion,
        unit,
        seed=seed,
        run=STAND_IN,
        scenario=STAND_IN,
        world=dataclasses.replace(world, dipoles=iron),
        origin=world.frame,
    )
    recording = _with_motion_capture(recording, seed)
    for role, delay in _DELAYS.items():
        late = recording.messages.get(recording.roles.get(role, ''))
        if late is not None:
            stamps = late.stamp_ns + round(1e9 * delay)
            late = dataclasses.replace(late, stamp_ns=stamps, arrival_ns=stamps)
            recording = recording.with_messages(role, late)
    return _with_nominal_calibration(recording, camera)


def _with_motion_capture(recording: Recording, seed: int) -> Recording:
    truth = recording.truth
    assert truth is not None
    draw = stream(seed, STAND_IN, 'motion_capture', 'noise').standard_normal
    rotation_noise = _ROTATION_STD * draw((len(truth), 3))
    misalignment = Rotation.from_euler('xyz', _MISALIGNED_RPY).as_quat()[None]
    orientation = rotations.multiply(
        misalignment, rotations.multiply(truth.orientation, rotations.exp(rotation_noise))
    )
    noisy = dataclasses.replace(
        truth,
        position=truth.position + _POSITION_STD * draw((len(truth), 3)),
        orientation=orientation,
    )
    smooth, _ = low_pass_truth(STAND_IN, recording.roles['truth'], noisy, _CUTOFF_HZ)
    # Twists follow from the poses, as for motion capture.
    origin = int(smooth.stamp_ns[0])
    smooth_motion = OdometryMotion(smooth, origin_ns=origin, velocity='position').at(
        (smooth.stamp_ns - origin) * 1e-9
    )
    captured = dataclasses.replace(
        smooth,
        linear_velocity=rotations.rotate_back(smooth_motion.orientation, smooth_motion.velocity),
        angular_velocity=smooth_motion.angular_velocity,
    )
    return recording.with_messages('truth', captured)


def _uncalibrated_imu() -> ImuModel:
    model = load_imu('xsens_mtx')
    assert isinstance(model, ImuChain)
    gyroscope = dataclasses.replace(
        model.gyroscope,
        scale=(0.005, -0.003, 0.004),
        cross_axis_upper=(0.006, -0.004, 0.005),
        cross_axis_lower=(-0.003, 0.005, -0.006),
        constant_bias=(0.004, -0.006, 0.003),
    )
    accelerometer = dataclasses.replace(
        model.accelerometer,
        scale=(0.003, -0.002, 0.002),
        cross_axis_upper=(0.004, -0.005, 0.003),
        cross_axis_lower=(-0.004, 0.003, 0.005),
        constant_bias=(0.03, -0.02, 0.04),
    )
    return dataclasses.replace(model, gyroscope=gyroscope, accelerometer=accelerometer)


def _uncalibrated_magnetometer() -> Magnetometer:
    model = load_mag('xsens_mtx')
    chain = dataclasses.replace(
        model.magnetometer,
        scale=(0.02, -0.015, 0.01),
        cross_axis_upper=(0.01, -0.008, 0.012),
        cross_axis_lower=(-0.006, 0.01, 0.008),
        constant_bias=(0.8e-6, -1.0e-6, 0.6e-6),
    )
    return dataclasses.replace(model, magnetometer=chain)


def _uncalibrated_camera(model: CameraModel) -> CameraModel:
    lens = model.intrinsics
    return dataclasses.replace(
        model,
        lever_arm=tuple(np.add(model.lever_arm, (0.002, -0.001, 0.002)).tolist()),
        mounting_rpy=tuple(np.add(model.mounting_rpy, (0.006, -0.005, 0.007)).tolist()),
        row_time=3e-5,
        intrinsics=dataclasses.replace(
            lens,
            fx=1.004 * lens.fx,
            fy=1.006 * lens.fy,
            cx=lens.cx + 3.0,
            cy=lens.cy - 2.0,
            distortion=PlumbBob(k1=-0.05),
        ),
    )


def _with_nominal_calibration(recording: Recording, camera: CameraModel) -> Recording:
    info = recording.camera_info
    assert info is not None
    nominal = type(info).from_intrinsics(
        camera.intrinsics, info.stamp_ns, info.arrival_ns, info.frame
    )
    nominal_transform = StaticTransform(
        'base_link', camera.frame_id, camera.lever_arm, tuple(camera.optical_rotation().tolist())
    )
    other_transforms = [
        transform for transform in recording.transforms if transform.child != camera.frame_id
    ]
    recording = recording.with_messages('camera_info', nominal)
    return dataclasses.replace(recording, transforms=(*other_transforms, nominal_transform))


def validate(
    recordings: Sequence[Recording],
    models: ValidatedModels,
    settings: AttitudeSettings,
    world: World,
    *,
    seed: int,
    base_frame: str = 'base_link',
    progress: Callable[[], None] | None = None,
) -> Validation:
    """Simulate the sensors of each recording on its truth, and compare and filter both.

    The expected field is the one that each magnetometer measures in its first two seconds, as in
    [Ligorio2015]; landmarks are those of the `world`.

    Raises Sim2RealError as `estimate_recorded_run` and `compare_runs`.
    """
    options = SignalOptions(seed=seed, base_frame=base_frame)
    sides: dict[str, list[SensorSignals]] = {'real': [], SIMULATED: []}
    runs: dict[str, list[AttitudeRun]] = {'real': [], SIMULATED: []}
    for recording in recordings:
        measured_world = make_twin_maker(recording, None, seed=seed, base_frame=base_frame).world
        local_world = dataclasses.replace(world, earth_field=measured_world.earth_field)
        maker = make_twin_maker(recording, local_world, seed=seed, base_frame=base_frame)
        twin = models.twin(maker.real)
        if maker.real.imu is None:
            raise AttitudeError(f'{recording.path or recording.name}: has no IMU messages')
        for side, messages in (('real', maker.real), (SIMULATED, maker.make(twin))):
            sensors = list(twin.models)
            sides[side].append(run_signals(messages, options, sensors=sensors, maker=maker))
            runs[side].append(
                estimate_recorded_run(
                    messages, settings, world=local_world, seed=seed, base_frame=base_frame
                )
            )
        if progress is not None:
            progress()
    comparison = compare_runs(sides['real'], {SIMULATED: sides[SIMULATED]}, options)
    return Validation(comparison, combine_runs(runs['real']), combine_runs(runs[SIMULATED]))
