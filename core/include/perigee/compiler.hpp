// SPDX-License-Identifier: Apache-2.0
// perigee/compiler.hpp: how compilers of regions are written (compiler.h says what they promise).
//
//   struct Joiner {
//     static void claim(const pg::Region& region, uint32_t* cluster);             // of each node; 0: none
//     static pg::Kernel* compile(const pg::Region& piece, pg::Plan& plan);        // pg::fail_support: one by one
//   };
//   ... if (std::strcmp(id, PG_IFACE_COMPILER) == 0) return &pg::compiler_table<Joiner, "cpu">;
#pragma once

#include "perigee/capture.hpp"
#include "perigee/compiler.h"
#include "perigee/kernel.hpp"

namespace pg {

// A region, and its nodes as the calls that kernels see.
class Region {
 public:
  explicit Region(const pg_region* raw) : raw(raw) {}
  const pg_region* const raw;

  uint32_t node_count() const { return raw->node_count; }
  const pg_node& node(uint32_t i) const { return *raw->nodes[i]; }
  const pg_tensor& value(uint32_t number) const { return *raw->values[number]; }
  bool frozen() const { return raw->size >= PG_SIZE(pg_region, constant) && (raw->flags & PG_REGION_FROZEN) != 0; }
  bool constant(uint32_t number) const { return frozen() && raw->constant != nullptr && raw->constant[number] != 0; }

  // What a node is called with, for KernelCall; points into itself.
  struct Call {
    std::vector<const pg_tensor*> inputs, outputs;
    pg_call call{};
  };
  void describe(uint32_t node, Call& into) const {
    const pg_node& n = *raw->nodes[node];
    auto at = [&](uint32_t number) { return number == PG_VALUE_NONE ? nullptr : raw->values[number]; };
    into.inputs.clear();
    into.outputs.clear();
    for (uint32_t i = 0; i < n.input_count; i++) into.inputs.push_back(at(n.inputs[i]));
    for (uint32_t i = 0; i < n.output_count; i++) into.outputs.push_back(at(n.outputs[i]));
    into.call.size = PG_SIZE(pg_call, attrs);
    into.call.device = raw->device;
    into.call.op = n.op;
    into.call.input_count = n.input_count;
    into.call.output_count = n.output_count;
    into.call.inputs = into.inputs.data();
    into.call.groups = n.groups;
    into.call.outputs = into.outputs.data();
    into.call.attrs = n.attrs;
  }
};

// A kernel of a region that says what it has done (pg_compiler.describe).
class DescribedKernel : public Kernel {
 public:
  virtual const char* description() const = 0;
};

template <class Compiler, OpName device_type>
struct CompilerTable {
  static constexpr OpName type = device_type;
  static int32_t claim(void*, const pg_region* region, uint32_t* cluster, pg_error* error) noexcept {
    return guard(error, "claim", [&] { Compiler::claim(Region(region), cluster); });
  }
  static int32_t compile(void*, const pg_region* piece, pg_prepared* out, pg_error* error) noexcept {
    return guard(error, "compile", [&] {
      Plan plan;
      out->kernel = Compiler::compile(Region(piece), plan);
      out->workspace = plan.workspace;
      out->pack_bytes[0] = plan.pack_bytes[0];
    });
  }
  static int32_t launch(void*, void* kernel, const pg_launch* launch, pg_error* error) noexcept {
    return guard(error, "region", [&] { static_cast<Kernel*>(kernel)->launch(*launch); });
  }
  static void release(void*, void* kernel) noexcept { delete static_cast<Kernel*>(kernel); }
  static int32_t pack(void*, void* kernel, const pg_launch* launch, pg_address target, pg_error* error) noexcept {
    return guard(error, "region", [&] { static_cast<Kernel*>(kernel)->pack(0, *launch, target); });
  }
  static const char* describe(void*, void* kernel) noexcept {
    const auto* described = dynamic_cast<const DescribedKernel*>(static_cast<Kernel*>(kernel));
    return described != nullptr ? described->description() : nullptr;
  }
  // Of kernels that are CapturedKernels.
  static int32_t measure(void*, void* kernel, const pg_launch* launch, uint64_t* bytes, pg_error* error) noexcept {
    return guard(error, "region", [&] { *bytes = detail::captured_kernel(kernel).runtime(*launch, nullptr); });
  }
  static int32_t launch_captured(void*, void* kernel, const pg_launch* launch, pg_address block,
                                 pg_error* error) noexcept {
    return guard(error, "region", [&] { detail::captured_kernel(kernel).launch_captured(*launch, block); });
  }
  static int32_t write(void*, void* kernel, const pg_launch* launch, void* block, pg_error* error) noexcept {
    return guard(error, "region", [&] { detail::captured_kernel(kernel).runtime(*launch, block); });
  }
};

template <class Compiler, OpName device_type>
inline constexpr pg_compiler compiler_table = {PG_SIZE(pg_compiler, write),
                                               0,
                                               CompilerTable<Compiler, device_type>::type.text,
                                               CompilerTable<Compiler, device_type>::claim,
                                               CompilerTable<Compiler, device_type>::compile,
                                               CompilerTable<Compiler, device_type>::launch,
                                               CompilerTable<Compiler, device_type>::release,
                                               CompilerTable<Compiler, device_type>::pack,
                                               CompilerTable<Compiler, device_type>::describe,
                                               CompilerTable<Compiler, device_type>::measure,
                                               CompilerTable<Compiler, device_type>::launch_captured,
                                               CompilerTable<Compiler, device_type>::write};

}  // namespace pg
