"""DICOM structured reports (TID 1500) and key object selections, written and read back."""
