// SPDX-License-Identifier: Apache-2.0
// Arithmetic, comparisons and logic of bools as they lie, a byte each, of which any but 0 is true.
#include "loop.hpp"

namespace cpu::PG_CPU_ISA {
namespace {

using Byte = unsigned char;

struct And {
  Byte operator()(Byte a, Byte b) const { return a & b; }
};
struct Or {
  Byte operator()(Byte a, Byte b) const { return a | b; }
};
struct Xor {
  Byte operator()(Byte a, Byte b) const { return a ^ b; }
};
struct Same {
  Byte operator()(Byte a, Byte b) const { return a ^ b ^ 1; }
};
struct Less {
  Byte operator()(Byte a, Byte b) const { return (a ^ 1) & b; }
};
struct LessOrEqual {
  Byte operator()(Byte a, Byte b) const { return (a ^ 1) | b; }
};

template <class Op, bool kTurned = false>
void binary(const void* a, const void* b, void* out, int64_t n) {
  auto* x = static_cast<const Byte*>(kTurned ? b : a);
  auto* y = static_cast<const Byte*>(kTurned ? a : b);
  auto* z = static_cast<Byte*>(out);
  PG_LOOP
  for (int64_t i = 0; i < n; i++) z[i] = Op()(static_cast<Byte>(x[i] != 0), static_cast<Byte>(y[i] != 0));
}

void logical_not(const void* x, void* out, int64_t n, const void*) {
  auto* from = static_cast<const Byte*>(x);
  auto* to = static_cast<Byte*>(out);
  PG_LOOP
  for (int64_t i = 0; i < n; i++) to[i] = from[i] == 0;
}

}  // namespace

void fill_bools(Simd& table) {
  table.binary_bool[bMul] = table.binary_bool[bMinimum] = binary<And>;
  table.binary_bool[bLogicalAnd] = table.binary_bool[bBitwiseAnd] = binary<And>;
  table.binary_bool[bAdd] = table.binary_bool[bMaximum] = binary<Or>;
  table.binary_bool[bLogicalOr] = table.binary_bool[bBitwiseOr] = binary<Or>;
  table.binary_bool[bNe] = table.binary_bool[bLogicalXor] = table.binary_bool[bBitwiseXor] = binary<Xor>;
  table.binary_bool[bEq] = binary<Same>;
  table.binary_bool[bLt] = binary<Less>;
  table.binary_bool[bLe] = binary<LessOrEqual>;
  table.binary_bool[bGt] = binary<Less, true>;
  table.binary_bool[bGe] = binary<LessOrEqual, true>;
  table.unary_bool[uLogicalNot] = logical_not;
}

}  // namespace cpu::PG_CPU_ISA
