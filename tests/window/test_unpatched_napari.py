"""The window on an unpatched napari: `widgets.adapter.patches` has a switch for all patches."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from napari_mamamia.widgets import adapter
from napari_mamamia.widgets.adapter.patches import PATCHES, SWITCH, is_on

pytestmark = pytest.mark.window

STORY = Path(__file__).with_name("test_window_story.py")
MAIN_JOB = "test_the_main_job_from_an_empty_window_to_the_mask_after_a_restart"


def test_open_predict_paint_save_and_score_work_with_all_patches_off():
    test = f"{STORY}::{MAIN_JOB}"
    options = ["-q", "-n0", "-p", "no:cacheprovider", "--tb=short"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, test],
        env={**os.environ, SWITCH: "off"},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert "1 passed" in done.stdout


def test_each_patch_has_its_entry_in_the_table():
    sources = [path.read_text() for path in Path(adapter.__file__).parent.glob("*.py")]
    text = "\n".join(sources)
    decorated = re.findall(r"@patch(?:_within)?\n(?:@\w+\n)?def (\w+)\(", text)
    asked = re.findall(r'is_on\("(\w+)"\)', text)
    assert sorted(decorated + asked) == sorted(PATCHES)


def test_the_switch_turns_off_all_patches_or_those_that_it_names(monkeypatch):
    monkeypatch.delenv(SWITCH, raising=False)
    assert all(map(is_on, PATCHES))
    monkeypatch.setenv(SWITCH, "off")
    assert not any(map(is_on, PATCHES))
    monkeypatch.setenv(SWITCH, "sliced_once, guard_canvas")
    off = {"sliced_once", "guard_canvas"}
    assert {name for name in PATCHES if not is_on(name)} == off
