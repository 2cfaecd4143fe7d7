"""Whose a temporary path is: this computer, process number and start, never the number alone."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from napari_mamamia.core.program.owner import Owner, owner_named, this_process

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


def owner_of_an_ended_process():
    code = "from napari_mamamia.core.program.owner import this_process; print(this_process())"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return owner_named(said.stdout)


def test_this_process_runs_and_its_name_reads_back():
    owner = this_process()
    assert owner.pid == os.getpid()
    assert owner_named(f"{owner}-0a1b.part") == owner
    assert owner.runs is True


def test_a_process_that_ended_does_not_run():
    assert owner_of_an_ended_process().runs is False


def test_another_process_that_got_the_same_number_is_not_the_owner():
    assert replace(this_process(), start="0badc0de").runs is False


def test_a_process_that_ended_but_was_not_asked_for_yet_does_not_run():
    code = (
        "from napari_mamamia.core.program.owner import this_process;"
        "print(this_process(), flush=True)"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    owner = owner_named(child.stdout.readline())
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it is a zombie now
    try:
        os.kill(child.pid, 0)  # which answers as one that runs
        assert owner.runs is False
    finally:
        child.communicate()


def test_whether_a_process_of_another_computer_runs_is_not_known():
    assert replace(this_process(), host="00000000").runs is None


def test_a_forked_child_is_another_owner_than_its_parent():
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, str(this_process()).encode())
        os._exit(0)
    os.waitpid(child, 0)
    owner = owner_named(os.read(reading, 99).decode())
    assert (owner.pid, owner.runs) == (child, False)


@pytest.mark.parametrize("text", ["", "x", "1-2-3", "0123abcd-12", "0123abcd-x-0", "../../x"])
def test_other_names_have_no_owner(text):
    assert owner_named(text) is None


def test_a_name_is_short_enough_for_every_file_system():
    assert len(str(Owner("f" * 8, 4_194_304, "f" * 8))) == 25
