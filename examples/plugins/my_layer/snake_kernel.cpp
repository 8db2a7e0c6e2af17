// SPDX-License-Identifier: Apache-2.0
// The kernel: how the processor computes the operator, in float32 and float64.
#include <perigee/kernel.hpp>

#include <cmath>

namespace {

template <class T>
void compute(const pg_launch& launch, int64_t rows, int64_t n) {
  const T *x = pg::input<const T>(launch, 0), *a = pg::input<const T>(launch, 1);
  T* y = pg::output<T>(launch, 0);
  pg::parallel_for(rows, 1 + 4096 / (n + 1), [=](int64_t begin, int64_t end) {
    for (int64_t i = begin * n; i < end * n; i++) {
      T s = std::sin(a[i % n] * x[i]);
      y[i] = x[i] + s * s / a[i % n];
    }
  });
}

struct Snake : pg::Kernel {
  static void supports(const pg::KernelCall& call) {  // what is refused here, the user reads with these words
    call.need_dtypes({PG_F32, PG_F64});
    call.need_dense();
  }
  Snake(const pg::KernelCall& call, pg::Plan&)
      : n_(call.in(1).shape[0]),
        rows_(n_ == 0 ? 0 : pg::element_count(call.in(0)) / n_),
        run_(pg::dtype_of(call.in(0)) == PG_F32 ? compute<float> : compute<double>) {}
  void launch(const pg_launch& launch) override { run_(launch, rows_, n_); }

 private:
  int64_t n_, rows_;
  void (*run_)(const pg_launch&, int64_t, int64_t);
};
PG_KERNEL("my_snake", Snake);

}  // namespace
