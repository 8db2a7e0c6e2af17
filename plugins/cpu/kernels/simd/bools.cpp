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
  table.binary_bool[pMul] = table.binary_bool[pMinimum] = binary<And>;
  table.binary_bool[pLogicalAnd] = table.binary_bool[pBitwiseAnd] = binary<And>;
  table.binary_bool[pAdd] = table.binary_bool[pMaximum] = binary<Or>;
  table.binary_bool[pLogicalOr] = table.binary_bool[pBitwiseOr] = binary<Or>;
  table.binary_bool[pNe] = table.binary_bool[pLogicalXor] = table.binary_bool[pBitwiseXor] = binary<Xor>;
  table.binary_bool[pEq] = binary<Same>;
  table.binary_bool[pLt] = binary<Less>;
  table.binary_bool[pLe] = binary<LessOrEqual>;
  table.binary_bool[pGt] = binary<Less, true>;
  table.binary_bool[pGe] = binary<LessOrEqual, true>;
  table.unary_bool[pLogicalNot] = logical_not;
}

}  // namespace cpu::PG_CPU_ISA
