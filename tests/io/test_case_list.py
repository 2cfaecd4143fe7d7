"""The frozen list of cases, from whatever file an organiser has."""

import pytest

from napari_mamamia.core.errors import FormatError
from napari_mamamia.io.data_set.case_list import CaseList, read_case_list


def test_a_list_is_lines_of_ids_or_a_table_with_hashes(tmp_path):
    lines = tmp_path / "cases.txt"
    lines.write_bytes(b"\xef\xbb\xbfcase_id\n# test set\n A_1 \n\nb_2\n'=c\n")
    # as a cell of our own tables has an id that a spreadsheet program would run
    assert read_case_list(lines).case_ids == ("A_1", "b_2", "=c")
    table = tmp_path / "cases.csv"
    table.write_text(f"site;patient_id;SHA256\nx;A_1;{'AB' * 32}\ny;b_2;\n;;\n")
    found = read_case_list(table)
    assert found.case_ids == ("A_1", "b_2")
    assert found.digests == ("ab" * 32, "")
    assert "a_1" in found
    assert "c" not in found


def test_a_csv_file_with_one_column_is_a_list_with_or_without_a_header(tmp_path):
    path = tmp_path / "cases.csv"
    for text in ("A_1\nb_2\n", "case_id\nA_1\nb_2\n"):
        path.write_text(text)
        assert read_case_list(path).case_ids == ("A_1", "b_2")


def test_the_digest_of_a_list_does_not_depend_on_its_order_or_letter_case():
    one, two = CaseList("x", ("A", "B")), CaseList("y", ("b", "a"))
    assert one.digest == two.digest != CaseList("x", ("A",)).digest


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("c.txt", "", "lists no case"),
        ("c.txt", "A\na\n", "lists a twice"),
        ("c.csv", "name,site\nA,x\n", "case_id .* is missing"),
        ("c.csv", "case_id\n", "lists no case"),
        ("c.csv", "case_id,sha256\nA,xyz\n", "row 2: xyz is not a SHA-256"),
        ("c.csv", "case_id,site\n,x\n", "row 2: the case id is empty"),
    ],
)
def test_a_list_that_says_nothing_certain_is_refused(tmp_path, name, text, said):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(FormatError, match=said):
        read_case_list(path)


def test_a_list_that_is_not_there_is_named(tmp_path):
    for name in ("no.txt", "no.csv"):
        with pytest.raises(FormatError, match=name.replace(".", r"\.")):
            read_case_list(tmp_path / name)
