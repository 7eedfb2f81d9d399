# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Camera with a feature tracker: true motion and a scene in, feature tracks and poses out.

Source: [Ligorio2015], sections 2.1.6 and 2.2. No image is rendered: the camera returns the output
of a tracker, the pixels of known points with noise and mismatches.
"""

from __future__ import annotations

import dataclasses
import warnings
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
    sample_rate,
    share,
    with_lever_arm,
    with_mounting,
)
from sim_sensors.sensor.delivery import Delivery
from sim_sensors.sensor.sensor import MountedModel, Sensor
from sim_sensors.sensor.sensor import simulate as simulate
from sim_sensors.world.world import Boxes, World
from .calibration import is_calibration, read_calibration
from .features import CameraMeasurement, CameraMessages
from .pinhole import Intrinsics
from .pose import PoseEstimate

if TYPE_CHECKING:
    from sim_sensors.motion.trajectory import Motion, Trajectory

FIRST_TAG_ID = 1_000_000
"""Id of the first tag corner: corner c (0 to 3) of tag t has `FIRST_TAG_ID + 4 t + c`."""

_LARGEST_ID = 2**31 - 1


@dataclasses.dataclass(frozen=True, eq=False)
class Scene:
    """Points that a camera recognises: landmarks and corners of tags.

    Attributes
    ----------
    ids : (n,) int
        Unique ids of the points, which fit into the 32 bits of a message field.
    points : (n, 3)
        Positions in the world's frame, m.
    normals : (n, 3)
        Direction from which a point is visible; zero if it is visible from all sides.
    boxes : Boxes
        Boxes that hide points.
    """

    ids: IntArray
    points: FloatArray
    normals: FloatArray
    boxes: Boxes = dataclasses.field(default_factory=Boxes)

    @classmethod
    def from_world(cls, world: World) -> Scene:
        """Return the scene of a world: landmarks visible from all sides, tags from the front.

        Boxes of the world hide the points behind them; tags hide nothing.

        Raises SensorError when an id does not fit 32 bits, or a landmark has the id of the corner
        of a tag.
        """
        from scipy.spatial.transform import Rotation

        landmarks, tags = world.landmarks, world.tags
        corners = tags.ids[:, None] * 4 + np.arange(4) + FIRST_TAG_ID
        ids = np.concatenate([landmarks.ids, corners.reshape(-1)])
        if len(ids) and (ids.min() < 0 or ids.max() > _LARGEST_ID):
            wrong = int(ids.min()) if ids.min() < 0 else int(ids.max())
            raise SensorError(
                f'a feature has the id {wrong}; must be in [0, {_LARGEST_ID}], where corner c of '
                f'tag t has the id {FIRST_TAG_ID} + 4 t + c'
            )
        shared_ids = np.intersect1d(landmarks.ids, corners)
        if len(shared_ids):
            raise SensorError(
                f'a landmark has the id {int(shared_ids[0])} of a tag corner '
                f'({FIRST_TAG_ID} + 4 t + c); must be below {FIRST_TAG_ID}'
            )
        faces = np.zeros((len(tags), 3))
        if len(tags):
            faces = Rotation.from_quat(tags.orientations).apply([0.0, 0.0, 1.0])
        return cls(
            ids,
            np.concatenate([landmarks.positions, tags.corners().reshape(-1, 3)]),
            np.concatenate([np.zeros((len(landmarks), 3)), np.repeat(faces, 4, axis=0)]),
            world.boxes,
        )

    def __len__(self) -> int:
        return len(self.ids)

    def visible_from(self, cameras: FloatArray) -> NDArray[np.bool_]:
        """Return which points are visible, `(n,)`, from the camera positions, m.

        `cameras` is one position `(3,)`, or one for each point, `(n, 3)`. A visible point faces
        the camera, and no box is between them.
        """
        sight = cameras - self.points
        n = self.normals
        ahead = n[:, 0] * sight[:, 0] + n[:, 1] * sight[:, 1] + n[:, 2] * sight[:, 2]
        faces_camera = (n == 0.0).all(axis=1) | (ahead > 0.0)
        return np.asarray(faces_camera & ~self.boxes.hide(cameras, self.points))


@dataclasses.dataclass(frozen=True)
class Mismatches(Parameters):
    """Wrong correspondences of the tracker; none by default.

    Each frame is affected with probability f = `frames`. In an affected frame each correspondence
    is wrong with probability p = `features` ([Ligorio2015], section 2.1.6). Wrong correspondences
    exchange their pixels in a cycle of random order, so none is right by chance; a single one
    stays right. On average n f p (1 - (1 - p)^(n - 1)) of n correspondences are wrong. A mismatch
    lasts one frame: the next frame reports the correct measured pixel as the previous one.
    """

    frames: float = share(0.0, 'Share of the frames with mismatches.')
    features: float = share(0.0, 'Share of wrong correspondences in such a frame.')

    def start(self, seed: int, run: str, sensor: str) -> MismatchProcess:
        """Return the mismatches of one camera; see `sim_sensors.core.seeding.stream`."""
        return MismatchProcess(self, stream(seed, run, sensor, 'mismatch'))


class MismatchProcess:
    """Mismatches of one camera, frame by frame, with their random stream."""

    def __init__(self, mismatches: Mismatches, rng: np.random.Generator) -> None:
        self._mismatches, self._rng = mismatches, rng

    def mix(self, tracked: NDArray[np.bool_]) -> IntArray:
        """Return the index of the feature whose pixel is reported for each feature, `(n,)`.

        A correct correspondence has its own index. `tracked` `(n,)` is True for features that are
        found in this frame and in the previous one.
        """
        # Drawn for all features, so that later draws do not depend on which are found.
        frame = self._rng.random()
        uniform, order = self._rng.random((2, len(tracked)))
        sources = np.arange(len(tracked))
        if frame < self._mismatches.frames:
            wrong = np.flatnonzero(tracked & (uniform < self._mismatches.features))
            wrong = wrong[np.argsort(order[wrong], kind='stable')]
            sources[wrong] = np.roll(wrong, 1)
        return sources


# Rotation from the optical frame (z forward, x right) to x forward and z up; quaternion x y z w.
_OPTICAL = np.array([-0.5, 0.5, -0.5, 0.5])
_WORLD_FRAME = 'map'
# Iterations that find the row of a point under a rolling shutter. Each multiplies the error by the
# speed of the point in the image, in rows per row_time.
_ROW_ITERATIONS = 4


@dataclasses.dataclass(frozen=True)
class CameraModel(MountedModel[CameraMessages]):
    """Pinhole camera with a feature tracker."""

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
    missed: float = share(0.0, 'Probability that a visible feature is missed in a frame.')
    row_time: float = non_negative(
        0.0,
        's',
        'Rolling shutter: time from the exposure of a row to that of the row below; the first row '
        'is exposed at the stamp; 0: global shutter.',
        maximum=1.0,
    )
    border: float = non_negative(
        0.0, 'px', 'Features closer to the edge of the image are not detected.'
    )
    nearest: float = non_negative(0.0, 'm', 'Features at a smaller depth are not detected.')
    farthest: float = non_negative(
        0.0, 'm', 'Features at a larger depth are not detected; 0: no limit.'
    )
    intrinsics: Intrinsics = dataclasses.field(default_factory=Intrinsics)
    mismatches: Mismatches = dataclasses.field(default_factory=Mismatches)
    pose: PoseEstimate = dataclasses.field(default_factory=PoseEstimate)
    delivery: Delivery = dataclasses.field(default_factory=Delivery)

    def mounted(self, translation: ArrayLike, rotation: ArrayLike) -> CameraModel:
        """Return the model mounted by the static transform of its optical frame.

        Parameters
        ----------
        translation : (3,)
            Position in the body, m.
        rotation : (4,)
            Quaternion x y z w, optical frame to body.
        """
        from scipy.spatial.transform import Rotation

        turn = Rotation.from_quat(np.asarray(rotation, dtype=np.float64))
        with warnings.catch_warnings():
            # Gimbal lock at a pitch of 90 degrees, as if the optical axes were those of the body.
            warnings.simplefilter('ignore', UserWarning)
            model = with_mounting(self, turn * Rotation.from_quat(_OPTICAL).inv())
        return with_lever_arm(model, translation)

    def optical_rotation(self) -> FloatArray:
        """Return the quaternion x y z w `(4,)` that takes the optical frame to the body."""
        mounting = mounting_quaternion(self.mounting_rpy)
        return np.asarray(rotations.multiply(mounting, _OPTICAL[None])[0])

    @classmethod
    def translate(cls, mapping: dict[str, Any], where: str) -> dict[str, Any]:
        """Translate a calibration of Kalibr, OpenCV or ROS into parameters; see `calibration`."""
        return read_calibration(mapping, where) if is_calibration(mapping) else mapping

    @staticmethod
    def surroundings(world: World) -> dict[str, Any]:
        """Return the keyword arguments that `start` takes from a world."""
        return {'world': world}

    def start(
        self, seed: int, run: str, sensor: str = 'camera', *, world: World | None = None
    ) -> CameraSensor:
        """Switch a camera on in a world, by default an empty one; see `SensorModel.start`.

        Raises
        ------
        SensorError
            When an id of the scene is out of range or used twice.
        """
        return CameraSensor(self, seed, run, sensor, Scene.from_world(world or World()))


class CameraSensor(Sensor[CameraMeasurement]):
    """Running camera: a model and its state. Made by `CameraModel.start`.

    Attributes
    ----------
    scene : Scene
        Points that the camera can recognise.
    """

    model: CameraModel

    def __init__(self, model: CameraModel, seed: int, run: str, sensor: str, scene: Scene) -> None:
        from scipy.spatial.transform import Rotation

        super().__init__(model, seed, run, sensor)
        self.scene = scene
        self._noise = stream(seed, run, sensor, 'pixel_white')
        self._misses = stream(seed, run, sensor, 'missed')
        self._mismatches = model.mismatches.start(seed, run, sensor)
        self._std = np.asarray(model.noise_std)
        self._offset = np.asarray(model.lever_arm)
        self._optical = model.optical_rotation()
        self._optical_matrix = Rotation.from_quat(self._optical).as_matrix()
        self._previous: FloatArray = np.full((len(scene), 2), np.nan)
        self._age = np.full(len(scene), -1, dtype=np.int64)

    # Overridden because a camera sends poses besides its features.
    def simulate(  # type: ignore[override]
        self, motion: Motion, *, start_ns: int | None = None, origin_ns: int = 0
    ) -> CameraMessages:
        """Return the features and poses of a whole motion; see `Sensor.simulate`."""
        return self.deliver(*self.measure_all(motion, start_ns=start_ns, origin_ns=origin_ns))

    def deliver(self, stamp_ns: IntArray, measured: CameraMeasurement) -> CameraMessages:
        """Return the features and poses of the frames that arrive.

        A pose arrives with the features of its frame, or is lost with them.
        """
        arrived, arrival_ns = self.channel.send(stamp_ns)
        features = measured.messages(stamp_ns, self.model.frame_id).take(arrived)
        poses = measured.poses(stamp_ns, _WORLD_FRAME)
        frames = np.searchsorted(features.stamp_ns, poses.stamp_ns)
        rows = np.flatnonzero(np.isin(poses.stamp_ns, features.stamp_ns))
        poses = dataclasses.replace(poses.take(rows), arrival_ns=arrival_ns[frames[rows]])
        return CameraMessages(dataclasses.replace(features, arrival_ns=arrival_ns), poses)

    def _measure(self, truth: Trajectory, dt: FloatArray) -> CameraMeasurement:
        camera = truth.at_lever_arm(self._offset)
        frames = [self._track_frame(*self._project(camera, k)) for k in range(len(camera.time))]
        columns: dict[str, Any] = {
            name: np.concatenate([empty, *(frame[name] for frame in frames)])
            for name, empty in _EMPTY.items()
        }
        counts = [len(frame['ids']) for frame in frames]
        return CameraMeasurement(
            first=np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64),
            **columns,
        )

    def _project(self, motion: Trajectory, k: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Project the scene into frame k of the motion of the camera.

        Returns
        -------
        cameras : (3,) or (n, 3)
            Position of the camera, or with a rolling shutter one for each point, m.
        depth : (n,)
            Depths of the points, m.
        pixels : (n, 2)
            True pixels of the points.
        """
        points, intrinsics = self.scene.points, self.model.intrinsics
        cameras = motion.position[k]
        attitudes = rotations.multiply(motion.orientation[k, None], self._optical[None])
        local = rotations.rotate_back(attitudes, points - cameras)
        pixels = intrinsics.project(local)
        # A point is projected with the pose at which its row is exposed. The acceleration is that
        # of the first row: within 30 ms a jerk of 10 m/s^3 adds an error of 45 um.
        for _ in range(_ROW_ITERATIONS if self.model.row_time > 0.0 else 0):
            row = np.nan_to_num(np.clip(pixels[:, 1:], -0.5, intrinsics.height - 0.5) + 0.5)
            delay = row * self.model.row_time
            half = 0.5 * delay**2
            cameras = (
                motion.position[k] + delay * motion.velocity[k] + half * motion.acceleration[k]
            )
            turn = delay * motion.angular_velocity[k] + half * motion.angular_acceleration[k]
            body = rotations.multiply(motion.orientation[k, None], rotations.exp(turn))
            attitudes = rotations.multiply(body, self._optical[None])
            local = rotations.rotate_back(attitudes, points - cameras)
            pixels = intrinsics.project(local)
        return cameras, local[:, 2], pixels

    def _track_frame(
        self, cameras: FloatArray, depth: FloatArray, true_pixels: FloatArray
    ) -> dict[str, Any]:
        """Return the features and the pose of one frame as rows of a `CameraMeasurement`."""
        from scipy.spatial.transform import Rotation

        model, scene = self.model, self.scene
        # Drawn for all features, so that the noise of a feature does not depend on which are
        # visible.
        measured = true_pixels + self._std * self._noise.standard_normal((len(scene), 2))
        is_found = self._find_features(cameras, depth, true_pixels)
        tracked = is_found & (self._age >= 0)
        sources = self._mismatches.mix(tracked)
        rows = np.flatnonzero(is_found)
        reported = sources[rows]
        pixels = measured[reported]
        previous = self._previous[rows]
        self._age = np.where(is_found, self._age + 1, -1)
        # The next frame is compared with the correct pixel, not with a mismatch.
        self._previous = np.where(is_found[:, None], measured, np.nan)
        rays = model.intrinsics.rays(pixels)
        pose = model.pose.estimate(scene.points[rows], pixels, rays, model.intrinsics, self._std)
        if pose is not None:
            pose = pose.body_pose(self._offset, self._optical_matrix)
        no_pose = np.full((1, 7), np.nan)
        return {
            'ids': scene.ids[rows],
            'pixels': pixels,
            'previous': previous,
            'age': self._age[rows],
            'rays': rays,
            'true_ids': scene.ids[reported],
            'true_pixels': true_pixels[rows],
            'has_pose': np.array([pose is not None]),
            'position': no_pose[:, :3] if pose is None else pose.position[None],
            'orientation': no_pose[:, 3:]
            if pose is None
            else Rotation.from_matrix(pose.rotation).as_quat()[None],
            'pose_covariance': np.zeros((1, 6, 6)) if pose is None else pose.covariance[None],
        }

    def _find_features(
        self, cameras: FloatArray, depth: FloatArray, pixels: FloatArray
    ) -> NDArray[np.bool_]:
        """Return which features of the scene the tracker finds, `(n,)`."""
        model = self.model
        is_found = model.intrinsics.inside(pixels, model.border) & self.scene.visible_from(cameras)
        is_found &= depth >= model.nearest
        if model.farthest > 0.0:
            is_found &= depth <= model.farthest
        if model.missed > 0.0:
            is_found &= self._misses.random(len(depth)) >= model.missed
        return is_found


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


load_camera = CameraModel.load
