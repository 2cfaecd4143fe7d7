"""Score and kinetics tables of a workspace, copied into a bundle."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from napari_mamamia.io.data_set.bundle import BundleFile, describe_file
from napari_mamamia.io.files.save import saving
from napari_mamamia.io.workspace.workspace import Workspace

__all__ = ["copy_tables"]

_TABLES: Final = frozenset({".csv", ".xlsx", ".parquet", ".json"})
_NOT_TABLES: Final = frozenset({"run.json"})
_FOLDERS: Final = ("scores", "kinetics")


def copy_tables(workspace: Workspace, out: Path, *, overwrite: bool) -> tuple[BundleFile, ...]:
    """Copy the tables of ``scores/`` and ``kinetics/`` of a workspace to ``out/tables/``.

    Files ``.csv``, ``.xlsx``, ``.parquet`` and ``.json`` are copied byte for byte, with their
    folders; hidden ones and ``run.json`` stay. Nothing is copied where there is none.

    Raises
    ------
    SaveConflictError, SaveError
        As for every file that is written.
    """
    copied = []
    for source in _tables(workspace.root):
        target = out / "tables" / source.relative_to(workspace.root)
        with saving(target, overwrite=overwrite) as temporary:
            temporary.write_bytes(source.read_bytes())
        copied.append(describe_file(out, target, "table"))
    return tuple(copied)


def _tables(root: Path) -> Iterator[Path]:
    for name in _FOLDERS:
        folder = root / name
        for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
            inside = path.relative_to(root).parts
            hidden = any(part.startswith(".") for part in inside)
            is_table = path.suffix.lower() in _TABLES and path.name not in _NOT_TABLES
            if is_table and not hidden and path.is_file():
                yield path
