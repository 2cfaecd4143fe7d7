"""Where a security rule of the linter is set aside in the source, the line says why."""

import re
from pathlib import Path

import napari_mamamia

SET_ASIDE = re.compile(r"# noqa:[^#\n]*\bS\d{3}\b")
WITH_REASON = re.compile(r"# noqa: S\d{3} - \w+")


def test_each_security_rule_that_is_set_aside_has_its_reason_beside_it():
    lines = [
        line
        for path in Path(napari_mamamia.__file__).parent.rglob("*.py")
        for line in path.read_text("utf-8").splitlines()
        if SET_ASIDE.search(line)
    ]
    assert lines
    assert [line for line in lines if not WITH_REASON.search(line)] == []
