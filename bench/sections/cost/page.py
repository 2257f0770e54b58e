"""The frame rate of the page: a neighbourhood of 2,000 nodes and 8,000 edges, dragged in the system's Chromium.

A real daemon with the `hash` encoder contains phrases with many edges; the page requests as many nodes as allowed. The pointer
drags the picture back and forth.
"""

import re
import statistics
import tempfile
from pathlib import Path
from typing import Any

from bench.support.tables import table

STEPS = 300
WATCH = """() => {
  const paints = CanvasRenderingContext2D.prototype;
  const clear = paints.clearRect;
  let drawn = 0;
  paints.clearRect = function (...given) { drawn += 1; return clear.apply(this, given); };
  window.frames_ms = [];
  let last = performance.now();
  const tick = (now) => {
    if (drawn) window.frames_ms.push(now - last);
    last = now;
    drawn = 0;
    requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
}"""
"""Records the times of the frames in which the picture was redrawn; each redraw begins with `clearRect`."""


def run(results: dict[str, Any]) -> str:
    from playwright.sync_api import expect

    from tests.daemon.page.browsing import base_url, browsing, opened, page_daemon
    from tests.daemon.page.conftest import ring

    with browsing() as browser, tempfile.TemporaryDirectory(prefix="hippod-page-") as folder:
        daemon = page_daemon(Path(folder), passages={"max_tokens": 120}, graph={"synonym_threshold": 0.97})
        with daemon:
            daemon.add(*ring())
            daemon.wait()
            with opened(browser, base_url(daemon)) as watched:
                page = watched.page
                page.locator("#question").fill("station 0001")
                page.locator("#question").press("Enter")
                canvas = page.locator("#canvas")
                expect(canvas).to_have_attribute("data-about", "station 0001", timeout=60_000)
                page.locator("#nodes").select_option("2000")
                expect(canvas).to_have_attribute("data-nodes", re.compile("^(19|20)..$"), timeout=60_000)
                expect(canvas).to_have_attribute("aria-busy", "false", timeout=60_000)
                canvas.scroll_into_view_if_needed()
                results["nodes"], results["edges"] = (
                    int(canvas.get_attribute(f"data-{each}") or 0) for each in ("nodes", "edges")
                )
                box = canvas.bounding_box()
                assert box is not None
                x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
                page.mouse.move(x, y)
                page.evaluate(WATCH)
                page.mouse.down()  # move at once: a pointer that rests first is a long press and drags nothing
                for turn in range(4):
                    page.mouse.move(x + (120 if turn % 2 == 0 else -120), y + 80 * (turn % 2), steps=STEPS // 4)
                times = page.evaluate("() => window.frames_ms")
                page.mouse.up()
    assert len(times) > STEPS // 10, "the picture was not dragged"
    results["frames"] = len(times)
    results["median_ms"] = round(statistics.median(times), 1)
    results["p95_ms"] = round(sorted(times)[int(0.95 * len(times))], 1)
    figures = (f"{results['edges']:,}", results["frames"], f"{results['median_ms']} ms", f"{results['p95_ms']} ms")
    heads = ("nodes", "edges", "frames while dragging", "median frame", "p95")
    return table(heads, [(f"{results['nodes']:,}", *figures)])
