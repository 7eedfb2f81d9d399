# SPDX-License-Identifier: Apache-2.0
"""Simulated twins of a recording: the same true motion, measured by sensor models."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from sim2real_eval.common.findings import Finding
from sim2real_eval.recording import findings
from sim2real_eval.recording.poses import with_velocities
from sim2real_eval.recording.recording import ROLE_CLASSES, Recording
from sim2real_eval.recording.truth import frame_remarks, truth_of_base, truth_origin
from sim_sensors.camera.camera import CameraModel
from sim_sensors.core import rotations
from sim_sensors.core.blocks import steps_of
from sim_sensors.core.measurements import (
    FloatArray,
    MagneticFieldArray,
    MessageArray,
    OdometryArray,
    is_absent,
)
from sim_sensors.core.seeding import run_label
from sim_sensors.motion.ideal import Mounting
from sim_sensors.motion.motions import truth_of
from sim_sensors.motion.odometry import OdometryMotion
from sim_sensors.motion.trajectory import Motion
from sim_sensors.sensor.catalogue import kinds
from sim_sensors.sensor.sensor import SensorModel
from sim_sensors.world.earth import EarthField
from sim_sensors.world.geodesy import DEFAULT_ORIGIN, LocalFrame
from sim_sensors.world.world import World
from . import spans
from .findings import ATTITUDE_DIFFERS, PLACED_BY_MODEL, RATE_DIFFERS
from .twin import Mountings, Placed, Twin, TwinSensors, with_camera, with_places, with_topic

# Time from the first sample of the magnetometer in which the field is measured.
_FIELD_S = 2.0


class TwinMaker:
    """Simulates twins of one recording; the true motion is interpolated once.

    The recording is first cut to the time for which it has truth, so that real and simulated
    sensors are judged over the same span. A simulated sensor starts at the stamp of the first real
    message, so that both meet the judge's timers in the same phase.

    Where the recording has messages of a noise-free sensor (roles `ideal_imu`, `ideal_gps`,
    `ideal_mag`), a simulated one of that kind measures what it measured, over its time; see
    `sim_sensors.motion.ideal`.

    Parameters
    ----------
    recording : Recording
        With truth.
    seed : int
        Of the study.
    base_frame : str
        Body frame of the robot, whose velocity the judge estimates. A truth that is given for
        another frame is moved there by the static transforms.
    purpose : str
        Part of the label of the random streams: what is drawn for another purpose from the same
        seed (recordings to be compared with twins, say) is independent.
    origin : LocalFrame, optional
        Where the map frame is on the Earth; by default by `truth_origin`, else that of the world.
    world : World, optional
        What surrounds the sensors; by default standard gravity and the Earth's field alone.

    Attributes
    ----------
    real : Recording
        The recording, cut to its truth, which is that of the base frame.
    truth : OdometryArray
        That truth.
    motion : OdometryMotion
        That truth, interpolated; time 0 is its first stamp.
    start_ns, end_ns : int
        First and last stamp of the truth.
    world : World
        What surrounds the sensors; its origin is that of the truth.
    remarks : tuple of Finding
        What the truth's user should know.

    Raises
    ------
    RecordingError
        When there is no truth, or a sensor has no message while there is truth.
    MotionError
        When the truth is no motion, such as fewer than three samples.
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
        given = recording.require('truth')
        assert isinstance(given, OdometryArray)
        truth = truth_of_base(given, self._base, self._mountings.frames)
        self._ideal = spans.noise_free(recording)
        self.start_ns, self.end_ns = spans.common_span(recording, truth)
        # Motion near the end depends on what comes after it.
        moving = truth.take(slice(np.searchsorted(truth.stamp_ns, self.start_ns), None))
        truth = truth.take(spans.span_of(truth.stamp_ns, self.start_ns, self.end_ns))
        recording = recording.with_messages('truth', truth)
        self.truth = truth
        self.motion = OdometryMotion(moving, origin_ns=self.start_ns)
        if self.motion.velocity_source == 'position':
            # The record has none, and whoever holds a judge's speed against it needs one.
            derived, _ = with_velocities(recording.path, '', truth)
            self.truth = dataclasses.replace(truth, linear_velocity=derived.linear_velocity)
            recording = recording.with_messages('truth', self.truth)
        self.real = spans.within(recording, self.start_ns, self.end_ns)
        fixes = self.real.gps or spans.noise_free_fixes(recording)
        if origin is None:
            found = truth_origin(truth, fixes)
            origin = found if world is None or fixes is not None else world.frame
        self._frame = origin
        self._placed: tuple[Twin, dict[str, Placed]] | None = None
        # By kind of sensor which was simulated last, and its messages.
        self._last: dict[str, tuple[Any, MessageArray]] = {}
        self.world = dataclasses.replace(world or World(), frame=origin)
        self.remarks = (
            *self._body_remarks(given),
            *(findings.TRUTH_CHECK(problem=remark) for remark in self.motion.remarks),
            *frame_remarks(truth, fixes, self._frame),
        )

    def make(self, twin: Twin, repetition: int = 1) -> Recording:
        """Return the recording with the sensors of `twin` in place of its own.

        Its other topics, such as wheel odometry, stay; notes on those that are replaced do not.

        Parameters
        ----------
        twin : Twin
            Sensors to simulate.
        repetition : int
            Another number gives another draw of the same noise; 1 is the first.
        """
        recording = self.real
        sensors = self.sensors(twin, repetition)
        labels: Any = {'seed': sensors.seed, 'run': sensors.run, 'origin_ns': self.start_ns}
        for kind in kinds():
            placed, model = sensors.placed.get(kind.name), twin.models.get(kind.name)
            if placed is not None:
                measured = self._measured(kind, placed, labels)
                recording = recording.with_messages(kind.name, measured)
            elif isinstance(model, CameraModel):
                eye = self._place({'features': model})['features']
                recording = with_camera(recording, eye, self.motion, self.world, **labels)
                recording = with_places(recording, [eye])
            elif model is not None:
                recording = with_topic(
                    recording,
                    kind,
                    model,
                    self.motion,
                    self.world,
                    base_frame=self._base,
                    **labels,
                )
        recording = with_places(recording, sensors.placed.values())
        if self._ideal:
            recording = spans.within(recording, self.start_ns, self.end_ns)
        if twin.imu is not None and twin.gps is not None:
            # Whatever the motion was made from, it is the true one of what was measured on it.
            recording = dataclasses.replace(recording, reference=None)
        replaced = {recording.roles[role] for role in sensors.placed}
        kept = tuple(note for note in recording.notes if note.subject not in replaced)
        return dataclasses.replace(recording, notes=(*kept, *self.sensor_notes(twin)))

    def _measured(self, kind: type[SensorModel[Any]], placed: Placed, labels: Any) -> MessageArray:
        """Return the messages of a simulated sensor; twins often have one in common."""
        model = placed.model
        asked = (type(model), model.to_mapping(), placed.start_ns, self.world, labels)
        last = self._last.get(kind.name)
        if last is not None and last[0] == asked:
            return last[1]
        # Two at once would be in memory.
        self._last.pop(kind.name, None)
        measured: MessageArray = kind.simulate(
            model,
            self.motion_for(kind),
            start_ns=placed.start_ns,
            **kind.surroundings(self.world),
            **labels,
        )
        self._last[kind.name] = asked, measured
        return measured

    def motion_for(self, kind: type[SensorModel[Any]]) -> Motion:
        """Return the motion that sensors of a kind measure: that of the truth, or as a noise-free
        sensor of that kind measured it.

        Raises
        ------
        MotionError
            When its messages are too few, disordered or not finite.
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
        """Return how the simulated sensors of a twin are mounted and switched on."""
        roles = self.real.roles
        for role in ('imu', 'gps'):
            others = {
                topic: one
                for topic, one in self.real.messages.items()
                if topic not in roles.values()
            }
            same = (isinstance(one, ROLE_CLASSES[role]) for one in others.values())
            if role in twin.models and role not in roles and any(same):
                # A judge would go on to hear the real sensor beside the simulated one.
                self.real.require(role)
        # The same twin is made, and then told of.
        if self._placed is None or self._placed[0] is not twin:
            models = {role: one for role, one in twin.models.items() if role in ROLE_CLASSES}
            self._placed = twin, self._place(models)
        return TwinSensors(
            placed=self._placed[1],
            seed=self._seed,
            run=run_label(self._purpose, repetition, self.real.name),
            velocity=self.motion.velocity_source,
            origin=self._frame,
        )

    def at_real_rates(self, twin: Twin) -> Twin:
        """Return the twin with every simulated sensor at the median rate of the real one."""

        def at_rate(role: str, model: Any) -> Any:
            rate = median_rate(self._own(role))
            return model and dataclasses.replace(model, rate=rate or model.rate)

        return dataclasses.replace(
            twin,
            imu=at_rate('imu', twin.imu),
            gps=at_rate('gps', twin.gps),
            others={role: at_rate(role, model) for role, model in twin.others.items()},
        )

    def model_notes(self, twin: Twin) -> tuple[Finding, ...]:
        """Say what to know of a twin: where its sensors are of another kind than the real ones,
        and `sensor_notes`.
        """
        notes = list(self.sensor_notes(twin))
        for kind in ('gps', 'imu'):
            model, real = twin.models.get(kind), median_rate(self._own(kind))
            if model is not None and real is not None and abs(model.rate / real - 1.0) > 0.1:
                notes.append(RATE_DIFFERS(kind.upper(), simulated=model.rate, real=real))
        if twin.imu is not None and self.real.imu is not None:
            real_has = not is_absent(self.real.imu.orientation_covariance).all()
            simulated_has = twin.imu.orientation.publishes
            if real_has != simulated_has:
                has, lacks = ('real', 'simulated') if real_has else ('simulated', 'real')
                notes.append(ATTITUDE_DIFFERS('IMU', has=has, lacks=lacks))
        return tuple(notes)

    def sensor_notes(self, twin: Twin) -> tuple[Finding, ...]:
        """Say which simulated sensors measure what noise-free ones did, and which are where their
        models say, as the recording has static transforms but none for them.
        """
        placed = self.sensors(twin).placed
        free = [one.transform for one in placed.values() if one.transform is not None]
        return (
            *spans.noise_free_notes(self.real, twin.models),
            *(
                PLACED_BY_MODEL(one.child, place=', '.join(f'{x:g}' for x in one.translation))
                for one in free
                if self.real.transforms
            ),
        )

    def mounting(
        self, frame: str, what: str = 'simulated sensor'
    ) -> tuple[FloatArray, FloatArray]:
        """Return where a sensor is, and raise JudgeError, as `Mountings.of` does."""
        return self._mountings.of(frame, what)

    def _place(self, models: Mapping[str, Any]) -> dict[str, Placed]:
        """Return models by role as their sensors are mounted, the earlier ones first."""
        mountings = Mountings(self.real.transforms, self._base)
        return {
            role: mountings.place(model, self._own(role), self.start_ns)
            for role, model in models.items()
        }

    def _own(self, role: str) -> MessageArray | None:
        topic = self.real.roles.get(role)
        return None if topic is None else self.real.messages[topic]

    def _body_remarks(self, truth: OdometryArray) -> tuple[Finding, ...]:
        child = truth.child_frame.strip('/')
        if child == self._base:
            return ()
        if not child:
            return (findings.TRUTH_NO_FRAME(base=self._base),)
        moved = findings.TRUTH_MOVED if self.real.transforms else findings.TRUTH_ASSUMED
        return (moved(child=child, base=self._base),)


def early_field(maker: TwinMaker) -> FloatArray | None:
    """Return the mean field, `(3,)` T, world, of the first two seconds, turned by the truth.

    [Ligorio2015] does so, section 2.3.1. What is fixed to the body, such as hard iron, is in it,
    and turns with the body from then on. A noise-free magnetometer, which has none, goes before
    the real one. None: there is neither.

    `maker`: of the recording.
    """
    mag = spans.noise_free(maker.real).get('mag', maker.real.mag)
    if not isinstance(mag, MagneticFieldArray):
        return None
    early = mag.take(mag.stamp_ns - mag.stamp_ns[0] <= _FIELD_S * 1e9)
    at = maker.motion.at((early.stamp_ns - maker.start_ns) * 1e-9).orientation
    turn = maker.mounting(mag.frame)[1][None]
    field = rotations.rotate(at, rotations.rotate(turn, early.magnetic_field))
    return np.asarray(field.mean(axis=0))


def maker_with_field(
    recording: Recording, world: World | None, *, seed: int, base_frame: str = 'base_link'
) -> TwinMaker:
    """Return the maker of a recording's twins, in `world`; None: in one with its early field.

    Raises Sim2RealError as `TwinMaker`.
    """
    maker = TwinMaker(recording, seed=seed, base_frame=base_frame, world=world)
    field = early_field(maker) if world is None else None
    if field is not None:
        found = EarthField(model='constant', value=tuple(field.tolist()))
        maker.world = dataclasses.replace(maker.world, earth_field=found)
    return maker


def median_rate(array: MessageArray | None) -> float | None:
    """Return the median rate, Hz, to three digits so that jitter does not make odd periods."""
    if array is None or len(array) < 2:
        return None
    return float(f'{1e9 / float(np.median(steps_of(array.stamp_ns))):.3g}')


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

    The origin of the motion's coordinates lies at `origin`; `world` says what else surrounds the
    sensors, in those coordinates. What a motion has as `noise_free_imu` is in the recording too.

    Raises
    ------
    Sim2RealError
        When the motion is too short to be one.

    Examples
    --------
    >>> from sim_sensors import load_gps, load_imu, motion_of
    >>> from sim2real_eval.simulation import Twin
    >>> motion = motion_of('line', duration=2.0)
    >>> own = Twin('own', load_gps('baseline'), load_imu('ideal'))
    >>> drive = synthetic_recording(motion, own, seed=1, run='drive', scenario='line')
    >>> len(drive.imu), len(drive.truth)
    (201, 201)
    """
    bare = spans.with_noise_free(Recording.of_truth(truth_of(motion), run, scenario), motion)
    maker = TwinMaker(bare, seed=seed, purpose='recording', origin=origin, world=world)
    return maker.make(twin)
