// SPDX-License-Identifier: Apache-2.0
#include "graph/expression.hpp"

#include <charconv>

namespace perigee {
namespace {

constexpr size_t kLongestExpression = 1 << 14;
constexpr int kDeepestExpression = 64;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string atom_text(const DimAtom& atom, const SymbolNames& names, int depth);

std::string sum_text(int64_t dimension, const SymbolNames& names, int depth) {
  if (depth > kDeepestExpression) pg::fail_support("a size whose expression is nested more than 64 deep");
  if (!PG_DIM_IS_SYMBOLIC(dimension)) return std::to_string(dimension);
  std::string text;
  for (const DimTerm& term : dim_terms(dimension)) {
    const bool negative = term.factor < 0;
    if (!text.empty()) text += negative ? " - " : " + ";
    if (text.empty() && negative) text = "-";
    const std::string factor = std::to_string(term.factor).substr(negative ? 1 : 0);
    bool first = factor == "1" && !term.atoms.empty();
    if (!first) text += factor;
    for (const DimAtom& atom : term.atoms) {
      if (!std::exchange(first, false)) text += "*";
      text += atom_text(atom, names, depth + 1);
    }
  }
  return text;
}

std::string atom_text(const DimAtom& atom, const SymbolNames& names, int depth) {
  if (atom.kind == DimAtom::symbol) {
    const std::string* word = names.find(atom.a);
    if (word == nullptr) pg::fail(PG_E_FAILED_PRECONDITION, "'" + dim_text(atom.a) + "' is a size of another graph");
    return *word;
  }
  const std::string a = sum_text(atom.a, names, depth), b = sum_text(atom.b, names, depth);
  return atom.kind == DimAtom::quotient ? "(" + a + ")//(" + b + ")" : "max(" + a + ", " + b + ")";
}

// sum: ["-"] term {("+" | "-") term}; term: factor {"*" factor};
// factor: number | word | "max(" sum ", " sum ")" | "(" sum ")//(" sum ")".
class ExpressionReader {
 public:
  ExpressionReader(const std::string& text, const SymbolNames& names) : text_(text), names_(names) {}

  int64_t all() {
    if (text_.size() > kLongestExpression) fail("is longer than 16384 bytes");
    const int64_t value = sum(0);
    if (at_ != text_.size()) fail(pg::format("has something behind its end, at byte %zu", at_ + 1));
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    pg::fail(PG_E_DATA_LOSS, "the size '" + text_.substr(0, 60) + "' " + what);
  }
  bool take(const char* word) {
    const size_t length = std::char_traits<char>::length(word);
    if (text_.compare(at_, length, word) != 0) return false;
    at_ += length;
    return true;
  }
  void expect(const char* word) {
    if (!take(word)) fail(pg::format("lacks '%s' at byte %zu", word, at_ + 1));
  }

  int64_t sum(int depth) {
    if (depth > kDeepestExpression) fail("is nested more than 64 deep");
    int64_t total = term(depth, take("-"));
    while (true) {
      const bool plus = take(" + ");
      if (!plus && !take(" - ")) return total;
      total = dim_add(total, term(depth, !plus));
    }
  }

  int64_t term(int depth, bool negative) {
    int64_t product = factor(depth);
    while (take("*")) product = dim_mul(product, factor(depth));
    return negative ? dim_mul(product, -1) : product;
  }

  // A number, or one that products of such do not make longer: a sum may stand in max and // alone.
  int64_t factor(int depth) {
    const size_t start = at_;
    const int64_t value = at_ < text_.size() && is_digit(text_[at_]) ? number() : expression(depth);
    const auto terms = dim_terms(value);
    if (PG_DIM_IS_SYMBOLIC(value) && (terms.size() != 1 || terms[0].factor != 1 || terms[0].atoms.size() != 1))
      fail(pg::format("can be written more simply at byte %zu", start + 1));
    return value;
  }

  int64_t expression(int depth) {
    if (take("max(")) {
      const int64_t a = sum(depth + 1);
      expect(", ");
      const int64_t b = sum(depth + 1);
      expect(")");
      return dim_max(a, b);
    }
    if (take("(")) {
      const int64_t a = sum(depth + 1);
      expect(")//(");
      const int64_t b = sum(depth + 1);
      expect(")");
      return dim_div(a, b);
    }
    return symbol();
  }

  int64_t number() {
    int64_t value = 0;
    const char* begin = text_.data() + at_;
    auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc() || value >= -PG_DIM_SYMBOLIC) fail("has a number that is too large");
    at_ += static_cast<size_t>(end - begin);
    return value;
  }

  int64_t symbol() {
    const size_t start = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || (at_ > start && is_digit(text_[at_])))) at_++;
    if (at_ == start) fail(pg::format("lacks a number or a symbol at byte %zu", start + 1));
    const std::string word = text_.substr(start, at_ - start);
    const int64_t* known = names_.find(word);
    if (known == nullptr) fail("names '" + word + "', which is no symbol that is known there");
    return *known;
  }

  const std::string& text_;
  const SymbolNames& names_;
  size_t at_ = 0;
};

}  // namespace

bool is_word(const std::string& text) {
  if (text.empty() || is_digit(text[0]) || text == "max") return false;
  for (char c : text)
    if (!is_letter(c) && !is_digit(c)) return false;
  return true;
}

const std::string& SymbolNames::add(int64_t symbol, const std::string& name) {
  auto known = words_.find(symbol);
  if (known != words_.end()) return known->second;
  std::string base;
  for (char c : name) base += is_letter(c) || is_digit(c) ? c : '_';
  if (!is_word(base)) base = "s" + base;
  std::string word = base;
  for (int i = 1; symbols_.count(word); i++) word = base + "_" + std::to_string(i);
  symbols_[word] = symbol;
  return words_[symbol] = word;
}

void SymbolNames::bind(const std::string& word, int64_t symbol) {
  if (!symbols_.try_emplace(word, symbol).second) pg::fail(PG_E_DATA_LOSS, "two symbols are called '" + word + "'");
  if (!words_.try_emplace(symbol, word).second)
    pg::fail(PG_E_DATA_LOSS, "'" + word + "' and '" + words_[symbol] + "' are one symbol");
}

const int64_t* SymbolNames::find(const std::string& word) const {
  auto it = symbols_.find(word);
  return it == symbols_.end() ? nullptr : &it->second;
}

const std::string* SymbolNames::find(int64_t symbol) const {
  auto it = words_.find(symbol);
  return it == words_.end() ? nullptr : &it->second;
}

std::string write_dim(int64_t dimension, const SymbolNames& names) {
  std::string text = sum_text(dimension, names, 0);
  if (text.size() > kLongestExpression) pg::fail_support("a size whose expression is longer than 16384 bytes");
  return text;
}

int64_t read_dim(const std::string& text, const SymbolNames& names) {
  try {
    return ExpressionReader(text, names).all();
  } catch (const pg::Error& e) {
    if (e.code != PG_E_INVALID_ARGUMENT) throw;
    pg::fail(PG_E_DATA_LOSS, "the size '" + text.substr(0, 60) + "': " + e.what());
  }
}

}  // namespace perigee
