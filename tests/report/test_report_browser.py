"""Reports in a real browser: nothing is wider than the page, at 400 and at 1200 pixels.

Frames of both widths hold the page. A script measures every element in them; what is wider than
the page must be in a frame of its own, in which it scrolls.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess

import numpy as np
import pytest

import cutplane

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
WIDTHS = (400, 1200)
SCRIPT = """
const found = {};
addEventListener("load", () => {
  for (const frame of document.querySelectorAll("iframe")) {
    const page = frame.contentDocument, width = page.documentElement.clientWidth;
    const wide = [...page.querySelectorAll("body *")].filter(
      (e) => !e.closest("svg svg, svg *") && e.getBoundingClientRect().right > width + 1
        && !e.parentElement.closest(".wide, .card"));
    const hidden = [...page.querySelectorAll("figure, table, h1, h2")].filter(
      (e) => e.getBoundingClientRect().height < 5);
    const broken = [...page.querySelectorAll("td")].filter((e) => {
      const range = page.createRange();
      range.selectNodeContents(e);
      return /^[-+.,%e0-9 s]+$/.test(e.textContent) && range.getClientRects().length > 1;
    });
    found[width] = {
      broken: broken.map((e) => e.textContent),
      scrolls: page.documentElement.scrollWidth,
      wide: wide.map((e) => e.outerHTML.slice(0, 80)),
      hidden: hidden.map((e) => e.outerHTML.slice(0, 80)),
      figures: page.querySelectorAll("figure svg").length,
    };
  }
  document.getElementById("found").textContent = JSON.stringify(found);
});
"""


def measured(page, folder):
    """The browser's measurements of a page, by width of the page."""
    frames = "".join(
        f'<iframe style="border: 0; width: {width}px; height: 900px" srcdoc="{html.escape(page)}">'
        "</iframe>"
        for width in WIDTHS
    )
    file = folder / "frames.html"
    file.write_text(
        f'<!doctype html><meta charset="utf-8"><script>{SCRIPT}</script><pre id="found"></pre>'
        f"{frames}",
        encoding="utf-8",
    )
    command = [
        *(BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"),
        *("--no-first-run", "--disable-background-networking", "--disable-component-update"),
        *("--disable-sync", f"--user-data-dir={folder / 'profile'}", "--window-size=1400,2000"),
        *("--hide-scrollbars", "--virtual-time-budget=5000", "--dump-dom", file.as_uri()),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return json.loads(html.unescape(re.search(r'id="found">(.*?)</pre>', done.stdout)[1]))


@pytest.mark.skipif(BROWSER is None, reason="Chromium is not installed")
def test_fits_a_telephone_and_a_wide_screen(tmp_path):
    """Many classes with long names, hundreds of features: all that could be too wide."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 40))
    names = np.array([f"a class with quite a long name, number {k}" for k in range(8)])
    y = names[np.argmax(X[:, :8] + 0.3 * rng.normal(size=(300, 8)), axis=1)]
    many, two = tmp_path / "many.html", tmp_path / "two.html"
    cutplane.report(cutplane.LinearSVC(C=0.1).fit(X, y), X, y, many)
    sign = X[:, 0] > 0
    cutplane.report(cutplane.LinearSVC(C=0.1).fit(X, sign), X, sign, two, title="W" * 90)
    for file, figures in ((many, 2), (two, 7)):
        found = measured(file.read_text(encoding="utf-8"), tmp_path)
        assert sorted(map(int, found)) == sorted(WIDTHS)
        for width, facts in found.items():
            assert facts["scrolls"] <= int(width), (file.name, width, facts)
            assert facts["wide"] == [] and facts["hidden"] == [], (file.name, width)
            assert facts["figures"] == figures
            assert facts["broken"] == [], (file.name, width)  # numbers stay on one line
