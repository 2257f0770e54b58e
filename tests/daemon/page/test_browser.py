"""The page as a person uses it: its content, its actions, and that it sends requests to its daemon only."""

import io
import re
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, Request, expect

from tests.daemon.page.browsing import Watched, opened
from tests.daemon.page.conftest import BROKEN, DOCUMENTS, LOCKED, ring
from tests.e2e.real_hippod import Daemon

pytestmark = [pytest.mark.browser, pytest.mark.daemon]

QUESTION = "Where did the leader of Project Tern grow up"


def search(page: Page, question: str = QUESTION) -> None:
    """Returns once the answer and its graph are shown."""
    page.locator("#question").fill("forget what is shown")
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.locator("#canvas")).to_have_attribute("data-about", "forget what is shown")
    page.locator("#question").fill(question)
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.locator("#canvas")).to_have_attribute("data-about", question)
    expect(page.locator("#canvas")).to_have_attribute("aria-busy", "false")
    expect(page.locator("#outcome")).to_contain_text("mode")


def arrival(page: Page, uri: str) -> Locator:
    return page.locator(f'#arrival-list [data-uri="{uri}"]')


def number(page: Page, name: str) -> int:
    return int(page.locator("#canvas").get_attribute(f"data-{name}") or 0)


@pytest.fixture
def page(shown: Watched) -> Page:
    return shown.page


def test_new_file_appears_on_the_page_without_a_reload(page: Page, daemon: Daemon) -> None:
    uri = daemon.write(
        "people/una.md", "# Una Plover\nUna Plover keeps the bees of Marrowby.\n\n[1]: <data:image/png;base64,AAAA>\n"
    )
    expect(arrival(page, uri)).to_have_attribute("data-state", "indexed")
    expect(page.locator("#arrival-list li").first).to_contain_text("una.md")
    expect(page.locator("#arrival-list li").first).to_contain_text("left out: 1 picture: image/png")
    documents = daemon.status()["documents"]
    expect(page.locator("#count-documents")).to_have_text(str(documents))


def test_deleted_file_is_shown_as_removed(page: Page, daemon: Daemon) -> None:
    uri = daemon.write("people/short.md", "# Short stay\nHere today.")
    expect(arrival(page, uri)).to_have_attribute("data-state", "indexed")
    (daemon.drive / "people/short.md").unlink()
    expect(arrival(page, uri)).to_have_attribute("data-state", "removed")


def test_a_search_shows_passages_the_words_and_triples_that_matched_and_the_time(page: Page) -> None:
    search(page)
    hits = page.locator("#answers .hit")
    assert 1 < hits.count() <= 5
    assert {"Project", "Tern"} & set(page.locator("#answers mark").all_inner_texts()) or page.locator(
        "mark.phrase"
    ).count()
    expect(page.locator(".triples li").first).to_contain_text("·")
    expect(page.locator(".bars")).to_contain_text("walk")
    expect(page.locator("#outcome")).to_contain_text(re.compile(r"\d ms"))
    expect(page.locator("#latency-note")).to_contain_text("since the daemon started")


def test_compare_option_shows_dense_results_next_to_the_answers(page: Page) -> None:
    page.locator("#beside").check()
    search(page)
    expect(page.locator('#answers [data-mode="dense"] .hit').first).to_be_visible()
    assert "dense:" in page.locator("#answers .badge").first.inner_text()
    page.locator("#beside").uncheck()
    expect(page.locator('#answers [data-mode="dense"]')).to_have_count(0)


def test_why_button_shows_the_path_and_highlights_it_in_the_graph(page: Page) -> None:
    explained: list[bool] = []

    def hear(request: Request) -> None:
        if request.url.endswith("/v1/query"):
            explained.append("explain" in (request.post_data_json or {}))

    page.on("request", hear)
    search(page)
    assert not any(explained)
    why = page.locator("#answers .hit").nth(1).get_by_role("button", name="Why")
    why.click()
    panel = page.locator("#answers .hit").nth(1).locator(".why")
    expect(panel).to_contain_text("of its score came along this path")
    assert panel.locator(".steps .node").count() >= 2
    assert number(page, "lit") >= 1
    expect(page.locator("#graph-summary")).to_contain_text("→")
    why.click()
    expect(panel).to_be_hidden()
    assert number(page, "lit") == 0
    page.locator("#answers .hit").first.get_by_role("button", name="Why").click()
    expect(page.locator("#answers .hit").first.locator(".why")).to_be_visible()
    assert sum(explained) == 1  # once for all passages, and only on request
    page.remove_listener("request", hear)


def test_expanding_a_selected_node_adds_its_neighbours_to_the_graph(page: Page) -> None:
    page.locator("#nodes").select_option("60")
    search(page, "lighthouse")
    page.locator("#heaviest").evaluate("each => { each.open = true; }")
    page.locator("#node-list button", has_text="Saltmouth").first.click()
    expect(page.locator("#picked")).to_contain_text("PageRank")
    with page.expect_response(lambda response: response.url.endswith("/v1/graph") and response.status == 200):
        page.locator("#picked").get_by_role("button", name="Expand").click()
    expect(page.locator("#graph-summary")).to_contain_text("neighbours")
    assert number(page, "nodes") <= 60 + 40
    page.locator("#picked").get_by_role("button", name="Expand").wait_for()


def test_scope_field_suggests_scopes_and_limits_the_search(page: Page, daemon: Daemon) -> None:
    search(page, "lighthouse")
    everywhere = page.locator("#answers .hit").count()
    page.locator("#scope").focus()
    expect(page.locator("#scopes option[value$='/reports']")).to_have_count(1)
    page.locator("#scope").fill(daemon.uri(min(DOCUMENTS)))
    search(page, "lighthouse")
    assert 1 <= page.locator("#answers .hit").count() < everywhere
    page.locator("#scope").fill("")
    page.locator("#scope").blur()
    expect(page.locator("#answers .hit")).to_have_count(everywhere)


def test_time_slider_shows_results_of_earlier_commits(page: Page, daemon: Daemon) -> None:
    uri = daemon.write("people/zed.md", "# Zed Umber\nZed Umber paints the Zeppelin of Quillport.")
    expect(arrival(page, uri)).to_have_attribute("data-state", "indexed")
    daemon.write("people/yan.md", "# Yan Oriel\nYan Oriel tunes bells.")
    daemon.wait()
    commit = daemon.status()["commit"]
    expect(page.locator("#standing-text")).to_contain_text(f"commit {commit}")
    search(page, "Zeppelin of Quillport")
    expect(page.locator("#answers")).to_contain_text("Zed Umber")
    slider = page.locator("#moment")
    slider.focus()
    page.keyboard.press("Home")
    expect(page.locator("#outcome")).to_contain_text("as of commit")
    expect(page.locator("#answers")).not_to_contain_text("Zed Umber")
    expect(page.locator("#moment-text")).to_contain_text("commit")
    page.locator("#moment-now").click()
    expect(page.locator("#answers")).to_contain_text("Zed Umber")
    expect(page.locator("#moment-text")).to_have_text("now")


def test_failed_document_shows_its_reason_and_can_be_retried(page: Page, daemon: Daemon) -> None:
    row = page.locator(f'#failure-list [data-uri="{daemon.uri(LOCKED)}"]')
    entry = daemon.documents(state="failed")[daemon.uri(LOCKED)]
    expect(row.locator(".reason")).to_have_text(entry["error"][:600])
    expect(row).to_contain_text(f"tried {entry['attempts']} time")
    row.get_by_role("button", name="Retry").click()
    expect(row).to_contain_text(f"tried {entry['attempts'] + 1} times")


def test_permanent_failure_has_no_retry_button(page: Page, daemon: Daemon) -> None:
    row = page.locator(f'#failure-list [data-uri="{daemon.uri(BROKEN)}"]')
    entry = daemon.documents(state="failed")[daemon.uri(BROKEN)]
    expect(row.locator(".reason")).to_have_text(entry["error"][:600])
    expect(row).to_contain_text("hippod tries again when the document changes")
    expect(row.get_by_role("button")).to_have_count(0)


def test_header_and_search_button_fit_a_phone_screen(page: Page) -> None:
    size = page.viewport_size
    page.set_viewport_size({"width": 390, "height": 844})
    header, ask, button = (page.locator(each).bounding_box() for each in (".top", ".ask", ".ask button"))
    assert header and ask and button and size
    assert header["height"] < 844 / 9
    assert button["width"] < ask["width"] / 3 and ask["height"] < 60
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.set_viewport_size(size)


def test_growth_chart_shows_every_commit_and_the_passage_count(page: Page, daemon: Daemon, base: str) -> None:
    status = daemon.status()
    expect(page.locator("#growth-note")).to_contain_text(f"{status['passages']} passages")
    points = page.request.get(f"{base}/page/overview").json()["growth"]
    assert points[-1]["commit"] == status["commit"]
    assert [point["commit"] for point in points] == sorted({point["commit"] for point in points})
    assert drawn(page, "#growth") > 100


def drawn(page: Page, where: str) -> int:
    """Counts the pixels of an element that do not have its most frequent colour."""
    image = Image.open(io.BytesIO(page.locator(where).screenshot())).convert("RGB")
    counts = image.getcolors(image.width * image.height)
    assert counts
    return image.width * image.height - max(count for count, _ in counts)


def test_page_is_usable_with_the_keyboard_alone(page: Page) -> None:
    page.locator("body").evaluate("body => { body.tabIndex = -1; body.focus(); }")
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#question")).to_be_focused()
    page.locator("#question").fill("")
    page.keyboard.type("Who surveyed Gull Rock")
    page.keyboard.press("Enter")
    expect(page.locator("#answers")).to_contain_text("Ivo Brandt")
    expect(page.locator("#canvas")).to_have_attribute("aria-busy", "false")
    before = page.locator("#canvas").screenshot()
    page.locator("#canvas").focus()
    for key in ("ArrowLeft", "+", "+"):
        page.keyboard.press(key)
    expect(page.locator("#canvas")).to_be_focused()
    assert page.locator("#canvas").screenshot() != before


HOSTILE = {
    "id": "hostile",
    "title": "</title><script>window.taken = 1</script>\u202e<img src=x onerror='window.taken = 2'>\u2066",
    "text": "<script>window.taken = 3</script><svg onload='window.taken = 4'>\u202e\u2067 Nettlebane "
    '"><a href="javascript:window.taken=5">x</a> {{7*7}} ' + "wort" * 250_000,
    "triples": [["<b onmouseover='window.taken=6'>nettlebane</b>", "\u202eis", "<iframe src='javascript:1'>"]],
}


def test_hostile_document_injects_no_elements_into_the_page(page: Page, daemon: Daemon) -> None:
    search(page, "Where does Marrowby lie")
    rows = page.locator("#arrival-list li").all_inner_texts()
    elements = page.locator("script, iframe, img, svg, a, base, meta, style, link").count()
    width = page.evaluate("document.documentElement.scrollWidth")
    (uri,) = daemon.add(HOSTILE)
    expect(arrival(page, uri)).to_have_attribute("data-state", "indexed")
    assert page.locator("#arrival-list li").all_inner_texts()[1 : len(rows)] == rows[: len(rows) - 1]
    search(page, "Nettlebane")
    hit = page.locator("#answers .hit", has_text="Nettlebane")
    expect(hit).to_be_visible()
    expect(hit.locator(".text")).to_contain_text("<script>window.taken = 3</script>")
    hit.get_by_role("button", name="Show all").click()
    page.locator("#heaviest").evaluate("each => { each.open = true; }")
    page.locator("#node-list button", has_text="nettlebane").first.click()
    assert page.locator("script, iframe, img, svg, a, base, meta, style, link").count() == elements
    assert page.evaluate("window.taken") is None
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert "\u202e" not in page.locator("body").inner_text()
    daemon.ask("DELETE", "/v1/documents", json={"uris": [uri]})
    expect(arrival(page, uri)).to_have_attribute("data-state", "removed")


def test_graph_of_2000_nodes_is_drawn_and_can_be_moved(page: Page, daemon: Daemon) -> None:
    daemon.add(*ring())
    daemon.wait()
    page.locator("#nodes").select_option("2000")
    search(page, "station 0001")
    assert 1_900 < number(page, "nodes") <= 2_000
    assert 6_000 < number(page, "edges") <= 8_000
    assert drawn(page, "#canvas") > 20_000
    box = page.locator("#canvas").bounding_box()
    assert box
    before = page.locator("#canvas").screenshot()
    page.mouse.move(box["x"] + 300, box["y"] + 200)
    page.mouse.down()
    page.mouse.move(box["x"] + 380, box["y"] + 260, steps=5)
    page.mouse.up()
    assert page.locator("#canvas").screenshot() != before
    page.locator("#nodes").select_option("60")


def test_page_sends_no_external_requests_and_logs_no_errors(shown: Watched) -> None:
    """For all tests above on one page, which was never reloaded."""
    assert len(shown.asked) > 20
    assert shown.elsewhere() == []
    assert shown.complaints == []


def test_axe_finds_no_serious_fault(browser: Browser, base: str) -> None:
    """With everything on the page that it can show. A separate page, because axe adds its own styles."""
    with opened(browser, base) as watched:
        page = watched.page
        expect(page.locator("#failures")).to_be_visible()
        page.locator("#beside").check()
        search(page)
        page.locator("#answers .hit").first.get_by_role("button", name="Why").click()
        page.locator("#heaviest").evaluate("each => { each.open = true; }")
        page.locator("#node-list button").first.click()
        views: tuple[tuple[int, Literal["light", "dark"]], ...]
        views = ((1280, "light"), (1280, "dark"), (390, "dark"), (390, "light"))
        for width, scheme in views:
            page.set_viewport_size({"width": width, "height": 800})
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert serious_faults(page) == [], (width, scheme)


def serious_faults(page: Page) -> list[object]:
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [
        (each["id"], node["html"][:200], node.get("failureSummary"))
        for each in found
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]
