"""How fluently the page moves: a neighbourhood of 2,000 nodes and 8,000 edges, dragged in the system's Chromium.

A real daemon with the `hash` encoder holds phrases that are joined to many others; the page asks for as many nodes as it may.
The time between frames is what `requestAnimationFrame` tells while the pointer drags the picture along a circle.
"""

import statistics
import tempfile
from math import cos, pi, sin
from pathlib import Path
from typing import Any

STEPS = 240
FRAMES = """() => {
  window.frames_ms = [];
  let last = performance.now();
  const tick = (now) => { window.frames_ms.push(now - last); last = now; window.ticking = requestAnimationFrame(tick); };
  requestAnimationFrame(tick);
}"""


def run(results: dict[str, Any]) -> str:
    from playwright.sync_api import expect

    from tests.page.browsing import base_url, browsing, opened, page_daemon
    from tests.page.conftest import ring

    with browsing() as browser, tempfile.TemporaryDirectory(prefix="hippod-page-") as folder:
        daemon = page_daemon(Path(folder), passages={"max_tokens": 120}, graph={"synonym_threshold": 0.97})
        with daemon:
            daemon.add(*ring())
            daemon.wait()
            with opened(browser, base_url(daemon)) as watched:
                page = watched.page
                page.locator("#nodes").select_option("2000")
                page.locator("#question").fill("station 0001")
                page.locator("#question").press("Enter")
                canvas = page.locator("#canvas")
                expect(canvas).to_have_attribute("data-about", "station 0001", timeout=60_000)
                canvas.scroll_into_view_if_needed()
                results["nodes"], results["edges"] = (
                    int(canvas.get_attribute(f"data-{each}") or 0) for each in ("nodes", "edges")
                )
                box = canvas.bounding_box()
                assert box is not None
                x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
                page.mouse.move(x, y)
                page.mouse.down()
                page.evaluate(FRAMES)
                for step in range(STEPS):
                    turn = 2 * pi * step / 60
                    page.mouse.move(x + 120 * sin(turn), y + 80 * (1 - cos(turn)))
                times = page.evaluate(
                    "() => { cancelAnimationFrame(window.ticking); return window.frames_ms.slice(2); }"
                )
                page.mouse.up()
    results["frames"] = len(times)
    results["median_ms"] = round(statistics.median(times), 1)
    results["p95_ms"] = round(sorted(times)[int(0.95 * len(times))], 1)
    head = "| nodes | edges | frames while dragging | median frame | p95 |\n| --- | --- | --- | --- | --- |"
    figures = (results[each] for each in ("nodes", "edges", "frames", "median_ms", "p95_ms"))
    return head + "\n| {:,} | {:,} | {} | {} ms | {} ms |".format(*figures)
