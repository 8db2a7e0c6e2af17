// SPDX-License-Identifier: Apache-2.0
#include "reduce/buckets.hpp"

#include <algorithm>
#include <cstring>

#include "tensor/dropped.hpp"

namespace perigee {
namespace {

constexpr int64_t kAlignment = 64;  // bytes

constexpr int64_t kSmall = 64 * 1024;  // bytes that the device's own way of copying does no better

bool at_rest(const Device& device) { return device.host_visible && device.synchronous; }

char* memory_of(const Tensor& x) {
  const pg_address at = present_address(x);
  return reinterpret_cast<char*>(at.buffer + at.offset);
}

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

void add(Bucket& bucket, uint32_t number, const Meta& meta) {
  bucket.index.push_back(number);
  bucket.offsets.push_back(bucket.extent);
  bucket.extent += aligned(meta.bytes);
  bucket.bytes += static_cast<uint64_t>(meta.bytes);
}

// The last bucket starts when all has been computed, so nothing is gained by its copies: what is large in it is summed
// where it lies.
void take_direct(BucketLayout& layout, const std::vector<TensorRef>& params, uint64_t least) {
  if (layout.buckets.empty()) return;
  Bucket& last = layout.buckets.back();
  Bucket rest(last.dtype, last.device);
  for (uint32_t i : last.index) {
    const Meta& meta = *params[i]->meta;
    if (static_cast<uint64_t>(meta.bytes) >= least) {
      layout.direct.push_back(i);
    } else {
      add(rest, i, meta);
    }
  }
  layout.buckets.pop_back();
  if (!rest.index.empty()) layout.buckets.push_back(std::move(rest));
}

// What lies between parts is summed too, and is nobody's.
void clear_gaps(const Bucket& bucket, Share& share, const std::vector<TensorRef>& params) {
  const bool rests = at_rest(*share.flat->device);
  for (size_t n = 0; n < bucket.index.size(); n++) {
    const int64_t bytes = params[bucket.index[n]]->meta->bytes, gap = aligned(bytes) - bytes;
    if (gap == 0) continue;
    if (!rests) return fill_with_zeros(*share.flat);
    std::memset(memory_of(*share.flat) + bucket.offsets[n] + bytes, 0, static_cast<size_t>(gap));
  }
}

}  // namespace

BucketLayout lay_out(const Members& members, const std::vector<uint8_t>& any, const BucketSizes& sizes) {
  const std::vector<TensorRef>& params = members[0];
  BucketLayout layout;
  struct Open {
    size_t place;
    uint64_t most;
  };
  std::vector<Open> open;  // one of each kind
  for (uint32_t i = static_cast<uint32_t>(params.size()); i-- > 0;) {
    const Tensor& p = *params[i];
    if (any[i] == 0 || p.meta->numel == 0) continue;
    auto found = std::find_if(open.begin(), open.end(), [&](const Open& o) {
      const Bucket& b = layout.buckets[o.place];
      return b.dtype == p.meta->dtype && b.device == p.device;
    });
    if (found == open.end() ||
        layout.buckets[found->place].bytes + static_cast<uint64_t>(p.meta->bytes) > found->most) {
      const Open fresh{layout.buckets.size(), layout.buckets.empty() ? sizes.first : sizes.others};
      layout.buckets.emplace_back(p.meta->dtype, p.device);
      found = found == open.end() ? open.insert(open.end(), fresh) : (*found = fresh, found);
    }
    add(layout.buckets[found->place], i, *p.meta);
  }
  take_direct(layout, params, sizes.direct);
  for (Bucket& bucket : layout.buckets) {
    bucket.shares.resize(members.size());
    forget_step(bucket);
  }
  return layout;
}

void open_share(Bucket& bucket, size_t member, const std::vector<TensorRef>& params) {
  Share& share = bucket.shares[member];
  if (share.flat) return;
  Device* device = params[bucket.index[0]]->device;
  const int64_t count = bucket.extent / pg::dtype_bytes(bucket.dtype);
  share.flat = make_dense(*device, intern_meta(bucket.dtype, 1, &count), "all_reduce");
  for (size_t n = 0; n < bucket.index.size(); n++)
    share.parts.push_back(make_tensor(dense_meta(*params[bucket.index[n]]->meta, bucket.dtype), share.flat->storage,
                                      bucket.offsets[n], device));
  clear_gaps(bucket, share, params);
}

void forget_step(Bucket& bucket) {
  for (Share& share : bucket.shares) share = {nullptr, {}, static_cast<uint32_t>(bucket.index.size()), false};
  bucket.request = 0;
  bucket.over = false;
}

void fill_with_zeros(Tensor& x) {
  const uint32_t stream = x.device->synchronous ? 0 : ambient().stream;
  use_on(*x.storage, stream, true);
  x.device->fill(with_address(x), pg::make_number(0.0), stream, "fill");
}

void copy_elements(Tensor& into, Tensor& from) {
  const bool bytes = into.meta->contiguous && from.meta->contiguous && into.meta->bytes <= kSmall;
  if (!bytes || !at_rest(*into.device)) return copy_into(into, from, "all_reduce");
  std::memcpy(memory_of(into), memory_of(from), static_cast<size_t>(into.meta->bytes));
}

}  // namespace perigee
