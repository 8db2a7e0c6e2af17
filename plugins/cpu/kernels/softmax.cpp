// SPDX-License-Identifier: Apache-2.0
// softmax and log_softmax along an axis, and softmax_grad and log_softmax_grad: in float64 for float64, in float32 for
// the rest. Short lines are turned and taken a tile at a time, lines that lie side by side across them, others one by
// one.
#include "lines.hpp"
#include "softmax_row.hpp"

namespace cpu {
namespace {

// `lines` operands of one dtype, the result first.
template <int N>
class LineKernel : public pg::Kernel {
 protected:
  explicit LineKernel(const pg::KernelCall& call, const AxisRows<N>& rows)
      : rows_(rows), wide_(rows.storage(0) == sF64), log_(call.is("log_softmax") || call.is("log_softmax_grad")) {}
  static void check(const pg::KernelCall& call) {
    require_all_dense(call);
    Storage s = storage_of(call.in(0));
    if (!is_float(s) || storage_of(call.out(0)) != s) refuse(call);
    for (uint32_t i = 0; i < call.input_count(); i++) {
      if (storage_of(call.in(i)) != s) refuse(call);
    }
  }
  static constexpr uint32_t kAll = (1u << N) - 1;
  // Two copies of `size` elements, of which this is number k.
  template <class T>
  static T* room(std::vector<T>& scratch, int64_t size, int k) {
    if (scratch.size() < 2 * static_cast<size_t>(size)) scratch.resize(2 * static_cast<size_t>(size));
    return scratch.data() + k * size;
  }

  AxisRows<N> rows_;
  bool wide_, log_;
};

// Kernel's lines one part after another, for regions: operands are its inputs in order, its output 0.
template <class Kernel>
class SoftmaxLines final : public Lines {
 public:
  explicit SoftmaxLines(const pg::KernelCall& call) : Lines(1), kernel_(call, plan_) {}
  void run(const pg_launch&, const char*, const char* const* in, char* const* out, int64_t first,
           int64_t last) const override {
    kernel_.part(in, out[0], first, last);
  }
  void keep_near(uint32_t) override { kernel_.keep_near(); }
  int cost() const override { return 8; }

 private:
  pg::Plan plan_;
  Kernel kernel_;
};
template <class Kernel>
std::unique_ptr<Lines> make_softmax_lines(const pg::KernelCall& call) {
  Kernel::supports(call);
  const uint32_t rank = call.in(0).rank;
  if (rank == 0) pg::fail_support("one element is no line");
  last_axes(call, 1u << call.axis("axis", rank));
  return std::make_unique<SoftmaxLines<Kernel>>(call);
}

class Softmax final : public LineKernel<2> {
 public:
  static void supports(const pg::KernelCall& call) { check(call); }
  Softmax(const pg::KernelCall& call, pg::Plan&)
      : LineKernel(call, {{&call.out(0), &call.in(0)}, call.axis("axis", call.in(0).rank)}) {}

  void launch(const pg_launch& launch) override {
    if (rows_.length() == 0) return;  // of lines without elements there may be very many
    wide_ ? run<double>(pg::output(launch, 0), pg::input(launch, 0))
          : run<float>(pg::output(launch, 0), pg::input(launch, 0));
  }

  static std::unique_ptr<Lines> make_lines(const pg::KernelCall& call) { return make_softmax_lines<Softmax>(call); }
  void part(const char* const* in, char* out, int64_t begin, int64_t end) const {
    wide_ ? lines<double>(out, in[0], begin, end) : lines<float>(out, in[0], begin, end);
  }
  void keep_near() { rows_.keep_near(0); }

 private:
  template <class T>
  void run(void* out, const void* x) const {
    rows_.each_tile(kAll, kLines<T>, [&](int64_t begin, int64_t end) { lines<T>(out, x, begin, end); });
  }
  template <class T>
  void lines(void* out, const void* x, int64_t begin, int64_t end) const {
    constexpr bool kWide = sizeof(T) == 8;
    constexpr Storage type = kWide ? sF64 : sF32;
    const int64_t n = rows_.length();
    std::vector<T> scratch;
    for (int64_t i = begin, width = 1; i < end; i += width) {
      width = rows_.beside(kAll, i, end, kLines<T>);
      if (width > 1) {
        int64_t x_step, y_step;
        T* buffer = rows_.storage(0) == type ? nullptr : room(scratch, n * kLines<T>, 0);
        const void* from = rows_.load_tile(1, rows_.line(1, x, i), type, width, buffer, x_step);
        void* to = rows_.tile(0, rows_.line(0, out, i), type, width, buffer, y_step);
        simd->softmax_lines[log_][kWide](from, x_step, to, y_step, n, width);
        rows_.store_tile(0, rows_.line(0, out, i), type, width, buffer);
      } else if (rows_.are_short()) {
        LineTile<T> tile, buffer;
        width = std::min(kLines<T>, end - i);
        rows_.load_turned(1, x, i, width, buffer.element, tile.element);
        simd->softmax_lines[log_][kWide](tile.element, kLines<T>, tile.element, kLines<T>, n, kLines<T>);
        rows_.store_turned(0, out, i, width, buffer.element, tile.element);
      } else {
        bool whole = rows_.direct(0, type) && !rows_.past_caches(0, type);
        T* buffer = whole && rows_.direct(1, type) ? nullptr : room(scratch, n, 0);
        void* target = rows_.line(0, out, i);
        auto* source = static_cast<const T*>(rows_.load(1, rows_.line(1, x, i), type, buffer));
        T* result = whole ? static_cast<T*>(target) : buffer;
        softmax_row(log_, source, result, n);
        if (result != target) rows_.store(0, target, type, result);
      }
    }
  }
};
PG_KERNEL("softmax", Softmax);
PG_KERNEL("log_softmax", Softmax);
PG_LINES("softmax", Softmax);
PG_LINES("log_softmax", Softmax);

class SoftmaxGrad final : public LineKernel<3> {
 public:
  static void supports(const pg::KernelCall& call) { check(call); }
  SoftmaxGrad(const pg::KernelCall& call, pg::Plan&)
      : LineKernel(call, {{&call.out(0), &call.in(0), &call.in(1)}, call.axis("axis", call.in(0).rank)}) {}

  void launch(const pg_launch& launch) override {
    if (rows_.length() == 0) return;
    wide_ ? run<double>(pg::output(launch, 0), pg::input(launch, 0), pg::input(launch, 1))
          : run<float>(pg::output(launch, 0), pg::input(launch, 0), pg::input(launch, 1));
  }

  static std::unique_ptr<Lines> make_lines(const pg::KernelCall& call) { return make_softmax_lines<SoftmaxGrad>(call); }
  void part(const char* const* in, char* dx, int64_t begin, int64_t end) const {
    wide_ ? lines<double>(dx, in[0], in[1], begin, end) : lines<float>(dx, in[0], in[1], begin, end);
  }
  void keep_near() { rows_.keep_near(0); }

 private:
  template <class T>
  void run(void* dx, const void* y, const void* dy) const {
    rows_.each_tile(kAll, kLines<T>, [&](int64_t begin, int64_t end) { lines<T>(dx, y, dy, begin, end); });
  }
  template <class T>
  void lines(void* dx, const void* y, const void* dy, int64_t begin, int64_t end) const {
    constexpr bool kWide = sizeof(T) == 8;
    constexpr Storage type = kWide ? sF64 : sF32;
    const int64_t n = rows_.length();
    std::vector<T> scratch;
    for (int64_t i = begin, width = 1; i < end; i += width) {
      width = rows_.beside(kAll, i, end, kLines<T>);
      if (width > 1) {
        int64_t step[3];
        bool lies = rows_.storage(0) == type;
        T* first = lies ? nullptr : room(scratch, n * kLines<T>, 0);
        T* second = lies ? nullptr : room(scratch, n * kLines<T>, 1);
        const void* a = rows_.load_tile(1, rows_.line(1, y, i), type, width, first, step[1]);
        const void* b = rows_.load_tile(2, rows_.line(2, dy, i), type, width, second, step[2]);
        void* to = rows_.tile(0, rows_.line(0, dx, i), type, width, first, step[0]);
        simd->softmax_grad_lines[log_][kWide](a, step[1], b, step[2], to, step[0], n, width);
        rows_.store_tile(0, rows_.line(0, dx, i), type, width, first);
      } else if (rows_.are_short()) {
        LineTile<T> a, b, buffer;
        width = std::min(kLines<T>, end - i);
        rows_.load_turned(1, y, i, width, buffer.element, a.element);
        rows_.load_turned(2, dy, i, width, buffer.element, b.element);
        constexpr int64_t step = kLines<T>;
        simd->softmax_grad_lines[log_][kWide](a.element, step, b.element, step, a.element, step, n, step);
        rows_.store_turned(0, dx, i, width, buffer.element, a.element);
      } else {
        bool whole = rows_.direct(0, type) && !rows_.past_caches(0, type);
        bool direct = whole && rows_.direct(1, type) && rows_.direct(2, type);
        T *first = direct ? nullptr : room(scratch, n, 0), *second = direct ? nullptr : room(scratch, n, 1);
        void* target = rows_.line(0, dx, i);
        const void* a = rows_.load(1, rows_.line(1, y, i), type, first);
        const void* b = rows_.load(2, rows_.line(2, dy, i), type, second);
        void* result = whole ? target : first;
        simd->softmax_grad_row[log_][kWide](a, b, result, n);
        if (result != target) rows_.store(0, target, type, result);
      }
    }
  }
};
PG_KERNEL("softmax_grad", SoftmaxGrad);
PG_KERNEL("log_softmax_grad", SoftmaxGrad);
PG_LINES("softmax_grad", SoftmaxGrad);
PG_LINES("log_softmax_grad", SoftmaxGrad);

}  // namespace
}  // namespace cpu
