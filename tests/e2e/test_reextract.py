"""After an upgrade of the rules: hippod names the passages that older rules have read, and reads them again when it is idle."""

from dataclasses import replace

import pytest

from memory.batch_encoding import with_vectors
from memory.encoder.hashing import HashEncoder
from memory.openie.rules.extractor import RulesExtractor
from store.store import Store
from store.types import Batch
from tests.e2e.conftest import Hippo
from tests.e2e.real_hippod import Daemon, until

pytestmark = pytest.mark.daemon

OLD = "rules/1"
NAMES = ("Odile Brandt", "Sabine Rell", "Emil Strand", "Ada Quill", "Jonas Heron", "Mira Otter", "Ines Lantern")
FILES = 100
"""One passage each: enough for several batches."""


def write_drive(daemon: Daemon) -> None:
    for file in range(FILES):
        person = NAMES[file % len(NAMES)]
        daemon.write(
            f"{file}.md", f"# {person}\n\n{person} built the gauge {file} in Aldersund. It measures Widow Shaft.\n"
        )


def extract_with_older_rules(daemon: Daemon) -> int:
    """Replaces the extractions of the stopped daemon's store by those of an older version; returns their number."""
    encoder = HashEncoder(256)
    with Store(daemon.store, encoder.identity) as store:
        ids = store.passages_by_extraction(lambda _: True)
        texts = [text for id in ids if (text := store.passage(id)) is not None]
        found = RulesExtractor().extract(texts)
        old = [replace(each, extractor=OLD, triples=(("old rules", "read", each.passage),)) for each in found]
        store.commit(with_vectors(store, encoder, Batch(extractions=tuple(old))))
    return len(old)


def counts(daemon: Daemon) -> dict[str, int]:
    return {each["name"]: each["passages"] for each in daemon.status()["extractors"]}


def set_reextract(daemon: Daemon, value: str) -> None:
    daemon.config.write_text(f'{daemon.config.read_text()}\n[openie]\nreextract = "{value}"\n')


def test_reextraction_of_older_rules_gives_the_memory_of_a_fresh_build(hippo: Hippo):
    present = RulesExtractor.name
    daemon = hippo()
    write_drive(daemon)
    daemon.start().wait()
    fresh = daemon.export()
    verified = daemon.ask("POST", "/v1/verify", json={"against_fresh_build": 5, "seed": 7})
    assert verified["problems"] == [] and verified["fresh_build"]["documents"] == 5
    assert daemon.stop() == 0
    old = extract_with_older_rules(daemon)

    # [openie] reextract is off: nothing is read again, but every report says so.
    daemon.start().wait()
    status = daemon.status()
    [share] = status["extractors"]
    assert (share["name"], share["passages"], status["passages"]) == (OLD, old, old) and share["left_s"] > 0
    assert [each["documents"] for each in status["readers"]] == [FILES]
    assert status["encoders"] == [{"name": status["encoder"], "passages": old}]
    plan = daemon.ctl_json("reextract", "--dry-run")
    assert (plan["passages"], plan["calls"], plan["requeued"]) == (old, 0, 0) and plan["left_s"] > 0
    ran = daemon.ctl("--json", "verify", "--against-fresh-build", "3", "--seed", "7")
    assert ran.code == 1 and len(ran.json["problems"]) == 3 == ran.json["fresh_build"]["documents"]
    assert all("file:///" in problem and f"read by {OLD}" in problem for problem in ran.json["problems"])
    assert daemon.export() != fresh
    assert daemon.stop() == 0

    # idle: killed in the middle, the next start continues with what is left.
    set_reextract(daemon, "idle")
    daemon.start()
    until(lambda: counts(daemon).get(present, 0) > 0, "a batch was read again", pause_s=0.01)
    daemon.kill()
    with Store(daemon.store, HashEncoder(256).identity) as store:
        killed_at = store.passages_by_extractor()
    assert 0 < killed_at[OLD] < old, killed_at
    daemon.start()
    until(lambda: set(counts(daemon)) == {present}, "all passages were read again")
    daemon.wait()
    began = [each["passages"] for each in daemon.events("reextraction_began")]
    assert began[-1] == killed_at[OLD] < began[0]
    assert daemon.export() == fresh
    assert daemon.ask("POST", "/v1/verify", json={"against_fresh_build": FILES})["problems"] == []
    assert daemon.ask("POST", "/v1/reextract")["passages"] == 0
