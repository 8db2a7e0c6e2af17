// SPDX-License-Identifier: Apache-2.0
// max_pool1d, 2d, 3d and adaptive_max_pool1d, 2d, 3d (x) -> y, indices (row-major within the plane);
// max_poolNd_grad(dy, indices, x) -> dx, where of x only the shape counts; max_poolNd_gather(x, indices). Padding is
// minus infinity, NaN wins, the first of equals is taken. Indices that nobody reads are not written.
#include <atomic>

#include "kernels/max_pool_lanes.hpp"
#include "kernels/max_pool_last.hpp"
#include "storage.hpp"

namespace pg::cpu {
namespace {

using namespace max_pool;

class MaxPool final : public Kernel {
 public:
  static void supports(const KernelCall& call) {
    uint32_t dtype = dtype_of(call.in(0));
    with_number(dtype, [](auto) {});
    bool dense = is_dense(call.out(0)) && (!call.has_output(1) || is_dense(call.out(1)));
    if (!dense) fail_support("the results must be dense");
    read_max_pool(call);
  }
  MaxPool(const KernelCall& call, Plan& plan)
      : dtype_(dtype_of(call.in(0))),
        x_(call.in(0)),
        p_(read_max_pool(call)),
        adaptive_(is_adaptive(call)),
        places_(p_, [this](int axis, int64_t o) { return places(axis, o); }) {
    if (p_.planes * p_.out_count() == 0) return;
    auto whole = [&](int axis, int64_t taps) {
      return p_.kernel[axis] == taps && p_.dilation[axis] == 1 && p_.padding[axis] == 0;
    };
    bool short_windows = !adaptive_ && !places_.is_long();
    halves_ = short_windows && p_.in[0] == 1 && whole(0, 1) && whole(1, 2) && whole(2, 2);
    bool lanes = (dtype_ == PG_F32 || is_low()) && short_windows && p_.in[0] == 1 && p_.stride[2] <= 2 &&
                 p_.in_count() < INT32_MAX;
    while (lanes && inner_ < p_.out[2] && places_[2][inner_].count < p_.kernel[2]) inner_++;
    inner_end_ = inner_;
    while (lanes && inner_end_ < p_.out[2] && places_[2][inner_end_].count == p_.kernel[2]) inner_end_++;
    indices_ = call.has_output(1);
    pairs_ = dtype_ == PG_BF16 && !indices_ && lanes && whole(2, 2) && p_.stride[2] == 2 && p_.out[2] >= kLanes &&
             inner_ == 0 && inner_end_ == p_.out[2];
    for (const Places& row : places_[1]) pairs_ = pairs_ && row.count > 0;
    const int64_t width = p_.out[2];
    quarters_ = dtype_ == PG_F32 && !indices_ && halves_ && p_.stride[1] == 2 && p_.stride[2] == 2 &&
                p_.in[1] == 2 * p_.out[1] && p_.in[2] == 2 * width && (width == 1 || width == 2 || width == 4);
    Scratch scratch;
    x_.get(nullptr, scratch);
    if (is_low() && !pairs_) {
      slices_ = std::max<int64_t>(1, std::min<int64_t>(4 * thread_count(), p_.planes));
      for (int64_t i = 0; i < 2 * slices_; i++) scratch.take(plane_bytes(i % 2 == 0));
    }
    plan.workspace = scratch.bytes();
  }
  void launch(const pg_launch& launch) override {
    Scratch scratch(host_pointer(launch.workspace));
    if (p_.planes * p_.out_count() == 0) return;
    places_.at_launch(p_, [this](int axis, int64_t o) { return places(axis, o); });
    int64_t* indices = indices_ ? output<int64_t>(launch, 1) : nullptr;
    const void* x = x_.get(input(launch, 0), scratch);
    if (quarters_) return run_quarters(static_cast<const float*>(x), output<float>(launch, 0));
    if (pairs_) return run_pairs(static_cast<const BFloat16*>(x), output<BFloat16>(launch, 0));
    if (is_low()) return run_widened(static_cast<const char*>(x), output<char>(launch, 0), indices, scratch);
    with_number(dtype_, [&](auto type) {
      using T = typename decltype(type)::type;
      constexpr bool kLow = std::is_same_v<T, BFloat16> || std::is_same_v<T, Half>;  // taken above
      if constexpr (!kLow) run(static_cast<const T*>(x), output<T>(launch, 0), indices);
    });
  }

 private:
  Places places(int axis, int64_t o) const { return adaptive_ ? share_of(p_, axis, o) : window_of(p_, axis, o); }

  bool is_low() const { return dtype_ == PG_BF16 || dtype_ == PG_F16; }
  uint64_t plane_bytes(bool in) const {
    return static_cast<uint64_t>(in ? p_.in_count() : p_.out_count()) * sizeof(float);
  }

  // 16-bit floats: a plane at a time becomes float32 and its result is rounded back, which changes nothing.
  void run_widened(const char* x, char* y, int64_t* indices, Scratch& scratch) const {
    const ::cpu::Storage low = ::cpu::storage_of(dtype_);
    const int64_t in = p_.in_count(), out = p_.out_count(), bytes = ::cpu::kStorageBytes[low], slices = slices_;
    std::vector<float*> rooms;
    for (int64_t i = 0; i < 2 * slices; i++)
      rooms.push_back(static_cast<float*>(scratch.take(plane_bytes(i % 2 == 0))));
    vector_for(
        slices, plane_grain(p_.planes / slices * out * 4),
        [&, this ](int64_t begin, int64_t end) __attribute__((always_inline)) {
          for (int64_t slice = begin; slice < end; slice++) {
            float *wide = rooms[static_cast<size_t>(2 * slice)], *best = rooms[static_cast<size_t>(2 * slice + 1)];
            for (int64_t i = p_.planes * slice / slices; i < p_.planes * (slice + 1) / slices; i++) {
              ::cpu::convert(low, ::cpu::sF32, x + i * in * bytes, wide, in);
              run_plane<float>(wide, best, indices == nullptr ? nullptr : indices + i * out, wide + in, best + out);
              ::cpu::convert(::cpu::sF32, low, best, y + i * out * bytes, out);
            }
          }
        });
  }

  // Rows of few windows that use up the planes: one row of windows behind the other.
  void run_quarters(const float* x, float* y) const {
    const int64_t out = p_.out_count();
    with_width([&](auto by) {
      constexpr int64_t kWidth = decltype(by)::value;
      vector_for(
          p_.planes, plane_grain(out), [ =, this ](int64_t begin, int64_t end) __attribute__((always_inline)) {
            const int64_t stop = end * out, whole = begin * out + (stop - begin * out) / kLanes * kLanes;
            for (int64_t o = begin * out; o < whole; o += kLanes) best_of_halves<kWidth>(x + 4 * o, y + o);
            if (whole == stop) return;
            float rest[4 * kLanes] = {}, best[kLanes];
            std::memcpy(rest, x + 4 * whole, static_cast<size_t>(4 * (stop - whole)) * sizeof(float));
            best_of_halves<kWidth>(rest, best);
            std::memcpy(y + whole, best, static_cast<size_t>(stop - whole) * sizeof(float));
          });
    });
  }
  template <class Body>
  void with_width(Body&& body) const {
    switch (p_.out[2]) {
      case 4: return body(std::integral_constant<int64_t, 4>{});
      case 2: return body(std::integral_constant<int64_t, 2>{});
      default: body(std::integral_constant<int64_t, 1>{});
    }
  }

  // The last vector of a row may overlap the one before it.
  void run_pairs(const BFloat16* x, BFloat16* y) const {
    const int64_t in = p_.in_count(), wide = p_.in[2], out = p_.out[2];
    vector_for(
        p_.planes, plane_grain(p_.out_count() * 4),
        [ =, this ](int64_t begin, int64_t end) __attribute__((always_inline)) {
          for (int64_t plane = begin; plane < end; plane++) {
            BFloat16* to = y + plane * p_.out_count();
            for (const Places& row : places_[1]) {
              const BFloat16* first = x + plane * in + row.first * wide;
              for (int64_t next = 0; next < out; next += kLanes) {
                const int64_t o = std::min(next, out - kLanes);
                best_of_pairs(first + 2 * o, row.count, row.step * wide, to + o);
              }
              to += out;
            }
          }
        });
  }

  template <class T>
  void run(const T* x, T* y, int64_t* indices) const {
    int64_t in = p_.in_count(), out = p_.out_count();
    vector_for(
        p_.planes, plane_grain(out * 4), [ =, this ](int64_t begin, int64_t end) __attribute__((always_inline)) {
          for (int64_t plane = begin; plane < end; plane++)
            run_plane(x + plane * in, y + plane * out, indices == nullptr ? nullptr : indices + plane * out,
                      x + p_.planes * in, y + end * out);
        });
  }

  // `x_end`, `y_end`: to where may be read, and written to by who writes all before that.
  template <class T>
  PG_INLINE void run_plane(const T* x, T* y, int64_t* indices, const T* x_end, const T* y_end) const {
    for (const Places& block : places_[0]) {
      for (const Places& row : places_[1]) {
        bool inner_done = false;
        if constexpr (std::is_same_v<T, float>) {
          const bool narrow = is_narrow(x, row, x_end, y, y_end);
          inner_done = row.count > 0 && (indices != nullptr ? run_inner<true>(x, row, y, indices, narrow)
                                                            : run_inner<false>(x, row, y, indices, narrow));
        }
        for (int64_t o = 0; o < p_.out[2]; o++) {
          if (inner_done && o == inner_) o = inner_end_;
          if (o == p_.out[2]) break;
          const Places& column = places_[2][o];
          int64_t index;
          if (halves_ && row.count == 2 && column.count == 2) {
            y[o] = best_of_four(x, row.first * p_.in[2] + column.first, index);
          } else {
            y[o] = best_of(x, block, row, column, index);
          }
          if (indices != nullptr) indices[o] = index;
        }
        y += p_.out[2], indices += indices == nullptr ? 0 : p_.out[2];
      }
    }
  }

  // Whether a row of windows is less than a vector, but one may be read and written: what is too much is of the rows
  // that follow, whose results are written later.
  bool is_narrow(const float* x, const Places& row, const float* x_end, const float* y, const float* y_end) const {
    if (inner_ != 0 || inner_end_ != p_.out[2] || inner_end_ >= kLanes || y_end - y < kLanes) return false;
    const int64_t reach = (kLanes - 1) * p_.stride[2] + (p_.kernel[2] - 1) * p_.dilation[2] + 1;
    return x_end - x >= (row.first + (row.count - 1) * row.step) * p_.in[2] + reach;
  }

  // The windows from inner_ to inner_end_, if they fill a vector, or are one (`narrow`); the last vector may overlap
  // the one before it.
  template <bool indexed>
  PG_INLINE bool run_inner(const float* x, const Places& row, float* y, int64_t* indices, bool narrow) const {
    const int64_t begin = inner_, last = narrow ? 0 : inner_end_ - kLanes, wide = p_.in[2], stride = p_.stride[2];
    const int64_t step = row.step * wide, taps = p_.kernel[2], dilation = p_.dilation[2];
    if (last < begin) return false;
    const int64_t first = row.first * wide + places_[2][begin].first;
    // One row of windows: body(place, output, rows, taps) for each vector.
    auto each = [&](auto&& body) __attribute__((always_inline)) {
      for (int64_t next = begin; next < last + kLanes; next += kLanes) {
        const int64_t o = std::min(next, last), at = first + (o - begin) * stride;
        if (row.count == 2 && taps == 2) {
          body(at, o, 2, 2);
        } else if (row.count == 3 && taps == 3) {
          body(at, o, 3, 3);
        } else {
          body(at, o, row.count, taps);
        }
      }
    };
    auto run = [&](auto by) __attribute__((always_inline)) {
      constexpr int64_t kStride = decltype(by)::value;
      if constexpr (!indexed) {
        Floats sum{};
        each([&](int64_t at, int64_t o, int64_t rows, int64_t count) __attribute__((always_inline)) {
          best_of_ordered<kStride>(x + at, rows, step, count, dilation, y + o, sum);
        });
        if (!any(sum != sum)) return;
      }
      each([&](int64_t at, int64_t o, int64_t rows, int64_t count) __attribute__((always_inline)) {
        best_of_lanes<kStride, indexed>(x + at, at, rows, step, count, dilation, y + o,
                                        indexed ? indices + o : nullptr);
      });
    };
    stride == 1 ? run(std::integral_constant<int64_t, 1>{}) : run(std::integral_constant<int64_t, 2>{});
    return true;
  }

  // The common window, without branches.
  template <class T>
  T best_of_four(const T* x, int64_t at, int64_t& index) const {
    const int64_t places[4] = {at, at + 1, at + p_.in[2], at + p_.in[2] + 1};
    index = at;
    for (int i = 1; i < 4; i++) {  // masks, since compilers turn a choice into a branch that data mispredicts
      auto mask =
          -static_cast<int64_t>(beats(signed_value<T>(load<T>(x[places[i]])), signed_value<T>(load<T>(x[index]))));
      index ^= (index ^ places[i]) & mask;
    }
    return x[index];
  }

  template <class T>
  T best_of(const T* x, const Places& block, const Places& row, const Places& column, int64_t& index) const {
    index = -1;  // a window that lies in the padding altogether
    for (int64_t d = 0; d < block.count; d++) {
      for (int64_t i = 0; i < row.count; i++) {
        int64_t line = ((block.first + d * block.step) * p_.in[1] + row.first + i * row.step) * p_.in[2] + column.first;
        for (int64_t j = 0; j < column.count; j++) {
          int64_t place = line + j * column.step;
          if (index < 0 || beats(signed_value<T>(load<T>(x[place])), signed_value<T>(load<T>(x[index])))) index = place;
        }
      }
    }
    return index >= 0 ? x[index] : lowest<T>();
  }

  uint32_t dtype_;
  DenseInput x_;
  Pool p_;
  bool adaptive_;
  AxisTables<Places> places_;
  int64_t inner_ = 0, inner_end_ = 0;  // outputs of a row that vectors may take
  int64_t slices_ = 1;
  bool indices_ = false, halves_ = false;
  bool pairs_ = false;     // best_of_pairs() does it
  bool quarters_ = false;  // best_of_halves()
};

// What both kernels over saved indices need: planes of a source, indices of the pooled shape.
struct Indexed {
  int64_t planes = 1, size, pooled;
  Indexed() = default;
  Indexed(const KernelCall& call, const pg_tensor& full, const pg_tensor& pooled_tensor) {
    Pool p = read_planes(call, full, pooled_tensor);
    planes = p.planes, size = p.in_count(), pooled = p.out_count();
  }
};

void require_index_dtype(const KernelCall& call, uint32_t i) {
  if (dtype_of(call.in(i)) != PG_I64) fail_support(format("%s: indices must be int64", call.op()));
  if (!is_dense(call.out(0))) fail_support("the result must be dense");
}

[[noreturn]] void fail_index(int64_t index, int64_t size) { fail_argument(out_of_plane(index, size)); }

class MaxPoolGrad final : public Kernel {
 public:
  static void supports(const KernelCall& call) {
    require_float(call, dtype_of(call.in(0)));
    require_index_dtype(call, 1);
    Indexed(call, call.out(0), call.in(0));
  }
  MaxPoolGrad(const KernelCall& call, Plan& plan)
      : dtype_(dtype_of(call.in(0))), shape_(call, call.out(0), call.in(0)), dy_(call.in(0)), indices_(call.in(1)) {
    Scratch scratch;
    dy_.get(nullptr, scratch), indices_.get(nullptr, scratch);
    with_float(dtype_, [&](auto type) { scratch.take(sums(type).bytes()); });
    plan.workspace = scratch.bytes();
  }
  void launch(const pg_launch& launch) override {
    Scratch scratch(host_pointer(launch.workspace));
    if (shape_.planes * shape_.size == 0) return;
    with_float(dtype_, [&](auto type) {
      using T = typename decltype(type)::type;
      auto* dy = static_cast<const T*>(dy_.get(input(launch, 0), scratch));
      auto* indices = static_cast<const int64_t*>(indices_.get(input(launch, 1), scratch));
      std::atomic<int64_t> wrong{-1};
      int64_t size = shape_.size, pooled = shape_.pooled;
      sums(type).run(output<T>(launch, 0), scratch.take(sums(type).bytes()), [&](int64_t plane, Accumulator<T>* dx) {
        for (int64_t i = plane * pooled; i < (plane + 1) * pooled; i++) {
          int64_t index = indices[i];
          if (static_cast<uint64_t>(index) < static_cast<uint64_t>(size)) {
            dx[index] += load<T>(dy[i]);
          } else if (index != -1) {
            wrong = index;
          }
        }
      });
      if (wrong != -1) fail_index(wrong, size);
    });
  }

 private:
  template <class T>
  PlaneSums<T> sums(Type<T>) const {
    return PlaneSums<T>(shape_.planes, shape_.size);
  }
  uint32_t dtype_;
  Indexed shape_;
  DenseInput dy_, indices_;
};

class MaxPoolGather final : public Kernel {
 public:
  static void supports(const KernelCall& call) {
    with_number(dtype_of(call.in(0)), [](auto) {});
    require_index_dtype(call, 1);
    Indexed(call, call.in(0), call.out(0));
  }
  MaxPoolGather(const KernelCall& call, Plan& plan)
      : dtype_(dtype_of(call.in(0))), shape_(call, call.in(0), call.out(0)), x_(call.in(0)), indices_(call.in(1)) {
    Scratch scratch;
    x_.get(nullptr, scratch), indices_.get(nullptr, scratch);
    plan.workspace = scratch.bytes();
  }
  void launch(const pg_launch& launch) override {
    Scratch scratch(host_pointer(launch.workspace));
    if (shape_.planes * shape_.pooled == 0) return;
    with_number(dtype_, [&](auto type) {
      using T = typename decltype(type)::type;
      auto* x = static_cast<const T*>(x_.get(input(launch, 0), scratch));
      auto* indices = static_cast<const int64_t*>(indices_.get(input(launch, 1), scratch));
      auto* y = output<T>(launch, 0);
      std::atomic<int64_t> wrong{-1};
      int64_t size = shape_.size, pooled = shape_.pooled;
      parallel_for(shape_.planes * pooled, 8192, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
          int64_t index = indices[i];
          bool inside = static_cast<uint64_t>(index) < static_cast<uint64_t>(size);
          if (!inside && index != -1) wrong = index;
          y[i] = inside ? x[i / pooled * size + index] : T{};
        }
      });
      if (wrong != -1) fail_index(wrong, size);
    });
  }

 private:
  uint32_t dtype_;
  Indexed shape_;
  DenseInput x_, indices_;
};

constexpr uint64_t kIndices = 1u << 1;
[[maybe_unused]] const int registered[] = {
    add_either<MaxPool, MaxPoolLast>("max_pool1d", kIndices),
    add_either<MaxPool, MaxPoolLast>("max_pool2d", kIndices),
    add_either<MaxPool, MaxPoolLast>("max_pool3d", kIndices),
    add_either<MaxPool, MaxPoolLast>("adaptive_max_pool1d", kIndices),
    add_either<MaxPool, MaxPoolLast>("adaptive_max_pool2d", kIndices),
    add_either<MaxPool, MaxPoolLast>("adaptive_max_pool3d", kIndices),
    add_either<MaxPoolGrad, MaxPoolGradLast>("max_pool1d_grad"),
    add_either<MaxPoolGrad, MaxPoolGradLast>("max_pool2d_grad"),
    add_either<MaxPoolGrad, MaxPoolGradLast>("max_pool3d_grad"),
};
PG_KERNEL("max_pool1d_gather", MaxPoolGather);
PG_KERNEL("max_pool2d_gather", MaxPoolGather);
PG_KERNEL("max_pool3d_gather", MaxPoolGather);

}  // namespace
}  // namespace pg::cpu
