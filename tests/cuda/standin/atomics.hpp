// SPDX-License-Identifier: Apache-2.0
// Atomic functions: one kernel runs at a time and its threads switch only at barriers, so plain code is atomic. The
// overloads are those that CUDA has, so that others fail to compile here too.
#pragma once

#define EMULATOR_ATOMIC(name, T, expression) \
  inline T name(T* address, T value) {       \
    T old = *address;                        \
    *address = static_cast<T>(expression);   \
    return old;                              \
  }
#define EMULATOR_ATOMIC_INTEGERS(name, expression) \
  EMULATOR_ATOMIC(name, int, expression)           \
  EMULATOR_ATOMIC(name, unsigned, expression)      \
  EMULATOR_ATOMIC(name, unsigned long long, expression)

EMULATOR_ATOMIC(atomicAdd, int, static_cast<unsigned>(old) + static_cast<unsigned>(value))
EMULATOR_ATOMIC(atomicAdd, unsigned, old + value)
EMULATOR_ATOMIC(atomicAdd, unsigned long long, old + value)
EMULATOR_ATOMIC(atomicAdd, float, old + value)
EMULATOR_ATOMIC(atomicAdd, double, old + value)
EMULATOR_ATOMIC(atomicSub, int, static_cast<unsigned>(old) - static_cast<unsigned>(value))
EMULATOR_ATOMIC(atomicSub, unsigned, old - value)
EMULATOR_ATOMIC_INTEGERS(atomicExch, value)
EMULATOR_ATOMIC(atomicExch, float, value)
EMULATOR_ATOMIC_INTEGERS(atomicMin, old < value ? old : value)
EMULATOR_ATOMIC(atomicMin, long long, old < value ? old : value)
EMULATOR_ATOMIC_INTEGERS(atomicMax, old > value ? old : value)
EMULATOR_ATOMIC(atomicMax, long long, old > value ? old : value)
EMULATOR_ATOMIC_INTEGERS(atomicAnd, old& value)
EMULATOR_ATOMIC_INTEGERS(atomicOr, old | value)
EMULATOR_ATOMIC_INTEGERS(atomicXor, old ^ value)
#undef EMULATOR_ATOMIC
#undef EMULATOR_ATOMIC_INTEGERS

#define EMULATOR_COMPARE_AND_SWAP(T)                   \
  inline T atomicCAS(T* address, T compare, T value) { \
    T old = *address;                                  \
    if (old == compare) *address = value;              \
    return old;                                        \
  }
EMULATOR_COMPARE_AND_SWAP(int)
EMULATOR_COMPARE_AND_SWAP(unsigned)
EMULATOR_COMPARE_AND_SWAP(unsigned short)
EMULATOR_COMPARE_AND_SWAP(unsigned long long)
#undef EMULATOR_COMPARE_AND_SWAP

inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
