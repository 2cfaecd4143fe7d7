"""Every option of every command: what it refuses, read from the program's own parser."""

import re

import pytest
import typer
from typer.testing import CliRunner

from napari_mamamia.cli import exporting, importing, models
from napari_mamamia.cli.app import app
from napari_mamamia.cli.case import kinetics
from napari_mamamia.cli.quantities import Quantity
from napari_mamamia.core.errors import CaseError
from napari_mamamia.features.challenge.cli import ranking
from napari_mamamia.features.classifiers.cli import detection
from napari_mamamia.features.perfusion import cli as perfusion
from napari_mamamia.features.perfusion.kinetics.arterial_input import ArterialInput
from napari_mamamia.features.perfusion.kinetics.spoiled_echo import SpoiledEcho, require_t1

UNBOUND = {"--folds"}
"""Names."""


def commands_of(command, before=()):
    for name, inner in command.commands.items():
        if hasattr(inner, "commands"):
            yield from commands_of(inner, (*before, name))
        else:
            yield (*before, name), inner


def every_option():
    for words, command in commands_of(typer.main.get_command(app)):
        for param in command.params:
            if param.param_type_name == "option" and not param.is_flag:
                yield words, param


def is_numeric(param):
    return param.type_descriptor.annotation in (int, float, list[int], list[float])


def takes_text_of_numbers(param):
    return re.search(r"SECONDS|\d,\d", param.metavar or "") and not UNBOUND & set(param.opts)


EVERY = [pytest.param(*one, id=" ".join((*one[0], one[1].opts[0]))) for one in every_option()]
NUMBERS = [one for one in EVERY if is_numeric(one.values[1])]
TEXTS = [
    one for one in EVERY if not is_numeric(one.values[1]) and takes_text_of_numbers(one.values[1])
]


def typed(*words):
    done = CliRunner().invoke(app, [*map(str, words)])
    return done.exit_code, re.sub(r"[\s│╭╮╰╯─]+", " ", done.output)


def test_the_program_has_the_options_that_this_page_is_about():
    assert len(NUMBERS) > 30
    assert {one.id for one in TEXTS} >= {
        "kinetics --times", "kinetics --injection", "perfusion --t10", "perfusion --arrival",
    }  # fmt: skip


@pytest.mark.parametrize(("words", "param"), NUMBERS)
def test_a_number_says_its_range_and_refuses_what_lies_outside(words, param):
    quantity = param.type_descriptor.parameter_info.parser
    assert isinstance(quantity, Quantity), "give the option a parser=Quantity(...)"
    values = ["nan", "inf", "-inf", "1e30", "ten", "-1", str(quantity.most * 2 + 1)]
    values += ["0"] if quantity.least > 0 else []
    for value in values:
        code, said = typed(*words, param.opts[0], value)
        assert code == 2, (value, said)
        # what was expected, what came, what to do
        assert f"expected {quantity.what}" in said, said
        assert re.search(rf"got {re.escape(value)}: \w+", said), said
        assert "Input should" not in said


@pytest.mark.parametrize(("words", "param"), TEXTS)
@pytest.mark.parametrize("value", ["nan", "inf", "1e30"])
def test_a_text_of_numbers_refuses_what_is_no_measure(
    words, param, value, small_data_set, tmp_path
):
    needed = {
        "perfusion": ["--model", "tofts", "--aif", "parker", "--relaxivity", "4.5"],
    }.get(words[0], [])
    needed += ["--vfa", tmp_path] if param.name == "vfa_angles" else []
    out = tmp_path / "o"
    code, said = typed(*words, small_data_set, *needed, param.opts[0], value, "--out", out)
    assert code == 2, said
    assert re.search(rf"expected an? [\w ,']+ of .*, but got {value}: \w+", said), said
    assert not out.exists()


@pytest.mark.parametrize(("words", "param"), EVERY)
def test_an_empty_text_is_never_taken_for_nothing_or_for_the_current_folder(words, param):
    code, said = typed(*words, param.opts[0], "")
    assert code == 2
    assert f"expected a value for {param.opts[0]}, but got an empty string" in said, said


@pytest.mark.parametrize("words", [words for words, _ in commands_of(typer.main.get_command(app))])
def test_an_empty_argument_is_no_folder(words):
    code, said = typed(*words, "")
    assert code == 2, said
    assert re.search("got an empty string|unexpected extra argument|Missing option", said), said


@pytest.mark.parametrize(
    ("words", "table"),
    [
        (("kinetics",), kinetics),
        (("perfusion",), perfusion),
        (("export",), exporting),
        (("import",), importing),
        (("models", "convert"), models),
        (("rank",), ranking),
        (("score-detection",), detection),
    ],
)
def test_every_option_says_where_it_applies(words, table):
    command = dict(commands_of(typer.main.get_command(app)))[words]
    named = {param.name for param in command.params if param.name != "help"}
    assert set(table.OPTIONS) == named


@pytest.mark.parametrize(
    ("typed_words", "said"),
    [
        ("export D --masks M --out O --tie first", "--tie with --fuse majority"),
        ("export D --masks M --out O --made-by manual", "--made-by with --format dicom-seg"),
        ("export D --masks M --out O --identified-seg", "--identified-seg with --format dicom-seg"),
        (
            "export D --masks M --out O --format bids --channels 2",
            "--channels with --format nnunet",
        ),
        (
            "export D --masks M --out O --dataset-number 501",
            "--dataset-number with --format nnunet",
        ),
        ("models convert M --out O --time-limit 120", "--time-limit with --isolated"),
        ("models convert M --out O --as-root", "--as-root with --isolated"),
        ("kinetics D --out O --ftv-from S --pe-at 20", "--pe-at without --ftv-from"),
        ("rank --table T --out O --draws F --seed 42", "--seed without --draws"),
        ("rank A --out O --minimum-site 10", "--minimum-site with --table"),
        ("rank --table T --out O --profile paper", "--profile with --clinical"),
        (
            "rank A --out O --method mean-then-rank --correction holm",
            "--correction with the method",
        ),
        ("score-detection --out O --label 1", "--label with folders of masks"),
        ("score-detection --out O --reference R --lesions L", "--lesions with tables of boxes"),
        ("score-detection --out O --matching any-overlap --iou 0.2", "--iou with a matching"),
        ("kinetics D --out O --ftv-from S --workers 0", "--workers without --ftv-from"),
    ],
)
def test_an_option_that_means_nothing_is_an_error_even_with_its_usual_value(typed_words, said):
    code, told = typed(*typed_words.split())
    assert code == 2
    option, condition = said.split(" ", 1)
    assert f"{option} has an effect only {condition}" in told
    assert "leave it out, or change the other option" in told


@pytest.mark.parametrize(
    ("quantity", "take"),
    [
        (perfusion.REPETITION_MS, lambda ms: SpoiledEcho(ms / 1e3, 12.0)),
        (perfusion.VFA_DEGREES, lambda flip: SpoiledEcho(0.005, flip)),
        (perfusion.RELAXIVITY, lambda r1: SpoiledEcho(0.005, 12.0, r1)),
        (perfusion.HAEMATOCRIT, lambda share: ArterialInput(haematocrit=share)),
        (perfusion.DOSE, lambda dose: ArterialInput(dose_mmol_per_kg=dose)),
        (perfusion.T1_S, require_t1),
    ],
)
def test_an_option_and_what_it_is_for_have_the_same_range(quantity, take):
    for end, outside in ((quantity.least, -1e-3), (quantity.most, 1e-3)):
        take(end)
        with pytest.raises(CaseError):
            take(end + outside)


@pytest.mark.parametrize(
    ("command", "fields"),
    [
        ("list", {"silence": "idle_s", "least_pace": "bytes_per_s", "time": "list_s"}),
        ("fetch", {"silence": "idle_s", "least_pace": "bytes_per_s", "time": "image_s"}),
        ("send", {"silence": "idle_s", "least_pace": "bytes_per_s", "time": "image_s"}),
    ],
)
def test_the_limits_of_a_pacs_have_the_defaults_that_the_help_shows(command, fields):
    limits = pytest.importorskip("napari_mamamia.io.pacs.limits").TransferLimits()
    shown = {
        p.name: p for p in dict(commands_of(typer.main.get_command(app)))["pacs", command].params
    }
    assert {n: shown[n].default for n in fields} == {
        n: getattr(limits, f) for n, f in fields.items()
    }
    if "size" in shown:
        whole = limits.list_bytes if command == "list" else limits.study_bytes
        assert shown["size"].default * 2**20 == whole
    _, said = typed("pacs", command, "--help")
    assert f"[default: {limits.idle_s:g}" in said


@pytest.mark.parametrize(
    ("options", "but"),
    [
        (["--dry-run", "--overwrite"], "--overwrite has an effect only where something"),
        (["--dry-run", "--resume"], "--resume has an effect only where something is written"),
        (
            ["--dry-run", "--dates", "shift"],
            "--dates has an effect only where something is written",
        ),
        (
            ["--dry-run", "--columns", "c.json"],
            "--columns has an effect only where something is written",
        ),
    ],
)
def test_an_import_takes_no_option_that_means_nothing_beside_the_others(tmp_path, options, but):
    code, said = typed("import", tmp_path, "--out", tmp_path / "out", *options)
    assert (code, but in said) == (2, True), said
