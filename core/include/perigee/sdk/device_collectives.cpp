// SPDX-License-Identifier: Apache-2.0
#include "perigee/device_collectives.hpp"

namespace pg {
namespace {

void check_call(const pg_collective& call, size_t member, size_t members) {
  const bool named = call.kind == PG_COLLECTIVE_REDUCE || call.kind == PG_COLLECTIVE_BROADCAST || is_pair(call.kind);
  if (call.kind < PG_COLLECTIVE_BARRIER || call.kind > PG_COLLECTIVE_RECEIVE)
    fail_support(format("a collective of kind %u", call.kind));
  if (named && (call.peer < 0 || static_cast<size_t>(call.peer) >= members))
    fail_argument(format("member %d; expected 0..%zu", call.peer, members - 1));
  if (is_pair(call.kind) && static_cast<size_t>(call.peer) == member)
    fail_argument(format("member %d is that itself", call.peer));
  if (!is_reduction(call.kind)) return;
  const uint32_t of = dtype_class(call.dtype);
  if (call.reduction > PG_REDUCE_MIN) fail_support(format("reduction %u", call.reduction));
  if (!(of & (PG_M_FLOAT | PG_M_INT)) || (call.reduction == PG_REDUCE_MEAN && !(of & PG_M_FLOAT)))
    fail_support(format("a reduction of %s", dtype_name(call.dtype)));
}

}  // namespace

uint64_t input_count(const pg_collective& call, size_t member, size_t members) {
  switch (call.kind) {
    case PG_COLLECTIVE_BROADCAST: return static_cast<size_t>(call.peer) == member ? call.count : 0;
    case PG_COLLECTIVE_REDUCE_SCATTER:
    case PG_COLLECTIVE_ALL_TO_ALL: return call.count * members;
    case PG_COLLECTIVE_BARRIER:
    case PG_COLLECTIVE_RECEIVE: return 0;
    default: return call.count;
  }
}

uint64_t output_count(const pg_collective& call, size_t member, size_t members) {
  switch (call.kind) {
    case PG_COLLECTIVE_REDUCE: return static_cast<size_t>(call.peer) == member ? call.count : 0;
    case PG_COLLECTIVE_BROADCAST: return static_cast<size_t>(call.peer) == member ? 0 : call.count;
    case PG_COLLECTIVE_ALL_GATHER:
    case PG_COLLECTIVE_ALL_TO_ALL: return call.count * members;
    case PG_COLLECTIVE_BARRIER:
    case PG_COLLECTIVE_SEND: return 0;
    default: return call.count;
  }
}

void check_row(const pg_collective* const* row, size_t own, size_t first, size_t members) {
  const pg_collective* one = nullptr;
  for (size_t k = 0; k < own; k++) {
    if (row[k] == nullptr) continue;
    const pg_collective& call = *row[k];
    check_call(call, first + k, members);
    if (one == nullptr) one = &call;
    if (is_pair(call.kind)) {
      const size_t peer = static_cast<size_t>(call.peer);
      if (peer < first || peer >= first + own) continue;  // another process's
      const pg_collective* other = row[peer - first];
      const uint32_t wanted = call.kind == PG_COLLECTIVE_SEND ? PG_COLLECTIVE_RECEIVE : PG_COLLECTIVE_SEND;
      if (other == nullptr || other->kind != wanted || static_cast<size_t>(other->peer) != first + k ||
          other->tag != call.tag || other->count != call.count || other->dtype != call.dtype)
        fail_argument(format("%s of member %zu has no counterpart at member %d",
                             call.kind == PG_COLLECTIVE_SEND ? "send" : "receive", first + k, call.peer));
    } else if (call.kind != one->kind || call.reduction != one->reduction || call.dtype != one->dtype ||
               call.count != one->count || call.peer != one->peer) {
      fail_argument(format("member %zu makes another call than the others", first + k));
    }
  }
  if (one == nullptr || is_pair(one->kind)) return;
  for (size_t k = 0; k < own; k++)
    if (row[k] == nullptr) fail_argument(format("member %zu makes no call", first + k));
}

}  // namespace pg
