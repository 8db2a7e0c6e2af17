// SPDX-License-Identifier: Apache-2.0
#include "tensor/tensor.hpp"

#include "base/ambient.hpp"
#include "tensor/dropped.hpp"
#include "tensor/kept.hpp"
#include "tensor/node.hpp"
#include "tensor/order.hpp"
#include "tensor/staging.hpp"
#include "tensor/watch.hpp"

namespace perigee {

void Storage::destroy(Storage* storage) {
  delete storage->kept;
  if (storage->staging != nullptr) {
    drop_staging(storage->staging);
  } else if (storage->block != nullptr) {
    storage->device->allocator.free(storage->block);
  }
  delete storage;
}

// A view of a view of ... is taken apart in a loop: a script can make chains of any length.
void Tensor::destroy(Tensor* tensor) {
  while (tensor != nullptr) {
    Tensor* parent = tensor->view ? tensor->view->parent.release() : nullptr;
    delete tensor;
    tensor = parent != nullptr && parent->refs.fetch_sub(1, std::memory_order_acq_rel) == 1 ? parent : nullptr;
  }
}

StorageRef allocate(Device& device, uint64_t bytes, const char* op) {
  uint32_t stream = device.synchronous ? 0 : ambient().stream;
  StorageRef storage = StorageRef::adopt(new Storage());
  storage->device = &device;
  storage->bytes = bytes;
  storage->last_stream = stream;
  storage->block = device.allocator.alloc(bytes, stream, {op, ambient().layer, ambient().origin});
  if (ambient().launches != nullptr) [[unlikely]]
    ambient().launches->allocated(*storage);
  return storage;
}

TensorRef make_tensor(MetaRef meta, StorageRef storage, int64_t offset, Device* device) {
  auto* tensor = new Tensor();
  tensor->meta = std::move(meta);
  tensor->storage = std::move(storage);
  tensor->offset = offset;
  tensor->device = device;
  return TensorRef::adopt(tensor);
}

TensorRef make_dense(Device& device, MetaRef meta, const char* op) {
  StorageRef storage = allocate(device, static_cast<uint64_t>(meta->bytes), op);
  return make_tensor(std::move(meta), std::move(storage), 0, &device);
}

TensorRef describe_only(const Tensor& tensor) {
  TensorRef made = make_tensor(tensor.meta, nullptr, 0, tensor.device);
  made->graph = tensor.graph;
  made->value = tensor.value;
  return made;
}

TensorRef alias(const Tensor& tensor) {
  TensorRef made = make_tensor(tensor.meta, tensor.storage, tensor.offset, tensor.device);
  made->graph = tensor.graph;
  made->value = tensor.value;
  return made;
}

Tensor& base_of(Tensor& tensor) {
  Tensor* base = &tensor;
  while (base->view) base = base->view->parent.get();
  return *base;
}

pg_tensor with_address(const Tensor& tensor) {
  if (tensor.storage && is_dropped(*tensor.storage)) fail_dropped();
  pg_tensor t = tensor.meta->view;
  pg_address a = tensor.address();
  t.buffer = a.buffer;
  t.offset = a.offset;
  return t;
}

TensorRef from_host(uint32_t dtype, uint32_t rank, const int64_t* shape, const void* data, Device& device) {
  MetaRef meta = intern_meta(dtype, rank, shape);
  if (meta->symbolic) pg::fail_argument("a tensor with contents cannot have symbolic dimensions");
  if (data == nullptr && meta->bytes > 0) pg::fail_argument("the data is NULL");
  if (ambient().launches != nullptr) ambient().launches->refuse("an operator brings numbers from the host");
  TensorRef tensor = make_dense(device, std::move(meta));
  if (tensor->meta->bytes > 0)
    device.upload(tensor->address(), data, static_cast<uint64_t>(tensor->meta->bytes), ambient().stream);
  return tensor;
}

void to_host(Tensor& tensor, void* target) {
  if (tensor.meta->numel == 0) return;
  if (ambient().launches != nullptr) ambient().launches->refuse("an operator reads a value on the host");
  TensorRef dense = tensor.meta->contiguous ? TensorRef::share(&tensor) : copy_dense(tensor, tensor.meta->dtype);
  Device& device = *dense->device;
  if (is_dropped(*dense->storage)) fail_dropped();
  use_on(*dense->storage, ambient().stream, false);
  device.download(target, dense->address(), static_cast<uint64_t>(dense->meta->bytes), ambient().stream);
}

TensorRef copy_dense(Tensor& tensor, uint32_t dtype) { return copy_as(tensor, dense_meta(*tensor.meta, dtype)); }

TensorRef copy_as(Tensor& tensor, MetaRef meta) {
  TensorRef target = make_dense(*tensor.device, std::move(meta));
  if (target->meta->numel == 0) return target;
  use_on(*tensor.storage, ambient().stream, false);
  tensor.device->copy(with_address(*target), with_address(tensor), ambient().stream, "copy");
  if (ambient().launches != nullptr) ambient().launches->copied(*target, tensor);
  return target;
}

void copy_into(Tensor& target, Tensor& source, const char* what) {
  if (target.meta->numel == 0) return;
  const uint32_t stream = target.device->synchronous ? 0 : ambient().stream;
  use_on(*source.storage, stream, false);
  use_on(*target.storage, stream, true);
  target.device->copy(with_address(target), with_address(source), stream, what);
  if (ambient().launches != nullptr) ambient().launches->copied(target, source);
}

TensorRef move_to(Tensor& tensor, Device& device) {
  if (ambient().launches != nullptr) ambient().launches->refuse("an operator copies between devices");
  TensorRef source =
      tensor.meta->dense ? TensorRef::share(&tensor) : copy_as(tensor, keep_order(*tensor.meta, tensor.meta->dtype));
  TensorRef target = make_dense(device, source->meta);
  if (target->meta->numel == 0) return target;
  if (is_dropped(*source->storage)) fail_dropped();
  if (upload_staging(*source, *target)) return target;
  device.copy_from(target->address(), ambient().stream, *source->device, source->address(),
                   source->storage->last_stream, static_cast<uint64_t>(source->meta->bytes));
  // The source may be freed by now: its memory must not be reused before the copy has read it.
  if (!source->device->synchronous) source->storage->block->used_on |= 1u << source->storage->last_stream;
  return target;
}

void use_on(Storage& storage, uint32_t stream, bool writes) {
  Device& device = *storage.device;
  if (device.synchronous || storage.block == nullptr) return;
  if (ambient().capture != nullptr) return;  // who launches what is captured sees to it each time
  Block& block = *storage.block;
  // Once is enough to read: later on the other stream may be at work on what this one does not need. What is written
  // waits for all that others have read until now.
  if (storage.last_stream != stream && (writes || (storage.behind >> stream & 1u) == 0)) {
    if (storage.done) {
      device.wait(stream, storage.done);
    } else {
      device.wait(stream, device.record(storage.last_stream));
    }
    storage.behind |= 1u << stream;
  }
  if (writes || storage.last_stream == stream) storage.done = Event();
  if (writes) {
    storage.behind = 0;
    const uint32_t waited = (block.used_on | (1u << block.home)) & ~(1u << stream) & ~(1u << storage.last_stream);
    uint32_t others = waited;
    for (uint32_t i = 0; others != 0; i++, others >>= 1)
      if (others & 1u) device.wait(stream, device.record(i));
    block.used_on &= ~waited;  // whoever waits for this stream waits for them
    storage.last_stream = stream;
  }
  if (stream != block.home) block.used_on |= 1u << stream;
}

void mark_done(Storage& storage, bool on) {
  storage.done = Event();
  if (!on || storage.device->synchronous || storage.block == nullptr || ambient().capture != nullptr) return;
  storage.done = storage.device->record(storage.last_stream);
}

}  // namespace perigee
