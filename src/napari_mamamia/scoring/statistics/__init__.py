"""Statistical formulas: performance, AUC, calibration, bootstrap, intervals of gaps."""
