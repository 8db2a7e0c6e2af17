// SPDX-License-Identifier: Apache-2.0
// A device in one file: 64 MiB of memory behind handles, and four operators on float32. See README.md.
#include <perigee/device.hpp>
#include <perigee/kernel.hpp>
#include <perigee/kernels/reference/copy.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

namespace {

constexpr uint64_t kMemory = 64 << 20;

// ---- the device: memory, copies, fill. It has no streams: every call has happened when it returns ----

class Device : public pg::SynchronousDevice {
 public:
  static constexpr const char *type = "tiny", *aliases = "";

  uint32_t count(std::string&) { return 1; }
  void properties(uint32_t, pg_device_properties& out) {
    std::lock_guard lock(mutex_);
    std::snprintf(out.name, sizeof out.name, "a tiny device");
    out.memory_total = kMemory;
    out.memory_free = kMemory - used_;
    out.stream_count = out.compute_units = 1;
    out.alignment = 16;
  }

  uint64_t alloc(uint32_t, uint32_t kind, uint64_t bytes) {
    if (kind != PG_MEMORY_DEVICE) pg::fail_support("tiny has no pinned memory");
    std::lock_guard lock(mutex_);
    if (bytes > kMemory - used_) {
      pg::fail(PG_E_OUT_OF_MEMORY, pg::format("tiny has %llu MiB free, %llu were asked for",
                                              static_cast<unsigned long long>((kMemory - used_) >> 20),
                                              static_cast<unsigned long long>(bytes >> 20)));
    }
    used_ += bytes;
    blocks_[++last_] = {std::make_unique<std::byte[]>(bytes), bytes};
    return last_;  // a handle, not an address: the host cannot reach this memory but through upload and download
  }
  void free(uint32_t, uint32_t, uint64_t buffer) {
    std::lock_guard lock(mutex_);
    auto block = blocks_.find(buffer);
    if (block == blocks_.end()) pg::fail_argument("tiny knows no such buffer");
    used_ -= block->second.bytes;
    blocks_.erase(block);
  }

  void upload(uint32_t, pg_address target, const void* source, uint64_t bytes, pg::Ticket) {
    if (bytes > 0) std::memcpy(at(target), source, bytes);
  }
  void download(uint32_t, void* target, pg_address source, uint64_t bytes, pg::Ticket) {
    if (bytes > 0) std::memcpy(target, at(source), bytes);
  }
  // Any strides and any pair of dtypes: a vendor has a kernel for this; in the processor's reach the SDK has one.
  void copy(uint32_t, const pg_tensor& target, const pg_tensor& source, pg::Ticket) {
    pg::reference::copy_elements(operand(target), operand(source));
  }
  void fill(uint32_t, const pg_tensor& target, const pg_number& value, pg::Ticket) {
    pg::reference::fill_elements(operand(target), value);
  }

  // What a handle stands for: for this plugin's kernels, and through `native` for other people's.
  std::byte* at(pg_address address) {
    std::lock_guard lock(mutex_);
    auto block = blocks_.find(address.buffer);
    if (block == blocks_.end()) pg::fail_argument("tiny knows no such buffer");
    return block->second.data.get() + address.offset;
  }
  uint64_t native(uint32_t, const char* what, uint64_t handle) {
    if (std::strcmp(what, "buffer") != 0) pg::fail_support(std::string("tiny has no ") + what);
    return reinterpret_cast<uint64_t>(at({handle, 0}));
  }

 private:
  struct Block {
    std::unique_ptr<std::byte[]> data;
    uint64_t bytes;
  };
  pg::reference::Operand operand(const pg_tensor& t) {
    pg::reference::check_dtype(pg::dtype_of(t));
    return {t, pg::element_count(t) == 0 ? nullptr : at({t.buffer, t.offset})};
  }

  std::mutex mutex_;
  std::map<uint64_t, Block> blocks_;
  uint64_t used_ = 0, last_ = 0;
};

using Plugin = pg::Provides<pg::DeviceTable<Device>, pg::KernelTable<"tiny">>;

// NULL where a tensor is empty.
float* floats(pg_address address) {
  return address.buffer == 0 ? nullptr : reinterpret_cast<float*>(pg::device<Plugin>().at(address));
}

// ---- kernels: what they take, and why not the rest ----

struct Elementwise : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    for (uint32_t i = 0; i < call.input_count(); i++) call.need(call.has(i), "takes tensors, no numbers");
    call.need_dtypes({PG_F32});
    call.need_dense();
    if (call.input_count() == 2) call.need(pg::same_shape(call.in(0), call.in(1)), "does not broadcast");
  }
  Elementwise(const pg::KernelCall& call, pg::Plan&)
      : op_(call.is("add")   ? add
            : call.is("mul") ? mul
                             : relu),
        count_(pg::element_count(call.out(0))) {}

  void launch(const pg_launch& launch) override {
    const float *x = floats(launch.input[0]), *y = op_ == relu ? nullptr : floats(launch.input[1]);
    float* out = floats(launch.output[0]);
    pg::parallel_for(count_, 4096, [=, op = op_](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++)
        out[i] = op == add ? x[i] + y[i] : op == mul ? x[i] * y[i] : x[i] < 0 ? 0 : x[i];  // NaN stays NaN
    });
  }

 private:
  enum { add, mul, relu } op_;
  int64_t count_;
};
PG_KERNEL("add", Elementwise);
PG_KERNEL("mul", Elementwise);
PG_KERNEL("relu", Elementwise);

// Reads its operands through their strides, so it takes transposed and broadcast matrices as they are.
struct Matmul : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    call.need_dtypes({PG_F32});
    call.need(call.in(0).rank == 2 && call.in(1).rank == 2, "takes two matrices");
  }
  Matmul(const pg::KernelCall& call, pg::Plan&)
      : a_(call.in(0), call.attr<bool>("transpose_x")), b_(call.in(1), call.attr<bool>("transpose_y")) {}

  void launch(const pg_launch& launch) override {
    const float *a = floats(launch.input[0]), *b = floats(launch.input[1]);
    float* out = floats(launch.output[0]);
    pg::parallel_for(a_.rows, 8, [=, x = a_, y = b_](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        float* row = std::fill_n(out + i * y.columns, y.columns, 0.0f) - y.columns;
        for (int64_t k = 0; k < x.columns; k++)
          for (int64_t j = 0; j < y.columns; j++) row[j] += a[x.at(i, k)] * b[y.at(k, j)];
      }
    });
  }

 private:
  struct Matrix {
    Matrix(const pg_tensor& t, bool transposed)
        : rows(t.shape[transposed]),
          columns(t.shape[!transposed]),
          down(t.stride[transposed]),
          right(t.stride[!transposed]) {}
    int64_t at(int64_t row, int64_t column) const { return row * down + column * right; }
    int64_t rows, columns, down, right;
  };
  Matrix a_, b_;
};
PG_KERNEL("matmul", Matmul);

}  // namespace

PG_PLUGIN(Plugin, "tiny_device", "1.0.0", "device,kernels");
