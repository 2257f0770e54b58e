"""Headers that browsers send for pages of other sites: one list for every route, so that none is weaker than another."""

HEADERS_OF_OTHER_SITES: list[dict[str, str]] = [
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": ""},
    {"Origin": "http://127.0.0.1:1"},
    {"Origin": "https://127.0.0.1"},
    {"Origin": "http://127.0.0.1:7411.evil.example"},
    {"Origin": "http://evil.example@127.0.0.1:7411"},
    {"Origin": "http://evil.example", "Sec-Fetch-Site": "same-origin"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
    {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
]
"""The last entry is a link that a user follows. No server of the tests listens on port 1 or 7411."""


def headers_of_own_page(host: str) -> dict[str, str]:
    return {"Sec-Fetch-Site": "same-origin", "Origin": f"http://{host}"}
