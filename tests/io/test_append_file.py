"""A file of one's own that only grows: never somebody else's by a link, never two writers."""

import errno
import fcntl
import os

import pytest

from napari_mamamia.core.errors import SaveConflictError, SaveError
from napari_mamamia.io.files.append_file import AppendFile, is_open_here


@pytest.fixture
def path(tmp_path):
    return tmp_path / "out" / "lines.jsonl"


@pytest.fixture
def secret(tmp_path):
    """A file of somebody else's."""
    secret = tmp_path / "secret.txt"
    secret.write_text("mine\n")
    return secret


def write(path, *lines, keep=True):
    with AppendFile(path, keep=keep) as file:
        for line in lines:
            file.append(line)


@pytest.mark.parametrize("keep", [True, False])
def test_a_symbolic_link_is_refused_and_its_target_stays_as_it_is(path, secret, keep):
    path.parent.mkdir()
    path.symlink_to(secret)
    with pytest.raises(SaveError, match="it is a link to another path"):
        write(path, b"x\n", keep=keep)
    assert (secret.read_text(), path.is_symlink()) == ("mine\n", True)


def test_a_link_that_appears_after_the_look_is_not_followed_either(path, secret, monkeypatch):
    path.parent.mkdir()
    path.symlink_to(secret)
    monkeypatch.setattr(type(path), "is_symlink", lambda _: False)
    with pytest.raises(SaveError):
        write(path, b"x\n", keep=False)
    assert secret.read_text() == "mine\n"


@pytest.mark.parametrize("keep", [True, False])
def test_a_second_name_of_a_file_keeps_its_bytes(path, secret, keep):
    path.parent.mkdir()
    path.hardlink_to(secret)
    write(path, b"x\n", keep=keep)
    assert secret.read_text() == "mine\n"
    assert path.read_text() == ("mine\nx\n" if keep else "x\n")


def test_a_named_pipe_is_refused_and_nobody_waits_for_its_other_end(path):
    path.parent.mkdir()
    os.mkfifo(path)
    with pytest.raises(SaveError, match="not a regular file"):
        write(path, b"x\n")


def test_lines_that_do_not_stay_are_left_whole_until_the_new_file_has_its_name(path, monkeypatch):
    write(path, b"old\n")

    def refuse(self, target):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(type(path), "replace", refuse)
    with pytest.raises(SaveError):
        write(path, b"new\n", keep=False)
    assert path.read_text() == "old\n"
    assert [entry.name for entry in path.parent.iterdir()] == ["lines.jsonl"]
    monkeypatch.undo()
    write(path, b"new\n", keep=False)
    assert path.read_text() == "new\n"


def test_a_writer_that_somebody_else_writes_beside_refuses_and_keeps_both(path):
    """As where files cannot be locked: nothing is written over, nothing is lost unsaid."""
    with AppendFile(path, keep=True) as file:
        file.append(b"one\n")
        with path.open("ab") as other:
            other.write(b"two\n")
        with pytest.raises(SaveConflictError):
            file.append(b"three\n")
    assert path.read_bytes() == b"one\ntwo\n"


@pytest.mark.parametrize("locks", [True, False])
def test_a_second_writer_of_the_same_program_is_told_apart(path, locks, monkeypatch):
    if not locks:

        def refuse(handle, operation):
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

        monkeypatch.setattr(fcntl, "flock", refuse)
    with AppendFile(path, keep=True):
        assert is_open_here(path)
        with pytest.raises(SaveConflictError):
            AppendFile(path, keep=True)
        assert is_open_here(path)
    assert not is_open_here(path)
    write(path, b"x\n")


def test_the_last_line_is_found_however_long_it_is(path):
    lines = [b"a" * 10 + b"\n", b"b" * (3 << 20) + b"\n"]
    with AppendFile(path, keep=True) as file:
        assert (file.last_line(), file.count_lines()) == (b"", 0)
        for number, line in enumerate(lines, start=1):
            file.append(line)
            assert (file.last_line(), file.count_lines()) == (line, number)
