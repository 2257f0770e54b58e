"""The queries' shares of the processors."""

import time

from daemon.services import query_shares
from daemon.services.query_shares import QueryShares


def test_held_recently_is_true_during_a_share_and_shortly_after(monkeypatch):
    monkeypatch.setattr(query_shares, "RECENT_S", 1e9)
    shares = QueryShares(2)
    assert not shares.held_recently()
    with shares:
        shares.release()  # a query that waits for the model lends its share
        assert shares.held_recently()
        monkeypatch.setattr(query_shares, "RECENT_S", 0.0)
        assert not shares.held_recently()
        shares.acquire()
        assert shares.held_recently()
    time.sleep(0.001)
    assert not shares.held_recently()
