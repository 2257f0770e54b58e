"""The documents and passages that recent commits changed, for updating scopes on their next use."""

from collections import deque

from store.scope.changes import Changes

KEPT_CHANGES = 20_000
"""Number of changed documents and passages that are kept. A scope that is further behind is rebuilt."""


class RecentChanges:
    """The changes of recent commits. The commit thread adds, other threads read; no commit may be applied during a call."""

    def __init__(self) -> None:
        self._entries: deque[tuple[int, Changes]] = deque()
        self._size = 0
        self._forgotten = 0
        """The last commit whose changes were dropped."""

    def add(self, commit: int, changes: Changes) -> None:
        self._entries.append((commit, changes))
        self._size += len(changes)
        while self._size > KEPT_CHANGES:
            self._forgotten, oldest = self._entries.popleft()
            self._size -= len(oldest)

    def since(self, commit: int) -> Changes | None:
        """Returns the changes of the commits after `commit`; None if some were dropped."""
        if commit < self._forgotten:
            return None
        found = Changes()
        for number, changes in reversed(self._entries):
            if number <= commit:
                break
            found.add(changes)
        return found

    def clear(self, commit: int) -> None:
        """Drops all changes, because rows have been renumbered as of `commit`."""
        self._entries.clear()
        self._size, self._forgotten = 0, commit
