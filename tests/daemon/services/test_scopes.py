"""The documents in a scope."""

from typing import Any
from unicodedata import normalize

import pytest

from daemon.contract.scope import Scope
from daemon.services.scopes import ScopeService
from store.types import Document


def _holds(scope: dict[str, Any], uri: str, metadata: dict[str, Any] | None = None) -> bool:
    service = ScopeService(None, lambda: ())  # type: ignore[arg-type]
    document = Document(uri, "", metadata=metadata or {})
    return service.holds(Scope.model_validate(scope))(document)


COMPOSED, APART = "file:///srv/B%C3%BCcher/caf%C3%A9.md", "file:///srv/Bu%CC%88cher/cafe%CC%81.md"


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("uri", [COMPOSED, APART, "file:///srv/B%C3%BCcher/cafe%CC%81.md"])
def test_a_folder_is_found_however_its_marks_are_written(form: Any, uri: str) -> None:
    assert _holds({"in": [normalize(form, "/srv/Bücher")]}, uri)
    assert _holds({"in": [normalize(form, "/srv/Bücher/café.md")]}, uri)
    assert not _holds({"in": [normalize(form, "/srv/Büch")]}, uri)
    assert not _holds({"in": ["/srv/Bucher"]}, uri)


def test_a_uri_is_taken_as_it_stands() -> None:
    assert _holds({"in": [APART]}, APART)
    assert not _holds({"in": [APART]}, COMPOSED)


def test_a_name_that_is_no_utf_8_is_beside_one_that_is() -> None:
    assert _holds({"in": ["/srv/Bücher"]}, "file:///srv/B%C3%BCcher/caf%E9.md")
    assert not _holds({"in": ["/srv/café"]}, "file:///srv/caf%E9.md")


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_value_is_the_same_however_its_marks_are_written(form: Any) -> None:
    assert _holds({"where": {"author": normalize(form, "Müller")}}, "added:1", {"author": normalize("NFD", "Müller")})
    assert _holds({"where": {"author": normalize(form, "Müller")}}, "added:1", {"author": [normalize("NFC", "Müller")]})
    assert not _holds({"where": {"author": "Muller"}}, "added:1", {"author": "Müller"})
