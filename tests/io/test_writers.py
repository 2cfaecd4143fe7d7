"""One way to write: the old file or the whole new one, never through somebody else's link.

The source is looked through for whatever makes or changes a file. It is right inside a block
``with saving(...) as temporary`` that writes to that path; each other place stands in `ELSEWHERE`
with the reason why nobody else can have prepared the file.
"""

import ast
from collections.abc import Iterator

from tests.source import calls_of, modules_with, place_of

ELSEWHERE = {
    "cli.scripting.run_with": "the system's null device",
    "features.challenge.codabench_score.main": "in Codabench's container, whose folder it is",
    "features.challenge.io.codabench._zip_program": "a zip in memory",
    "features.prompt.segmentation.worker": "a buffer in memory",
    "io.files.foreign._open_at_once": "opens with the flags it is given, those of reading",
    "services.case.explained_mask._second_name": "a new name of ours for the mask that is there",
    "services.case.sources._link": "a new name of ours for the volume that is there",
    "io.files.append_file.AppendFile._back_to": "its own file, opened by `_opened`",
    "core.program.system.open_own": "no link is followed; emptied or made by whoever asks, below",
    "io.files.append_file.opened_to_add": "opened by `_opened`",
    "features.challenge.io.site_file.site_key": "made anew (O_EXCL), then saved",
    "features.challenge.io.handed_in._Budget.copy": "made anew or refused (O_EXCL)",
    "io.dicom.facts._make_secret": "made anew or refused (O_EXCL)",
    "io.dicom.writer.write_study": "in its own folder, which gets its name when whole",
    "io.dicom.zip._create_file": "made anew or refused (x), in its own folder",
    "features.review.io.store._read_clock_of": "made anew or refused (x), and removed",
    "io.files.save._claim_and_replace": "made anew or refused",
    "io.files.save._force_to_disk": "nothing is written",
    "io.files.save._rename_to_free_name": "made anew or refused",
    "io.volumes.voxel_writer._write_content": "the temporary path of `saving`, handed on",
    "io.tables.spreadsheets.write_workbook": "a member of the zip that is being written",
    "scoring.report.figures.png_of": "into memory",
    "scoring.report.figures.svg_of": "into memory",
    "segmentation.sandbox.cgroup._write": "a file of a group of the system, no file of a user",
    "segmentation.sandbox.sandbox._copy_phases": "in a folder of its own",
    "segmentation.sandbox.sandbox._list_readable": "in a folder of its own",
    "segmentation.sandbox.sandbox.lay_out": "in a folder of its own",
    "segmentation.sandbox.runner._write_table": "inside the closed room",
    "segmentation.sandbox.runner.main": "an end of its own pipe",
    "segmentation.sandbox.seccomp.filter_file": "a file without a name, in memory",
    "segmentation.sandbox.watch.offer_to_end": "/proc of a child of its own",
    "segmentation.model.nnunet_files._extract_member": "made anew or refused (x), in its own "
    "folder",
    "segmentation.nnunet.unpickle.main": "inside the closed room",
    "segmentation.run.self_test._write_model": "in a folder of its own",
    "segmentation.worker.shared_arrays.share": "made anew or refused (x)",
    "segmentation.worker.worker.main": "an end of its own pipe",
    "services.batch.child._answer_all": "an end of its own pipe",
    "features.review.services.compare.load_stored_labels": "in a folder of its own",
    "services.predict.convert_model._copy_small_files": "in its own folder, which gets its name "
    "when whole",
    "services.predict.wrap_bundle.wrap_bundle": "in its own folder, which gets its name when whole",
    "widgets.viewer.planes.Planes._finish_pane": "views are linked, no file",
}

WRITERS = {
    *("write_text", "write_bytes", "touch", "truncate", "ftruncate", "tofile"),
    *("hardlink_to", "symlink_to", "link", "symlink", "mkstemp", "NamedTemporaryFile"),
    *("savez", "savez_compressed", "savetxt", "savefig", "to_csv", "to_excel", "to_parquet"),
    *("save_as", "save_file", "dcmwrite", "FileHandler", "RotatingFileHandler", "WriteImage"),
    *("write_table", "imsave", "imwrite", "copyfile", "copy2", "copytree"),
}
OF_MODULES = {"shutil": {"copy", "move"}, "np": {"save"}, "torch": {"save"}, "nib": {"save"}}
OPENERS = {"open", "fdopen", "ZipFile", "ZstdFile", "GzipFile"}
TO_WRITE = set("wax+")


def writer_of(call: ast.Call) -> str | None:
    """Return what in a call writes, None where nothing does."""
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    owner = getattr(getattr(function, "value", None), "id", "")
    if owner == "self":  # a method of ours is looked at where it stands
        return None
    if name in WRITERS or name in OF_MODULES.get(owner, ()):
        return name
    if (owner, name) == ("os", "open"):
        flags = ast.dump(call)
        return None if "O_RDONLY" in flags and "O_CREAT" not in flags else name
    return name if name in OPENERS and set(mode_of(call)) & TO_WRITE else None


def mode_of(call: ast.Call) -> str:
    """Return the mode that a file is opened with, "r" where none is given."""
    values = [*call.args, *(word.value for word in call.keywords if word.arg == "mode")]
    texts = [value.value for value in values if isinstance(value, ast.Constant)]
    modes = [
        text for text in texts if isinstance(text, str) and text and set(text) <= set("rwaxbt+")
    ]
    return modes[0] if modes else "r"


def writers(node: ast.AST, place: str, saved: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield the functions that write to something else than what `saving` gave."""
    for child in ast.iter_child_nodes(node):
        inner, own = place, saved
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = f"{place}.{child.name}"
        if isinstance(child, ast.With):
            own = saved | {
                item.optional_vars.id
                for item in child.items
                if isinstance(item.context_expr, ast.Call)
                and getattr(item.context_expr.func, "id", "") == "saving"
                and isinstance(item.optional_vars, ast.Name)
            }
        if isinstance(child, ast.Call) and writer_of(child) is not None:
            names = {name.id for name in ast.walk(child) if isinstance(name, ast.Name)}
            if not names & saved:
                yield place
        yield from writers(child, inner, own)


def found_in(text: str) -> set[str]:
    return set(writers(ast.parse(text), "module"))


def test_every_file_is_written_in_the_one_way_or_stands_here_with_its_reason():
    found = {
        place
        for path, tree in modules_with(
            calls_of(set().union(WRITERS, OPENERS, *OF_MODULES.values()))
        )
        for place in writers(tree, place_of(path))
    }
    assert sorted(found - ELSEWHERE.keys()) == []
    assert sorted(ELSEWHERE.keys() - found) == []


def test_the_search_itself_finds_what_it_is_for():
    """A search that sees nothing would pass everything."""
    bad = (
        "def f(path):\n    {}\n",
        "class A:\n    def f(self, path):\n        with suppress(OSError):\n            {}\n",
    )
    calls = (
        'path.open("w")',
        'open(path, mode="ab")',
        "path.write_text(text)",
        "np.save(path, array)",
        "shutil.copy(source, path)",
        "os.open(path, os.O_WRONLY | os.O_CREAT)",
        "os.open(path, flags)",
        "figure.savefig(path)",
        "table.to_excel(path)",
    )
    for form in bad:
        for call in calls:
            assert len(found_in(form.format(call))) == 1, call
    good = "def f(path):\n    with saving(path) as part:\n        part.write_text(text)\n"
    assert found_in(good) == set()
    assert found_in('def f(path):\n    path.open("rb")\n    labels.copy()\n') == set()
