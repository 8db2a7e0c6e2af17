// SPDX-License-Identifier: Apache-2.0
#include "kernels/sorted_sum.hpp"

#include "kernels/sums.hpp"

namespace cuda {
namespace {

constexpr int kAtOnce = 4;  // entries whose loads are under way together

struct Sums {
  const uint64_t* keys;  // sorted
  const uint32_t* entry;
  Walk<1> before, at, inner;
  Extent column, a;  // columns number pairs of b and a
  int64_t entries, rows, chunk, chunks;
  bool narrow;
};

// A thread's part: a chunk and a column of it.
struct Part {
  int64_t chunk, column, b, a, begin, end;
  PG_HD Part(const Sums& s, int64_t p) : chunk(0), column(p), b(0), a(0) {
    chunk = s.column.split(column, s.narrow);
    a = column;
    b = s.a.split(a, s.narrow);
    begin = chunk * s.chunk;
    end = begin + s.chunk < s.entries ? begin + s.chunk : s.entries;
  }
  PG_HD int64_t target(const Sums& s, uint64_t key) const {
    return (b * s.rows + static_cast<int64_t>(key)) * s.a.size + a;
  }
};

// Sums the runs of each chunk. What goes on from the chunk before is put into heads, what begins here and goes on in
// the next one into tails.
template <class S>
__global__ void __launch_bounds__(kThreads, 4)
    sum_chunks(const __grid_constant__ Sums s, const S* dy, S* dx, GradSum<S>* heads, GradSum<S>* tails) {
  int64_t total = s.chunks * s.column.size, stride = int64_t{gridDim.x} * blockDim.x;
  auto nowhere = static_cast<uint64_t>(s.rows);  // the keys behind all others
  for (int64_t p = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; p < total; p += stride) {
    Part part(s, p);
    const S* from = dy + s.before.offset(part.b) + s.inner.offset(part.a);
    uint64_t key = s.keys[part.begin];
    bool is_head = part.begin > 0 && s.keys[part.begin - 1] == key;
    GradSum<S> sum = 0;
    for (int64_t first = part.begin; first < part.end; first += kAtOnce) {
      uint64_t next[kAtOnce];
      GradSum<S> value[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; i++) {  // loads before the choices that depend on them
        next[i] = first + i < part.end ? s.keys[first + i] : nowhere;
        value[i] = next[i] < nowhere ? to_sum(from[s.at.offset(s.entry[first + i])]) : GradSum<S>(0);
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; i++) {
        if (first + i >= part.end) break;
        if (next[i] != key) {
          if (is_head)
            heads[p] = sum;
          else
            dx[part.target(s, key)] = from_sum<S>(sum);
          key = next[i], is_head = false, sum = 0;
        }
        sum += value[i];
      }
    }
    if (key >= nowhere) continue;
    if (is_head)
      heads[p] = sum;
    else if (part.end < s.entries && s.keys[part.end] == key)
      tails[p] = sum;
    else
      dx[part.target(s, key)] = from_sum<S>(sum);
  }
}

// A run of several chunks belongs to the chunk it begins in.
template <class S>
__global__ void __launch_bounds__(kThreads)
    sum_runs(const __grid_constant__ Sums s, S* dx, const GradSum<S>* heads, const GradSum<S>* tails) {
  int64_t total = s.chunks * s.column.size, stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t p = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; p < total; p += stride) {
    Part part(s, p);
    uint64_t key = s.keys[part.end - 1];
    if (part.end == s.entries || s.keys[part.end] != key || key >= static_cast<uint64_t>(s.rows)) continue;
    if (part.begin > 0 && s.keys[part.begin - 1] == key) continue;
    int64_t first = part.chunk + 1, low = first, high = s.chunks;  // chunks below `low` begin with the key
    while (low < high) {
      int64_t middle = (low + high) / 2;
      if (s.keys[middle * s.chunk] == key)
        low = middle + 1;
      else
        high = middle;
    }
    GradSum<S> sum = tails[p];
#pragma unroll 4
    for (int64_t i = first; i < low; i++) sum += heads[i * s.column.size + part.column];
    dx[part.target(s, key)] = from_sum<S>(sum);
  }
}

constexpr uint64_t round_up(uint64_t bytes) { return (bytes + 255) / 256 * 256; }

}  // namespace

SortSpace::SortSpace(int64_t entries) : entries_(entries), sort_bytes_(sort_pairs_workspace(entries)) {}

uint64_t SortSpace::keys_bytes() const { return round_up(static_cast<uint64_t>(entries_) * sizeof(uint64_t)); }
uint64_t SortSpace::values_bytes() const { return round_up(static_cast<uint64_t>(entries_) * sizeof(uint32_t)); }
uint64_t SortSpace::bytes() const { return 2 * keys_bytes() + 2 * values_bytes() + round_up(sort_bytes_); }

SortPairs SortSpace::rooms(void* workspace) const {
  char *keys = static_cast<char*>(workspace), *values = keys + 2 * keys_bytes();
  return {{reinterpret_cast<uint64_t*>(keys), reinterpret_cast<uint64_t*>(keys + keys_bytes())},
          {reinterpret_cast<uint32_t*>(values), reinterpret_cast<uint32_t*>(values + values_bytes())}};
}

int SortSpace::sort(cudaStream_t stream, void* workspace, int64_t largest) const {
  return sort(stream, workspace, rooms(workspace), bits_of(largest));
}

int SortSpace::sort(cudaStream_t stream, void* workspace, const SortPairs& rooms, int bits) const {
  char* scratch = static_cast<char*>(workspace) + 2 * keys_bytes() + 2 * values_bytes();
  return sort_pairs(stream, rooms, entries_, bits, scratch, sort_bytes_);
}

SortedSum::SortedSum(const pg::KernelCall& call, uint32_t dtype, int64_t rows, const Walk<1>& before, const Walk<1>& at,
                     const Walk<1>& inner)
    : dtype_(dtype), before_(before), at_(at), inner_(inner), rows_(rows), columns_(before.count * inner.count) {
  chunk_ = chunk_of(entries(), columns_);
  chunks_ = divide_up(entries(), chunk_);
  use_device(call.raw->device);
  space_ = SortSpace(entries());
  with_sum(dtype_, [&](auto tag) {
    using S = typename decltype(tag)::type;
    partial_bytes_ = round_up(static_cast<uint64_t>(chunks_ * columns_) * sizeof(GradSum<S>));
  });
}

void SortedSum::check_entries(int64_t entries) {
  if (entries > int64_t{UINT32_MAX}) pg::fail_support("an index of more than 4294967295 elements is not sorted");
}

uint64_t SortedSum::workspace() const { return space_.bytes() + 2 * partial_bytes_; }

void SortedSum::run(const Launch& launch, const void* dy, void* dx) const {
  if (entries() == 0 || columns_ == 0) return;
  char* workspace = launch.workspace<char>();
  SortPairs rooms = this->rooms(workspace);
  char* partial = workspace + space_.bytes();
  int sorted = space_.sort(launch.native(), workspace, rows_);
  Sums s{rooms.keys[sorted],
         rooms.values[sorted],
         before_,
         at_,
         inner_,
         Extent(columns_),
         Extent(inner_.count),
         entries(),
         rows_,
         chunk_,
         chunks_,
         chunks_ * columns_ < kNarrow};
  with_sum(dtype_, [&](auto tag) {
    using S = typename decltype(tag)::type;
    auto *heads = reinterpret_cast<GradSum<S>*>(partial),
         *tails = reinterpret_cast<GradSum<S>*>(partial + partial_bytes_);
    Grid grid = grid_for(chunks_ * columns_);
    launch(grid, sum_chunks<S>, s, static_cast<const S*>(dy), static_cast<S*>(dx), heads, tails);
    launch(grid, sum_runs<S>, s, static_cast<S*>(dx), heads, tails);
  });
}

}  // namespace cuda
