# shellcheck shell=bash
# What every verb in this folder starts with: the virtual environment in the clone, and how a step is told and timed.
# It is sourced, by bash, under `set -euo pipefail`. Packages come from wherever the user's pip looks; no index is named.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
venv=$root/.venv
python=$venv/bin/python

say() { printf '%s\n' "$*"; }

fail() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 1
}

# Prints the first interpreter on the PATH that is new enough.
find_python() {
    local name
    for name in python3 python3.14 python3.13 python3.12 python3.11; do
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$name"
            return
        fi
    done
    fail "Python 3.11 or newer is needed, and python3 here is $(python3 --version 2>&1 || true)." \
        "Install it (Debian, Ubuntu: apt-get install python3 python3-venv) and run this again."
}

# Debian ships Python without ensurepip; the package that holds it is named after the interpreter's version.
require_venv() {
    local interpreter=$1 package
    "$interpreter" -c 'import ensurepip, venv' 2>/dev/null && return
    package=$("$interpreter" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        say "Installing $package, which this Python lacks ..."
        apt_install "$package" || fail "apt-get could not install $package. Install it and run this again."
        "$interpreter" -c 'import ensurepip, venv' 2>/dev/null && return
    fi
    fail "$interpreter cannot make a virtual environment: its ensurepip is missing." \
        "Install it (Debian, Ubuntu: sudo apt-get install $package) and run this again."
}

# Two of the examples are programs for Node, and their tests run them.
require_node() {
    has_node && return
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        say "Installing nodejs and npm, which the examples' tests run ..."
        apt_install --no-install-recommends nodejs npm || fail "apt-get could not install nodejs and npm. Install them and run this again."
        has_node && return
    fi
    fail "Node 18 or newer and npm are needed, and node here is $(node --version 2>/dev/null || echo absent)." \
        "Install them (Debian, Ubuntu: sudo apt-get install nodejs npm) and run this again."
}

has_node() {
    command -v npm >/dev/null && node -e 'process.exit(Number(process.versions.node.split(".")[0]) < 18 ? 1 : 0)' 2>/dev/null
}

apt_install() {
    export DEBIAN_FRONTEND=noninteractive
    # The first try spares the update; a new machine has no lists of packages yet, and need not hear about it.
    apt-get install -y -qq "$@" </dev/null >/dev/null 2>&1 ||
        { apt-get update -qq && apt-get install -y -qq "$@"; } </dev/null >/dev/null
}

# What the installation depends on. It is kept inside the environment, so that it goes when the environment goes.
wanted_stamp() {
    printf '%s\n' "$root"
    "$python" -VV
    cat "$root/pyproject.toml" "$root/constraints.txt"
}

# Leaves a working .venv behind: at once when it is up to date, else by installing again.
ensure_venv() {
    local stamp=$venv/insika-installed interpreter
    if ! "$python" -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        interpreter=$(find_python)
        require_venv "$interpreter"
        say "Setting up .venv with $("$interpreter" --version) ..."
        "$interpreter" -m venv --clear "$venv" || fail "$interpreter could not make $venv."
    fi
    if [ -f "$stamp" ] && [ "$(wanted_stamp)" = "$(cat "$stamp")" ]; then
        return
    fi
    say "Installing Insika and what it needs into .venv (about a minute) ..."
    rm -f "$stamp"
    (cd "$root" && "$python" -m pip install --quiet --disable-pip-version-check --no-input -c constraints.txt -e '.[dev]') \
        </dev/null || fail "pip could not install what pyproject.toml and constraints.txt ask for; its message is above."
    wanted_stamp >"$stamp"
}

# step NAME COMMAND...: runs the command in the clone, says how long it took, and ends the script when it fails.
step() {
    local name=$1 started=$SECONDS status=0
    shift
    say "== $name"
    (cd "$root" && "$@") || status=$?
    if [ "$status" -ne 0 ]; then
        fail "FAILED at \"$name\" after $((SECONDS - started)) s (exit $status)"
    fi
    say "   ok, $((SECONDS - started)) s"
}
