"""The panel opened from napari's menu in a napari that runs and has none of our modules yet.

``python benchmarks/panel_entry.py`` prints one line for ``window.py``, which runs it: the account
of the action, and in `late` the longest time (ms, on the clock) for which the event loop was not
asked while the panel came: another program's load counts there, a lock held by a thread, too.
"""

import json
import os
import sys
import tempfile
import time
from itertools import pairwise

settings = tempfile.TemporaryDirectory()
os.environ["NAPARI_CONFIG"] = f"{settings.name}/settings.yaml"
os.environ["MAMAMIA_CONFIG_DIR"] = settings.name

import napari  # noqa: E402
from qtpy.QtCore import QTimer  # noqa: E402
from qtpy.QtGui import QAction  # noqa: E402
from qtpy.QtWidgets import QWidget  # noqa: E402

from main_thread import MeteredApplication, TurnSampler, rest, tree_of, wait_until  # noqa: E402
from memory_state import MemoryWalk  # noqa: E402

SETTLED_MS = 1500
TOLD_S, TREE_S = 0.04, 0.004


def find_entry(viewer: napari.Viewer, title: str) -> QAction:
    """Return our entry of napari's menu."""
    menu = viewer.window.plugins_menu
    for part in ("MAMA-MIA", title):
        menu.aboutToShow.emit()
        action = next(one for one in menu.actions() if one.text().startswith(part))
        menu = action.menu()
    return action


def is_seen(window: QWidget) -> bool:
    """Return whether the panel is on screen."""
    panel = window.findChild(QWidget, "mamamia_dock")
    return panel is not None and panel.isVisible()


def main() -> None:
    """Open the panel once."""
    sampler = TurnSampler() if "--turns" in sys.argv else None
    application = MeteredApplication(sys.argv[:1], sampler)
    viewer = napari.Viewer(show=False)
    viewer.window.resize(1400, 900)
    viewer.show()
    rest(SETTLED_MS)
    entry = find_entry(viewer, "Cases")
    window = viewer.window._qt_window
    beats = [time.perf_counter()]
    beat = QTimer(window)
    beat.timeout.connect(lambda: beats.append(time.perf_counter()))
    walk = MemoryWalk().walk()
    account = application.begin()
    beat.start(5)
    QTimer.singleShot(0, entry.trigger)
    took = wait_until(lambda: is_seen(window))
    rest(SETTLED_MS)
    late = max(after - before for before, after in pairwise(beats))
    found = {name: 1e3 * getattr(account, name) for name in ("longest", "ours", "drawn")}
    found |= {"collected": 1e3 * account.collected, "where": account.where, "walk": walk}
    if account.stacks and account.longest >= TOLD_S:
        print(*tree_of(account.stacks, TREE_S), sep="\n", file=sys.stderr, flush=True)
    print(json.dumps(found | {"took": took, "late": 1e3 * late}), flush=True)
    from napari_mamamia.widgets.dock.place import dock_of

    dock_of(viewer).close_down()
    viewer.close()


if __name__ == "__main__":
    main()
