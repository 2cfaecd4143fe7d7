"""Takes pictures of the documentation in a real window: ``python docs/take_pictures.py [FOLDER]``.

Those of the first steps are taken by the walk of ``tests/door/test_start_pages.py``, those of DICOM
studies by ``tests/door/test_import_stories.py``.

Needs a display; without one: ``xvfb-run -s "-screen 0 1400x900x24" python docs/take_pictures.py``.
The case is the demo's first phantom, so that the picture shows what ``make demo`` shows.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import napari

    from napari_mamamia.widgets.dock.dock import MamamiaDock

WIDTH, HEIGHT = 1400, 900
FIRST_CASE = "PHANTOM_001"


def main() -> None:
    """Make the demo once and take every picture from it."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "images"
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NAPARI_CONFIG"] = str(Path(folder) / "settings.yaml")
        os.environ["MAMAMIA_CONFIG_DIR"] = folder
        os.environ["MAMAMIA_MODELS_DIR"] = str(Path(folder) / "models")
        demo = _make_demo(Path(folder) / "demo")
        _take(demo, target / "window.png")
        _take_kinetics(demo, target / "kinetics.png")
        _take_leaderboard(demo, Path(folder) / "teams", target / "leaderboard.png")
        _take_review(demo, Path(folder) / "review", target / "review.png")
        _take_proposal(demo, Path(folder) / "exams", target / "layout_proposal.png")
        _take_findings(demo, target / "findings.png")
        _take_blind_reading(demo, Path(folder) / "blind", target / "blind.png")
        _take_report(demo, Path(folder) / "reports", target / "report.png")
        _take_site(demo, Path(folder) / "board", target / "challenge_site.png")
        _take_planes(demo, target / "planes.png")  # last: the window remembers the layout


def _make_demo(folder: Path) -> Path:
    from napari_mamamia.services.demo import make_demo

    return make_demo(folder).data_set


def _window(data_set: Path, page: str, case_id: str = "") -> "tuple[napari.Viewer, MamamiaDock]":
    """Return a window with the dock on a page, and the case read if one is named."""
    import napari

    from napari_mamamia.widgets.dock.place import show_dock

    viewer = napari.Viewer(title="napari", show=True)
    viewer.theme = "dark"
    viewer.window.resize(WIDTH, HEIGHT)
    panel = show_dock(viewer, page)
    panel.reading.enter()
    panel.session.set_reader("Ana")
    panel.header.set_reader("Ana")
    if case_id:
        panel.open_data_set(data_set, case_id)
        _wait(lambda: panel.session.case is not None and panel.session.case.is_loaded)
    else:
        panel.open_data_set(data_set)
        _wait(lambda: panel.session.opened is not None)
    return viewer, panel


def _keep(viewer: "napari.Viewer", panel: "MamamiaDock", picture: Path) -> None:
    """Save the whole window and close it."""
    _wait(_after(1.5))
    viewer.window.screenshot(str(picture), flash=False, canvas_only=False)
    panel.close_down()
    viewer.close()


def _go_to_lesion(viewer: "napari.Viewer", panel: "MamamiaDock") -> None:
    panel.jumping.to_lesion()
    _wait(lambda: not panel.jobs.is_running("lesion"))


def _take(data_set: Path, picture: Path) -> None:
    """Show a prediction beside its reference, and its scores."""
    from napari_mamamia.widgets.base.layers import Role

    viewer, panel = _window(data_set, "Cases", FIRST_CASE)
    panel.predict()
    _wait(lambda: panel.scene.layer(Role.PREDICTION) is not None)  # a turn after its mask
    _go_to_lesion(viewer, panel)
    viewer.reset_view()
    panel.show_page("Score")
    dice = panel.findChild(object, "score_prediction_dsc")
    _wait(lambda: dice.text() != "–")
    _keep(viewer, panel, picture)


def _take_kinetics(data_set: Path, picture: Path) -> None:
    """Show curve types over the tumour, its curve, and the functional tumour volume."""
    from napari_mamamia.kinetics.map_kinds import MapKind

    viewer, panel = _window(data_set, "Kinetics", FIRST_CASE)
    _wait(lambda: "reference" in panel.session.masks)
    page, maps = panel.kinetics_page, panel.kinetics.map
    page.maps.setCurrentIndex(page.maps.findData(MapKind.TYPE))
    _wait(lambda: maps.shown is not None and maps.is_full)
    page.to_curves.click()
    _wait(lambda: len(panel.kinetics.curves.plot().lines) > 0)
    _wait(_after(0.5))
    viewer.scene.camera.zoom *= 2
    _go_to_lesion(viewer, panel)
    _keep(viewer, panel, picture)


def _take_proposal(data_set: Path, folder: Path, picture: Path) -> None:
    """Show the proposed layout of a folder that no known layout fits."""
    import shutil

    from napari_mamamia.widgets.cases.layout_dialog import LayoutDialog

    phases = sorted((data_set / "images" / FIRST_CASE).glob("*.nii.gz"))
    for patient in ("Pat_01", "Pat_02"):
        for visit in ("2021-03-05", "2021-06-11"):
            (folder / patient / visit).mkdir(parents=True)
            for number, phase in enumerate(phases):
                shutil.copy(phase, folder / patient / visit / f"t1_dyn_{number}.nii.gz")
    viewer, panel = _window(data_set, "Cases", FIRST_CASE)
    panel.open_data_set(folder)
    dialogs: list[LayoutDialog] = []

    def is_shown() -> bool:
        dialogs[:] = panel.window().findChildren(LayoutDialog)
        return bool(dialogs) and dialogs[0].isVisible() and dialogs[0].open.isEnabled()

    _wait(is_shown)
    _wait(_after(1.0))
    dialogs[0].grab().save(str(picture))
    dialogs[0].reject()
    panel.close_down()
    viewer.close()


def _take_leaderboard(data_set: Path, folder: Path, picture: Path) -> None:
    """Show a ranking of three made-up teams, and a case with one team's mask."""
    view_of = _rank_teams(data_set, folder)
    viewer, panel = _window(data_set, "Batch scoring", FIRST_CASE)
    panel.flow("Leaderboard").open_ranking(view_of)
    view = panel.results.extra["Leaderboard"]
    _wait(lambda: view.teams_model.rowCount() > 0)
    view.orders.setCurrentIndex(1)
    view.orders.activated.emit(1)
    panel.flow("Leaderboard").open_cell("PHANTOM_002", "dilated")
    _wait(lambda: panel.session.case_id == "PHANTOM_002" and panel.session.case.is_loaded)
    view.masks_chosen.emit("dilated", folder / "dilated")
    _wait(lambda: panel.reviewing.is_on and not panel.jobs.is_running("agreement"))
    _keep(viewer, panel, picture)


def _rank_teams(data_set: Path, folder: Path) -> Path:
    """Return the ranking of masks that are shifted, dilated and, of half the cases, eroded."""
    from napari_mamamia.features.challenge.services.rank.inputs import RankInputs, algorithm_table
    from napari_mamamia.features.challenge.services.rank.rank import rank_files
    from napari_mamamia.services.score.score import score_folders

    expert = data_set / "segmentations" / "expert"
    tables = []
    for team in _make_teams(expert, folder):
        score_folders(expert, folder / team, folder / "scores" / team, name=team)
        tables.append(algorithm_table(str(folder / "scores" / team / "case_scores.csv")))
    rank_files(RankInputs(algorithms=tuple(tables)), folder / "ranks")
    return folder / "ranks"


def _make_teams(expert: Path, folder: Path) -> tuple[str, ...]:
    """Write the masks of three teams, each into a folder of its own, and return their names."""
    import nibabel as nib
    import numpy as np
    from scipy import ndimage

    change = {
        "shifted": lambda mask: np.roll(mask, 1, axis=0),
        "dilated": ndimage.binary_dilation,
        "eroded": ndimage.binary_erosion,
    }
    for team, make in change.items():
        (folder / team).mkdir(parents=True)
        for number, path in enumerate(sorted(expert.glob("*.nii.gz"))):
            image = nib.load(path)
            array = make(np.asarray(image.dataobj) > 0).astype(np.uint8)
            if team != "eroded" or number % 2:
                nib.save(nib.Nifti1Image(array, image.affine), folder / team / path.name)
    return tuple(change)


def _take_review(data_set: Path, folder: Path, picture: Path) -> None:
    """Show a judge a case that two readers drew otherwise, and a place where they differ."""
    viewer, panel = _open_study(_read_study(data_set, folder), "Jo Judge")
    flow = panel.flow("Review")
    _wait(lambda: flow.page.judging.queue.count() > 0)
    flow.judging.take_up("c0001")
    _wait(lambda: panel.session.case is not None and panel.session.case.is_loaded)
    _wait(lambda: flow.judging.dispute is not None and panel.jobs.wait(0))
    panel.findChild(object, "review_next_difference").click()
    _wait(_after(0.5))
    viewer.scene.camera.zoom *= 2
    panel.findChild(object, "review_next_difference").click()
    _keep(viewer, panel, picture)


def _open_study(study: Path, person: str) -> "tuple[napari.Viewer, MamamiaDock]":
    """Return a window in which a person has opened a study."""
    import napari

    from napari_mamamia.widgets.dock.place import show_dock

    viewer = napari.Viewer(title="napari", show=True)
    viewer.theme = "dark"
    viewer.window.resize(WIDTH, HEIGHT)
    panel = show_dock(viewer, "Review")
    panel.reading.enter()
    flow = panel.flow("Review")
    flow.open_study(study, person)
    _wait(lambda: flow.client is not None)
    return viewer, panel


def _read_study(data_set: Path, folder: Path) -> Path:
    """Return a study whose first case one reader drew as the expert has it, and one too large."""
    import hashlib

    import nibabel as nib
    import numpy as np
    from scipy import ndimage

    from napari_mamamia.features.review.io.study_file import Draft
    from napari_mamamia.features.review.services.client import StudyClient

    study = _begin_study(data_set, folder)
    for number, who in enumerate(("Ana López", "Ben Beck")):
        client = StudyClient(study, who, folder / str(number))
        while (task := client.take_next()) is not None:
            image = nib.load(data_set / "segmentations" / "expert" / f"{task.case_id}.nii.gz")
            mask = np.asarray(image.dataobj) > 0
            if number:
                mask = ndimage.binary_dilation(mask, iterations=3)
            path = folder / f"{number}_{task.case_id}.nii.gz"
            nib.save(nib.Nifti1Image(mask.astype(np.uint8), image.affine), path)
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            client.hand_in(task, (path, digest), Draft())()
        client.close()
    return study


def _begin_study(data_set: Path, folder: Path) -> Path:
    """Begin a blind study of two readers and a judge."""
    from napari_mamamia.core.blinding import ALL_HIDDEN
    from napari_mamamia.features.review.core.review import ReadingMode, StudyPlan
    from napari_mamamia.features.review.services.plan_study import (
        StudyPeople,
        draft_study,
        freeze_study,
    )
    from napari_mamamia.services.case.data_set import open_data_set

    plan = StudyPlan("Trial", ReadingMode.ARBITRATION, 2, ALL_HIDDEN, seed=7)
    people = StudyPeople(("Lea Lead",), ("Ana López", "Ben Beck"), ("Jo Judge",))
    study = folder / "study"
    freeze_study(draft_study(open_data_set(data_set), plan, people), study)
    return study


def _take_findings(data_set: Path, picture: Path) -> None:
    """Show the BI-RADS form of a lesion next to the image."""
    viewer, panel = _window(data_set, "Findings", FIRST_CASE)
    _wait(lambda: "reference" in panel.session.masks)
    _go_to_lesion(viewer, panel)
    _keep(viewer, panel, picture)


def _take_blind_reading(data_set: Path, folder: Path, picture: Path) -> None:
    """Show a reader the first case of a study that hides predictions, masks and numbers."""
    viewer, panel = _open_study(_begin_study(data_set, folder), "Ana López")
    panel.flow("Review").reading.take_next()
    _wait(lambda: panel.session.case is not None and panel.session.case.is_loaded)
    _keep(viewer, panel, picture)


def _take_report(data_set: Path, folder: Path, picture: Path) -> None:
    """Show the report of a case in a browser."""
    masks = data_set / "segmentations" / "expert"
    _run("report", data_set, "--case", FIRST_CASE, "--masks", masks, "--out", folder)
    _browse(folder / f"{FIRST_CASE}.html", picture)


def _browse(page: Path, picture: Path) -> None:
    """Take a picture of an HTML page in Chromium."""
    import shutil
    import subprocess

    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        raise SystemExit("expected Chromium, but found none: install Debian's package chromium")
    size = f"--window-size={WIDTH},{HEIGHT}"
    options = ("--headless", "--no-sandbox", "--hide-scrollbars", size)
    command = [browser, *options, f"--screenshot={picture}", page.as_uri()]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)


def _take_site(data_set: Path, folder: Path, picture: Path) -> None:
    """Show the published site of a challenge with three made-up teams in a browser."""
    references = data_set / "segmentations" / "expert"
    challenge = folder / "challenge"
    clinical = next(data_set.glob("clinical*"))
    _run("challenge", "init", challenge, "--reference", references, "--clinical", clinical)
    _make_teams(references, challenge / "submissions")
    _run("challenge", "run", challenge)
    _run("challenge", "rank", challenge, "--out", folder / "board")
    _run("challenge", "publish", folder / "board", "--out", folder / "site")
    _browse(folder / "site" / "index.html", picture)


def _run(*arguments: object) -> None:
    """Run the command ``mamamia`` as a user does."""
    import subprocess

    command = [str(Path(sys.executable).with_name("mamamia")), *map(str, arguments)]
    if subprocess.run(command).returncode not in (0, 3):  # 3: a team left cases out
        raise SystemExit(f"expected the command to succeed: {command}")


def _take_planes(data_set: Path, picture: Path) -> None:
    """Show three linked planes at the tumour."""
    from napari_mamamia.widgets.viewer.planes import Layout

    viewer, panel = _window(data_set, "Cases", FIRST_CASE)
    _wait(lambda: "reference" in panel.session.masks)
    panel.planes.set_layout(Layout.PLANES)
    _wait(lambda: not panel.planes.is_building)
    _go_to_lesion(viewer, panel)
    _keep(viewer, panel, picture)


def _after(seconds: float) -> Callable[[], bool]:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() > end


def _wait(ready: Callable[[], bool], at_most_s: float = 60.0) -> None:
    from qtpy.QtWidgets import QApplication

    timed_out = _after(at_most_s)
    while not ready():
        QApplication.processEvents()
        time.sleep(0.01)
        if timed_out():
            raise TimeoutError("the window did not get ready in time: is the machine busy?")


if __name__ == "__main__":
    main()
