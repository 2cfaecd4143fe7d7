"""The commands of a review study open no socket: the kernel would kill them at the first."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests import socket_filter

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the filter is one of Linux's kernel"
)


def run_filtered(folder, lines):
    """Run commands in a process that may open no socket."""
    (folder / "lines.json").write_text(json.dumps([[str(word) for word in one] for one in lines]))
    environment = {
        **os.environ,
        "MAMAMIA_CONFIG_DIR": str(folder / "config"),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    command = (sys.executable, socket_filter.__file__, folder / "lines.json")
    return subprocess.run(
        command,
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_a_whole_study_by_command_opens_no_socket(small_data_set, tmp_path):
    (tmp_path / "words").write_text("three small words")
    words = ("--passphrase-file", "words")
    people = ("--lead", "Lea", "--reader", "Ana", "--reader", "Ben")
    review = [
        ("init", small_data_set, "--out", "STUDY", *people, "--freeze"),
        ("key", "STUDY", "--reader", "Lea", *words),
        ("key", "STUDY", "--reader", "Ana", *words),
        ("status", "STUDY", "--out", "said"),
        ("verify", "STUDY", "--images", small_data_set, "--out", "said"),
        ("audit", "STUDY", "--out", "said", "--reader", "Lea", *words),
        ("agreement", "STUDY", "--out", "agreement", "--reader", "Lea", *words),
        ("export", "STUDY", "--out", "EXPORT", "--format", "masks", "--reader", "Lea", *words),
        ("report", "STUDY", "--out", "report", "--reader", "Lea", *words),
    ]
    done = run_filtered(tmp_path, [("review", *one) for one in review])
    assert done.stdout.count("ended 0\n") == len(review), done.stdout[-3000:] + done.stderr[-3000:]
    assert done.returncode == 0
    assert (tmp_path / "report" / "report.html").is_file()


def test_the_filter_ends_whoever_opens_one(tmp_path):
    here = Path(socket_filter.__file__).parent
    # by its name: where PYTHONSAFEPATH is set, the current folder is none to import from
    code = f"import sys; sys.path.insert(0, {str(here)!r}); import socket_filter, socket; "
    code += "socket_filter.forbid_sockets(); print('here', flush=True)"
    for family in ("AF_INET", "AF_INET6", "AF_NETLINK", "AF_VSOCK"):
        done = subprocess.run(
            (sys.executable, "-c", f"{code}; socket.socket(socket.{family}); print('open')"),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.stdout, done.returncode) == ("here\n", -signal.SIGSYS)
