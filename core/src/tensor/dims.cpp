// SPDX-License-Identifier: Apache-2.0
#include "tensor/dims.hpp"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <numeric>
#include <vector>

namespace perigee {
namespace {

// An atom is what a product is made of: a symbol, or a quotient or maximum of two dimensions.
using Kind = DimAtom::Kind;
struct Atom {
  Kind kind;
  std::string name;
  int64_t a, b;
};
using Product = std::vector<int64_t>;    // atom numbers, sorted
using Sum = std::map<Product, int64_t>;  // product -> factor; the empty product is the constant

struct Table {
  std::recursive_mutex mutex;
  std::vector<Atom> atoms;
  std::vector<Sum> sums;
  std::map<Sum, int64_t> numbers;
  struct Name {
    size_t made = 0;
    std::vector<int64_t> free;  // those that were given back; has room for all
  };
  std::map<std::string, Name> names;  // of symbols
};

Table& table() {
  static Table* instance = new Table();
  return *instance;
}

[[noreturn]] void overflow() { pg::fail_argument("a size is more than an int64 can count"); }

int64_t checked_add(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r) || PG_DIM_IS_SYMBOLIC(r)) overflow();
  return r;
}
int64_t checked_mul(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r) || PG_DIM_IS_SYMBOLIC(r)) overflow();
  return r;
}

Sum sum_of(int64_t dimension) {
  if (!PG_DIM_IS_SYMBOLIC(dimension)) return dimension == 0 ? Sum{} : Sum{{{}, dimension}};
  const auto& sums = table().sums;
  const auto number = static_cast<size_t>(PG_DIM_SYMBOLIC - 1 - dimension);
  if (number >= sums.size())  // a number that a user gave
    pg::fail_argument(pg::format("%lld is less than any size or distance can be", static_cast<long long>(dimension)));
  return sums[number];
}

int64_t number_of(Sum sum) {
  std::erase_if(sum, [](const auto& term) { return term.second == 0; });
  if (sum.empty()) return 0;
  if (sum.size() == 1 && sum.begin()->first.empty()) return sum.begin()->second;
  Table& t = table();
  auto [it, fresh] = t.numbers.try_emplace(sum, PG_DIM_SYMBOLIC - 1 - static_cast<int64_t>(t.sums.size()));
  if (fresh) t.sums.push_back(sum);
  return it->second;
}

int64_t make_atom(Kind kind, const std::string& name, int64_t a, int64_t b) {
  Table& t = table();
  size_t index = t.atoms.size();
  if (kind != Kind::symbol) {
    for (size_t i = 0; i < t.atoms.size(); i++)
      if (t.atoms[i].kind == kind && t.atoms[i].a == a && t.atoms[i].b == b) index = i;
  }
  if (index == t.atoms.size()) t.atoms.push_back({kind, name, a, b});
  return number_of(Sum{{Product{static_cast<int64_t>(index)}, 1}});
}

[[noreturn]] void refuse_divisor(int64_t b) {
  pg::fail_argument(pg::format("a size cannot be divided by %lld", static_cast<long long>(b)));
}

// a / b without what all terms of a share with b, where b is one product: 6*batch*n // (4*n) is (3*batch) // 2.
void cancel(Sum& a, Sum& b) {
  if (b.size() != 1 || b.begin()->second <= 0) return;
  Product divisor = b.begin()->first;
  int64_t by = b.begin()->second;
  for (const auto& [product, factor] : a) {
    if (!std::includes(product.begin(), product.end(), divisor.begin(), divisor.end())) divisor.clear();
    by = std::gcd(by, factor);
  }
  auto without = [&](const Sum& sum) {
    Sum rest;
    for (const auto& [product, factor] : sum) {
      Product left;
      std::set_difference(product.begin(), product.end(), divisor.begin(), divisor.end(), std::back_inserter(left));
      rest[left] = factor / by;
    }
    return rest;
  };
  a = without(a);
  b = without(b);
}

// Sizes before numbers.
std::pair<std::string, std::string> ordered_texts(int64_t a, int64_t b) {
  std::pair texts{dim_text(a), dim_text(b)};
  const bool both = PG_DIM_IS_SYMBOLIC(a) && PG_DIM_IS_SYMBOLIC(b);
  if (both ? texts.second < texts.first : PG_DIM_IS_SYMBOLIC(b)) std::swap(texts.first, texts.second);
  return texts;
}

// max(-batch, -2) is said as what it is: -min(batch, 2).
std::string smallest_text(const Atom& atom) {
  if (atom.kind != Kind::maximum) return "";
  const auto [a, b] = ordered_texts(dim_mul(atom.a, -1), dim_mul(atom.b, -1));
  return a[0] == '-' || b[0] == '-' ? "" : "min(" + a + ", " + b + ")";
}

// Texts are ordered by what they say: numbers of symbols are used again, and tell nothing of who came first.
std::string atom_text(const Atom& atom, bool& negative) {
  if (atom.kind == Kind::symbol) return atom.name;
  if (atom.kind == Kind::quotient) return "(" + dim_text(atom.a) + ")//(" + dim_text(atom.b) + ")";
  if (const std::string smallest = smallest_text(atom); !smallest.empty()) {
    negative = !negative;
    return smallest;
  }
  const auto [first, second] = ordered_texts(atom.a, atom.b);
  return "max(" + first + ", " + second + ")";
}

std::string product_text(const Product& product, int64_t factor) {
  std::vector<std::string> texts;
  bool negative = false;
  for (int64_t atom : product) texts.push_back(atom_text(Atom(table().atoms[static_cast<size_t>(atom)]), negative));
  std::sort(texts.begin(), texts.end());
  if (negative) factor = -factor;
  std::string text = factor == 1 && !product.empty() ? "" : std::to_string(factor);
  for (const std::string& part : texts) text += text.empty() ? part : "*" + part;
  return text;
}

int64_t symbol_number(int64_t atom) { return number_of(Sum{{Product{atom}, 1}}); }

std::optional<int64_t> atom_value(int64_t index, const Bindings& bindings) {
  const Atom a = table().atoms[static_cast<size_t>(index)];
  if (a.kind == Kind::symbol) {
    auto it = bindings.find(symbol_number(index));
    return it == bindings.end() ? std::nullopt : std::optional(it->second);
  }
  std::optional<int64_t> x = dim_known(a.a, bindings), y = dim_known(a.b, bindings);
  if (!x || !y) return std::nullopt;
  return a.kind == Kind::quotient ? dim_div(*x, *y) : std::max(*x, *y);
}

std::optional<int64_t> product_value(const Product& product, const Bindings& bindings) {
  int64_t value = 1;
  for (int64_t index : product) {
    std::optional<int64_t> part = atom_value(index, bindings);
    if (!part) return std::nullopt;
    value = checked_mul(value, *part);
  }
  return value;
}

// The first symbol in a dimension that has no size.
std::string unknown_name(int64_t dimension, const Bindings& bindings) {
  std::lock_guard lock(table().mutex);
  for (auto& [product, factor] : sum_of(dimension))
    for (int64_t index : product) {
      if (atom_value(index, bindings)) continue;
      const Atom a = table().atoms[static_cast<size_t>(index)];
      if (a.kind == Kind::symbol) return a.name;
      return unknown_name(dim_known(a.a, bindings) ? a.b : a.a, bindings);
    }
  return dim_text(dimension);
}

}  // namespace

int64_t make_symbol(const std::string& name) {
  std::lock_guard lock(table().mutex);
  Table::Name& known = table().names[name];
  if (known.free.empty()) {
    if (known.free.capacity() <= known.made) known.free.reserve(2 * known.made + 1);  // giving back asks for no memory
    known.made++;
    return make_atom(Kind::symbol, name, 0, 0);
  }
  const int64_t symbol = known.free.back();
  known.free.pop_back();
  return symbol;
}

void release_symbol(int64_t symbol) noexcept {
  std::lock_guard lock(table().mutex);
  const Sum& sum = table().sums[static_cast<size_t>(PG_DIM_SYMBOLIC - 1 - symbol)];
  const Atom& atom = table().atoms[static_cast<size_t>(sum.begin()->first[0])];
  table().names.find(atom.name)->second.free.push_back(symbol);
}

int64_t dim_add(int64_t a, int64_t b) {
  if (!PG_DIM_IS_SYMBOLIC(a) && !PG_DIM_IS_SYMBOLIC(b)) return checked_add(a, b);
  std::lock_guard lock(table().mutex);
  Sum sum = sum_of(a);
  for (auto& [product, factor] : sum_of(b)) sum[product] = checked_add(sum[product], factor);
  return number_of(std::move(sum));
}

int64_t dim_mul(int64_t a, int64_t b) {
  if (!PG_DIM_IS_SYMBOLIC(a) && !PG_DIM_IS_SYMBOLIC(b)) return checked_mul(a, b);
  std::lock_guard lock(table().mutex);
  Sum sum;
  for (auto& [p, f] : sum_of(a)) {
    for (auto& [q, g] : sum_of(b)) {
      Product product = p;
      product.insert(product.end(), q.begin(), q.end());
      std::sort(product.begin(), product.end());
      sum[product] = checked_add(sum[product], checked_mul(f, g));
    }
  }
  return number_of(std::move(sum));
}

int64_t dim_div(int64_t a, int64_t b) {
  if (!PG_DIM_IS_SYMBOLIC(a) && !PG_DIM_IS_SYMBOLIC(b)) {
    if (b <= 0) refuse_divisor(b);
    return a >= 0 ? a / b : -((-a + b - 1) / b);
  }
  if (!PG_DIM_IS_SYMBOLIC(b) && b <= 0) refuse_divisor(b);
  if (b == 1) return a;
  if (a == b) return 1;
  std::lock_guard lock(table().mutex);
  Sum dividend = sum_of(a), divisor = sum_of(b);
  cancel(dividend, divisor);
  a = number_of(std::move(dividend));
  b = number_of(std::move(divisor));
  return b == 1 ? a : make_atom(Kind::quotient, "", a, b);
}

int64_t dim_max(int64_t a, int64_t b) {
  if (!PG_DIM_IS_SYMBOLIC(a) && !PG_DIM_IS_SYMBOLIC(b)) return std::max(a, b);
  if (a == b) return a;
  std::lock_guard lock(table().mutex);
  return make_atom(Kind::maximum, "", std::min(a, b), std::max(a, b));
}

bool dim_equal(int64_t a, int64_t b) {
  if (a == b) return true;
  if (!PG_DIM_IS_SYMBOLIC(a) && !PG_DIM_IS_SYMBOLIC(b)) return false;
  return PG_DIM_IS_SYMBOLIC(dim_add(a, dim_mul(b, -1)));  // a constant difference that is not 0 refutes it
}

std::optional<int64_t> dim_known(int64_t dimension, const Bindings& bindings) {
  if (!PG_DIM_IS_SYMBOLIC(dimension)) return dimension;
  std::lock_guard lock(table().mutex);
  int64_t total = 0;
  for (auto& [product, factor] : sum_of(dimension)) {
    std::optional<int64_t> value = product_value(product, bindings);
    if (!value) return std::nullopt;
    total = checked_add(total, checked_mul(factor, *value));
  }
  return total;
}

int64_t dim_value(int64_t dimension, const Bindings& bindings) {
  if (std::optional<int64_t> value = dim_known(dimension, bindings)) return *value;
  pg::fail(PG_E_FAILED_PRECONDITION, "dimension '" + unknown_name(dimension, bindings) + "' has no size yet");
}

bool dim_solve(int64_t dimension, int64_t value, Bindings& bindings) {
  if (!PG_DIM_IS_SYMBOLIC(dimension)) return false;
  std::lock_guard lock(table().mutex);
  int64_t rest = value, slope = 0, symbol = 0;
  for (auto& [product, factor] : sum_of(dimension)) {
    int64_t known = factor, unknown = 0;
    for (int64_t index : product) {
      if (std::optional<int64_t> part = atom_value(index, bindings)) {
        known = checked_mul(known, *part);
      } else {
        if (unknown != 0 || table().atoms[static_cast<size_t>(index)].kind != Kind::symbol) return false;
        unknown = symbol_number(index);
      }
    }
    if (unknown == 0) {
      rest = checked_add(rest, -known);
    } else {
      if (symbol != 0 && symbol != unknown) return false;
      symbol = unknown;
      slope = checked_add(slope, known);
    }
  }
  if (symbol == 0 || slope == 0 || rest % slope != 0 || rest / slope < 0) return false;
  bindings[symbol] = rest / slope;
  return true;
}

std::string dim_text(int64_t dimension) {
  if (!PG_DIM_IS_SYMBOLIC(dimension)) return std::to_string(dimension);
  std::lock_guard lock(table().mutex);
  struct Term {
    size_t degree;
    std::string text;
    int64_t factor;
    const Product* product;
  };
  const Sum sum = sum_of(dimension);
  std::vector<Term> terms;
  for (const auto& [product, factor] : sum)
    terms.push_back({product.size(), product_text(product, 1), factor, &product});
  std::sort(terms.begin(), terms.end(),
            [](const Term& a, const Term& b) { return a.degree != b.degree ? a.degree > b.degree : a.text < b.text; });
  std::string text;
  for (const Term& each : terms) {
    const std::string term = product_text(*each.product, each.factor);
    text += text.empty() ? term : (term[0] == '-' ? " - " + term.substr(1) : " + " + term);
  }
  return text;
}

std::vector<DimTerm> dim_terms(int64_t dimension) {
  std::lock_guard lock(table().mutex);
  std::vector<DimTerm> terms;
  for (const auto& [product, factor] : sum_of(dimension)) {
    DimTerm term{factor, {}};
    for (int64_t index : product) {
      const Atom atom = table().atoms[static_cast<size_t>(index)];
      const bool symbol = atom.kind == Kind::symbol;
      term.atoms.push_back({atom.kind, symbol ? number_of(Sum{{Product{index}, 1}}) : atom.a, atom.b});
    }
    terms.push_back(std::move(term));
  }
  return terms;
}

std::vector<int64_t> dim_symbols(int64_t dimension) {
  std::vector<int64_t> symbols;
  if (!PG_DIM_IS_SYMBOLIC(dimension)) return symbols;
  for (const DimTerm& term : dim_terms(dimension)) {
    for (const DimAtom& atom : term.atoms) {
      if (atom.kind == DimAtom::symbol) symbols.push_back(atom.a);
      if (atom.kind == DimAtom::symbol) continue;
      for (int64_t part : {atom.a, atom.b})
        for (int64_t symbol : dim_symbols(part)) symbols.push_back(symbol);
    }
  }
  return symbols;
}

bool is_dim(int64_t dimension) {
  std::lock_guard lock(table().mutex);
  return !PG_DIM_IS_SYMBOLIC(dimension) || static_cast<size_t>(PG_DIM_SYMBOLIC - 1 - dimension) < table().sums.size();
}

}  // namespace perigee
