// SPDX-License-Identifier: Apache-2.0
// The simulated accelerator with one thing wrong, which PERIGEE_MUTANT names. Its devices are "mutant:0", ...
#include <dlfcn.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "perigee/capture.h"
#include "perigee/device_collectives.h"
#include "perigee/plugin.h"
#include "perigee/profiler.h"

extern "C" __attribute__((visibility("default"))) int helper_of_the_exporter() { return 0; }

namespace {

std::string mutation;
bool is(const char* name) { return mutation == name; }

pg_plugin entry;         // the real one's
pg_device real, device;  // its table, and ours
pg_kernels real_kernels, kernels;
pg_profiler real_profiler, profiler;
pg_device_collectives real_collectives, collectives;
pg_capture real_capture, capture;
std::string type = "mutant";
int opened = 0;
std::mutex mutex;

int32_t refuse(pg_error* error, int32_t code, const char* message) {
  error->code = code;
  std::snprintf(error->message, sizeof error->message, "%s", message);
  return code;
}

// ---- the device ----

int32_t properties(void* self, uint32_t n, pg_device_properties* out, pg_error* error) {
  const uint32_t room = out->size;
  pg_device_properties whole{};
  whole.size = PG_SIZE(pg_device_properties, reserved);
  const int32_t code = real.properties(self, n, &whole, error);
  if (code != PG_OK) return code;
  if (is("alignment")) whole.alignment = 24;
  if (is("no_name")) whole.name[0] = '\0';
  if (is("free_memory")) whole.memory_free = whole.memory_total;
  std::memcpy(out, &whole, is("properties_overrun") ? sizeof whole : room);
  out->size = room;
  return PG_OK;
}

std::set<uint64_t> large;  // buffers

int32_t alloc(void* self, uint32_t n, uint32_t kind, uint64_t bytes, uint64_t* buffer, pg_error* error) {
  static uint64_t last = 0;
  if (is("same_handle") && kind == PG_MEMORY_DEVICE && bytes == 64 && last != 0) {
    *buffer = last;
    return PG_OK;
  }
  if (is("any_kind") && kind == 77) kind = PG_MEMORY_DEVICE;
  const int32_t code = real.alloc(self, n, kind, bytes, buffer, error);
  if (code == PG_OK && kind == PG_MEMORY_DEVICE && bytes == 64) last = *buffer;
  if (code == PG_OK && bytes >= 1 << 20) large.insert(*buffer);
  if (code == PG_E_OUT_OF_MEMORY && is("exhaustion_code")) return PG_E_INTERNAL;
  if (code == PG_E_OUT_OF_MEMORY && is("exhaustion_silent")) error->message[0] = '\0';
  return code;
}

int32_t release(void* self, uint32_t n, uint32_t kind, uint64_t buffer, pg_error* error) {
  if (is("leak") && kind == PG_MEMORY_DEVICE && large.contains(buffer)) return PG_OK;
  const int32_t code = real.free(self, n, kind, buffer, error);
  return is("free_anything") || is("same_handle") || is("same_stream") ? PG_OK : code;
}

int32_t stream_create(void* self, uint32_t n, uint64_t* stream, pg_error* error) {
  static uint64_t first = 0;
  if (is("same_stream") && first != 0) {
    *stream = first;
    return PG_OK;
  }
  const int32_t code = real.stream_create(self, n, stream, error);
  first = *stream;
  return code;
}
int32_t stream_destroy(void* self, uint32_t n, uint64_t stream, pg_error* error) {
  return is("same_stream") ? PG_OK : real.stream_destroy(self, n, stream, error);
}

int32_t stream_sync(void* self, uint32_t n, uint64_t stream, pg_error* error) {
  if (is("no_sync")) return PG_OK;
  const int32_t code = real.stream_sync(self, n, stream, error);
  static int32_t failed = PG_OK;
  static pg_error kept;
  if (code != PG_OK) {
    if (is("failure_lost")) return PG_OK;
    if (is("failure_stays")) failed = code, kept = *error;
    if (is("failure_blank"))
      std::snprintf(error->message, sizeof error->message, "something failed"), error->native = 0;
    if (is("failure_loses_device")) error->flags |= PG_ERROR_DEVICE_LOST;
  }
  if (code == PG_OK && failed != PG_OK) {
    *error = kept;
    return failed;
  }
  return code;
}

std::map<uint64_t, std::vector<uint64_t>> late_waits;  // by stream: events
std::map<uint64_t, bool> recorded;

int32_t event_record(void* self, uint32_t n, uint64_t event, uint64_t stream, pg_error* error) {
  if (is("record_once")) {
    std::lock_guard lock(mutex);
    if (std::exchange(recorded[event], true)) return PG_OK;
  }
  return real.event_record(self, n, event, stream, error);
}
int32_t event_wait(void* self, uint32_t n, uint64_t event, uint64_t stream, pg_error* error) {
  if (is("no_wait")) return PG_OK;
  if (is("late_wait")) {
    std::lock_guard lock(mutex);
    late_waits[stream].push_back(event);
    return PG_OK;
  }
  return real.event_wait(self, n, event, stream, error);
}
int32_t event_query(void* self, uint32_t n, uint64_t event, pg_error* error) {
  if (is("query_passed")) return PG_OK;
  if (is("query_busy")) return PG_E_BUSY;
  return real.event_query(self, n, event, error);
}
int32_t event_sync(void* self, uint32_t n, uint64_t event, pg_error* error) {
  return is("no_event_sync") ? PG_OK : real.event_sync(self, n, event, error);
}
int32_t event_elapsed(void* self, uint32_t n, uint64_t start, uint64_t stop, double* seconds, pg_error* error) {
  const int32_t code = real.event_elapsed(self, n, start, stop, seconds, error);
  if (is("time_absolute")) *seconds = std::fabs(*seconds);
  if (is("time_zero")) *seconds = 0;
  return code;
}

int32_t upload(void* self, uint32_t n, uint64_t buffer, uint64_t offset, const void* source, uint64_t bytes,
               uint64_t stream, uint64_t sequence, pg_error* error) {
  static const unsigned char one = 0xee;
  if (is("upload_offset")) offset = 0;
  if (is("upload_nothing") && bytes == 0) source = &one, bytes = 1;
  if (is("upload_large") && bytes > (4u << 20)) bytes = 4u << 20;
  if (is("upload_short") && bytes == 1000) bytes = 999;
  if (is("upload_elsewhere")) {  // on a stream that nobody waits for
    static uint64_t hidden = 0;
    if (hidden == 0) real.stream_create(self, n, &hidden, error);
    stream = hidden;
  }
  return real.upload(self, n, buffer, offset, source, bytes, stream, sequence, error);
}
int32_t download(void* self, uint32_t n, void* target, uint64_t buffer, uint64_t offset, uint64_t bytes,
                 uint64_t stream, uint64_t sequence, pg_error* error) {
  if (is("download_offset")) offset = 0;
  if (is("late_wait")) {
    std::vector<uint64_t> waits;
    {
      std::lock_guard lock(mutex);
      waits = std::exchange(late_waits[stream], {});
    }
    for (uint64_t event : waits) real.event_wait(self, n, event, stream, error);
  }
  return real.download(self, n, target, buffer, offset, bytes, stream, sequence, error);
}

// A tensor with other strides than it has.
struct Dense {
  explicit Dense(const pg_tensor& of) : t(of) {
    int64_t step = 1;
    for (uint32_t i = of.rank; i-- > 0; step *= of.shape[i]) stride[i] = step;
    t.stride = stride;
  }
  pg_tensor t;
  int64_t stride[PG_MAX_RANK] = {};
};
bool dense(const pg_tensor& t) {
  return t.rank == 0 || std::memcmp(Dense(t).stride, t.stride, t.rank * sizeof(int64_t)) == 0;
}
uint32_t dtype_of(const pg_tensor& t) { return PG_DTYPE(t.dtype_code, t.dtype_bits); }

int32_t copy(void* self, uint32_t n, const pg_tensor* target, const pg_tensor* source, uint64_t stream,
             uint64_t sequence, pg_error* error) {
  if (is("copy_no_axes") && target->rank == 0) return PG_OK;
  pg_tensor to = *target, from = *source;
  Dense dense_to(to), dense_from(from);
  if (is("copy_target_strides")) to.stride = dense_to.stride;
  if (is("copy_source_strides")) from.stride = dense_from.stride;
  if (is("copy_offset")) to.offset = 0;
  int64_t stepping[PG_MAX_RANK];
  if (is("copy_broadcast")) {
    for (uint32_t i = 0; i < from.rank; i++) stepping[i] = from.stride[i] == 0 ? 1 : from.stride[i];
    from.stride = stepping;
  }
  if (is("copy_gaps") && !dense(to) && to.rank == 2 && to.stride[1] == 2) {
    pg_tensor beside = to;
    beside.offset += to.dtype_bits / 8;
    real.copy(self, n, &beside, &from, stream, sequence, error);
  }
  if (is("copy_rounds") && dtype_of(from) == PG_F32 && dtype_of(to) == PG_I32 && dense(from) && to.rank == 1) {
    std::vector<float> numbers(static_cast<size_t>(to.shape[0]));
    std::vector<int32_t> rounded;
    real.download(self, n, numbers.data(), from.buffer, from.offset, numbers.size() * 4, stream, sequence, error);
    real.stream_sync(self, n, stream, error);
    for (float v : numbers) rounded.push_back(static_cast<int32_t>(std::lround(v)));
    real.upload(self, n, to.buffer, to.offset, rounded.data(), rounded.size() * 4, stream, sequence, error);
    return real.stream_sync(self, n, stream, error);
  }
  return real.copy(self, n, &to, &from, stream, sequence, error);
}

int32_t fill(void* self, uint32_t n, const pg_tensor* target, const pg_number* value, uint64_t stream,
             uint64_t sequence, pg_error* error) {
  pg_tensor to = *target;
  pg_number number = *value;
  Dense as_dense(to);
  if (is("fill_strides")) to.stride = as_dense.stride;
  if (is("fill_through_double") && number.kind == PG_SCALAR_INT) number.kind = PG_SCALAR_NONE;
  if (is("fill_bool") && dtype_of(to) == PG_B8) number.real = std::trunc(number.real);
  static pg_number shared;  // of all threads
  if (is("shared_scratch")) {
    shared = number;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    number = shared;
  }
  return real.fill(self, n, &to, &number, stream, sequence, error);
}

int32_t peer(void* self, uint32_t n, uint64_t target, uint64_t target_offset, uint32_t from, uint64_t source,
             uint64_t source_offset, uint64_t bytes, uint64_t stream, uint64_t sequence, pg_error* error) {
  if (is("peer_offset")) source_offset = 0;
  return real.peer(self, n, target, target_offset, from, source, source_offset, bytes, stream, sequence, error);
}

// ---- kernels: results are changed after they have been computed ----

using Bytes = std::vector<unsigned char>;
uint64_t span_of(const pg_tensor& t) {
  uint64_t last = 0;
  for (uint32_t i = 0; i < t.rank; i++) {
    if (t.shape[i] == 0) return 0;
    last += static_cast<uint64_t>((t.shape[i] - 1) * t.stride[i]);
  }
  return (last + 1) * t.dtype_bits / 8;
}

void change(void* self, const pg_launch& l, const pg_tensor* tensor, pg_address at,
            const std::function<void(Bytes&)>& by) {
  if (tensor == nullptr) return;
  pg_error error{};
  error.size = PG_SIZE(pg_error, message);
  Bytes bytes(span_of(*tensor));
  if (bytes.empty() || real.stream_sync(self, l.device, l.stream, &error) != PG_OK) return;
  real.download(self, l.device, bytes.data(), at.buffer, at.offset, bytes.size(), l.stream, l.sequence, &error);
  real.stream_sync(self, l.device, l.stream, &error);
  by(bytes);
  real.upload(self, l.device, at.buffer, at.offset, bytes.data(), bytes.size(), l.stream, l.sequence, &error);
  real.stream_sync(self, l.device, l.stream, &error);
}
void change(void* self, const pg_launch& l, uint32_t output, const std::function<void(Bytes&)>& by) {
  change(self, l, l.outputs[output], l.output[output], by);
}

template <class T>
std::function<void(Bytes&)> each(std::function<T(T)> f) {
  return [f](Bytes& bytes) {
    for (size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
      T v;
      std::memcpy(&v, bytes.data() + i, sizeof v);
      v = f(v);
      std::memcpy(bytes.data() + i, &v, sizeof v);
    }
  };
}

int64_t count_of(const pg_tensor& t) {
  int64_t n = 1;
  for (uint32_t i = 0; i < t.rank; i++) n *= t.shape[i];
  return n;
}

// A kernel may serve many operators, and a launch names none.
struct Prepared {
  std::mutex mutex;
  std::map<void*, std::string> op;
} prepared_kernels;

int32_t prepare(void* self, uint32_t index, const pg_call* call, pg_prepared* out, pg_error* error) {
  const int32_t code = real_kernels.prepare(self, index, call, out, error);
  std::lock_guard guard(prepared_kernels.mutex);
  if (code == PG_OK) prepared_kernels.op[out->kernel] = call->op->name;
  return code;
}

int32_t launch(void* self, uint32_t index, void* kernel, const pg_launch* call, pg_error* error) {
  std::string op;
  {
    std::lock_guard guard(prepared_kernels.mutex);
    op = prepared_kernels.op[kernel];
  }
  pg_launch l = *call;
  const bool f32 = l.output_count > 0 && l.outputs[0] != nullptr && dtype_of(*l.outputs[0]) == PG_F32;
  if (is("empty_fails") && op == "add" && l.outputs[0] != nullptr && count_of(*l.outputs[0]) == 0)
    return refuse(error, PG_E_INTERNAL, "nothing to do");
  // Strides of an input that are taken for dense.
  std::vector<const pg_tensor*> inputs(l.inputs, l.inputs + l.input_count);
  std::vector<pg_address> at(l.input, l.input + l.input_count);
  Dense first(l.input_count > 0 && l.inputs[0] != nullptr ? *l.inputs[0] : pg_tensor{});
  if (is("input_strides") && op == "mul" && !inputs.empty() && inputs[0] != nullptr) inputs[0] = &first.t;
  if (is("swapped") && op == "sub" && l.input_count == 2 && inputs[0] != nullptr && inputs[1] != nullptr &&
      count_of(*inputs[0]) == count_of(*inputs[1])) {
    std::swap(inputs[0], inputs[1]);
    std::swap(at[0], at[1]);
  }
  // An order of axes that is asked for and not looked at.
  Dense result(l.output_count > 0 && l.outputs[0] != nullptr ? *l.outputs[0] : pg_tensor{});
  const bool over = l.input_count > 0 && l.output_count > 0 && l.output[0].buffer == l.input[0].buffer &&
                    l.output[0].offset == l.input[0].offset;
  std::vector<const pg_tensor*> outputs(l.outputs, l.outputs + l.output_count);
  if (is("order_ignored") && op == "mul" && !over && outputs[0] != nullptr) outputs[0] = &result.t;
  if (is("order_in_place") && op == "mul" && over && outputs[0] != nullptr) outputs[0] = &result.t;
  l.outputs = outputs.data();
  l.inputs = inputs.data();
  l.input = at.data();
  const int32_t code = real_kernels.launch(self, index, kernel, &l, error);
  if (code != PG_OK) return code;
  auto floats = [&](std::function<float(float)> f) { change(self, l, 0, each<float>(std::move(f))); };
  if (f32) {
    if (is("add_off") && op == "add") floats([](float v) { return v * 1.00001f; });
    if (is("relu_nan") && op == "relu") floats([](float v) { return std::isnan(v) ? 0 : v; });
    if (is("exp_infinity") && op == "exp") floats([](float v) { return std::isinf(v) ? 3e38f : v; });
    if (is("sum_short") && op == "sum") floats([](float v) { return v * 0.999f; });
    if (is("maximum_nan") && op == "maximum") floats([](float v) { return std::isnan(v) ? 0 : v; });
    if (is("matmul_off") && op == "matmul") floats([](float v) { return v + 0.01f; });
    if (is("softmax_off") && op == "softmax") floats([](float v) { return v * 0.99f; });
    if (is("sum_like_off") && op == "sum_like") floats([](float v) { return v * 1.01f; });
    if (is("relu_grad_off") && op == "relu_grad") floats([](float v) { return v * 0.5f; });
    if (is("uniform_bit") && op == "uniform") floats([](float v) { return v == 0 ? v : std::nextafterf(v, 0); });
    // Large ones only: no case of the table is as large.
    if (is("matmul_large") && op == "matmul" && count_of(*l.outputs[0]) == 80)
      floats([](float v) { return v * 1.05f; });
    if (is("over_input") && op == "mul" && l.output[0].buffer == l.input[0].buffer &&
        l.output[0].offset == l.input[0].offset && l.input_count == 2 && inputs[0] != nullptr)
      floats([](float v) { return v + 1; });
  }
  if (is("step_off") && op == "sgd")
    change(self, l, l.inputs[0], l.input[0], each<float>([](float v) { return v * 1.02f; }));
  if (is("double_as_float") && op == "exp" && dtype_of(*l.outputs[0]) == PG_F64)
    change(self, l, 0, each<double>([](double v) { return static_cast<float>(v); }));
  if (is("bfloat16_cut") && op == "mul" && dtype_of(*l.outputs[0]) == PG_BF16)
    change(self, l, 0, each<uint16_t>([](uint16_t v) { return static_cast<uint16_t>(v & 0xfff0); }));
  if (is("int_wide") && op == "mul" && dtype_of(*l.outputs[0]) == PG_I32)
    change(self, l, 0, each<int32_t>([](int32_t v) { return v < 0 ? v + 1 : v; }));
  if (is("bool_two") && op == "logical_not") change(self, l, 0, each<uint8_t>([](uint8_t v) { return v ? 0 : 1; }));
  if (is("extents") && op == "nonzero" && call->extents != nullptr) {
    real.stream_sync(self, l.device, l.stream, error);
    if (call->extents[0] > 0) call->extents[0]--;
  }
  // Keeps what it has computed by the address of its input, as if that were never written to.
  if (is("stale") && op == "matmul" && f32) {
    static std::map<std::pair<uint64_t, uint64_t>, Bytes> known;
    change(self, l, 0, [&](Bytes& bytes) {
      Bytes& before = known[{l.input[1].buffer, l.input[1].offset}];
      if (before.size() == bytes.size()) bytes = before;
      before = bytes;
    });
  }
  // Goes wrong from the second call of a prepared kernel on.
  if (is("second_call") && op == "neg" && f32) {
    static std::map<void*, int> calls;
    if (++calls[kernel] > 1) floats([](float v) { return v + 1; });
  }
  return code;
}

int32_t supports(void* self, uint32_t index, const pg_call* call, pg_error* why) {
  const int32_t code = real_kernels.supports(self, index, call, why);
  if (is("supports_silent") && code != PG_OK) why->message[0] = '\0';
  if (is("supports_code") && code != PG_OK) return PG_E_INTERNAL;
  // Whatever kind of numbers it is.
  const bool unknown = call->input_count > 0 && call->inputs[0] != nullptr && call->inputs[0]->dtype_code > 90;
  return is("supports_all") && unknown ? PG_OK : code;
}

// ---- what it tells of itself ----

int32_t start(void* self, uint64_t capacity, pg_error* error) {
  return real_profiler.start(self, is("profile_little") ? 2 : capacity, error);
}

int32_t drain(void* self, const pg_activity_sink* sink, uint64_t* lost, pg_error* error) {
  static std::vector<pg_activity> earlier;
  std::vector<pg_activity> told;
  const pg_activity_sink into{PG_SIZE(pg_activity_sink, add), 0, &told, [](void* context, const pg_activity* each) {
                                static_cast<std::vector<pg_activity>*>(context)->push_back(*each);
                              }};
  const int32_t code = real_profiler.drain(self, &into, lost, error);
  if (code != PG_OK) return code;
  if (is("profile_again")) told.insert(told.end(), earlier.begin(), earlier.end()), earlier = told;
  if (is("profile_counts")) *lost = 0;
  if (is("profile_oldest") && !told.empty()) told.pop_back();
  for (pg_activity& each : told) {
    if (is("profile_sequence")) each.sequence++;
    if (is("profile_clock")) each.begin -= int64_t{3600} * 1'000'000'000, each.end -= int64_t{3600} * 1'000'000'000;
    if (is("profile_kind") && each.kind == PG_ACTIVITY_UPLOAD) each.kind = PG_ACTIVITY_KERNEL;
    if (is("profile_bytes")) each.bytes /= 2;
    if (is("profile_backwards")) std::swap(each.begin, each.end), each.begin++;
    if (is("profile_overlaps")) each.begin -= 100'000'000;
    sink->add(sink->context, &each);
  }
  return PG_OK;
}

// ---- collectives ----

int32_t group_create(void* self, const pg_device_group* info, uint64_t* group, pg_error* error) {
  const uint32_t others[] = {0, 1};
  pg_device_group twice = *info;
  if (is("group_twice") && info->devices[0] == info->devices[1]) twice.devices = others;
  return real_collectives.group_create(self, &twice, group, error);
}

int32_t submit(void* self, uint64_t group, uint32_t rows, const pg_collective* const* calls, pg_error* error) {
  std::vector<pg_collective> changed;
  for (uint32_t i = 0; i < 2 * rows; i++) {
    changed.push_back(*calls[i]);
    pg_collective& call = changed.back();
    const bool reduces = call.kind == PG_COLLECTIVE_ALL_REDUCE;
    if (is("mean_is_sum") && call.reduction == PG_REDUCE_MEAN) call.reduction = PG_REDUCE_SUM;
    if (is("root_off") && call.kind == PG_COLLECTIVE_BROADCAST) call.peer = 1 - call.peer;
    if (is("any_root") && call.kind == PG_COLLECTIVE_BROADCAST) call.peer &= 1;
    if (is("reduce_short") && reduces && call.count > 1) call.count--;
    if (is("one_row") && reduces && i >= 2) call.kind = PG_COLLECTIVE_BARRIER;
    if (is("sends_nothing") && (call.kind == PG_COLLECTIVE_SEND || call.kind == PG_COLLECTIVE_RECEIVE)) call.count = 0;
  }
  std::vector<const pg_collective*> list;
  for (const pg_collective& each : changed) list.push_back(&each);
  return real_collectives.submit(self, group, rows, list.data(), error);
}

int32_t abort_group(void* self, uint64_t group, const char* reason, pg_error* error) {
  return is("abort_ignored") ? PG_OK : real_collectives.abort(self, group, reason, error);
}

// ---- capture ----

int32_t write_block(void* self, uint32_t index, void* kernel, const pg_launch* call, void* block, pg_error* error) {
  static std::map<void*, int> written;
  if (is("block_once") && written[kernel]++ > 0) return PG_OK;
  return real_capture.write(self, index, kernel, call, block, error);
}
// With the numbers of the first launch, which a block that nobody reads does not change.
int32_t launch_captured(void* self, uint32_t index, void* kernel, const pg_launch* call, pg_address block,
                        pg_error* error) {
  if (is("keeps_numbers")) block = {0, 0};
  return real_capture.launch(self, index, kernel, call, block, error);
}
int32_t plan_launch(void* self, uint32_t n, uint64_t plan, uint64_t stream, uint64_t sequence, pg_error* error) {
  static std::map<uint64_t, int> launched;
  if (is("plan_once") && launched[plan]++ > 0) return PG_OK;
  return real.plan_launch(self, n, plan, stream, is("plan_number") ? sequence + 1 : sequence, error);
}

// ---- the plugin ----

int32_t open(const pg_host* host, void** self, pg_error* error) {
  const char* wanted = std::getenv("PERIGEE_MUTANT");
  mutation = wanted == nullptr ? "" : wanted;
  if (is("opens_once") && opened > 0) return refuse(error, PG_E_FAILED_PRECONDITION, "it has been open");
  void* library = dlopen(SIM, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return refuse(error, PG_E_NOT_FOUND, dlerror());
  entry = *static_cast<const pg_plugin*>(dlsym(library, "pg_plugin_v1"));
  const int32_t code = entry.open(host, self, error);
  if (code != PG_OK) return code;
  opened++;
  const auto* table = static_cast<const pg_device*>(entry.iface(*self, PG_IFACE_DEVICE));
  std::memcpy(&real, table, table->size);
  const auto* list = static_cast<const pg_kernels*>(entry.iface(*self, PG_IFACE_KERNELS));
  std::memcpy(&real_kernels, list, list->size);
  device = real;
  device.type = type.c_str();
  device.aliases = "";
  device.properties = properties;
  device.alloc = alloc;
  device.free = release;
  device.stream_create = stream_create;
  device.stream_destroy = stream_destroy;
  device.stream_sync = stream_sync;
  device.event_record = event_record;
  device.event_wait = event_wait;
  device.event_query = event_query;
  device.event_sync = event_sync;
  device.event_elapsed = event_elapsed;
  device.upload = upload;
  device.download = download;
  device.copy = copy;
  device.fill = fill;
  device.peer = peer;
  device.plan_launch = plan_launch;
  const auto* block = static_cast<const pg_capture*>(entry.iface(*self, PG_IFACE_CAPTURE));
  std::memcpy(&real_capture, block, block->size);
  capture = real_capture;
  capture.launch = launch_captured;
  capture.write = write_block;
  kernels = real_kernels;
  kernels.device_type = is("other_type") ? "cpu" : type.c_str();
  kernels.launch = launch;
  kernels.supports = supports;
  kernels.prepare = prepare;
  const auto* told = static_cast<const pg_profiler*>(entry.iface(*self, PG_IFACE_PROFILER));
  std::memcpy(&real_profiler, told, told->size);
  profiler = real_profiler;
  profiler.device_type = type.c_str();
  profiler.start = start;
  profiler.drain = drain;
  const auto* carried = static_cast<const pg_device_collectives*>(entry.iface(*self, PG_IFACE_DEVICE_COLLECTIVES));
  std::memcpy(&real_collectives, carried, carried->size);
  collectives = real_collectives;
  collectives.device_type = type.c_str();
  collectives.group_create = group_create;
  collectives.submit = submit;
  collectives.abort = abort_group;
  return PG_OK;
}

const void* iface(void* self, const char* id) {
  static pg_device copies[64];
  static int next = 0;
  if (std::strcmp(id, PG_IFACE_DEVICE) == 0) return is("moving_table") ? &(copies[next++ % 64] = device) : &device;
  if (std::strcmp(id, PG_IFACE_KERNELS) == 0) return &kernels;
  if (std::strcmp(id, PG_IFACE_PROFILER) == 0) return &profiler;
  if (std::strcmp(id, PG_IFACE_DEVICE_COLLECTIVES) == 0) return &collectives;
  if (std::strcmp(id, PG_IFACE_CAPTURE) == 0) return &capture;
  return is("any_table") ? &device : entry.iface(self, id);
}

int32_t close(void* self, pg_error* error) {
  const int32_t code = entry.close(self, error);
  if (is("close_fails")) return refuse(error, PG_E_INTERNAL, "it does not want to");
  return code;
}

}  // namespace

extern "C" {
extern __attribute__((visibility("default"))) const pg_plugin pg_plugin_v1;
const pg_plugin pg_plugin_v1 = {PG_MAGIC,
                                PG_SIZE(pg_plugin, close),
                                PG_ABI_MINOR,
                                0,
                                "mutant",
                                "1.0.0",
                                "device,kernels,profiler,device_collectives",
                                open,
                                iface,
                                close};
}
