#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# outside.sh COMPILER PREFIX WORK: copies every plugin's folder out of the tree, builds it there as a project of its own
# against the Perigee installed at PREFIX, and works with nothing but those plugins. Then the plugins of
# examples/plugins, beside the installed ones, with their scripts.
set -e
compiler=$1 prefix=$2 work=$3
tree=$(cd "$(dirname "$0")/../.." && pwd)
command -v "$compiler" >/dev/null || { echo "$compiler is not installed"; exit 1; }
rm -rf "$work"
mkdir -p "$work/plugins"
jobs=$(nproc)

# Not optimised: here it matters whether it builds, loads and works. Release builds of the same files are tested elsewhere.
options=(-G Ninja -DCMAKE_BUILD_TYPE=None "-DCMAKE_CXX_FLAGS=-O0" "-DCMAKE_CXX_COMPILER=$compiler"
  "-DCMAKE_PREFIX_PATH=$prefix")
export CCACHE_SLOPPINESS=pch_defines,time_macros # or ccache passes precompiled headers by
command -v ccache >/dev/null && options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
for list in "$prefix"/lib/perigee/plugins/*.json; do
  name=$(basename "$list" .json)
  echo "$compiler: $name"
  cp -r "$tree/plugins/$name" "$work/$name"
  cmake -S "$work/$name" -B "$work/$name-build" "${options[@]}" -DPERIGEE_BATCHES=OFF >"$work/$name.log" 2>&1 || { cat "$work/$name.log"; exit 1; }
  if [ "$name" = cuda ]; then # its kernels take minutes: that it configures, and that either compiler builds one, is enough
    cmake --build "$work/cuda-build" --target CMakeFiles/perigee_plugin_cuda.dir/{plugin.cpp,fault_move.cu}.o \
      >"$work/cuda.log" 2>&1 || { cat "$work/cuda.log"; exit 1; }
    continue
  fi
  cmake --build "$work/$name-build" -j "$jobs" >"$work/$name.log" 2>&1 || { cat "$work/$name.log"; exit 1; }
  cmake --install "$work/$name-build" --prefix "$work/installed" >/dev/null
done

# A copy of the installation without plugins of its own: whatever runs comes from outside.
cp -r "$prefix" "$work/bare"
rm -r "$work/bare/lib/perigee/plugins"
export PERIGEE_PLUGIN_PATH=$work/installed/lib/perigee/plugins
"$work/bare/bin/perigee" plugins
"$work/bare/bin/perigee" "$tree/tests/plugins_outside/work.lua"

# Those of other people, who have nothing but the installation.
build_example() {
  local folder=$1 name
  name=$(basename "$folder")
  echo "$compiler: $name"
  cp -r "$folder" "$work/$name"
  (cmake -S "$work/$name" -B "$work/$name-build" "${options[@]}" -DCMAKE_CXX_FLAGS="-O1 -Wall -Wextra -Wpedantic -Werror" &&
    cmake --build "$work/$name-build" -j "$jobs") >"$work/$name.log" 2>&1 || { cat "$work/$name.log"; exit 1; }
}
# As their READMEs say, with no word of optimisation: that is Release.
cmake -S "$prefix/share/perigee/examples/plugins/my_layer" -B "$work/as-told" -G Ninja "-DCMAKE_CXX_COMPILER=$compiler" "-DCMAKE_PREFIX_PATH=$prefix" >"$work/told.log" 2>&1 ||
  { cat "$work/told.log"; exit 1; }
grep -q '^CMAKE_BUILD_TYPE:[A-Z]*=Release$' "$work/as-told/CMakeCache.txt" || { echo "a plugin is not optimised"; exit 1; }
for folder in "$tree"/examples/plugins/*/ "$tree/tests/plugins_outside/tiny_exp/"; do build_example "$folder"; done
run_example() { # its script, with the plugins named
  local script=$1 name
  shift
  PERIGEE_PLUGIN_PATH=
  for name in "$@"; do PERIGEE_PLUGIN_PATH+=$work/$name-build/lib/perigee/plugins:; done
  "$prefix/bin/perigee" "$script" --short
}
run_example "$work/tiny_device/run.lua" tiny_device
run_example "$work/my_layer/train.lua" my_layer
run_example "$work/my_data/run.lua" my_data
run_example "$work/tiny_exp/work.lua" tiny_device tiny_exp

# What conformance finds of it: all that a device must do, four operators, and nothing wrong.
PERIGEE_PLUGIN_PATH= "$prefix/bin/perigee" conform "$work/tiny_device-build/lib/perigee/plugins/tiny_device.so" \
  --cases "$tree/tests" >"$work/conform.txt" || { cat "$work/conform.txt"; exit 1; }
grep -q '^matmul  *part ' "$work/conform.txt" && grep -q '^level 2 of 5: level 3 needs a kernel for sub' "$work/conform.txt" || { cat "$work/conform.txt"; exit 1; }
