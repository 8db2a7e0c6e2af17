// SPDX-License-Identifier: Apache-2.0
// Symbolic dimensions: sums of products of symbols ("2*batch + 1"), quotients and maxima, kept in one normal form so
// that equal expressions get the same number. A dimension is a plain int64, or the number of such an expression.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "perigee/plugin.hpp"

namespace perigee {

using Bindings = std::map<int64_t, int64_t>;  // symbol -> size

int64_t make_symbol(const std::string& name);  // none that is in use, even if the name was used before
// Gives one back: nothing that knows it is left. The next of its name is this one again, and so are the expressions
// that were made of it: what is known of symbols does not grow with the graphs that come and go.
void release_symbol(int64_t symbol) noexcept;
int64_t dim_add(int64_t a, int64_t b);  // overflow throws PG_E_INVALID_ARGUMENT
int64_t dim_mul(int64_t a, int64_t b);
int64_t dim_div(int64_t a, int64_t b);  // rounds down
int64_t dim_max(int64_t a, int64_t b);
// True when equal, or when that cannot be refuted because a symbol is involved.
bool dim_equal(int64_t a, int64_t b);
int64_t dim_value(int64_t dimension, const Bindings& bindings);  // throws when a symbol has no size
// The same, or nothing where a symbol has no size.
std::optional<int64_t> dim_known(int64_t dimension, const Bindings& bindings);
// That the dimension is `value` in a run tells the size of the one symbol in it that has none yet, if it is a sum of
// multiples of it and of what is known: 2*n + 1 being 7 makes n 3. False where it tells nothing.
bool dim_solve(int64_t dimension, int64_t value, Bindings& bindings);
std::string dim_text(int64_t dimension);
std::vector<int64_t> dim_symbols(int64_t dimension);  // that an expression is made of; none of a number
bool is_dim(int64_t dimension);                       // a number, or an expression that was made here

// What an expression is made of, for those who write it down: a sum of products of these.
struct DimAtom {
  enum Kind { symbol, quotient, maximum } kind;
  int64_t a, b;  // of a symbol a is itself
};
struct DimTerm {
  int64_t factor;
  std::vector<DimAtom> atoms;
};
std::vector<DimTerm> dim_terms(int64_t dimension);  // none of 0

}  // namespace perigee
