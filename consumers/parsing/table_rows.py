"""Rows of tables as text that stands on its own: every value with the name of its column."""

from collections.abc import Sequence


def row_text(header: Sequence[str], row: Sequence[str]) -> str:
    """`column: value; column: value`, empty cells left out."""
    parts = []
    for index, value in enumerate(row):
        value = " ".join(value.split())
        if value:
            name = " ".join(header[index].split()) if index < len(header) else ""
            parts.append(f"{name}: {value}" if name and name != value else value)
    return "; ".join(parts)


def is_header(row: Sequence[str]) -> bool:
    """Whether a table's first row names its columns: two or more different short words in it and no numbers."""
    filled = [cell.strip() for cell in row if cell.strip()]
    return (
        len(filled) >= 2
        and len(set(filled)) == len(filled)
        and all(len(cell) <= 60 and not _is_number(cell) for cell in filled)
    )


def _is_number(cell: str) -> bool:
    return not any(char.isalpha() for char in cell)
