"""Any string becomes one a tokeniser accepts."""


def tokenisable(text: str, limit: int) -> str:
    """The first `limit` characters of `text`, valid Unicode.

    Cut before tokenising, because a tokeniser reads all of a megabyte before it throws all but a page away. Surrogates
    that stand as a pair become the character they mean, lone ones U+FFFD (a tokeniser refuses either).
    """
    text = text[:limit]
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
