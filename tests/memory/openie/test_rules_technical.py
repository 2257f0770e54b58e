"""What the rules read of manuals: what a sentence says outright, and nothing of code, contents and footers."""

import pytest

from bench.sections.quality.extractor_eval import (
    LEAST_KEPT,
    LEAST_TRUE,
    MOST_WRONG,
    MOST_WRONG_READ,
    read_labelled,
    still_read,
)
from memory.openie.rules.extractor import RulesExtractor
from memory.openie.rules.titles import plain_title
from store.types import MENTION, PassageText, Triple

MANUAL = "execve(2) System Calls Manual execve(2)"
PAGE = "socket — Low-level networking interface — Socket documentation"


def _triples(title: str, text: str) -> set[Triple]:
    return set(RulesExtractor().extract([PassageText("p", title, text)])[0].triples)


def test_the_labelled_sample_is_mostly_true_and_still_read() -> None:
    rows = read_labelled()
    labels = [row["label"] for row in rows]
    assert len(rows) >= 200
    assert labels.count("true") >= LEAST_TRUE * len(rows)
    assert labels.count("wrong") <= MOST_WRONG * len(rows)
    kept = [row["label"] for row, each in zip(rows, still_read(rows), strict=True) if each]
    assert kept.count("true") >= LEAST_KEPT * labels.count("true")
    assert kept.count("wrong") <= MOST_WRONG_READ * len(kept)


@pytest.mark.parametrize(
    ("title", "name"),
    [
        (MANUAL, "execve"),
        ("CREATE TABLE(7) Documentation CREATE TABLE(7)", "create table"),
        (PAGE, "socket"),
        ("9.2.1.1. Key-based login", "Key-based login"),
        ("Chapter 11. Data conversion", "Data conversion"),
        ("Split the string¶", "Split the string"),
        ("README: Lantern 0.23", "Lantern 0.23"),
        ("Lantern README -- Introduction information", "Lantern"),
        ("2001: A Space Odyssey", "2001: A Space Odyssey"),
        ("USS Donegal (1860)", "USS Donegal (1860)"),
        ("12 Monkeys", "12 Monkeys"),
    ],
)
def test_a_title_is_the_name_in_it(title: str, name: str) -> None:
    assert plain_title(title)[0] == name


def test_page_title_with_a_description_gives_a_statement() -> None:
    assert ("socket", "is", "low level networking interface") in _triples(PAGE, "This module is not for everyone.")


def test_this_module_refers_to_the_name_in_the_title() -> None:
    found = _triples(PAGE, "This module provides access to the BSD socket interface.")
    assert ("socket", "provides access to", "bsd socket interface") in found


@pytest.mark.parametrize(
    "text",
    [
        ">>> return_value = 2500\n>>> date(10, 000)\n2500",
        "$ git push origin main\nEverything up-to-date",
        "def get_name(self):\n    return self.name",
        "- index\n- modules |\n- next |\n- previous |\n- Python »",
        "int execve(const char *pathname, char *const argv[]);",
        "socket.getaddrinfo(host, port, family=0)¶",
        "5.1. List of network tools . . . . . . . 12",
        "-v, --verbose    be verbose\n--quiet",
        "© Copyright 2001-2026, Some Foundation.\nCreated using Sphinx 5.3.0.",
        "See the manual of Anselm Rook for details.",
        "SEE ALSO\n    chmod(2), fork(2)",
    ],
)
def test_code_and_navigation_state_nothing(text: str) -> None:
    assert not _triples(MANUAL, text)


def test_table_of_contents_is_no_entity() -> None:
    found = _triples("socket — Sockets — Docs › Table of Contents", "- Creating sockets\n- Socket Objects\n- Example")
    assert "table of contents" not in {end for subject, _, object_ in found for end in (subject, object_)}


def test_names_are_not_tied_to_the_title_of_a_manual() -> None:
    found = _triples(MANUAL, "The kernel of Linux runs on PowerPC, Alpha and Sparc.")
    assert MENTION not in {predicate for _, predicate, _ in found}


@pytest.mark.parametrize(
    ("text", "triple"),
    [
        ("The walk handler reads the inode table.", ("walk handler", "reads", "inode table")),
        ("A net mask is an IP address.", ("net mask", "is", "ip address")),
        ("Symbolic links may cross filesystem boundaries.", ("symbolic links", "may cross", "filesystem boundaries")),
        ("Uniform Resource Names (URN) are opaque.", ("uniform resource names", "also known as", "urn")),
        ("The lock file named by the walk handler opens the table.", ("lock file", "named by", "walk handler")),
        ("The walk handler is a daemon. count() reports a total.", ("walk handler", "is", "daemon")),
        ("The inode table is more useful for large disks.", ("inode table", "is more useful for", "large disks")),
        ("The inode table is too big for small disks.", ("inode table", "is too big for", "small disks")),
        ("The walk handler runs on Linux, not on Solaris.", ("walk handler", "runs on", "linux")),
        ("The lock file (but not its table) is made by the walk handler.", ("lock file", "is made by", "walk handler")),
        ("The walk handler will have inode dependencies.", ("walk handler", "will have", "inode dependencies")),
        ("It returns a table. inode handlers read the lock file.", ("inode handlers", "read", "lock file")),
        (
            "Since no options are set, the walk handler reads the inode table.",
            ("walk handler", "reads", "inode table"),
        ),
    ],
)
def test_direct_statement_in_a_manual_is_extracted(text: str, triple: Triple) -> None:
    assert triple in _triples(MANUAL, text)


@pytest.mark.parametrize(
    "text",
    [
        "Setting the network mask is a privileged operation.",
        "Set to true when the host system is an Apple computer.",
        "The following functions return a character sequence.",
        "It is a good idea to use the default value.",
        "If the kernel handler checks the inode table, it sleeps.",
        "The walk handler keeps partial tables stable.",
        "The formats include plain text and simple tables designed for human readers.",
        "The walk handler means, for a printed book, the title page itself.",
        "The walk handler puts them into the inode table.",
        "Values returned by the walk handler will be raw bytes.",
        "Using the walk handler can corrupt the inode table.",
        "Any programs that read the inode table sleep.",
        "[Docs] Update the inode table section.",
        "Kernel questions on the inode table.",
        "Updates by the walk handler.",
        "Doing so requires the inode table.",
        "An inode table is created 6 weeks before.",
        "The walk handler is the tool (old) editor.",
        "The walk handler is a popular machine learning format.",
        "Asynchronously reads the inode table.",
        "It is up to the walk handler to choose an inode table.",
        "But it is rarely necessary in practice to have an inode table that is different from the kernel table.",
        "While the walk handler is open on the inode table, it sleeps.",
        "Nobody sane reads the inode table.",
        "Any Redbird target of type OBJECT or INTERFACE will ignore the inode table.",
        "Only a single daemon can hold an inode table.",
        "The Google Managed inode table of the kernel is small.",
        "A Google managed inode table can grow.",
        "The actual value used is stored in the inode column.",
        "What remote inode clients are allowed to connect to the kernel server port.",
        "You can, of course use the walk process for inode accounts, which will lock the table for future editing.",
        "It fails after the walk handler is moved to the inode table.",
        "Once it is set, the walk handler reads the inode table.",
        "These walk handlers are copies of the inode table.",
        "Configuring a Redbird cache is a privileged operation.",
        "The walk handler does not load inode tables that contain labels.",
        "The walk handlers relate to or control inode tables.",
        "This option indicates that the walk handler should ignore the inode table.",
        "The inode table can be replaced by a kernel-specific set of names.",
        "The best possible advice is to never uncheck Enable Inode Management.",
        "To edit saved inode configurations, open the table via Walk, edit and apply the new inode options.",
        "The walk handler currently does not support multi-character collating elements.",
        "The walk handler takes the inode table out of service.",
        "You should ensure that the walk handler is a good daemon.",
        "As a check, the INODE_TABLE generated on a mounted disk for the install should not contain names.",
        "A node size is the number of bytes of the structure that defines an inode table.",
        "Design Documentation How Inode Corruption Can Occur.",
        ":syntax region xList start=/[/ end=/]/ contains=ALLBUT,xString",
        "LIMIT If it is set, Redbird Sync stores the files in Oslo.",
        "Otherwise, Redbird Sync stores the files in Oslo.",
    ],
)
def test_ambiguous_sentence_in_a_manual_gives_no_statement(text: str) -> None:
    assert not _triples(MANUAL, text)


def test_table_rows_have_their_first_column_as_subject() -> None:
    found = _triples("2.1. Tools › List of tools", "package: dpkg-dev; size: 20; description: tools to build packages")
    assert found == {("dpkg dev", "description", "tools to build packages")}


def test_table_rows_have_the_first_column_without_repetitions_as_subject() -> None:
    text = (
        "Class: TableApi; Method: drop_table; Description: Drops a lamp table\n"
        "Class: TableApi; Method: list_tables; Description: Lists lamp tables"
    )
    found = _triples("2.1. Tools › List of tools", text)
    assert ("drop table", "description", "drops a lamp table") in found
    assert "tableapi" not in {subject for subject, _, _ in found}


@pytest.mark.parametrize("row", ["Operator: +; Description: plus; Use: numbers", "Key: cover; Description: See Image"])
def test_rows_about_a_symbol_and_references_state_nothing(row: str) -> None:
    assert not {triple for triple in _triples("Lantern", row) if triple[1] == "description"}


def test_words_hyphenated_at_a_line_end_are_joined() -> None:
    found = _triples(MANUAL, "The walk handler reads the inode ta\u2010\n       ble.")
    assert ("walk handler", "reads", "inode table") in found


def test_a_report_with_numbered_chapters_is_no_manual() -> None:
    found = _triples("The flood › 3. Damage", "The flood reached Tollmin. Odile Brandt led the Candlemas Commission.")
    assert ("odile brandt", "led", "candlemas commission") in found
    assert MENTION in {predicate for _, predicate, _ in found}
