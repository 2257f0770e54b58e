"""The operations of an agent, over every transport."""

import json

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import TextResourceContents

from tests.daemon.mcp.sdk_client import CONNECTIONS, Connection, talk, text_of
from tests.e2e.real_hippod import Daemon, until

pytestmark = pytest.mark.daemon

READING = ["search", "ask", "show", "list", "read", "status"]
WRITING = ["add", "forget"]
STDIO = CONNECTIONS[0]


@pytest.mark.parametrize("connection", CONNECTIONS, ids=str)
def test_agent_can_list_search_ask_add_and_forget(memory: Daemon, connection: Connection) -> None:
    async def script(client: Client) -> None:
        assert client.server_info is not None and client.server_info.name == "hippod"
        assert "memory" in (client.instructions or "")
        assert [tool.name for tool in (await client.list_tools()).tools] == READING + WRITING

        found = (await client.call_tool("search", {"query": "Who built the Quill lamp?", "k": 2})).structured_content
        assert "Sabine Rell built the Quill lamp" in found["passages"][0]["text"]
        assert found["passages"][0]["document"].endswith("/lamp.md")
        assert ("sabine rell", "built", "quill lamp") in [
            (t["subject"], t["predicate"], t["object"]) for t in found["triples"]
        ]
        assert "explain" not in found

        heard: list[tuple[float, str | None]] = []

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            heard.append((progress, message))

        question = {"question": "Who built the Quill lamp?"}
        asked = await client.call_tool("ask", question, progress_callback=hear)
        assert not asked.is_error
        assert "It is so." in asked.structured_content["answer"]
        assert asked.structured_content["citations"][0]["document"].endswith("/lamp.md")
        assert heard and [at for at, _ in heard] == sorted({at for at, _ in heard})
        assert any(message and "It is" in message for _, message in heard)

        document = {
            "text": "Oona Vek tunes the Zither of Hask.",
            "title": "Zither",
            "metadata": {"by": "me", "connection": connection},
        }
        added = (await client.call_tool("add", {**document, "wait_s": 90})).structured_content
        uri = added["uri"]
        assert (added["searchable"], added["document"]["state"]) == (True, "indexed")
        found = (await client.call_tool("search", {"query": "Who tunes the Zither of Hask?"})).structured_content
        assert found["passages"][0]["document"] == uri
        shown = (await client.call_tool("show", {"key": uri})).structured_content
        assert (shown["kind"], shown["metadata"]["by"]) == ("document", "me")

        gone = await client.call_tool("forget", {"uris": [uri, "added:nobody"]})
        assert gone.structured_content == {
            "removed": 1,
            "missing": 1,
            "missing_uris": ["added:nobody"],
        }
        found = (await client.call_tool("search", {"query": "Who tunes the Zither of Hask?"})).structured_content
        assert all("Zither" not in passage["text"] for passage in found["passages"])

    talk(memory, connection, script, "--write")


def test_list_and_read_tools_return_documents_in_pages(memory: Daemon) -> None:
    async def script(client: Client) -> None:
        listed: list[str] = []
        after: dict[str, str] = {}
        while True:
            page = await client.call_tool("list", {"prefix": "added:note-", "limit": 100, **after})
            listed += [each["uri"] for each in page.structured_content["documents"]]
            if "next" not in page.structured_content:
                break
            after = {"after": page.structured_content["next"]}
        assert listed == sorted(memory.documents(prefix="added:note-", state="indexed")) and len(listed) > 100
        failed = await client.call_tool("list", {"state": "failed"})
        assert failed.structured_content["documents"] == []

        paragraphs = [f"Part {n} tells of the gull number {n}. " * 40 for n in range(4)]
        book = {"title": "Book", "text": "\n\n".join(paragraphs), "wait_s": 90}
        uri = (await client.call_tool("add", book)).structured_content["uri"]
        whole = (await client.call_tool("read", {"uri": uri})).structured_content
        assert (whole["title"], whole["first"], whole["last"]) == ("Book", 1, whole["passages"])
        assert "next" not in whole and whole["passages"] > 1
        pieces, first = [], 1
        while True:
            piece = (await client.call_tool("read", {"uri": uri, "first": first, "max_chars": 1})).structured_content
            assert (piece["first"], piece["last"]) == (first, first)
            pieces.append(piece["text"])
            if "next" not in piece:
                break
            first = piece["next"]
        assert "\n\n".join(pieces) == whole["text"]
        for arguments, said in (
            ({"uri": uri, "first": 999}, "there is none from 999 on"),
            ({"uri": "quill lamp"}, "use show"),
        ):
            wrong = await client.call_tool("read", arguments)
            assert wrong.is_error and said in text_of(wrong)
        await client.call_tool("forget", {"uris": [uri]})

    talk(memory, STDIO, script, "--write")


def test_answers_note_documents_that_are_not_indexed_yet(memory: Daemon) -> None:
    async def script(client: Client) -> None:
        for tool, arguments in (
            ("search", {"query": "Quill lamp"}),
            ("ask", {"question": "Who built the Quill lamp?"}),
        ):
            answer = (await client.call_tool(tool, arguments)).structured_content
            assert "1 document is still being indexed" in answer["note"]

    with memory.reading_paused():
        uri = memory.write("late.md", "# Late\nNobody has read this.\n")
        until(lambda: uri in memory.documents(state="pending"), "the file is noticed")
        talk(memory, CONNECTIONS[2], script)
        (memory.drive / "late.md").unlink()
    memory.wait()


def test_search_supports_why_mode_and_as_of(memory: Daemon) -> None:
    async def script(client: Client) -> None:
        first = {"query": "Who built the Quill lamp?", "k": 1}
        why = (await client.call_tool("search", {**first, "why": True})).structured_content["explain"]
        assert why["passages"][0]["path"]["steps"][-1]["text"] == "Project Attic"
        commit = (await client.call_tool("status", {})).structured_content["commit"]
        then = (await client.call_tool("search", {**first, "as_of": 1, "mode": "dense"})).structured_content
        assert then["commit"] == 1 < commit
        assert then["mode"] == "dense"
        never = await client.call_tool("search", {**first, "as_of": commit + 1000})
        assert never.is_error and "The memory of that time is not available" in text_of(never)

    talk(memory, STDIO, script)


def test_text_content_equals_the_structured_content(memory: Daemon) -> None:
    async def script(client: Client) -> None:
        status = await client.call_tool("status", {})
        assert json.loads(text_of(status)) == status.structured_content

    talk(memory, CONNECTIONS[3], script)


def test_tools_declare_schemas_and_whether_they_change_data(memory: Daemon) -> None:
    async def script(client: Client) -> None:
        for tool in (await client.list_tools()).tools:
            assert tool.title and tool.description and tool.annotations is not None
            assert tool.annotations.read_only_hint == (tool.name in READING)
            assert tool.annotations.destructive_hint == (tool.name in WRITING)
            assert tool.annotations.open_world_hint is False
            assert tool.input_schema["additionalProperties"] is False
            assert all("description" in field for field in tool.input_schema["properties"].values())
            assert tool.output_schema is not None and tool.output_schema["type"] == "object"

    talk(memory, STDIO, script, "--write")


@pytest.mark.parametrize("connection", [CONNECTIONS[0], CONNECTIONS[3]], ids=str)
def test_malformed_calls_are_errors_and_the_session_goes_on(memory: Daemon, connection: Connection) -> None:
    async def script(client: Client) -> None:
        for name, arguments, said in (
            ("search", {}, "query: field required"),
            ("search", {"query": " "}, "query: "),
            (
                "search",
                {"query": "x", "topk": 3},
                "topk: is unknown; the arguments are query, k, mode, as_of, scope, why",
            ),
            ("search", {"query": "x", "k": 0}, "k: input should be greater than or equal to 1"),
            ("search", {"query": "x", "mode": "psychic"}, "mode: input should be 'fused'"),
            ("ask", {"question": "x", "steps": 99}, "steps: "),
            ("add", {"text": ""}, "text: "),
            ("forget", {"uris": []}, "uris: "),
            ("show", {"key": "nobody and nothing"}, "Nothing in the memory is named"),
        ):
            answer = await client.call_tool(name, arguments)
            assert answer.is_error, (name, arguments)
            assert said in text_of(answer)
        with pytest.raises(MCPError, match="The tool 'dance' does not exist; the tools are search, ask"):
            await client.call_tool("dance", {})
        with pytest.raises(MCPError, match="no such document"):
            await client.read_resource("hippod://document/nobody")
        with pytest.raises(MCPError, match="no such document"):
            await client.read_resource("file:///etc/passwd")
        with pytest.raises(MCPError, match="cursor"):
            await client.list_resources(cursor="nonsense!")
        assert not (await client.call_tool("status", {})).is_error

    talk(memory, connection, script, "--write")


@pytest.mark.parametrize("connection", [CONNECTIONS[1], CONNECTIONS[2]], ids=str)
def test_documents_and_passages_are_resources_in_pages(memory: Daemon, connection: Connection) -> None:
    async def script(client: Client) -> None:
        listed, cursor, pages = [], None, 0
        while True:
            page = await client.list_resources(cursor=cursor)
            listed += page.resources
            pages, cursor = pages + 1, page.next_cursor
            if cursor is None:
                break
        indexed = {entry["uri"] for entry in memory.documents(state="indexed").values()}
        assert pages == 2 and len(listed) == len({each.uri for each in listed}) == len(indexed)
        lamp = next(each for each in listed if each.name == "Project Attic")
        assert lamp.annotations is not None and lamp.annotations.last_modified
        [text] = (await client.read_resource(lamp.uri)).contents
        assert isinstance(text, TextResourceContents)
        assert "Sabine Rell built the Quill lamp" in text.text and text.mime_type == "text/plain"

        templates = (await client.list_resource_templates()).resource_templates
        assert [each.uri_template for each in templates] == ["hippod://document/{uri}", "hippod://passage/{id}"]
        found = (await client.call_tool("search", {"query": "Quill lamp", "k": 1})).structured_content["passages"][0]
        [text] = (await client.read_resource(f"hippod://passage/{found['id']}")).contents
        assert isinstance(text, TextResourceContents)
        assert text.text == f"{found['title']}\n\n{found['text']}"
        with pytest.raises(MCPError, match="no such"):  # a passage's id names no document
            await client.read_resource(f"hippod://document/{found['id']}")

    talk(memory, connection, script)
