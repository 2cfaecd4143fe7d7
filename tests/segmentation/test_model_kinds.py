"""The table of model kinds: what stands in it is recognised, run and shown wherever models are."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

import napari_mamamia
from napari_mamamia.segmentation.model.kinds import NETWORK_KINDS, ModelKind
from napari_mamamia.segmentation.run.engines import MODEL_KINDS

TOP = Path(__file__).parents[2]
PACKAGE = Path(napari_mamamia.__file__).parent
NEW_KIND = '''
"""The kind of a test: what is brighter than a number is tumour."""

import json
from dataclasses import dataclass

from napari_mamamia.segmentation.model.card import ModelCard, summed
from napari_mamamia.segmentation.model.engine_settings import (
    EngineResult,
    EngineSettings,
    Ran,
    TilePlan,
)


def threshold_card(files, kind, checksums):
    return ModelCard(
        path=files.path,
        kind=kind,
        name=files.path.stem,
        channels=("image",),
        labels=(("tumour", (1,)),),
        weights=tuple(summed(files, files.sizes, checksums)),
    )


@dataclass
class ThresholdEngine:
    above: float
    settings: EngineSettings

    def plan(self, grid, region=None):
        return TilePlan(1, 0, 1, 1, grid.shape, 0)

    def predict(self, given):
        labels = (given.arrays[0] > self.above).astype("uint8")
        return EngineResult(labels, Ran((), (), 1, 1, 1, 0.5, "cpu", "torch", "fp32", 1))

    def run_one_tile(self):
        pass

    def close(self):
        pass


def load_threshold(card, settings):
    return ThresholdEngine(json.loads(card.path.read_text())["above"], settings)
'''
ENTRY = """        ModelKind.THRESHOLD: KindSpec(
            extras=("gui",),
            given="a file with a number",
            suffixes=(".above",),
            require=lambda settings: None,
            tiles=lambda card, settings, grid: None,
            load=load_threshold,
            card=threshold_card,
            backends=(),
        ),
"""
HERE = """
import sys
from pathlib import Path
import napari_mamamia.segmentation.model.device as device
from napari_mamamia.core.errors import MissingExtraError, ModelError
def missing():
    raise MissingExtraError("torch", "segment")
device.require_torch = missing
import napari_mamamia.segmentation.run.engines as engines
engines.require_torch = missing
from napari_mamamia.segmentation.run.registry import list_models
from napari_mamamia.services.predict.added_models import new_host, why_not_here
from napari_mamamia.services.predict.model_choice import planned
from napari_mamamia.services.predict.run_choices import RunChoices
(entry,) = list_models(Path(sys.argv[1]))
host = new_host()
print(repr(why_not_here(planned(entry, RunChoices(), host))))
try:
    planned(entry, RunChoices(backend="torch"), host)
except ModelError as error:
    print(error)
"""
WINDOW = """
from qtpy.QtWidgets import QApplication
app = QApplication([])
from napari_mamamia.widgets.predict.model_cards import _join_filters
print(_join_filters())
"""
DOCS = """
import sys
sys.path.insert(0, "tools")
from site_pages import model_kinds
print(model_kinds())
"""
COMMANDS = """
import json, sys
from napari_mamamia.cli import main
for words in json.loads(sys.argv[1]):
    sys.argv = ["mamamia", *words]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
    print("=====")
"""
"""One command after the other in one program: each start of its own costs two seconds."""


def test_every_kind_says_what_it_needs_and_the_rest_cannot_be_run():
    others = {ModelKind.NNUNET_V1, ModelKind.SUBMISSION, ModelKind.CHECKPOINT, ModelKind.UNKNOWN}
    assert set(MODEL_KINDS) == set(ModelKind) - others
    assert set(MODEL_KINDS) > NETWORK_KINDS
    for kind, spec in MODEL_KINDS.items():
        assert spec.extras, kind
        assert spec.given, kind
        assert spec.suffixes, kind
        assert (spec.card is None) == (kind is ModelKind.NNUNET)
        assert spec.rungs, kind


@pytest.fixture(scope="module")
def source_with_threshold(tmp_path_factory):
    """The source with one more kind: three files are touched."""
    source = tmp_path_factory.mktemp("source")
    package = source / PACKAGE.name
    shutil.copytree(PACKAGE, package)  # what is compiled stays true: files keep their times
    model, run = package / "segmentation" / "model", package / "segmentation" / "run"
    kinds = (model / "kinds.py").read_text("utf-8")
    for line, more in (
        ('    UNKNOWN = "unknown"\n', '    THRESHOLD = "threshold"\n'),
        ("_SUFFIXES: Final = {", '".above": ModelKind.THRESHOLD, '),
    ):
        assert line in kinds
        kinds = kinds.replace(line, line + more, 1)
    (model / "kinds.py").write_text(kinds, "utf-8")
    (run / "threshold.py").write_text(NEW_KIND, "utf-8")
    table = (run / "engines.py").read_text("utf-8")
    names = "from napari_mamamia.segmentation.run.threshold import load_threshold, threshold_card\n"
    for line, more in (
        ("from napari_mamamia.segmentation.network.card import network_card\n", names),
        ("MODEL_KINDS: Final[Mapping[ModelKind, KindSpec]] = MappingProxyType(\n    {\n", ENTRY),
    ):
        assert line in table
        table = table.replace(line, line + more, 1)
    (run / "engines.py").write_text(table, "utf-8")
    return source


@pytest.fixture
def printed(source_with_threshold, tmp_path):
    """Return a function that runs Python on that source and gives what it printed."""

    def run(code, *words):
        done = subprocess.run(
            [sys.executable, "-c", code, *map(str, words)],
            env={
                **os.environ,
                "PYTHONPATH": str(source_with_threshold),
                "COLUMNS": "200",
                "XDG_CACHE_HOME": str(tmp_path / "cache"),
            },
            cwd=TOP,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.mark.door
def test_a_new_kind_is_added_shown_and_predicts_from_the_command_line(
    printed, small_data_set, tmp_path
):
    model, registry = tmp_path / "bright.above", tmp_path / "models"
    model.write_text(json.dumps({"above": 30}))
    out, own = tmp_path / "out", ("--registry", registry)
    lines = [
        ("models", "add", model, *own),
        ("models", "show", "bright", *own),
        ("predict", small_data_set, "--model", "bright", *own, "--case", "A_1", "--out", out),
    ]
    said = printed(COMMANDS, json.dumps([[str(word) for word in words] for words in lines]))
    assert "threshold" in said.split("=====")[1]
    here = printed(HERE, registry)
    assert here.startswith("''\n")  # nothing of torch is asked for
    assert "torch does not run; choose the backend auto" in here
    image = np.asarray(nib.load(small_data_set / "images/A_1/A_1_0000.nii.gz").dataobj)
    mask = np.asarray(nib.load(out / "A_1.nii.gz").dataobj)
    assert np.array_equal(mask, image > 30)
    assert mask.any()


@pytest.mark.door
def test_a_new_kind_is_in_the_windows_dialog_and_in_the_docs(printed):
    shown = printed(WINDOW + DOCS)
    assert "threshold (*.above)" in shown
    assert "| threshold | `gui` | a file with a number |" in shown
