"""Statistical functions: performance, AUC, calibration, bootstrap, and intervals of gaps."""
