# SPDX-License-Identifier: Apache-2.0
"""A browser without a window, driven through the pipe of its DevTools protocol: open a page, run its scripts, press keys, take pictures.

Whoever looks at pages by hand can do so too: ``python -m tests.browser report.html picture.png 1280x800 dark``.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
FOUND = next(filter(None, map(shutil.which, NAMES)), None)
_SECONDS = 120.0  # for an answer
_OPTIONS = "--headless --no-sandbox --disable-gpu --hide-scrollbars --use-fake-ui-for-media-stream --use-fake-device-for-media-stream --remote-debugging-pipe"


class Browser:
    """``with Browser() as b: b.open(path)``; one page at a time. ``messages`` holds errors of the page's scripts and what its policy forbade. Camera and
    microphone are made up: a picture that moves, and a beep every second."""

    def __enter__(self) -> Browser:
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, from_browser = os.pipe(), os.pipe()
        pipes = f"3<&{to_browser[0]} 4>&{from_browser[1]}"
        command = f"exec {FOUND} {_OPTIONS} --user-data-dir={self.folder.name} about:blank {pipes}"
        passed = (to_browser[0], from_browser[1])
        self.process = subprocess.Popen(["bash", "-c", command], pass_fds=passed, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser[0])
        os.close(from_browser[1])
        self.sink, self.source = to_browser[1], from_browser[0]
        self.rest, self.count, self.session, self.messages = b"", 0, None, []
        target = next(t for t in self.ask("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")
        return self

    def __exit__(self, *error: object) -> None:
        self.process.terminate()
        self.process.wait(20)
        os.close(self.sink)
        os.close(self.source)
        self.folder.cleanup()

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """What a command of the protocol answers; raises RuntimeError where it fails."""
        self.count += 1
        message = {"id": self.count, "method": method, "params": params, **({"sessionId": self.session} if self.session else {})}
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.sink, data) :]
        end = time.monotonic() + _SECONDS
        while time.monotonic() < end:
            answer = self._next()
            if answer.get("id") == self.count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self._note(answer)
        raise RuntimeError(f"{method}: no answer")

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self.rest:
            part = os.read(self.source, 1 << 20)
            if not part:
                raise RuntimeError("the browser ended")
            self.rest += part
        text, _, self.rest = self.rest.partition(b"\0")
        return json.loads(text)

    def _note(self, event: Mapping[str, Any]) -> None:
        if event.get("method") == "Runtime.exceptionThrown":
            self.messages.append(event["params"]["exceptionDetails"].get("exception", {}).get("description", "an exception"))
        elif event.get("method") == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
            self.messages.append(event["params"]["entry"]["text"])

    def open(self, path: Path, size: tuple[int, int] = (1280, 800), dark: bool = False) -> None:
        """Show a file in a window of that size."""
        self.ask("Emulation.setDeviceMetricsOverride", width=size[0], height=size[1], deviceScaleFactor=1, mobile=False)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.visit(path.resolve().as_uri())

    def visit(self, url: str) -> None:
        """Show what is at an address, and wait until it is there."""
        self.ask("Page.navigate", url=url)
        end = time.monotonic() + _SECONDS
        while self.run("document.readyState") != "complete" or self.run("document.body.children.length") == 0:
            assert time.monotonic() < end, "the page was not loaded"
            time.sleep(0.05)
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def run(self, script: str) -> Any:
        """The value of an expression in the page, awaited where it is a promise; raises RuntimeError where it throws."""
        answer = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", "the script failed"))
        return answer["result"].get("value")

    def press(self, key: str, shift: bool = False) -> None:
        """A key, such as Tab, Enter, ArrowDown or a letter, down and up."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        text = {"Enter": "\r", " ": " "}.get(key, key if len(key) == 1 else "")
        facts = {"key": key, "windowsVirtualKeyCode": codes.get(key, ord(key[0].upper())), "modifiers": 8 if shift else 0}
        self.ask("Input.dispatchKeyEvent", type="keyDown", **facts, **({"text": text} if text else {}))
        self.ask("Input.dispatchKeyEvent", type="keyUp", **facts)

    def picture(self, path: Path, whole: bool = False) -> None:
        """A PNG of the window, or of the whole page."""
        clip = {}
        if whole:
            area = self.ask("Page.getLayoutMetrics")["cssContentSize"]
            clip = {"captureBeyondViewport": True, "clip": {"x": 0, "y": 0, "width": area["width"], "height": min(area["height"], 12000), "scale": 1}}
        path.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot", format="png", **clip)["data"]))


if __name__ == "__main__":
    page, out, size, *theme = sys.argv[1:]
    with Browser() as browser:
        browser.open(Path(page), tuple(map(int, size.split("x"))), "dark" in theme)
        browser.picture(Path(out), "whole" in theme)
        print("\n".join(browser.messages))
