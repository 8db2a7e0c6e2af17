// SPDX-License-Identifier: Apache-2.0
#include "scenario.hpp"

#include <memory>

namespace scenario {
namespace {

using namespace contract;

constexpr uint64_t kBytes = 64;
constexpr int kNumbers = 16;

Outcome* current = nullptr;

void note_log(int32_t level, const char* message) {
  if (level >= PG_LOG_WARNING) current->warnings.push_back(message);
}

// A plugin whose calls may fail. What was made is put away whatever happened.
class Use {
 public:
  Use(const pg_plugin& entry, void* self, Outcome& outcome) : entry_(entry), self_(self), out_(outcome) {
    device_ = static_cast<const pg_device*>(entry.iface(self, PG_IFACE_DEVICE));
    kernels_ = static_cast<const pg_kernels*>(entry.iface(self, PG_IFACE_KERNELS));
  }

  template <class F, class... A>
  bool try_call(const char* step, F function, A... arguments) {
    Code code;
    code.code = function(self_, arguments..., &code.error);
    if (code.code != PG_OK) out_.failures.push_back({step, code});
    return code.code == PG_OK;
  }
  // Again where it failed: a failure must not keep an object. (With a lost device all of it is gone.)
  template <class F, class... A>
  void put_away(const char* step, F function, A... arguments) {
    if (!try_call(step, function, arguments...)) {
      if ((out_.failures.back().code.error.flags & PG_ERROR_DEVICE_LOST) != 0) return;
      Code again;
      again.code = function(self_, arguments..., &again.error);
    }
  }

  // On one device: 0 to 15 go up, are doubled by a kernel and come down.
  bool use_device(uint32_t on) {
    pg_device_properties properties{};
    properties.size = PG_SIZE(pg_device_properties, reserved);
    uint64_t s = 0, other = 0, start = 0, stop = 0, a = 0, b = 0, pinned = 0;
    bool right = false;
    if (try_call("properties", device_->properties, on, &properties) &&
        try_call("alloc", device_->alloc, on, PG_MEMORY_DEVICE, kBytes, &a) &&
        try_call("alloc", device_->alloc, on, PG_MEMORY_DEVICE, kBytes, &b) &&
        try_call("alloc pinned", device_->alloc, on, PG_MEMORY_PINNED, kBytes, &pinned) &&
        try_call("stream_create", device_->stream_create, on, &s) &&
        try_call("stream_create", device_->stream_create, on, &other) &&
        try_call("event_create", device_->event_create, on, &start) &&
        try_call("event_create", device_->event_create, on, &stop)) {
      right = work(on, s, other, start, stop, a, b, reinterpret_cast<float*>(pinned));
    }
    // Nothing may be pending when memory goes; on a lost device nothing is.
    for (uint64_t stream : {s, other}) {
      if (stream != 0) try_call("stream_sync", device_->stream_sync, on, stream);
    }
    for (uint64_t buffer : {a, b}) {
      if (buffer != 0) put_away("free", device_->free, on, PG_MEMORY_DEVICE, buffer);
    }
    if (pinned != 0) put_away("free pinned", device_->free, on, PG_MEMORY_PINNED, pinned);
    for (uint64_t event : {start, stop}) {
      if (event != 0) try_call("event_destroy", device_->event_destroy, on, event);
    }
    for (uint64_t stream : {s, other}) {
      if (stream != 0) try_call("stream_destroy", device_->stream_destroy, on, stream);
    }
    return right;
  }

 private:
  bool work(uint32_t on, uint64_t s, uint64_t other, uint64_t start, uint64_t stop, uint64_t a, uint64_t b,
            float* pinned) {
    Tensor numbers(PG_F32, {kNumbers});
    pg_tensor x = describe(numbers, a), y = describe(numbers, b);
    const pg_tensor *from = &x, *to = &y;
    for (int i = 0; i < kNumbers; i++) pinned[i] = static_cast<float>(i);
    uint64_t n = 0;
    bool well =
        try_call("event_record", device_->event_record, on, start, s) &&
        try_call("upload", device_->upload, on, a, uint64_t{0}, static_cast<const void*>(pinned), kBytes, s, ++n) &&
        try_call("copy", device_->copy, on, to, from, s, ++n) && add(on, s, a, b) && multiply(on, s, a, b) &&
        capture(on, s, to) && try_call("event_record", device_->event_record, on, stop, s) &&
        try_call("event_wait", device_->event_wait, on, stop, other) &&
        try_call("download", device_->download, on, static_cast<void*>(pinned), b, uint64_t{0}, kBytes, other, ++n) &&
        try_call("stream_sync", device_->stream_sync, on, other) &&
        try_call("event_sync", device_->event_sync, on, stop) &&
        try_call("event_query", device_->event_query, on, stop);
    for (int i = 0; well && i < kNumbers; i++) well = pinned[i] == 2.0f * static_cast<float>(i);
    return well;
  }

  bool add(uint32_t on, uint64_t s, uint64_t a, uint64_t b) { return operate("add", {kNumbers}, on, s, a, b, b); }

  // A product that nobody reads, by cuBLASLt.
  bool multiply(uint32_t on, uint64_t s, uint64_t a, uint64_t b) {
    uint64_t c = 0;
    if (!try_call("alloc", device_->alloc, on, PG_MEMORY_DEVICE, kBytes, &c)) return false;
    bool well = operate("matmul", {4, kNumbers / 4}, on, s, a, b, c);
    well = try_call("stream_sync", device_->stream_sync, on, s) && well;
    put_away("free", device_->free, on, PG_MEMORY_DEVICE, c);
    return well;
  }

  // c = op(a, b), float32 tensors of one shape.
  bool operate(const std::string& op, const Shape& shape, uint32_t on, uint64_t s, uint64_t a, uint64_t b, uint64_t c) {
    Call call(op);
    Tensor numbers(PG_F32, shape);
    pg_tensor meta = describe(numbers);
    const pg_tensor* metas[] = {&meta, &meta};
    uint32_t groups[] = {1, 1}, at = 0;
    const std::string named = call.op->scalar == nullptr ? op : "*";
    while (at < kernels_->count && kernels_->kernels[at]->op != named) at++;
    pg_call request = {PG_SIZE(pg_call, attrs), on, call.op, 2, 1, metas, groups, metas, call.attrs.data()};
    pg_prepared prepared{};
    prepared.size = PG_SIZE(pg_prepared, pack_bytes);
    const pg_call* asked = &request;
    if (!try_call("supports", kernels_->supports, at, asked) ||
        !try_call("prepare", kernels_->prepare, at, asked, &prepared)) {
      return false;
    }
    pg_address at_all[] = {{a, 0}, {b, 0}, {c, 0}, {0, 0}};
    bool launched = prepared.workspace == 0 ||
                    try_call("alloc", device_->alloc, on, PG_MEMORY_DEVICE, prepared.workspace, &at_all[3].buffer);
    if (launched) {
      pg_launch launch = {
          PG_SIZE(pg_launch, extents), on,        s,      1, 2, 1, metas, metas, groups, at_all, at_all + 2, nullptr,
          call.attrs.data(),           at_all[3], nullptr};
      const pg_launch* given = &launch;
      launched = try_call("launch", kernels_->launch, at, prepared.kernel, given);
    }
    if (at_all[3].buffer != 0) {
      launched = try_call("stream_sync", device_->stream_sync, on, s) && launched;
      put_away("free", device_->free, on, PG_MEMORY_DEVICE, at_all[3].buffer);
    }
    kernels_->release(self_, at, prepared.kernel);
    return launched;
  }

  // A plan that is made and put away again, and one that runs: it fills a byte range that nobody reads.
  bool capture(uint32_t on, uint64_t s, const pg_tensor* like) {
    if (!PG_HAS(device_, pg_device, plan_destroy) || device_->capture_begin == nullptr) return true;
    uint64_t spare = 0, plan = 0, n = 100;
    if (!try_call("alloc", device_->alloc, on, PG_MEMORY_DEVICE, kBytes, &spare)) return false;
    pg_tensor target = *like;
    target.buffer = spare;
    const pg_tensor* given = &target;
    const pg_number three = pg::make_number(3.0);
    bool well = try_call("capture_begin", device_->capture_begin, on, s);
    if (well) {
      well = try_call("fill", device_->fill, on, given, &three, s, ++n);
      well = try_call("capture_end", device_->capture_end, on, s, &plan) && well;
    }
    if (well) well = try_call("plan_launch", device_->plan_launch, on, plan, s, ++n);
    well = try_call("stream_sync", device_->stream_sync, on, s) && well;
    if (plan != 0) put_away("plan_destroy", device_->plan_destroy, on, plan);
    put_away("free", device_->free, on, PG_MEMORY_DEVICE, spare);
    return well;
  }

  const pg_plugin& entry_;
  void* self_;
  Outcome& out_;
  const pg_device* device_;
  const pg_kernels* kernels_;
};

}  // namespace

std::string Outcome::text() const {
  std::string all;
  for (const Failure& f : failures) all += f.step + ": " + f.code.message() + "\n";
  for (const std::string& w : warnings) all += "log: " + w + "\n";
  return all;
}

Outcome run(uint32_t devices) {
  Outcome out;
  current = &out;
  on_log = note_log;
  const pg_plugin& entry = load(CUDA_PLUGIN);
  void* self = nullptr;
  Code code;
  code.code = entry.open(&host(), &self, &code.error);
  out.opened = code.code == PG_OK;
  if (!out.opened) {
    out.failures.push_back({"open", code});
    on_log = nullptr;
    return out;
  }
  uint32_t count = 0;
  auto* device = static_cast<const pg_device*>(entry.iface(self, PG_IFACE_DEVICE));
  code.code = device->count(self, &count, &code.error);
  if (code.code != PG_OK || count == 0) out.failures.push_back({"count", code});
  Use use(entry, self, out);
  out.right = count >= devices;
  for (uint32_t i = 0; i < devices && i < count; i++) out.right &= use.use_device(i);
  Code closing;
  closing.code = entry.close(self, &closing.error);
  out.closed = closing.code == PG_OK;
  if (!out.closed) out.failures.push_back({"close", closing});
  on_log = nullptr;
  return out;
}

}  // namespace scenario
