"""Headless Chromium, spoken to in its own protocol (Chrome DevTools) over a pipe: no port, no package to install."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
"""The browser of this machine, null if it has none."""

_FLAGS = (
    # CI runs as root, where Chromium's sandbox cannot be set up; the pages are the tests' own.
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"),
    *("--no-first-run", "--no-default-browser-check", "--disable-extensions", "--disable-sync", "--disable-quic"),
    *("--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe"),
)

_TRAMPOLINE = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD_CLOEXEC, 10) for end in sys.argv[1:3]]
for end, place in zip(ends, (3, 4)):
    os.dup2(end, place)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""The protocol's pipe is file descriptors 3 and 4 of the browser."""


class BrowserError(RuntimeError):
    """The browser refused a command, a script threw, or the browser ended."""


@dataclass
class Browser:
    """One process. Commands are answered in turn; events that arrive meanwhile go to the page they are of."""

    commands: BinaryIO
    answers: BinaryIO
    sent: int = 0
    pages: dict[str, Page] = field(default_factory=dict)

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """One command and its answer. Raises `BrowserError`."""
        self.sent += 1
        message = {"id": self.sent, "method": method, "params": parameters}
        self.commands.write(json.dumps(message | ({"sessionId": session} if session else {})).encode() + b"\0")
        self.commands.flush()
        while True:
            answer = self.next_message()
            if answer.get("id") == self.sent:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']['message']}")
                return dict(answer["result"])

    def next_message(self) -> dict[str, Any]:
        """The next answer or event; events are noted at their page."""
        collected = bytearray()
        while (byte := self.answers.read(1)) != b"\0":
            if not byte:
                raise BrowserError("the browser ended")
            collected += byte
        message: dict[str, Any] = json.loads(collected)
        page = self.pages.get(message.get("sessionId", ""))
        if page is not None and "method" in message:
            page.notice(message["method"], message["params"])
        return message

    def open(self, url: str, *, width: int = 1280, height: int = 900, dark: bool = False) -> Page:
        """A new tab with the page loaded; `width` and `height` in CSS pixels."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self.pages[session] = Page(self, session, target)
        for domain in ("Page", "Network", "Runtime", "Log"):
            page.call(f"{domain}.enable")
        page.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        page.emulate(dark=dark)
        page.call("Page.navigate", url=url)
        while not page.loaded:
            self.next_message()
        return page


@dataclass
class Page:
    """A tab."""

    browser: Browser
    session: str
    target: str
    loaded: bool = False
    requests: list[str] = field(default_factory=list)
    """Every address that the page asked for, its own included."""
    complaints: list[str] = field(default_factory=list)
    """What the browser's console says: errors, warnings, refused contents."""

    def notice(self, event: str, parameters: dict[str, Any]) -> None:
        """Keep what tests ask about."""
        if event == "Page.loadEventFired":
            self.loaded = True
        elif event == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif event in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
            self.complaints.append(json.dumps(parameters))

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A command to this tab."""
        return self.browser.call(method, self.session, **parameters)

    def emulate(self, *, dark: bool, media: str = "") -> None:
        """Show the page for a reader who wants dark or light; `media="print"`: on the screen as if printed."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def evaluate(self, script: str) -> Any:
        """The value of a JavaScript expression, as JSON. Raises `BrowserError`."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise BrowserError(json.dumps(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        """A PNG of the whole page, or of the window."""
        image = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(image["data"]))

    def pdf(self) -> bytes:
        """The page as printed."""
        answer = self.call("Page.printToPDF", preferCSSPageSize=True, printBackground=True)
        return base64.b64decode(answer["data"])

    def close(self) -> None:
        """Close the tab."""
        self.browser.call("Target.closeTarget", targetId=self.target)
        del self.browser.pages[self.session]


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser with a profile of its own; its process ends with the block."""
    assert CHROMIUM is not None
    theirs_in, commands = os.pipe()
    answers, theirs_out = os.pipe()
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        command = [CHROMIUM, *_FLAGS, f"--user-data-dir={profile}"]
        process = subprocess.Popen(
            [sys.executable, "-c", _TRAMPOLINE, str(theirs_in), str(theirs_out), *command],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        with os.fdopen(commands, "wb") as sending, os.fdopen(answers, "rb") as receiving:
            browser = Browser(sending, receiving)
            try:
                yield browser
            finally:
                try:
                    browser.call("Browser.close")
                    process.wait(timeout=20)
                except (BrowserError, OSError, subprocess.TimeoutExpired):
                    process.kill()
                    process.wait()
