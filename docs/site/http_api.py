"""The HTTP API's page, from the document that `GET /openapi.json` answers with."""

import re
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import Any, cast

from daemon.api import openapi
from daemon.api.app import build
from daemon.api.context import ApiContext
from daemon.api.ports import StartupGate, StartupPorts
from daemon.api.settings import ApiLimits
from daemon.app.lifecycle import add_service_routes
from docs.site.markdown import cell, code, escaped

INTRODUCTION = """# HTTP API

hippod answers HTTP with JSON on its Unix socket, and on TCP where `[api] tcp` and a token are set:

```console
$ curl --unix-socket /run/hippod/hippod.sock http://hippod/v1/status
$ curl --unix-socket /run/hippod/hippod.sock http://hippod/v1/query --json '{"query": "Who founded Project Lantern?"}'
$ curl --header "Authorization: Bearer $TOKEN" http://127.0.0.1:7411/v1/status
```

This page is made from what `GET /openapi.json` answers with; {download}`the document itself <openapi.json>` is for programs.
"""


def document() -> dict[str, Any]:
    """The OpenAPI document, of an application that serves nothing: its routes are never called."""
    context = ApiContext(cast("StartupPorts", None), cast("StartupGate", None), ApiLimits())
    return openapi.document(build(context, [add_service_routes]), version("hippod"))


def page(found: Mapping[str, Any]) -> str:
    """The document as Markdown: routes, problems, and the types that both refer to."""
    lines = [INTRODUCTION, "## Routes", ""]
    for path, methods in found["paths"].items():
        for method, operation in methods.items():
            lines += [*_operation(path, method, operation), ""]
    lines += ["## Problems", "", *_problems(found), "", "## Types", ""]
    for name, schema in sorted(found["components"]["schemas"].items()):
        lines += [f"({_label(name)})=", f"### `{name}`", "", *_schema(schema), ""]
    return "\n".join(lines).rstrip() + "\n"


def _operation(path: str, method: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"### `{method.upper()} {path}`", "", escaped(operation.get("summary", "")) + ".", "")
    if said := operation.get("description"):
        yield from (_prose(said), "")
    if parameters := operation.get("parameters"):
        yield from ("| parameter | in | type | |", "| --- | --- | --- | --- |")
        for each in parameters:
            schema = each.get("schema") or next(iter(each["content"].values()))["schema"]
            said = _sentence(each.get("description") or schema.get("description", ""))
            yield f"| `{each['name']}` | {each['in']} | {cell(_type(schema))} | {cell(said + _limits(schema))} |"
        yield ""
    if body := operation.get("requestBody"):
        kinds = [f"{_type(given['schema'])} as `{kind}`" for kind, given in body["content"].items()]
        yield from (f"**Takes** {' or '.join(kinds)}{'' if body.get('required') else ' (may be left out)'}.", "")
    for status, answer in operation["responses"].items():
        if not status.startswith(("4", "5")):
            kinds = [
                f"{_type(given.get('schema', {}))} as `{kind}`" for kind, given in answer.get("content", {}).items()
            ]
            yield from (f"**Gives** {status}" + (f": {' or '.join(kinds)}" if kinds else "") + ".", "")
    refused = [status for status in operation["responses"] if status.startswith(("4", "5"))]
    yield f"**Refuses** with [problems](#problems): {', '.join(refused)}."


def _problems(found: Mapping[str, Any]) -> Iterator[str]:
    """One row for each kind of problem, whichever routes have it."""
    kinds: dict[tuple[str, str], str] = {}
    for methods in found["paths"].values():
        for operation in methods.values():
            for status, answer in operation["responses"].items():
                for title, kind, said in re.findall(r"(.*?) \(`(urn:[^`]+)`\): (.*)", answer["description"]):
                    kinds[status, kind] = f"{title}. {said}"
    yield "A refused request gets a [`Problem`](#type-problem) as `application/problem+json` (RFC 9457). Its `type` is one of:"
    yield from ("", "| status | type | |", "| --- | --- | --- |")
    for (status, kind), said in sorted(kinds.items()):
        yield f"| {status} | `{kind}` | {cell(escaped(said))} |"


def _schema(schema: Mapping[str, Any]) -> Iterator[str]:
    if said := schema.get("description"):
        yield from (_prose(said), "")
    if "properties" not in schema:
        yield f"{_type(schema)}."
        return
    required = schema.get("required", [])
    yield from ("| field | type | |", "| --- | --- | --- |")
    for name, field in schema["properties"].items():
        said = _sentence(field.get("description", "")) + _limits(field)
        yield f"| {code(name)}{' (required)' if name in required else ''} | {cell(_type(field))} | {cell(said)} |"


def _type(schema: Mapping[str, Any]) -> str:
    """A schema in few words; types of the contract are links to what says more."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[`{name}`](#{_label(name)})"
    if "const" in schema:
        return code(str(schema["const"]))
    if "enum" in schema:
        return ", ".join(code(str(value)) for value in schema["enum"])
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(_type(each) for each in schema[several]))
    match schema.get("type"):
        case "array" if "prefixItems" in schema:
            return f"array of {len(schema['prefixItems'])}: {', '.join(_type(each) for each in schema['prefixItems'])}"
        case "array":
            return f"array of {_type(schema.get('items', {}))}"
        case "object" if isinstance(schema.get("additionalProperties"), Mapping):
            return f"object of {_type(schema['additionalProperties'])}"
        case "string" if "format" in schema:
            return f"string ({schema['format']})"
        case str(kind):
            return kind
        case _:
            return "anything"


def _limits(schema: Mapping[str, Any]) -> str:
    """What a value may be, and what it is where none is given."""
    names = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    said = [f"{sign} {schema[name]}" for name, sign in names.items() if name in schema]
    if "maxLength" in schema:
        said.append(f"at most {schema['maxLength']:,} characters")
    if "maxItems" in schema:
        said.append(f"at most {schema['maxItems']:,} of them")
    default = schema.get("default")
    if default is not None and not isinstance(default, dict):
        said.append("default " + code(str(default).lower() if isinstance(default, bool) else str(default) or '""'))
    text = "; ".join(said)
    return text[0].upper() + text[1:] + "." if text else ""


def _label(name: str) -> str:
    return f"type-{name.lower()}"


def _sentence(text: str) -> str:
    return escaped(text.rstrip(".") + ". ") if text else ""


def _prose(text: str) -> str:
    return "\n\n".join(escaped(" ".join(part.split())) for part in text.split("\n\n"))
