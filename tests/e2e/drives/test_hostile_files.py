"""Two hundred hostile files fail alone."""

import pytest

from consumers.folder import file_uri
from tests.e2e.conftest import Hippo
from tests.e2e.drives.hostile_files import Hostile, write_hostile
from tests.e2e.real_hippod import Json, until

pytestmark = pytest.mark.daemon

GOOD = "The good file {} tells of Rosamund Teal."


def test_hostile_files_are_listed_with_a_reason_and_the_good_ones_are_indexed(hippo: Hippo) -> None:
    daemon = hippo()
    hostile = write_hostile(daemon.drive)
    assert len(hostile) == 200
    good = [daemon.write(f"good/{number}.txt", GOOD.format(number)) for number in range(20)]
    daemon.start()
    process = daemon.process
    status = daemon.wait(240)
    assert status["pending"] == 0

    listed: dict[str, list[Json]] = {}
    for document in daemon.documents().values():
        listed.setdefault(document["uri"].split("#")[0], []).append(document)
    for uri in good:
        assert [document["state"] for document in listed.pop(uri)] == ["indexed"]
    held = "\n".join(daemon.export())
    wrong = [(item, listed.get(file_uri(item.path))) for item in hostile if not as_expected(item, listed, held)]
    assert not wrong
    # Each file has one URI, and there are no other documents.
    assert set(listed) <= {file_uri(item.path) for item in hostile}

    # Later files are followed as usual, by the same process.
    late = daemon.write("good/late.txt", GOOD.format("late"))
    until(lambda: late in daemon.documents(state="indexed"), "a later file is indexed")
    assert daemon.process is process
    assert process is not None
    assert process.poll() is None

    # hippoctl shows every name and reason: safely for terminals, as exact JSON for programs.
    table = daemon.ctl("ls", "--state", "failed")
    assert table.code == 0
    assert "\x1b" not in table.out
    states = {state: daemon.ctl_json("ls", "--state", state)["documents"] for state in ("failed", "skipped")}
    assert status["failed"] == len(states["failed"])
    assert daemon.stop() == 0


def as_expected(item: Hostile, listed: dict[str, list[Json]], held: str) -> bool:
    documents = listed.get(file_uri(item.path), [])
    if item.good:
        return bool(documents) and all(d["state"] == "indexed" for d in documents) and item.good in held
    refused = [d for d in documents if d["state"] in ("failed", "skipped")]
    if item.bad and len(refused) != len(documents):
        return False
    # A sentence, not the name of an exception; no failure is silent.
    return bool(documents) and all(d["error"] and len(d["error"].split()) > 3 for d in refused)
