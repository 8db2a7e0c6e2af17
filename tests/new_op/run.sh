#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/new_op/run.sh SOURCE FOLDER: in a copy of the tree makes an operator of every family by scripts/dev/new_op, builds,
# and runs all checks of operators on them. Then names that must be refused.
set -e
source=$1 tree=$2
rm -rf "$tree"
mkdir -p "$tree/tests/lua"
cp -r "$source"/{CMakeLists.txt,LICENSE,.clang-format,bindings,cmake,core,plugins,scripts} "$tree"
cp -r "$source/tests/cases" "$tree/tests"
cp -r "$source/tests/lua/operators" "$tree/tests/lua"
cd "$tree"

refused() { # MESSAGE ARGUMENT...
  local message=$1 said
  shift
  if said=$(scripts/dev/new_op "$@" 2>&1); then echo "new_op $* was not refused"; exit 1; fi
  [[ $said == *"$message"* ]] || { echo "new_op $* said: $said"; exit 1; }
}
refused "snake_case" CamelCase
refused "snake_case" ""
refused "no family" my_probe --family circular
refused "there is an operator softmax already" softmax
refused "usage" --nonsense

for family in elementwise reduction plain; do scripts/dev/new_op "probe_$family" --family $family; done
refused "already" probe_plain

export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$(dirname "$source")} CCACHE_NOHASHDIR=1
cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DPERIGEE_CUDA=OFF -DPERIGEE_TESTS=OFF >configure.log ||
  { cat configure.log; exit 1; }
ninja -C build >build.log || { tail -n 40 build.log; exit 1; }
# The build must know the operators, or the filter would find nothing to fail.
build/bin/perigee test --filter /probe_ tests/lua/operators | tee test.log
count=$(sed -nE '$ s/^([0-9]+) passed, 0 failed.*/\1/p' test.log)
[ "${count:-0}" -ge 200 ] || { echo "expected at least 200 checks without a failure"; exit 1; }
cd /
rm -rf "$tree"
