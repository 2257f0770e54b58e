"""Word lists, written as text."""


def words_of(text: str) -> frozenset[str]:
    """The set of the text's words."""
    return frozenset(text.split())
