#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/amx/run.sh amx|avx512_bf16 PERIGEE EMULATION: the suites that compute in bfloat16, on a processor with AMX or with
# AVX-512's bfloat16 alone: on this one where it has that. Emulated where it has AVX-512, those that take it no more than
# some seconds: PERIGEE_EMULATE=all for all of them, half an hour. Ends with 77 where neither.
set -e
isa=$1 perigee=$2 emulation=$3
tests=$(cd "$(dirname "$0")/.." && pwd)
# The largest set that oneDNN may use, the name of its kernels, and what the processor would call the instructions.
case $isa in
  amx) export ONEDNN_MAX_CPU_ISA=ALL PERIGEE_TEST_ISA=amx_bf16 flag=amx_bf16 ;;
  avx512_bf16) export ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 PERIGEE_TEST_ISA=core_bf16 flag=avx512_bf16 ;;
esac

has() { grep -qw "$1" /proc/cpuinfo; }
suites=(amp/amp optim/trajectory kernels/low_precision)
more=(amp/amp_training nn/activated kernels/conv_layout kernels/product_ways kernels/threads)
operators=$tests/lua/operators
if has "$flag"; then
  echo "on this processor"
  suites+=("${more[@]}")
elif has avx512f && has avx512bw && has avx512dq && has avx512vl && has cpuid_fault; then
  echo "emulated"
  if [ "$PERIGEE_EMULATE" = all ]; then suites+=("${more[@]}"); else operators=; fi
  export LD_PRELOAD=$emulation
else
  echo "skipped: neither $flag nor AVX-512 with a CPUID that can be trapped"
  exit 77
fi
suites=("${suites[@]/#/$tests/lua/}")
exec "$perigee" test "$tests/amx/bfloat16_test.lua" $operators "${suites[@]/%/_test.lua}"
