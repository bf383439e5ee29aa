#!/usr/bin/env bash
# Installs the Debian packages of the given groups that are missing.
#
#   interop/peers/deps.sh GROUP...     groups: run test interop
#
# The only step of the project that needs root: as root, or where sudo asks no password, it
# installs; otherwise it names the packages and the command and fails.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

say() { echo "deps: $*" >&2; }

# there PACKAGE PROBE: true where what the package gives can be used.
there() {
  case $2 in
  venv) python3 -c 'import ensurepip, venv' 2>/dev/null && return ;;
  */*) [[ -e /usr/include/$2 || -e /usr/local/include/$2 ]] && return ;;
  -) ;;
  *) command -v "$2" >/dev/null && return ;;
  esac
  [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

(($# > 0)) || {
  say "usage: deps.sh GROUP...; groups: run test interop"
  exit 2
}

declare -A missing=()
for wanted in "$@"; do
  known=
  while read -r group package probe _; do
    [[ $group == "$wanted" ]] || continue
    known=1
    there "$package" "$probe" || missing[$package]=1
  done < <(grep -v '^#' "$here/debian-packages")
  [[ $known ]] || {
    say "no group '$wanted' in $here/debian-packages"
    exit 2
  }
done
((${#missing[@]} > 0)) || exit 0

mapfile -t packages < <(printf '%s\n' "${!missing[@]}" | sort)
install=(apt-get install -y --no-install-recommends "${packages[@]}")
if ! command -v apt-get >/dev/null; then
  say "missing, and this is no Debian: what the packages ${packages[*]} give; see interop/peers/debian-packages"
  exit 1
elif ((EUID == 0)); then
  root=(env DEBIAN_FRONTEND=noninteractive)
elif sudo -n true 2>/dev/null; then
  root=(sudo -n env DEBIAN_FRONTEND=noninteractive)
else
  say "missing Debian packages: ${packages[*]}"
  say "install them with: sudo ${install[*]}"
  exit 1
fi

say "installing ${packages[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# The lists of a fresh machine are empty or old, so they are renewed first.
if ! { "${root[@]}" apt-get update && "${root[@]}" "${install[@]}"; } >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  say "could not install ${packages[*]}: the last lines of apt-get are above"
  exit 1
fi
