"""Scopes of books, because HGMem asks each question of one book only."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from urllib.parse import unquote

from cli.evaluation.gold import same_text
from cli.evaluation.questions import EvalQuestion
from daemon.contract.documents import DocumentEntry


@dataclass
class BookScopes:
    """Turns the names of books into scopes. A book is a document with this title, or a file or folder with this name."""

    list_documents: Callable[[], Sequence[DocumentEntry]]
    absent: int = 0
    """Number of questions so far whose book the memory lacks. They are asked of the whole memory."""

    def scoped(self, question: EvalQuestion) -> EvalQuestion:
        if question.book is None or question.scope is not None:
            return question
        prefixes = self._prefixes.get(_key(question.book))
        if not prefixes:
            self.absent += 1
            return question
        return replace(question, scope={"in": sorted(prefixes)})

    @cached_property
    def _prefixes(self) -> dict[str, set[str]]:
        """Returns the URIs of documents and folders by name."""
        found: dict[str, set[str]] = defaultdict(set)
        for entry in self.list_documents():
            found[_key(entry.title)].add(entry.uri)
            scheme, colon, path = entry.uri.partition(":")
            *folders, file = path.split("/")
            for name in (file, file.rpartition(".")[0]):
                found[_key(unquote(name))].add(entry.uri)
            for depth, folder in enumerate(folders, 1):
                found[_key(unquote(folder))].add(f"{scheme}{colon}{'/'.join(folders[:depth])}/")
        found.pop("", None)
        return found


def _key(name: str) -> str:
    return same_text(name).casefold()
