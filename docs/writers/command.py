# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The pages of the command, from the parsers of its verbs."""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Callable, Iterator

from sim2real_eval.cli.parser import GROUPS, build_parser, is_common

_MADE = """\
<!-- Made by `python docs/write_reference.py`; change the parsers of the verbs instead. -->
"""

_INTRODUCTION = """\
# The command `sim2real`

One page per verb.

{verbs}
`sim2real VERB --help` shows the common options, `--help-all` all of them. Installed packages can
[add verbs](../howto/extend.md). If the command is not installed, use
`python -m sim2real_eval.cli VERB`. For tab completion in bash or zsh, add this line to `~/.bashrc`
or `~/.zshrc`:

```sh
eval "$(register-python-argcomplete sim2real)"
```

## Common to all verbs

**Exit status.**

| status | meaning |
|---|---|
| 0 | done |
| 1 | done, but a recording failed, an estimate is not a number, or a limit of `gate` is broken |
| 2 | bad input or options; nothing is written |
| 130, 143 | ended by Ctrl-C or SIGTERM; no file is left half written |

**Streams.** Results go to standard output, [findings](findings.md) and errors to standard error.
An error is one line: `sim2real: error: what, where, what is allowed`. `--json` prints the result
as JSON. In a pipe, a finding is one line and tables are not wrapped.

**Files.** `--out` is a folder; the help of each verb names the files in it. Nothing is
overwritten unless you give `--overwrite`, and then only what the older result lists in
`.RECORD.files`, such as `.study.json.files`: your own files in a result stay. Results appear
under their final name only when they are complete; several files of one result appear together.
While a verb works, it locks its `--out`; a second command with the same `--out` ends with status
2. If a verb was killed, repeat the command: it removes temporary files and completes the result,
or says that the result exists (status 2). On NFS a hidden `.NAME.tmp-RANDOM` may remain; delete it
by hand. `simulate`, and `judge` with several recordings, keep existing recordings, write the
missing ones and end with status 1.

**Repeatability.** Equal `--seed` gives equal bytes, whatever `--jobs` is.

**Recordings** are arguments without an option, before, between or after the options. They are
rosbag2 folders, `.mcap`, `.db3` or ROS 1 `.bag` files, CSV folders, logs of Gazebo, or trajectory
files ([recordings](recordings.md)). `--topic ROLE=TOPIC` names topics that differ from the
defaults:

| role | default topic |
|---|---|
| `imu` | `/imu/data` |
| `gps` | `/gps/fix` |
| `truth` | `/ground_truth/odometry`; also poses: `truth=/vicon/pose`, `truth=/tf:map.base_link` \
or a file, `truth=trajectory.tum` |
| `mag` | `/imu/mag` |
| `camera_pose`, `features`, `camera_info` | `/camera/pose`, `/camera/features`, \
`/camera/camera_info` |

`judge` and `vepd` also take inputs of the judge's parameter file, such as
`--topic odom0=/wheel/odometry`.

**Sensors.** `--gps`, `--imu`, `--mag`, `--camera`, `--wheels` and `--vision` take `real` for the
recorded sensor, `none` to leave it out, a preset (`sim2real models`) or a file. Where the help
says LIST, separate several values by commas. A verb that does not accept one of these values says
why. `--models` is another name for `--gps`.

**Models** are presets or YAML files of the same form. `NAME:as_upstream`
repeats the defects of the original simulator, where the model has that variant.

**Judges** are profiles ([which one](../explanation/judge.md#which-profile)) or parameter files of
`ekf_node`. Parameters of `navsat_transform_node` come from `--navsat-config`, else from
`NAME_navsat.yaml` beside the file, else from the same file.
"""

_OF_ALL = ('help', 'help_all')

_TITLES = {'positional arguments': ('Arguments', 'argument'), 'options': ('General', 'option')}
"""Heading and first column of the groups that argparse names."""


def verbs() -> list[str]:
    """Return the verbs of this package in the order of `sim2real --help`."""
    return [name for group in GROUPS.values() for name in group]


def index_page() -> str:
    """Return the page with the list of verbs and what they have in common."""
    tables = (
        '\n'.join(
            [
                f'## {title.capitalize()}\n',
                '| verb | purpose |',
                '|---|---|',
                *map(_row, group.items()),
                '',
            ]
        )
        for title, group in GROUPS.items()
    )
    return _MADE + _INTRODUCTION.format(verbs='\n'.join(tables))


def _row(verb: tuple[str, str]) -> str:
    name, purpose = verb
    return f'| [`{name}`](cli/{name}.md) | {purpose.replace("->", "→")} |'


def verb_page(name: str) -> str:
    """Return the page of a verb."""
    return _MADE + '\n'.join(_verb_lines(name, _parser(name)))


def _parser(name: str) -> argparse.ArgumentParser:
    return next(
        action.choices[name]
        for action in build_parser(name)._actions
        if isinstance(action, argparse._SubParsersAction)
    )


def _verb_lines(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    yield from (f'# sim2real {name}', '', _filled(_linked(parser.description or '')), '')
    yield from ('```text', _usage(name, parser), '```', '')
    yield from _epilog(parser.epilog or '')
    yield from _tables('##', parser, is_common)
    rare = [*_tables('###', parser, lambda action: not is_common(action))]
    if rare:
        yield from ('## More options', '', *rare)


def _tables(
    heading: str, parser: argparse.ArgumentParser, is_shown: Callable[[argparse.Action], bool]
) -> Iterator[str]:
    """Yield a table for each group of arguments; options without a group come last."""
    for group in sorted(parser._action_groups, key=lambda group: group.title == 'options'):
        actions = [
            action
            for action in group._group_actions
            if action.dest not in _OF_ALL and is_shown(action)
        ]
        if actions:
            title = str(group.title)
            title, column = _TITLES.get(title, (title[0].upper() + title[1:], 'option'))
            yield from (f'{heading} {title}', '', f'| {column} | meaning |', '|---|---|')
            yield from (f'| {_flags(action)} | {_meaning(action, parser)} |' for action in actions)
            yield ''


def _usage(name: str, parser: argparse.ArgumentParser) -> str:
    """Return the line with everything that must be given."""
    words = ['sim2real', name]
    either = {
        one: group for group in parser._mutually_exclusive_groups for one in group._group_actions
    }
    done: set[argparse.Action] = set()
    for action in parser._actions:
        group = either.get(action)
        if action in done or not (action.required or (group and group.required)):
            continue
        together = group._group_actions if group and group.required else [action]
        done.update(together)
        written = ' | '.join(_written(one) for one in together)
        words.append(f'({written})' if len(together) > 1 else written)
    return ' '.join([*words, '[options]'])


def _written(action: argparse.Action, flag: str | None = None) -> str:
    """Return an argument with its value, such as `--out DIR`."""
    value = str(action.metavar or '').replace('\n', ' ')
    if action.choices and not action.metavar:
        value = '{' + ','.join(map(str, action.choices)) + '}'
    value += '...' if action.nargs in ('+', '*') else ''
    if not action.option_strings:
        return value or action.dest.upper()
    flag = flag or action.option_strings[0]
    return flag if action.nargs == 0 or not value else f'{flag} {value}'


def _flags(action: argparse.Action) -> str:
    if not action.option_strings:
        shown = [_written(action)]
    else:
        first, *others = action.option_strings
        shown = [_written(action, first), *others]
    # A bar ends the cell, also within backticks.
    return ', '.join(
        f'<code>{flag.replace("|", "&#124;")}</code>' if '|' in flag else f'`{flag}`'
        for flag in shown
    )


def _meaning(action: argparse.Action, parser: argparse.ArgumentParser) -> str:
    text = (action.help or '') % {**vars(action), 'prog': parser.prog}
    text = ' '.join(text.split()).replace('<', '&lt;').replace('|', '\\|').replace('*', '\\*')
    return _linked(re.sub(r'(?<![\w-])--[a-z][a-z-]*', r'`\g<0>`', text))


def _linked(text: str) -> str:
    """Make links of the pages that a text names."""
    return re.sub(r'\bdocs/(?:reference/(\w[\w/]*\.md)|([\w/]+\.md))', _link, text)


def _link(found: re.Match[str]) -> str:
    target = f'../{found[1]}' if found[1] else f'../../{found[2]}'
    return f'[{target.rpartition("/")[2].removesuffix(".md")}]({target})'


def _filled(text: str) -> str:
    words = ' '.join(text.split())
    return textwrap.fill(words, 100, break_on_hyphens=False, break_long_words=False)


def _epilog(text: str) -> Iterator[str]:
    """Yield what stands below the options of a verb: examples as commands, the rest as it is."""
    for part in re.split(r'\n\n+', text.strip('\n')):
        head, _, rest = part.partition('\n')
        if head.startswith('example'):
            yield from ('## Examples', '', '```sh', textwrap.dedent(rest), '```', '')
        elif part:
            yield from ('```text', part, '```', '')
