"""What the library advises names its arguments, never options of the command line."""

import inspect
import re

import pytest

import napari_mamamia as mm
from napari_mamamia.core.errors import Remedy
from napari_mamamia.core.records import CaseFailure
from napari_mamamia.library.argument_words import advise_failures, name_arguments

OPTION = re.compile(r"(?<![\w-])--[a-z]")


@pytest.fixture(scope="module")
def data_set(tmp_path_factory):
    place = tmp_path_factory.mktemp("phantoms") / "data"
    return mm.make_phantoms(place, 1, shape=(16, 32, 32), progress=False)


def refusal(work):
    """Return what `work` is refused with."""
    with pytest.raises(mm.MamamiaError) as caught:
        work()
    return str(caught.value)


def test_results_that_are_there_are_continued_by_an_argument(data_set, tmp_path):
    mm.predict(data_set, out=tmp_path / "out", progress=False)
    text = refusal(lambda: mm.predict(data_set, out=tmp_path / "out", progress=False))
    assert 'existing="resume"' in text
    assert not OPTION.search(text)


def test_a_study_that_is_not_given_is_named_as_the_argument(data_set, tmp_path):
    masks = data_set.root / "segmentations" / "expert"
    text = refusal(
        lambda: mm.export(
            data_set, masks, tmp_path / "b", formats=["dicom-seg"], study=tmp_path / "no",
            progress=False,
        )
    )  # fmt: skip
    assert not OPTION.search(text)
    assert "study" in text


def test_what_a_refused_study_is_advised_is_an_argument():
    failure = CaseFailure(
        "A",
        "series 5 is a copy",
        remedies=(Remedy("leave_out", ("series=5,phase=2",)), Remedy("use", ("series=4",))),
    )
    (advised,) = advise_failures([failure], mm.import_dicom)
    assert advised.reason == (
        'series 5 is a copy (leave_out="series=5,phase=2", or use="series=4")'
    )


@pytest.mark.parametrize(
    ("remedy", "expected"),
    [
        (Remedy("label", ("1",)), " (label=1)"),
        (Remedy("masks", ("NAME=DIR",)), ' (masks={"NAME": DIR})'),
        (Remedy("study", ("DIR",)), " (study=DIR)"),
        (Remedy("overwrite"), ' (existing="overwrite")'),
        (Remedy("unknown"), ""),
        (Remedy(command="straighten"), ""),
    ],
)
def test_a_remedy_is_an_argument_of_the_function_or_is_left_out(remedy, expected):
    assert name_arguments([remedy], mm.export) == expected


def test_every_public_function_that_asks_a_service_advises_arguments():
    functions = [getattr(mm, name) for name in dir(mm)]
    ours = [one for one in functions if inspect.isfunction(one) and ".library." in one.__module__]
    assert len(ours) >= 13
    assert [one.__name__ for one in ours if not hasattr(one, "__wrapped__")] == [
        "from_nibabel",
        "to_nibabel",
    ]
