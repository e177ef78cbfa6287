"""A real browser for tests of pages: nothing is complained of, and nothing but the page is asked
for.
"""

import re
import shutil

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def browser():
    missing = "The browser is driven by playwright, which is not installed here."
    playwright = pytest.importorskip("playwright.sync_api", reason=missing)
    if CHROMIUM is None:
        pytest.skip("There is no Chromium here to show the pages in.")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def visit(browser):
    """Opens the page at an address, or this page with these headers as if it were there."""
    contexts, complaints = [], []

    def opened(address, width=1280, html=None, headers=None, **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        tab = context.new_page()
        if html is not None:
            tab.route("**/*", lambda route: route.fulfill(status=200, headers=headers, body=html))
        tab.on("console", lambda message: complaints.append(message.text))
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on(
            "request",
            lambda request: complaints.append(request.url) if request.url != address else None,
        )
        tab.goto(address)
        return tab

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


def luminance(color):
    parts = [int(part) / 255 for part in re.findall(r"\d+", color)[:3]]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


OUT = """(width) => [...document.querySelectorAll(
        "figure, h1, h2, h3, p, li, a, dt, dd, td, th, svg, svg text, " +
        ".mark, .scroll, .plot, .legend b")]
    .filter((each) => each.checkVisibility() && !each.closest("details"))
    .filter((each) => ![...document.querySelectorAll(".plot, .scroll")].some(
        (box) => box !== each && box.contains(each) && box.scrollWidth > box.clientWidth))
    .map((each) => [each.tagName + each.textContent.slice(0, 40), each.getBoundingClientRect()])
    .filter(([, box]) => box.left < -0.5 || box.right > width + 0.5)
    .map(([name]) => name)"""
"""What is cut off on the left or on the right, but for what scrolls by itself."""
