// SPDX-License-Identifier: Apache-2.0
// Planes resampled across their rows, along them, or both in one pass. Where rows become more, each of the source is
// made longer or shorter once and kept, in float, as long as results are made of it; where they become fewer, rows are
// put together first. Rows are dealt out by the shapes alone, and each element is made by one thread.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>

#include "kernels/resample_axis.hpp"
#include "storage.hpp"

namespace pg::cpu {

struct PlanePass {
  const ResampledRow *rows = nullptr, *columns = nullptr;  // across the rows, along them; NULL: they stay as they are
  int64_t planes, in_rows, in_columns;                     // of the source, which is row-major
  int64_t y_plane, y_row;                                  // how far planes, and rows, of the result lie apart
};

template <class T>
class PlaneResampler {
 public:
  explicit PlaneResampler(const PlanePass& pass)
      : p_(pass),
        out_rows_(pass.rows != nullptr ? pass.rows->count() : pass.in_rows),
        out_columns_(pass.columns != nullptr ? pass.columns->count() : pass.in_columns) {
    if (p_.rows == nullptr || p_.columns == nullptr) return;
    keeps_ = out_rows_ >= p_.in_rows && p_.rows->reach() > 0 && p_.rows->reach() <= kTogether;
  }

  void run(const T* x, T* y) const {
    const int64_t most = std::max<int64_t>({1, out_columns_, p_.in_columns});
    const int64_t band = std::clamp<int64_t>(65536 / most, 1, out_rows_), bands = (out_rows_ + band - 1) / band;
    const int64_t grain = std::max<int64_t>(1, 16384 / (band * most));
    parallel_for(p_.planes * bands, grain, [=, this](int64_t begin, int64_t end) {
      Room room(room_size());
      for (int64_t i = begin; i < end; i++) {
        const int64_t plane = i / bands, first = i % bands * band, last = std::min(out_rows_, first + band);
        const T* from = x + plane * p_.in_rows * p_.in_columns;
        T* to = y + plane * p_.y_plane;
        if (keeps_) {
          run_kept(from, to, first, last, room.data());
        } else {
          for (int64_t row = first; row < last; row++) run_row(from, to + row * p_.y_row, row, room.data());
        }
      }
    });
  }

 private:
  using A = Accumulator<T>;
  static constexpr bool kDirect = std::is_same_v<T, A>;
  static constexpr int64_t kTogether = 8, kPiece = 4096;  // rows put together at a time; columns, where they stay

  // Memory of a thread: small amounts of it on the stack.
  class Room {
   public:
    explicit Room(int64_t count) : large_(count > kSmall ? new A[static_cast<size_t>(count)] : nullptr) {}
    A* data() { return large_ ? large_.get() : small_; }

   private:
    static constexpr int64_t kSmall = 2048;
    A small_[kSmall];
    std::unique_ptr<A[]> large_;
  };
  int64_t room_size() const {
    const int64_t rows = p_.rows != nullptr ? kTogether : 0;
    if (p_.columns == nullptr) return kDirect ? 0 : (1 + rows) * std::min(kPiece, p_.in_columns);
    if (keeps_) return p_.rows->reach() * out_columns_ + (kDirect ? 0 : p_.in_columns + out_columns_);
    return p_.in_columns + (kDirect ? 0 : out_columns_ + rows * p_.in_columns);
  }

  static constexpr ::cpu::Storage kStorage = std::is_same_v<T, double>     ? ::cpu::sF64
                                             : std::is_same_v<T, float>    ? ::cpu::sF32
                                             : std::is_same_v<T, BFloat16> ? ::cpu::sBF16
                                                                           : ::cpu::sF16;
  // n elements in the type of the sums: where they lie, or converted into `buffer`.
  static const A* widened(const T* x, int64_t n, A* buffer) {
    if constexpr (kDirect) {
      return x;
    } else {
      ::cpu::convert(kStorage, ::cpu::sF32, x, buffer, n);
      return buffer;
    }
  }
  // Where n results go: their place, or `buffer`, from which `narrow` takes them there.
  static A* place_of(T* y, A* buffer) {
    if constexpr (kDirect) {
      return y;
    } else {
      return buffer;
    }
  }
  static void narrow(const A* buffer, T* y, int64_t n) {
    if constexpr (!kDirect) ::cpu::convert(::cpu::sF32, kStorage, buffer, y, n);
  }

  static void combine(const A* const* rows, const A* weight, int64_t count, A* y, int64_t n) {
    if (count == 1 && weight[0] == 1) {
      std::memcpy(y, rows[0], static_cast<size_t>(n) * sizeof(A));
    } else {
      ::cpu::simd->combine_rows[std::is_same_v<A, double> ? 1 : 0](reinterpret_cast<const void* const*>(rows), weight,
                                                                   count, y, n);
    }
  }

  // Rows [first, last) of the result, of rows of the source that are resampled once.
  void run_kept(const T* x, T* y, int64_t first, int64_t last, A* room) const {
    const ResampledRow& rows = *p_.rows;
    const int64_t reach = rows.reach(), n = out_columns_;
    A *kept = room, *source = kept + reach * n, *result = source + (kDirect ? 0 : p_.in_columns);
    int64_t next = 0;  // the first row of the source that has not been looked at
    for (int64_t o = first; o < last; o++) {
      const int64_t begin = rows.begin(o), count = rows.end(o) - begin;
      const int64_t* index = rows.index() + begin;
      A* to = place_of(y + o * p_.y_row, result);
      if (count == 0) {
        std::fill_n(to, n, A{});
      } else {
        for (next = std::max(next, index[0]); next <= index[count - 1]; next++)
          p_.columns->run(widened(x + next * p_.in_columns, p_.in_columns, source), kept + next % reach * n);
        const A* from[kTogether];
        for (int64_t k = 0; k < count; k++) from[k] = kept + index[k] % reach * n;
        combine(from, rows.weight<A>() + begin, count, to, n);
      }
      narrow(to, y + o * p_.y_row, n);
    }
  }

  void run_row(const T* x, T* y, int64_t row, A* room) const {
    const int64_t n = p_.in_columns;
    if (p_.columns == nullptr) {
      for (int64_t i = 0; i < n; i += kPiece) {
        const int64_t piece = std::min(kPiece, n - i);
        A* to = place_of(y + i, room);
        const A* from = put_together(x + i, row, piece, to, room + piece);
        if (from != to) std::memcpy(to, from, static_cast<size_t>(piece) * sizeof(A));
        narrow(to, y + i, piece);
      }
      return;
    }
    A *result = room, *sum = result + (kDirect ? 0 : out_columns_);
    A* to = place_of(y, result);
    const A* from = p_.rows == nullptr ? widened(x + row * n, n, sum) : put_together(x, row, n, sum, sum + n);
    p_.columns->run(from, to);
    narrow(to, y, out_columns_);
  }

  // n columns of a row of the result, in `sum` or where they lie in the source.
  const A* put_together(const T* x, int64_t row, int64_t n, A* sum, A* room) const {
    const ResampledRow& rows = *p_.rows;
    const int64_t begin = rows.begin(row), end = rows.end(row);
    const A* weight = rows.weight<A>();
    if (begin == end) {
      std::fill_n(sum, n, A{});
      return sum;
    }
    if (end - begin == 1 && weight[begin] == 1) return widened(x + rows.index()[begin] * p_.in_columns, n, room);
    const A* from[kTogether + 1] = {sum};
    A weights[kTogether + 1] = {1};
    for (int64_t k = begin; k < end; k += kTogether) {
      const int64_t count = std::min(kTogether, end - k);
      for (int64_t i = 0; i < count; i++) {
        from[i + 1] = widened(x + rows.index()[k + i] * p_.in_columns, n, room + i * n);
        weights[i + 1] = weight[k + i];
      }
      const int64_t skip = k == begin ? 1 : 0;
      combine(from + skip, weights + skip, count + 1 - skip, sum, n);
    }
    return sum;
  }

  PlanePass p_;
  int64_t out_rows_, out_columns_;
  bool keeps_ = false;  // resampled rows of the source
};

}  // namespace pg::cpu
