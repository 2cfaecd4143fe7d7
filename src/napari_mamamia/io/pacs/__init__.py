"""Access to a PACS over DICOMweb: list, fetch and store with limits on each transfer."""
