"""Tables of detected lesions."""
