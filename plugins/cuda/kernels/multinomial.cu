// SPDX-License-Identifier: Apache-2.0
// multinomial: with replacement by halving the sums up to each category, without it by sorting what the categories need
// for a race. Which ones are drawn is specified in perigee/kernels/philox.hpp, bit for bit.
#include <cmath>

#include "../scan.hpp"
#include "../scratch.hpp"
#include "kernels/random.cuh"
#include "kernels/sorted_sum.hpp"
#include "walk.hpp"

namespace cuda {
namespace {

struct Chances {
  Walk<1> p;
  int64_t rows = 0, categories = 1, samples = 1;

  // Faults count through the rows, each with a place behind its categories for what is wrong with all of them.
  PG_HD int64_t position(int64_t row, int64_t category) const { return row * (categories + 1) + category; }
};

__device__ __forceinline__ bool is_chance(double p) { return p >= 0 && p <= 1.7976931348623157e308; }

__device__ __noinline__ void note_chance(const Chances& c, const FaultSite& site, int64_t row, int64_t category,
                                         double p) {
  note_fault(site, __double_as_longlong(p), c.position(row, category));
}
__device__ __noinline__ void note_too_few(const Chances& c, const FaultSite& site, int64_t row, int64_t possible,
                                          int64_t least) {
  FaultSite own = site;
  own.kind = FaultKind::kTooFew, own.limit = least;
  note_fault(own, possible, c.position(row, c.categories));
}

constexpr int64_t kChanceTile = 1024;

// A block adds up a row: all threads read, and the first one adds, since the sums are those of one addition after the
// other. The sum of a row that nothing can be drawn from is NaN.
template <class S>
__global__ void __launch_bounds__(kThreads)
    add_chances(const __grid_constant__ Chances c, const S* p, double* sums, const __grid_constant__ FaultSite site) {
  __shared__ double tile[kChanceTile];
  double total = 0;
  int64_t possible = 0;
  for (int64_t row = blockIdx.x; row < c.rows; row += gridDim.x) {
    total = 0, possible = 0;
    double* own = sums + row * c.categories;
    for (int64_t begin = 0; begin < c.categories; begin += kChanceTile) {
      int64_t size = min(kChanceTile, c.categories - begin);
      for (int64_t i = threadIdx.x; i < size; i += blockDim.x) {
        double chance = unpack(p[c.p.offset(row * c.categories + begin + i)]);
        if (!is_chance(chance)) {
          note_chance(c, site, row, begin + i, chance);
          chance = NAN;
        }
        tile[i] = chance;
      }
      __syncthreads();
      if (threadIdx.x == 0) {
        for (int64_t i = 0; i < size; i++) {
          possible += tile[i] > 0;
          total += tile[i];
          tile[i] = total;
        }
        if (begin + size == c.categories && possible == 0 && total == 0) {
          note_too_few(c, site, row, 0, 1);
          tile[size - 1] = NAN;
        }
      }
      __syncthreads();
      for (int64_t i = threadIdx.x; i < size; i += blockDim.x) own[begin + i] = tile[i];
      __syncthreads();  // the tile is written again
    }
  }
}

// How many of n rising numbers are before `goal`, or, with kEqual, not behind it.
template <bool kEqual>
__device__ __forceinline__ int64_t count_until(const double* numbers, int64_t n, double goal) {
  int64_t first = 0;
  while (n > 0) {
    int64_t half = n / 2;
    double value = numbers[first + half];
    bool before = kEqual ? !(goal < value) : value < goal;
    first = before ? first + half + 1 : first;
    n = before ? n - half - 1 : half;
  }
  return first;
}

__global__ void __launch_bounds__(kThreads)
    draw_categories(const __grid_constant__ Chances c, Draw d, const double* sums, int64_t* out) {
  int64_t step = int64_t{gridDim.x} * blockDim.x, count = c.rows * c.samples;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const double* own = sums + i / c.samples * c.categories;
    double total = own[c.categories - 1], goal = pg::philox::uniform_f64(d.seed, d.offset, static_cast<uint64_t>(i));
    int64_t last = count_until<false>(own, c.categories, total);  // the last one that is possible
    int64_t drawn = count_until<true>(own, c.categories, goal * total);
    out[i] = total != total ? 0 : min(drawn, last);
  }
}

template <class S>
__global__ void __launch_bounds__(kThreads)
    run_races(const __grid_constant__ Chances c, Draw d, const S* p, uint64_t* keys, uint32_t* entries,
              const __grid_constant__ FaultSite site) {
  int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < c.p.count; i += step) {
    int64_t row = i / c.categories, category = i - row * c.categories;
    double chance = unpack(p[c.p.offset(i)]);
    uint64_t key = UINT64_MAX;  // behind all who run
    if (!is_chance(chance)) {
      note_chance(c, site, row, category, chance);
    } else if (chance > 0) {
      double time =
          pg::philox::race(d.seed, d.offset, static_cast<uint64_t>(row), static_cast<uint64_t>(category), chance);
      key = static_cast<uint64_t>(__double_as_longlong(time));  // rises with times, which have no sign
    }
    keys[i] = key;
    entries[i] = static_cast<uint32_t>(i);
  }
}

__global__ void __launch_bounds__(kThreads)
    number_rows_of(const __grid_constant__ Chances c, const uint32_t* entries, uint64_t* keys) {
  int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < c.p.count; i += step)
    keys[i] = static_cast<uint64_t>(entries[i] / c.categories);
}

template <class S>
__global__ void __launch_bounds__(kThreads)
    take_winners(const __grid_constant__ Chances c, const S* p, const uint32_t* entries, int64_t* out,
                 const __grid_constant__ FaultSite site) {
  int64_t step = int64_t{gridDim.x} * blockDim.x, count = c.rows * c.samples;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    int64_t row = i / c.samples, rank = i - row * c.samples, start = row * c.categories;
    auto ran = [&](int64_t at) {
      double chance = unpack(p[c.p.offset(entries[start + at])]);
      return is_chance(chance) && chance > 0;
    };
    bool is = ran(rank);
    out[i] = is ? entries[start + rank] - start : 0;
    if (is || rank + 1 < c.samples) continue;
    int64_t possible = 0;
    while (possible < rank && ran(possible)) possible++;
    note_too_few(c, site, row, possible, c.samples);
  }
}

class Multinomial final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_dtypes(call, kNumbers);
    with_float(pg::dtype_of(call.in(0)), [](auto) {});
    if (pg::dtype_of(call.out(0)) != PG_I64 || !pg::is_contiguous(call.out(0)))
      pg::fail_support("categories are int64, and contiguous");
    if (!call.attr<bool>("replacement")) SortedSum::check_entries(pg::element_count(call.in(0)));
  }
  Multinomial(const pg::KernelCall& call, pg::Plan& plan)
      : seed_(call), dtype_(pg::dtype_of(call.in(0))), replacement_(call.attr<bool>("replacement")) {
    const pg_tensor& p = call.in(0);
    c_.p = walk_of(p);
    c_.categories = p.shape[p.rank - 1], c_.rows = c_.p.count / c_.categories;
    c_.samples = call.attr<int64_t>("num_samples");
    if (c_.rows == 0) return;
    use_device(call.raw->device);
    if (replacement_) {
      plan.workspace = static_cast<uint64_t>(c_.p.count) * sizeof(double);
    } else {
      space_ = SortSpace(c_.p.count);
      plan.workspace = space_.bytes();
    }
  }

  void run(const Launch& launch) override {
    if (c_.rows == 0) return;
    FaultSite site = launch.fault_site(FaultKind::kChance, 0, *launch.raw.inputs[0]);
    site.rank = 2, site.shape[0] = c_.rows, site.shape[1] = c_.categories + 1;
    Draw draw = seed_(launch);
    auto* out = launch.out<int64_t>(0);
    with_float(dtype_, [&](auto tag) {
      using S = typename decltype(tag)::type;
      replacement_ ? draw_each(launch, launch.in<S>(0), draw, site, out)
                   : race_all(launch, launch.in<S>(0), draw, site, out);
    });
  }

 private:
  template <class S>
  void draw_each(const Launch& launch, const S* p, Draw draw, const FaultSite& site, int64_t* out) const {
    auto* sums = launch.workspace<double>();
    Grid grid;
    grid.x = static_cast<uint32_t>(std::min(c_.rows, kMaxBlocks));
    launch(grid, add_chances<S>, c_, p, sums, site);
    launch(grid_for(c_.rows * c_.samples), draw_categories, c_, draw, sums, out);
  }
  template <class S>
  void race_all(const Launch& launch, const S* p, Draw draw, const FaultSite& site, int64_t* out) const {
    SortPairs rooms = space_.rooms(launch.workspace());
    launch(grid_for(c_.p.count), run_races<S>, c_, draw, p, rooms.keys[0], rooms.values[0], site);
    int room = space_.sort(launch.native(), launch.workspace(), rooms, 64);
    if (c_.rows > 1) {
      if (room == 1) std::swap(rooms.keys[0], rooms.keys[1]), std::swap(rooms.values[0], rooms.values[1]);
      launch(grid_for(c_.p.count), number_rows_of, c_, rooms.values[0], rooms.keys[0]);
      room = space_.sort(launch.native(), launch.workspace(), rooms, bits_of(c_.rows - 1));
    }
    launch(grid_for(c_.rows * c_.samples), take_winners<S>, c_, p, rooms.values[room], out, site);
  }

  Seed seed_;
  uint32_t dtype_;
  bool replacement_;
  Chances c_;
  SortSpace space_;
};
PG_KERNEL("multinomial", Multinomial);

}  // namespace
}  // namespace cuda
