"""Jobs that make very many records: what exists is set aside while they run, and put back."""

import gc

import pytest

from napari_mamamia.core.progress import Progress, run_job, spared_collections


@pytest.fixture(autouse=True)
def nothing_set_aside():
    """Start and end without objects that the garbage collector does not look at."""
    gc.unfreeze()
    yield
    gc.unfreeze()


@spared_collections
def counting(seen, fail=False):
    """Note how many objects are set aside at each step."""
    for step in range(3):
        seen.append(gc.get_freeze_count())
        yield Progress(step, 3)
        if fail:
            raise ValueError("no")
    return "done"


def test_what_exists_is_set_aside_at_each_step_and_put_back_at_the_end():
    seen, records = [], []
    job = counting(seen)
    next(job)
    records += [[number] for number in range(1000)]
    next(job)
    assert 0 < seen[0] <= seen[1] - 1000
    assert run_job(job) == "done"
    assert gc.get_freeze_count() == 0


@pytest.mark.parametrize("end", ["closed", "failed"])
def test_it_is_put_back_however_the_job_ends(end):
    job = counting([], fail=end == "failed")
    next(job)
    assert gc.get_freeze_count() > 0
    if end == "closed":
        job.close()
    else:
        with pytest.raises(ValueError, match="no"):
            run_job(job)
    assert gc.get_freeze_count() == 0
