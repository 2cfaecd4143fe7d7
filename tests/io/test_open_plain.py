"""Files of others are opened so that no pipe, socket or device is waited for."""

import ast
import os

import pytest
from tests.source import calls_of, modules_with, place_of
from tests.stepped import Stepped

from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.io.dicom.headers import read_slices
from napari_mamamia.io.dicom.probe import is_dicom_file
from napari_mamamia.io.files.append_file import line_at, scan_chained_lines, scan_checked_lines
from napari_mamamia.io.files.checksums import sha256_of, sha256_of_large
from napari_mamamia.io.files.json_text import read_json
from napari_mamamia.io.tables.tables import read_case_scores
from napari_mamamia.segmentation.model.recipe import read_recipe

OWN = {
    "core.program.owner": "a file of /proc",
    "io.pacs.web": "made by us just before",
    "io.dicom.pixels": "opened as a plain file when its header was read",
    "io.data_set.export_layouts": "made by us just before",
    "io.volumes.inflate": "a file that is open already",
    "io.files.save": "made by us just before",
    "features.review.io.store": "this computer's own copy of what its reader did",
    "features.challenge.services.challenge.attempt": "logs, found to be plain files before",
    "io.volumes.voxel_writer": "made by us just before",
    "segmentation.bundle.in_sandbox": "inside the closed room, laid in by us",
    "segmentation.sandbox.cgroup": "a control group made just before",
    "segmentation.sandbox.outputs": "found to be a plain file just before",
    "segmentation.sandbox.runner": "inside the closed room; /proc",
    "features.challenge.services.submission.run_submission": "found to be a plain file just before",
    "segmentation.sandbox.watch": "a file of /proc",
    "core.plugins": "a module that Python imported",
    "core.texts": "found to be a plain file just before",
    "core.program.system": "a file of /proc; files for writers",
    "services.score.cohort_page": "made by us just before",
    "services.check_computer": "a file of /proc",
    "features.review.services.export.study_export": "made by us just before",
    "features.review.services.compare": "made by us just before",
    "services.predict.convert_model": "copied into a folder of our own just before",
    "services.report.printing": "a buffer in memory",
    "services.export.export": "a table that was read before",
    "commands": "a feature's opener",
    "widgets.dock.dock": "a feature's opener",
    "widgets.dock.parts": "a feature's opener",
    "services.batch.output_folder": "bytes that are put back as they were",
    "io.layouts.known": "a file of the package",
    "services.desktop": "a file of the package",
    "widgets.controls.grey_pixmap": "a picture in memory",
    "widgets.dock.steps": "a section of a step",
    "features.challenge.codabench_score": "in Codabench's container; made by us just before",
    "features.challenge.io.definition": "a file of the package",
    "features.challenge.io.codabench": "a file of the package",
    "features.challenge.services.challenge.leaks": "made by us just before",
    "features.prompt.segmentation.worker": "found to be a plain file just before",
    "smartpaint.learned.network": "a file of the package",
    "widgets.predict.recipe_flow": "a dialog",
}


def reading_calls(tree):
    """Yield the calls that read a file by its name: Path.open, read_text, read_bytes, os.open."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        modes = [one.value for one in node.args if isinstance(one, ast.Constant)]
        is_open = node.func.attr == "open" and modes[:1] in ([], ["rb"], ["r"], ["r+"], ["r+b"])
        if is_open or node.func.attr in ("read_text", "read_bytes"):
            yield node


def opens_itself(tree):
    names = {getattr(node.func.value, "id", "") for node in reading_calls(tree)}
    # members of archives, and the methods called open of our own records
    return bool(names - {"self", "archive", "opened", "book", "bundle", "os", "igzip", "gzip_ng"})


def test_every_file_is_opened_by_the_one_door_or_stands_here_with_its_reason():
    found = {
        place_of(path)
        for path, tree in modules_with(calls_of(("open", "read_text", "read_bytes")))
        if opens_itself(tree)
    }
    assert sorted(found - set(OWN)) == []
    assert sorted(set(OWN) - found) == []


READERS = {
    "journal": lambda path: list(scan_chained_lines(path)),
    "line": lambda path: line_at(path, 0),
    "results": lambda path: list(scan_checked_lines(path)),
    "checksum": sha256_of,
    "checksum by steps": lambda path: list(Stepped(sha256_of_large, path)),
    "scores": read_case_scores,
    "dicom": read_slices,
    "json": read_json,
    "recipe": read_recipe,
}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
@pytest.mark.parametrize("name", READERS)
@pytest.mark.timeout(60)
def test_a_pipe_in_the_place_of_a_file_is_an_error_and_is_not_waited_for(name, tmp_path):
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    with pytest.raises((MamamiaError, OSError), match="pipe, socket or device"):
        READERS[name](pipe)
    assert not is_dicom_file(pipe)
