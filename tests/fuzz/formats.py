"""Every format that a reader of ours takes from others, with what reads it."""

from formats_images import DICOM, VOLUMES
from formats_models import MODELS
from formats_tables import JSONS, RECORDS, TABLES
from harness import Format


def all_formats() -> tuple[Format, ...]:
    return (*VOLUMES, *DICOM, *TABLES, *JSONS, *RECORDS, *MODELS)
