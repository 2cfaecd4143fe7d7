"""The table of export formats: what stands in it shows wherever a format is offered."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import napari_mamamia
from napari_mamamia.core.choices import ExportFormat
from napari_mamamia.services.export.formats import EXPORT_FORMATS

TOP = Path(__file__).parents[2]
PACKAGE = Path(napari_mamamia.__file__).parent
NEW_FORMAT = '''
"""The format of a test: the number of voxels of each mask."""

from napari_mamamia.services.export.format_spec import FormatSpec


def _write(work, writer):
    path = writer.root / "counts" / f"{writer.case_id}.txt"
    path.parent.mkdir(exist_ok=True)
    path.write_text(str(int((work.drawn[0].labels > 0).sum())))
    writer.record(path, "other")


def _verify(path, file, manifest):
    if not path.read_text().isdigit():
        yield f"{file.name}: no number"


COUNTS = FormatSpec(
    title="voxel counts",
    tip="counts/ID.txt",
    purpose="who counts voxels",
    folders=("counts",),
    describe=lambda wish: (f"counts/ID.txt of {wish.n_masks} mask(s)",),
    write=_write,
    verify=_verify,
    verified=("other",),
)
'''
WINDOW = """
from qtpy.QtWidgets import QApplication
app = QApplication([])
from napari_mamamia.widgets.export.page import ExportOptions
from napari_mamamia.widgets.export.text import what_is_written
options = ExportOptions()
options.show_sets(1, 7)
options.formats["counts"].setChecked(True)
box = options.formats["counts"]
print(box.objectName(), box.text(), box.toolTip(), what_is_written(options.selection()), sep="|")
"""
DOCS = """
import sys
sys.path.insert(0, "tools")
from site_pages import export_formats
print(export_formats())
"""


def test_every_format_stands_in_the_table_and_its_folders_are_its_own():
    assert list(EXPORT_FORMATS) == list(ExportFormat)
    folders = [folder for spec in EXPORT_FORMATS.values() for folder in spec.folders]
    assert len(set(folders)) == len(folders)
    for spec in EXPORT_FORMATS.values():
        assert spec.title
        assert spec.tip
        assert spec.purpose
        assert set(spec.turned) <= set(spec.folders)


@pytest.fixture(scope="module")
def source_with_counts(tmp_path_factory):
    """The source with one more format: three files are touched."""
    source = tmp_path_factory.mktemp("source")
    package = source / PACKAGE.name
    shutil.copytree(PACKAGE, package)  # what is compiled stays true: files keep their times
    choices = package / "core" / "choices.py"
    text = choices.read_text("utf-8")
    last = '    SLICER = "slicer"\n'
    assert last in text
    choices.write_text(text.replace(last, f'{last}    COUNTS = "counts"\n'), "utf-8")
    export = package / "services" / "export"
    (export / "counts.py").write_text(NEW_FORMAT, "utf-8")
    table = export / "formats.py"
    text = table.read_text("utf-8")
    first = "from napari_mamamia.services.export.format_spec"
    text = text.replace(first, f"from napari_mamamia.services.export.counts import COUNTS\n{first}")
    line = "        ExportFormat.SLICER: SLICER,\n"
    assert line in text
    table.write_text(text.replace(line, f"{line}        ExportFormat.COUNTS: COUNTS,\n"), "utf-8")
    return source


@pytest.fixture
def printed(source_with_counts):
    """Return a function that runs Python on that source and gives what it printed."""

    def run(code, *words):
        done = subprocess.run(
            [sys.executable, "-c", code, *map(str, words)],
            env={**os.environ, "PYTHONPATH": str(source_with_counts), "COLUMNS": "200"},
            cwd=TOP,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


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


def as_json(*lines):
    return json.dumps([[str(word) for word in words] for words in lines])


@pytest.mark.door
def test_a_new_format_is_on_the_command_line_and_is_written_and_verified(
    printed, small_data_set, tmp_path
):
    masks = small_data_set / "segmentations" / "expert"
    out = tmp_path / "bundle"
    words = ("--masks", masks, "--case", "A_1", "--format", "counts", "--out", out)
    export = ("export", small_data_set, *words, "--no-quality")
    said = printed(COMMANDS, as_json(("export", "--help"), export, ("verify", out)))
    helped, exported, verified, _ = said.split("=====")
    assert "counts" in helped
    assert "1 mask saved and verified" in exported
    assert "all match the manifest" in verified
    assert int((out / "counts" / "A_1.txt").read_text()) > 0
    (out / "counts" / "A_1.txt").write_text("many")
    with pytest.raises(AssertionError, match="no number"):
        printed(COMMANDS, as_json(("verify", out)))


@pytest.mark.door
def test_a_new_format_is_on_the_page_export_and_in_the_docs(printed):
    shown, docs = printed(WINDOW + 'print("=====")' + DOCS).split("=====")
    name, text, tip, what = shown.split("|")
    assert (name, text, tip) == ("export_format_counts", "voxel counts", "counts/ID.txt")
    assert "counts/ID.txt of 7 mask" in what
    assert "| `counts` | voxel counts | who counts voxels |" in docs
