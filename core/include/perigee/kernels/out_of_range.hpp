// SPDX-License-Identifier: Apache-2.0
// perigee/kernels/out_of_range.hpp: what kernels say of contents that they cannot take, in the same words on every
// device. Positions and axes count from 1, as in Lua; contents from 0.
//   if (index < 0 || index >= size)
//     pg::fail_argument("gather: " + pg::out_of_range({"index", 2}, index, pg::place_text(shape, rank, at), size));
//   gather: index 12 at position [4] is out of range for axis 2; expected 0 to 9
#pragma once

#include <string>
#include <string_view>

#include "perigee/plugin.hpp"

namespace pg {

// "[4, 1]": where element `at` of the row-major order of `shape` stands.
inline std::string place_text(const int64_t* shape, uint32_t rank, int64_t at) {
  std::string text = "]";
  for (uint32_t i = rank; i-- > 0;) {
    int64_t size = shape[i] > 0 ? shape[i] : 1;
    text = std::to_string(at % size + 1) + (text == "]" ? "" : ", ") + text;
    at /= size;
  }
  return "[" + text;
}

// What messages call an index, and the axis that they say it is for (from 1; 0 names none).
struct IndexName {
  const char* what;
  int64_t axis;
};
// `axis` counts from 0; `shown` is what a front end calls it where that differs. Embeddings have one axis to index.
inline IndexName index_name(std::string_view op, int64_t axis, int64_t shown = 0) {
  if (op == "embedding" || op == "embedding_grad") return {"token", 0};
  return {"index", shown > 0 ? shown : axis + 1};
}

// `size` is how much there is to index.
inline std::string out_of_range(IndexName name, int64_t value, const std::string& place, int64_t size) {
  std::string of = name.axis > 0 ? " for axis " + std::to_string(name.axis) : std::string();
  std::string want = size > 0 ? "expected 0 to " + std::to_string(size - 1) : std::string("it is empty");
  return format("%s %lld at position %s is out of range%s; %s", name.what, static_cast<long long>(value), place.c_str(),
                of.c_str(), want.c_str());
}

inline std::string out_of_plane(int64_t index, int64_t size) {
  return format("index %lld is out of range for a plane of %lld elements", static_cast<long long>(index),
                static_cast<long long>(size));
}

inline std::string no_probability(double p, const std::string& place) {
  return format("p is %g at position %s; expected 0 to 1", p, place.c_str());
}

inline std::string no_variance(double var, const std::string& place) {
  return format("var is %g at position %s; expected 0 or more", var, place.c_str());
}

}  // namespace pg
