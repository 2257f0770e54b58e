"""Links lead where their authors meant; the result depends on the present documents, not on their order of arrival."""

import threading
from dataclasses import replace
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import store.links.targets
from store.export.json_lines import export_lines
from store.links.names import names_text
from store.links.targets import LinkTargets, _path_names, document_keys, lookups
from store.types import Batch, Document, Link, PassageRef
from tests.store.small_store import complete, open_store


def document(path, title="", **metadata):
    uri = path if ":" in path else "file:///drive/" + quote(path)
    return Document(uri, "/drive", title, metadata=metadata)


VAULT = [
    document("Home.md"),
    document("Plugins/Search.md", aliases=["Find notes"]),
    document("Plugins/Search.png"),
    document("Guides/Search.md"),
    document("Guides/Daily notes.md", title="Notes of a day"),
    document("Guides/2024-01-05.md"),
    document("Guides/Node.js.md"),
    document("Cafe\u0301.md"),
    document("Export/Plan 0123456789abcdef0123456789abcdef.md", title="Plan"),
]
SITE = [
    document("content/handbook/teams/release/index.md", title="Release team"),
    document("content/handbook/teams/support/_index.md"),
    document("content/handbook/teams/support/tools.md"),
    document("content/handbook/product/plan.html", permalink="/roadmap/"),
    document("content/product/plan.md"),
    document("manual/README.md"),
    document("manual/setup.md"),
    document("kafka://news/7", title="Flood in Bern", url="https://www.news.example/2024/flood.html?id=7#top"),
    document("letters.eml", title="Tide gauge", message_id="<a/b%c@tarn.example>"),
]


def targets_of(documents):
    return LinkTargets({each.uri: each for each in documents})


def led(documents, source, target):
    found = targets_of(documents).resolve(target, document(source).uri)
    return None if found is None else found.removeprefix("file:///drive/")


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("Home.md", "Home", "Home.md"),
        ("Home.md", "daily notes", "Guides/Daily%20notes.md"),
        ("Home.md", "Daily_Notes", "Guides/Daily%20notes.md"),
        ("Home.md", "Notes of a day", "Guides/Daily%20notes.md"),
        ("Home.md", "find notes", "Plugins/Search.md"),
        ("Plugins/Core.md", "Search", "Plugins/Search.md"),
        ("Guides/Core.md", "Search", "Guides/Search.md"),
        ("Guides/Core.md", "Plugins/Search", "Plugins/Search.md"),
        ("Guides/Core.md", "../Plugins/Search.md", "Plugins/Search.md"),
        ("Home.md", "Search.png", "Plugins/Search.png"),
        ("Home.md", "Lens.png", None),
        ("Home.md", "2024-01-05", "Guides/2024-01-05.md"),
        ("Home.md", "Node.js", "Guides/Node.js.md"),
        ("Home.md", "Caf\u00e9", "Cafe%CC%81.md"),
        ("Home.md", "Guides/Daily%20notes.md", "Guides/Daily%20notes.md"),
        (
            "Export/x.md",
            "Plan%200123456789abcdef0123456789abcdef.md",
            "Export/Plan%200123456789abcdef0123456789abcdef.md",
        ),
        ("Home.md", "Plan", "Export/Plan%200123456789abcdef0123456789abcdef.md"),
        ("Home.md", "../Search.md", None),
        ("Home.md", "./Search.md", None),
        ("Home.md", "../../../../Search.md", None),
        ("Home.md", "mailto:search", None),
        ("Home.md", "https://example.org/Search", None),
        ("Home.md", "", "Home.md"),
    ],
)
def test_links_in_a_vault_resolve_to_the_expected_document(source, target, expected):
    assert led(VAULT, source, target) == expected


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("content/handbook/teams/support/tools.md", "../release/index.md", "content/handbook/teams/release/index.md"),
        ("content/handbook/teams/support/tools.md", "../release/", "content/handbook/teams/release/index.md"),
        ("content/handbook/teams/support/tools.md", "../../release", "content/handbook/teams/release/index.md"),
        ("content/handbook/teams/release/index.md", "../support", "content/handbook/teams/support/_index.md"),
        ("manual/setup.md", "/handbook/teams/support/", "content/handbook/teams/support/_index.md"),
        ("manual/setup.md", "/handbook/teams/support/tools", "content/handbook/teams/support/tools.md"),
        ("manual/setup.md", "https://site.example/handbook/teams/release", "content/handbook/teams/release/index.md"),
        ("manual/setup.md", "https://site.example/release", None),
        ("manual/setup.md", "/product/plan.html", "content/product/plan.md"),
        ("manual/setup.md", "/handbook/product/plan", "content/handbook/product/plan.html"),
        ("manual/setup.md", "/roadmap", "content/handbook/product/plan.html"),
        ("manual/setup.md", "https://site.example/roadmap/", "content/handbook/product/plan.html"),
        ("manual/setup.md", "README.md", "manual/README.md"),
        ("manual/setup.md", "http://news.example/2024/flood?id=7", "kafka://news/7"),
        ("manual/setup.md", "Flood in Bern", "kafka://news/7"),
        ("manual/setup.md", "tools.md?plain=1", "content/handbook/teams/support/tools.md"),
        ("manual/setup.md", "mid:a%2Fb%25c@tarn.example", "letters.eml"),
        ("manual/setup.md", "mid:a@tarn.example", None),
        ("manual/setup.md", "a/b%25c@tarn.example", None),
    ],
)
def test_links_in_a_site_resolve_to_the_expected_document(source, target, expected):
    assert led(SITE, source, target) == expected


name = st.sampled_from(["a", "b", "A-b", "index", "readme", "a.png"])
path = st.lists(name, min_size=1, max_size=3).map("/".join)
link = st.one_of(
    path,
    path.map("/{}".format),
    path.map("../{}".format),
    path.map("{}.md".format),
    path.map("https://h.example/{}".format),
    st.just("https://h.example/?q"),
    st.just("mid:a"),
)
documents = st.builds(
    lambda path, ending, title, alias, url, id: document(
        f"{path}{ending}", title, aliases=[alias], url=url, message_id=id
    ),
    path,
    st.sampled_from([".md", ".html", ""]),
    name,
    st.one_of(name, path.map("/{}".format)),
    st.sampled_from(["", "https://h.example/a", "https://h.example/b/a"]),
    st.sampled_from(["<a>", "<b>"]),
)


def scanned(present, target, source):
    """The module's rule, by checking every document on every lookup."""
    folder = _path_names(source.uri)[:-1]
    for lookup in lookups(target, source.uri):
        best = None
        for each in present:
            rank = document_keys(each).get(lookup.key)
            place = _path_names(each.uri)
            above = place[:-1]
            if rank is None or (lookup.folders and above[len(above) - len(lookup.folders) :] != lookup.folders):
                continue
            common = next((n for n in range(len(folder)) if n >= len(place) or place[n] != folder[n]), len(folder))
            key = (rank, -common, len(place), each.uri)
            best = key if best is None or key < best else best
        if best is not None:
            return best[-1]
    return None


@given(st.lists(documents, max_size=8), st.lists(link, min_size=1, max_size=4), st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_link_targets_depend_only_on_current_documents(drawn, links, random):
    present: dict[str, Document] = {}
    source = document("a/source.md")
    targets = LinkTargets(present)
    history = [*drawn, *random.sample(drawn, len(drawn))]
    random.shuffle(history)
    for each in [*history, *drawn]:
        gone = random.random() < 0.3
        if gone:
            present.pop(each.uri, None)
        else:
            present[each.uri] = each
        targets.change([] if gone else [each], [each.uri] if gone else [])
        for link in links:
            assert targets.resolve(link, source.uri) == scanned(list(present.values()), link, source)
    targets.change([], list(present))
    assert not targets._holders and not targets._places


INVALID = ["http://[bad", "http://x]/", "https://a\u2100b/", "http://[bad/x#y", "mid:[", "/[/]"]
"""URLs that `urllib.parse` refuses, and others with brackets."""
hostile = st.one_of(st.sampled_from(INVALID), st.text(max_size=12), st.text(max_size=8).map("http://[{}".format))


@given(hostile, hostile, hostile, hostile)
@settings(max_examples=200, deadline=None)
def test_any_text_can_be_a_target_an_address_an_alias_and_a_uri(uri, target, address, alias):
    each = Document(uri, "/drive", alias, metadata={"url": address, "aliases": [alias], "permalink": target})
    targets = targets_of([*VAULT, each])
    assert targets.resolve("Home", uri) == "file:///drive/Home.md"
    targets.resolve(target, uri)
    assert names_text(each) is not None


def test_a_document_with_an_invalid_address_spoils_neither_commits_nor_links(tmp_path):
    with open_store(tmp_path) as memory:
        batch = complete(memory, {"file:///a": [("T", "text 1", None)], "http://[bad/x": [("T", "text 2", None)]}, [])
        good, bad = batch.documents
        [ref] = good.passages
        linked = Document(
            good.uri, "test", passages=(PassageRef(ref.passage, links=(Link("http://[bad"), Link("The bad one"))),)
        )
        bad = Document(bad.uri, "test", "The bad one", metadata={"url": "http://[bad"}, passages=bad.passages)
        memory.commit(replace(batch, documents=(linked, bad)))
        index = memory._index
        lines = list(export_lines(memory.snapshot(), memory.document_snapshot()))
        assert sum('"type": "link"' in line for line in lines) == 1
        memory.commit(Batch((Document(bad.uri, "test", metadata={"canonical": "http://]"}, passages=bad.passages),)))
        assert memory._index is index, "the index was not loaded again"


def test_a_commit_does_not_wait_while_all_documents_are_registered(monkeypatch):
    begun, committed, found = threading.Event(), threading.Event(), []
    present = {each.uri: each for each in VAULT}
    targets = LinkTargets(present)

    def slowly(each):
        begun.set()
        assert committed.wait(10)
        return document_keys(each)

    monkeypatch.setattr(store.links.targets, "document_keys", slowly)
    reader = threading.Thread(target=lambda: found.append(targets.resolve("Added", "file:///drive/x.md")))
    reader.start()
    assert begun.wait(10)
    added = document("Added.md")
    present[added.uri] = added
    targets.change([added], [])
    committed.set()
    reader.join()
    assert found == [added.uri]
