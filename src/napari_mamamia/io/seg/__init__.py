"""Read DICOM SEG files, and write them for the slices on which the mask was drawn.

`ucsf` reads the private elements that UCSF's program writes.
"""
