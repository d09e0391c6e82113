#!/usr/bin/env bash
# Installs what a Debian machine with nothing but rustup's stable Rust lacks, and then runs `just` with the arguments
# it was given: `./setup.sh demo`, `./setup.sh test`; without arguments it lists what there is to run. What is there
# already is left as it is, so it is safe to run again. It says what it does on standard error, which leaves standard
# output to the command.
set -eu
cd "$(dirname "$0")"

WASM_TARGET=wasm32-unknown-unknown

# What the tests want of Python: clients that nobody here has written, and compilers of guests in Python and in C.
PYTHON_PACKAGES="websockets==15.0.1 componentize-py==0.25.1 ziglang==0.17.1"

# What they want of Node: the compiler of guests in JavaScript.
NODE_PACKAGES="@bytecodealliance/componentize-js@0.23.0"

say() {
    printf 'setup: %s\n' "$*" >&2
}

fail() {
    say "$*"
    exit 1
}

has() {
    command -v "$1" >/dev/null 2>&1
}

# Runs a command as root, or fails where there is no way to.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif has sudo && [ -t 0 ]; then
        sudo "$@"
    elif has sudo; then
        # Nobody is there to type a password.
        sudo -n "$@"
    else
        say "this needs root, and there is no sudo: run as root: $*"
        return 1
    fi
}

can_install_packages() {
    has apt-get && { [ "$(id -u)" -eq 0 ] || has sudo; }
}

package_lists_are_fresh=no

# Fetches the lists of packages, once in a run.
refresh_package_lists() {
    if [ "$package_lists_are_fresh" = no ]; then
        say "fetching Debian's package lists"
        as_root apt-get update -q </dev/null >&2 || return 1
        package_lists_are_fresh=yes
    fi
}

# Installs Debian packages, or says who should.
install_packages() {
    if ! has apt-get; then
        say "this is not Debian: install with your package manager what there is called $*"
        return 1
    fi
    refresh_package_lists || return 1
    say "installing with apt-get: $*"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" </dev/null >&2
}

need_rust() {
    # rustup puts itself there, and a shell that was open before does not know yet.
    PATH="${CARGO_HOME:-${HOME:-/root}/.cargo}/bin:$PATH"
    export PATH
    has cargo || fail "Rust is not installed: install its stable version with rustup, then run this again"
}

# What links Rust programs, and compiles the LuaJIT that the benchmarks compare with.
need_c_compiler() {
    if has cc && has make && has pkg-config; then
        return
    fi
    install_packages build-essential pkg-config ||
        fail "a C compiler, make and pkg-config are needed: install build-essential and pkg-config, then run this again"
}

need_just() {
    if has just; then
        return
    fi
    if can_install_packages && refresh_package_lists && apt-cache show just >/dev/null 2>&1; then
        install_packages just || say "apt-get could not install just"
    fi
    if ! has just; then
        say "building just with cargo, which takes a few minutes"
        cargo install just --locked >&2 || fail "just could not be installed: install it, then run this again"
    fi
}

rustup_can_build_wasm() {
    libraries=$(rustc --print target-libdir --target "$WASM_TARGET" 2>/dev/null) || return 1
    for library in "$libraries"/libstd-*; do
        [ -e "$library" ] && return 0
    done
    return 1
}

debian_can_build_wasm() {
    [ -x /usr/bin/cargo ] && [ -x /usr/bin/rustc ] || return 1
    [ -f "$(/usr/bin/rustc --print sysroot)/lib/rustlib/src/rust/library/std/Cargo.toml" ]
}

# What compiles guests; `wheelhouse guest build` finds either.
need_wasm_target() {
    if rustup_can_build_wasm || debian_can_build_wasm; then
        return
    fi
    if has rustup; then
        say "adding the target $WASM_TARGET with rustup"
        if rustup target add "$WASM_TARGET" >&2; then
            return
        fi
        say "rustup could not; taking Debian's toolchain, which builds the standard library for the target itself"
    fi
    packages="rustc-web cargo-web rust-web-src"
    has rustup || packages="$packages lld"
    # shellcheck disable=SC2086 # The words are package names.
    install_packages $packages ||
        fail "guests cannot be compiled: run \`rustup target add $WASM_TARGET\` or install $packages, then run this again"
}

# A minimal rustup profile has neither of these.
need_lints() {
    if cargo clippy --version >/dev/null 2>&1 && cargo fmt --version >/dev/null 2>&1; then
        return
    fi
    say "adding clippy and rustfmt with rustup"
    rustup component add clippy rustfmt >&2 || fail "clippy and rustfmt are needed: add them, then run this again"
}

# A place of their own for Python packages, in the target folder, where the tests look for it.
need_python() {
    python="${CARGO_TARGET_DIR:-target}/python"
    if [ "$(cat "$python/packages" 2>/dev/null)" = "$PYTHON_PACKAGES" ] && "$python/bin/python" -c '' 2>/dev/null; then
        return
    fi
    if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
        install_packages python3 python3-venv ||
            fail "the tests need Python with its module venv: install python3 and python3-venv, then run this again"
    fi
    say "installing into $python: $PYTHON_PACKAGES"
    # shellcheck disable=SC2086 # The words are package names.
    python3 -m venv --clear "$python" >&2 &&
        "$python/bin/python" -m pip install --quiet --disable-pip-version-check $PYTHON_PACKAGES >&2 ||
        fail "the Python packages that the tests need could not be installed: $PYTHON_PACKAGES; is there a network?"
    # Last, so that what was interrupted is done again.
    printf '%s\n' "$PYTHON_PACKAGES" >"$python/packages"
}

# The same for Node.
need_node() {
    node="${CARGO_TARGET_DIR:-target}/node"
    if ! has node || ! has npm; then
        install_packages nodejs npm || fail "the tests need Node.js with npm: install nodejs and npm, then run this again"
    fi
    if [ "$(cat "$node/packages" 2>/dev/null)" = "$NODE_PACKAGES" ]; then
        return
    fi
    # Node brings certificates of its own, and does not know those that this machine has besides.
    certificates=/etc/ssl/certs/ca-certificates.crt
    if [ -z "${NODE_EXTRA_CA_CERTS:-}" ] && [ -f "$certificates" ]; then
        export NODE_EXTRA_CA_CERTS="$certificates"
    fi
    say "installing into $node: $NODE_PACKAGES"
    mkdir -p "$node" &&
        # shellcheck disable=SC2086 # The words are package names.
        npm install --prefix "$node" --no-fund --no-audit --loglevel=error $NODE_PACKAGES >&2 ||
        fail "the Node packages that the tests need could not be installed: $NODE_PACKAGES; is there a network?"
    printf '%s\n' "$NODE_PACKAGES" >"$node/packages"
}

need_rust
need_c_compiler
need_just
need_wasm_target
case "${1:-}" in
    lint | ci) need_lints ;;
esac
case "${1:-}" in
    test | ci | languages | polyglot)
        need_python
        need_node
        ;;
esac

say "everything needed is there"
exec just "$@"
