"""The check of a computer: known models give known results, and the log names nobody."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import nibabel as nib
import numpy as np
import pytest
from benchmarks.phantoms.one_lesion import one_lesion
from typer.testing import CliRunner

from napari_mamamia.cli.app import app
from napari_mamamia.core.program.owner import this_process
from napari_mamamia.services import check_computer
from napari_mamamia.services import check_computer as service


def test_the_check_runs_on_an_own_case_and_its_log_names_nobody(tmp_path, monkeypatch):
    home = tmp_path / "erika.mustermann"
    case = home / "GIESSEN_0815"
    case.mkdir(parents=True)
    monkeypatch.setattr(Path, "home", lambda: home)
    this_process()  # it remembers this computer's name, for all later tests
    monkeypatch.setattr("platform.node", lambda: "ward-seven-pc")
    rng = np.random.default_rng(3)
    for phase in range(3):
        array = rng.integers(50, 400, (40, 36, 20)).astype(np.int16)
        nib.save(nib.Nifti1Image(array, np.eye(4)), case / f"GIESSEN_0815_{phase:04d}.nii.gz")
    out = tmp_path / "log.txt"
    words = ["check-computer", "--out", str(out), "--case", str(case)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    text = out.read_text()
    assert "kinetic segmenter on a phantom  expected Dice to be at least 0.8, but it is 0." in text
    assert "kinetic segmenter on your case  3 phases of 20 x 36 x 40 voxels" in text
    assert "nothing failed" in text
    for name in ("erika", "GIESSEN", "0815", "ward-seven", str(tmp_path)):
        assert name not in text
    if "[segment]           torch" in text:
        assert "network on your case, cpu" in text


def test_a_wrong_result_is_a_failure_and_exit_code_3(monkeypatch):
    monkeypatch.setattr(service, "dice", lambda a, b: 0.4)
    monkeypatch.setattr(service, "_list_devices", lambda: ())
    done = CliRunner().invoke(app, ["check-computer"])
    assert done.exit_code == 3
    assert (
        "FAILED  kinetic segmenter on a phantom  expected Dice to be at least 0.8, but it is 0.400"
        in (done.output)
    )


def test_messages_lose_folders_and_names(monkeypatch):
    monkeypatch.setattr(Path, "home", lambda: Path("/home/erika"))
    text = "case X_1: cannot read '/data/erika/X_1_0000.nii.gz' (see C:\\Users\\erika\\x): erika"
    assert check_computer.without_names(text, "X_1") == (
        "case [name]: cannot read '[path]' (see [path]): [name]"
    )


def test_a_card_that_torch_does_not_see_is_a_failure(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    program = tmp_path / "nvidia-smi"
    program.write_text('#!/bin/sh\necho "NVIDIA H100, 570.1, 81559 MiB, 80000 MiB"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(check_computer, "choose_device", lambda wanted: "cpu")
    cards, torch = list(check_computer.graphics())
    assert "NVIDIA H100, 570.1" in cards.text
    assert torch.state is check_computer.State.FAILED


def small_case():
    return one_lesion(6.0, seed=1, shape=(16, 32, 32), radius_mm=5).case


def test_the_engine_gives_what_plain_torch_gives():
    pytest.importorskip("dynamic_network_architectures")
    from napari_mamamia.segmentation.run.self_test import run_test_block

    done = run_test_block(small_case())
    assert done.passed
    assert 0.1 < done.expected / done.voxels < 0.9


@pytest.mark.parametrize("what", ["channels", "weights", "labels"])
def test_an_engine_that_errs_is_found_out(monkeypatch, what):
    pytest.importorskip("dynamic_network_architectures")
    from napari_mamamia.segmentation.nnunet.engine import NnUNetEngine
    from napari_mamamia.segmentation.run import self_test

    right = NnUNetEngine.predict

    def wrong(self, given):
        swapped = list(given.arrays)[::-1] if what == "channels" else given.arrays
        result = right(self, replace(given, arrays=swapped))
        labels = 1 - result.labels if what == "labels" else result.labels
        return SimpleNamespace(labels=labels)

    monkeypatch.setattr(NnUNetEngine, "predict", wrong)
    if what == "weights":
        from napari_mamamia.segmentation.nnunet import engine as nnunet_engine

        put = nnunet_engine.put_weights

        def doubled(network, checkpoint):
            put(network, checkpoint)
            network.encoder.stages[0][0].convs[0].conv.weight.mul_(-1)

        monkeypatch.setattr(nnunet_engine, "put_weights", doubled)
    assert not self_test.run_test_block(small_case()).passed


def test_a_check_needs_neither_torch_nor_napari(monkeypatch):
    for name in ("torch", "napari", "dynamic_network_architectures"):
        monkeypatch.setitem(sys.modules, name, None)
    real = service.importlib.util.find_spec
    hidden = ("torch", "dynamic_network_architectures")
    monkeypatch.setattr(
        service.importlib.util, "find_spec", lambda n: None if n in hidden else real(n)
    )
    checked = service.check_computer()
    assert checked.all_ok
    assert "networks cannot run" in service.check_text(checked)


def test_every_extra_that_somebody_can_install_is_named():
    import tomllib

    read = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    names = set(read["project"]["optional-dependencies"])
    found = {finding.name for finding in check_computer.extras()}
    no_part_of_it = {"all", "pyqt6", "pyside6", "test", "lint", "bench", "docs", "release"}
    assert found == {f"extra [{name}]" for name in names - no_part_of_it}
