"""Words that thousands of names, places and files share, and that tell nobody by themselves."""

from typing import Final

__all__ = ["OWN_WORDS", "PARTICLES", "PLACE_WORDS"]

OWN_WORDS: Final = frozenset(
    {
        "amber", "black", "blue", "box", "brown", "case", "cases", "day", "field", "figure",
        "gray", "green", "grey", "hand", "image", "images", "long", "mark", "mask", "max",
        "may", "min", "note", "page", "phase", "phases", "quality", "read", "reader", "red",
        "rose", "score", "series", "small", "study", "table", "test", "tumour", "volume",
        "white", "window", "wood", "young", "anonymous", "anonymized", "patient", "unknown",
        "none", "name", "mama", "mamamia", "napari", "breast", "mri", "dce", "phantom", "demo",
        "subject", "tumor", "model", "kinetic", "anon", "best", "body", "border", "cost", "data",
        "group", "half", "head", "kind", "label", "large", "last", "lesion", "light", "lost",
        "low", "made", "main", "maker", "margin", "mean", "moderate", "nothing", "order", "other",
        "own", "paper", "part", "peri", "place", "post", "pre", "profile", "ras", "rate", "reason",
        "row", "rows", "rule", "sans", "seed", "shape", "sheet", "side", "size", "solid", "source",
        "space", "stays", "strata", "style", "target", "task", "time", "top", "two", "type", "unit",
        "use", "value", "voxel", "weight", "wide", "width", "worst", "yes",
    }
)  # fmt: skip
"""Surnames that are words of our own files too: they count only beside another name."""
PARTICLES: Final = frozenset(
    {
        "von", "van", "der", "den", "del", "dem", "des", "dos", "das", "della", "bin", "ibn", "abu",
        "san", "los", "las", "les", "med", "mag", "prof", "dipl", "ing", "msc", "phd", "mrs",
        "miss", "herr", "frau", "iii", "rad", "doctor", "nan", "ser", "roi", "sun", "sum", "art",
        "jan", "jun", "april", "june", "august", "true", "null", "left", "right",
    }
)  # fmt: skip
"""Parts of names, titles and words of any table, which tell nobody by themselves."""
PLACE_WORDS: Final = frozenset(
    {
        "hospital", "university", "clinic", "clinics", "medical", "center", "centre",
        "radiology", "imaging", "breast", "institute", "department", "cancer", "health",
        "healthcare", "general", "school", "foundation", "national", "women", "womens", "saint",
        "north", "south", "east", "west", "street", "research", "diagnostic", "diagnostics",
        "klinik", "klinikum", "krankenhaus", "universitat", "hopital", "ospedale", "radiologie",
    }
)  # fmt: skip
"""Words of many institutions, which tell none."""
