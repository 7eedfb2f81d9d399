# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Run the commands of docs/gallery.md; put the reports into the site: `gallery.py site/gallery`.

The results stay in build/gallery until the page changes. Each number that a comment of the page
names must be that of the results, up to one unit of its last digit.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import shutil
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / 'benchmarks'))

from sources import Number, words_of  # noqa: E402

PAGE = ROOT / 'docs' / 'gallery.md'
FOLDER = ROOT / 'build' / 'gallery'
REPORTS: dict[str, tuple[str, ...]] = {
    'demo': ('demo/report.html', 'demo/plots/clean/ranking.png'),
    'days': ('days/report.html', 'days/plots/clean/ranking.png'),
    'matched': ('matched/vepd/report.html', 'matched/vepd/plots/error_state/ranking.png'),
    'transfer': ('days/report.html', 'cost/transfer.png'),
    'thesis': ('thesis/yaw_path_a_1.png',),
}
"""Page and picture of each report, or a picture alone, in the order of the sections."""

_BLOCK = re.compile(
    r'`(?P<file>[\w.]+)`:\n\n```\w+\n(?P<text>.*?)^```|^```sh\n(?P<lines>.*?)^```', re.M | re.S
)
NUMBER = re.compile(r'^<!-- (?P<printed>-?[\d.]+) (?P<ours>\S+)(?: x(?P<times>\d+))? -->$', re.M)


def _joined(text: str) -> list[str]:
    return text.replace('\\\n', ' ').splitlines()


def commands(section: str) -> list[str]:
    """Return the commands of a section."""
    blocks = _BLOCK.finditer(section)
    return [line for block in blocks if block['lines'] for line in _joined(block['lines'])]


def build(section: str, folder: Path, report: tuple[str, ...], name: str) -> None:
    """Run a section in a folder, and keep its page and its picture there under its name."""
    for block in _BLOCK.finditer(section):
        if block['file']:
            (folder / block['file']).write_text(block['text'], encoding='utf-8')
            continue
        for line in _joined(block['lines']):
            words = [str(Path(sys.executable).with_name('sim2real')), *words_of(line, folder)[1:]]
            print(shlex.join(['sim2real', *words[1:]]), flush=True)
            done = subprocess.run(
                words, cwd=folder, check=False, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
            if done.returncode:
                raise SystemExit(f'{done.stdout}\n{line}: exit status {done.returncode}')
    for source in report:
        shutil.copy(folder / source, folder / f'{name}{Path(source).suffix}')


def wrong_numbers(section: str, folder: Path) -> list[str]:
    """Return the numbers of a section that the results do not have."""
    text = section.replace('\N{MINUS SIGN}', '-')
    wrong = []
    for comment in NUMBER.finditer(section):
        printed = comment['printed']
        ours = Number('', printed, comment['ours'], times=float(comment['times'] or 1)).read(
            folder
        )
        step = Decimal(1).scaleb(int(Decimal(printed).as_tuple().exponent))
        if abs(Decimal(ours) - Decimal(printed)) > step:
            wrong.append(f'{printed} is {ours:.4g} in {comment["ours"]}')
        if not re.search(
            rf'(?<![\d.]){re.escape(printed)}(?!\.?\d)', text.split('<!-- ' + printed)[0]
        ):
            wrong.append(f'{printed} of {comment["ours"]} is not in the text')
    return wrong


def sections() -> list[str]:
    """Return the texts of the sections, one for each report."""
    return re.split(r'^## ', PAGE.read_text(encoding='utf-8'), flags=re.M)[1:]


def main() -> None:
    """Build what is missing, check the numbers, and copy pages and pictures."""
    target = Path(sys.argv[1])
    declared = ''.join(block[0] for block in _BLOCK.finditer(PAGE.read_text(encoding='utf-8')))
    folder = FOLDER / hashlib.sha256(declared.encode()).hexdigest()[:12]
    target.mkdir(parents=True, exist_ok=True)
    wrong = []
    for section, (name, report) in zip(sections(), REPORTS.items(), strict=True):
        done = folder / f'.{name}'
        if not done.exists():
            folder.mkdir(parents=True, exist_ok=True)
            build(section, folder, report, name)
            done.touch()
        wrong += wrong_numbers(section, folder)
        for source in report:
            shutil.copy(folder / f'{name}{Path(source).suffix}', target)
    if wrong:
        raise SystemExit('\n'.join([f'{PAGE}:', *wrong]))


if __name__ == '__main__':
    main()
