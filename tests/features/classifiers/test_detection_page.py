"""The page of a detection run: what it says, and that it fits a desktop and a phone."""

import json
import re
import shutil
import subprocess
from html import escape, unescape

import numpy as np
import pytest

from napari_mamamia.core.records import CaseFailure
from napari_mamamia.features.classifiers.scoring.detection.boxes import (
    Lesions,
    PredictedBoxes,
    box_overlaps,
)
from napari_mamamia.features.classifiers.scoring.detection.detection import score_detection
from napari_mamamia.features.classifiers.scoring.detection.report import write_detection_page
from napari_mamamia.features.classifiers.scoring.detection.results import (
    DetectionInput,
    DetectionSettings,
)

BROWSER = next((b for b in ("chromium", "chromium-browser") if shutil.which(b)), None)
MEASURE = """<script>
const wide = (e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll");
parent.document.getElementById("said").textContent = JSON.stringify({
  inner: innerWidth, page: document.documentElement.scrollWidth,
  beyond: [...document.querySelectorAll("body *")].filter(wide).map((e) => e.tagName),
  drawn: [...document.querySelectorAll("svg")].map((e) => e.getBoundingClientRect().width),
});
</script></body>"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Write the page of 60 cases of two centres with hostile names; return its path."""
    rng = np.random.default_rng(1)
    n_cases, n = 60, 200
    names = tuple(f"<b>case & {k} with a name that is very long" for k in range(n_cases))
    starts = rng.uniform(0, 80, (n, 3))
    edges = np.stack([starts, starts + rng.uniform(5, 60, (n, 3))], axis=2).reshape(n, 6)
    cases = rng.integers(0, n_cases - 10, n)
    nothing = np.full(n // 2, np.nan)
    lesions = Lesions(cases[::2], edges[::2], nothing)
    moved = edges[::2] + rng.normal(0, 4, (n // 2, 1))
    boxes = PredictedBoxes(cases[::2], moved, rng.random(n // 2), nothing)
    centres = tuple("one" if k % 2 else "another & longer" for k in range(n_cases))
    data = DetectionInput(names, lesions, boxes, box_overlaps(lesions, boxes), centres)
    result = score_detection(data, DetectionSettings(n_resamples=20))
    out = tmp_path_factory.mktemp("page")
    failures = [CaseFailure("Z", "row 3 of boxes.csv: score must be finite, got 'inf'")]
    return write_detection_page(result, "m <1>", out, failures, result.warnings)


def test_the_page_stands_alone_and_names_its_matching_with_every_number(page):
    text = page.read_text()
    assert "<b>case" not in text
    assert not re.search(r"(?:src|href)=\"(?!#|data:)", text)
    for words in ("Matching greedy-score, box-iou at least 0.1", "raFROC, paper-eq3", "ceiling"):
        assert words in text
    assert "row 3 of boxes.csv" in text
    assert {path.name for path in (page.parent / "figures").iterdir()} == {
        *("froc.png", "froc.svg", "rafroc.png", "rafroc.svg")
    }


@pytest.mark.parametrize("width", [1400, 390])
def test_the_page_fits_a_desktop_and_a_phone(page, width, tmp_path):
    if BROWSER is None:
        pytest.fail("Chromium is missing: install Debian's package chromium to test the report")
    trial = tmp_path / "trial.html"
    # a window is never narrower than 500; a frame is
    inner = escape(page.read_text().replace("</body>", MEASURE))
    frame = f'<iframe style="width: {width}px; height: 900px; border: 0" srcdoc="{inner}"></iframe>'
    trial.write_text(f'<!DOCTYPE html><pre id="said"></pre>{frame}')
    quiet = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run")
    done = subprocess.run(
        [BROWSER, "--headless", *quiet, f"--user-data-dir={tmp_path / 'profile'}",
         "--window-size=1500,1000", "--dump-dom", trial.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    said = json.loads(unescape(re.search(r'id="said">(.*?)</pre>', done.stdout, re.DOTALL)[1]))
    assert said["inner"] == width
    assert said["page"] <= width
    assert said["beyond"] == []
    assert len(said["drawn"]) == 2
    assert all(200 < one <= width for one in said["drawn"])
