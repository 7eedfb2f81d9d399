# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Simulated twins of a recording: its true motion, measured by sensor models."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from sim2real_eval.common.findings import Finding, assumed, decisive, routine
from sim2real_eval.recording import checks
from sim2real_eval.recording.poses import derive_velocities
from sim2real_eval.recording.recording import ROLE_CLASSES, Recording
from sim2real_eval.recording.truth import check_truth_axes, locate_truth, move_truth_to_base
from sim_sensors.camera.camera import CameraModel
from sim_sensors.core import rotations
from sim_sensors.core.blocks import blocks
from sim_sensors.core.measurements import (
    FloatArray,
    MagneticFieldArray,
    MessageArray,
    MessageParts,
    OdometryArray,
    is_absent,
)
from sim_sensors.core.seeding import run_label
from sim_sensors.imu.imu import ExactKinematics, IdealMeasurement
from sim_sensors.motion.ideal import Mounting
from sim_sensors.motion.motions import truth_of
from sim_sensors.motion.odometry import OdometryMotion
from sim_sensors.motion.trajectory import Motion
from sim_sensors.sensor.catalogue import kinds
from sim_sensors.sensor.sensor import SensorModel
from sim_sensors.world.earth import EarthField
from sim_sensors.world.geodesy import DEFAULT_ORIGIN, STANDARD_GRAVITY, LocalFrame
from sim_sensors.world.world import World
from .twin import (
    Mountings,
    PlacedSensor,
    Twin,
    TwinSensors,
    add_noise_free_imu,
    add_sensor_transforms,
    cut_to_span,
    find_common_span,
    find_span,
    gravity_notes,
    noise_free_fixes,
    noise_free_messages,
    noise_free_notes,
    simulate_camera,
    simulate_topic,
)

RATE_DIFFERS = decisive(
    'twin.rate_differs',
    'simulated at {simulated:g Hz}, real one at {real:.3g Hz}: the rate alone can change VEPD '
    'severalfold',
    'The comparison then measures the difference of the rates, not of the errors.',
    'simulate at the real rate with --match-rates (in a study file `match_rates: true`, in Python '
    '`simulate(..., match_rates=True)`)',
)
ATTITUDE_DIFFERS = routine(
    'twin.attitude_differs',
    'the {has} sensor publishes an orientation, the {lacks} one does not: part of the difference '
    'is the attitude',
    'A judge uses a published orientation, so it knows more in one of the two runs.',
    'set `orientation: {{mode: {mode}}}` in the file of the model',
)
PLACED_AS_REAL = decisive(
    'twin.placed_as_real',
    '{parameter} has no effect: the simulated sensor is placed where the real one is',
    'Place and frame of a simulated sensor are those of the recorded one that it replaces.',
    'place it by `transforms: [{{parent: base_link, child: FRAME, translation: [X, Y, Z]}}]` (m, '
    'measured on the vehicle) in recording.yaml',
)
PLACED_BY_MODEL = assumed(
    'twin.placed_by_model',
    'no static transform names it, so the simulated sensor has the lever arm of its model: '
    '[{place}] m',
    'The recording has static transforms, but none for a sensor of this kind.',
    'place it by `lever_arm: [X, Y, Z]` (m, measured on the vehicle) in the file of the model, or '
    'by `transforms: [{{parent: base_link, child: FRAME, translation: [X, Y, Z]}}]` in '
    'recording.yaml',
)


_FIELD_S = 2.0
"""Time from the first magnetometer sample over which the field is averaged."""
_Mounting = tuple[FloatArray, FloatArray]
"""Lever arm (3,), m, and quaternion (4,) x y z w of a sensor in the body."""


class TwinMaker:
    """Simulator of twins of one recording; the true motion is interpolated once.

    The recording is first cut to the time for which it has truth, so that real and simulated
    sensors are judged over the same span. A simulated sensor starts at the stamp of the first real
    message, so that both have the same phase against the judge's timers.

    If the recording has messages of a noise-free sensor (roles `ideal_imu`, `ideal_gps`,
    `ideal_mag`), a simulated one of that kind adds its errors to them, over their time; see
    `sim_sensors.motion.ideal`.

    Parameters
    ----------
    recording : Recording
        Recording with truth.
    seed : int
        Seed of the study.
    base_frame : str
        Body frame of the robot, whose velocity the judge estimates. A truth of another frame is
        moved there by the static transforms.
    purpose : str
        Part of the label of the random streams. Draws of one seed for different purposes are
        independent.
    origin : LocalFrame, optional
        Place of the map frame on the Earth; by default that of `locate_truth`, or that of `world`
        if there are no fixes.
    world : World, optional
        Surroundings of the sensors; by default only standard gravity and the Earth's field.

    Attributes
    ----------
    real : Recording
        The recording, cut to its truth, which is that of the base frame.
    truth : OdometryArray
        Truth of the base frame.
    motion : OdometryMotion
        Interpolated truth; time 0 is its first stamp.
    start_ns, end_ns : int
        First and last stamp of the truth.
    world : World
        Surroundings of the sensors; its origin is that of the truth.
    remarks : tuple of Finding
        Findings about the truth.

    Raises
    ------
    RecordingError
        When there is no truth, or a sensor has no message while there is truth.
    MotionError
        When the truth is not a motion, such as fewer than three samples.
    JudgeError
        When static transforms are given but do not connect a sensor or the truth to the base.
    """

    def __init__(
        self,
        recording: Recording,
        *,
        seed: int,
        base_frame: str = 'base_link',
        purpose: str = 'twin',
        origin: LocalFrame | None = None,
        world: World | None = None,
    ) -> None:
        self._base = base_frame
        self._purpose = purpose
        self._seed = seed
        self._mountings = Mountings(recording.transforms, base_frame)
        recorded_truth = recording.require('truth')
        assert isinstance(recorded_truth, OdometryArray)
        truth = move_truth_to_base(recorded_truth, self._base, self._mountings.frames)
        self._ideal = noise_free_messages(recording)
        self.start_ns, self.end_ns = find_common_span(recording, truth)
        # The motion near the end depends on the samples after it.
        from_start = truth.take(slice(np.searchsorted(truth.stamp_ns, self.start_ns), None))
        truth = truth.take(find_span(truth.stamp_ns, self.start_ns, self.end_ns))
        recording = recording.with_messages('truth', truth)
        self.truth = truth
        self.motion = OdometryMotion(from_start, origin_ns=self.start_ns)
        if self.motion.velocity_source == 'position':
            # The estimated speed is compared with that of the truth, which has none of its own.
            derived, _ = derive_velocities(recording.path, '', truth)
            self.truth = dataclasses.replace(truth, linear_velocity=derived.linear_velocity)
            recording = recording.with_messages('truth', self.truth)
        self.real = cut_to_span(recording, self.start_ns, self.end_ns)
        fixes = self.real.gps or noise_free_fixes(recording)
        if origin is None:
            located = locate_truth(truth, fixes)
            origin = located if world is None or fixes is not None else world.frame
        self._frame = origin
        self._latest_twin: tuple[Twin, dict[str, PlacedSensor]] | None = None
        # The latest settings and messages by kind of sensor, which twins often share.
        self._latest_messages: dict[str, tuple[Any, MessageArray]] = {}
        self.world = dataclasses.replace(world or World(), frame=origin)
        self.remarks = (
            *self._body_remarks(recorded_truth),
            *(checks.TRUTH_CHECK(problem=remark) for remark in self.motion.remarks),
            *check_truth_axes(truth, fixes, self._frame),
        )

    def make(self, twin: Twin, repetition: int = 1) -> Recording:
        """Return the recording with its sensors replaced by those of `twin`.

        Other topics, such as wheel odometry, stay. Notes on replaced topics are dropped.

        Parameters
        ----------
        twin : Twin
            Sensors to simulate.
        repetition : int
            Number of the noise draw, from 1.
        """
        recording = self.real
        sensors = self.sensors(twin, repetition)
        labels: Any = {'seed': sensors.seed, 'run': sensors.run, 'origin_ns': self.start_ns}
        for kind in kinds():
            placed, model = sensors.placed.get(kind.name), twin.models.get(kind.name)
            if placed is not None:
                measured = self._simulate(kind, placed, labels)
                recording = recording.with_messages(kind.name, measured)
            elif isinstance(model, CameraModel):
                sensor = self._place({'features': model})['features']
                recording = simulate_camera(recording, sensor, self.motion, self.world, **labels)
                recording = add_sensor_transforms(recording, [sensor])
            elif model is not None:
                recording = simulate_topic(
                    recording,
                    kind,
                    model,
                    self.motion,
                    self.world,
                    base_frame=self._base,
                    **labels,
                )
        recording = add_sensor_transforms(recording, sensors.placed.values())
        if self._ideal:
            recording = cut_to_span(recording, self.start_ns, self.end_ns)
        if twin.imu is not None and twin.gps is not None:
            # The motion is the true one of simulated sensors, even if it was estimated.
            recording = dataclasses.replace(recording, reference=None)
        replaced = {recording.roles[role] for role in sensors.placed}
        notes = tuple(note for note in recording.notes if note.subject not in replaced)
        return dataclasses.replace(recording, notes=(*notes, *self.sensor_notes(twin)))

    def _simulate(
        self, kind: type[SensorModel[Any]], placed: PlacedSensor, labels: Any
    ) -> MessageArray:
        """Return the messages of a simulated sensor; the latest ones of each kind are kept."""
        model = placed.model
        settings = (type(model), model.to_mapping(), placed.start_ns, self.world, labels)
        latest = self._latest_messages.get(kind.name)
        if latest is not None and latest[0] == settings:
            return latest[1]
        # Frees memory before the next messages are made.
        self._latest_messages.pop(kind.name, None)
        messages: MessageArray = kind.simulate(
            model,
            self.motion_for(kind),
            start_ns=placed.start_ns,
            **kind.surroundings(self.world),
            **labels,
        )
        self._latest_messages[kind.name] = settings, messages
        return messages

    def motion_for(self, kind: type[SensorModel[Any]]) -> Motion:
        """Return the motion that sensors of a kind measure.

        It is that of the truth, with the measurements of a noise-free sensor of that kind, if any.

        Raises
        ------
        MotionError
            When noise-free messages are too few, disordered or not finite.
        JudgeError
            When static transforms are given but do not connect its frame to the base.
        """
        ideal = self._ideal.get(kind.name)
        if ideal is None or kind.ideal is None:
            return self.motion
        return kind.ideal(
            self.motion,
            ideal,
            origin_ns=self.start_ns,
            mounting=Mounting(*self.mounting(ideal.frame, 'noise-free sensor')),
            **kind.surroundings(self.world),
        )

    def sensors(self, twin: Twin, repetition: int = 1) -> TwinSensors:
        """Return mounting and random streams of the simulated sensors of a twin."""
        roles = self.real.roles
        unassigned = [
            array for topic, array in self.real.messages.items() if topic not in roles.values()
        ]
        for role in ('imu', 'gps'):
            same_type = (isinstance(array, ROLE_CLASSES[role]) for array in unassigned)
            if role in twin.models and role not in roles and any(same_type):
                # A judge would use the real sensor beside the simulated one: report it.
                self.real.require(role)
        # `make` and `sensor_notes` ask for the same twin.
        if self._latest_twin is None or self._latest_twin[0] is not twin:
            models = {role: model for role, model in twin.models.items() if role in ROLE_CLASSES}
            self._latest_twin = twin, self._place(models)
        return TwinSensors(
            placed=self._latest_twin[1],
            seed=self._seed,
            run=run_label(self._purpose, repetition, self.real.name),
            velocity=self.motion.velocity_source,
            origin=self._frame,
        )

    def at_real_rates(self, twin: Twin) -> Twin:
        """Return the twin with simulated sensors at the median rates of the real ones.

        Rates that the user has chosen stay.
        """

        def set_rate(role: str, model: Any) -> Any:
            real_rate = median_rate(self._real_messages(role))
            if model is None or real_rate is None or f'{role}.rate' in twin.chosen:
                return model
            return dataclasses.replace(model, rate=real_rate)

        return dataclasses.replace(
            twin,
            imu=set_rate('imu', twin.imu),
            gps=set_rate('gps', twin.gps),
            others={role: set_rate(role, model) for role, model in twin.others.items()},
        )

    def model_notes(self, twin: Twin) -> tuple[Finding, ...]:
        """Return `sensor_notes`, and findings about sensors that differ from the real ones.

        These are different rates, and an orientation that only one of the IMUs publishes.
        """
        notes = list(self.sensor_notes(twin))
        for kind in ('gps', 'imu'):
            model, real = twin.models.get(kind), median_rate(self._real_messages(kind))
            if model is not None and real is not None and abs(model.rate / real - 1.0) > 0.1:
                notes.append(RATE_DIFFERS(kind.upper(), simulated=model.rate, real=real))
        if twin.imu is not None and self.real.imu is not None:
            real_has = not is_absent(self.real.imu.orientation_covariance).all()
            simulated_has = twin.imu.orientation.publishes
            if real_has != simulated_has:
                has, lacks = ('real', 'simulated') if real_has else ('simulated', 'real')
                mode = 'ahrs' if real_has else 'absent'
                notes.append(ATTITUDE_DIFFERS('IMU', has=has, lacks=lacks, mode=mode))
        return tuple(notes)

    def sensor_notes(self, twin: Twin) -> tuple[Finding, ...]:
        """Report simulated sensors that use noise-free messages, and where they are placed.

        Placement by the model is reported if the recording has static transforms, but none for
        the sensor; placement by the recording, if the user has chosen another one.
        """
        placed = self.sensors(twin).placed
        transforms = [
            sensor.transform for sensor in placed.values() if sensor.transform is not None
        ]
        without_effect = [
            (kind, parameter)
            for kind, sensor in placed.items()
            for parameter in ('lever_arm', 'mounting_rpy', 'frame_id')
            if sensor.transform is None and f'{kind}.{parameter}' in twin.chosen
        ]
        return (
            *noise_free_notes(self.real, twin.models),
            *(
                PLACED_AS_REAL(kind.upper(), parameter=parameter)
                for kind, parameter in without_effect
            ),
            *(
                PLACED_BY_MODEL(
                    transform.child, place=', '.join(f'{x:g}' for x in transform.translation)
                )
                for transform in transforms
                if self.real.transforms
            ),
        )

    def mounting(self, frame: str, user: str = 'simulated sensor') -> _Mounting:
        """Return the pose of a sensor in the body; see `Mountings.pose`."""
        return self._mountings.pose(frame, user)

    def _place(self, models: Mapping[str, Any]) -> dict[str, PlacedSensor]:
        """Return models by role with the mounting of their sensors, placed in the order given."""
        mountings = Mountings(self.real.transforms, self._base)
        return {
            role: mountings.place(model, self._real_messages(role), self.start_ns)
            for role, model in models.items()
        }

    def _real_messages(self, role: str) -> MessageArray | None:
        topic = self.real.roles.get(role)
        return None if topic is None else self.real.messages[topic]

    def _body_remarks(self, truth: OdometryArray) -> tuple[Finding, ...]:
        child = truth.child_frame.strip('/')
        if child == self._base:
            return ()
        if not child:
            problem = 'truth has no child frame'
            return (checks.TRUTH_ASSUMED(problem=problem, base=self._base),)
        if self.real.transforms:
            return (checks.TRUTH_MOVED(child=child, base=self._base),)
        problem = f'truth is given for {child} and there are no static transforms'
        return (checks.TRUTH_ASSUMED(problem=problem, base=self._base),)


def measure_early_field(maker: TwinMaker) -> FloatArray | None:
    """Return the mean magnetic field of the first two seconds in the world, `(3,)` T, or None.

    The measurements are rotated to the world by the truth, as in [Ligorio2015], section 2.3.1.
    The field of body-fixed sources such as hard iron is part of the mean. A noise-free
    magnetometer, which has no such sources, is preferred. None if there is no magnetometer.
    """
    mag = noise_free_messages(maker.real).get('mag', maker.real.mag)
    if not isinstance(mag, MagneticFieldArray):
        return None
    early = mag.take(mag.stamp_ns - mag.stamp_ns[0] <= _FIELD_S * 1e9)
    orientation = maker.motion.at((early.stamp_ns - maker.start_ns) * 1e-9).orientation
    mounting = maker.mounting(mag.frame)[1][None]
    body_field = rotations.rotate(mounting, early.magnetic_field)
    return np.asarray(rotations.rotate(orientation, body_field).mean(axis=0))


def make_twin_maker(
    recording: Recording, world: World | None, *, seed: int, base_frame: str = 'base_link'
) -> TwinMaker:
    """Return the twin maker of a recording in `world`, or by default in its early field.

    Raises Sim2RealError as `TwinMaker` does.
    """
    maker = TwinMaker(recording, seed=seed, base_frame=base_frame, world=world)
    field = measure_early_field(maker) if world is None else None
    if field is not None:
        earth_field = EarthField(model='constant', value=tuple(field.tolist()))
        maker.world = dataclasses.replace(maker.world, earth_field=earth_field)
    return maker


def median_rate(array: MessageArray | None) -> float | None:
    """Return the median rate, Hz, rounded to three digits to remove jitter; None if undefined.

    Repeated stamps are ignored.
    """
    steps = np.zeros(0) if array is None else np.diff(array.stamp_ns)
    steps = steps[steps > 0]
    return float(f'{1e9 / float(np.median(steps)):.3g}') if len(steps) else None


def synthetic_recording(
    motion: Motion,
    twin: Twin,
    *,
    seed: int,
    run: str,
    scenario: str,
    origin: LocalFrame = DEFAULT_ORIGIN,
    world: World | None = None,
) -> Recording:
    """Return a recording of a motion with the sensors of `twin` and its truth at 100 Hz.

    The origin of the motion's coordinates lies at `origin`; `world` describes the surroundings in
    those coordinates. If the motion has a `noise_free_imu`, its messages are in the recording too.

    Raises
    ------
    Sim2RealError
        When the motion is too short.

    Examples
    --------
    >>> from sim_sensors import load_gps, load_imu, motion_of
    >>> from sim2real_eval.simulation import Twin
    >>> motion = motion_of('line', duration=2.0)
    >>> twin = Twin('twin', load_gps('baseline'), load_imu('ideal'))
    >>> drive = synthetic_recording(motion, twin, seed=1, run='drive', scenario='line')
    >>> len(drive.imu), len(drive.truth)
    (201, 201)
    """
    truth = Recording.of_truth(truth_of(motion), run, scenario)
    recording = add_noise_free_imu(truth, motion)
    maker = TwinMaker(recording, seed=seed, purpose='recording', origin=origin, world=world)
    recording = maker.make(twin)
    notes = (*recording.notes, *gravity_notes(motion, maker.world))
    return dataclasses.replace(recording, notes=notes)


# Noise-free IMU measurements.


def ideal_imu_of_motion(
    motion: Motion, mounting: _Mounting, times: FloatArray, gravity: float = STANDARD_GRAVITY
) -> IdealMeasurement:
    """Return the error-free measurement of an IMU on a motion.

    Parameters
    ----------
    motion : Motion
    mounting : (3,) and (4,) float
        Lever arm, m, and quaternion x y z w in the body; see `TwinMaker.mounting`.
    times : (n,) float
        Seconds since the motion began.
    gravity : float
        Gravity, m/s^2.
    """
    lever_arm, quaternion = mounting
    rpy = Rotation.from_quat(quaternion).as_euler('xyz')
    kinematics = ExactKinematics(lever_arm, rpy, gravity)
    parts = MessageParts[IdealMeasurement]()
    for part in blocks(len(times)):
        parts.add(kinematics.ideal_measurement(motion.at(times[part]), np.empty(0)))
    return parts.concatenate()
