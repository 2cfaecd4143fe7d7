"""Whether a bundle tells the patients whose studies it was made from."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from napari_mamamia.core.errors import MamamiaError
from napari_mamamia.core.progress import Job
from napari_mamamia.io.bundle import MANIFEST_NAME, bundle_names
from napari_mamamia.io.dicom_persons import Persons, find_identifiers
from napari_mamamia.io.identifier_search import search_file
from napari_mamamia.io.identifiers import Identifier, folded, signs_of, without_signs
from napari_mamamia.services.export_seg import IDENTIFIED_FOLDER

__all__ = ["impersonal", "persons_in", "search_bundle"]


def persons_in(studies: Sequence[Path]) -> Job[Persons]:
    """Return a job for what tells the patients of `studies`, DICOM files or folders."""
    return (yield from find_identifiers(_files(studies)))


def search_bundle(root: Path, identifiers: Sequence[Identifier]) -> Job[tuple[str, ...]]:
    """Return a job for sentences on each file of a bundle that tells a patient; none if none does.

    The file's name and every byte of it are searched, the manifest's too. A sentence names the
    source's element, never what stands in it. Segmentations that were asked for with the patient's
    name lie in a folder of their own and are left out.
    """
    signs = signs_of(identifiers)
    found: list[str] = []
    for name in (*bundle_names(root), MANIFEST_NAME) if signs else ():
        if not (root / name).is_file() or name.startswith(f"{IDENTIFIED_FOLDER}/"):
            continue
        shown = without_signs(name, signs)
        in_name = {sign.element for sign in signs if sign.is_in(folded(name))}
        found += [f"{shown}: its name holds the source's {told}" for told in sorted(in_name)]
        try:
            inside = yield from search_file(root / name, signs)
        except MamamiaError as error:
            found.append(f"{shown}: not searched ({without_signs(str(error), signs)})")
            continue
        found += [f"{shown}: it holds the source's {told}" for told in sorted(inside)]
    return tuple(found)


def _files(studies: Sequence[Path]) -> Iterator[Path]:
    for study in studies:
        if study.is_dir():
            yield from (path for path in sorted(study.rglob("*")) if path.is_file())
        else:
            yield study


def impersonal(texts: Sequence[str], identifiers: Sequence[Identifier]) -> tuple[str, ...]:
    """Return texts that are shown to the user, without what tells a patient."""
    signs = signs_of(identifiers)
    return tuple(without_signs(text, signs) for text in texts)
