"""What can be typed by name is defined once: the command line offers what the science takes."""

import ast
import enum
import inspect
from pathlib import Path
from typing import get_args

import pytest
import typer
from tests.cli.test_options import commands_of

from napari_mamamia import cli
from napari_mamamia.cli.app import app
from napari_mamamia.core import choices
from napari_mamamia.core.choices import Device, IsolationChoice, IsolationKind, ProfileName
from napari_mamamia.library import dicom, export, predict, score
from napari_mamamia.scoring.case.profiles import PROFILES


def values(kind):
    return sorted(one.value for one in kind)


def enums_of_options():
    for words, command in commands_of(typer.main.get_command(app)):
        for param in command.params:
            kind = param.type_descriptor.annotation
            kind = next(iter(get_args(kind)), kind)
            if isinstance(kind, type) and issubclass(kind, enum.Enum):
                yield " ".join((*words, param.opts[0])), kind


def test_no_command_has_a_list_of_choices_of_its_own():
    own = [
        f"{path.name}: {node.name}"
        for path in Path(cli.__file__).parent.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef) and any("Enum" in ast.unparse(b) for b in node.bases)
    ]
    assert own == []
    words = {
        choices.__name__,
        "napari_mamamia.features.review.core.review",
        "napari_mamamia.core.blinding",
    }
    assert {kind.__module__ for _, kind in enums_of_options()} == words
    assert len(dict(enums_of_options())) >= 16


def test_choices_cost_the_start_of_the_program_nothing():
    tree = ast.parse(inspect.getsource(choices))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported == {"enum", "typing"}
    assert not any(isinstance(node, ast.Import) for node in ast.walk(tree))


def test_choices_that_are_names_of_something_else_are_all_of_its_names():
    assert set(IsolationChoice) - {IsolationChoice.AUTO} == set(IsolationKind)
    assert values(ProfileName) == sorted(PROFILES)


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (choices.FormatName, choices.ExportFormat),
        (score.ProfileName, ProfileName),
        (predict.DeviceName, Device),
        (inspect.signature(export.export).parameters["harmonise"], choices.OrientationProfile),
        (inspect.signature(export.export).parameters["fuse"], choices.FuseRule),
        (inspect.signature(dicom.import_dicom).parameters["sides"], choices.Sides),
        (inspect.signature(dicom.import_dicom).parameters["dates"], choices.Dates),
    ],
    ids=lambda given: getattr(given, "__name__", getattr(given, "name", "")),
)
def test_the_types_of_the_library_list_every_choice(names, kind):
    assert sorted(get_args(getattr(names, "annotation", names))) == values(kind)
