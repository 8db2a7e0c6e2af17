// SPDX-License-Identifier: Apache-2.0
// What an operator call comes down to for given descriptions: outputs' descriptions and a prepared kernel. Made once
// per (operator, device, descriptions, static attributes) and found again by a hash and a compare.
#pragma once

#include <memory>
#include <vector>

#include "builder/builder.hpp"
#include "tape/tape.hpp"

namespace perigee {

struct BetweenProcesses;

enum class How : uint8_t {
  kernel,
  view,
  clone,
  cast,
  copy,
  fill,
  transfer,
  decompose,
  reshape_copy,
  apart,
  collective
};

// Of an input that a kernel takes dense only.
constexpr uint8_t kDensifyRead = 1, kDensifyWrite = 2;  // kDensifyWrite: what was written goes back to where it lies

struct OutputPlan {
  MetaRef meta;
  int64_t view_offset = 0;  // bytes
  bool dynamic = false;
  bool absent = false;  // a hidden one that a lean call leaves out
};

struct Signature {
  static inline std::atomic<uint64_t> made{0};
  const uint64_t serial = ++made;  // never given twice, as an address may be
  std::atomic<uint32_t> refs{1};
  const Op* op = nullptr;
  Device* device = nullptr;
  bool in_place = false;
  bool lean = false;
  How how = How::kernel;
  double fill = 0;  // How::fill: where the operator does not say
  uint64_t hash = 0;
  std::vector<MetaRef> inputs;  // null where absent
  std::vector<uint32_t> groups;
  std::vector<uint8_t> attrs;       // the static part
  std::vector<OutputPlan> outputs;  // all, hidden ones last
  uint32_t visible = 0;
  std::vector<uint8_t> mutates;  // by declared input: whether the kernel writes into it
  bool dynamic = false, writes = false;
  // Nothing but: allocate outputs, launch, note. What most calls are, and worth a short way.
  static constexpr uint32_t plain_inputs = 6, plain_outputs = 4;
  bool plain = false;
  // A kernel's.
  Kernel kernel;
  void* prepared = nullptr;
  uint64_t workspace = 0, stream = 0;
  uint64_t pack_bytes[8] = {};
  bool packs = false;
  std::vector<uint8_t> densify;      // inputs that the kernel wants dense: a kDensify; empty: none
  std::vector<MetaRef> dense_metas;  // by input: what those are described as
  std::vector<const pg_tensor*> input_views, output_views;  // null where absent
  std::unique_ptr<const BetweenProcesses> between;          // How::collective

  std::atomic<const char*> described{nullptr};  // what profiles say of the shapes; made when first asked for

  Signature();
  ~Signature();
  static void destroy(Signature* s) { delete s; }
};
using SignatureRef = Ref<Signature>;

// What identifies a signature.
struct SignatureKey {
  const Op* op;
  Device* device;
  Tensor* const* inputs;
  uint32_t input_count;
  const uint32_t* groups;
  const void* attrs;
  bool in_place;
  bool lean;  // nobody reads the hidden outputs
};
// Whether nobody will read the hidden outputs of a call: it does not ask for them, and no tape will hold them. False
// for operators that have none.
bool is_lean(const Op& op, Tensor* const* inputs, uint32_t input_count, const uint32_t* groups, uint32_t output_count);
uint64_t hash_key(const SignatureKey& key);
bool matches(const Signature& s, const SignatureKey& key, uint64_t hash);
// The calling thread's recently used signatures: NULL when it is not among them. Valid until its next call.
Signature* recent_signature(const SignatureKey& key, uint64_t hash);
// Finds or makes one. Throws with the reasons when nothing can compute the call.
SignatureRef find_signature(const SignatureKey& key, uint64_t hash);
// Whether something could compute the call; throws where its schema refuses it. Prepares nothing. What an operator that
// is composed of others needs is not looked at.
bool has_kernel(const SignatureKey& key);
// Releases prepared kernels: when there are new kernels, so that all calls are decided alike.
void clear_signatures();
uint64_t signature_generation();  // how often that has been done: who keeps signatures looks at it
// At shutdown: what is still kept somewhere asks no plugin for anything when it goes.
void end_signatures();

}  // namespace perigee
