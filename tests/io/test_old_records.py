"""Files that earlier versions wrote, to the byte, open as they did and are written the same."""

import hashlib
import json
import math
from pathlib import Path

from napari_mamamia.features.review.io.quality_files import queue_text, read_queue
from napari_mamamia.io.data_set.bundle import read_manifest, write_manifest
from napari_mamamia.io.files.record_codec import RecordCodec
from napari_mamamia.io.forms.form_file import form_text, read_form
from napari_mamamia.io.workspace.preferences import (
    load_preferences,
    preferences_path,
    save_preferences,
)
from napari_mamamia.io.workspace.provenance import read_provenance, write_provenance
from napari_mamamia.services.score.score import ScoredCase

MANIFEST = (
    '{"software":"napari-mamamia 0.1.0","created":"2026-01-02T03:04:05+00:00","data_set":"set'
    '","profile":"clinical","formats":["mama-mia"],"masks":["refined"],"labels":[{"value":1,"'
    'name":"tumour"}],"cases":[{"case_id":"A","volume_mm3":12.5,"quality":"good","files":[{"n'
    'ame":"masks/A.nii.gz","kind":"mask","sha256":"ababababababababababababababababababababab'
    'ababababababababababab","n_bytes":123,"case_id":"A","masks":"refined","place":{"shape":['
    '2,3,4],"affine":[[0.75,0.0,0.0,0.0],[0.0,0.5,0.0,0.0],[0.0,0.0,2.0,0.0],[0.0,0.0,0.0,1.0'
    ']],"orientation":"RAS"}}]}],"files":[{"name":"t.csv","kind":"table","sha256":"cdcdcdcdcd'
    'cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd","n_bytes":7,"case_id":"","masks"'
    ':"","place":null}],"notes":["a note"],"manifest_version":1}'
)

PROVENANCE = (
    '{"Manual":false,"case_id":"A","maker":"model","name":"net","inputs":[{"name":"A_0000.nii'
    '.gz","sha256":"efefefefefefefefefefefefefefefefefefefefefefefefefefefefefefefef"}],"para'
    'meters":{"step":0.5,"limit":{"float":"inf"},"none":null,"on":true,"n":3,"text":"x"},"sec'
    'onds":1.25,"started_from":"","note":"note","created":"2026-01-02T03:04:05+00:00","softwa'
    're":"napari-mamamia 0.1.0","device":"cpu","peak_memory_bytes":1000}'
)

RESULT = (
    '{"score":{"case_id":"PHANTOM_001","status":"ok","dsc":0.9142857142857143,"iou":0.8421052'
    '631578947,"hausdorff95_mm":18.10127221625198,"hausdorff95_voxels":3.0464101615137746,"ha'
    'usdorff_mm":20.155644075024526,"assd_mm":1.5537095267485788,"nsd_1mm":0.9142857142857143'
    ',"nsd_2mm":0.9142857142857143,"norm_hd":0.12067514810834655,"volume_reference_mm3":3899.'
    '9998512268094,"volume_prediction_mm3":4631.2498233318365,"diameter_reference_mm":21.2060'
    '00074183105,"prediction_seconds":"nan","peak_memory_bytes":"nan","device":"","tags":"","'
    'profile":"clinical","warning":"","reason":""},"look":{"case_id":"PHANTOM_001","failures"'
    ':[],"lesions":{"found":1,"missed":0,"false":1},"contrast":"nan","no_images":"the data '
    'set does not hold the case"}}'
)


FORM_FIELDS = (
    '[{"id":"sure","kind":"single","required":true,"scope":"case","terms":[{"codes":["SCT:1"],'
    '"id":"y","text":"yes"},{"id":"n","mask":"forbidden","text":"no"}],"text":"Sure?"},{"asked_if"'
    ':[{"field":"sure","values":["y"]}],"high":9.5,"id":"mm","kind":"number","low":0.0,"measure":'
    '"volume-mm3","scope":"lesion","text":"How far?","unit":"mm"}]'
)

QUEUE = (
    '{"mamamia_queue":1,"places":[{"case_id":"A","is_random":true,"rank":2,"draw":1,"why":"Dice '
    '0.9"},{"case_id":"B","is_random":false,"rank":1,"draw":2,"why":""}],"seed":7,"random_share":'
    "0.1}"
)


def test_a_form_that_a_study_froze_opens_and_what_was_left_out_of_it_does_not_count(tmp_path):
    digest = hashlib.sha256(f'["own questions","",{FORM_FIELDS}]'.encode()).hexdigest()
    content = {"mamamia_form": 1, "name": "own questions", "fields": json.loads(FORM_FIELDS)}
    (tmp_path / "form.json").write_text(json.dumps({**content, "sha256": digest}))
    form = read_form(tmp_path / "form.json")
    assert (form.edition, form.sha256) == ("", digest)
    assert form.field("mm").low == 0.0
    assert form.field("mm").asked_if[0].values == ("y",)
    assert json.loads(form_text(form))["sha256"] == digest


def test_a_queue_of_before_opens_and_is_written_the_same(tmp_path):
    (tmp_path / "queue.json").write_text(QUEUE)
    queue = read_queue(tmp_path / "queue.json")
    assert queue.n_random == 1
    assert json.loads(queue_text(queue)) == json.loads(QUEUE)


def test_a_manifest_of_before_the_codec_opens_and_is_written_to_the_same_bytes(tmp_path):
    text = json.dumps(json.loads(MANIFEST), indent=2) + "\n"
    (tmp_path / "manifest.json").write_text(text)
    manifest = read_manifest(tmp_path)
    assert manifest.labels == ((1, "tumour"),)
    assert manifest.cases[0].files[0].place.grid().spacing_mm == (2.0, 0.5, 0.75)
    assert manifest.files[0].place is None
    write_manifest(manifest, tmp_path)
    assert (tmp_path / "manifest.json").read_text() == text


def test_provenance_of_before_the_codec_opens_and_is_written_to_the_same_bytes(tmp_path):
    text = json.dumps(json.loads(PROVENANCE), indent=2) + "\n"
    (tmp_path / "A.json").write_text(text)
    provenance = read_provenance(tmp_path / "A.json")
    assert dict(provenance.parameters)["limit"] == math.inf
    assert [type(value) for _, value in provenance.parameters] == [
        *(float, float, type(None), bool, int, str)
    ]
    standard = (("Manual", False),)
    write_provenance(provenance, tmp_path / "A.json", standard=standard, overwrite=True)
    assert (tmp_path / "A.json").read_text() == text


def test_a_result_of_before_the_codec_comes_back_and_is_kept_the_same():
    codec = RecordCodec(ScoredCase, "run without --resume")
    scored = codec.record(json.loads(RESULT), "case_results.jsonl")
    assert scored.score.dsc == 0.9142857142857143
    assert math.isnan(scored.score.prediction_seconds)
    assert scored.look.lesions.false == 1
    kept = keys_of_before(codec.plain(scored), json.loads(RESULT))
    assert json.dumps(kept, separators=(",", ":")) == RESULT


def keys_of_before(kept, before):
    """Return what is kept under the keys of before: a metric that came later stands beside them."""
    return {
        key: keys_of_before(kept[key], value) if isinstance(value, dict) else kept[key]
        for key, value in before.items()
    }


PREFERENCES = """{
  "reader": "ANNA",
  "workspaces": [
    {
      "data_set": "/data/set",
      "workspace": "/home/w"
    }
  ],
  "recent": [
    "/data/set"
  ],
  "keys": {
    "cine": "V"
  },
  "view": {
    "planes": "3"
  }
}
"""


def test_preferences_of_before_open_and_are_written_as_they_were_with_what_came_since(
    own_preferences,
):
    path = preferences_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(PREFERENCES)
    preferences = load_preferences()
    assert preferences.reader == "ANNA"
    assert preferences.workspaces == ((Path("/data/set"), Path("/home/w")),)
    assert preferences.keys == (("cine", "V"),)
    save_preferences(preferences)
    later = ',\n  "team_masks": [],\n  "features": {}\n}\n'  # what came since, at the end
    assert path.read_text() == PREFERENCES.removesuffix("\n}\n") + later
