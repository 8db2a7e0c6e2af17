// SPDX-License-Identifier: Apache-2.0
#include "tensor/meta.hpp"

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "tensor/dims.hpp"

namespace perigee {
namespace {

constexpr size_t first_sweep = 1 << 16;

struct Table {
  std::mutex mutex;
  std::unordered_multimap<uint64_t, std::unique_ptr<Meta>> metas;
  size_t sweep_at = first_sweep;
};

Table& table() {
  static Table* instance = new Table();  // outlives static destructors: tensors may die after them
  return *instance;
}

uint64_t mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9e3779b97f4a7c15ull;
  return h ^ (h >> 29);
}

[[noreturn]] void fail_size(uint32_t rank, const int64_t* shape, const char* why) {
  std::string text = "[";
  for (uint32_t i = 0; i < rank; i++) text += (i ? ", " : "") + dim_text(shape[i]);
  pg::fail_argument("shape " + text + "] " + why);
}

// Sizes and flags of a description whose dtype, shape and stride are set.
void derive(Meta& m) {
  int64_t item = pg::dtype_bytes(m.dtype);
  m.numel = 1;
  for (uint32_t i = 0; i < m.rank; i++) {
    if (PG_DIM_IS_SYMBOLIC(m.shape[i])) {
      m.symbolic = true;
    } else if (m.shape[i] < 0) {
      fail_size(m.rank, m.shape, "has a negative size");
    }
  }
  if (m.symbolic) {
    m.numel = m.bytes = -1;
    return;
  }
  bool empty = false;
  for (uint32_t i = 0; i < m.rank; i++) empty |= m.shape[i] == 0;
  // Overflow counts even where another dimension is zero: such a shape is a mistake of arithmetic.
  int64_t total = item;
  for (uint32_t i = 0; i < m.rank; i++) {
    if (m.shape[i] != 0 && __builtin_mul_overflow(total, m.shape[i], &total))
      fail_size(m.rank, m.shape, "has more bytes than an int64 can count");
  }
  m.numel = empty ? 0 : total / item;
  m.bytes = m.numel * item;
}

// Whether the strides are those of a permutation of the axes.
bool fills_memory(const Meta& m) {
  int64_t expected = 1;
  uint32_t left = 0;
  for (uint32_t i = 0; i < m.rank; i++) left |= m.shape[i] > 1 ? 1u << i : 0u;
  while (left != 0) {
    uint32_t next = m.rank;
    for (uint32_t i = 0; i < m.rank; i++)
      if ((left >> i & 1u) != 0 && m.stride[i] == expected) next = i;
    if (next == m.rank) return false;
    expected *= m.shape[next];
    left &= ~(1u << next);
  }
  return true;
}

void derive_strides(Meta& m, const int64_t* stride) {
  if (m.symbolic) return;
  int64_t item = pg::dtype_bytes(m.dtype), expected = 1, last = 0;
  m.contiguous = true;
  for (uint32_t i = m.rank; i-- > 0;) {
    m.stride[i] = stride != nullptr ? stride[i] : expected;
    if (m.shape[i] != 1 && m.stride[i] != expected) m.contiguous = false;
    if (m.shape[i] > 1) last += (m.shape[i] - 1) * m.stride[i];
    expected *= m.shape[i] > 0 ? m.shape[i] : 1;
  }
  if (m.numel == 0) m.contiguous = true;
  // Strides of size-1 axes carry no information: normalise, so that equal layouts are equal descriptions.
  if (m.contiguous) {
    expected = 1;
    for (uint32_t i = m.rank; i-- > 0;) {
      m.stride[i] = expected;
      expected *= m.shape[i] > 0 ? m.shape[i] : 1;
    }
  }
  m.span = m.numel == 0 ? 0 : (last + 1) * item;
  m.dense = m.contiguous || fills_memory(m);
}

bool equal(const Meta& a, const Meta& b) {
  if (a.dtype != b.dtype || a.rank != b.rank) return false;
  for (uint32_t i = 0; i < a.rank; i++)
    if (a.shape[i] != b.shape[i] || a.stride[i] != b.stride[i]) return false;
  return true;
}

void sweep(Table& t) {
  for (auto it = t.metas.begin(); it != t.metas.end();)
    it = it->second->refs.load(std::memory_order_acquire) == 0 ? t.metas.erase(it) : std::next(it);
  t.sweep_at = std::max(first_sweep, t.metas.size() * 2);
}

}  // namespace

MetaRef intern_meta(uint32_t dtype, uint32_t rank, const int64_t* shape, const int64_t* stride) {
  if (rank > PG_MAX_RANK)
    pg::fail_argument(pg::format("rank %u is more than the %d dimensions a tensor can have", rank, PG_MAX_RANK));
  if (!is_dtype(dtype)) pg::fail_argument(dtype_text(dtype) + " is no dtype that a tensor can have");
  Meta m;
  m.dtype = dtype;
  m.rank = rank;
  for (uint32_t i = 0; i < rank; i++) m.shape[i] = shape[i];
  derive(m);
  derive_strides(m, stride);
  uint64_t h = mix(dtype, rank);
  for (uint32_t i = 0; i < rank; i++)
    h = mix(mix(h, static_cast<uint64_t>(m.shape[i])), static_cast<uint64_t>(m.stride[i]));

  Table& t = table();
  std::lock_guard lock(t.mutex);
  auto [begin, end] = t.metas.equal_range(h);
  for (auto it = begin; it != end; ++it)
    if (equal(*it->second, m)) return MetaRef::share(it->second.get());
  if (t.metas.size() >= t.sweep_at) sweep(t);
  auto fresh = std::make_unique<Meta>();
  fresh->dtype = m.dtype;
  fresh->rank = m.rank;
  fresh->contiguous = m.contiguous;
  fresh->dense = m.dense;
  fresh->symbolic = m.symbolic;
  fresh->numel = m.numel;
  fresh->bytes = m.bytes;
  fresh->span = m.span;
  fresh->hash = h;
  std::memcpy(fresh->shape, m.shape, sizeof m.shape);
  std::memcpy(fresh->stride, m.stride, sizeof m.stride);
  fresh->view.size = PG_SIZE(pg_tensor, components);
  fresh->view.dtype_code = static_cast<uint16_t>(dtype >> 16);
  fresh->view.dtype_bits = static_cast<uint16_t>(dtype & 0xffff);
  fresh->view.rank = rank;
  fresh->view.shape = fresh->shape;
  fresh->view.stride = fresh->symbolic ? nullptr : fresh->stride;
  Meta* raw = fresh.get();
  t.metas.emplace(h, std::move(fresh));
  return MetaRef::share(raw);
}

MetaRef dense_meta(const Meta& meta, uint32_t dtype) {
  if (meta.contiguous && meta.dtype == dtype) return MetaRef::share(const_cast<Meta*>(&meta));
  return intern_meta(dtype, meta.rank, meta.shape);
}

uint64_t meta_count() {
  std::lock_guard lock(table().mutex);
  return table().metas.size();
}

bool is_dtype(uint32_t dtype) { return dtype != 0 && std::strcmp(pg::dtype_name(dtype), "unknown") != 0; }

std::string dtype_text(uint32_t dtype) {
  if (dtype == 0 || is_dtype(dtype)) return pg::dtype_name(dtype);
  return pg::format("kind %u of %u bits", dtype >> 16, dtype & 0xffff);
}

std::string shape_text(const Meta& meta) {
  std::string text = "[";
  for (uint32_t i = 0; i < meta.rank; i++) text += (i ? ", " : "") + dim_text(meta.shape[i]);
  return text + "]";
}

bool same_shape(const Meta& a, const Meta& b) {
  return a.rank == b.rank && std::memcmp(a.shape, b.shape, a.rank * sizeof(int64_t)) == 0;
}

}  // namespace perigee
