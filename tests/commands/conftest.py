"""napari's settings stay in a temporary place."""

import os
import tempfile
from pathlib import Path

os.environ.setdefault("NAPARI_CONFIG", str(Path(tempfile.mkdtemp()) / "settings.yaml"))
