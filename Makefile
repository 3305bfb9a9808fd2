# Targets of rxlane. `make demo` and `make test` need the Rust toolchain and nothing else.

CARGO = cargo
PREFIX = /usr/local
DESTDIR =
# Seconds for which `make fuzz` runs each target.
FUZZ_SECONDS = 600
FUZZ_TARGETS = capture_reader dissect doctor encapsulation_text explain host_text ipv6_extensions link_frames \
	model_scenario nic_profile ppp_control ppp_session pppoe_client pppoe_concentrator pppoe_discovery pppoe_tags rss_text segment_coalesce steering

.PHONY: help demo test check fmt clippy doc deny docs bpf bpf-check fuzz fuzz-build fuzz-quick $(FUZZ_TARGETS:%=fuzz-%) unprivileged fresh-user bench bench-peers deps install lab lab-prepare

help:
	@echo 'make demo         see rxlane work: a PPPoE sample, explained'
	@echo 'make test         run all tests (RXLANE_CAPTURES=FOLDER adds captures of your own)'
	@echo 'make install      install the program, man pages and completions into PREFIX ($(PREFIX))'
	@echo 'make deps         root, Debian: install what the targets below need besides Rust'
	@echo 'make check        everything that continuous integration runs'
	@echo 'make bpf          compile the eBPF programs (their objects are committed beside the source)'
	@echo 'make docs         write docs/findings from the rules of the doctor'
	@echo 'make fuzz         every fuzz target for FUZZ_SECONDS ($(FUZZ_SECONDS)) seconds'
	@echo 'make lab          boot real drivers in a virtual machine and run the experiments (make deps first)'
	@echo 'make bench        speed of rxlane by itself: reading captures, landing frames'
	@echo 'make bench-peers  speed beside other software (peers/README.md)'

demo:
	@echo 'Building rxlane first, where that has not been done: some minutes.' >&2
	@$(CARGO) run --release --quiet --locked -p rxlane -- demo

# Experiments of the lab that wait for a guest take a thread, and nothing else (lab/tests/experiments/pool.rs). Always the whole
# workspace: with the features of fewer packages most crates are built a second time.
EXPERIMENTS = RUST_TEST_THREADS=$${RUST_TEST_THREADS:-32} $(CARGO) test --workspace --locked --test experiments
# The other tests wait for peers and clocks more than they compute, too.
test:
	RUST_TEST_THREADS=$${RUST_TEST_THREADS:-8} $(CARGO) test --workspace --locked
	$(EXPERIMENTS)

check: fmt clippy test doc deny bpf-check fuzz-quick unprivileged

fmt:
	$(CARGO) fmt --all --check

clippy:
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

doc:
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --no-deps --locked --quiet

docs:
	RXLANE_WRITE_DOCS=1 $(CARGO) test --quiet --locked -p rxlane-doctor --test it pages

# The clang that crates/fix/xdp/bpf/build names, since another one gives other octets.
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

# As many targets at a time as there are CPUs. The stable toolchain has no sanitizers; the targets assert what they check.
fuzz:
	@.ci/have cargo-fuzz || exit $$(( $$? - 1 )); $(MAKE) --no-print-directory fuzz-build && \
	$(MAKE) --no-print-directory -O -j"$$(nproc)" $(FUZZ_TARGETS:%=fuzz-%)

fuzz-build:
	$(CARGO) run --quiet --locked --example fuzz_seeds -- fuzz/corpus
	cd fuzz && $(CARGO) fuzz build -s none

$(FUZZ_TARGETS:%=fuzz-%): fuzz-%:
	@cd fuzz; echo '== $*, $(FUZZ_SECONDS) s'; mkdir -p corpus/$*; \
	$(CARGO) fuzz run -s none $* corpus/$* $$(ls -d regressions/$* 2>/dev/null) -- \
		-max_total_time=$(FUZZ_SECONDS) -verbosity=0 -print_final_stats=1

# Five seconds are for the seeds and for what is near them: code that runs at a fraction of the speed does, and is built in a
# fraction of the time.
fuzz-quick:
	@CARGO_PROFILE_RELEASE_OPT_LEVEL=1 $(MAKE) --no-print-directory fuzz FUZZ_SECONDS=5

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
	$(CARGO) test --workspace --locked --no-run
	$(CARGO) test --workspace --locked --no-run --test experiments
	"$${CARGO_TARGET_DIR:-target}/debug/rxlane-lab" prepare

lab: lab-prepare
	RXLANE_REQUIRE=lab,$(RXLANE_REQUIRE) $(EXPERIMENTS)

bench:
	$(CARGO) run --release --quiet --locked -p rxlane-capture --example read_speed

bench-peers:
	peers/run

deps:
	.ci/deps

# As root, who may have no Rust toolchain, installs what the user has built.
install:
	@if command -v $(CARGO) >/dev/null; then $(CARGO) build --release --quiet --locked -p rxlane; \
	elif [ ! -x "$${CARGO_TARGET_DIR:-target}/release/rxlane" ]; then \
		echo 'make install: build it first, as the user who has the Rust toolchain: cargo build --release -p rxlane' >&2; exit 1; fi
	DESTDIR='$(DESTDIR)' .ci/install '$(DESTDIR)$(PREFIX)'
