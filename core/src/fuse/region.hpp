// SPDX-License-Identifier: Apache-2.0
// Several launches as one kernel of a compiler's (perigee/compiler.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "fuse/launches.hpp"
#include "registry/plugin.hpp"

namespace perigee {

// A region as compilers see it. Values are numbered in the order in which they are met; each stands for what
// an operand holds at a time.
struct RegionView {
  std::vector<uint32_t> operands;  // by value
  std::vector<uint32_t> last;      // by value: the one that lies in the same operand last
  std::vector<uint32_t> inputs;    // values that no node makes
  std::vector<uint32_t> launches;  // by node
  uint64_t attr_bytes = 0;

  std::vector<std::vector<uint32_t>> numbers;  // of nodes: inputs and outputs
  std::vector<pg_node> nodes;
  std::vector<const pg_node*> node_pointers;
  std::vector<const pg_tensor*> values;
  std::vector<uint8_t> constant;  // by value
  pg_region raw{};

  // Of those launches that are marked, all of the device.
  void draw(const Launches& list, const std::vector<uint8_t>& marked, Device& device);
};

// A piece, compiled for the outputs that are wanted.
struct RegionKernel {
  std::vector<uint32_t> outputs;  // values
  std::vector<uint64_t> overwrites;
  const LoadedPlugin* by = nullptr;
  void* prepared = nullptr;  // NULL: it could not be compiled
  uint64_t workspace = 0, pack_bytes = 0;
  const char* description = nullptr;  // what the compiler says of it
  std::vector<const pg_tensor*> input_views, output_views;
  std::vector<uint32_t> input_operands, output_operands;
  // What was made of constants, and of which: storages as they were.
  struct Source {
    uint32_t operand;
    StorageRef storage;
    uint64_t version;
    int64_t offset;
  };
  std::vector<Source> sources;
  StorageRef packed;
  bool filled = false;  // it has what the sources come to
  ~RegionKernel();

  bool is_packed(const Launches& list) const;
  void pack(const Launches& list, Device& device, const pg_launch& launch);
};

struct Region {
  const LoadedPlugin* by = nullptr;
  Device* device = nullptr;
  RegionView view;
  std::vector<uint32_t> raised;                        // operands, whose version a launch raises
  std::vector<uint32_t> finals;                        // values that may be wanted outside
  std::vector<uint8_t> needed;                         // by final: it is, whoever holds the results
  std::vector<uint8_t> attrs;                          // the packed structs of all nodes
  std::vector<std::unique_ptr<RegionKernel>> kernels;  // by wanted outputs, the last used in front
  const char* names = "";                              // of the operators
  uint32_t end = 0;                                    // its last launch, in whose place it is launched
  bool is_long = false;                                // PG_CLUSTER_LONG

  // The kernel for those finals that outlive the call or are needed. NULL: launch them one by one.
  RegionKernel* kernel_for(const Launches& list, const std::vector<uint8_t>& outlives);
  // Brings the run-time attributes in `attrs` up to the call's.
  void read_numbers(const Launches& list);
  void launch(Launches& list, RegionKernel& kernel);
};

// Asks the compilers of each device that something is launched on, and cuts what they claim into pieces that may be
// moved together.
std::vector<std::unique_ptr<Region>> cut_regions(const Launches& list);

}  // namespace perigee
