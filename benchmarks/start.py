"""Seconds until something is on the screen after `mamamia view`, beside the import of Qt alone.

Run under Xvfb: ``xvfb-run -a python benchmarks/start.py [PATH]``. The goal is 1 s; the ratio to the
import of Qt says how busy the computer is.
"""

import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from PIL import ImageGrab

RUNS = 5
PROGRAM = Path(sys.executable).with_name("mamamia")


def is_lit() -> bool:
    """Return whether the screen shows anything but black."""
    return ImageGrab.grab(xdisplay=os.environ["DISPLAY"]).getbbox() is not None


def main() -> None:
    """Measure and print the median."""
    seconds, ratios = [], []
    for _ in range(RUNS):
        began = time.monotonic()
        subprocess.run([sys.executable, "-c", "import PyQt6.QtWidgets"], check=True)
        qt_s = time.monotonic() - began
        began = time.monotonic()
        window = subprocess.Popen([PROGRAM, "view", *sys.argv[1:]], stderr=subprocess.DEVNULL)
        while not is_lit() and window.poll() is None:
            time.sleep(0.01)
        seconds.append(time.monotonic() - began)
        ratios.append(seconds[-1] / qt_s)
        window.kill()
        window.wait()
        while is_lit():
            time.sleep(0.1)
    print(f"first picture after {median(seconds):.2f} s, {median(ratios):.1f} x the import of Qt")


if __name__ == "__main__":
    main()
