#!/usr/bin/env bash
# Builds the programs on vsomeip into build/vsomeip and prints that directory.
# With names, only these: ecu cluster bench_client bench_service bench_starts matrix_peer.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
out=$root/build/vsomeip
prefix=$("$root/interop/peers/get.sh" vsomeip)
mkdir -p "$out"

# DT_RPATH (not RUNPATH) also serves the parts that vsomeip loads by name at run time.
flags=(-std=c++17 -O2 -Wall -Wextra -Wshadow -Werror -pthread -isystem "$prefix/include"
  -L "$prefix/lib" "-Wl,--disable-new-dtags" "-Wl,-rpath,$prefix/lib")

(($# > 0)) || set -- ecu cluster bench_client bench_service bench_starts matrix_peer
for program in "$@"; do
  target=$out/$program
  # A change of the prefix is a change of this file's output too, so it is kept beside it.
  if [[ -x $target && $target -nt $here/$program.cpp && $target -nt $here/stack.cpp &&
    $target -nt $here/stack.hpp && $target -nt $here/wire.hpp && $target -nt ${BASH_SOURCE[0]} &&
    $(cat "$target.prefix" 2>/dev/null) == "$prefix" ]]; then
    continue
  fi
  echo "vsomeip programs: building $program" >&2
  g++ "${flags[@]}" -o "$target.new" "$here/$program.cpp" "$here/stack.cpp" -lvsomeip3
  mv "$target.new" "$target"
  echo "$prefix" >"$target.prefix"
done
echo "$out"
