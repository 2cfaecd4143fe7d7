"""The panel opened from napari's menu in a napari that already runs, with the mouse."""

import pytest
from program import MENU_PLACE, close_by_keys, wait_still

pytestmark = pytest.mark.door
WAITS = """
import napari
from qtpy.QtWidgets import QWidget
window = napari.current_viewer().window._qt_window
result = [bool(window.findChildren(QWidget, name)) for name in ("mamamia_waiting", "mamamia_dock")]
"""


def choose(program, page):
    """Click an entry of Plugins > MAMA-MIA."""
    for menu, text in (
        ("menubar", "Plugins"),
        ("plugins", "MAMA-MIA"),
        ("sub", f"{page} (MAMA-MIA)"),
    ):
        code = MENU_PLACE.format(menu=menu, text=text)
        place = wait_still(lambda code=code: program.ask("evaluate", code=code), f"menu {text}")
        program.screen.click(*place)


@pytest.fixture
def napari_alone(start):
    """A napari without the panel, on the smallest screen."""
    program = start("napari", size=(1280, 720))
    program.canvas()
    return program


def test_the_menu_brings_it_words_first_and_the_page_of_the_last_click(
    napari_alone, picture_folder
):
    program = napari_alone
    choose(program, "Score")
    picture = lambda name: program.screen.picture(picture_folder / f"{name}.png")  # noqa: E731
    program.widget("mamamia_waiting_words", 30)
    picture("entry_waiting")
    choose(program, "Predict")
    program.widget("section_predict", 30)
    picture("entry_there")
    assert program.ask("evaluate", code=WAITS) == [False, True]
    assert close_by_keys(program) == 0
    assert "Traceback" not in program.output


@pytest.mark.night
def test_a_napari_that_is_closed_while_it_comes_ends_as_ever(napari_alone):
    program = napari_alone
    choose(program, "Score")
    assert close_by_keys(program) == 0
    assert "Traceback" not in program.output


@pytest.mark.night
def test_a_part_that_is_missing_is_told_in_napari(start, tmp_path, picture_folder):
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "nrrd.py").write_text("raise ImportError('no reader of NRRD here')\n")
    program = start("napari", size=(1280, 720))
    program.canvas()
    path = f"import sys; sys.path[:] = [p for p in sys.path if p != {str(broken)!r}]; result = True"
    program.ask("evaluate", code=f"{path}; sys.path.insert(0, {str(broken)!r})")
    choose(program, "Score")
    program.wait_for_text("no reader of NRRD here", 30)
    program.screen.picture(picture_folder / "entry_failed.png")
    assert program.ask("evaluate", code=WAITS) == [False, False]
    program.ask("evaluate", code=path)
    choose(program, "Predict")
    program.widget("section_predict", 30)
    assert program.ask("evaluate", code=WAITS) == [False, True]
    assert close_by_keys(program) == 0
