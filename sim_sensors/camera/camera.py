# SPDX-License-Identifier: Apache-2.0
"""A camera with a feature tracker: true motion and a scene in, feature tracks and poses out.

[Ligorio2015], sections 2.1.6 and 2.2. Nothing is rendered: what comes
out is what a tracker makes of images, the places of known points with noise and mismatches.
"""

from __future__ import annotations

import dataclasses
import warnings
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation

from sim_sensors.core import rotations
from sim_sensors.core.errors import SensorError
from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.core.parameters import Parameters, non_negative, parameter
from sim_sensors.core.seeding import stream
from sim_sensors.core.shared_parameters import (
    Axes,
    axes,
    latency,
    lever_arm,
    mounting_quaternion,
    placed,
    sample_rate,
    share,
    turned,
)
from sim_sensors.sensor.delivery import Delivery
from sim_sensors.sensor.sensor import MountedModel, Sensor
from sim_sensors.world.world import Boxes, World
from .features import CameraMeasurement, CameraMessages
from .pinhole import Intrinsics
from .pose import PoseEstimate

if TYPE_CHECKING:
    from sim_sensors.motion.trajectory import Motion, Trajectory

FIRST_TAG_ID = 1_000_000
"""Corner c (0 to 3) of tag t has the id `FIRST_TAG_ID + 4 t + c`."""

_LARGEST = 2**31 - 1


@dataclasses.dataclass(frozen=True, eq=False)
class Scene:
    """Points with numbers: `ids` `(n,)`, each once, which fit 32 bits, as those of a message have
    to.

    `points` `(n, 3)` are in m, in the world's frame. A point is seen from the side to which its
    normal `(n, 3)` points, from all sides where that is zero.
    """

    ids: IntArray
    points: FloatArray
    normals: FloatArray
    boxes: Boxes = dataclasses.field(default_factory=Boxes)

    @classmethod
    def of(cls, world: World) -> Scene:
        """Return what there is to see in a world: landmarks from all sides, tags from in front.

        The world's boxes hide what is behind them; tags hide nothing.

        Raises SensorError when an id does not fit 32 bits, or a landmark has the id of the corner
        of a tag.
        """
        marks, tags = world.landmarks, world.tags
        corners = tags.ids[:, None] * 4 + np.arange(4) + FIRST_TAG_ID
        ids = np.concatenate([marks.ids, corners.reshape(-1)])
        if len(ids) and (ids.min() < 0 or ids.max() > _LARGEST):
            wrong = int(ids.min()) if ids.min() < 0 else int(ids.max())
            raise SensorError(
                f'a camera sees a feature of the id {wrong}; must be in [0, {_LARGEST}], where '
                f'corner c of tag t has the id {FIRST_TAG_ID} + 4 t + c'
            )
        both = np.intersect1d(marks.ids, corners)
        if len(both):
            raise SensorError(
                f'a landmark has the id {int(both[0])}, which is that of the corner of a tag '
                f'({FIRST_TAG_ID} + 4 t + c); must be below {FIRST_TAG_ID}'
            )
        faces = np.zeros((len(tags), 3))
        if len(tags):
            faces = Rotation.from_quat(tags.orientations).apply([0.0, 0.0, 1.0])
        return cls(
            ids,
            np.concatenate([marks.positions, tags.corners().reshape(-1, 3)]),
            np.concatenate([np.zeros((len(marks), 3)), np.repeat(faces, 4, axis=0)]),
            world.boxes,
        )

    def __len__(self) -> int:
        return len(self.ids)

    def seen_from(self, eyes: FloatArray) -> NDArray[np.bool_]:
        """Return which points show their face to eyes at `(3,)` or `(n, 3)` m, with nothing
        between, `(n,)`.
        """
        towards = eyes - self.points
        n = self.normals
        cosine = n[:, 0] * towards[:, 0] + n[:, 1] * towards[:, 1] + n[:, 2] * towards[:, 2]
        free = (n == 0.0).all(axis=1)
        return np.asarray((free | (cosine > 0.0)) & ~self.boxes.hide(eyes, self.points))


@dataclasses.dataclass(frozen=True)
class Mismatches(Parameters):
    """Share of the frames that are affected, and of their correspondences that are wrong.

    Each frame is affected with probability f = `frames`, and in an affected frame each
    correspondence is wrong with probability p = `features` ([Ligorio2015], section 2.1.6). The
    wrong ones take each other's places in a cycle in random order, so none is right by chance; a
    single one stays right. Of n correspondences n f p (1 - (1 - p)^(n - 1)) are wrong on average.
    The next frame is compared with the truth, not with the mismatch.
    """

    frames: float = share(0.0, 'Share of the frames with mismatches.')
    features: float = share(0.0, 'Share of the correspondences of such a frame that are wrong.')

    def start(self, seed: int, run: str, sensor: str) -> MismatchProcess:
        """Return the mismatches of one camera; see `sim_sensors.core.seeding.stream`."""
        return MismatchProcess(self, stream(seed, run, sensor, 'mismatch'))


class MismatchProcess:
    """Mismatches, frame by frame, with a random stream of their own."""

    def __init__(self, mismatches: Mismatches, rng: np.random.Generator) -> None:
        self._mismatches, self._rng = mismatches, rng

    def mix(self, tracked: NDArray[np.bool_]) -> IntArray:
        """Return the feature at whose place each is reported in the next frame, `(n,)` indices.

        It is itself where that is right. `tracked` says which of the scene's features are seen in
        this frame and were in the one before.
        """
        # Drawn for all, whatever is seen, so that draws of later frames depend on none of it.
        frame = self._rng.random()
        uniform, order = self._rng.random((2, len(tracked)))
        places = np.arange(len(tracked))
        if frame < self._mismatches.frames:
            wrong = np.flatnonzero(tracked & (uniform < self._mismatches.features))
            wrong = wrong[np.argsort(order[wrong], kind='stable')]
            places[wrong] = np.roll(wrong, 1)
        return places


# Optical frame (z forward, x right) to one with x forward and z up, quaternion x y z w.
_OPTICAL = np.array([-0.5, 0.5, -0.5, 0.5])
_WORLD_FRAME = 'map'
_ROW_STEPS = 4  # each takes the error of the row by v row_time, the share of a frame that it moves


@dataclasses.dataclass(frozen=True)
class CameraModel(MountedModel[CameraMessages]):
    """A pinhole camera and the tracker behind it."""

    kind: ClassVar[str] = 'pinhole_camera'
    name: ClassVar[str] = 'camera'
    noun: ClassVar[str] = 'a camera'
    preset: ClassVar[str] = 'webcam_vga'
    topic: ClassVar[str] = 'camera/features'
    message: ClassVar[str] = 'sensor_msgs/msg/PointCloud2'
    node: ClassVar[str] = 'camera_node'
    world: ClassVar[str] = 'chessboard'
    more_topics: ClassVar[tuple[str, ...]] = ('camera/camera_info', 'camera/pose')

    rate: float = sample_rate(30.0, 'Frames per second.')
    frame_id: str = parameter(
        'camera_optical_frame', '', 'Optical frame: z forward, x right.', read_only=True
    )
    lever_arm: Axes = lever_arm('camera')
    mounting_rpy: Axes = axes(
        'rad', 'Roll, pitch, yaw of the camera in the body; with zeros it looks forward, upright.'
    )
    latency: float = latency()
    noise_std: tuple[float, float] = non_negative(
        (0.5, 0.5), 'px', 'White noise of a feature in each frame, along u and v.'
    )
    missed: float = share(
        0.0, 'Share of the visible features that are not found, drawn in each frame.'
    )
    row_time: float = non_negative(
        0.0,
        's',
        'Rolling shutter: from the exposure of a row to that of the next one below, the first at '
        'the stamp; 0: global shutter.',
        maximum=1.0,
    )
    border: float = non_negative(
        0.0, 'px', 'Features nearer to the edge of the image are not found.'
    )
    nearest: float = non_negative(0.0, 'm', 'Features at a smaller depth are not found.')
    farthest: float = non_negative(
        0.0, 'm', 'Features at a larger depth are not found; 0: no limit.'
    )
    intrinsics: Intrinsics = dataclasses.field(default_factory=Intrinsics)
    mismatches: Mismatches = dataclasses.field(default_factory=Mismatches)
    pose: PoseEstimate = dataclasses.field(default_factory=PoseEstimate)
    delivery: Delivery = dataclasses.field(default_factory=Delivery)

    def mounted(self, translation: ArrayLike, rotation: ArrayLike) -> CameraModel:
        """Return the model mounted as a static transform of its optical frame says.

        Parameters
        ----------
        translation : (3,)
            Position in the body, m.
        rotation : (4,)
            Quaternion x y z w, optical frame to body.
        """
        turn = Rotation.from_quat(np.asarray(rotation, dtype=np.float64))
        with warnings.catch_warnings():
            # A pitch of a right angle, as of a camera whose axes are those of the body.
            warnings.simplefilter('ignore', UserWarning)
            model = turned(self, turn * Rotation.from_quat(_OPTICAL).inv())
        return placed(model, translation)

    def optical_rotation(self) -> FloatArray:
        """Return the quaternion x y z w `(4,)` that takes the optical frame to the body."""
        both = rotations.multiply(mounting_quaternion(self.mounting_rpy), _OPTICAL[None])
        return np.asarray(both[0])

    @staticmethod
    def surroundings(world: World) -> dict[str, Any]:
        """Return the keyword arguments that `start` takes from a world."""
        return {'world': world}

    def start(
        self, seed: int, run: str, sensor: str = 'camera', *, world: World | None = None
    ) -> CameraSensor:
        """Switch a camera on that sees that world, or nothing; see `SensorModel.start`.

        Raises
        ------
        SensorError
            When the scene has ids that do not fit.
        """
        return CameraSensor(self, seed, run, sensor, Scene.of(world or World()))


class CameraSensor(Sensor[CameraMeasurement]):
    """A camera that is switched on: a model and its state. Made by `CameraModel.start`.

    Attributes
    ----------
    scene : Scene
        What it can see.
    """

    model: CameraModel

    def __init__(self, model: CameraModel, seed: int, run: str, sensor: str, scene: Scene) -> None:
        super().__init__(model, seed, run, sensor)
        self.scene = scene
        self._noise = stream(seed, run, sensor, 'pixel_white')
        self._missed = stream(seed, run, sensor, 'missed')
        self._mismatches = model.mismatches.start(seed, run, sensor)
        self._std = np.asarray(model.noise_std)
        self._offset = np.asarray(model.lever_arm)
        self._optical = model.optical_rotation()
        self._optical_matrix = Rotation.from_quat(self._optical).as_matrix()
        self._before: FloatArray = np.full((len(scene), 2), np.nan)
        self._age = np.full(len(scene), -1, dtype=np.int64)

    # Its poses are not in the messages of its measurement.
    def simulate(  # type: ignore[override]
        self, motion: Motion, *, start_ns: int | None = None, origin_ns: int = 0
    ) -> CameraMessages:
        """Return the features and poses of a whole motion; see `Sensor.simulate`."""
        return self.deliver(*self.measure_all(motion, start_ns=start_ns, origin_ns=origin_ns))

    def deliver(self, stamp_ns: IntArray, measured: CameraMeasurement) -> CameraMessages:
        """Return the features of the frames that arrive, and poses.

        A pose travels with its features: it arrives with them, or is lost with them.
        """
        kept, arrival_ns = self.channel.send(stamp_ns)
        features = measured.messages(stamp_ns, self.model.frame_id).take(kept)
        poses = measured.poses(stamp_ns, _WORLD_FRAME)
        place = np.searchsorted(features.stamp_ns, poses.stamp_ns)
        with_features = np.flatnonzero(np.isin(poses.stamp_ns, features.stamp_ns))
        poses = dataclasses.replace(
            poses.take(with_features), arrival_ns=arrival_ns[place[with_features]]
        )
        return CameraMessages(dataclasses.replace(features, arrival_ns=arrival_ns), poses)

    def _measure(self, truth: Trajectory, dt: FloatArray) -> CameraMeasurement:
        moving = truth.at_lever_arm(self._offset)
        frames = [self._frame(*self._view(moving, k)) for k in range(len(moving.time))]
        columns: dict[str, Any] = {
            name: np.concatenate([empty, *(frame[name] for frame in frames)])
            for name, empty in _EMPTY.items()
        }
        counts = [len(frame['ids']) for frame in frames]
        return CameraMeasurement(
            first=np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64),
            **columns,
        )

    def _view(self, moving: Trajectory, k: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the camera's place for each point in frame k, `(3,)` or `(n, 3)`, the depths of
        the points and their pixels.
        """
        points, intrinsics = self.scene.points, self.model.intrinsics
        eyes = moving.position[k]
        turns = rotations.multiply(moving.orientation[k, None], self._optical[None])
        local = rotations.rotate_back(turns, points - eyes)
        true = intrinsics.project(local)
        # Each point where the camera is when its row is exposed; accelerations are those of the
        # first row, so that 30 ms with a jerk of 10 m/s^3 cost 45 um.
        for _ in range(_ROW_STEPS if self.model.row_time > 0.0 else 0):
            after = np.nan_to_num(np.clip(true[:, 1:], -0.5, intrinsics.height - 0.5) + 0.5)
            after = after * self.model.row_time
            half = 0.5 * after**2
            eyes = moving.position[k] + after * moving.velocity[k] + half * moving.acceleration[k]
            turn = after * moving.angular_velocity[k] + half * moving.angular_acceleration[k]
            body = rotations.multiply(moving.orientation[k, None], rotations.exp(turn))
            turns = rotations.multiply(body, self._optical[None])
            local = rotations.rotate_back(turns, points - eyes)
            true = intrinsics.project(local)
        return eyes, local[:, 2], true

    def _frame(self, eyes: FloatArray, depth: FloatArray, true: FloatArray) -> dict[str, Any]:
        """Return the features and the pose of one frame, as rows of a `CameraMeasurement`."""
        model, scene = self.model, self.scene
        # Drawn for all features, so that the noise of one depends on nothing else that is seen.
        measured = true + self._std * self._noise.standard_normal((len(scene), 2))
        found = self._found(eyes, depth, true)
        tracked = found & (self._age >= 0)
        places = self._mismatches.mix(tracked)
        rows = np.flatnonzero(found)
        seen = places[rows]
        pixels = measured[seen]
        previous = self._before[rows]
        self._age = np.where(found, self._age + 1, -1)
        # A mismatch is forgotten: the next frame is compared with what was really there.
        self._before = np.where(found[:, None], measured, np.nan)
        rays = model.intrinsics.rays(pixels)
        pose = model.pose.of(scene.points[rows], pixels, rays, model.intrinsics, self._std)
        if pose is not None:
            pose = pose.seen_from(self._offset, self._optical_matrix)
        none = np.full((1, 7), np.nan)
        return {
            'ids': scene.ids[rows],
            'pixels': pixels,
            'previous': previous,
            'age': self._age[rows],
            'rays': rays,
            'true_ids': scene.ids[seen],
            'true_pixels': true[rows],
            'has_pose': np.array([pose is not None]),
            'position': none[:, :3] if pose is None else pose.position[None],
            'orientation': none[:, 3:]
            if pose is None
            else Rotation.from_matrix(pose.rotation).as_quat()[None],
            'pose_covariance': np.zeros((1, 6, 6)) if pose is None else pose.covariance[None],
        }

    def _found(
        self, eyes: FloatArray, depth: FloatArray, true: FloatArray
    ) -> np.typing.NDArray[np.bool_]:
        """Return which features of the scene the tracker finds."""
        model = self.model
        found = model.intrinsics.inside(true, model.border) & self.scene.seen_from(eyes)
        found &= depth >= model.nearest
        if model.farthest > 0.0:
            found &= depth <= model.farthest
        if model.missed > 0.0:
            found &= self._missed.random(len(depth)) >= model.missed
        return found


_EMPTY: dict[str, Any] = {
    'ids': np.zeros(0, dtype=np.int64),
    'pixels': np.zeros((0, 2)),
    'previous': np.zeros((0, 2)),
    'age': np.zeros(0, dtype=np.int64),
    'rays': np.zeros((0, 2)),
    'true_ids': np.zeros(0, dtype=np.int64),
    'true_pixels': np.zeros((0, 2)),
    'has_pose': np.zeros(0, dtype=np.bool_),
    'position': np.zeros((0, 3)),
    'orientation': np.zeros((0, 4)),
    'pose_covariance': np.zeros((0, 6, 6)),
}


load_camera, simulate = CameraModel.load, CameraModel.simulate
