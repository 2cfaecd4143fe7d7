"""Jobs that make very many records: what exists is set aside while they run, and put back."""

import gc

import pytest
from tests.stepped import Stepped

from napari_mamamia.core.progress import gc_frozen, report_progress

pytestmark = pytest.mark.usefixtures("real_freezing")


@pytest.fixture(autouse=True)
def nothing_set_aside():
    """Start and end without objects that the garbage collector does not look at."""
    gc.unfreeze()
    yield
    gc.unfreeze()


@gc_frozen()
def counting(seen, fail=False):
    """Note how many objects are set aside at each step."""
    for step in range(3):
        seen.append(gc.get_freeze_count())
        report_progress(step, 3)
        if fail:
            raise ValueError("no")
    return "done"


def test_what_exists_is_set_aside_at_each_step_and_put_back_at_the_end():
    seen, records = [], []
    job = Stepped(counting, seen)
    next(job)
    records += [[number] for number in range(1000)]
    next(job)
    assert 0 < seen[0] <= seen[1] - 1000
    next(job)
    assert next(job, "over") == "over"
    assert job.result == "done"
    assert gc.get_freeze_count() == 0


@pytest.mark.parametrize("end", ["closed", "failed"])
def test_it_is_put_back_however_the_job_ends(end):
    job = Stepped(counting, [], fail=end == "failed")
    next(job)
    assert gc.get_freeze_count() > 0
    if end == "closed":
        job.close()
    else:
        with pytest.raises(ValueError, match="no"):
            next(job)
    assert gc.get_freeze_count() == 0
