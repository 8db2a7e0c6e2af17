// SPDX-License-Identifier: Apache-2.0
// Elements as unsigned keys in the order of sorting (NaN behind all numbers, -0 equal to 0), each with its position,
// and the sorting of those.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "storage.hpp"

namespace cpu {

inline uint32_t order_key(float x) {
  if (x != x) return UINT32_MAX;
  uint32_t bits;
  x += 0.0f;  // -0 becomes 0
  std::memcpy(&bits, &x, sizeof bits);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}
inline uint64_t order_key(double x) {
  if (x != x) return UINT64_MAX;
  uint64_t bits;
  x += 0.0;
  std::memcpy(&bits, &x, sizeof bits);
  return (bits >> 63) != 0 ? ~bits : bits | uint64_t{1} << 63;
}
inline uint32_t order_key(int32_t x) { return static_cast<uint32_t>(x) ^ 0x80000000u; }
inline uint64_t order_key(int64_t x) {
  return static_cast<uint64_t>(x) ^ uint64_t { 1 } << 63;
}

// A key of 32 bits over a position of 32; and the general case. Both are ordered by key, then by position: sorting them
// in any way is stable.
struct ShortItem {
  uint64_t bits;
  ShortItem() = default;
  ShortItem(uint32_t key, int64_t at) : bits(uint64_t{key} << 32 | static_cast<uint64_t>(at)) {}
  static constexpr int kDigits = 4;  // bytes of the key
  uint32_t key() const { return static_cast<uint32_t>(bits >> 32); }
  int64_t at() const { return static_cast<int64_t>(bits & UINT32_MAX); }
  uint32_t digit(int i) const { return static_cast<uint32_t>(bits >> (32 + 8 * i) & 255); }
  bool operator<(const ShortItem& other) const { return bits < other.bits; }
};
struct LongItem {
  uint64_t word;
  int64_t place;
  LongItem() = default;
  LongItem(uint64_t key, int64_t at) : word(key), place(at) {}
  static constexpr int kDigits = 8;
  uint64_t key() const { return word; }
  int64_t at() const { return place; }
  uint32_t digit(int i) const { return static_cast<uint32_t>(word >> (8 * i) & 255); }
  bool operator<(const LongItem& other) const { return word != other.word ? word < other.word : place < other.place; }
};

// Elements from which counting bytes beats comparing.
template <class Item>
constexpr int64_t kRadixFrom = Item::kDigits * 32;

// Items in the order of their positions become sorted ones: by bytes of the key, the least first, skipping bytes that
// all have in common (Knuth, The Art of Computer Programming 3, 5.2.5). `spare` has room for n.
template <class Item>
void radix_sort(Item* items, Item* spare, int64_t n) {
  std::vector<int64_t> counts(Item::kDigits * 256, 0);
  for (int64_t i = 0; i < n; i++)
    for (int d = 0; d < Item::kDigits; d++) counts[static_cast<size_t>(d) * 256 + items[i].digit(d)]++;
  Item *from = items, *to = spare;
  for (int d = 0; d < Item::kDigits; d++) {
    int64_t* count = counts.data() + d * 256;
    if (count[from[0].digit(d)] == n) continue;
    int64_t start = 0;
    for (int b = 0; b < 256; b++) {
      int64_t here = count[b];
      count[b] = start;
      start += here;
    }
    for (int64_t i = 0; i < n; i++) to[count[from[i].digit(d)]++] = from[i];
    std::swap(from, to);
  }
  if (from != items) std::copy_n(from, n, items);
}

template <class Item>
void sort_items(Item* items, Item* spare, int64_t n) {
  if (n < kRadixFrom<Item>)
    std::sort(items, items + n);
  else
    radix_sort(items, spare, n);
}

// The same on all threads: parts are sorted, then merged in pairs.
template <class Item>
void sort_items_together(Item* items, Item* spare, int64_t n) {
  int64_t parts = 1;
  while (parts * 2 <= pg::thread_count() && n / (parts * 2) >= kGrain) parts *= 2;
  int64_t size = (n + parts - 1) / parts;
  pg::parallel_for(parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; p++) sort_items(items + p * size, spare + p * size, std::min(size, n - p * size));
  });
  for (; size < n; size *= 2) {
    int64_t pairs = (n + 2 * size - 1) / (2 * size);
    pg::parallel_for(pairs, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; p++) {
        int64_t first = p * 2 * size, middle = std::min(n, first + size), last = std::min(n, first + 2 * size);
        std::merge(items + first, items + middle, items + middle, items + last, spare + first);
      }
    });
    pg::parallel_for(n, kGrain,
                     [&](int64_t begin, int64_t end) { std::copy(spare + begin, spare + end, items + begin); });
  }
}

// The first k of n items, sorted, at the front of `kept`, which has room for spread(k): key(i) gives the key of element
// i. Elements behind all that were kept are dropped at once.
inline int64_t spread(int64_t k) { return std::max<int64_t>(2 * k, k + 256); }
template <class Item, class Key>
void select_first(Item* kept, int64_t k, int64_t n, const Key& key) {
  int64_t count = 0, room = spread(k), i = 0;
  auto reduce = [&] {
    std::nth_element(kept, kept + k - 1, kept + count);
    count = k;
  };
  for (; i < n && count < room; i++) kept[count++] = Item(key(i), i);
  while (i < n) {
    reduce();
    auto limit = kept[k - 1].key();
    for (; i < n && count < room; i++)
      if (key(i) < limit) kept[count++] = Item(key(i), i);
  }
  if (count > k) reduce();
  std::sort(kept, kept + k);
}

}  // namespace cpu
