// SPDX-License-Identifier: Apache-2.0
// scatter, scatter_add and scatter_reduce: single elements written, or folded in, along an axis. The entries are sorted
// by where they go, stable, and each element has one owner, so that the bits are the same each time; and every index
// has been looked at, and every element of src been read, before anything is written.
#include "copy.hpp"
#include "kernels/places.cuh"
#include "kernels/sorted_sum.hpp"
#include "units.hpp"

namespace cuda {
namespace {

// kLast: the last entry stays; the others are the choices of "reduce", in order.
enum class Fold : int32_t { kSum, kProd, kMean, kMost, kLeast, kLast };

// Moved elements are held as they are, numbers in a type that holds what they are folded to; integers wrap around.
template <class A, class S>
PG_HD A held(S x) {
  if constexpr (std::is_same_v<A, S>)
    return x;
  else
    return static_cast<A>(unpack(x));
}
template <class S, class A>
PG_HD S stored(A x) {
  if constexpr (std::is_same_v<A, S>)
    return x;
  else
    return pack<S>(x);
}
template <class A>
PG_HD A folded(Fold how, A a, A b) {
  if (how == Fold::kLast) return b;
  if (how == Fold::kMost) return b > a || b != b ? b : a;
  if (how == Fold::kLeast) return b < a || b != b ? b : a;
  if constexpr (std::is_integral_v<A>) {
    auto left = static_cast<uint64_t>(a), right = static_cast<uint64_t>(b);
    return static_cast<A>(how == Fold::kProd ? left * right : left + right);
  } else {
    return how == Fold::kProd ? a * b : a + b;
  }
}
// The mean of integers is rounded down.
template <class A>
PG_HD A shared(A sum, int64_t count) {
  if constexpr (std::is_integral_v<A>) {
    int64_t n = count, s = static_cast<int64_t>(sum);
    return static_cast<A>(s / n - (s % n < 0 ? 1 : 0));
  } else {
    return sum / static_cast<A>(count);
  }
}

struct Sorted {
  const uint64_t* keys;
  const uint32_t* entry;
  Walk<1> src;
  int64_t total, chunk, chunks;
  Fold how;
  bool with_self;
};

// Folds the runs of equal keys within each chunk; what a run comes to stands at its last entry there.
template <class S, class A>
__global__ void __launch_bounds__(kThreads) fold_chunks(const __grid_constant__ Sorted s, const S* src, A* part) {
  int64_t count = s.src.count, stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t c = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; c < s.chunks; c += stride) {
    int64_t begin = c * s.chunk, end = begin + s.chunk < count ? begin + s.chunk : count;
    A sum{};
    for (int64_t i = begin; i < end; i++) {
      A value = held<A>(src[s.src.offset(s.entry[i])]);
      sum = i == begin || s.keys[i - 1] != s.keys[i] ? value : folded(s.how, sum, value);
      if (i + 1 == end || s.keys[i + 1] != s.keys[i]) part[i] = sum;
    }
  }
}

// The last entry of a run writes its element, unless an index was out of range.
template <class S, class A>
__global__ void __launch_bounds__(kThreads)
    write_runs(const __grid_constant__ Sorted s, const A* part, S* y, const __grid_constant__ FaultSite site) {
  const volatile FaultRecord* record = site.record;
  if (record->kind != 0 && record->sequence == site.sequence) return;
  int64_t count = s.src.count, stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t p = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; p < count; p += stride) {
    uint64_t key = s.keys[p];
    if (p + 1 < count && s.keys[p + 1] == key) continue;
    int64_t begin = 0, high = p;  // the run's first entry
    if (s.how == Fold::kLast || p == 0 || s.keys[p - 1] != key) begin = p;
    while (begin < high) {
      int64_t middle = (begin + high) / 2;
      if (s.keys[middle] < key)
        begin = middle + 1;
      else
        high = middle;
    }
    int64_t first = begin / s.chunk, last = p / s.chunk;
    A sum{};
    for (int64_t c = first; c <= last; c++) {
      A value = part[c < last ? (c + 1) * s.chunk - 1 : p];
      sum = c == first ? value : folded(s.how, sum, value);
    }
    if (s.with_self) sum = folded(s.how, held<A>(y[key]), sum);
    if (s.how == Fold::kMean) sum = shared(sum, p - begin + 1 + (s.with_self ? 1 : 0));
    y[key] = stored<S>(sum);
  }
}

class Scatter final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_dtypes(call, kAny);
    check_index(call, 1);
    const pg_tensor &x = call.in(0), &index = call.in(1), &y = call.out(0);
    if (pg::dtype_of(x) != pg::dtype_of(y) || pg::dtype_of(call.in(2)) != pg::dtype_of(y))
      pg::fail_support("x, src and the result have different dtypes");
    if (!pg::is_contiguous(y)) pg::fail_support("the result must be contiguous");
    if (index.rank != y.rank) pg::fail_support("x and index have different numbers of axes");
    SortedSum::check_entries(pg::element_count(index));
  }
  Scatter(const pg::KernelCall& call, pg::Plan& plan) : dtype_(pg::dtype_of(call.out(0))) {
    const pg_tensor &index = call.in(1), &y = call.out(0);
    int64_t axis = call.axis("axis", y.rank);
    named_ = static_cast<uint32_t>(axis) + 1;
    numbered_ = number_of(index, y, axis);
    sorted_.src = walk_of(call.in(2));
    sorted_.total = numbered_.total;
    sorted_.chunk = chunk_of(count(), 1);
    sorted_.chunks = divide_up(count(), sorted_.chunk);
    if (call.is("scatter")) {
      sorted_.how = Fold::kLast;
      sorted_.with_self = false;
    } else {
      bool reduces = call.is("scatter_reduce");
      sorted_.how = reduces ? static_cast<Fold>(call.attr<int32_t>("reduce")) : Fold::kSum;
      sorted_.with_self = !reduces || call.attr<bool>("include_self");
    }
    use_device(call.raw->device);
    space_ = SortSpace(count());
    plan.workspace = space_.bytes() + static_cast<uint64_t>(count()) * sizeof(uint64_t);
  }

  void run(const Launch& launch) override {
    FaultSite site = launch.fault_site(FaultKind::kIndex, numbered_.size, *launch.raw.inputs[1], named_);
    SortPairs rooms = space_.rooms(launch.workspace());
    if (count() > 0)
      launch(grid_for(count()), number_places, numbered_, launch.in(1), rooms.keys[0], rooms.values[0], site);
    if (numbered_.total == 0) return;
    if (count() == 0) return copy(launch);
    Sorted s = sorted_;
    int room = space_.sort(launch.native(), launch.workspace(), numbered_.total);
    s.keys = rooms.keys[room];
    s.entry = rooms.values[room];
    void* part = launch.workspace<char>() + space_.bytes();
    if (s.how == Fold::kLast) {
      with_element(static_cast<uint32_t>(pg::dtype_bytes(dtype_)), [&](auto tag) {
        using E = typename decltype(tag)::type;
        write<E, E>(launch, s, part, site);
      });
    } else {
      with_any(dtype_, [&](auto tag) {
        using S = typename decltype(tag)::type;
        write<S, Accumulate<S>>(launch, s, part, site);
      });
    }
  }

 private:
  int64_t count() const { return numbered_.walk.count; }
  template <class S, class A>
  void write(const Launch& launch, const Sorted& s, void* part, const FaultSite& site) const {
    static_assert(sizeof(A) <= sizeof(uint64_t));
    launch(grid_for(s.chunks), fold_chunks<S, A>, s, launch.in<S>(2), static_cast<A*>(part));
    copy(launch);
    launch(grid_for(count()), write_runs<S, A>, s, static_cast<const A*>(part), launch.out<S>(0), site);
  }
  static void copy(const Launch& launch) {
    if (launch.in(0) == launch.out(0)) return;  // in place
    copy_tensor(launch.native(), at_address(*launch.raw.outputs[0], launch.raw.output[0]),
                at_address(*launch.raw.inputs[0], launch.raw.input[0]));
  }

  uint32_t dtype_, named_ = 0;  // named_: the axis in messages
  Numbered numbered_;
  Sorted sorted_{};
  SortSpace space_;
};
PG_KERNEL("scatter", Scatter);
PG_KERNEL("scatter_add", Scatter);
PG_KERNEL("scatter_reduce", Scatter);

}  // namespace
}  // namespace cuda
