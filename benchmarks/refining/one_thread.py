"""One thread for what numpy calls: the processor's time of several would be added up.

To be imported before numpy.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
