# Targets of rxlane. `make demo` and `make test` need the Rust toolchain and nothing else.

CARGO = cargo
PREFIX = /usr/local
DESTDIR =
# Seconds for which `make fuzz` runs each target.
FUZZ_SECONDS ?= 600
FUZZ_TARGETS = $(shell sed -n 's/^mod \([a-z0-9_]*\);/\1/p' fuzz/src/main.rs)

.PHONY: help demo test check nightly fmt locks clippy doc deny bpf bpf-check fuzz fuzz-build $(FUZZ_TARGETS:%=fuzz-%) unprivileged fresh-user dist packages bench bench-peers peers-check deps install lab lab-prepare

help:
	@echo 'make demo         see rxlane work: a PPPoE sample, explained'
	@echo 'make test         run all tests (RXLANE_CAPTURES=FOLDER adds captures of your own)'
	@echo 'make install      install the program, man pages and completions into PREFIX ($(PREFIX))'
	@echo 'make dist         static programs of several architectures, packed, in target/dist (ARCHITECTURES=x86_64 for one)'
	@echo 'make packages     .deb and .rpm of what `make dist` made'
	@echo 'make deps         root, Debian: install what the targets below need besides Rust'
	@echo 'make check        what continuous integration runs, documentation, and whether fuzz targets and peers compile'
	@echo 'make nightly      what takes longer: fuzzing, licences, every experiment of the lab, other software, a clean clone'
	@echo 'make bpf          compile the eBPF programs (their objects are committed beside the source)'
	@echo 'make fuzz         every fuzz target for FUZZ_SECONDS ($(FUZZ_SECONDS)) seconds'
	@echo 'make lab          boot real drivers in a virtual machine and run the experiments (make deps first)'
	@echo 'make bench        speed of rxlane by itself: reading captures, landing frames'
	@echo 'make bench-peers  speed beside other software (peers/README.md)'

demo:
	@echo 'Building rxlane first, where that has not been done: some minutes.' >&2
	@$(CARGO) run --release --quiet --locked -p rxlane -- demo

# Several programs at once: they wait for peers and clocks more than they compute.
test:
	.ci/tests

check: fmt locks clippy test doc bpf-check peers-check unprivileged

# What takes long and seldom tells anything: before a release, and where the change is in what it looks at.
nightly:
	.ci/nightly

fmt:
	$(CARGO) fmt --all --check

# A dependency that is new in the workspace is one of the peers and fuzz targets, too.
locks:
	$(CARGO) update --quiet --workspace --locked
	$(CARGO) update --quiet --workspace --locked --manifest-path peers/Cargo.toml

clippy:
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

# Examples, too: each crate's are a program of their own, which takes the linker longer than they run.
doc:
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --no-deps --locked --quiet
	$(CARGO) test --workspace --locked --doc --quiet

# The clang that crates/fix/xdp/bpf/build names, since another one gives other bytes.
bpf:
	crates/fix/xdp/bpf/build

# Whether the committed objects are those of their source. Skipped where that clang is missing, unless RXLANE_REQUIRE
# names it.
bpf-check:
	@for tool in clang-14 llvm-strip-14; do .ci/have $$tool || exit $$(( $$? - 1 )); done; \
	set -e; folder=$$(mktemp -d); trap 'rm -r "$$folder"' EXIT; \
	crates/fix/xdp/bpf/build "$$folder"; \
	for object in "$$folder"/*.o "$$folder"/baseline/*.o; do \
		cmp "$$object" "crates/fix/xdp/bpf/$${object#"$$folder"/}" || { echo 'make bpf compiles them anew' >&2; exit 1; }; \
	done

# Skipped where cargo-deny is missing, unless RXLANE_REQUIRE names it.
deny:
	@.ci/have cargo-deny || exit $$(( $$? - 1 )); $(CARGO) deny check licenses bans sources

# The flags are those of `cargo fuzz` (0.13) without a sanitizer, which the stable toolchain lacks; the targets assert what they check.
# With a target named, build scripts and macros do without.
FUZZ_HOST = $(shell rustc -vV | sed -n 's/^host: //p')
FUZZ_FLAGS = -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
	-Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
	-Cllvm-args=-sanitizer-coverage-stack-depth -Cllvm-args=-simplifycfg-branch-fold-threshold=0 -Ccodegen-units=1
FUZZ_PROGRAM = $${CARGO_TARGET_DIR:-$(CURDIR)/peers/target}/$(FUZZ_HOST)/fuzz/fuzz

# As many targets at a time as there are CPUs.
fuzz: fuzz-build
	@$(MAKE) --no-print-directory -O -j"$$(nproc)" $(FUZZ_TARGETS:%=fuzz-%)

fuzz-build:
	$(CARGO) run --quiet --locked --manifest-path fuzz/Cargo.toml --bin seeds -- fuzz/corpus
	RUSTFLAGS='$(FUZZ_FLAGS)' $(CARGO) build --quiet --locked --manifest-path fuzz/Cargo.toml --profile fuzz --target $(FUZZ_HOST) --bin fuzz

$(FUZZ_TARGETS:%=fuzz-%): fuzz-%:
	@cd fuzz; echo '== $*, $(FUZZ_SECONDS) s'; mkdir -p corpus/$* artifacts/$*; \
	RXLANE_FUZZ=$* $(FUZZ_PROGRAM) corpus/$* $$(ls -d regressions/$* 2>/dev/null) \
		-artifact_prefix=artifacts/$*/ -max_total_time=$(FUZZ_SECONDS) -verbosity=0 -print_final_stats=1

# Whether what stands beside the workspace still compiles; what needs DPDK is built by make nightly. No C++ is compiled for that.
peers-check:
	CUSTOM_LIBFUZZER_PATH=/nonexistent/libFuzzer.a $(CARGO) check --quiet --locked --manifest-path peers/Cargo.toml --workspace \
		--exclude bench-checksum --exclude bench-toeplitz

# Demo and tests, as built, by a user without privileges.
unprivileged:
	.ci/unprivileged

# The same in a clean clone, built there with the Rust toolchain and a linker alone: for a change of what a build takes.
fresh-user:
	.ci/fresh-user

# Kernels and tools are fetched into target/lab the first time. The experiments run the program of the checkout, and are
# part of `make test`, too, where there is QEMU. Programs are those of `make test`: with one package's features alone, cargo
# would build most crates a second time.
lab-prepare:
	$(CARGO) test --workspace --locked --lib --bins --tests --no-run
	"$${CARGO_TARGET_DIR:-target}/debug/rxlane-lab" prepare

# All experiments, the long ones too.
lab: lab-prepare
	RXLANE_REQUIRE=lab,$(RXLANE_REQUIRE) RXLANE_TEST_ARGS=--include-ignored RXLANE_TEST_LIMIT=7200 .ci/tests -p lab

# Static programs, each started, the same bytes each time.
dist:
	packaging/dist

# Of the programs of `make dist`.
packages:
	packaging/packages

bench:
	$(CARGO) run --release --quiet --locked --manifest-path peers/Cargo.toml -p bench-capture

bench-peers:
	peers/run

# What make nightly needs besides: .ci/deps nightly
deps:
	.ci/deps

# As root, who may have no Rust toolchain, installs what the user has built.
install:
	@if command -v $(CARGO) >/dev/null; then $(CARGO) build --release --quiet --locked -p rxlane; \
	elif [ ! -x "$${CARGO_TARGET_DIR:-target}/release/rxlane" ]; then \
		echo 'make install: build it first, as the user who has the Rust toolchain: cargo build --release -p rxlane' >&2; exit 1; fi
	DESTDIR='$(DESTDIR)' .ci/install '$(DESTDIR)$(PREFIX)'
