"""docs/security.md names tests, files and options that exist."""

import re
from pathlib import Path

TOP = Path(__file__).parents[2]
PAGE = (TOP / "docs" / "security.md").read_text()


def test_each_test_and_file_that_the_page_names_exists():
    sources = "\n".join(path.read_text() for path in (TOP / "tests").rglob("test_*.py"))
    names = set(re.findall(r"`(test_\w+)`", PAGE))
    assert len(names) > 8
    files = {path.stem for path in (TOP / "tests").rglob("test_*.py")}
    assert [n for n in names if f"def {n}(" not in sources and n not in files] == []
    for named in re.findall(r"`((?:tests|core)/[\w/.]+)`", PAGE):
        assert (TOP / named).exists() or (TOP / "src" / "napari_mamamia" / named).exists(), named


def test_each_option_that_the_page_names_exists():
    sources = "\n".join(path.read_text() for path in (TOP / "src").rglob("cli/*.py"))
    options = set(re.findall(r"`(?!pip)[a-z ]*(--[a-z-]+)`", PAGE))
    assert len(options) > 4
    assert [option for option in options if f'"{option}"' not in sources] == []
