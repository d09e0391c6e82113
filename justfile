# Everything a person runs. `./setup.sh RECIPE` installs what is missing first.

set positional-arguments

target := env("CARGO_TARGET_DIR", "target")
host := target / "release/wheelhouse"
# With the same features as the tests have, so that dependencies are compiled once.
dev_host := target / "debug/wheelhouse"

# List the recipes
default:
    @just --list --unsorted

# Run the example world with simulated clients: just demo --npcs 20000 --players 100 --seconds 20 --json
demo *ARGS: guests
    {{host}} demo --config guests/meadow.toml "$@"

# The same with hares that think in JavaScript, crows that do in Python, and a step task in C
polyglot *ARGS: guests
    PATH="{{target}}/python/bin:$PATH" WHEELHOUSE_NODE_MODULES="{{target}}/node" {{host}} guest build guests/polyglot >&2
    {{host}} demo --polyglot "$@"

# Run the example world, or another, for clients of your own
serve CONFIG="guests/meadow.toml": guests
    exec {{host}} serve --config "$1"

# Build the host, optimised
host:
    cargo build --release --package wheelhouse --bin wheelhouse

# Build the example guests into guests/build
guests: host
    {{host}} guest build guests >&2

# Run every test: the host's, the end-to-end tests with hostile guests, and the guests' own
test:
    cargo build --workspace --bins --tests
    {{dev_host}} guest build guests tests/guests
    cargo test --workspace
    cargo test --manifest-path guests/Cargo.toml --workspace

# Kill an optimised host with SIGKILL again and again, and look whether anything is lost or done twice: just crash 500
crash ROUNDS="100":
    cargo build --release --workspace --bins --tests
    {{host}} guest build tests/guests >&2
    WHEELHOUSE_CRASH_ROUNDS="$1" cargo test --release --workspace --test end_to_end crash:: -- --nocapture

# Swap guests of an optimised host under load, and print how long the loop paused for it: just swaps 200
swaps SWAPS="200" CLIENTS="100" NPCS="10000":
    cargo build --release --workspace --bins --tests
    {{host}} guest build tests/guests >&2
    WHEELHOUSE_SWAPS="$1" WHEELHOUSE_SWAP_CLIENTS="$2" WHEELHOUSE_SWAP_NPCS="$3" \
        cargo test --release --workspace --test end_to_end swaps_under_load:: -- --nocapture

# Take every kind of guest in every language from its template to a swap
languages:
    cargo build --workspace --bins --tests
    {{dev_host}} guest build tests/guests >&2
    WHEELHOUSE_ALL_LANGUAGES=1 cargo test --workspace --test end_to_end languages:: -- --nocapture --test-threads=1

# Run the benchmarks, which print tables with peers measured in the same run: just bench thinking
bench *ARGS:
    cargo build --release --workspace --bins --benches
    {{host}} guest build guests tests/guests >&2
    cargo bench --workspace --bench {{ if ARGS == "" { "'*'" } else { '"$@"' } }}

# Check formatting, and let clippy look at everything, with warnings as errors
lint: format-check clippy

# Check formatting
format-check:
    cargo fmt --all --check
    cargo fmt --manifest-path guests/Cargo.toml --all --check
    cargo fmt --manifest-path tests/guests/Cargo.toml --all --check

# Format everything
format:
    cargo fmt --all
    cargo fmt --manifest-path guests/Cargo.toml --all
    cargo fmt --manifest-path tests/guests/Cargo.toml --all

# Let clippy look at host, SDK, tests and guests, with warnings as errors
clippy:
    cargo clippy --workspace --all-targets -- --deny warnings
    cargo clippy --manifest-path guests/Cargo.toml --workspace {{wasm}} -- --deny warnings
    cargo clippy --manifest-path tests/guests/Cargo.toml --workspace {{wasm}} -- --deny warnings

# Where only Debian's toolchain can compile for Wasm, clippy looks at the guests as native libraries.
wasm := `ls "$(rustc --print target-libdir --target wasm32-unknown-unknown)"/libstd-* >/dev/null 2>&1 && echo "--target wasm32-unknown-unknown" || true`

# Run the examples in the documentation
doc-tests:
    cargo test --workspace --doc

# What CI runs
ci: test lint doc-tests

# Install the program `wheelhouse` for this user
install:
    cargo install --locked --path host
