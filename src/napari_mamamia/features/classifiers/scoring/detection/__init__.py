"""Score lesion detection: FROC, raFROC, average precision and patient-level metrics.

`detection` uses the other modules. No module reads files. Boxes are in mm along the patient's axes.
"""
