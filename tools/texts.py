"""The list of the window's texts, for whoever adds a language: `make texts`.

`python tools/texts.py` writes `locales/napari_mamamia.pot` from the calls of `tr` and `tr_n`, and
compiles each `locales/*/LC_MESSAGES/napari_mamamia.po`; `--check` says whether the list is true.
"""

import argparse
import ast
import io
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

PACKAGE = Path(__file__).parent.parent / "src" / "napari_mamamia"
LIST = PACKAGE / "locales" / "napari_mamamia.pot"
# A date of today would make each list another one.
_DATE = datetime(2026, 11, 24, tzinfo=UTC)

_CALLED = re.compile(r"\btr(_n)?\(")
"""In the source of each module with a text: to parse all takes seconds."""


def find_texts(source: str) -> Iterator[tuple[str, ...]]:
    """Yield the texts of `tr` (one) and `tr_n` (singular, plural) in a module's source."""
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
            continue
        count = {"tr": 1, "tr_n": 2}.get(node.func.id, 0)
        texts = [one.value for one in node.args[:count] if isinstance(one, ast.Constant)]
        if count and len(texts) == count:
            yield tuple(texts)


def list_vocabulary() -> set[str]:
    """Return the words that the window says of values: roles, steps, rules, the lexicon's terms."""
    from napari_mamamia.core.blinding import Hidden
    from napari_mamamia.features.review.core.review import ConsensusRule
    from napari_mamamia.io.forms.form_file import LEXICONS, read_shipped_lexicon
    from napari_mamamia.kinetics.map_kinds import MapKind
    from napari_mamamia.metrics.registry import Place, metrics_at
    from napari_mamamia.segmentation.model.planner import LADDER
    from napari_mamamia.services.case.hanging import HangingStep
    from napari_mamamia.services.export.formats import EXPORT_FORMATS
    from napari_mamamia.services.score.case_tags import KNOWN_TAGS
    from napari_mamamia.widgets.base.layers import MASK_ROLES
    from napari_mamamia.widgets.batch.options import Where
    from napari_mamamia.widgets.dock.steps import SECTIONS, STEPS, WORK_LIST

    fields = [field for name in LEXICONS for field in read_shipped_lexicon(name).fields]
    return {
        *(
            "Batch",
            "Right",
            "Left",
            "mean",
            "majority vote",
            "manual",
            "semiautomatic",
            "automatic",
        ),
        *map(str, (*MASK_ROLES, *Hidden, *ConsensusRule, *MapKind, *LADDER, *Where)),
        *SECTIONS,
        *(step.name for step in (WORK_LIST, *STEPS)),
        *(step.words for step in HangingStep),
        *(words for spec in EXPORT_FORMATS.values() for words in (spec.title, spec.tip)),
        *(words for spec in metrics_at(Place.CASE) for words in (spec.label, spec.meaning)),
        *KNOWN_TAGS,
        *(field.text for field in fields),
        *(term.text for field in fields for term in field.terms),
    }


def list_texts() -> str:
    """Return the list of all texts as a template of GNU gettext."""
    catalogue = Catalog(
        project="napari-mamamia",
        creation_date=_DATE,
        revision_date=_DATE,
        header_comment="# Texts of the window of napari-mamamia, written by `make texts`.",
    )
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE).as_posix()
        source = path.read_text(encoding="utf-8")
        if not _CALLED.search(source):
            continue
        for texts in find_texts(source):
            key = texts[0] if len(texts) == 1 else texts
            # Braces are Python's, not C's: Babel would not know them by itself.
            flags = {"python-brace-format"} if "{" in texts[0] else set()
            catalogue.add(key, locations=[(place, 0)], flags=flags)
    for word in list_vocabulary() - {""}:
        catalogue.add(word, locations=[("a value's word", 0)])
    stream = io.BytesIO()
    write_po(stream, catalogue, width=100, include_lineno=False, sort_output=True)
    lines = stream.getvalue().decode().splitlines(keepends=True)
    # Another version of Babel writes the same list.
    return "".join(line for line in lines if not line.startswith('"Generated-By'))


def compile_catalogues() -> list[Path]:
    """Compile what translators wrote; return the files made."""
    compiled = []
    for path in sorted(LIST.parent.glob("*/LC_MESSAGES/napari_mamamia.po")):
        with path.open("rb") as source, path.with_suffix(".mo").open("wb") as target:
            write_mo(target, read_po(source))
        compiled.append(path.with_suffix(".mo"))
    return compiled


def main() -> int:
    """Write the list and compile, or check the list."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say whether the list is true")
    texts = list_texts()
    if parser.parse_args().check:
        same = LIST.is_file() and LIST.read_text(encoding="utf-8") == texts
        print(f"{LIST.name}: {'true' if same else 'not true any more: make texts'}")
        return 0 if same else 1
    LIST.parent.mkdir(exist_ok=True)
    LIST.write_text(texts, encoding="utf-8")
    for path in [LIST, *compile_catalogues()]:
        print(path.relative_to(PACKAGE))
    return 0


if __name__ == "__main__":
    sys.exit(main())
