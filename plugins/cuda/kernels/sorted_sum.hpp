// SPDX-License-Identifier: Apache-2.0
// Sums of slices by key, the same bits each time: entries are sorted by their key, stable, and each destination is
// summed by one owner, in order. A run of equal keys that is longer than a chunk is summed in pieces of chunks.
#pragma once

#include "kernel.hpp"
#include "scan.hpp"
#include "walk.hpp"

namespace cuda {

// The workspace of a stable sort of numbered entries by their keys.
class SortSpace {
 public:
  SortSpace() = default;
  explicit SortSpace(int64_t entries);  // of the device that is current
  uint64_t bytes() const;
  // Where the caller writes each entry's key, and its number as the value, before sort.
  SortPairs rooms(void* workspace) const;
  // Keys are `largest` at most. Answers the number of the rooms where the result will stand.
  int sort(cudaStream_t stream, void* workspace, int64_t largest) const;
  // By the keys' lower bits. `rooms`: this space's, in either order.
  int sort(cudaStream_t stream, void* workspace, const SortPairs& rooms, int bits) const;

 private:
  uint64_t keys_bytes() const;
  uint64_t values_bytes() const;
  int64_t entries_ = 0;
  uint64_t sort_bytes_ = 0;
};

// dx[b, key[i], a] += dy[b, i, a] over the entries i; dx is contiguous and zero. Keys of `rows` are summed nowhere.
class SortedSum {
 public:
  SortedSum() = default;
  // Where dy's slices lie: `before` by b, `at` by entry, `inner` by a.
  SortedSum(const pg::KernelCall& call, uint32_t dtype, int64_t rows, const Walk<1>& before, const Walk<1>& at,
            const Walk<1>& inner);
  // Throws where a sort cannot number the entries.
  static void check_entries(int64_t entries);

  uint64_t workspace() const;
  // As SortSpace's, before run.
  SortPairs rooms(void* workspace) const { return space_.rooms(workspace); }
  void run(const Launch& launch, const void* dy, void* dx) const;

 private:
  int64_t entries() const { return at_.count; }

  uint32_t dtype_ = 0;
  Walk<1> before_, at_, inner_;
  int64_t rows_ = 0, columns_ = 0, chunk_ = 1, chunks_ = 0;
  uint64_t partial_bytes_ = 0;
  SortSpace space_;
};

// The bits that numbers up to and including `largest` have.
constexpr int bits_of(int64_t largest) {
  int bits = 1;
  while (bits < 63 && largest >> bits != 0) bits++;
  return bits;
}

// Entries in a chunk: few enough that there is a thread for each of about 2^17 sums, where there is so much to do.
constexpr int64_t chunk_of(int64_t entries, int64_t columns) {
  int64_t chunk = 64;
  while (chunk > 4 && entries / chunk * columns < (1 << 17)) chunk /= 2;
  return chunk;
}

// Small gradients are summed without a sort: each element of dx looks through all entries that might be its own.
constexpr bool is_scanned(int64_t entries, int64_t dx_count) {
  return entries <= 4 || dx_count == 0 || entries <= (int64_t{1} << 26) / dx_count;
}

}  // namespace cuda
