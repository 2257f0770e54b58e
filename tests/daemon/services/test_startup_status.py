"""`status` while the memory is still opening."""

import asyncio

from daemon.contract.scope import ClientScope
from daemon.services.status import StatusService


def test_status_during_the_start_hides_memory_use_from_limited_clients() -> None:
    service = StatusService("hash/", "rules", None)
    assert asyncio.run(service.status()).rss_bytes > 0
    assert asyncio.run(service.status(ClientScope(client="reader", visible=("hr",)))).rss_bytes == 0
