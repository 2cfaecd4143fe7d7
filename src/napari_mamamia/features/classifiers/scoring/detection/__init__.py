"""Score detection: lesions and predicted boxes to FROC, raFROC, precision and patient level.

`detection` combines the other modules. Nothing here reads a file; boxes are in mm along the
patient's axes.
"""
