import json
import re
import shutil
import subprocess
from html import unescape
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from napari_mamamia.core.case import Mask
from napari_mamamia.core.cohort import CaseRecord, Cohort, MenopausalStatus
from napari_mamamia.core.errors import SaveConflictError
from napari_mamamia.core.grid import Grid
from napari_mamamia.core.progress import listening
from napari_mamamia.core.records import CaseFailure, CaseScore, ScoreStatus
from napari_mamamia.scoring.case.failures import Failure, FailureKind
from napari_mamamia.scoring.cohort.disparities import (
    permute_segmentation_groups,
    segmentation_uncertainty,
)
from napari_mamamia.scoring.cohort.groups import group_by_column, group_cases, rules_of
from napari_mamamia.scoring.cohort.results import (
    ClinicalTable,
    ModelScores,
    Resampling,
    SegmentationResult,
    Stratum,
)
from napari_mamamia.scoring.cohort.segmentation_cohort import (
    bootstrap_segmentation,
    group_table,
    score_groups,
)
from napari_mamamia.scoring.report import content as report_content
from napari_mamamia.scoring.report import report
from napari_mamamia.scoring.report.cases import case_table, script_json
from napari_mamamia.scoring.report.content import CaseColumn, ReportContent
from napari_mamamia.scoring.report.drawing import Drawn
from napari_mamamia.scoring.report.figures import BoxGroup, box_plot, svg_of
from napari_mamamia.scoring.report.gallery import picture_of, worst_cases
from napari_mamamia.scoring.report.report import write_report
from napari_mamamia.scoring.report.report_figures import write_figures
from napari_mamamia.scoring.statistics.bootstrap import IntervalMethod
from napari_mamamia.scoring.statistics.performance import SegmentationScores

N = 130
RULES = rules_of("clinical")
ODD_ID = '<b>"O\'Neil" & Söhne</b>'


def report_of(*args):
    return report_content.report_of(*args)


def render_report(content, **more):
    return report.render_report(content, **more)


def undrawn(_):
    return Drawn(b"", "<svg></svg>")


def a_cohort(ids):
    rng = np.random.default_rng(2)
    statuses = (MenopausalStatus.PRE, MenopausalStatus.POST, None)
    return Cohort(
        tuple(
            CaseRecord(
                case_id,
                age=float(rng.integers(30, 75)),
                menopausal_status=statuses[rng.integers(3)],
                breast_density="abcd"[rng.integers(4)],
                dataset=("GUM", "KAU")[i % 2],
            )
            for i, case_id in enumerate(ids)
        )
    )


def some_rows(n=N, seed=1):
    """Rows with rising Dice 0.2 + 0.005 i; the last two have none."""
    rng = np.random.default_rng(seed)
    ids = [ODD_ID, *(f"C_{i:03d}" for i in range(1, n))]
    rows = [
        CaseScore(
            case_id,
            ScoreStatus.OK,
            dsc=0.2 + 0.005 * i,
            norm_hd=float(rng.random()) / 4,
            hausdorff95_mm=float(rng.random()) * 37,
            volume_reference_mm3=1000.0 + 7 * i,
            volume_prediction_mm3=1500.0,
        )
        for i, case_id in enumerate(ids[:-2])
    ]
    reason = "neither mask has foreground: Dice and distances are undefined"
    empty = [CaseScore(i, ScoreStatus.BOTH_EMPTY, reason=reason) for i in ids[-2:]]
    return (*rows, *empty)


def a_model(name="nnU-Net <1>", seed=1):
    rows = some_rows(seed=seed)
    cohort = a_cohort([row.case_id for row in rows])
    scored = [row for row in rows if row.dsc == row.dsc]
    scores = SegmentationScores.of((row.case_id, row.dsc, row.norm_hd) for row in scored)
    groupings = group_cases(scores.case_ids, cohort, RULES)
    resampled = bootstrap_segmentation(scores, groupings, 0.5, n_resamples=50)
    centre = group_by_column(scores.case_ids, cohort, "dataset")
    numbers = score_groups(scores, groupings, RULES)
    result = SegmentationResult(
        scores,
        numbers,
        groupings,
        tuple(resampled.interval(n, m) for n in resampled.names for m in IntervalMethod),
        segmentation_uncertainty(scores, groupings, numbers.fairness),
        permute_segmentation_groups(scores, groupings, 20),
        (Stratum(centre, group_table(scores, centre, 10)),),
    )
    failures = tuple(CaseFailure(r.case_id, r.reason) for r in rows if r.reason)
    clinical = ClinicalTable("clinical.xlsx", 200, N)
    model = ModelScores(
        name, "clinical", N, N - 2, rows, failures, result, None, clinical, Resampling(50)
    )
    return model, cohort


GRID = Grid((12, 60, 60), np.diag([-1.0, 1.0, 3.0, 1.0]))


def a_mask(*blocks):
    array = np.zeros(GRID.shape, dtype=bool)
    for block in blocks:
        array[block] = True
    return Mask(GRID, array)


REFERENCE = a_mask((slice(3, 7), slice(20, 30), slice(20, 30)))
PREDICTION = a_mask((slice(3, 7), slice(20, 30), slice(20, 30)), (5, slice(40, 44), slice(20, 30)))


def some_content(**changes):
    model, _ = a_model()
    failures = {
        ODD_ID: (Failure(FailureKind.MISSED, "nothing is predicted"),),
        "C_001": (
            Failure(FailureKind.FRAGMENTED, "one lesion is predicted as 3 separate parts"),
            Failure(FailureKind.SMALL_TUMOUR, "the reference has 64 mm3"),
        ),
    }
    volume = np.random.default_rng(0).integers(0, 900, GRID.shape).astype(np.int16)
    picture = picture_of(ODD_ID, REFERENCE, PREDICTION, volume, caption="Dice 0.20")
    latency = CaseColumn("seconds", "Latency", {"C_001": 12.34}, "s", 1)
    made = report_of(model, failures, (picture,), (latency,))
    return ReportContent((made,), **changes)


CREATED = "2026-01-01T00:00:00+00:00"


@pytest.fixture(scope="module")
def page():
    return render_report(some_content(title="A & B <test>", created=CREATED))


def test_the_page_loads_nothing_from_elsewhere(page):
    loads = re.findall(r"""(?:src|href|action|data|poster)\s*=\s*["']([^"']*)""", page)
    loads += re.findall(r"""url\(\s*["']?([^"')]*)""", page)
    assert loads
    assert all(target.startswith(("#", "data:image/png;base64,")) for target in loads)
    assert "@import" not in page
    assert "<link" not in page
    outside = set(re.findall(r"https?://[^\s\"'<>]+", page))
    assert outside <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


def test_ids_and_names_from_the_user_are_text_and_never_markup(page):
    assert ODD_ID not in page
    assert "nnU-Net <1>" not in page
    assert "nnU-Net &lt;1&gt;" in page
    assert "A &amp; B &lt;test&gt;" in page
    assert "O&#39;Neil" in page


def test_a_script_end_in_an_id_does_not_end_the_data():
    row = CaseScore("</script><script>alert(1)</script>", ScoreStatus.OK, dsc=0.5)
    model = ModelScores("m", "clinical", 1, 1, (row,), (), None, None, None, Resampling(0))
    table = case_table((report_of(model),))
    text = script_json(table)
    assert "<" not in text
    assert ">" not in text
    assert json.loads(text)["columns"][0]["texts"] == [row.case_id]
    assert "<script>alert" not in render_report(ReportContent((report_of(model),)))


def test_the_head_tells_profile_versions_and_how_many_cases(page):
    head = unescape(re.sub(r"<[^>]+>", " ", page[page.index("<header>") : page.index("<main>")]))
    head = " ".join(head.split())
    assert "Profile clinical" in head
    assert "130 cases, 128 scored, 2 excluded from the means" in head
    assert "130 of them in clinical.xlsx (200 rows)" in head
    assert "napari-mamamia" in head
    assert "HD95 in mm / 150 mm, cut to 1" in head


def test_the_excluded_cases_stand_with_their_reason(page):
    assert "2 cases with a problem" in page
    assert page.count("neither mask has foreground: Dice and distances are undefined") >= 2


def test_small_groups_are_grey_and_unassigned_cases_are_listed(page):
    assert '<tr class="small">' in page
    assert re.search(r"<summary>\d+ unassigned: the menopausal status is missing</summary>", page)


def test_the_mean_dice_of_the_table_is_that_of_the_rows(page):
    # 0.2 + 0.005 i for i = 0 .. 127 has mean 0.2 + 0.005 x 63.5 = 0.5175
    row = page[page.index("Mean Dice (DSC)") :]
    assert re.search(r"0\.5(17|18)</td>", row[:200])
    assert "over 128 cases" in row[:700]


def test_the_first_page_of_cases_is_worst_first_and_reads_without_script(page):
    body = page[page.index('id="case-table"') :]
    body = body[body.index("<tbody>") : body.index("</tbody>")]
    ids = [unescape(text) for text in re.findall(r'<th scope="row">(.*?)</th>', body)]
    assert ids == [ODD_ID, *(f"C_{i:03d}" for i in range(1, 50))]
    assert "The first 50 of 130 rows, worst Dice first" in page


def test_both_ends_of_the_weight_sweep_are_named(page):
    assert "performance only" in page
    assert "fairness only" in page


def test_every_drawing_is_well_formed_and_described(page):
    drawings = re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL)
    assert len(drawings) >= 6
    for drawing in drawings:
        ElementTree.fromstring(drawing)
    assert page.count('role="img" aria-label=') == len(drawings)


def test_undefined_numbers_are_null_in_the_data_and_last_in_the_order():
    table = case_table(some_content().models)
    data = json.loads(script_json(table))
    dice = next(column for column in data["columns"] if column["name"] == "dsc")
    assert dice["numbers"][0] == 0.2
    assert dice["numbers"][-2:] == [None, None]
    assert table.order[-2:].tolist() == [128, 129]


def test_columns_that_nobody_has_are_left_out():
    names = [column.name for column in case_table(some_content().models).columns]
    assert "assd_mm" not in names
    assert "hausdorff95_mm" in names
    assert "seconds" in names


def test_several_models_share_the_table_with_a_column_of_their_names():
    (model, _), (other, _) = a_model("one"), a_model("two", seed=2)
    content = ReportContent((report_of(model), report_of(other)))
    table = case_table(content.models)
    assert table.n_rows == 2 * N
    assert table.columns[0].texts == ("one", "two")
    assert table.columns[0].choices == ("one", "two")
    assert "one: Numbers" in render_report(content, draw=undrawn)


def test_a_report_under_two_profiles_is_refused():
    model, _ = a_model()
    other = ModelScores("x", "paper", 0, 0, (), (), None, None, None, Resampling(0))
    with pytest.raises(ValueError, match="one profile"):
        ReportContent((report_of(model), report_of(other)))


def test_a_model_without_any_scored_case_makes_a_page():
    row = CaseScore("A", ScoreStatus.UNREADABLE, reason="damaged")
    failure = (CaseFailure("A", "damaged"),)
    model = ModelScores("m", "clinical", 1, 0, (row,), failure, None, None, None, Resampling(0))
    text = render_report(ReportContent((report_of(model),)))
    assert "1 cases, 0 scored" in text
    assert "damaged" in text


def test_the_same_content_gives_the_same_page(page):
    assert render_report(some_content(title="A & B <test>", created=CREATED)) == page


def test_the_report_is_a_job_whose_progress_ends_at_its_total():
    seen, content = [], some_content()
    with listening(seen.append):
        report.render_report(content)
    fractions = [progress.fraction for progress in seen]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1
    assert len(seen) >= 10


def test_an_existing_report_is_not_overwritten_unasked(tmp_path):
    path = tmp_path / "report.html"
    path.write_text("mine")
    with pytest.raises(SaveConflictError):
        write_report(some_content(), path, draw=undrawn)
    assert path.read_text() == "mine"


def test_figures_are_written_as_png_and_svg(tmp_path):
    paths = write_figures(some_content(), tmp_path)
    names = {path.name for path in paths}
    assert {"fairness_performance.png", "weight_sweep.svg", "dice_by_age.png"} <= names
    for path in paths:
        if path.suffix == ".png":
            with Image.open(path) as image:
                assert min(image.size) > 400
        else:
            ElementTree.parse(path)


def test_a_dollar_in_a_group_name_is_no_formula():
    figure = box_plot([BoxGroup("cost $x_{", np.array([0.5, 0.6]))], "Dice", "a $ b")
    text = "".join(ElementTree.fromstring(svg_of(figure)).itertext())
    assert "cost $x_{" in text


def test_the_picture_is_the_slice_with_the_largest_error_upright():
    # slices 3 to 6 agree, but slice 5 has a false block: z runs to superior, so it is number 6
    picture = picture_of("A", REFERENCE, PREDICTION)
    assert picture.place == "slice 6 of 12"
    assert picture.plane == "axial"
    assert np.count_nonzero(picture.prediction & ~picture.reference) == 40
    # the array's y runs to anterior, which is up: the false block (larger y) lies above
    rows_r, rows_p = (
        np.flatnonzero(m.any(axis=1)) for m in (picture.reference, picture.prediction)
    )
    assert rows_p.min() < rows_r.min()


def test_a_picture_holds_both_masks_with_room_around():
    picture = picture_of("A", REFERENCE, PREDICTION)
    assert min(picture.reference.shape) >= 54  # 24 rows with 15 mm around; columns the whole 60 mm
    assert picture.spacing_mm == (1.0, 1.0)


def test_two_equal_masks_show_their_largest_slice_and_two_empty_ones_the_middle():
    assert picture_of("A", REFERENCE, REFERENCE).place == "slice 4 of 12"
    assert picture_of("A", a_mask(), a_mask()).place == "slice 7 of 12"


def test_the_worst_cases_have_the_lowest_dice_and_then_the_largest_distance():
    rows = [
        CaseScore("near", ScoreStatus.OK, dsc=0.1, norm_hd=0.1),
        CaseScore("far", ScoreStatus.OK, dsc=0.1, norm_hd=0.9),
        CaseScore("good", ScoreStatus.OK, dsc=0.9, norm_hd=0.0),
        CaseScore("empty", ScoreStatus.BOTH_EMPTY),
    ]
    assert worst_cases(rows) == ("far", "near", "good")
    assert worst_cases(rows, 1) == ("far",)


def test_a_hundred_thousand_rows_stay_small():
    rng = np.random.default_rng(0)
    rows = tuple(
        CaseScore(f"CASE_{i:06d}", ScoreStatus.OK, dsc=d, norm_hd=d / 2, hausdorff95_mm=40 * d)
        for i, d in enumerate(rng.random(100_000).tolist())
    )
    model = ModelScores(
        "m", "clinical", len(rows), len(rows), rows, (), None, None, None, Resampling(0)
    )
    text = render_report(ReportContent((report_of(model),)))
    assert len(text) < 6_000_000
    assert text.count("<tr>") < 80


BROWSER = next((b for b in ("chromium", "chromium-browser") if shutil.which(b)), None)
TRIAL = """
<script>
const said = {};
const body = () => document.querySelector("#case-table tbody");
const ids = () => [...body().rows].map((row) => row.cells[0].textContent);
const dice = () => [...body().rows].map((row) => row.cells[2].textContent);
const click = (text) => [...document.querySelectorAll("#case-table thead button")]
  .find((button) => button.textContent.startsWith(text)).click();
const choose = (name, value) => {
  const box = document.querySelector(`select[data-column=${name}]`);
  box.value = value;
  box.dispatchEvent(new Event("change"));
};
const where = () => document.querySelector("#case-pager span").textContent;
const pager = (k) => document.querySelectorAll("#case-pager button")[k];
said.first = [ids(), where(), pager(0).disabled];
click("Dice"); said.down = [ids().slice(0, 2), dice().slice(0, 2), ids().length];
click("Case"); said.by_case = ids().slice(0, 3);
click("Dice");
pager(2).click(); said.second_page = [ids()[0], where()];
pager(3).click(); said.last_page = [dice(), where(), pager(3).disabled];
choose("failure_kinds", "small tumour"); said.tag = [ids(), where()];
choose("failure_kinds", ""); choose("status", "both empty"); said.status = ids();
document.querySelector("#case-filters button").click();
const search = document.getElementById("case-search");
search.value = "c_04 SCORED"; search.dispatchEvent(new Event("input")); said.search = ids();
search.value = "nowhere"; search.dispatchEvent(new Event("input")); said.none = [ids(), where()];
document.querySelector("#case-filters button").click(); said.cleared = where();
said.wide = document.documentElement.scrollWidth > window.innerWidth;
said.errors = errors;
const out = document.createElement("pre");
out.id = "said"; out.textContent = JSON.stringify(said); document.body.append(out);
</script>
"""
LISTEN = """<script>const errors = [];
window.addEventListener("error", (e) => errors.push(String(e.message)), true);
const plain = console.error; console.error = (...a) => { errors.push(a.join(" ")); plain(...a); };
new PerformanceObserver((l) => l.getEntries().forEach((e) => {
  if (!e.name.startsWith("data:")) { errors.push("request: " + e.name); } }))
  .observe({ type: "resource", buffered: true });
</script>"""


def browse(path, folder):
    """What Chromium makes of a page, as the text of its document after all scripts ran."""
    if BROWSER is None:
        pytest.fail("Chromium is missing: install Debian's package chromium to test the report")
    quiet = "background-networking component-update sync default-apps extensions gpu dev-shm-usage"
    command = [
        BROWSER,
        "--headless",
        "--no-sandbox",
        "--no-first-run",
        *(f"--disable-{name}" for name in quiet.split()),
        f"--user-data-dir={folder}",
        "--virtual-time-budget=3000",
        "--window-size=500,900",
        "--dump-dom",
        path.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_the_page_sorts_filters_and_pages_in_a_browser(page, tmp_path):
    trial = page.replace("<head>", "<head>" + LISTEN, 1).replace("</body>", TRIAL + "</body>")
    path = tmp_path / "report.html"
    path.write_text(trial, encoding="utf-8")
    seen = browse(path, tmp_path / "profile")
    said = json.loads(unescape(re.search(r'<pre id="said">(.*?)</pre>', seen, re.DOTALL)[1]))
    assert said["errors"] == []
    assert said["first"] == [
        [ODD_ID, *(f"C_{i:03d}" for i in range(1, 50))],
        "Rows 1 to 50 of 130",
        True,
    ]
    # the highest Dice is 0.2 + 0.005 x 127 = 0.835 of case 127; the two without one stay last
    assert said["down"] == [["C_127", "C_126"], ["0.835", "0.830"], 50]
    assert said["by_case"] == [ODD_ID, "C_001", "C_002"]
    assert said["second_page"] == ["C_050", "Rows 51 to 100 of 130"]
    assert said["last_page"][0][-3:] == ["0.835", "–", "–"]
    assert said["last_page"][1:] == ["Rows 101 to 130 of 130", True]
    assert said["tag"] == [["C_001"], "Rows 1 to 1 of 1 (of 130 in all)"]
    assert said["status"] == ["C_128", "C_129"]
    assert said["search"] == [f"C_{i:03d}" for i in range(40, 50)]
    assert said["none"] == [[], "No row fits the filters (of 130 in all)"]
    assert said["cleared"] == "Rows 1 to 50 of 130"
    assert said["wide"] is False  # wide tables scroll in their own box, the page does not
