"""`make fuzz SEED=n MINUTES=m`: every reader on damaged files; what is no error of ours is kept.

Prints per format how many inputs were tried, accepted, refused, how many crashed, hung or took too
much memory, and the peak. The exit code is 1 where something was found.
"""

import argparse
import json
import logging
import os
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from formats import all_formats
from harness import Format, reached, run_format
from openers import OWN, ROOMS, SOURCE, opening_functions

from napari_mamamia.io.files.foreign import READS

_COLUMNS = ("format", "inputs", "accepted", "refused", "crashes", "hangs", "memory", "peak MB", "s")
_LINE = "{:20}{:>8}{:>9}{:>8}{:>8}{:>6}{:>7}{:>9}{:>7}"


def main() -> int:
    options = _options()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    wanted = [
        form
        for form in all_formats()
        if form.name in options.formats or not (options.formats or (options.quick and form.is_slow))
    ]
    where = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    work = Path(tempfile.mkdtemp(prefix="mamamia-fuzz-", dir=where))
    for name in ("MAMAMIA_CONFIG_DIR", "MAMAMIA_MODELS_DIR", "MAMAMIA_CACHE_DIR"):
        os.environ[name] = str(work / name)
    try:
        wrong = _check(wanted, work, is_whole=not options.formats) if options.check else []
        for one in wrong:
            print(f"WRONG {one}")
        return int(_run(wanted, options, work) + len(wrong) > 0)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--inputs", type=int, default=10**9, help="for each format of share 1")
    parser.add_argument("--minutes", type=float, default=600.0, help="for all formats together")
    parser.add_argument("--formats", nargs="*", default=[])
    parser.add_argument("--keep", type=Path, default=Path("fuzz-found"))
    parser.add_argument("--check", action="store_true", help="also: does each reader have a fuzzer")
    parser.add_argument("--quick", action="store_true", help="without the slow formats")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    return parser.parse_args()


def _check(wanted: list[Format], work: Path, *, is_whole: bool) -> list[str]:
    """Return what is wrong with the list of formats: readers that no example reaches, by name."""
    seen: set[str] = set()
    wrong = []
    for form in wanted:
        found = reached(form, work / form.name)
        seen |= found
        missed = [name for name in form.readers if name not in found]
        wrong += [f"the example of {form.name} does not reach {name}" for name in missed]
    if not is_whole:
        return wrong
    slow = {name for form in all_formats() if form.is_slow for name in form.readers}
    marked = set(marked_readers())
    fuzzed = {name for form in all_formats() for name in form.readers}
    wrong += [f"{name} is a reader without a fuzzer" for name in sorted(marked - fuzzed)]
    opening = opening_functions()
    unknown = sorted(set(opening) - seen - slow - set(OWN))
    wrong += [f"{name} opens a file ({opening[name]}) and no format reaches it" for name in unknown]
    return wrong + [f"{name} opens nothing" for name in sorted(set(OWN) - set(opening))]


def marked_readers() -> Iterator[str]:
    """Yield the public functions that `io.files.foreign.reads` made the door of a reader."""
    for room in ROOMS:
        for path in sorted((SOURCE / room).rglob("*.py")):
            if "@reads(" not in path.read_text("utf-8"):
                continue
            place = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
            module = import_module(f"napari_mamamia.{place}")
            for name, value in vars(module).items():
                if hasattr(value, READS) and value.__module__ == module.__name__:
                    yield f"{place}.{name}"


def _run(wanted: list[Format], options: argparse.Namespace, work: Path) -> int:
    print(f"seed {options.seed}", flush=True)
    print(_LINE.format(*_COLUMNS))
    total_share = sum(form.share for form in wanted)
    found, figures = [], {}
    for form in wanted:
        until = time.monotonic() + 60 * options.minutes * form.share / total_share
        inputs = max(1, int(options.inputs * form.share))
        result = run_format(form, options.seed, inputs, until, work, options.keep)
        crashes = result.count("crash") + result.count("death")
        counts = (result.inputs, result.accepted, result.refused, crashes)
        bad = (result.count("hang"), result.count("memory"))
        peak = round(result.peak_bytes / 2**20, 1)
        print(_LINE.format(form.name, *counts, *bad, peak, round(result.seconds, 1)), flush=True)
        figures[form.name] = {
            "inputs": result.inputs,
            "found": len(result.found),
            "peak": result.peak_bytes,
        }
        found += [(form.name, said) for said in result.found]
    for name, said in found:
        last = said["trace"].strip().splitlines()
        place = next((line.strip() for line in reversed(last) if "napari_mamamia" in line), "")
        number = f"{options.seed}-{said['index']}"
        print(f"FOUND {name} {number} {said['kind']}: {said['text'][:160]!r} {place}")
    total = sum(one["inputs"] for one in figures.values())
    print(f"{total} inputs, {len(found)} found" + (f", kept in {options.keep}" if found else ""))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))
    return len(found)


if __name__ == "__main__":
    sys.exit(main())
