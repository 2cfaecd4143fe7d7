"""`mamamia view` as a user types it."""

import numpy as np
import pytest
from program import wait_until

pytestmark = pytest.mark.door


def test_mamamia_view_shows_the_case_and_changes_its_phase(start, small_data_set):
    program = start("mamamia", "view", small_data_set, "--case", "A_1")
    program.wait_for_text("A_1")
    wait_until(lambda: program.canvas_picture().max() > 100, "the first phase")
    before = program.canvas_picture()
    x, y, width, height = program.canvas()
    program.screen.xdotool("mousemove", x + width // 2, y + height // 2)
    program.screen.key("period")
    wait_until(
        lambda: np.abs(program.canvas_picture().astype(int) - before).mean() > 0.01,
        "another phase",
    )
