# Every target sets itself up: it needs Python 3.11+, a C compiler and PyPI, nothing else.

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; \
	done)
VENV := .venv
BIN := $(VENV)/bin
# Remembers what was installed, so that a second `make test` starts at once.
STAMP := $(VENV)/installed.stamp
C_FILES := $(wildcard */native/*/*.[ch] */native/*/*/*.[ch])
# A worker takes file after file.
TEST := $(BIN)/python -m pytest -n auto --dist loadfile -m 'not slow'
NATIVE := CMakeLists.txt $(filter-out runtime/native/examples/%,$(C_FILES))

# Tests start hundreds of processes, each of which would compile braid's modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-torch slow cross-tools fuzz docs lint format build wheel runtime-wheel
.PHONY: release-wheels first-example clean

demo: build
	$(BIN)/python -m benchmarks.demo

test: build
	$(BIN)/lit -sv test; lit=$$?; $(TEST) && exit $$lit

# What needs PyTorch, which takes a gigabyte.
test-torch: build
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --editable '.[torch]' expecttest
	$(BIN)/python -m pytest test/unit/api/test_torch_tensors.py test/unit/api/test_from_torch.py \
		test/unit/api/test_torch_backend.py test/unit/api/test_opinfo.py

# What takes hours: cases that take seconds each (test/slow_cases.txt), wheels, damaged files.
slow: build
	$(BIN)/python -m pytest -n auto --dist loadfile -m slow --timeout 0

# What the slow test of another architecture needs, from Debian; needs root.
cross-tools:
	apt-get update
	apt-get install -y --no-install-recommends gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user

# Random models and damaged files, for MINUTES; `make test` does the same for seconds.
MINUTES ?= 20
fuzz: build
	$(BIN)/python test/fuzz/run.py --minutes $(MINUTES)

# The site, in build/site; tables are made from benchmarks/results, the reference from docstrings.
docs: build
	$(BIN)/python -m benchmarks.report
	$(BIN)/python -m mkdocs build --strict

lint: build
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $(C_FILES)
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/python -m pytest -q test/docs/test_pages.py

format: build
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(C_FILES)

build: $(STAMP)

# With what it needs of upstream MLIR, for this Python. What is published: make release-wheels.
wheel: build
	rm -rf build/plain
	$(BIN)/python -m pip wheel --no-deps --wheel-dir build/plain .
	$(BIN)/python release/bundle.py build/plain/*.whl dist

# What runs artifacts without the compiler.
runtime-wheel: build
	$(BIN)/python -m pip wheel --no-deps --wheel-dir dist runtime/wheel

# What is published: wheels of both, for x86_64 and aarch64 with glibc 2.28 or newer.
RELEASE := dist/release
release-wheels: build
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --editable '.[release]'
	$(BIN)/python release/wheels.py $(RELEASE)

# README's first example in a fresh environment with a wheel: WHEELS=dist/release for a published one.
WHEELS := dist
first-example:
	$(BIN)/python release/first_example.py $(WHEELS)

$(STAMP): pyproject.toml $(NATIVE)
	$(if $(PYTHON),,$(error braid needs Python 3.11 or newer; say where with make PYTHON=...))
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --editable '.[test]'
	touch $@

clean:
	rm -rf $(VENV) build dist
