# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The file study.json: written a run at a time, with a digest by which damage is detected."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sim2real_eval.common.results import json_text

DIGEST = 'sha256'
"""Key of the digest, the last one of study.json."""
_MISSING = 'nothing'


def encode_record(
    record: Mapping[str, Any], runs: Iterable[Mapping[str, Any]] | None = None
) -> Iterator[bytes]:
    """Yield the content of study.json, a run at a time.

    Examples
    --------
    >>> whole = b''.join(encode_record({'seed': 0}, [{'rmse': 0.1}, {'rmse': 0.2}]))
    >>> list(json.loads(whole))
    ['seed', 'runs', 'sha256']
    """
    digest = _Digest(record)
    yield _indented(record).removesuffix('\n}').encode()
    separator = ',\n "runs": [\n  '
    for run in runs or ():
        digest.add(run)
        yield (separator + _indented(run).replace('\n', '\n  ')).encode()
        separator = ',\n  '
    end = '' if runs is None else '\n ]'
    yield f'{end},\n "{DIGEST}": "{digest.finish()}"\n}}\n'.encode()


def _indented(mapping: Mapping[str, Any]) -> str:
    return json_text(mapping, indent=1, allow_nan=False)


def decode_record(text: str) -> Any:
    """Return the content of study.json; equal findings of its runs share one mapping."""
    shared: dict[str, dict[str, Any]] = {}

    def share(mapping: dict[str, Any]) -> dict[str, Any]:
        return shared.setdefault(json.dumps(mapping), mapping) if 'code' in mapping else mapping

    return json.loads(text, object_hook=share)


def record_digest(record: Mapping[str, Any], runs: Iterable[Mapping[str, Any]]) -> str:
    """Return the digest of a record and its runs, which does not depend on white space.

    Git may change line ends.
    """
    digest = _Digest(record)
    for run in runs:
        digest.add(run)
    return digest.finish()


class _Digest:
    """Digest of a record and its runs as compact JSON."""

    def __init__(self, record: Mapping[str, Any]) -> None:
        self._hash = hashlib.sha256(json.dumps(record).removesuffix('}').encode())
        self._runs = 0

    def add(self, run: Mapping[str, Any]) -> None:
        separator = ', ' if self._runs else ', "runs": ['
        self._hash.update(f'{separator}{json.dumps(run)}'.encode())
        self._runs += 1

    def finish(self) -> str:
        self._hash.update(b']}' if self._runs else b'}')
        return self._hash.hexdigest()


def describe_difference(key: str, old: Any, new: Any) -> str | None:
    """Return the first difference between two values of a record, or None; `key` names them."""
    if isinstance(old, dict) and isinstance(new, dict):
        if key == 'models' and old.keys() != new.keys():
            return f'{key}: were {_short(old)}, are {_short(new)}'
        differences = (
            describe_difference(f'{key}.{name}', old.get(name, _MISSING), new.get(name, _MISSING))
            for name in dict.fromkeys([*new, *old])
        )
        return next(filter(None, differences), None)
    if isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            return f'{key}: were {len(old)}, are {len(new)}'
        pairs = enumerate(zip(old, new, strict=True))
        differences = (describe_difference(f'{key}[{number}]', *pair) for number, pair in pairs)
        return next(filter(None, differences), None)
    return None if old == new else f'{key}: was {_short(old)}, is {_short(new)}'


def _short(value: Any) -> str:
    if isinstance(value, dict):
        value = ', '.join(map(str, value))
    text = ' '.join(str(value).split())
    return text if len(text) <= 60 else f'{text[:57]}...'
