# SPDX-License-Identifier: Apache-2.0
"""A judge ready to use: parameters of the nodes, and their clock."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from sim2real_eval.recording.frames import TransformFile
from sim2real_eval.recording.recording import Recording
from sim_sensors.core.config_files import read_yaml_mapping
from sim_sensors.core.errors import ParameterError, Sim2RealError
from sim_sensors.core.measurements import ImuArray
from sim_sensors.core.shipped import config_names, named_file
from .estimate import JudgedRun
from .protocol import JudgeRequest
from .robot_localization.advice import has_no_attitude
from .robot_localization.configuration import (
    FRONT_ENDS,
    NAVSAT_TOPIC,
    FilterConfig,
    NavsatConfig,
    with_front_end,
)
from .robot_localization.embedded import judge, prepare
from .robot_localization.findings import FIXES_ON_TICKS
from .robot_localization.inputs import WorldPoses, world_poses
from .robot_localization.replay_options import Options, ReplayOptions
from .robot_localization.state import YAW
from .robot_localization.topics import route

Setup = TypeVar('Setup', bound='JudgeSetup')

_NAVSAT_SUFFIX = '_navsat'
_START_HEADING_VARIANCE = 0.01


def profiles() -> list[str]:
    """Return the names of the judge profiles that are shipped.

    Examples
    --------
    >>> 'paper_released' in profiles()
    True
    """
    return [name for name in config_names('judge') if not name.endswith(_NAVSAT_SUFFIX)]


@dataclasses.dataclass(frozen=True, eq=False)
class JudgeSetup:
    """Parameters of ekf_node and navsat_transform_node, and the clock they run on.

    Attributes
    ----------
    name : str
        Profile or file.
    files : tuple of Path
        Files that the parameters came from.
    filter : FilterConfig
    navsat : NavsatConfig or None
    case : ReplayOptions
    """

    takes_node_options: ClassVar[bool] = True
    is_fast: ClassVar[bool] = True
    """Whether a run takes milliseconds."""

    name: str
    files: tuple[Path, ...]
    filter: FilterConfig
    navsat: NavsatConfig | None
    case: ReplayOptions

    @classmethod
    def load(
        cls,
        config: str | Path,
        navsat_config: str | Path | None = None,
        case: str | Path | None = None,
        options: Options | None = None,
    ) -> JudgeSetup:
        """Read a set-up.

        Parameters
        ----------
        config : str or Path
            Name of a shipped profile or path of a parameter file of ekf_node; or of ukf_node, when
            the case says so or the file names a node `ukf...` and none `ekf...`.
        navsat_config : str, Path or None
            Path of a navsat_transform_node parameter file. None: that of the profile; or, for a
            file that subscribes to odometry/gps, `<file>_navsat.yaml` beside it, or the same file
            when it names that node.
        case : str, Path or None
            `case.yaml` with clock and timers.
        options : Options or None
            What replaces its options.

        Raises
        ------
        Sim2RealError
            For an unknown profile, a wrong file, or options that do not go together.
        """
        path = named_file(config, 'judge', profiles(), 'judge configuration')
        navsat_path = None if navsat_config is None else Path(navsat_config)
        options = options or Options()
        told = options.over(ReplayOptions() if case is None else ReplayOptions.from_file(case))
        if options.unscented is None and not told.unscented:
            ukf, ekf = (
                told.section.startswith(kind) if told.section else _names_node(path, kind)
                for kind in ('ukf', 'ekf')
            )
            told = dataclasses.replace(told, unscented=ukf and not ekf)
        if 'unscented' in told.correct and not told.unscented:
            raise ParameterError('correct', '', 'unscented goes with ukf_node only')
        filter_config = FilterConfig.from_file(
            path, node_of(path, told), unscented=told.unscented, strictly=bool(told.section)
        ).renamed(told.renamed)
        if navsat_path is None and any(
            source.topic == NAVSAT_TOPIC for source in filter_config.sources
        ):
            beside = path.with_name(f'{path.stem}{_NAVSAT_SUFFIX}{path.suffix}')
            if beside.exists():
                navsat_path = beside
            elif _names_node(path, 'navsat_transform'):
                navsat_path = path
        navsat = None if navsat_path is None else NavsatConfig.from_file(navsat_path)
        return cls(
            name=str(config),
            files=(path,) if navsat_path in (None, path) else (path, navsat_path),
            filter=filter_config,
            navsat=with_front_end(navsat, told.front_end),
            case=told,
        )

    @classmethod
    def from_request(cls, request: JudgeRequest) -> JudgeSetup:
        """Return the set-up that is asked for, whoever carries it out; see `load_judge`."""
        given = request.node_options
        if request.config is None:
            request.refuse('config', 'is missing; must be a profile or a parameter file')
        return cls.load(
            request.config, given.get('navsat_config'), given.get('case'), given.get('options')
        )

    def judge(
        self,
        recording: Recording,
        *,
        start_ns: int | None = None,
        start_heading: float | None = None,
    ) -> JudgedRun:
        """Judge a recording.

        Parameters
        ----------
        recording : Recording
        start_ns : int or None
            When the nodes start, unless the case says so.
        start_heading : float or None
            Yaw that the filter starts with, radians from east, to 0.1 rad (one standard
            deviation), instead of the initial state of the parameter file.
        """
        return self.started(start_ns=start_ns, start_heading=start_heading).batch_run(recording)

    def lacks_heading(self, recording: Recording) -> bool:
        """Return whether the filter is to take yaw from an IMU that has none, and starts at 0."""
        config = self.filter
        if not config.starts_eastward:
            return False
        try:
            routed = route(recording, config, self.navsat, self.case).sources
        except Sim2RealError:
            return False
        topics = [routed.get(one.name) for one in config.sources if one.mask[YAW]]
        imus = [recording.messages[topic] for topic in topics if topic is not None]
        return any(isinstance(imu, ImuArray) and has_no_attitude(imu) for imu in imus)

    def splits_fixes(self, recording: Recording, start_ns: int, later_ns: int) -> bool:
        """Return whether rounding decides on which side of a tick fixes arrive, if the nodes start
        at `start_ns`, but not if they start at `later_ns`; a case may set its own clock.
        """

        def splits(start_ns: int) -> bool:
            case = self.started(start_ns=start_ns).case
            notes = prepare(recording, self.filter, self.navsat, case).notes
            return any(note.kind is FIXES_ON_TICKS for note in notes)

        try:
            return splits(start_ns) and not splits(later_ns)
        except Sim2RealError:
            return False

    def batch_run(self, recording: Recording) -> JudgedRun:
        """Return what the embedded judge says, whoever else carries the set-up out."""
        return judge(recording, self.filter, self.navsat, self.case)

    def world_poses(self, recording: Recording) -> WorldPoses:
        """Return the poses that the filter fuses as they are, which define its world."""
        return world_poses(prepare(recording, self.filter, self.navsat, self.case).inputs)

    def started(
        self: Setup, *, start_ns: int | None = None, start_heading: float | None = None
    ) -> Setup:
        """Return a copy whose clock and filter start as `judge` would start them."""
        clock = self.case.clock
        if clock.start_ns is None and start_ns is not None:
            clock = dataclasses.replace(clock, start_ns=start_ns)
        config = self.filter
        if start_heading is not None:
            state, covariance = config.initial_state.copy(), config.initial_covariance.copy()
            state[YAW], covariance[YAW, YAW] = start_heading, _START_HEADING_VARIANCE
            config = dataclasses.replace(
                config, initial_state=state, initial_covariance=covariance, knows_heading=True
            )
        case = dataclasses.replace(self.case, clock=clock)
        return dataclasses.replace(self, filter=config, case=case)

    @property
    def base_link_frame(self) -> str:
        """Frame whose motion is estimated."""
        return self.filter.base_link_frame

    @property
    def heard(self) -> tuple[str, ...]:
        """Topics that the filter subscribes to."""
        return tuple(source.topic for source in self.filter.sources)

    @property
    def transforms(self) -> TransformFile | None:
        """What replaces or completes a recording's static transforms."""
        return self.case.transforms

    def settings(self) -> Mapping[str, Any]:
        """Return what made the result beside the files, as plain values."""
        return {'case': self.case.settings()}


def check_for_nodes(case: ReplayOptions, kind: str) -> None:
    """Raise ParameterError for what only the embedded judge can do."""
    ours = kind == 'judge_node'
    # Increments: what a recording says of their orientation, a node cannot know beforehand.
    for name, given in (
        ('correct', case.correct - ({'gravity', 'unscented'} if ours else set())),
        ('latency', any(case.latency_ns.values())),
        ('covariance', case.covariance),
        ('transforms', case.transforms),
        ('front_end', not ours and case.front_end != FRONT_ENDS[0]),
    ):
        if given:
            raise ParameterError(name, '', f'is not possible with {kind}; must be embedded')


def node_of(path: Path, case: ReplayOptions) -> str:
    """Name whose parameters a filter takes from a file that may be written for the other one."""
    own, other = ('ukf', 'ekf') if case.unscented else ('ekf', 'ukf')
    named = other if _names_node(path, other) and not _names_node(path, own) else own
    return case.section or f'{named}_filter_node'


def _names_node(path: Path, start: str) -> bool:
    """Say whether a parameter file has parameters of a node whose name starts so."""
    nodes = read_yaml_mapping(path)
    return any(str(name).split('/')[-1].startswith(start) for name in nodes)
