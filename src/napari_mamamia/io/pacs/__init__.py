"""Access to a PACS over DICOMweb: list, fetch and store, each transfer with limits."""
