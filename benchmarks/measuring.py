"""What a move of the mouse costs in the real window while something is measured.

Run under a screen: ``xvfb-run -a python benchmarks/measuring.py``. The case and the window of
slice_step.py: 160x448x448, three masks as outlines, reading mode, 1400x900. A move is one event of
the mouse on the picture and what is drawn for it; the time is the processor's, of the window's
thread. States: no tool, each tool of Measure begun at the middle: its line and its number go
with the mouse. Medians of all moves; the states take turns.
"""

import argparse
import os
import statistics
import time

from slice_step import RADII, make_mask, open_ours, settle

# slice_step gives napari settings of its own before it is imported
from qtpy.QtCore import QPoint, Qt  # isort: skip
from qtpy.QtTest import QTest  # isort: skip
from qtpy.QtWidgets import QApplication, QWidget  # isort: skip

from napari_mamamia.widgets.dock.dock import MamamiaDock  # isort: skip
from napari_mamamia.widgets.dock.place import dock_of  # isort: skip
from planes import make_case  # isort: skip

MOVES = 40
TOOLS = ("no tool", "ruler", "diameters", "ellipse")
LEFT = Qt.MouseButton.LeftButton


def begin_drawing(panel: MamamiaDock, native: QWidget, tool: str) -> None:
    """Take a tool and click its first place."""
    if tool != "no tool":
        panel.measuring.actions()[tool]()
        QTest.mouseClick(native, LEFT, pos=native.rect().center())


def measure_moves(native: QWidget) -> list[float]:
    """Return the processor milliseconds of each of some moves along a line."""
    middle, found = native.rect().center(), []
    for k in range(MOVES):
        place = middle + QPoint(10 + 3 * k, 5 + k)
        began = time.thread_time()
        QTest.mouseMove(native, place)
        QApplication.processEvents()
        found.append(1000 * (time.thread_time() - began))
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    masks = {role: make_mask(radius) for role, radius in RADII.items()}
    viewer = open_ours(make_case(), masks)
    settle(2.0)
    panel, native = dock_of(viewer), viewer.window._qt_viewer.canvas.native
    panel.session.set_reader("Ana")
    panel.show_page("View")
    settle(1.0)
    found: dict[str, list[float]] = {tool: [] for tool in TOOLS}
    for _ in range(options.rounds):
        for tool in TOOLS:
            begin_drawing(panel, native, tool)
            settle(0.5)
            if (panel.active_tool.tool is not None) != (tool != "no tool"):
                raise SystemExit(f"{tool} is not in hand: nothing would be measured")
            found[tool] += measure_moves(native)
            panel.active_tool.turn_off()
            settle(0.5)
    print(f"load {os.getloadavg()[0]:.1f}; processor ms of a move, the window's thread:")
    for tool, times in found.items():
        print(f"  {tool:<10} {statistics.median(times):6.1f}   (most {max(times):.1f})")
    viewer.close()


if __name__ == "__main__":
    main()
