// SPDX-License-Identifier: Apache-2.0
// perigee/kernels/reference/scatter.hpp: reading at several index tensors, and writing by index. Every index is checked
// before anything is written.
#pragma once

#include <limits>

#include "perigee/kernels/reference/index.hpp"

namespace pg::reference {

// What several shapes broadcast to.
inline Dims common_shape(const std::vector<Operand>& list) {
  Dims shape;
  for (const Operand& x : list) {
    if (x.shape.size() > shape.size()) shape.insert(shape.begin(), x.shape.size() - shape.size(), 1);
    size_t lead = shape.size() - x.shape.size();
    for (size_t i = 0; i < x.shape.size(); i++)
      if (x.shape[i] != 1) shape[lead + i] = x.shape[i];
  }
  return shape;
}

// Flat positions in a row-major tensor of `shape`, in the order of x[..., indices, ...]: before, indices, behind.
inline std::vector<int64_t> index_positions(const Dims& shape, const std::vector<Operand>& indices, int64_t axis,
                                            const Dims& shown, const char* op) {
  Dims common = common_shape(indices), stride = dense(shape);
  std::vector<int64_t> places(static_cast<size_t>(product(common)), 0), out;
  for (size_t k = 0; k < indices.size(); k++) {
    auto along = static_cast<uint32_t>(axis) + static_cast<uint32_t>(k);
    read_index(indices[k], shape[along], op, index_name(op, along, k < shown.size() ? shown[k] : 0));
    auto numbers = read<int64_t>(broadcast(indices[k], common));
    for (size_t i = 0; i < places.size(); i++) places[i] += numbers[i] * stride[axis + k];
  }
  size_t behind = static_cast<size_t>(axis) + indices.size();
  int64_t before = product(Dims(shape.begin(), shape.begin() + axis));
  int64_t inner = product(Dims(shape.begin() + static_cast<int64_t>(behind), shape.end()));
  int64_t block = inner * product(Dims(shape.begin() + axis, shape.begin() + static_cast<int64_t>(behind)));
  for (int64_t b = 0; b < before; b++)
    for (int64_t place : places)
      for (int64_t i = 0; i < inner; i++) out.push_back(b * block + place + i);
  return out;
}

inline void index(const Operand& x, const std::vector<Operand>& indices, int64_t axis, const Dims& shown,
                  const Operand& y) {
  auto places = index_positions(x.shape, indices, axis, shown, "index");
  with_compute(x.dtype, [&](auto tag) {
    auto in = read<decltype(tag)>(x);
    std::vector<decltype(tag)> out;
    for (int64_t at : places) out.push_back(in[static_cast<size_t>(at)]);
    write(y, out);
  });
}

inline void index_put(const Operand& x, const std::vector<Operand>& indices, const Operand& values, int64_t axis,
                      const Dims& shown, bool accumulate, const Operand& y) {
  auto places = index_positions(x.shape, indices, axis, shown, "index_put");
  Dims shape(x.shape.begin(), x.shape.begin() + axis), common = common_shape(indices);
  shape.insert(shape.end(), common.begin(), common.end());
  shape.insert(shape.end(), x.shape.begin() + axis + static_cast<int64_t>(indices.size()), x.shape.end());
  with_compute(x.dtype, [&](auto tag) {
    using W = decltype(tag);
    auto out = read<W>(x);
    auto from = read<W>(broadcast(values, shape));
    for (size_t i = 0; i < places.size(); i++) {
      W& to = out[static_cast<size_t>(places[i])];
      to = accumulate ? wrapping_add(to, from[i]) : from[i];
    }
    write(y, out);
  });
}

inline void index_grad(const Operand& dy, const std::vector<Operand>& indices, int64_t axis, const Dims& shown,
                       const Operand& dx) {
  auto places = index_positions(dx.shape, indices, axis, shown, "index_grad");
  with_compute(dx.dtype, [&](auto tag) {
    using W = decltype(tag);
    auto flow = read<W>(dy);
    std::vector<Sum<W>> out(static_cast<size_t>(dx.count()), 0);
    for (size_t i = 0; i < places.size(); i++) {
      auto& to = out[static_cast<size_t>(places[i])];
      to = wrapping_add<Sum<W>>(to, flow[i]);
    }
    write(dx, out);
  });
}

// scatter ("write"), scatter_add ("sum"), scatter_reduce.
inline void scatter(const Operand& x, const Operand& index, const Operand& src, int64_t axis, const std::string& how,
                    bool include_self, const Operand& y, const char* op) {
  std::vector<int64_t> targets;
  each_gathered(x.shape, index, axis, op, [&](int64_t, int64_t at) { targets.push_back(at); });
  with_compute(x.dtype, [&](auto tag) {
    using W = decltype(tag);
    auto first = read<W>(x);
    auto from = read<W>(src);
    std::vector<Sum<W>> out(first.begin(), first.end());
    std::vector<int64_t> count(out.size(), 1);
    if (!include_self)
      for (int64_t at : targets) count[static_cast<size_t>(at)] = 0;
    for (size_t i = 0; i < targets.size(); i++) {
      auto& to = out[static_cast<size_t>(targets[i])];
      auto v = static_cast<Sum<W>>(from[i]);
      bool begins = count[static_cast<size_t>(targets[i])]++ == 0;
      if (how == "write" || begins)
        to = v;
      else if (how == "prod")
        to = wrapping_multiply(to, v);
      else if (how == "amax")
        to = v > to || v != v ? v : to;
      else if (how == "amin")
        to = v < to || v != v ? v : to;
      else
        to = wrapping_add(to, v);
    }
    if (how == "mean") {
      for (size_t i = 0; i < out.size(); i++) {
        Sum<W> n = static_cast<Sum<W>>(count[i]), s = out[i];
        if constexpr (is_float<W>)
          out[i] = s / n;
        else
          out[i] = count[i] == 0 ? s : s / n - (s % n < 0 ? 1 : 0);
      }
    }
    write(y, out);
  });
}

}  // namespace pg::reference
