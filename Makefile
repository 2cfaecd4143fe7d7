# `make demo` and `make test` do all their own set-up, on a bare Debian/Ubuntu machine and on one that
# is set up already. `make help` lists the rest.

SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt
DISPLAYED := $(DISPLAY)$(WAYLAND_DISPLAY)
CLEAN_ENV := env -u QT_QPA_PLATFORM -u PYTHONDONTWRITEBYTECODE
# on busy processors a thread of a calculation waits for the others by counting, up to 9 times the work;
# Mesa's (LP_NUM_THREADS=0: it draws in the thread that asks) hand each picture to and fro
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 LP_NUM_THREADS=0
TESTED := pyqt6,segment,prompt,openvino,onnx,bundle,dicom,register,parquet,cluster,test,lint,docs,bench
# four on two processors: with three, whose tests wait for programs, timers and disks, a sixth of the time is idle
LISTED := $(CLEAN_ENV) $(BIN)/python -m pytest --collect-only -q
SHARED := -n 4 --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help demo test night fuzz check lint types contracts bench docs pictures texts manifest lock lock-check release kit neighbours licences sbom clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/'

demo: $(VENV)/base.done $(if $(DISPLAYED),$(VENV)/window.done) ## make, predict, score and export 12 phantom cases
	$(BIN)/mamamia demo --out demo $(if $(wildcard demo/run.json),--resume)
	$(if $(DISPLAYED),$(BIN)/mamamia view demo/dataset,@echo "No display here: the window was not opened.")

test: $(VENV)/test.done ## run every test, the real window under Xvfb included
	$(CLEAN_ENV) $(ONE_THREAD) $(BIN)/python -m pytest -q $(SHARED) --durations=25 -m "not night"

night: $(VENV)/test.done build/fast ## run what is too long for each commit: all screens, fonts and themes, long parity
	PYTHONPATH=build/fast $(CLEAN_ENV) $(ONE_THREAD) $(BIN)/python -m pytest -q tests/smartpaint/test_compiled.py
	$(CLEAN_ENV) $(ONE_THREAD) $(BIN)/python -m pytest -q $(SHARED) --durations=25 --timeout=1800 -m night

fuzz: $(VENV)/test.done ## every reader on damaged files: make fuzz SEED=n MINUTES=m; what is found is kept
	$(CLEAN_ENV) $(BIN)/python tests/fuzz/run.py --check --seed $(or $(SEED),1) --minutes $(or $(MINUTES),10)

check: lint types contracts test ## linters, types, import contracts and tests

lint: $(VENV)/test.done
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/test.done # once more as Windows and macOS have it
	$(BIN)/mypy
	$(BIN)/mypy --platform win32 --cache-dir .mypy_cache/win32
	$(BIN)/mypy --platform darwin --cache-dir .mypy_cache/darwin

contracts: $(VENV)/test.done
	$(BIN)/lint-imports
	$(BIN)/python tools/architecture.py --check

bench: $(VENV)/test.done ## timings against peers, each in one run; the main ratios are recorded
	$(CLEAN_ENV) xvfb-run -a $(BIN)/python benchmarks/history.py

docs: $(VENV)/test.done ## build the documentation site, to be read from site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

texts: $(VENV)/test.done ## list the window's texts anew for translators, and compile what they wrote
	$(BIN)/python tools/texts.py

manifest: $(VENV)/test.done ## write the pages of the window into napari.yaml anew
	$(BIN)/python tools/manifest.py

pictures: $(VENV)/test.done ## draw the figures and take the pictures of the documentation again, under Xvfb
	$(CLEAN_ENV) $(BIN)/python docs/draw_figures.py
	$(CLEAN_ENV) xvfb-run -a -s "-screen 0 1400x900x24" $(BIN)/python docs/take_pictures.py
	MAMAMIA_SCREENSHOTS=docs/images $(CLEAN_ENV) $(BIN)/python -m pytest -q -m "night or not night" tests/door/test_start_pages.py tests/door/test_import_stories.py

lock: $(VENV)/release.done ## resolve the lock files anew: versions and hashes of every extra
	$(BIN)/python tools/locks.py

lock-check: $(VENV)/release.done ## do the lock files fit pyproject.toml? needs no network
	$(BIN)/python tools/locks.py --check

licences: $(VENV)/test.done $(VENV)/release.done build/untested ## write the licence of each package that an extra brings
	$(BIN)/python tools/licences.py docs/licences.md --more build/untested

sbom: $(VENV)/test.done $(VENV)/release.done build/untested ## write a bill of materials (CycloneDX) of each extra
	$(BIN)/python tools/licences.py --sbom dist/sbom --more build/untested

release: $(VENV)/release.done ## build wheel and sdist, twice, and try both in clean environments
	bash .ci/system-libraries window screen
	$(BIN)/python tools/release.py

kit: docs $(VENV)/release.done ## make an archive that installs without a network
	$(BIN)/python tools/kit/make_kit.py $(if $(PYTHON),--python $(PYTHON))

neighbours: $(VENV)/release.done ## resolve with each package that people install beside this software
	$(BIN)/python tools/neighbours.py

clean: ## remove the virtual environment and the demo
	rm -rf $(VENV) demo site

$(VENV)/python.done:
	bash .ci/system-libraries python
	bash .ci/make-venv $(VENV)
	touch $@

$(VENV)/base.done: $(VENV)/python.done pyproject.toml constraints.txt
	$(PIP) -e .
	touch $@

$(VENV)/window.done: $(VENV)/python.done pyproject.toml constraints.txt
	bash .ci/system-libraries window
	$(PIP) -e '.[pyqt6]'
	touch $@

$(VENV)/test.done: $(VENV)/python.done pyproject.toml constraints.txt
	bash .ci/system-libraries window screen browser peers & libraries=$$!; \
	$(PIP) --no-compile torch==2.13.0 -e '.[$(TESTED)]' && wait $$libraries
	@# two list the tests: what they load is compiled, 5,000 of the packages' 19,000 files, and the tests
	$(LISTED) tests/s*/ > /dev/null & half=$$!; $(LISTED) tests/[a-rt-z]*/ > /dev/null; wait $$half || true
	touch $@ $(VENV)/base.done $(VENV)/window.done

$(VENV)/release.done: $(VENV)/base.done
	$(PIP) -e '.[release]'
	touch $@

build/fast: locks/fast.txt # beside the environment: the tests of each commit do without numba, for 2 s of each process
	$(PIP) --no-deps --upgrade --target $@ $$(grep -ohE '^(numba|llvmlite)==[^ ]+' $<)
	touch $@

build/untested: locks/pyside6.txt locks/fast.txt # beside the environment: the tests have one Qt only, and no numba
	$(PIP) --no-deps --upgrade --target $@ $$(grep -ohE '^(pyside6-essentials|shiboken6|numba|llvmlite)==[^ ]+' $^)
	touch $@
