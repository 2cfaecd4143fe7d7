"""A key changed in the table of keys, by mouse and keyboard: table, tooltip and act, also later."""

import pytest
from program import close_by_keys, wait_until
from test_large_text import START, ask, wait_for_case

pytestmark = pytest.mark.door

SHOWN = START + "result = [one.name for one in panel.viewer.layers if one.visible]"
EMPTY = (
    START
    + """
from qtpy.QtWidgets import QWidget
rows = [one for one in panel.keys_panel.findChildren(QWidget) if one.objectName()[:4] == "key_"]
result = [one.objectName() for one in rows if one.isVisible() and one.height() < 5]
"""
)
FOCUS = START + "panel.window().activateWindow(); panel._focus_image()"


def subtracts(program, key):
    """Press a key over the picture; say whether the subtraction is on screen then."""
    before = ask(program, SHOWN)
    program.screen.key(key)
    try:
        wait_until(lambda: ask(program, SHOWN) != before, "another picture", 3)
    except AssertionError:
        return False
    return any(" - " in name for name in ask(program, SHOWN))


def check(program, shown):
    assert program.ask("evaluate", code=START + TIP)[0].endswith(f"(key {shown})")
    ask(program, FOCUS)
    assert not subtracts(program, "d"), "the old key does nothing"
    assert subtracts(program, "shift+b"), "the new one does it"
    program.screen.key("shift+b")


TIP = """
from qtpy.QtWidgets import QWidget
button = panel.findChild(QWidget, "view_image_subtraction")
result = [button.toolTip(), button.accessibleDescription()]
"""


@pytest.mark.night  # by day test_own_keys changes keys, without a started program
def test_a_changed_key_is_followed_by_table_tooltip_and_act_also_after_a_restart(
    start, small_data_set, tmp_path
):
    program = start("mamamia", "view", small_data_set, "--case", "A_1")
    wait_for_case(program)
    program.click("header_keys")
    program.click("key_subtraction")
    program.screen.key("shift+b")
    wait_until(lambda: program.widgets(name="key_subtraction", text="Shift+B"), "the new key", 10)
    assert not ask(program, EMPTY), "every row of the table has its size"
    program.click("key_ruler")
    wait_until(lambda: program.widgets(name="key_ruler", text="press a key…"), "it waits", 10)
    program.screen.key("shift+b")
    wait_until(lambda: program.widgets(name="keys_hint", part="Not changed"), "a refusal", 10)
    assert not ask(program, EMPTY)
    program.click("keys_close")
    check(program, "Shift+B")
    assert close_by_keys(program) == 0, program.output
    (program.folder / "config").rename(tmp_path / "config")
    again = start(
        "mamamia",
        "view",
        small_data_set,
        "--case",
        "A_1",
        MAMAMIA_CONFIG_DIR=str(tmp_path / "config"),
    )
    wait_for_case(again)
    check(again, "Shift+B")
    again.click("header_keys")
    assert again.widget("key_subtraction")["text"] == "Shift+B"
    assert close_by_keys(again) == 0, again.output
