#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# itself.sh BUDGET_LUA: the budget notices more registers, stack, spills, and kernels that came or went.
command -v luajit >/dev/null || { echo "luajit is not here"; exit 0; }
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
objects=$work/CMakeFiles/plugin.dir
mkdir -p "$work/bin" "$objects" "$work/tests/cuda_budget"
tool=$work/tests/cuda_budget/budget.lua
cp "$1" "$tool"
touch "$work/kernels_0.cu"
printf '#!/bin/sh\necho "Cuda compilation tools, release 13.0, V13.0.88"\n' >"$work/bin/nvcc"
chmod +x "$work/bin/nvcc"
PATH=$work/bin:$PATH

compile() { # REGISTERS STACK SPILLS: two instantiations of one kernel, and a function
  for type in f d; do
    cat <<END
ptxas info    : Compiling entry function '_ZN4cuda4rowsI${type}EEvPT_i' for 'sm_90'
ptxas info    : Function properties for _ZN4cuda4rowsI${type}EEvPT_i
    $2 bytes stack frame, $3 bytes spill stores, $3 bytes spill loads
ptxas info    : Used $1 registers, used 0 barriers
ptxas info    : Function properties for __internal_trig_reduction_slowpathd
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
END
  done >"$objects/kernels_0.cu.o.ptxas"
}
check() { luajit "$tool" "$objects" "$work/budget.txt" "$@" >"$work/said"; }
fails() { ! check || { echo "not noticed: $1"; exit 1; }; grep -q "$1" "$work/said" || { cat "$work/said"; exit 1; }; }

compile 20 0 0
fails "not in the budget"
check --update
grep -qx "rows 24 0" "$work/budget.txt"
check
compile 24 0 0
check
compile 25 0 0
fails "25 registers, the budget is 24"
compile 20 16 0
fails "16 bytes of stack, the budget is 0"
compile 20 0 8
fails "spills 16 bytes"
if check --update; then echo "an update hides spills"; exit 1; fi
compile 20 0 0
cp "$objects/kernels_0.cu.o.ptxas" "$objects/kernels_1.cu.o.ptxas"
check
echo "gone 8 0" >>"$work/budget.txt"
fails "not in the plugin any more"
sed -i 's/release 13.0/release 12.9/' "$work/budget.txt"
check
