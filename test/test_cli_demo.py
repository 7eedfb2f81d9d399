# SPDX-License-Identifier: Apache-2.0
"""`sim2real demo`: tables, plots, the label SYNTHETIC, and respect for other people's folders."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_examples import call, contents

from sim2real_eval.cli.demo import Demo

Capture = pytest.CaptureFixture[str]


def test_demo_replaces_an_older_one_and_says_that_it_is_synthetic(
    tmp_path: Path, capsys: Capture
) -> None:
    """One run per manoeuvre; an older demo (its mark and what it held) goes."""
    out = tmp_path / 'demo'
    (out / 'recordings').mkdir(parents=True)
    (out / 'SYNTHETIC.txt').write_text('older', encoding='utf-8')
    (out / 'recordings' / 'stale').touch()
    outcome = call(capsys, 'demo', '--runs', 1, '--jobs', 1, '--out', out)
    assert outcome.status == 0
    assert outcome.complaints == []
    files = contents(out)
    assert 'recordings/stale' not in files
    assert b'synthetic' in files['SYNTHETIC.txt']
    for name in ('line_1', 'circle_1', 'half_sine_1'):
        assert f'recordings/{name}/{name}.mcap' in files
    for judge in ('paper_released', 'clean'):
        for name in ('vepd.csv', 'runs.csv', 'vepd.json', 'velocity.png', 'histogram_rmse.png',
                     'histogram_entropy.png'):  # fmt: skip
            assert f'{judge}/{name}' in files
            assert name.endswith('png') == (f'{out}/{judge}/{name}' in outcome.out)
        title = f'VEPD of horizontal speed, judge {judge}: smaller is closer (SYNTHETIC stand-in)'
        assert title in ' '.join(outcome.out.split())
        table = files[f'{judge}/vepd.csv'].decode().splitlines()
        assert len(table) == 1 + 5 * 4
    for later in (['report', out / 'clean'], ['gate', out / 'clean', '--max-vepd', 9]):
        said = call(capsys, *later).out
        assert 'SYNTHETIC' in said
        assert 'real sensors' not in said
    assert outcome.out.count('ch_gauss_airsim') == 2 * 8
    assert [one.name for one in tmp_path.iterdir()] == ['demo']


@pytest.mark.parametrize('kind', ['folder', 'file'])
def test_a_foreign_folder_is_left_alone(tmp_path: Path, capsys: Capture, kind: str) -> None:
    out = tmp_path / 'thesis'
    if kind == 'folder':
        out.mkdir()
    mine = out / 'chapter.tex' if kind == 'folder' else out
    mine.write_text('mine', encoding='utf-8')
    outcome = call(capsys, 'demo', '--out', out)
    assert outcome.status == 2
    assert len(outcome.complaints) == 1
    assert 'is no demo' in outcome.complaints[0]
    assert mine.read_text(encoding='utf-8') == 'mine'


def test_what_a_user_put_into_an_older_demo_is_not_deleted(
    tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / 'demo'
    out.mkdir()
    (out / 'SYNTHETIC.txt').touch()
    (out / 'my_notes.md').write_text('mine', encoding='utf-8')
    outcome = call(capsys, 'demo', '--out', out)
    assert outcome.status == 2
    assert 'my_notes.md: is not of the demo' in outcome.complaints[0]
    assert (out / 'my_notes.md').read_text(encoding='utf-8') == 'mine'


def test_an_older_demo_comes_back_when_the_new_one_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / 'demo'
    out.mkdir()
    (out / 'SYNTHETIC.txt').write_text('older', encoding='utf-8')

    def fail(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr('sim2real_eval.cli.demo.compare', fail)
    with pytest.raises(KeyboardInterrupt):
        Demo(out, runs=1, seed=0).run(jobs=1, progress=lambda: None)
    assert contents(out) == {'SYNTHETIC.txt': b'older'}
    assert [one.name for one in tmp_path.iterdir()] == ['demo']
