# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""A headless browser that is controlled over two pipes, without a library or network."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAMES = ('chromium', 'chromium-browser', 'google-chrome', 'chrome')


def browser_binary() -> str | None:
    """The browser to test with: SIM2REAL_BROWSER, or what is on the path."""
    browser_path = os.environ.get('SIM2REAL_BROWSER')
    return browser_path or next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One tab. Messages are JSON, ended by a zero byte (--remote-debugging-pipe)."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read = write, read
        self._numbers = itertools.count(1)
        self._rest = b''
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.call('Target.createTarget', url='about:blank')['targetId']
        attached = self.call('Target.attachToTarget', targetId=target, flatten=True)
        self._session = attached['sessionId']
        for domain in ('Page', 'Runtime', 'Network', 'Log'):
            self.call(f'{domain}.enable')

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message: dict[str, Any] = {'id': number, 'method': method, 'params': parameters}
        if self._session:
            message['sessionId'] = self._session
        os.write(self._write, json.dumps(message).encode() + b'\0')
        while (answer := self._next()).get('id') != number:
            self.events.append(answer)
        if 'error' in answer:
            raise AssertionError(f'{method}: {answer["error"]}')
        return dict(answer['result'])

    def _next(self) -> dict[str, Any]:
        while b'\0' not in self._rest:
            data = os.read(self._read, 1 << 20)
            if not data:
                raise AssertionError('the browser has gone')
            self._rest += data
        line, self._rest = self._rest.split(b'\0', 1)
        return dict(json.loads(line))

    def open(
        self, path: Path, *, width: int = 1280, height: int = 900, dark: bool = False
    ) -> None:
        """Load a file as a reader with such a screen would see it."""
        self.events.clear()
        self.screen(width, height)
        scheme = {'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'}
        self.call('Emulation.setEmulatedMedia', media='', features=[scheme])
        self.call('Page.navigate', url=path.resolve().as_uri())
        deadline = time.monotonic() + 300.0
        while self.value('document.readyState') != 'complete':
            assert time.monotonic() < deadline, 'the page does not load'

    def screen(self, width: int, height: int) -> None:
        self.call(
            'Emulation.setDeviceMetricsOverride',
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        answer = self.call('Runtime.evaluate', expression=expression, returnByValue=True)
        assert 'exceptionDetails' not in answer, answer
        return answer['result'].get('value')

    def complaints(self) -> list[str]:
        """Errors and warnings of the console, exceptions and refused policies."""
        self.value('0')
        messages = []
        for event in self.events:
            kind, what = event.get('method'), event.get('params', {})
            if kind == 'Runtime.exceptionThrown' or (
                kind == 'Runtime.consoleAPICalled' and what['type'] in ('error', 'warning')
            ):
                messages.append(json.dumps(what))
            if kind == 'Log.entryAdded' and what['entry']['level'] in ('error', 'warning'):
                messages.append(what['entry']['text'])
        return messages

    def requests(self) -> list[str]:
        """Return the requested addresses, including the page itself but not data: addresses."""
        self.value('0')
        return [
            event['params']['request']['url']
            for event in self.events
            if event.get('method') == 'Network.requestWillBeSent'
            and not event['params']['request']['url'].startswith('data:')
        ]

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """Write a screenshot."""
        answer = self.call(
            'Page.captureScreenshot', format='png', captureBeyondViewport=whole,
            **({'clip': self._extent()} if whole else {}),
        )  # fmt: skip
        path.write_bytes(base64.b64decode(answer['data']))

    def _extent(self) -> dict[str, float]:
        size = self.call('Page.getLayoutMetrics')['cssContentSize']
        return {'x': 0, 'y': 0, 'width': size['width'], 'height': size['height'], 'scale': 1}


@contextlib.contextmanager
def running_browser(binary: str, *, scripts: bool = True) -> Iterator[Browser]:
    """Run a browser with a temporary profile."""
    to_browser, from_us = os.pipe()
    to_us, from_browser = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:

        def place_pipes() -> None:
            # By way of high numbers: the pipes may be 3 and 4 the other way round.
            ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_browser, from_browser)]
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        process = subprocess.Popen(
            [
                binary, '--headless=new', '--no-sandbox', '--disable-gpu',
                '--disable-dev-shm-usage', '--hide-scrollbars', '--no-first-run',
                '--disable-background-networking', '--disable-component-update',
                f'--user-data-dir={profile}', '--remote-debugging-pipe', 'about:blank',
            ],
            preexec_fn=place_pipes, close_fds=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_browser)
        os.close(from_browser)
        try:
            browser = Browser(from_us, to_us)
            if not scripts:
                browser.call('Emulation.setScriptExecutionDisabled', value=True)
            yield browser
        finally:
            process.terminate()
            try:
                process.wait(10.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            os.close(from_us)
            os.close(to_us)
