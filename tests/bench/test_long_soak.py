"""The long soak: when a resource has grown, what the drawing contains, and one operation of each kind."""

import random
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.support.soak import load as loads
from bench.support.soak.growth import growth, growths
from bench.support.soak.load import FAULTS, Load
from bench.support.soak.plot import PANELS, POINTS, svg
from bench.support.soak.samples import Latencies, Sample, Sampler
from tests.e2e.real_hippod import Daemon, until

MIB = 1 << 20
SAMPLE = Sample(0.0, "constant", 0, 400 * MIB, 200 * MIB, 60, 40, 50 * MIB, 300, 5.0, 9.0, 20.0)


def hour(per_hour: float, scatter: float = 0.0, minutes: int = 60) -> list[Sample]:
    """Returns samples every five seconds, whose memory rises and falls each minute, and grows."""
    chosen = random.Random(4)
    return [
        replace(
            SAMPLE,
            at=float(at),
            resident=round(SAMPLE.resident * (1 + per_hour * at / 3600 + scatter * chosen.random() + at % 60 / 200)),
        )
        for at in range(0, minutes * 60, 5)
    ]


@pytest.mark.parametrize(("per_hour", "scatter", "broken"), [(0.0, 0.0, False), (0.008, 0.0, False), (0.02, 0.0, True)])
def test_growth_rate_is_measured_despite_fluctuation_within_minutes(per_hour: float, scatter: float, broken: bool):
    found = growth(hour(per_hour, scatter), "resident")
    assert found is not None
    assert found.broken == broken
    assert found.per_hour == pytest.approx(per_hour, abs=1e-3)
    assert not any(each.broken for each in growths(hour(per_hour, scatter)) if each.resource != "resident")


def test_growth_within_the_scatter_is_not_reported():
    quiet, noisy = growth(hour(0.02), "resident"), growth(hour(0.02, scatter=0.3, minutes=10), "resident")
    assert quiet is not None and noisy is not None
    assert quiet.broken and noisy.scatter > 0.02 and not noisy.broken
    assert growth(hour(0.0, minutes=5), "resident") is None


def test_soak_chart_is_small_and_shows_each_phase_series_and_start():
    samples = [
        replace(each, phase="a<b" if each.at < 900 else "faults", life=int(each.at > 1800), as_of_p50=None)
        for each in hour(0.0)
    ]
    drawn = svg(samples, "a title & more")
    root = ElementTree.fromstring(drawn)
    texts = {each.text for each in root.iter("{http://www.w3.org/2000/svg}text")}
    assert texts >= {"a title & more", "a<b", "faults", *(name for name, _ in PANELS)}
    lines = [each.get("points", "").split() for each in root.iter("{http://www.w3.org/2000/svg}polyline")]
    assert len(lines) == sum(len(of_panel) for _, of_panel in PANELS)
    assert {len(points) for points in lines} == {0, 144} and max(map(len, lines)) <= POINTS
    assert drawn.count("stroke-dasharray") == 1
    assert len(drawn) < 40_000


@pytest.mark.daemon
@pytest.mark.timeout(600)
def test_each_load_operation_leaves_the_expected_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(loads, "ADDED", 3)
    monkeypatch.setattr(loads, "LOOK_BACK_S", 0.0)
    latencies = Latencies()
    with Daemon(tmp_path, openie={"reextract": "idle"}) as daemon:
        sampler = Sampler(daemon, latencies)
        load = Load(daemon, 3, 4, sampler, latencies)
        load.fill()
        load.check("at the start")
        with load.clients(1, 3, 0.01):
            for kind in FAULTS:
                load.step({kind: 1})
            until(lambda: daemon.events("reloaded"), "the new settings apply")
        load.check("at the end")
        assert load.errors == []
        assert sampler.life == 2 and set(load.done) == set(FAULTS)
        assert {each["name"] for each in daemon.status()["readers"]} != {"reader/1"}
        lost = load._added.pop("0")
        load.check("wrongly")
        [error] = load.errors
        assert error.startswith("wrongly: lost [] (0), left ") and lost in error
