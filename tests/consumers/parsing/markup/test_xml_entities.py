"""Entities that an XML file declares are resolved in every encoding."""

import pytest

from consumers.parsing import parse_data
from consumers.splitting import SplitSettings

XML = '<?xml version="1.0"?><!DOCTYPE r [<!ENTITY co "Acme Corporation">]><r><t>It was made by &co; in 1990.</t></r>'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-be", "utf-16-le"])
def test_declared_entity_is_resolved(encoding: str) -> None:
    data = XML.encode(encoding)
    if encoding.startswith("utf-16-"):
        data = "\ufeff".encode(encoding) + data
    [document] = parse_data(data, b"a.xml", "file:///a.xml", SplitSettings())
    assert "made by Acme Corporation in 1990" in " ".join(passage.text for passage in document.passages)
