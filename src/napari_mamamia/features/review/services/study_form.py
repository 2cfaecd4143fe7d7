"""Files that are frozen with a study: protocol, form, reading order."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from napari_mamamia.core.errors import CaseError, FormatError
from napari_mamamia.core.form import Form
from napari_mamamia.features.review.core.quality import Queue
from napari_mamamia.features.review.core.review import Study
from napari_mamamia.features.review.io.quality_files import queue_text, read_queue
from napari_mamamia.io.files.checksums import sha256_of
from napari_mamamia.io.forms.form_file import form_text, read_form
from napari_mamamia.io.workspace.protocol import Protocol, read_protocol, read_protocol_text

PROTOCOL: Final = "protocol.json"
FORM: Final = "form.json"
ORDER: Final = "queue.json"


def list_texts(protocol: Path | None, order: Path | None = None) -> tuple[tuple[str, str], ...]:
    """Return the files to freeze with a study: (name, content).

    The form is written in full, because another release of this software may contain other terms.

    Raises
    ------
    FormatError
        If the protocol or the queue is invalid.
    """
    texts = []
    form = None if protocol is None else read_protocol(protocol).form
    if protocol is not None:
        texts.append((PROTOCOL, read_protocol_text(protocol)))
    if form is not None:
        texts.append((FORM, form_text(form)))
    if order is not None:
        texts.append((ORDER, queue_text(read_queue(order))))
    return tuple(texts)


def order_cases(order: Path, case_ids: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the cases of a queue in order, restricted to `case_ids` unless empty.

    Raises
    ------
    CaseError
        If a case of `case_ids` is not in the queue.
    """
    queued = [one.case_id for one in read_queue(order).places]
    unknown = sorted(set(case_ids) - set(queued))
    if unknown:
        raise CaseError(
            f"expected cases of the queue {order}, but found {unknown[0]!r}: leave it out, or make "
            "the queue from scores that contain it"
        )
    return tuple(one for one in queued if not case_ids or one in set(case_ids))


def hash_text(text: str) -> str:
    """Return the SHA-256 of a text as UTF-8."""
    return hashlib.sha256(text.encode()).hexdigest()


def load_study_form(folder: Path, study: Study) -> Form | None:
    """Return the form of a study, None if there is none.

    Raises
    ------
    FormatError
        If the file is missing or was changed since the freezing.
    """
    return read_form(folder / FORM) if _require_same(folder, study, FORM) else None


def load_study_protocol(folder: Path, study: Study) -> Protocol | None:
    """Return the protocol of a study, None if there is none; errors as in `load_study_form`."""
    return read_protocol(folder / PROTOCOL) if _require_same(folder, study, PROTOCOL) else None


def load_study_queue(folder: Path, study: Study) -> Queue | None:
    """Return the queue of a study, None if there is none; errors as in `load_study_form`."""
    return read_queue(folder / ORDER) if _require_same(folder, study, ORDER) else None


def list_changed_files(folder: Path, study: Study) -> tuple[tuple[str, str], ...]:
    """Return the frozen files that were changed: (name, description)."""
    changed = []
    for file in study.files:
        try:
            _require_same(folder, study, file.name)
        except FormatError as error:
            changed.append((file.name, str(error)))
    return tuple(changed)


def _require_same(folder: Path, study: Study, name: str) -> bool:
    """Return whether the study has a frozen file of this name; raise an error if it was changed."""
    digits = next((file.sha256 for file in study.files if file.name == name), "")
    if not digits:
        return False
    digest = sha256_of(folder / name)
    if digest != digits:
        raise FormatError(
            f"expected the study's {name} in {folder} as it was frozen (SHA-256 {digits[:16]}), "
            f"but found {digest[:16]}: restore it from a backup or a colleague"
        )
    return True
