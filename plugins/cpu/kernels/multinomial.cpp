// SPDX-License-Identifier: Apache-2.0
// multinomial: categories drawn by probability, with replacement by halving sums, without it by a race. Which ones are
// drawn is specified in perigee/kernels/philox.hpp.
#include <algorithm>
#include <vector>

#include "dense_reader.hpp"
#include "perigee/kernels/philox.hpp"

namespace cpu {
namespace {

struct Multinomial final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    if (!is_float(storage_of(call.in(0))) || storage_of(call.out(0)) != sI64) refuse(call);
    if (!pg::is_contiguous(call.out(0))) refuse(call);
  }
  Multinomial(const pg::KernelCall& call, pg::Plan&)
      : seed_(call.runtime<int64_t>("seed")),
        offset_(call.runtime<int64_t>("offset")),
        samples_(call.attr<int64_t>("num_samples")),
        replacement_(call.attr<bool>("replacement")) {
    const pg_tensor& p = call.in(0);
    chances_ = DenseReader(p, sF64);
    categories_ = p.shape[p.rank - 1];
    rows_ = pg::element_count(p) / categories_;
  }

  void launch(const pg_launch& launch) override {
    auto seed = static_cast<uint64_t>(seed_(launch)), offset = static_cast<uint64_t>(offset_(launch));
    const void* p = pg::input(launch, 0);
    auto* out = pg::output<int64_t>(launch, 0);
    if (rows_ == 0) return;
    std::vector<double> sums(static_cast<size_t>(rows_ * categories_));
    for (int64_t j = 0; j < rows_; j++) add_up(p, j, sums.data() + j * categories_);  // errors before any result
    auto piece = [&](int64_t begin, int64_t end) {
      std::vector<double> chances(replacement_ ? 0 : static_cast<size_t>(categories_));
      for (int64_t j = begin; j < end; j++) {
        const double* row = sums.data() + j * categories_;
        if (replacement_)
          draw(row, j, seed, offset, out + j * samples_);
        else
          race(static_cast<const double*>(chances_.read(p, j * categories_, categories_, chances.data())), j, seed,
               offset, out + j * samples_);
      }
    };
    int64_t work = replacement_ ? samples_ * 16 : categories_ * 16;
    if (rows_ * work <= kGrain) return piece(0, rows_);
    pg::parallel_for(rows_, std::max<int64_t>(1, kGrain / work), piece);
  }

 private:
  // Sums up to each category, one by one.
  void add_up(const void* p, int64_t row, double* sums) const {
    const auto* chances = static_cast<const double*>(chances_.read(p, row * categories_, categories_, sums));
    double total = 0;
    int64_t possible = 0;
    for (int64_t c = 0; c < categories_; c++) {
      double chance = chances[c];
      if (!(chance >= 0) || chance > 1.7976931348623157e308) {
        pg::fail_argument(pg::format("multinomial: p is %g at row %lld, category %lld; expected finite numbers from 0",
                                     chance, static_cast<long long>(row), static_cast<long long>(c)));
      }
      possible += chance > 0;
      sums[c] = total += chance;
    }
    int64_t least = replacement_ ? 1 : samples_;
    if (possible < least) {
      pg::fail_argument(
          pg::format("multinomial: row %lld has %lld categories of probability above 0; expected at least %lld",
                     static_cast<long long>(row), static_cast<long long>(possible), static_cast<long long>(least)));
    }
  }

  void draw(const double* sums, int64_t row, uint64_t seed, uint64_t offset, int64_t* out) const {
    double total = sums[categories_ - 1];
    const double* last = std::lower_bound(sums, sums + categories_, total);  // the last one that is possible
    for (int64_t k = 0; k < samples_; k++) {
      double goal = pg::philox::uniform_f64(seed, offset, static_cast<uint64_t>(row * samples_ + k)) * total;
      out[k] = std::min(std::upper_bound(sums, sums + categories_, goal), last) - sums;
    }
  }

  void race(const double* chances, int64_t row, uint64_t seed, uint64_t offset, int64_t* out) const {
    std::vector<std::pair<double, int64_t>> runners;
    runners.reserve(static_cast<size_t>(categories_));
    for (int64_t c = 0; c < categories_; c++) {
      if (chances[c] == 0) continue;
      auto j = static_cast<uint64_t>(row), category = static_cast<uint64_t>(c);
      runners.emplace_back(pg::philox::race(seed, offset, j, category, chances[c]), c);
    }
    std::partial_sort(runners.begin(), runners.begin() + samples_, runners.end());
    for (int64_t k = 0; k < samples_; k++) out[k] = runners[static_cast<size_t>(k)].second;
  }

  pg::Runtime<int64_t> seed_, offset_;
  int64_t samples_, rows_, categories_;
  bool replacement_;
  DenseReader chances_;
};
PG_KERNEL("multinomial", Multinomial);

}  // namespace
}  // namespace cpu
