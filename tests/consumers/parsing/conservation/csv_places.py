"""CSV: the places are cited by sections of RFC 4180; those that it does not know are what programs write."""

from tests.consumers.parsing.conservation.places import FormatTable, Words

PLACES = {
    "line above the table": "written by banks and surveys",
    "name and value above the table": "written by banks and surveys",
    "name of a column": "2, 3",
    "value": "2, 4",
    "quoted value": "2, 5",
    "value with a line break": "2, 6",
    "value with a delimiter": "2, 6",
    "value with quotes": "2, 7",
    "value beyond the names": "2, 4",
    "row that is short": "2, 4",
    "row below an empty one": "2, 1",
    "last row without a line end": "2, 2",
}


def write(given: Words) -> bytes:
    rows = ["sep=;"]
    if "line above the table" in given:
        rows.append(f"{given['line above the table']};;;")
    if "name and value above the table" in given:
        rows.append(f"Account:;{given['name and value above the table']};;")
    rows.append(f"Name;{given.get('name of a column', 'Place')};Area;Year")
    for place, markup in (
        ("value", "{};a;12;1911"),
        ("quoted value", '"{}";b;13;1912'),
        ("value with a line break", '"a\n{}";c;14;1913'),
        ("value with a delimiter", '"a;{}";d;15;1914'),
        ("value with quotes", '"a ""{}"" b";e;16;1915'),
        ("value beyond the names", "a;b;17;1916;{}"),
        ("row that is short", "{}"),
        ("row below an empty one", "\n{};f;18;1917"),
        ("last row without a line end", "{};g;19;1918"),
    ):
        if place in given:
            rows.append(markup.format(given[place]))
    return "\n".join(rows).encode()


TABLE = FormatTable("stock.csv", "RFC 4180", PLACES, write)
