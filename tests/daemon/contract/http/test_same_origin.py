"""One function decides whether a request came from another site's page, and every route that browsers can reach uses it."""

from hypothesis import given
from hypothesis import strategies as st

from daemon.contract.http.same_origin import cookie_value, same_origin
from tests.daemon.other_sites import HEADERS_OF_OTHER_SITES, headers_of_own_page

HOST = "127.0.0.1:7411"
METHODS = st.sampled_from(["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"])
OTHER_SITES = st.sampled_from(HEADERS_OF_OTHER_SITES)


def check(method: str, *headers: tuple[str, str], by_cookie: bool = True, host: str = HOST) -> bool:
    return same_origin(method, [("Host", host), *headers], by_cookie=by_cookie)


@given(METHODS, OTHER_SITES, st.booleans())
def test_request_of_another_site_is_refused(method: str, theirs: dict[str, str], by_cookie: bool) -> None:
    assert not check(method, *theirs.items(), by_cookie=by_cookie)


@given(METHODS, OTHER_SITES, st.permutations(list(headers_of_own_page(HOST).items())), st.booleans())
def test_cross_site_header_is_refused_despite_an_additional_same_origin_one(
    method: str, theirs: dict[str, str], ours: list[tuple[str, str]], by_cookie: bool
) -> None:
    assert not check(method, *ours, *theirs.items(), by_cookie=by_cookie)
    assert not check(method, *theirs.items(), *ours, by_cookie=by_cookie)


@given(METHODS, st.booleans())
def test_same_origin_request_is_allowed(method: str, by_cookie: bool) -> None:
    for headers in (
        [("sec-fetch-site", "same-origin")],
        [("ORIGIN", f"http://{HOST}")],
        [("Origin", f"https://{HOST}")],
    ):
        assert check(method, *headers, by_cookie=by_cookie)


def test_get_request_for_a_typed_address_is_allowed() -> None:
    assert check("GET", ("Sec-Fetch-Site", "none"))


@given(METHODS)
def test_request_without_origin_headers_may_change_data_only_without_a_cookie(method: str) -> None:
    assert check(method, by_cookie=False)
    assert check(method, by_cookie=True) == (method in ("GET", "HEAD"))


def test_origin_without_exactly_one_host_header_is_refused() -> None:
    origin = ("Origin", f"http://{HOST}")
    assert not same_origin("GET", [origin], by_cookie=False)
    assert not same_origin("GET", [("Host", HOST), ("Host", "evil.example"), origin], by_cookie=False)
    assert not check("GET", ("Origin", "http://"), host="")


@given(st.text(), st.text())
def test_any_origin_headers_pass_only_if_both_are_same_origin(site: str, origin: str) -> None:
    passes = check("POST", ("Sec-Fetch-Site", site), ("Origin", origin))
    own = origin.strip().lower() in (f"http://{HOST}", f"https://{HOST}")
    assert passes == (own and site.strip().lower() in ("same-origin", "none"))


def test_a_cookie_is_found_by_its_whole_name() -> None:
    assert cookie_value("a-hippod=1; hippod=2; hippod=3", "hippod") == "2"
    assert cookie_value("hippodx=1", "hippod") == cookie_value("", "hippod") == ""
