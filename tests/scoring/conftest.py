"""Cohorts for the tests of cohort numbers."""

import numpy as np
import pytest

from napari_mamamia.core.cohort import CaseRecord, Cohort, MenopausalStatus

STATUSES = (MenopausalStatus.PRE, MenopausalStatus.PERI, MenopausalStatus.POST, None)


@pytest.fixture
def random_cohort():
    """Return a function from a number of cases and a seed to a cohort with gaps."""

    def make(n_cases: int, seed: int = 0) -> Cohort:
        rng = np.random.default_rng(seed)
        densities = ("a", "b", "c", "d", None)
        return Cohort(
            tuple(
                CaseRecord(
                    f"C_{number:04d}",
                    age=float(rng.integers(22, 90)) if rng.random() > 0.03 else None,
                    menopausal_status=STATUSES[rng.integers(4)],
                    breast_density=densities[rng.integers(5)],
                    pcr=bool(rng.random() < 0.3),
                )
                for number in range(n_cases)
            )
        )

    return make
