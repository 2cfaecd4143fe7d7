"""The window's words: English by itself, another language by a catalogue, never less."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from tests.source import calls_of, modules_with

from napari_mamamia.core.texts import LANGUAGE, fields_of, read_catalogue

ROOT = Path(__file__).parents[2]
SAID = """
from napari_mamamia.core.texts import tr, tr_n
print(tr("next case"), tr("Case {name}", name="A"), tr("{size:.1f} ml", size=2.25), sep="|")
print(tr_n("{n} case in {place}", "{n} cases in {place}", 1, place="B"), end="|")
print(tr_n("one case", "{n} cases", 3), tr("a {brace"), tr("a {brace}"), sep="|")
"""
ENGLISH = "next case|Case A|2.2 ml\n1 case in B|3 cases|a {brace|a {brace}\n"


def write_language(path, texts):
    catalogue = Catalog(locale="de")
    for key, text in texts.items():
        catalogue.add(key, text)
    with path.open("wb") as stream:
        write_mo(stream, catalogue)
    return path


def say(language):
    """What a program of its own says in a language, and what it complains of."""
    answer = subprocess.run(
        [sys.executable, "-c", SAID],
        env={LANGUAGE: str(language), "PYTHONPATH": str(ROOT / "src"), "PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return answer.stdout, answer.stderr


def test_a_catalogue_gives_its_words_and_its_plurals(tmp_path):
    texts = {
        "next case": "nächster Fall",
        "Case {name}": "Fall {name}",
        "{size:.1f} ml": "{size:.1f} Milliliter",
        ("{n} case in {place}", "{n} cases in {place}"): (
            "ein Fall in {place}",
            "{n} Fälle in {place}",
        ),
        ("one case", "{n} cases"): ("ein Fall", "{n} Fälle"),
    }
    words, trouble = say(write_language(tmp_path / "de.mo", texts))
    assert (
        words == "nächster Fall|Fall A|2.2 Milliliter\nein Fall in B|3 Fälle|a {brace|a {brace}\n"
    )
    assert trouble == ""


def test_a_text_that_says_other_values_is_not_taken(tmp_path):
    """A translator's slip would end the window, or read what no text says."""
    texts = {
        "Case {name}": "Fall {nmae}",
        "{size:.1f} ml": "{size.__class__} ml",
        "next case": "nächster {0} Fall",
        ("{n} case in {place}", "{n} cases in {place}"): ("ein {Fall", "{n.__class__} Fälle"),
        ("one case", "{n} cases"): ("ein Fall", "{n} {other}"),
    }
    assert say(write_language(tmp_path / "de.mo", texts)) == (ENGLISH, "")


def damaged(tmp_path):
    good = write_language(tmp_path / "good.mo", {"next case": "nächster Fall"}).read_bytes()
    evil = Catalog(locale="de")
    evil.add(("one case", "{n} cases"), ("ein Fall", "{n} Fälle"))
    with (tmp_path / "evil.mo").open("wb") as stream:
        write_mo(stream, evil)
    plural = (tmp_path / "evil.mo").read_bytes()
    return {
        "empty": b"",
        "text": b"next case = naechster Fall\n",
        "half": good[: len(good) // 2],
        "other numbers": good[:8] + b"\xff" * 8 + good[16:],
        "plural rule that is code": plural.replace(b"plural=(n != 1)", b"plural=exit(1) "),
    }


@pytest.mark.parametrize(
    "kind", ["empty", "text", "half", "other numbers", "plural rule that is code"]
)
def test_a_damaged_catalogue_leaves_english_and_says_so(tmp_path, kind):
    path = tmp_path / "de.mo"
    path.write_bytes(damaged(tmp_path)[kind])
    with pytest.warns(UserWarning, match="English is used"):
        words = read_catalogue({LANGUAGE: str(path)})
    assert words.gettext("next case") == "next case"


@pytest.mark.parametrize("language", ["tlh", "../../etc", "/nowhere/de.mo", "/dev/zero.mo"])
def test_a_language_that_is_not_there_leaves_english_and_says_what_is(language):
    with pytest.warns(UserWarning, match="English is used"):
        assert read_catalogue({LANGUAGE: language}).gettext("next case") == "next case"


def test_english_needs_no_catalogue():
    assert say("") == say("en") == (ENGLISH, "")


def test_the_values_of_a_text_are_named_with_how_they_are_written():
    assert fields_of("{size:.1f} of {name!r}, {{kept}}") == {"size:.1f", "name!r"}
    assert fields_of("a {brace") is None


SHOWING = {"setText", "setToolTip", "setPlaceholderText", "QLabel", "QCheckBox", "addItem"} | {
    *("button", "tool_button", "label", "heading", "hint", "say", "with_key"),
}


def plain_texts(tree):
    """Yield the sentences that a module hands to the screen as they are written."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name in SHOWING:
            values = [*node.args, *(word.value for word in node.keywords)]
            for one in values:
                if isinstance(one, ast.Constant) and isinstance(one.value, str):
                    words = one.value.split()
                    if len(words) > 1 and sum(word.isalpha() for word in words) > 1:
                        yield node.lineno, one.value


def test_no_sentence_of_the_window_is_left_out_of_the_list():
    plain = [
        (path.name, *text)
        for path, tree in modules_with(calls_of(SHOWING))
        if "widgets" in path.parts
        for text in plain_texts(tree)
    ]
    assert not plain
    assert list(plain_texts(ast.parse('box.setText("not in the list")'))) == [
        (1, "not in the list")
    ]


def test_the_list_for_translators_is_true():
    check = [sys.executable, str(ROOT / "tools" / "texts.py"), "--check"]
    answer = subprocess.run(check, capture_output=True, encoding="utf-8", check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr
