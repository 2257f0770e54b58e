"""Plain text has no specification but its encoding: the places are where a reader could look for a title, or stop looking."""

from tests.consumers.parsing.conservation.places import FormatTable, Words

PLACES = {
    "first line": ("as a title", "{}\n\n"),
    "line below a title": ("RFC 678 1", "Notes of the harbour master\n===========================\n{}\n\n"),
    "paragraph": ("RFC 678 1", "The gauge stands at the weir, and {} reads it.\n\n"),
    "word broken at a line's end": ("RFC 678 4", "It is the {}\nof the weir.\n\n"),
    "word with a soft hyphen": ("Unicode 6.2", "It is {} of the weir.\n\n"),
    "behind a form feed": ("RFC 678 2", "\x0c{}\n\n"),
    "behind a control character": ("ECMA-48 5.3", "\x1b[31m{}\x1b[0m\n\n"),
    "behind 64 KB": ("", "{}"),
    "last line": ("RFC 678 1", "{}"),
}


def write(words: Words) -> bytes:
    """Text in Windows-1252 whose first letter beyond ASCII comes late."""
    text = ""
    for place, (_, line) in PLACES.items():
        if place not in words:
            continue
        word = words[place]
        if place == "word broken at a line's end":
            word = f"{word[:4]}\u00ad\n{word[4:]}"
        if place == "word with a soft hyphen":
            word = f"{word[:4]}\u00ad{word[4:]}"
        if place == "behind 64 KB":
            text += (
                "The gauge reads nine, and nothing else happened.\n\n" * 1500 + "Der Müller überprüfte die Fähre.\n\n"
            )
        text += line.format(word)
    return text.encode("cp1252")


TABLE = FormatTable("notes.txt", "none", {place: section for place, (section, _) in PLACES.items()}, write)
