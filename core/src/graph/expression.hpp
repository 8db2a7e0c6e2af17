// SPDX-License-Identifier: Apache-2.0
// Symbolic dimensions as text that another process reads: "2*batch + 1", "max(n, 3)", "(n)//(2)".
#pragma once

#include <map>
#include <string>

#include "tensor/dims.hpp"

namespace perigee {

// Symbols and what they are called in the text: words of letters, digits and _, each another.
class SymbolNames {
 public:
  // A word for the symbol, like the name where that can be. One that has a word keeps it.
  const std::string& add(int64_t symbol, const std::string& name);
  void bind(const std::string& word, int64_t symbol);  // throws where the word or the symbol has another
  const int64_t* find(const std::string& word) const;  // NULL: none
  const std::string* find(int64_t symbol) const;
  size_t size() const { return symbols_.size(); }

 private:
  std::map<std::string, int64_t> symbols_;
  std::map<int64_t, std::string> words_;
};

bool is_word(const std::string& text);

// Throws PG_E_FAILED_PRECONDITION where a symbol has no word, PG_E_NOT_SUPPORTED for what would not be read again.
std::string write_dim(int64_t dimension, const SymbolNames& names);
// Throws PG_E_DATA_LOSS for what is no expression of the words.
int64_t read_dim(const std::string& text, const SymbolNames& names);

}  // namespace perigee
