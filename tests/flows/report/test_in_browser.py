"""The report as a reader sees it: opened in headless Chromium, light and dark, wide and narrow, and printed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flows.report.figures import draw_figures
from flows.report.pictures import inline_pictures
from tests.flows.report.test_document import FRAME, TEXT, rendered, tables_of

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
playwright_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra `browser`)")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed"),
]

# Text nodes that the page shows, each with the colours that are computed for it.
CONTRASTS = """() => {
  const channel = v => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
  const luminance = c => { const [r, g, b] = c.match(/[\\d.]+/g).map(Number);
    return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b); };
  const ground = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
    if (!/, 0\\)$|transparent/.test(c)) return c; } return "rgb(255, 255, 255)"; };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !e.getClientRects().length) continue;
    const [a, b] = [luminance(getComputedStyle(e).color), luminance(ground(e))].sort((x, y) => y - x);
    found.push([(a + 0.05) / (b + 0.05), walker.currentNode.data.trim().slice(0, 40)]);
  }
  return found;
}"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tables = tables_of(FRAME, warned=True, gaps=True)
    path = tmp_path_factory.mktemp("report") / "report.html"
    pictures = inline_pictures(draw_figures(tables), tables)
    path.write_text(rendered(FRAME, tables, texts=(TEXT,), pictures=pictures), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright_api.sync_playwright() as started:
        # CI runs as root, where Chromium's sandbox cannot be set up; the page is the test's own.
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


def opened_page(browser: Any, report: Path, width: int, scheme: str) -> tuple[Any, list[str], list[str]]:
    """The page, what it asked for, and what the browser complained of."""
    page = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme).new_page()
    asked: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(report.as_uri())
    return page, asked, complaints


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 420])
def test_the_page_fits_its_window_and_can_be_read(browser: Any, report: Path, width: int, scheme: str) -> None:
    page, asked, complaints = opened_page(browser, report, width, scheme)
    assert asked == [report.as_uri()]
    assert complaints == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate("document.querySelectorAll('details').forEach(e => e.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    # Wide things scroll inside their own frames.
    wide = "[...document.querySelectorAll('table, figure svg')].filter(e => !e.closest('.scroll')).length"
    assert page.evaluate(wide) == 0
    contrasts = page.evaluate(CONTRASTS)
    assert len(contrasts) > 500
    assert min(contrasts) >= [4.5, ""], f"too little contrast: {min(contrasts)}"
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") == (scheme == "light")
    # A figure's own ink and paper follow the page's.
    inks = page.evaluate("[...document.querySelectorAll('figure svg')].map(e => getComputedStyle(e).fill)")
    assert len(inks) > 5
    assert set(inks) == {page.evaluate("getComputedStyle(document.body).color")}
    drawn = page.evaluate("[...document.querySelectorAll('figure svg')].map(e => e.getBoundingClientRect().height)")
    assert min(drawn) > 100
    page.context.close()


def test_what_must_not_be_missed_is_seen_without_scrolling(browser: Any, report: Path) -> None:
    page, _, _ = opened_page(browser, report, 420, "light")
    box = page.get_by_role("alert").bounding_box()
    assert box["y"] < 600
    assert "the text changed after the first row had started" in page.get_by_role("alert").inner_text()
    page.context.close()


def test_every_entry_of_the_contents_leads_to_its_section(browser: Any, report: Path) -> None:
    page, _, _ = opened_page(browser, report, 1280, "light")
    for link in page.locator("nav a").all():
        link.click()
        target = page.locator(link.get_attribute("href")).locator("h2, h3").first
        assert target.inner_text() == link.inner_text()
        assert -1 <= target.bounding_box()["y"] < 900
    page.context.close()


def test_it_prints_in_black_on_white_even_from_a_dark_screen(browser: Any, report: Path) -> None:
    page, _, _ = opened_page(browser, report, 1280, "dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    folded = "[...document.querySelectorAll('details > *:not(summary)')].filter(e => !e.checkVisibility()).length"
    assert page.evaluate(folded) == 0
    printed = page.pdf(prefer_css_page_size=True)
    assert printed.startswith(b"%PDF-")
    assert printed.count(b"/Type /Page\n") >= 5
    page.context.close()
