// SPDX-License-Identifier: Apache-2.0
// Numbers of tables in text, and rows whose fields may stand in quotes (RFC 4180).
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

namespace formats {

// Without blanks, quotes and a plus.
inline std::string_view trimmed(std::string_view text) {
  auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
  if (text.size() >= 2 && text.front() == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

// Of a number that no double holds: whether it is too small for one, by the decimal place of its first digit but 0.
inline bool is_tiny(std::string_view text) {
  const size_t end = std::min(text.find_first_of("eE"), text.size());
  std::string_view digits = text.substr(0, end), power = text.substr(std::min(end + 1, text.size()));
  if (!digits.empty() && digits[0] == '-') digits.remove_prefix(1);
  if (!power.empty() && power[0] == '+') power.remove_prefix(1);
  const auto point = static_cast<int64_t>(std::min(digits.find('.'), digits.size()));
  const auto first = static_cast<int64_t>(std::min(digits.find_first_of("123456789"), digits.size()));
  int32_t exponent = 0;
  if (std::from_chars(power.data(), power.data() + power.size(), exponent).ec == std::errc::result_out_of_range)
    return power[0] == '-';
  return point - first + exponent < 0;
}

// False: not a number of this type. Too small for the type is 0, too large is no number. No locale has a say in it.
template <class T>
bool parse_number(std::string_view text, T& value) {
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size()) return false;
  if constexpr (std::is_floating_point_v<T>) {
    if (code == std::errc::result_out_of_range) {
      double wide = 0;
      if (std::from_chars(text.data(), text.data() + text.size(), wide).ec == std::errc()) {
        value = static_cast<T>(wide);
        return std::fabs(wide) < 1;
      }
      value = text[0] == '-' ? -T{0} : T{0};
      return is_tiny(text);
    }
  }
  return code == std::errc();
}

// Where a row of `text` ends, at its "\n"; npos: not inside of it. A field that begins with a quote goes on to the
// quote that closes it, whatever is between. `open`: the text ends in such a field.
inline size_t row_end(std::string_view text, char delimiter, bool& open) {
  open = false;
  const size_t line = text.find('\n');
  if (text.substr(0, line).find('"') == std::string_view::npos) return line;
  const char ends[] = {delimiter, '\n'};
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '"') {
      do {
        at = text.find('"', at + 1);
        open = at == std::string_view::npos;
        if (open) return at;
        at++;
      } while (at < text.size() && text[at] == '"');
    }
    at = text.find_first_of(std::string_view(ends, 2), at);
    if (at == std::string_view::npos || text[at] == '\n') return at;
    at++;
  }
  return std::string_view::npos;
}

struct CsvField {
  std::string_view text;  // between the quotes
  bool doubled = false;   // quotes in it stand twice
};

// The fields of a row, without what ends it. False: there is text behind a closing quote, of the last of them.
inline bool split_row(std::string_view row, char delimiter, std::vector<CsvField>& fields) {
  fields.clear();
  for (size_t at = 0;;) {
    CsvField field;
    size_t end = 0;
    if (at < row.size() && row[at] == '"') {
      size_t close = row.find('"', at + 1);
      while (close != std::string_view::npos && close + 1 < row.size() && row[close + 1] == '"') {
        field.doubled = true;
        close = row.find('"', close + 2);
      }
      close = std::min(close, row.size());
      field.text = row.substr(at + 1, close - at - 1);
      end = std::min(close + 1, row.size());
    } else {
      end = std::min(row.find(delimiter, at), row.size());
      field.text = row.substr(at, end - at);
    }
    fields.push_back(field);
    if (end == row.size()) return true;
    if (row[end] != delimiter) return false;
    at = end + 1;
  }
}

}  // namespace formats
