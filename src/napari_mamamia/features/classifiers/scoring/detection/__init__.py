"""Score lesion detection: FROC, raFROC, average precision and patient-level metrics.

`detection` combines the other modules. No module reads a file; boxes are in mm along the patient's
axes.
"""
