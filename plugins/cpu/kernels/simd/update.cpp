// SPDX-License-Identifier: Apache-2.0
// Optimizer steps over dense blocks: the rules of perigee/kernels/optimizer.hpp in loops.
#include <utility>

#include "loop.hpp"
#include "perigee/kernels/optimizer.hpp"

namespace cpu::PG_CPU_ISA {
namespace {

template <class T, class Rule, uint32_t Present, size_t... K>
void step(char* const* p, int64_t n, const Rule& given, std::index_sequence<K...>) {
  const Rule rule = given;
  T* const at[] = {reinterpret_cast<T*>(p[K])...};
  PG_LOOP
  for (int64_t i = 0; i < n; i++) {
    T x[] = {((Present >> K & 1u) != 0 ? at[K][i] : T(0))...};
    rule(x, Present);
    ((K != 1 && (Present >> K & 1u) != 0 ? void(at[K][i] = x[K]) : void()), ...);
  }
}

// One loop for every combination of optional operands.
template <class T, class Rule, uint32_t Left, uint32_t Present>
void choose(char* const* p, int64_t n, const Rule& rule) {
  if constexpr (Left == 0) {
    step<T, Rule, Present>(p, n, rule, std::make_index_sequence<Rule::kOperands>());
  } else {
    constexpr uint32_t kBit = Left & (~Left + 1u);
    if (p[__builtin_ctz(kBit)] != nullptr)
      choose<T, Rule, Left ^ kBit, Present | kBit>(p, n, rule);
    else
      choose<T, Rule, Left ^ kBit, Present>(p, n, rule);
  }
}

template <class T, class Rule>
void update(char* const* p, int64_t n, const void* rule) {
  constexpr uint32_t kAll = (1u << Rule::kOperands) - 1;
  choose<T, Rule, Rule::kOptional, kAll ^ Rule::kOptional>(p, n, *static_cast<const Rule*>(rule));
}

}  // namespace

void fill_update(Simd& table) {
#define PG_ROW(name, Rule)                                                      \
  table.update[cpu::r##Rule##Step][0] = update<float, pg::update::Rule<float>>; \
  table.update[cpu::r##Rule##Step][1] = update<double, pg::update::Rule<double>>;
  PG_UPDATE_RULES(PG_ROW)
#undef PG_ROW
}

}  // namespace cpu::PG_CPU_ISA
