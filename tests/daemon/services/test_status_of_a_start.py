"""`status` while the memory is still opening."""

import asyncio

from daemon.contract.scope import ClientScope
from daemon.services.status import StatusService


def test_a_client_that_sees_some_documents_does_not_learn_the_size_of_a_starting_hippod() -> None:
    service = StatusService("hash/", "rules", None)
    assert asyncio.run(service.status()).rss_bytes > 0
    assert asyncio.run(service.status(ClientScope(client="reader", visible=("hr",)))).rss_bytes == 0
