"""Files that look like tables: the refusal names the cause; labels and ids as people write them."""

import pytest
from tests.cli.warm_program import mamamia
from tests.features.challenge.challenge_world import write_references, write_team

REFUSED = {
    "version https://git-lfs.github.com/spec/v1\noid sha256:aa\nsize 12\n": "Git LFS pointer",
    "<!DOCTYPE html><html>Sign in</html>": "web page",
    "\n  <HTML><body>": "web page",
    '<?xml version="1.0"?><a/>': "web page or XML",
    '{"case_id": "A"}': "JSON",
    '[\n {"case_id": "A"}]': "JSON",
    "{}": "JSON",
    '"case_id" "dsc"\n"1" "DUKE_001" 0.5\n': "its cells are separated by blanks",
    "case_id dsc\nDUKE_001 0.5\n": "its cells are separated by blanks",
    "ID  Dice\n1  0.5\n": "its cells are separated by blanks",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_table_is_refused_by_its_kind(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_text(text)
    done = mamamia("score-table", path, "--out", tmp_path / "out", has_figures=False)
    assert done.returncode == 1
    assert REFUSED[text] in done.stderr


@pytest.mark.parametrize(
    ("yes", "no"),
    [
        ("bösartig", "gutartig"), ("maligne", "bénin"), ("positiv", "negativ"), ("ja", "nein"),
        ("positif", "négatif"), ("oui", "non"), ("malin", "bénigne"), ("wahr", "falsch"),
        ("vrai", "faux"), ("Bösartig", "Gutartig"),
    ],
)  # fmt: skip
def test_labels_in_german_and_french_are_read(tmp_path, yes, no):
    path = tmp_path / "t.csv"
    rows = [f"e{at},{(no, yes)[at % 2]},0.{at + 1}" for at in range(8)]
    path.write_text("\n".join(("id,y,m", *rows)))
    words = ("--id", "id", "--label", "y", "--score", "m", "--bootstrap", 0)
    done = mamamia("score-classifier", path, *words, "--out", tmp_path / "out", has_figures=False)
    assert done.returncode == 0, done.stderr
    assert "8" in done.stdout


def test_masks_whose_ids_lost_their_zeros_are_named(tmp_path):
    references = write_references(tmp_path, 3)
    predictions = write_team(tmp_path / "team", 0, 3)
    for folder, name in ((references, "{:03d}"), (predictions, "{}")):
        for at in range(3):
            (folder / f"C_{at:02d}.nii.gz").rename(folder / f"{name.format(at + 1)}.nii.gz")
    done = mamamia("score", "--reference", references, "--prediction", predictions,
                   "--out", tmp_path / "out", "--bootstrap", 0, has_figures=False)  # fmt: skip
    assert done.returncode == 1
    said = " ".join(done.stderr.split())
    assert "lost leading zeros" in said
    assert "'001'" in said
    assert "'1'" in said
