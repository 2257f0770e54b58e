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
def test_folder_scope_matches_any_unicode_normalisation_of_a_path(form: Any, uri: str) -> None:
    assert _holds({"in": [normalize(form, "/srv/Bücher")]}, uri)
    assert _holds({"in": [normalize(form, "/srv/Bücher/café.md")]}, uri)
    assert not _holds({"in": [normalize(form, "/srv/Büch")]}, uri)
    assert not _holds({"in": ["/srv/Bucher"]}, uri)


def test_uri_scope_is_not_unicode_normalised() -> None:
    assert _holds({"in": [APART]}, APART)
    assert not _holds({"in": [APART]}, COMPOSED)


def test_folder_scope_contains_files_with_non_utf8_names() -> None:
    assert _holds({"in": ["/srv/Bücher"]}, "file:///srv/B%C3%BCcher/caf%E9.md")
    assert not _holds({"in": ["/srv/café"]}, "file:///srv/caf%E9.md")


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_metadata_value_matches_any_unicode_normalisation(form: Any) -> None:
    assert _holds({"where": {"author": normalize(form, "Müller")}}, "added:1", {"author": normalize("NFD", "Müller")})
    assert _holds({"where": {"author": normalize(form, "Müller")}}, "added:1", {"author": [normalize("NFC", "Müller")]})
    assert not _holds({"where": {"author": "Muller"}}, "added:1", {"author": "Müller"})
