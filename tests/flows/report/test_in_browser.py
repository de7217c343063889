"""The report as a reader sees it: opened in headless Chromium, light and dark, wide and narrow, and printed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.report.figures import draw_figures
from flows.report.pictures import inline_pictures
from tests.browser import CHROMIUM, Browser, chromium
from tests.flows.report.test_document import FRAME, TEXT, rendered, tables_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed"),
]

# Text nodes that the page shows, each with the colours that are computed for it.
CONTRASTS = """(() => {
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
})()"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tables = tables_of(FRAME, warned=True, gaps=True)
    path = tmp_path_factory.mktemp("report") / "report.html"
    pictures = inline_pictures(draw_figures(tables), tables)
    path.write_text(rendered(FRAME, tables, texts=(TEXT,), pictures=pictures), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1400, 400])
def test_the_page_fits_its_window_and_can_be_read(browser: Browser, report: Path, width: int, dark: bool) -> None:
    page = browser.open(report.as_uri(), width=width, dark=dark)
    assert page.requests == [report.as_uri()]
    assert page.complaints == []
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
    assert (background == "rgb(255, 255, 255)") == (not dark)
    # A figure's own ink and paper follow the page's.
    inks = page.evaluate("[...document.querySelectorAll('figure svg')].map(e => getComputedStyle(e).fill)")
    assert len(inks) > 5
    assert set(inks) == {page.evaluate("getComputedStyle(document.body).color")}
    drawn = page.evaluate("[...document.querySelectorAll('figure svg')].map(e => e.getBoundingClientRect().height)")
    assert min(drawn) > 100
    page.close()


def test_what_must_not_be_missed_is_seen_without_scrolling(browser: Browser, report: Path) -> None:
    page = browser.open(report.as_uri(), width=400)
    assert page.evaluate("document.querySelector('[role=alert]').getBoundingClientRect().y") < 600
    said = page.evaluate("document.querySelector('[role=alert]').innerText")
    assert "the text changed after the first row had started" in said
    page.close()


def test_every_entry_of_the_contents_leads_to_its_section(browser: Browser, report: Path) -> None:
    page = browser.open(report.as_uri())
    followed = page.evaluate("""[...document.querySelectorAll('nav a')].map(link => {
      link.click();
      const heading = document.querySelector(`${link.getAttribute('href')} :is(h2, h3)`);
      return [link.innerText, heading.innerText, heading.getBoundingClientRect().y];
    })""")
    assert len(followed) > 10
    assert [(link, heading) for link, heading, _ in followed if link != heading] == []
    assert [place for place in followed if not -1 <= place[2] < 900] == []
    page.close()


def test_it_prints_in_black_on_white_even_from_a_dark_screen(browser: Browser, report: Path) -> None:
    page = browser.open(report.as_uri(), dark=True)
    page.emulate(dark=True, media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    folded = "[...document.querySelectorAll('details:not(.screen) > *:not(summary)')].filter(e => !e.checkVisibility())"
    assert page.evaluate(f"{folded}.length") == 0
    printed = page.pdf()
    assert printed.startswith(b"%PDF-")
    assert printed.count(b"/Type /Page\n") >= 5
    page.close()


def test_no_table_is_cut_at_the_edge_of_a_printed_page(browser: Browser, report: Path) -> None:
    printable = round((210 - 2 * 14) / 25.4 * 96)
    page = browser.open(report.as_uri(), width=printable)
    page.emulate(dark=False, media="print")
    cut = page.evaluate(f"""[...document.querySelectorAll('table, figure svg, pre')]
      .filter(e => e.getBoundingClientRect().right > {printable} + 1)
      .map(e => (e.querySelector('caption') ?? e).innerText)""")
    assert cut == []
    page.close()
