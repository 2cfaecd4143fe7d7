"""Write DICOM structured reports (TID 1500) and key object selections, and read them back."""
