"""The install without extras brings nothing under the GPL, and the list tells what does."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def licences():
    spec = importlib.util.spec_from_file_location("licences", TOP / "tools" / "licences.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture(scope="module")
def environment(licences):
    return licences.Environment()


def test_the_install_without_extras_holds_nothing_under_gpl_or_agpl(environment):
    packages = environment.closure("base")
    assert {"numpy", "nibabel", "typer", "rich"} <= set(packages)
    assert not {"pyqt6", "torch", "napari"} & set(packages)
    assert [one.name for one in packages.values() if one.is_strong or not one.version] == []


def test_pyqt6_is_told_to_be_under_the_gpl_wherever_it_comes_along(licences, environment):
    assert environment.closure("pyqt6")["pyqt6"].is_strong
    page = (TOP / "docs" / "licences.md").read_text("utf-8")
    assert "| **pyqt6** | **GPL-3.0-only** | all, pyqt6 |" in page
    assert "Under the GPL: pyqt6 (all, pyqt6)." in page
    for package in environment.closure("base"):
        assert f"| {package} | " in page


@pytest.mark.parametrize(
    ("licence", "is_strong"),
    [
        ("GPL-3.0-only", True),
        ("AGPL-3.0-or-later", True),
        ("GNU General Public License v2 (GPLv2)", True),
        ("GNU Affero General Public License v3", True),
        ("MIT AND GPL-2.0-or-later", True),
        ("GPL-2.0-only OR GPL-3.0-only", True),
        ("LGPL-3.0-only OR GPL-2.0-only", False),
        ("GNU Lesser General Public License v3 (LGPLv3)", False),
        ("BSD-3-Clause AND GPL-3.0-or-later WITH GCC-exception-3.1", False),
        ("MPL-2.0 AND MIT", False),
    ],
)
def test_a_licence_is_strong_where_every_choice_of_it_is(licences, licence, is_strong):
    assert licences.Package("x", "1", licence).is_strong == is_strong


def test_what_an_extra_of_a_package_needs_is_followed(licences, environment):
    assert "distributed" in environment.closure("cluster")  # by dask[distributed]
    assert "dask" not in environment.closure("base")


def test_a_bill_of_materials_names_each_package_once_and_links_only_those(licences, environment):
    bill = licences.bill(environment, "dicom", "2026-01-01T00:00:00+00:00")
    assert bill == licences.bill(environment, "dicom", "2026-01-01T00:00:00+00:00")
    refs = [one["bom-ref"] for one in bill["components"]]
    assert len(refs) == len(set(refs)) == len(environment.closure("dicom"))
    own = bill["metadata"]["component"]["bom-ref"]
    assert {link["ref"] for link in bill["dependencies"]} == {*refs, own}
    assert {need for link in bill["dependencies"] for need in link["dependsOn"]} == set(refs)
    assert "/site-packages" not in json.dumps(bill)


def test_no_bill_is_written_of_what_is_not_installed_whole(licences):
    environment = licences.Environment()
    del environment._found["pydicom"]
    with pytest.raises(SystemExit, match="dicom is not installed whole here, it lacks pydicom"):
        licences.bill(environment, "dicom", "2026-01-01T00:00:00+00:00")
