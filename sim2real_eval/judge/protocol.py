# SPDX-License-Identifier: Apache-2.0
"""What a judge is, and all judges by name: ours, of other packages, and of a user's file.

The least that a judge can be is a class without arguments and a method `judge(recording)` that
returns an `Estimate`; docs/howto/extend.md walks through one. `load_judge` completes it to the
`Judge` that the rest of the package works with.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn, Protocol

import numpy as np
from numpy.typing import ArrayLike

from sim2real_eval.common.errors import JudgeError
from sim2real_eval.common.findings import Finding
from sim2real_eval.recording.frames import TransformFile
from sim2real_eval.recording.recording import Recording
from sim_sensors.core.config_files import read_yaml_mapping
from sim_sensors.core.errors import ParameterError, Sim2RealError
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import Parameters
from sim_sensors.core.registry import Registry, entry_points, is_in_file, raised_at
from sim_sensors.core.rotations import from_heading, rotate_back
from sim_sensors.core.shipped import is_yaml
from . import findings
from .estimate import JudgedRun


class Judge(Protocol):
    """Whoever estimates the motion in a recording: what a comparison or a study needs of it."""

    @property
    def name(self) -> str:
        """What the user calls it."""

    @property
    def files(self) -> tuple[Path, ...]:
        """Files that its parameters came from."""

    @property
    def base_link_frame(self) -> str:
        """Frame whose motion it estimates."""

    @property
    def transforms(self) -> TransformFile | None:
        """What replaces or completes a recording's static transforms."""

    def judge(
        self,
        recording: Recording,
        *,
        start_ns: int | None = None,
        start_heading: float | None = None,
    ) -> JudgedRun:
        """Judge a recording; see `JudgeSetup.judge`."""

    def settings(self) -> Mapping[str, Any]:
        """Return what made the result beside the files, as plain values."""


JUDGES: Registry[Any] = Registry(
    'sim2real_sensors.judges',
    'a judge',
    lambda thing: callable(getattr(thing, 'judge', None)) or hasattr(thing, 'from_request'),
    {
        'embedded': 'sim2real_eval.judge.setup:JudgeSetup',
        'robot_localization': 'sim2real_eval.judge.external:RobotLocalizationNodes',
        'judge_node': 'sim2real_eval.judge.external:JudgeNode',
        'error_state': 'sim2real_eval.judge.inertial.error_state:ErrorStateJudge',
        'ros': 'sim2real_eval.judge.external:RosStackNodes',
        'gtsam': 'sim2real_eval.judge.smoother.smoother:SmootherJudge',
    },
    needs='a method judge(recording)',
)
"""Classes of judges by name. A class with `from_request(request)` makes its judge itself; one with
`takes_node_options` true takes the options of robot_localization's nodes, too.
"""


def _refuse(name: str, problem: str) -> NoReturn:
    raise ParameterError('judge', name, problem)


@dataclasses.dataclass(frozen=True)
class JudgeRequest:
    """What a command line or a study file says of a judge.

    Attributes
    ----------
    judge : str
        Name in `JUDGES`, `my_filter.py:MyFilter` or `my_estimator.yaml`.
    config : str, Path or None
        Parameters: a name or a file.
    transforms : TransformFile or None
        What replaces or completes a recording's static transforms.
    node_options : mapping
        Those of robot_localization's nodes that were given: `navsat_config`, `case` and
        `options`, a `sim2real_eval.judge.robot_localization.replay_options.Options`.
    given : tuple of str
        Names of the options of nodes that the user gave.
    refuse : callable
        Raises ParameterError for an option, in the words of whoever was asked.
    folder : Path or None
        Folder that the path of a judge's file is relative to; None: the current one.
    """

    judge: str
    config: str | Path | None = None
    transforms: TransformFile | None = None
    node_options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    given: tuple[str, ...] = ()
    refuse: Callable[[str, str], NoReturn] = _refuse
    folder: Path | None = None


def judge_class(judge: str, *, where: str = 'judge', folder: Path | None = None) -> Any:
    """Return the class of a judge, by name or `my_filter.py:MyFilter`, or that of YAML files."""
    return JUDGES.get('ros' if is_yaml(judge) else judge, where=where, folder=folder)


def judge_label(judge: str, config: str | Path | None) -> str:
    """Return what a judge is called in tables.

    Examples
    --------
    >>> judge_label('filters/my_filter.py:MyFilter', None), judge_label('a/b.yaml', None)
    ('MyFilter', 'b')
    """
    return Path(judge.rpartition(':')[2] if config is None else config).stem


def takes_inputs(judge: str) -> bool:
    """Say whether a judge has inputs such as odom0, as robot_localization's filters have."""
    return bool(getattr(judge_class(judge, where='--judge'), 'takes_node_options', False))


def load_judge(request: JudgeRequest) -> Judge:
    """Return the judge that is asked for.

    Raises
    ------
    Sim2RealError
        For an unknown name, options that do not go with it, wrong parameters, or a judge that
        needs what is not installed.

    Examples
    --------
    >>> load_judge(JudgeRequest('embedded', config='clean')).base_link_frame
    'base_link'
    """
    kind = judge_class(request.judge, folder=request.folder)
    if is_yaml(request.judge):
        if request.config is not None:
            request.refuse('config', f'does not go with judge {request.judge}, which is a file')
        place = Path(request.folder or '', request.judge)
        request = dataclasses.replace(request, judge='ros', config=place)
    if request.given and not getattr(kind, 'takes_node_options', False):
        request.refuse(
            request.given[0],
            f'does not go with judge {request.judge}, only with the judges that are or repeat '
            "robot_localization's nodes",
        )
    if hasattr(kind, 'from_request'):
        judge: Judge = kind.from_request(request)
        return judge
    return _outside_judge(kind, request)


@dataclasses.dataclass(frozen=True, eq=False)
class Estimate:
    """What a judge says of a recording, in as few words as can be.

    Attributes
    ----------
    stamp_ns : (n,) int64
        Times of the estimates, increasing, on the clock of the recording's stamps.
    velocity : (n, 3) float
        Of the base frame in the world: m/s east, north and up.
    orientation : (n, 4) float, optional
        Quaternions x y z w, base to world. None: the vehicle points where it moves, level.
    velocity_covariance : (n, 3, 3) float, optional
        Of `velocity`, m^2/s^2.
    position : (n, 3) float, optional
        m, in a world frame whose axes are east, north and up.
    position_covariance : (n, 3, 3) float, optional
        m^2.
    notes : tuple of (Finding or str)
        What the user should know; a text becomes a finding with the code `judge.note`.

    Examples
    --------
    >>> run = Estimate([0, 10**9], [[0.0, 2.0, 0.0], [0.0, 3.0, 0.0]]).judged()
    >>> run.linear_velocity.round(12).tolist()
    [[2.0, 0.0, 0.0], [3.0, 0.0, 0.0]]
    """

    stamp_ns: ArrayLike
    velocity: ArrayLike
    orientation: ArrayLike | None = None
    velocity_covariance: ArrayLike | None = None
    position: ArrayLike | None = None
    position_covariance: ArrayLike | None = None
    notes: tuple[Finding | str, ...] = ()

    def judged(self) -> JudgedRun:
        """Return the run, with NaN for what is not known.

        Raises
        ------
        JudgeError
            For wrong shapes, or times that do not increase.
        """
        stamp_ns = np.asarray(self.stamp_ns)
        n = len(stamp_ns) if stamp_ns.ndim == 1 else -1
        if n < 0 or (n and stamp_ns.dtype.kind != 'i') or np.any(np.diff(stamp_ns) <= 0):
            raise JudgeError('stamp_ns must be (n,) integers, ns, that increase')
        velocity = self._array('velocity', (n, 3))
        orientation = self._array('orientation', (n, 4))
        notes = [
            findings.NOTE(text=note) if isinstance(note, str) else note for note in self.notes
        ]
        if self.orientation is None:
            orientation = from_heading(np.arctan2(velocity[:, 1], velocity[:, 0]))
            notes.append(findings.COURSE_AS_HEADING())
        pose, twist = np.full((n, 6, 6), np.nan), np.full((n, 6, 6), np.nan)
        pose[:, :3, :3] = self._array('position_covariance', (n, 3, 3))
        # Rows, then columns: R' P R.
        half = _to_body(orientation, self._array('velocity_covariance', (n, 3, 3)))
        twist[:, :3, :3] = _to_body(orientation, half.transpose(0, 2, 1))
        unknown = {'angular_velocity', 'pose_covariance', 'twist_covariance'}
        return JudgedRun(
            stamp_ns=stamp_ns.astype(np.int64),
            tick_ns=stamp_ns.astype(np.int64),
            position=self._array('position', (n, 3)),
            orientation=orientation,
            linear_velocity=rotate_back(orientation, velocity),
            angular_velocity=np.full((n, 3), np.nan),
            pose_covariance=pose,
            twist_covariance=twist,
            notes=tuple(notes),
            unknown=frozenset(unknown | ({'position'} if self.position is None else set())),
        )

    def _array(self, name: str, shape: tuple[int, ...]) -> FloatArray:
        given = getattr(self, name)
        if given is None:
            return np.full(shape, np.nan)
        array = np.asarray(given, dtype=np.float64)
        if array.shape != shape:
            raise JudgeError(f'{name} has shape {array.shape}; must be {shape}')
        return array


def _to_body(orientation: FloatArray, matrices: FloatArray) -> FloatArray:
    """Return R' M of world matrices, (n, 3, 3)."""
    columns = [rotate_back(orientation, matrices[:, :, k]) for k in range(3)]
    return np.stack(columns, axis=2)


@dataclasses.dataclass(frozen=True, eq=False)
class _OutsideJudge:
    """A `Judge` from a class with `judge(recording)`."""

    request: JudgeRequest
    model: Any
    name: str
    files: tuple[Path, ...]
    transforms: TransformFile | None

    @property
    def base_link_frame(self) -> str:
        return str(getattr(self.model, 'base_link_frame', 'base_link'))

    @property
    def parameters(self) -> Parameters | None:
        return self.model if isinstance(self.model, Parameters) else None

    def with_parameters(self, parameters: Parameters) -> _OutsideJudge:
        return dataclasses.replace(self, model=parameters)

    def settings(self) -> Mapping[str, Any]:
        told: dict[str, Any] = {}
        if package := _package(type(self.model)):
            told['package'] = package
        if self.parameters is not None:
            told['parameters'] = self.parameters.to_mapping()
        if hasattr(self.model, 'settings'):
            told |= self.model.settings()
        if self.transforms is not None:
            told['transforms'] = self.transforms.settings()
        return told

    def judge(
        self,
        recording: Recording,
        *,
        start_ns: int | None = None,
        start_heading: float | None = None,
    ) -> JudgedRun:
        if self.transforms is not None:
            merged, _ = self.transforms.over(recording.transforms)
            recording = dataclasses.replace(recording, transforms=merged)
        taken = inspect.signature(self.model.judge).parameters
        given = {'start_ns': start_ns, 'start_heading': start_heading}
        try:
            found = self.model.judge(
                recording, **{name: value for name, value in given.items() if name in taken}
            )
            run = found.judged() if isinstance(found, Estimate) else found
        except Sim2RealError as error:
            raise JudgeError(f'{self.name}: {error}') from error
        except Exception as error:
            # The judge's own code, which may raise anything: it ends this run, and no other.
            place = raised_at(error, type(self.model))
            told = f'{type(error).__name__}: {error} ({place})'
            raise JudgeError(f'{self.name}: {told}') from error
        if not isinstance(run, JudgedRun):
            raise JudgeError(f'{self.name}: returned {type(run).__name__}; must be an Estimate')
        if start_heading is not None and 'start_heading' not in taken:
            run = dataclasses.replace(run, notes=(*run.notes, findings.START_HEADING_UNUSED()))
        return run

    def __reduce__(self) -> tuple[Any, ...]:
        # A worker process loads the class for itself.
        values = None if self.parameters is None else self.parameters.to_mapping()
        return _loaded_again, (dataclasses.replace(self.request, refuse=_refuse), values)


def _loaded_again(request: JudgeRequest, values: Mapping[str, Any] | None) -> Any:
    judge: Any = load_judge(request)
    changed = values and type(judge.model).from_mapping(values, request.judge)
    return judge.with_parameters(changed) if changed else judge


def _outside_judge(kind: Any, request: JudgeRequest) -> _OutsideJudge:
    label = request.judge.rpartition(':')[2]
    files: tuple[Path, ...] = ()
    if request.config is not None:
        if not (inspect.isclass(kind) and issubclass(kind, Parameters)):
            request.refuse('config', f'does not go with judge {label}, which has no parameters')
        files = (Path(request.config),)
        model = kind.from_mapping(read_yaml_mapping(files[0]), str(files[0]))
        label = f'{label} ({request.config})'
    else:
        try:
            model = kind()
        except TypeError as error:
            request.refuse('judge', f'{label} cannot be made without arguments: {error}')
    if source := inspect.getsourcefile(type(model)):
        files = (*files, Path(source))
    if is_in_file(request.judge):
        # The current folder of a worker may be another one.
        place, _, name = request.judge.rpartition(':')
        path = Path(request.folder or Path.cwd(), Path(place).expanduser()).resolve()
        request = dataclasses.replace(request, judge=f'{path}:{name}', folder=None)
    return _OutsideJudge(request, model, label, files, request.transforms)


def completed(judge: Any) -> Judge:
    """Return an object with `judge(recording)`, such as a user's, as a judge.

    Examples
    --------
    >>> class Still:
    ...     def judge(self, recording):
    ...         return Estimate(recording.gps.stamp_ns, np.zeros((len(recording.gps), 3)))
    >>> completed(Still()).base_link_frame
    'base_link'
    """
    if hasattr(judge, 'files'):
        whole: Judge = judge
        return whole
    files: tuple[Path, ...] = ()
    # There is none of a class that was typed into a notebook.
    with contextlib.suppress(OSError, TypeError):
        files = (Path(inspect.getfile(type(judge))),)
    name = type(judge).__name__
    return _OutsideJudge(JudgeRequest(name), judge, name, files, None)


def _package(kind: type) -> str:
    """Return name and version of the package that registers a class; else nothing."""
    top = kind.__module__.split('.')[0]
    for entry in entry_points(JUDGES.group):
        if entry.value.split(':')[0].split('.')[0] == top and entry.dist is not None:
            return f'{entry.dist.name} {entry.dist.version}'
    return ''
