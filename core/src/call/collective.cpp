// SPDX-License-Identifier: Apache-2.0
#include "call/collective.hpp"

#include <cstring>

#include "collective/ranks.hpp"

namespace perigee {
namespace {

uint32_t kind_of(Role role) {
  switch (role) {
    case Role::all_reduce: return PG_COLLECTIVE_ALL_REDUCE;
    case Role::all_gather: return PG_COLLECTIVE_ALL_GATHER;
    case Role::reduce_scatter: return PG_COLLECTIVE_REDUCE_SCATTER;
    case Role::broadcast: return PG_COLLECTIVE_BROADCAST;
    case Role::reduce: return PG_COLLECTIVE_REDUCE;
    case Role::all_to_all: return PG_COLLECTIVE_ALL_TO_ALL;
    default: return 0;
  }
}

const pg_attr_info* find_attr(const Op& op, const char* name, uint32_t kind) {
  for (uint32_t i = 0; i < op.info->attr_count; i++)
    if (op.info->attrs[i]->kind == kind && std::strcmp(op.info->attrs[i]->name, name) == 0) return op.info->attrs[i];
  return nullptr;
}

template <class T>
T read_attr(const Op& op, const void* attrs, const char* name, uint32_t kind, T otherwise) {
  const pg_attr_info* attr = find_attr(op, name, kind);
  if (attr != nullptr) std::memcpy(&otherwise, static_cast<const uint8_t*>(attrs) + attr->offset, sizeof otherwise);
  return otherwise;
}

int64_t integer(const Op& op, const void* attrs, const char* name, int64_t otherwise) {
  return read_attr<int64_t>(op, attrs, name, PG_ATTR_INT, otherwise);
}

// The stream on which a call's tensor is, or will be.
uint32_t touch(Tensor& x, bool writes) {
  const uint32_t stream = x.device->synchronous ? 0 : ambient().stream;
  if (x.storage) use_on(*x.storage, stream, writes);
  return stream;
}

// For the debug mode: "reduce sum to rank 0 of float32 [2, 3] at train.lua:12".
std::string call_text(const Op& op, const Meta& x, const Device& device, const void* attrs) {
  std::string text = op.info->name;
  if (const pg_attr_info* kind = find_attr(op, "op", PG_ATTR_CHOICE); kind != nullptr)
    text += std::string(" ") + kind->choices[read_attr<int32_t>(op, attrs, "op", PG_ATTR_CHOICE, 0)];
  if (find_attr(op, "root", PG_ATTR_INT) != nullptr)
    text += pg::format(" (root %lld)", static_cast<long long>(integer(op, attrs, "root", 0)));
  text += std::string(" of ") + pg::dtype_name(x.dtype) + " " + shape_text(x);
  if (has_process_engine(device)) text += " on " + device.type;
  return ambient().origin != nullptr ? text + " at " + ambient().origin : text;
}

}  // namespace

bool is_between_processes(const Op& op, const void* attrs) {
  return kind_of(op.role) != 0 && integer(op, attrs, "group", 0) != 0;
}

std::unique_ptr<const BetweenProcesses> plan_collective(const Op& op, const void* attrs, uint32_t input_count,
                                                        const Meta& x, const Meta& y) {
  Group& group = find_group(integer(op, attrs, "group", 0));
  if (input_count != 1) pg::fail_support(pg::format("got %u tensors; a process of a group gives one", input_count));
  const int64_t ranks = integer(op, attrs, "ranks", group.size());
  if (ranks != group.size())
    pg::fail_argument(pg::format("ranks is %lld; its group has %d", static_cast<long long>(ranks), group.size()));
  const int64_t root = integer(op, attrs, "root", 0);
  if (root < 0 || root >= group.size())
    pg::fail_argument(pg::format("root is %lld; expected a rank of the group, 0..%d", static_cast<long long>(root),
                                 group.size() - 1));
  Collective call{kind_of(op.role)};
  call.reduction = static_cast<uint32_t>(read_attr<int32_t>(op, attrs, "op", PG_ATTR_CHOICE, 0));
  call.dtype = x.dtype;
  call.peer = static_cast<int32_t>(integer(op, attrs, "root", -1));
  const bool shares = op.role == Role::reduce_scatter || op.role == Role::all_to_all;
  call.count = static_cast<uint64_t>(x.numel) / (shares ? group.ranks.size() : 1);
  call.input_bytes = static_cast<uint64_t>(x.bytes);
  call.output_bytes = static_cast<uint64_t>(y.bytes);
  call.what = op.info->name;
  return std::make_unique<const BetweenProcesses>(BetweenProcesses{&group, call});
}

void run_between_processes(const BetweenProcesses& planned, const Op& op, Tensor& x, const void* attrs, Tensor& y) {
  Group& group = *planned.group;
  if (wants_agreement()) agree(group, call_text(op, *x.meta, *x.device, attrs));
  TensorRef dense = x.meta->contiguous ? TensorRef::share(&x) : copy_dense(x, x.meta->dtype);
  const uint32_t stream = touch(*dense, false);
  touch(y, true);
  Collective call = planned.call;
  call.input = dense->address();
  call.output = y.address();
  run_collective(group, *y.device, stream, call);
  if (op.role == Role::reduce && call.peer != group.rank && y.meta->numel > 0)
    y.device->fill(with_address(y), pg::make_number(0.0), stream, op.info->name);
}

namespace {

void check_pair(const Group& group, int32_t peer, int32_t tag) {
  if (peer < 0 || peer >= group.size())
    pg::fail_argument(pg::format("rank %d; expected one of the group, 0..%d", peer, group.size() - 1));
  if (peer == group.rank) pg::fail_argument(pg::format("rank %d is this process itself", peer));
  if (tag < 0 || tag > 32767) pg::fail_argument(pg::format("tag %d; expected 0..32767", tag));
}

}  // namespace

namespace {

// In place. For the debug mode a mean is a sum of what has been weighed: which of the two it is, is up to each rank.
Collective sum_of(Group& group, Tensor& x) {
  if (!x.meta->contiguous) pg::fail_argument("what is summed in place must lie densely");
  if (wants_agreement()) {
    std::string text = std::string("all_reduce sum of ") + pg::dtype_name(x.meta->dtype) + " " + shape_text(*x.meta);
    if (has_process_engine(*x.device)) text += " on " + x.device->type;
    agree(group, text);
  }
  touch(x, true);
  Collective call{PG_COLLECTIVE_ALL_REDUCE};
  call.dtype = x.meta->dtype;
  call.count = static_cast<uint64_t>(x.meta->numel);
  call.input = call.output = x.address();
  call.input_bytes = call.output_bytes = static_cast<uint64_t>(x.meta->bytes);
  call.what = "all_reduce";
  return call;
}

}  // namespace

bool can_begin(const Device& device) { return device.host_visible && device.synchronous; }

uint64_t begin_sum(Group& group, Tensor& x, bool mean) {
  if (!can_begin(*x.device)) return 0;
  Collective call = sum_of(group, x);
  if (mean) call.reduction = PG_REDUCE_MEAN;
  return begin_collective(group, call);
}

void sum_in_place(Group& group, Tensor& x) {
  const Collective call = sum_of(group, x);
  run_collective(group, *x.device, x.device->synchronous ? 0 : ambient().stream, call);
}

void find_largest(Group& group, int32_t* numbers, uint32_t count) {
  if (wants_agreement()) agree(group, pg::format("all_reduce max of int32 [%u]", count));
  Collective call{PG_COLLECTIVE_ALL_REDUCE, PG_REDUCE_MAX, PG_I32};
  call.count = count;
  call.input = call.output = {reinterpret_cast<uint64_t>(numbers), 0};
  call.input_bytes = call.output_bytes = count * sizeof *numbers;
  call.what = "all_reduce";
  run_on_host(group, call);
}

uint64_t gather_into(Group& group, Tensor& x, Tensor& y, bool begin) {
  const int64_t size = group.size();
  if (!x.meta->contiguous || !y.meta->contiguous) pg::fail_argument("what is gathered must lie densely");
  if (x.meta->dtype != y.meta->dtype || x.device != y.device || y.meta->numel != x.meta->numel * size)
    pg::fail_argument(pg::format("%lld elements of each of %lld ranks do not fill %lld of the same dtype and device",
                                 static_cast<long long>(x.meta->numel), static_cast<long long>(size),
                                 static_cast<long long>(y.meta->numel)));
  if (wants_agreement())
    agree(group, std::string("all_gather of ") + pg::dtype_name(x.meta->dtype) + " " + shape_text(*x.meta));
  Collective call{PG_COLLECTIVE_ALL_GATHER};
  call.dtype = x.meta->dtype;
  call.count = static_cast<uint64_t>(x.meta->numel);
  const uint32_t stream = touch(x, false);
  touch(y, true);
  call.input = x.address(), call.output = y.address();
  call.input_bytes = x.meta->bytes, call.output_bytes = y.meta->bytes;
  call.what = "all_gather";
  if (begin && y.device->host_visible && y.device->synchronous) return begin_collective(group, call);
  run_collective(group, *y.device, stream, call);
  return 0;
}

uint64_t begin_send(Group& group, Tensor& x, int32_t peer, int32_t tag) {
  check_pair(group, peer, tag);
  if (!x.device->host_visible || !x.device->synchronous) return 0;
  if (!x.meta->contiguous) pg::fail_argument("what is sent must lie densely");
  Collective call{PG_COLLECTIVE_SEND};
  call.dtype = x.meta->dtype, call.peer = peer, call.tag = tag;
  call.count = static_cast<uint64_t>(x.meta->numel);
  call.input = x.address(), call.input_bytes = x.meta->bytes;
  call.what = "send";
  return begin_collective(group, call);
}

void send_tensor(Group& group, Tensor& x, int32_t peer, int32_t tag) {
  check_pair(group, peer, tag);
  TensorRef dense = x.meta->contiguous ? TensorRef::share(&x) : copy_dense(x, x.meta->dtype);
  Collective call{PG_COLLECTIVE_SEND};
  call.dtype = x.meta->dtype, call.peer = peer, call.tag = tag;
  call.count = static_cast<uint64_t>(x.meta->numel);
  call.input = dense->address(), call.input_bytes = x.meta->bytes;
  call.what = "send";
  run_collective(group, *x.device, touch(*dense, false), call);
}

TensorRef receive_tensor(Group& group, const Tensor& like, int32_t peer, int32_t tag) {
  check_pair(group, peer, tag);
  TensorRef y = make_dense(*like.device, dense_meta(*like.meta, like.meta->dtype), "receive");
  Collective call{PG_COLLECTIVE_RECEIVE};
  call.dtype = y->meta->dtype, call.peer = peer, call.tag = tag;
  call.count = static_cast<uint64_t>(y->meta->numel);
  call.output = y->address(), call.output_bytes = y->meta->bytes;
  call.what = "receive";
  run_collective(group, *y->device, touch(*y, true), call);
  return y;
}

}  // namespace perigee
