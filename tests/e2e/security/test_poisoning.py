"""Documents that try to displace others from answers, added over HTTP to a daemon on the example drive.

A flood of near-duplicates takes one place among the results, and a document that names everything is damped. The questions and
their documents are those of `examples/questions.json`.
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import pytest

from bench.support.poisoned_documents import altered_copies, flood, name_magnet, triple_magnet
from tests.e2e.real_hippod import ROOT, Daemon

pytestmark = pytest.mark.daemon

QUESTIONS = {each["id"]: each for each in json.loads((ROOT / "examples" / "questions.json").read_text("utf-8"))}
FLOODED = "strand-saviour"
ASKED = ("founder", "landlord", "castellan-museum", "strand-saviour", "coldcellar-map", "rook-librarian")
FIRST = 5
COPIES = 120
"""Near-duplicates of each flood; `bench poison` adds 400."""
READ_S = 600.0
"""Time limit in seconds for indexing the drive and the copies with the packaged encoder."""


@pytest.fixture(scope="module")
def drive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path_factory.mktemp("poison"), encoder={"backend": "sentence-transformers"})
    daemon.http.timeout = READ_S
    shutil.copytree(ROOT / "examples" / "drive", daemon.drive, dirs_exist_ok=True)
    with daemon:
        daemon.wait(READ_S)
        yield daemon
    print(f"--- {daemon.home} logged:\n{daemon.log_text()[-6000:]}")


@pytest.fixture(scope="module")
def clean(drive: Daemon) -> Mapping[str, list[int]]:
    """Returns the ranks of each question's documents before any attack."""
    return {name: places(drive, name) for name in ASKED}


@pytest.fixture
def attack(drive: Daemon, clean: Mapping[str, list[int]]) -> Iterator[Any]:
    """Yields a function that adds documents, which are removed after the test."""
    added: list[str] = []

    def add(*documents: dict[str, Any]) -> None:
        for start in range(0, len(documents), 100):
            added.extend(drive.add(*documents[start : start + 100]))
        drive.wait(READ_S)

    yield add
    for start in range(0, len(added), 100):
        drive.ctl_json("rm", *added[start : start + 100])
    drive.wait(READ_S)


def places(drive: Daemon, name: str, mode: str = "fused") -> list[int]:
    """Returns the ranks of a question's documents among the first 50 passages."""
    found = [unquote(each["document"]) for each in drive.query(QUESTIONS[name]["question"], mode, k=50)]
    return sorted(
        min((at for at, uri in enumerate(found, 1) if uri.endswith(f"/{path}")), default=99)
        for path in QUESTIONS[name]["documents"]
    )


def attackers(drive: Daemon, name: str, k: int = FIRST) -> int:
    """Returns how many of the first `k` passages the attack has added."""
    return sum(each["document"].startswith("added:") for each in drive.query(QUESTIONS[name]["question"], "fused", k=k))


def test_answering_documents_rank_first_without_an_attack(clean: Mapping[str, list[int]]) -> None:
    assert all(found[-1] <= FIRST for found in clean.values()), clean


def test_a_flood_of_near_duplicates_takes_one_place(drive: Daemon, clean: Mapping[str, list[int]], attack: Any) -> None:
    attack(*flood(QUESTIONS[FLOODED]["question"], COPIES))
    assert attackers(drive, FLOODED) <= 1
    for name, before in clean.items():
        after = places(drive, name)
        assert all(now <= then + 1 for then, now in zip(before, after, strict=True)), (name, before, after)
    dense = drive.query(QUESTIONS[FLOODED]["question"], "dense", k=FIRST)
    assert all(each["document"].startswith("added:flood/") for each in dense), "the flood is as near as it can be"


def test_copies_of_a_true_passage_take_its_place_and_no_other(
    drive: Daemon, clean: Mapping[str, list[int]], attack: Any
) -> None:
    [first, *_] = drive.query(QUESTIONS[FLOODED]["question"], "fused", k=1)
    attack(*altered_copies(first["title"], first["text"], COPIES))
    answer = drive.ctl_json("query", QUESTIONS[FLOODED]["question"], "-k", "50", "--explain")
    [passage, *others] = answer["passages"]
    assert passage["text"].startswith(first["text"]), "the passage or its nearest copy"
    assert not any(each["text"].startswith(first["text"]) for each in others), "a copy is a version, not a result"
    assert any(uri.startswith("added:") for uri in passage["also_in"])
    known = [unquote(each["document"]) for each in others]
    answering = [
        at for at, uri in enumerate(known) if any(uri.endswith(f"/{path}") for path in QUESTIONS[FLOODED]["documents"])
    ]
    assert answering, "the documents that were not copied"
    assert max(answering) < FIRST


@pytest.mark.parametrize("magnet", [name_magnet, triple_magnet])
def test_a_document_that_names_everything_is_damped(
    drive: Daemon, clean: Mapping[str, list[int]], attack: Any, magnet: Any
) -> None:
    attack(magnet(sorted(each["title"] for each in drive.documents().values() if each["title"])))
    for name, before in clean.items():
        after = places(drive, name)
        assert all(now <= then + 1 for then, now in zip(before, after, strict=True)), (name, before, after)
    answer = drive.ctl_json("query", QUESTIONS[FLOODED]["question"], "-k", "500", "--explain")
    damped = {each["id"]: each["hub_factor"] for each in answer["explain"]["passages"] if "hub_factor" in each}
    written = [each["id"] for each in answer["passages"] if each["document"].startswith("added:magnet/")]
    assert min(damped.get(id, 1.0) for id in written) < 0.5
