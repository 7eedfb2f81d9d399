# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Base class of judges, and all judges by name: built in, of other packages, in a user's file.

A user's judge is any class without arguments that has a method `judge(recording)` and returns an
`Estimate`; docs/howto/extend.md walks through an example. `load_judge` wraps it in an
`AdaptedJudge`.
"""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from sim2real_eval.common.findings import Finding, JudgeError
from sim2real_eval.recording.metadata import TransformFile
from sim2real_eval.recording.recording import Recording
from sim_sensors.core.config_files import read_yaml_mapping
from sim_sensors.core.errors import ParameterError, Sim2RealError
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import Parameters
from sim_sensors.core.registry import Registry, entry_points, is_in_file, raised_at
from sim_sensors.core.rotations import from_heading, rotate_back
from sim_sensors.core.shipped import is_yaml
from . import estimate
from .estimate import JudgedRun


class Judge(abc.ABC):
    """An estimator of the motion in a recording.

    Subclasses implement `judge` and override the defaults that do not apply to them.
    """

    takes_node_options: ClassVar[bool] = False
    """Whether it takes the options of robot_localization's nodes and has inputs such as odom0."""
    is_fast: ClassVar[bool] = False
    """Whether it judges a run in milliseconds."""

    name: str
    """Name that the user gave."""
    files: tuple[Path, ...]
    """Files that its parameters were read from."""
    parameters: Parameters | None = None
    """Declared parameters, which `sim2real tune` can change, or None."""

    @classmethod
    def from_request(cls, request: JudgeRequest) -> Judge:
        """Return the judge that a command line or study file asks for; see `load_judge`."""
        return AdaptedJudge.from_class(cls, request)

    @property
    def base_link_frame(self) -> str:
        """Frame whose motion is estimated."""
        return 'base_link'

    @property
    def transforms(self) -> TransformFile | None:
        """Static transforms that replace or complete those of a recording, or None."""
        return None

    @abc.abstractmethod
    def judge(
        self,
        recording: Recording,
        *,
        start_ns: int | None = None,
        start_heading: float | None = None,
    ) -> JudgedRun:
        """Estimate the motion in a recording.

        Parameters
        ----------
        recording : Recording
        start_ns : int or None
            Time at which the judge starts; None: at the first message.
        start_heading : float or None
            Known initial yaw, radians from east.
        """

    def settings(self) -> Mapping[str, Any]:
        """Return what determines the result besides `files`, as plain values."""
        return {} if self.transforms is None else {'transforms': self.transforms.settings()}

    def with_parameters(self, parameters: Any) -> Judge:
        """Return a copy with other declared parameters."""
        raise JudgeError(f'{self.name} declares no parameters; they cannot be changed')

    def lacks_heading(self, recording: Recording) -> bool:
        """Return True if the judge would start with an arbitrary heading in this recording."""
        return False

    def splits_fixes(self, recording: Recording, start_ns: int, later_ns: int) -> bool:
        """Return True if rounding of stamps decides in which tick fixes are fused.

        True only if that happens with a start at `start_ns` and not with one at `later_ns`.
        """
        return False


JUDGES: Registry[Any] = Registry(
    'sim2real_sensors.judges',
    'a judge',
    lambda candidate: callable(getattr(candidate, 'judge', None)),
    {
        'embedded': 'sim2real_eval.judge.setup:JudgeSetup',
        'robot_localization': 'sim2real_eval.judge.external:RobotLocalizationJudge',
        'judge_node': 'sim2real_eval.judge.external:NodeJudgeSetup',
        'error_state': 'sim2real_eval.judge.inertial.error_state:ErrorStateJudge',
        'ros': 'sim2real_eval.judge.external:RosEstimatorJudge',
        'gtsam': 'sim2real_eval.judge.smoother.smoother:SmootherJudge',
    },
    needs='a method judge(recording)',
)
"""Classes of judges by name: subclasses of `Judge`, or classes with `judge(recording)`."""


def _refuse(name: str, problem: str) -> NoReturn:
    raise ParameterError('judge', name, problem)


@dataclasses.dataclass(frozen=True)
class JudgeRequest:
    """The judge that a command line or a study file asks for.

    Attributes
    ----------
    judge : str
        Name in `JUDGES`, `my_filter.py:MyFilter` or `my_estimator.yaml`.
    config : str, Path or None
        Parameters: a name or a file.
    transforms : TransformFile or None
        Static transforms that replace or complete those of a recording.
    node_options : mapping
        Options of robot_localization's nodes: `navsat_config`, `case` and `options`, a
        `sim2real_eval.judge.robot_localization.replay_options.Options`.
    explicit_options : tuple of str
        Names of the node options that the user set.
    refuse : callable
        Raises ParameterError for an option by its name and problem.
    folder : Path or None
        Folder that the path of a judge's file is relative to; None: the current one.
    """

    judge: str
    config: str | Path | None = None
    transforms: TransformFile | None = None
    node_options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    explicit_options: tuple[str, ...] = ()
    refuse: Callable[[str, str], NoReturn] = _refuse
    folder: Path | None = None


def judge_class(judge: str, *, where: str = 'judge', folder: Path | None = None) -> Any:
    """Return the class of a judge by name, `my_filter.py:MyFilter` or `my_estimator.yaml`."""
    return JUDGES.get('ros' if is_yaml(judge) else judge, where=where, folder=folder)


def judge_label(judge: str, config: str | Path | None) -> str:
    """Return the label of a judge in tables.

    Examples
    --------
    >>> judge_label('filters/my_filter.py:MyFilter', None), judge_label('a/b.yaml', None)
    ('MyFilter', 'b')
    """
    return Path(judge.rpartition(':')[2] if config is None else config).stem


def _is_judge_class(candidate: Any) -> bool:
    return inspect.isclass(candidate) and issubclass(candidate, Judge)


def takes_inputs(judge: str) -> bool:
    """Return True if a judge has inputs such as odom0, as the filters of robot_localization."""
    candidate = judge_class(judge, where='--judge')
    return _is_judge_class(candidate) and bool(candidate.takes_node_options)


def load_judge(request: JudgeRequest) -> Judge:
    """Return the requested judge.

    Raises
    ------
    Sim2RealError
        For an unknown name, options that the judge does not take, wrong parameters, or a judge
        that needs software that is not installed.

    Examples
    --------
    >>> load_judge(JudgeRequest('embedded', config='clean')).base_link_frame
    'base_link'
    """
    model_class = judge_class(request.judge, folder=request.folder)
    if is_yaml(request.judge):
        if request.config is not None:
            request.refuse('config', f'does not go with judge {request.judge}, which is a file')
        path = Path(request.folder or '', request.judge)
        request = dataclasses.replace(request, judge='ros', config=path)
    is_judge = _is_judge_class(model_class)
    if request.explicit_options and not (is_judge and model_class.takes_node_options):
        request.refuse(
            request.explicit_options[0],
            f'does not go with judge {request.judge}, only with judges that run or reproduce '
            "robot_localization's nodes",
        )
    judge: Judge = (
        model_class.from_request(request)
        if is_judge
        else AdaptedJudge.from_class(model_class, request)
    )
    return judge


@dataclasses.dataclass(frozen=True, eq=False)
class Estimate:
    """Velocity, and optionally the pose, that a user's judge estimates.

    Attributes
    ----------
    stamp_ns : (n,) int64
        Times of the estimates, increasing, on the clock of the recording's stamps.
    velocity : (n, 3) float
        Velocity of the base frame in the world: m/s east, north and up.
    orientation : (n, 4) float, optional
        Quaternions x y z w, base to world. None: level, heading along the velocity.
    velocity_covariance : (n, 3, 3) float, optional
        Covariance of `velocity`, m^2/s^2.
    position : (n, 3) float, optional
        Position, m, in a world frame whose axes are east, north and up.
    position_covariance : (n, 3, 3) float, optional
        Covariance of `position`, m^2.
    notes : tuple of (Finding or str)
        Remarks for the user; a string becomes a finding with the code `judge.note`.

    Examples
    --------
    >>> run = Estimate([0, 10**9], [[0.0, 2.0, 0.0], [0.0, 3.0, 0.0]]).to_judged_run()
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

    def to_judged_run(self) -> JudgedRun:
        """Return the run, with NaN where a quantity is not estimated.

        Raises
        ------
        JudgeError
            For wrong shapes, times that do not increase, or an axis without numbers.
        """
        stamp_ns = np.asarray(self.stamp_ns)
        n = len(stamp_ns) if stamp_ns.ndim == 1 else -1
        if n < 0 or (n and stamp_ns.dtype.kind != 'i') or np.any(np.diff(stamp_ns) <= 0):
            raise JudgeError('stamp_ns must be an array (n,) of increasing integers, ns')
        velocity, position = self._array('velocity', (n, 3)), self._array('position', (n, 3))
        _refuse_missing_axes('velocity', velocity)
        _refuse_missing_axes('position', position)
        orientation = self._array('orientation', (n, 4))
        notes = [
            estimate.NOTE(text=note) if isinstance(note, str) else note for note in self.notes
        ]
        if self.orientation is None:
            orientation = from_heading(np.arctan2(velocity[:, 1], velocity[:, 0]))
            notes.append(estimate.COMPLETED(assumption=estimate.COURSE_AS_HEADING))
        pose, twist = np.full((n, 6, 6), np.nan), np.full((n, 6, 6), np.nan)
        pose[:, :3, :3] = self._array('position_covariance', (n, 3, 3))
        # The covariance in body axes is R' P R: rotate the rows, then the columns.
        half = _rotate_rows_to_body(orientation, self._array('velocity_covariance', (n, 3, 3)))
        twist[:, :3, :3] = _rotate_rows_to_body(orientation, half.transpose(0, 2, 1))
        optional = {name for name in ('position', 'orientation') if getattr(self, name) is None}
        return JudgedRun(
            stamp_ns=stamp_ns.astype(np.int64),
            tick_ns=stamp_ns.astype(np.int64),
            position=position,
            orientation=orientation,
            linear_velocity=rotate_back(orientation, velocity),
            angular_velocity=np.full((n, 3), np.nan),
            pose_covariance=pose,
            twist_covariance=twist,
            notes=tuple(notes),
            unknown=frozenset(
                {'angular_velocity', 'pose_covariance', 'twist_covariance', *optional}
            ),
            is_enu=True,
        )

    def _array(self, name: str, shape: tuple[int, ...]) -> FloatArray:
        """Return a field as an array; NaN if it is None."""
        numbers = getattr(self, name)
        if numbers is None:
            return np.full(shape, np.nan)
        array = np.asarray(numbers, dtype=np.float64)
        if array.shape != shape:
            raise JudgeError(f'{name} has shape {array.shape}; must be {shape}')
        return array


def _refuse_missing_axes(name: str, vectors: FloatArray) -> None:
    """Refuse vectors east, north and up of which some axes, but not all, are NaN in every row."""
    columns = zip(('east', 'north', 'up'), vectors.T, strict=True)
    missing = [axis for axis, column in columns if np.isnan(column).all()]
    if len(vectors) and 0 < len(missing) < 3:
        axes = ' and '.join(missing)
        raise JudgeError(
            f'{name} is NaN along {axes} in all {len(vectors)} rows; must be a number, 0 for an '
            'axis that is not estimated'
        )


def _rotate_rows_to_body(orientation: FloatArray, matrices: FloatArray) -> FloatArray:
    """Return R' M of matrices M in world axes, (n, 3, 3)."""
    columns = [rotate_back(orientation, matrices[:, :, k]) for k in range(3)]
    return np.stack(columns, axis=2)


@dataclasses.dataclass(frozen=True, eq=False)
class AdaptedJudge(Judge):
    """Judge that wraps an object with a method `judge(recording)`, such as a user's."""

    request: JudgeRequest
    model: Any
    name: str
    files: tuple[Path, ...]
    transforms: TransformFile | None = None

    @classmethod
    def from_class(cls, model_class: Any, request: JudgeRequest) -> AdaptedJudge:
        """Return the judge for a class; a class derived from `Parameters` can take a file."""
        label = request.judge.rpartition(':')[2]
        files: tuple[Path, ...] = ()
        if request.config is not None:
            if not (inspect.isclass(model_class) and issubclass(model_class, Parameters)):
                problem = f'does not go with judge {label}, which has no parameters'
                request.refuse('config', problem)
            files = (Path(request.config),)
            model: Any = model_class.from_mapping(read_yaml_mapping(files[0]), str(files[0]))
            label = f'{label} ({request.config})'
        else:
            try:
                model = model_class()
            except TypeError as error:
                request.refuse('judge', f'{label} cannot be made without arguments: {error}')
        if source_file := inspect.getsourcefile(type(model)):
            files = (*files, Path(source_file))
        if is_in_file(request.judge):
            # The current folder of a worker process may be another one.
            module_file, _, class_name = request.judge.rpartition(':')
            path = Path(request.folder or Path.cwd(), Path(module_file).expanduser()).resolve()
            request = dataclasses.replace(request, judge=f'{path}:{class_name}', folder=None)
        return cls(request, model, label, files, request.transforms)

    def __post_init__(self) -> None:
        if isinstance(self.model, Parameters):
            object.__setattr__(self, 'parameters', self.model)

    @property
    def base_link_frame(self) -> str:
        """Frame whose motion is estimated."""
        return str(getattr(self.model, 'base_link_frame', 'base_link'))

    def with_parameters(self, parameters: Parameters) -> AdaptedJudge:
        """Return a copy with other parameters."""
        return dataclasses.replace(self, model=parameters)

    def settings(self) -> Mapping[str, Any]:
        """Return package, parameters and settings of the model, and the transforms."""
        settings: dict[str, Any] = {}
        if package := _package_version(type(self.model)):
            settings['package'] = package
        if self.parameters is not None:
            settings['parameters'] = self.parameters.to_mapping()
        if hasattr(self.model, 'settings'):
            settings |= self.model.settings()
        return {**settings, **super().settings()}

    def lacks_heading(self, recording: Recording) -> bool:
        """Return the answer of the model, if it derives from `Judge`."""
        return isinstance(self.model, Judge) and self.model.lacks_heading(recording)

    def splits_fixes(self, recording: Recording, start_ns: int, later_ns: int) -> bool:
        """Return the answer of the model, if it derives from `Judge`."""
        model = self.model
        return isinstance(model, Judge) and model.splits_fixes(recording, start_ns, later_ns)

    def judge(
        self,
        recording: Recording,
        *,
        start_ns: int | None = None,
        start_heading: float | None = None,
    ) -> JudgedRun:
        """Call the model with the options that it takes; any error becomes a JudgeError."""
        if self.transforms is not None:
            merged, _ = self.transforms.merge_with(recording.transforms)
            recording = dataclasses.replace(recording, transforms=merged)
        accepted = inspect.signature(self.model.judge).parameters
        options = {'start_ns': start_ns, 'start_heading': start_heading}
        options = {name: option for name, option in options.items() if name in accepted}
        try:
            result = self.model.judge(recording, **options)
            run = result.to_judged_run() if isinstance(result, Estimate) else result
        except Sim2RealError as error:
            raise JudgeError(f'{self.name}: {error}') from error
        except Exception as error:
            # A user's code may raise anything; it must fail this run and no other.
            place = raised_at(error, type(self.model))
            problem = f'{type(error).__name__}: {error} ({place})'
            raise JudgeError(f'{self.name}: {problem}') from error
        if not isinstance(run, JudgedRun):
            raise JudgeError(f'{self.name}: returned {type(run).__name__}; must be an Estimate')
        if start_heading is not None and 'start_heading' not in accepted:
            run = dataclasses.replace(run, notes=(*run.notes, estimate.START_HEADING_UNUSED()))
        return run

    def __reduce__(self) -> tuple[Any, ...]:
        # A class from a user's file cannot be pickled; a worker process loads it again.
        mapping = None if self.parameters is None else self.parameters.to_mapping()
        return _reload_judge, (dataclasses.replace(self.request, refuse=_refuse), mapping)


def _reload_judge(request: JudgeRequest, mapping: Mapping[str, Any] | None) -> Any:
    judge: Any = load_judge(request)
    if not mapping:
        return judge
    return judge.with_parameters(type(judge.model).from_mapping(mapping, request.judge))


def as_judge(model: Any) -> Judge:
    """Return a `Judge` for an object with a method `judge(recording)`.

    Examples
    --------
    >>> class Still:
    ...     def judge(self, recording):
    ...         return Estimate(recording.gps.stamp_ns, np.zeros((len(recording.gps), 3)))
    >>> as_judge(Still()).base_link_frame
    'base_link'
    """
    if isinstance(model, Judge) and hasattr(model, 'files'):
        return model
    files: tuple[Path, ...] = ()
    # A class that was typed into a notebook has no file.
    with contextlib.suppress(OSError, TypeError):
        files = (Path(inspect.getfile(type(model))),)
    name = type(model).__name__
    return AdaptedJudge(JudgeRequest(name), model, name, files)


def _package_version(model_class: type) -> str:
    """Return name and version of the package that registers a class, or an empty string."""
    top = model_class.__module__.split('.')[0]
    for entry in entry_points(JUDGES.group):
        if entry.value.split(':')[0].split('.')[0] == top and entry.dist is not None:
            return f'{entry.dist.name} {entry.dist.version}'
    return ''
