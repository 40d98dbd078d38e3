# SPDX-License-Identifier: Apache-2.0
"""How long a page that `roundel web` wrote takes to its first result in a browser, with everything in the browser's caches and without.

``python -m benchmarks.page site --visits 5`` opens the page, gives it its example (or sends its form) as soon as that is there, and prints milliseconds from
the navigation to the result: of the first visit, and of those after it. ``--shot picture.png`` also takes a picture of the last one.
"""

from __future__ import annotations

import argparse
import statistics
import threading
import time
from pathlib import Path

from tests.browser import Browser

from roundel.pages import serve

_GIVE = """
const seen = new MutationObserver(() => {
  const example = [...document.querySelectorAll("button")].find((b) => /example|test/.test(b.textContent));
  const form = document.querySelector("form");
  if (!window.given && (example || form)) { window.given = performance.now(); if (example) example.click(); else form.requestSubmit(); }
  if (!window.result && document.querySelector("#results h2")) window.result = performance.now();
});
seen.observe(document, { childList: true, subtree: true });
"""


def visits(site: Path, count: int, query: str = "", shot: Path | None = None) -> list[float]:
    """Milliseconds from the navigation to the first result, of one visit after the other in one browser."""
    server = serve(site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    found = []
    with Browser() as browser:
        browser.ask("Page.addScriptToEvaluateOnNewDocument", source=_GIVE)
        for _ in range(count):
            browser.ask("Page.navigate", url="about:blank")
            browser.ask("Page.navigate", url=f"http://localhost:{server.server_port}/{query}")
            end = time.monotonic() + 100
            while not browser.run("window.result && document.body.dataset.state === 'ready'"):
                assert time.monotonic() < end, browser.run("document.body.innerText")
                time.sleep(0.1)
            found.append(browser.run("window.result"))
            browser.run("navigator.serviceWorker.ready.then(() => 1)")
        if shot:
            browser.picture(shot, True)
    server.shutdown()
    server.server_close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("site", type=Path)
    parser.add_argument("--visits", type=int, default=5)
    parser.add_argument("--query", default="", help="such as ?threads=2")
    parser.add_argument("--shot", type=Path)
    asked = parser.parse_args()
    first, *rest = visits(asked.site, asked.visits, asked.query, asked.shot)
    print(f"first visit {first:.0f} ms, later {statistics.median(rest):.0f} ms (median of {len(rest)}: {', '.join(f'{ms:.0f}' for ms in rest)})")


if __name__ == "__main__":
    main()
