// SPDX-License-Identifier: Apache-2.0
// Tensors and their storage. One type serves eager tensors (with storage), tensors of a graph (with a value number)
// and descriptions (with neither).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/recycle.hpp"
#include "base/ref.hpp"
#include "device/device.hpp"
#include "registry/registry.hpp"
#include "tensor/meta.hpp"

namespace perigee {

struct Graph;
struct Node;
struct Tensor;

using TensorRef = Ref<Tensor>;
using NodeRef = Ref<Node>;
using GraphRef = Ref<Graph>;

// A graph is known by the room above that records it.
std::atomic<uint32_t>& ref_count(Graph* graph);
void destroy(Graph* graph);

struct Kept;         // kept.hpp
struct HostStaging;  // staging.hpp

struct Storage : Recycled<Storage> {
  std::atomic<uint32_t> refs{1};
  uint32_t last_stream = 0;  // index of the stream that wrote last
  uint32_t behind = 0;       // streams, a bit each, that have waited for that
  Event done;                // set by mark_done: behind all that the last stream has done with it
  Block* block = nullptr;
  Device* device = nullptr;
  uint64_t bytes = 0;
  std::atomic<uint64_t> version{0};
  Kept* kept = nullptr;            // owned
  HostStaging* staging = nullptr;  // owned: what `block` is part of, of memory that is not the allocator's
  uint64_t mark = 0;               // of the compiled call that met it (core/src/compile)

  pg_address address() const { return {block->buffer, block->offset}; }
  static void destroy(Storage* storage);
};
using StorageRef = Ref<Storage>;

StorageRef allocate(Device& device, uint64_t bytes,
                    const char* op = nullptr);  // on the ambient stream, for an operator

// How a view came about: the operator that made it from `parent`.
struct ViewInfo {
  TensorRef parent;
  const Op* op;
  std::vector<uint8_t> attrs;
  std::vector<TensorRef> others;  // its further inputs, which are only described
  uint64_t epoch = 0;             // the base's, when this view's history was last brought up to date
};

struct Tensor : Recycled<Tensor> {
  std::atomic<uint32_t> refs{1};
  uint32_t output = 0;         // which of the node's outputs this is
  bool requires_grad = false;  // a leaf that collects gradients
  MetaRef meta;
  StorageRef storage;
  int64_t offset = 0;  // bytes into the storage
  Device* device = nullptr;
  NodeRef node;  // what made it, on the tape; a leaf's accumulator for leaves that require gradients
  std::unique_ptr<ViewInfo> view;
  uint64_t epoch = 0;  // of a base: raised when a write through a view or into it changes its history
  GraphRef graph;
  uint32_t value = 0;  // in the graph
  uint64_t tag = 0;    // the front end's
  uint64_t mark = 0;   // of the compiled call that met it

  pg_address address() const {
    if (!storage || storage->block == nullptr) return {0, 0};
    return {storage->block->buffer, storage->block->offset + static_cast<uint64_t>(offset)};
  }
  bool is_graph() const { return static_cast<bool>(graph); }
  static void destroy(Tensor* tensor);
};

TensorRef make_tensor(MetaRef meta, StorageRef storage, int64_t offset, Device* device);
TensorRef make_dense(Device& device, MetaRef meta, const char* op = nullptr);  // fresh, uninitialised
TensorRef describe_only(const Tensor& tensor);                                 // same meta and device, no contents
TensorRef alias(const Tensor& tensor);                                         // same contents, no history
Tensor& base_of(Tensor& tensor);                                               // itself, or what it is a view of
pg_tensor with_address(const Tensor& tensor);  // the description with buffer and offset filled
// A tensor from or to dense host memory, in its own dtype. to_host waits for the contents.
TensorRef from_host(uint32_t dtype, uint32_t rank, const int64_t* shape, const void* data, Device& device);
void to_host(Tensor& tensor, void* target);
// A dense copy on the same device through the device's own copy entry; no history.
TensorRef copy_dense(Tensor& tensor, uint32_t dtype);
TensorRef copy_as(Tensor& tensor, MetaRef meta);  // the same, described so: of the tensor's shape
// Dense elements written where those of a tensor of the same shape lie, by the same entry.
void copy_into(Tensor& target, Tensor& source, const char* what);
// The same elements of the same memory.
inline bool is_same_view(const Tensor* a, const Tensor* b) {
  return a != nullptr && b != nullptr && a->storage && a->storage.get() == b->storage.get() && a->offset == b->offset &&
         a->meta.get() == b->meta.get();
}
TensorRef move_to(Tensor& tensor, Device& device);  // dense copy on another device, in its order; no history
// Before work on `stream` of the tensor's device touches it: waits for other streams' work, remembers this one's.
void use_on(Storage& storage, uint32_t stream, bool writes);
// What its last stream has done with it until now is all that others will wait for, whatever that stream does meanwhile
// with other memory; with `on` false, no more. Where that has failed, so does who waits for it: not to be kept for
// long.
void mark_done(Storage& storage, bool on);

}  // namespace perigee
