"""Which functions of the source open a file, and which of them no format has to reach."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOMS = ("io", "segmentation", "scoring", "services", "features")
SOURCE = Path(__file__).parents[2] / "src" / "napari_mamamia"

_CALLS = {
    "read_text",
    "read_bytes",
    "read_json",
    "parsed_json",
    "open_zip",
    "ZipFile",
    "is_zipfile",
    "dcmread",
    "open_dicom",
    "open_bounded",
    "open_plain",
    "load_workbook",
    "safe_open",
    "loads",
    "load",
    "mmap",
    "segread",
    "read_model",
    "safe_load",
    "PyTorchFileReader",
    "reader",
    "DictReader",
    "genops",
    "read_csv",
    "read_excel",
    "read_parquet",
    "fromfile",
    "imread",
}

OWN = {
    "features.challenge.io.definition._read_built_in": "files of the package",
    "features.challenge.services.rank.making._read_model": "our own summary of a run, checked",
    "io.layouts.complete._read_study_date": "DICOM headers, by the formats of DICOM",
    "io.layouts.propose._read_study_uid": "DICOM headers, by the formats of DICOM",
    "services.desktop._is_own": "bytes that are searched, whatever they are",
    "services.desktop.install_entry": "a file of the package",
    "services.predict.durations._read_runs": "our own file; anything else counts as no runs",
    "io.layouts.known.list_layouts": "a file of the package, and those of installed plug-ins",
    "services.case.hanging.read_hanging_settings": "own preferences; a damaged text is none",
    "services.report.printing._set_pages": "a buffer in memory",
    "io.files.checksums._read_blocks": "bytes for a checksum, whatever they are",
    "io.dicom.facts._known_secret": "32 bytes that this software wrote, in the user's own folder",
    "io.data_set.export_layouts._require_written": "the zip just written, compared with its files",
    "io.data_set.export_layouts.write_zip": "bytes just written, into a zip that is written",
    "io.workspace.place._print_of_file": "bytes for a checksum, whatever they are",
    "io.files.save._force_to_disk": "nothing is read",
    "io.sr.documents._save_verified": "what was just written",
    "io.sr.documents.write_measurement_report": "the segmentation that was just written",
    "io.volumes.voxel_writer._checksum_of": "bytes for a checksum of what was just written",
    "io.tables.spreadsheets.write_workbook": "written",
    "features.review.io.study_file._copy_file": "copies a study's own files",
    "io.files.user_folders.copy_read_only_settings": "napari's own, copied as they are",
    "features.review.io.study_file.read_known": "this computer's; damaged is none",
    "features.review.io.study_file.ClientFiles.read_draft": "this computer's; damaged is none",
    "features.review.io.study_file.ClientFiles.read_images": "this computer's; damaged is none",
    "features.review.services.client._describe_making": "what this window saved just before",
    "features.review.io.store._send_lines": "what this computer wrote",
    "features.review.io.store.read_waiting": "this computer's own, sent as it is",
    "features.challenge.services.challenge.attempt._read_logs": "any bytes are a log",
    "features.challenge.services.challenge.begin._copy_clinical": "a copy of a read table",
    "features.review.services.plan_study.split_cases": "typed in this window",
    "features.review.services.signing._find_key_to_revoke": "`reader` is a person",
    "features.review.services.compare._make_file": "bytes just written",
    "features.review.services.export.study_export._copy_files": "any bytes, copied as they are",
    "features.review.services.export.study_export._read_back": "what was just written",
    "io.pacs.web.store_files": "open_dicom as everywhere; needs a PACS that takes objects",
    "segmentation.sandbox.cgroup.Group.is_out_of_memory": "a file of the kernel",
    "segmentation.sandbox.cgroup._list_parents": "/proc, and files of the kernel",
    "segmentation.sandbox.cgroup._write": "a file of the kernel",
    "segmentation.sandbox.watch.Inventory._look_at_handle": "/proc",
    "segmentation.sandbox.watch.Inventory._count_mappings": "/proc",
    "segmentation.sandbox.watch._count_locks": "/proc",
    "segmentation.sandbox.watch._count_written": "/proc",
    "segmentation.sandbox.watch._list_parents": "/proc",
    "segmentation.sandbox.watch.is_alive": "/proc",
    "segmentation.sandbox.watch._count_idle": "/proc",
    "segmentation.sandbox.watch._read_facts": "/proc",
    "segmentation.sandbox.watch._read_size": "/proc",
    "segmentation.sandbox.watch._socket_bytes": "/proc",
    "segmentation.sandbox.runner._list_children": "/proc",
    "segmentation.sandbox.runner.main": "inside the closed room: the order of its own parent",
    "segmentation.sandbox.runner.RestrictedDataset.read_json_file": "inside the closed room",
    "segmentation.bundle.in_sandbox.Model.__init__": "inside the closed room",
    "segmentation.bundle.in_sandbox._load_network": "inside the closed room",
    "segmentation.sandbox.cuda._AfterTorch.find_spec.<locals>.loaded": "inside the closed room",
    "segmentation.sandbox.cuda._map_load.<locals>.loaded": "inside the closed room",
    "segmentation.sandbox.pipes.EventPipe._note_event": "the pipe of a closed room",
    "segmentation.sandbox.sandbox._make_order": "text that was made a line before",
    "segmentation.sandbox.sandbox.find_interpreter": "what the interpreter says of itself",
    "segmentation.sandbox.run._limit_order": "text that was made a line before",
    "features.challenge.services.challenge.mask_answers.measure_mask": "the run's own settings",
    "services.batch.output_folder._read_run_file": "bytes that are put back as they were",
    "services.batch.child.Child.receive": "the pipe of its own child",
    "services.predict.convert_model._copy_small_files": "text that `read_plans` takes apart",
    "segmentation.run.registry._write_entry": "text that was made a line before",
    "segmentation.nnunet.unpickle.main": "inside the closed room; its result is read with care",
    "segmentation.model.openvino._translate_network": "a network that was just made",
    "segmentation.worker.worker._queue_requests": "the pipe of its own parent",
    "segmentation.worker.client._pass_on": "the pipe of its own child",
    "services.batch.child._queue_requests": "the pipe of its own parent",
    "services.batch.child._pass_on": "the pipe of its own child",
    "services.batch.child._answer_to": "the pipe of its own parent",
    "services.check_computer._find_processor": "/proc",
    "services.export.export.copy_tables": "bytes that are copied as they are",
    "features.challenge.cli.ranking.rank": "the ranking that was just written",
    "features.classifiers.cli.classifier.score_classifier": "the numbers that were just written",
    "features.classifiers.cli.classifier.split": "the split that was just written",
    "features.classifiers.cli.classifier.stack": "the numbers that were just written",
    "features.classifiers.cli.detection._print_detection": "the numbers that were just written",
    "features.challenge.codabench_score.run_task": "inside Codabench's container; its own bundle",
    "features.challenge.io.codabench._zip_program": "a bundle that is written",
    "features.challenge.services.challenge.leaks._list_packed": "bytes that are searched, not read",
    "features.challenge.services.challenge.leaks.find_leaks": "bytes that are searched, not read",
    "features.prompt.segmentation.engines.check_environment": "what its own environment says",
    "features.prompt.segmentation.process._pass_on": "the pipe of its own child",
    "features.prompt.segmentation.worker._load_local": "text that `read_plans` takes apart",
    "features.prompt.segmentation.worker._serve": "the pipe of its own parent",
    "services.score.cohort_page.saved_figures": "bytes of a picture that Qt shows",
}
"""What opens something that no stranger gave, or takes bytes as they are: why."""


_CALLED = re.compile(rf"\b(?:{'|'.join(sorted(_CALLS))}|open)\(")
"""In the text of each module with such a call: to parse all takes seconds."""


def opening_functions() -> dict[str, str]:
    """Return the names of functions that open something, and what they call."""
    found = {}
    for room in ROOMS:
        for path in sorted((SOURCE / room).rglob("*.py")):
            if path.parent.name == "rules" and room == "features":
                continue  # rules on events in memory
            module = path.relative_to(SOURCE).with_suffix("").as_posix().replace("/", ".")
            text = path.read_text("utf-8")
            if not _CALLED.search(text):
                continue
            for name, node in _functions(ast.parse(text), ""):
                calls = sorted({_opens(call) for call in _own_calls(node)} - {""})
                if calls:
                    found[f"{module}.{name}"] = ", ".join(calls)
    return found


def _functions(node: ast.AST, inside: str) -> Iterator[tuple[str, ast.AST]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{inside}{child.name}.")
        elif isinstance(child, ast.FunctionDef):
            yield f"{inside}{child.name}", child
            yield from _functions(child, f"{inside}{child.name}.<locals>.")
        else:
            yield from _functions(child, inside)


def _own_calls(function: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls of a function, not those of functions in it."""
    waiting = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef):
            continue
        if isinstance(node, ast.Call):
            yield node
        waiting += ast.iter_child_nodes(node)


def _opens(call: ast.Call) -> str:
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if name != "open":
        return name if name in _CALLS else ""
    texts = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    mode = next((text for text in texts if set(text) <= set("rwxab+t")), "r")
    return "open" if "r" in mode or mode in ("b", "t") else ""
