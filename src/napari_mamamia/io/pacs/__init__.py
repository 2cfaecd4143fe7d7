"""A PACS over DICOMweb: list, fetch, store; every transfer ends by time, silence, pace or size."""
