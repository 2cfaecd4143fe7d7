"""Detection: lesions and predicted boxes to FROC, raFROC, precision and patient level.

`detection` joins the rest. Nothing here reads a file; boxes are in mm along the patient's axes.
"""
