# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The embedded judge: parameters of robot_localization's nodes, and their clock."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from sim2real_eval.common.findings import Finding
from sim2real_eval.recording.metadata import TransformFile
from sim2real_eval.recording.recording import Recording
from sim_sensors.core.errors import ParameterError, Sim2RealError
from sim_sensors.core.measurements import ImuArray
from sim_sensors.core.shipped import config_names, named_file
from .estimate import JudgedRun, PartCount
from .protocol import Judge, JudgeRequest
from .robot_localization.advice import (
    FIXES_ON_TICKS,
    Gate,
    has_no_attitude,
    refused_parts,
    with_threshold,
)
from .robot_localization.configuration import (
    FRONT_ENDS,
    NAVSAT_TOPIC,
    FilterConfig,
    NavsatConfig,
    gate_name,
    with_front_end,
)
from .robot_localization.embedded import judge, prepare
from .robot_localization.input_parts import InputPart, certain_parts, input_parts
from .robot_localization.inputs import WorldPoses, world_poses
from .robot_localization.parameter_file import has_navsat, has_node
from .robot_localization.release import DEFAULT_RELEASE
from .robot_localization.replay_options import Options, ReplayOptions
from .robot_localization.state import YAW
from .robot_localization.topics import route

Setup = TypeVar('Setup', bound='JudgeSetup')

_NAVSAT_SUFFIX = '_navsat'
_START_HEADING_VARIANCE = 0.01
# Thresholds that are tried grow by this factor; the last is 58 times the distance of the first
# refused measurement.
_STEP, _MAX_TRIALS = 1.5, 10


def profiles() -> list[str]:
    """Return the names of the shipped judge profiles.

    Examples
    --------
    >>> 'paper_released' in profiles()
    True
    """
    return [name for name in config_names('judge') if not name.endswith(_NAVSAT_SUFFIX)]


@dataclasses.dataclass(frozen=True, eq=False)
class JudgeSetup(Judge):
    """The embedded judge: the filter and navsat_transform of robot_localization.

    Attributes
    ----------
    name : str
        Profile or file.
    files : tuple of Path
        Files that the parameters were read from.
    filter : FilterConfig
        Parameters of ekf_node or ukf_node.
    navsat : NavsatConfig or None
        Parameters of navsat_transform_node.
    case : ReplayOptions
        Clock and timers of the nodes.
    """

    takes_node_options: ClassVar[bool] = True
    is_fast: ClassVar[bool] = True

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
        """Read the parameters from files.

        Parameters
        ----------
        config : str or Path
            Name of a shipped profile, or path of a parameter file of ekf_node or ukf_node. It is
            read for ukf_node if the case says so, or if it names a node `ukf...` and no `ekf...`.
        navsat_config : str, Path or None
            Path of a navsat_transform_node parameter file. None: that of the profile; or, for a
            file that subscribes to odometry/gps, `<file>_navsat.yaml` beside it, or the same file
            if it names that node.
        case : str, Path or None
            `case.yaml` with clock and timers.
        options : Options or None
            Options that replace those of the case.

        Raises
        ------
        Sim2RealError
            For an unknown profile, a wrong file, or options that do not go together.
        """
        path = named_file(config, 'judge', profiles(), 'judge configuration')
        options = options or Options()
        replay = options.override(
            ReplayOptions() if case is None else ReplayOptions.from_file(case)
        )
        if options.unscented is None and not replay.unscented:
            ukf, ekf = (
                replay.section.split('/')[-1].startswith(kind)
                if replay.section
                else has_node(path, kind)
                for kind in ('ukf', 'ekf')
            )
            replay = dataclasses.replace(replay, unscented=ukf and not ekf)
        if 'unscented' in replay.correct and not replay.unscented:
            raise ParameterError('correct', '', 'unscented is for ukf_node only')
        filter_config = FilterConfig.from_file(
            path, node_of(path, replay), unscented=replay.unscented,
            strictly=bool(replay.section), release=replay.release,
        ).with_topics(replay.renamed)  # fmt: skip
        needs_navsat = any(source.topic == NAVSAT_TOPIC for source in filter_config.sources)
        navsat_path = None if navsat_config is None else Path(navsat_config)
        if navsat_path is None and needs_navsat:
            neighbour = path.with_name(f'{path.stem}{_NAVSAT_SUFFIX}{path.suffix}')
            if neighbour.exists():
                navsat_path = neighbour
            elif has_navsat(path):
                navsat_path = path
        navsat = None
        if navsat_path is not None:
            navsat = NavsatConfig.from_file(navsat_path, release=filter_config.release)
        return cls(
            name=str(config),
            files=(path,) if navsat_path in (None, path) else (path, navsat_path),
            filter=filter_config,
            navsat=with_front_end(navsat, replay.front_end),
            case=replay,
        )

    @classmethod
    def from_request(cls, request: JudgeRequest) -> JudgeSetup:
        """Return the requested judge; see `load_judge`."""
        options = request.node_options
        if request.config is None:
            request.refuse('config', 'is missing; must be a profile or a parameter file')
        return cls.load(
            request.config,
            options.get('navsat_config'),
            options.get('case'),
            options.get('options'),
        )

    def judge(
        self,
        recording: Recording,
        *,
        start_ns: int | None = None,
        start_heading: float | None = None,
    ) -> JudgedRun:
        """Run the filter over a recording.

        Parameters
        ----------
        recording : Recording
        start_ns : int or None
            Start of the nodes, unless the case sets it.
        start_heading : float or None
            Initial yaw of the filter, radians from east, with a standard deviation of 0.1 rad,
            instead of that of the parameter file.
        """
        return self.with_start(start_ns=start_ns, start_heading=start_heading).batch_run(recording)

    def try_gates(self, recording: Recording, judged: JudgedRun) -> JudgedRun:
        """Return a run whose findings about long refusals name a threshold that helps.

        Thresholds from that of the first refused measurement on are tried by running the embedded
        filter again. One helps if the part is no longer refused for long, and no other part is.
        The set-up is that with the start of the run; see `with_start`.
        """
        notes = list(judged.notes)
        for part in refused_parts(judged):
            gate = self._try_gate(recording, judged, part)
            if gate is not None:
                notes = with_threshold(notes, part, gate)
        return dataclasses.replace(judged, notes=tuple(notes))

    def _try_gate(self, recording: Recording, judged: JudgedRun, part: PartCount) -> Gate | None:
        name, _, kind = part.name.partition(' ')
        sources = {source.name: source for source in self.filter.sources}
        if name not in sources or part.longest_refusal is None:
            return None
        allowed = {other.name for other in refused_parts(judged)} - {part.name}
        threshold = part.longest_refusal.distance
        for _ in range(_MAX_TRIALS):
            threshold *= _STEP
            change: dict[str, Any] = {f'{kind}_threshold': threshold}
            changed = dataclasses.replace(sources[name], **change)
            inputs = tuple({**sources, name: changed}.values())
            config = dataclasses.replace(self.filter, sources=inputs)
            run = dataclasses.replace(self, filter=config).batch_run(recording)
            helps = {other.name for other in refused_parts(run)} <= allowed
            if helps and not run.divergence_findings:
                return Gate(gate_name(name, kind), threshold, helps=True)
        return Gate(gate_name(name, kind), threshold, helps=False)

    def lacks_heading(self, recording: Recording) -> bool:
        """Return True if the filter takes yaw from an IMU that has none, and starts at 0."""
        config = self.filter
        if not config.starts_eastward:
            return False
        try:
            routed = route(recording, config, self.navsat, self.case).sources
        except Sim2RealError:
            return False
        topics = [routed.get(source.name) for source in config.sources if source.mask[YAW]]
        imus = [recording.messages[topic] for topic in topics if topic is not None]
        return any(isinstance(imu, ImuArray) and has_no_attitude(imu) for imu in imus)

    def splits_fixes(self, recording: Recording, start_ns: int, later_ns: int) -> bool:
        """Return True if rounding of stamps decides in which tick fixes are fused.

        True only if that happens with nodes that start at `start_ns` and not at `later_ns`. A case
        may set its own clock.
        """

        def are_on_ticks(start_ns: int) -> bool:
            case = self.with_start(start_ns=start_ns).case
            notes = prepare(recording, self.filter, self.navsat, case).notes
            return any(note.kind is FIXES_ON_TICKS for note in notes)

        try:
            return are_on_ticks(start_ns) and not are_on_ticks(later_ns)
        except Sim2RealError:
            return False

    def batch_run(self, recording: Recording) -> JudgedRun:
        """Run the embedded filter, also if `judge` of a subclass runs a node."""
        return judge(recording, self.filter, self.navsat, self.case)

    def world_poses(self, recording: Recording) -> WorldPoses:
        """Return the fused absolute poses, which define the world frame of the filter."""
        return world_poses(prepare(recording, self.filter, self.navsat, self.case).inputs)

    def input_parts(self, recording: Recording) -> list[InputPart]:
        """Return the recorded measurements of the inputs, as plain arrays; see `InputPart`."""
        return input_parts(recording, self.filter, self.navsat, self.case)

    def certain_parts(self, recording: Recording) -> list[Finding]:
        """Return findings about fused quantities of the recording whose variance is zero."""
        parts = self.input_parts(recording)
        return certain_parts(parts, recording, two_d=self.filter.two_d_mode)

    def with_start(
        self: Setup, *, start_ns: int | None = None, start_heading: float | None = None
    ) -> Setup:
        """Return a copy with the start time and heading that `judge` would use."""
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
    def subscribed_topics(self) -> tuple[str, ...]:
        """Topics that the filter subscribes to."""
        return tuple(source.topic for source in self.filter.sources)

    @property
    def transforms(self) -> TransformFile | None:
        """Static transforms that replace or complete those of a recording."""
        return self.case.transforms

    def settings(self) -> Mapping[str, Any]:
        """Return what determines the result besides `files`, as plain values."""
        settings: dict[str, Any] = {'case': self.case.settings()}
        if self.filter.release is not DEFAULT_RELEASE:
            settings['rl_version'] = self.filter.release.value
        return settings


def check_for_nodes(case: ReplayOptions, kind: str) -> None:
    """Raise ParameterError for an option that only the embedded judge has."""
    is_ours = kind == 'judge_node'
    # A node cannot know in advance whether a recording has orientations, which the correction of
    # increments depends on.
    correctable = {'gravity', 'unscented'} if is_ours else set()
    for name, is_set in (
        ('correct', case.correct - correctable),
        ('latency', any(case.latency_ns.values())),
        ('covariance', case.covariance),
        ('deviation', case.deviation),
        ('transforms', case.transforms),
        ('front_end', not is_ours and case.front_end != FRONT_ENDS[0]),
    ):
        if is_set:
            raise ParameterError(name, '', f'is not possible with {kind}; must be embedded')


def node_of(path: Path, case: ReplayOptions) -> str:
    """Return the node whose section of a parameter file the filter reads.

    A file that was written for ekf_node alone can be read by ukf_node, and the reverse.
    """
    preferred, other = ('ukf', 'ekf') if case.unscented else ('ekf', 'ukf')
    kind = other if has_node(path, other) and not has_node(path, preferred) else preferred
    return case.section or f'{kind}_filter_node'
