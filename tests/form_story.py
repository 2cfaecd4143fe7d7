"""What two readers say of three cases on the BI-RADS form, and whether all of it comes out again.

Nothing here asks the program what an answer is worth: what is measured is measured anew from the
images, and agreement is computed from the exported table.
"""

import csv
import html
import json
import re
from collections import Counter
from dataclasses import dataclass
from itertools import product

import nibabel as nib
import numpy as np
import pytest
from tests.conftest import BLOB, SHAPE, write_nifti, write_small_data_set

MARGIN = (slice(3, 6), slice(14, 20), slice(24, 30))
"""BLOB moved by 4 of its 6 columns: Dice 1/3."""
SPOT = (slice(2, 4), slice(22, 26), slice(37, 41))
"""What enhances as little as the gland around it; on the patient's left."""
PROTOCOL = {"name": "Trial of the form", "form": "breast-mri-2013"}
READERS = ("Ana López", "Ben Beck")
IDS = {"Ana López": "ana-lopez", "Ben Beck": "ben-beck"}


@dataclass(frozen=True)
class Said:
    """A reading: boxes that are drawn, and answers in the order in which they are given.

    Keys are ids as the form has them, with ``@`` and the breast or the lesion. A text is a number
    that is typed, a term that is chosen, or of several terms a list.
    """

    boxes: tuple
    answers: dict

    @property
    def values(self):
        """Each answer as a list of texts."""
        return {k: v if isinstance(v, list) else [v] for k, v in self.answers.items()}


SAID = {
    ("Ana López", "A_1"): Said(
        (BLOB,),
        {
            "fgt": "b",
            "bpe": "mild",
            "bpe.symmetric": "yes",
            "associated@left": ["skin_thickening", "axillary_adenopathy"],
            "assessment@right": "1",
            "assessment@left": "4",
            "finding@1": "mass",
            "mass.shape@1": "irregular",
            "mass.margin@1": "not_circumscribed",
            "mass.margin_not@1": "spiculated",
            "mass.internal@1": "rim",
            "side@1": "left",
            "quadrant@1": "UO",
            "clock@1": "2",
            "to_skin@1": "12.50",
        },
    ),
    ("Ana López", "A_2"): Said(
        (BLOB, SPOT),
        {
            "fgt": "b",
            "bpe": "moderate",
            "assessment@right": "2",
            "assessment@left": "5",
            "finding@1": "mass",
            "mass.shape@1": "oval",
            "mass.margin@1": "circumscribed",
            "mass.internal@1": "homogeneous",
            "side@1": "left",
            "finding@2": "nme",
            "nme.distribution@2": "segmental",
            "nme.internal@2": "clumped",
            "side@2": "left",
            "kin.delayed@2": "persistent",  # in place of what would be computed
        },
    ),
    ("Ana López", "B_1"): Said(
        (), {"fgt": "d", "bpe": "marked", "assessment@right": "2", "assessment@left": "0"}
    ),
    ("Ben Beck", "A_1"): Said(
        (BLOB,),
        {
            "fgt": "b",
            "bpe": "mild",
            "assessment@right": "1",
            "assessment@left": "5",
            "finding@1": "focus",
            "side@1": "left",
        },
    ),
    ("Ben Beck", "A_2"): Said(
        (MARGIN,),
        {
            "fgt": "c",
            "bpe": "moderate",
            "associated@left": ["nipple_retraction"],
            "assessment@right": "2",
            "assessment@left": "5",
            "finding@1": "mass",
            "mass.shape@1": "irregular",
            "mass.margin@1": "circumscribed",
            "mass.internal@1": "homogeneous",
            "side@1": "left",
            "to_chest_wall@1": "0",
        },
    ),
    ("Ben Beck", "B_1"): Said(
        (), {"fgt": "d", "bpe": "marked", "assessment@right": "2", "assessment@left": "1"}
    ),
}


def unveil(study):
    """Return each case by what a reader is told who may not know the site that its id names."""
    cases = json.loads((study / "study.json").read_text(encoding="utf-8"))["cases"]
    return {f"case-{one['key'][1:]}": one["case_id"] for one in cases}


SPACING_MM = (6.0, 0.8, 5.0)


def write_both_breasts(root):
    """Write the small data set as wide as two breasts; BLOB lies in the middle, on no side."""
    write_small_data_set(root)
    z, y, x = SPACING_MM
    for path in root.rglob("*.nii.gz"):
        array = np.asarray(nib.load(path).dataobj).transpose()
        write_nifti(path, array, np.diag([-x, y, z, 1.0]))
    return root


def draw_boxes(boxes):
    mask = np.zeros(SHAPE, np.uint8)
    for box in boxes:
        mask[box] = 1
    return mask


def split_key(key):
    """Return (question, place)."""
    field, _, place = key.partition("@")
    return field, place


# ---------------------------------------------------------------- what is measured


def measure_lesion(images, case_id, box):
    """Return the words and numbers that the form fills in for a box that somebody drew.

    BI-RADS classes of the mean curve. Phases begin at 0, 90, 180 and 420 s, the first after
    contrast is the clock's zero, and an image stands half a distance of phases (90 s) behind its
    beginning: at 45, 135 and 375 s. The rise is that of 135 s, nearest to 90 to 120 s; what follows
    is told from there to the last.
    """
    before, early, late = (
        np.asarray(nib.load(images / case_id / f"{case_id}_{k:04d}.nii.gz").dataobj)
        .transpose()[box]
        .mean()
        for k in (0, 2, 3)
    )
    rise, course = 100 * (early - before) / before, 100 * (late - early) / early
    sizes = [part.stop - part.start for part in box]
    # between centres of voxels, the longest way across the slice's box
    across = np.hypot(*((n - 1) * mm for n, mm in zip(sizes[1:], SPACING_MM[1:], strict=True)))
    return {
        "kin.initial": "slow" if rise < 50 else "medium" if rise <= 100 else "fast",
        "kin.delayed": "persistent" if course > 10 else "washout" if course < -10 else "plateau",
        "volume": float(np.prod(sizes) * np.prod(SPACING_MM)),
        "long_axis": float(across),
    }


def list_expected(images, who, case_id):
    """Return {key: values} of a reading: what was said, and what is filled in beside it."""
    said = SAID[who, case_id]
    expected = {key: (tuple(map(trim, values)), False) for key, values in said.values.items()}
    for number, box in enumerate(said.boxes, start=1):  # the larger one comes first
        for field, value in measure_lesion(images, case_id, box).items():
            expected.setdefault(f"{field}@{number}", ((value,), True))
    return expected


def trim(text):
    """Return a typed number as it is kept."""
    return f"{float(text):g}" if re.fullmatch(r"\d+\.\d+", text) else text


# ------------------------------------------------------------------ what came out


def read_rows(path):
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def require_values(found, expected):
    """Hold what stands in a table against what was said: ids to the letter, numbers to 6 digits."""
    assert set(found) == set(expected)
    for key, (values, is_computed) in expected.items():
        texts, marked = found[key]
        assert marked == is_computed, key
        if isinstance(values[0], float):
            assert float(texts[0]) == pytest.approx(values[0], rel=1e-5), key
        else:
            assert sorted(texts) == sorted(values), key


def require_long(path, images):
    """Each answer of each reading stands in answers_long.csv once, and nothing else does."""
    rows = [row for row in read_rows(path) if row["who"] != "accepted"]
    for who, case_id in SAID:
        found = {}
        for row in rows:
            if (row["who"], row["case_id"]) == (IDS[who], case_id):
                place = row["place"] and f"@{row['place']}"
                texts, _ = found.setdefault(row["field"] + place, ([], row["computed"] == "True"))
                texts.append(row["value"])
                assert row["known"] == "True"
        require_values(found, list_expected(images, who, case_id))
    assert {(row["who"], row["case_id"]) for row in rows} == {(IDS[w], c) for w, c in SAID}
    return rows


BOTH = (slice(3, 6), slice(14, 20), slice(20, 30))
"""BLOB and MARGIN as one."""


def require_accepted(path, images):
    """What was accepted of A_2 by union is as one reader said, measured of the union's lesions."""
    rows = [row for row in read_rows(path) if row["who"] == "accepted"]
    found = {}
    for row in rows:
        place = row["place"] and f"@{row['place']}"
        texts, _ = found.setdefault(row["field"] + place, ([], row["computed"] == "True"))
        texts.append(row["value"])
    (who,) = [one for one in READERS if [SAID[one, "A_2"].answers["fgt"]] == found["fgt"][0]]
    values = SAID[who, "A_2"].values
    expected = {key: (tuple(value), False) for key, value in values.items()}
    for number, box in enumerate((BOTH, SPOT), start=1):
        measured = measure_lesion(images, "A_2", box) | {"side": "left"}
        for field, value in measured.items():
            if not field.startswith("kin.") or f"finding@{number}" in values:
                expected.setdefault(f"{field}@{number}", ((value,), True))
    require_values(found, expected)


def require_wide(path, images):
    for who, case_id in SAID:
        (row,) = [
            one for one in read_rows(path) if (one["who"], one["case_id"]) == (IDS[who], case_id)
        ]
        expected = list_expected(images, who, case_id)
        columns = [*row][[*row].index("lesions") + 1 :]
        found = {
            key: (row[key].split("; "), expected[key][1] if key in expected else None)
            for key in columns
            if row[key]
        }
        require_values(found, expected)


def require_mrmc(path):
    found = sorted((row["reader"], row["case"], float(row["rating"])) for row in read_rows(path))
    assert found == sorted(
        (IDS[who], f"{case_id}@{side}", float(said.answers[f"assessment@{side}"]))
        for (who, case_id), said in SAID.items()
        for side in ("right", "left")
    )


def load_words(study):
    """Return the words of the form that is frozen with a study: questions, and terms by id."""
    fields = json.loads((study / "form.json").read_text(encoding="utf-8"))["fields"]
    return {
        one["id"]: (one["text"], {term["id"]: term["text"] for term in one.get("terms", ())})
        for one in fields
    }


def read_text(path):
    """Return what a page says, without its tags."""
    text = re.sub(r"(?s)<(style|script)\b.*?</\1>", " ", path.read_text(encoding="utf-8"))
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", text)))


def require_audit(path, study):
    """The audit trail says every answer in words."""
    text, words = read_text(path), load_words(study)
    for said in SAID.values():
        for key, values in said.values.items():
            field, place = split_key(key)
            question, terms = words[field]
            where = {"": "", "right": ", right breast", "left": ", left breast"}
            where = where.get(place, f", lesion {place}")
            order = [*terms]
            values = sorted(values, key=lambda one: order.index(one) if one in order else 0)
            answer = ", ".join(terms.get(one, trim(one)) for one in values)
            assert f"{question}{where}: {answer}" in text, key


DISPUTED = (
    "Assessment category, left breast: 4, suspicious / 5, highly suggestive of malignancy",
    "Finding, lesion 1: mass / focus",
    "Amount of fibroglandular tissue: scattered / heterogeneous",
    "Mass: shape, lesion 1: oval / irregular",
    "Assessment category, left breast: 0, incomplete / 1, negative",
)
"""What both readers of a case answered, and not alike."""
ON_PAGE = (
    "Mass: margin, not circumscribed 1 – – 1 0 spiculated 100 %",  # one reader alone said it
    "Kinetics: initial phase 3 0.000 −0.500 to 0.000 1 5 fast 60 %, slow 40 %",
    "Associated features: skin thickening 2 – – 0 0 no 50 %, yes 50 %",
    # 4 of the 5 lesions are measured in this row, and one in which somebody said it himself
    "Kinetics: delayed phase 3 0.000 −0.500 to 0.000 1 4 persistent 20 %",
)


def require_report(path, study):
    """The report says in words what readers disagree on, and how often each term was chosen."""
    text = read_text(path)
    for one in (*DISPUTED, *ON_PAGE):
        assert one in text, one
    ids = [one for one in load_words(study) if "." in one or "_" in one]
    terms = {term for _, terms in load_words(study).values() for term in terms if "_" in term}
    for one in (*ids, *terms, *READERS, *IDS.values()):
        assert not re.search(rf"(?<![\w.]){re.escape(one)}(?![\w.])", text), one
    return text


# -------------------------------------------------------------- agreement, computed anew


def pair_ratings(rows, field):
    """Return the two readers' terms of a question where both answered, by case and place.

    Of a lesion by the number of it that both share, of several terms none.
    """
    ratings = {}
    for row in rows:
        if row["field"] == field:
            where = (row["case_id"], row["lesion"] or row["place"])
            ratings.setdefault(where, {})[row["who"]] = row["value"]
    both = [one for one in ratings.values() if len(one) == 2]
    return [tuple(one[IDS[who]] for who in READERS) for one in both]


def compute_alpha(pairs):
    """Return Krippendorff's nominal alpha of complete pairs, by its definition."""
    values = Counter(value for pair in pairs for value in pair)
    n = sum(values.values())
    observed = sum(2 for one, other in pairs if one != other) / n
    chance = sum(values[a] * values[b] for a, b in product(values, values) if a != b)
    return 1 - observed * (n * (n - 1)) / chance if chance else float("nan")


def compute_kappa(pairs):
    """Return Cohen's kappa by scikit-learn."""
    if len({value for pair in pairs for value in pair}) == 1:
        return float("nan")  # what scikit-learn says, too, with a warning
    return pytest.importorskip("sklearn.metrics").cohen_kappa_score(*zip(*pairs, strict=True))


def require_agreement(path, rows):
    """Kappa and alpha of every question are those of the exported table."""
    table = {}
    for row in read_rows(path):
        if row["of"] == "readers":
            table[row["question"], row["what"]] = row
    compared = 0
    for field in sorted({row["field"] for row in rows} - {"associated"}):
        pairs = pair_ratings(rows, field)
        numeric = all(re.fullmatch(r"[\d.]+", v) for pair in pairs for v in pair)
        if not pairs or (numeric and field not in ("assessment", "clock")):
            continue
        for what, value in (("kappa", compute_kappa(pairs)), ("alpha", compute_alpha(pairs))):
            row = table[field, what]
            assert int(row["n"]) == len(pairs), (field, what)
            assert int(row["n_cases"]) <= len(SAID) / 2
            given = float(row["value"] or "nan")
            assert given == pytest.approx(float(value), abs=1e-9, nan_ok=True), (field, what)
        compared += 1
    return compared
