"""`Services`: fakes by name, and the signatures of what it holds."""

import subprocess
import sys

import pytest
from mypy import api

from napari_mamamia.services.case.open_case import open_case
from napari_mamamia.widgets.base.service_record import ImportServices, Services, ServiceSet


class Pair(ServiceSet):
    first = staticmethod(len)
    second = staticmethod(str)


def test_a_service_that_is_not_replaced_is_the_real_one():
    assert Services().open_case is open_case
    assert isinstance(Services().imports, ImportServices)


def test_a_fake_stands_under_its_name_in_that_set_alone():
    given = Pair(first=lambda _: 7)
    both = given.replacing(second=lambda _: "fake")
    assert (both.first("abc"), both.second(1)) == (7, "fake")
    assert (given.first("abc"), given.second(1)) == (7, "1")
    assert Pair().first("abc") == 3


def test_a_fake_of_no_service_is_refused():
    with pytest.raises(TypeError, match="Pair has no service third"):
        Pair(third=len)
    with pytest.raises(TypeError, match="no service third"):
        Pair().replacing(third=len)


WRONG = (
    'Services().open_case("a path")',
    "Services().case_rows()",
    "Services().kinetics.ftv_under_seg(1, 2)",
    "Services().predict.fused((), 'mean', 3)",
    "Services().imports.look(3)",
    "Services().opn_case",
)


@pytest.mark.night
def test_wrong_arguments_to_a_service_are_found_by_mypy(tmp_path, pytestconfig):
    script = tmp_path / "script.py"
    head = "from napari_mamamia.widgets.base.service_record import Services\n"
    script.write_text(head + "\n".join(WRONG) + "\n")
    config = pytestconfig.rootpath / "pyproject.toml"
    said, _, code = api.run([f"--config-file={config}", "--no-error-summary", str(script)])
    found = {int(line.split(":")[1]) for line in said.splitlines() if "script.py" in line}
    assert code == 1
    assert found == {number + 2 for number in range(len(WRONG))}


def test_the_window_loads_no_plots_and_no_tests_of_statistics_before_they_are_used():
    code = (
        "import sys, napari_mamamia.widgets.base.service_record\n"
        "parts = ('stats', 'interpolate', 'optimize', 'spatial', 'linalg', 'sparse')\n"
        "late = ('matplotlib', *('scipy.' + part for part in parts))\n"
        "print([name for name in late if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
