"""What the last commits have touched, for scopes that are brought up to date when they are next asked."""

from collections import deque

from store.scope.changes import Changes

LOGGED_CHANGES = 20_000
"""Documents and passages of which it is known which commit touched them. A scope that is further behind is built anew."""


class ChangeLog:
    """The commit thread adds; others ask. Each call is made while no commit is being applied."""

    def __init__(self) -> None:
        self._entries: deque[tuple[int, Changes]] = deque()
        self._size = 0
        self._forgotten = 0
        """The last commit of which nothing is known any more."""

    def add(self, commit: int, changes: Changes) -> None:
        self._entries.append((commit, changes))
        self._size += len(changes)
        while self._size > LOGGED_CHANGES:
            self._forgotten, oldest = self._entries.popleft()
            self._size -= len(oldest)

    def since(self, commit: int) -> Changes | None:
        """What the commits after `commit` have touched; None where that is not known any more."""
        if commit < self._forgotten:
            return None
        found = Changes()
        for number, changes in reversed(self._entries):
            if number <= commit:
                break
            found.add(changes)
        return found

    def clear(self, commit: int) -> None:
        """Forgets all: the rows have other numbers since `commit`."""
        self._entries.clear()
        self._size, self._forgotten = 0, commit
