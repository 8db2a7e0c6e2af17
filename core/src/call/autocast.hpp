// SPDX-License-Identifier: Apache-2.0
// The autocast interposer: inside of a scope, operators get their floating inputs in the dtype that their numeric class
// asks for (PG_NUMERIC_*). The casts are operators too, so gradients come back in the dtype of what was cast, and a
// graph records them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "builder/builder.hpp"
#include "tape/tape.hpp"

namespace perigee {

// Casts of leaves that require gradients (a model's parameters): one for all uses until the leaf is written to.
class CastCache {
 public:
  // The cast of `x`, which may be a tensor of `graph` or used there.
  TensorRef get(Tensor& x, uint32_t dtype, Graph* graph);

 private:
  struct Entry {
    TensorRef source, cast;
    const Storage* storage;
    const Node* leaf;
    uint64_t version;
    bool recorded;  // on the tape
  };
  std::map<std::tuple<const Tensor*, uint32_t, const Graph*>, Entry> entries_;
};

// The cast of a parameter that is kept beside it until it is written to; made where there is none. Without gradients.
TensorRef kept_cast(Tensor& x, uint32_t dtype);

// One scope's rules; does not change. Scopes inside of each other share the outermost one's cache.
struct Autocast {
  std::atomic<uint32_t> refs{1};
  uint32_t otherwise = 0;                                 // for device types not listed; 0: off
  std::vector<std::pair<std::string, uint32_t>> by_type;  // "gpu": any accelerator
  std::shared_ptr<CastCache> cache;

  uint32_t dtype_on(const Device& device) const;
  static void destroy(Autocast* scope) { delete scope; }
};
using AutocastRef = Ref<Autocast>;

// A scope inside of the one in force: as that one, but with `dtype` (0: off) on `type`, or everywhere where it is
// empty.
AutocastRef make_autocast(const std::string& type, uint32_t dtype);
// Whether the scope in force would cast any of these inputs. Cheap.
bool autocast_casts(const Op& op, Tensor* const* inputs, uint32_t count, uint32_t flags);
// Replaces those inputs by their casts, which `keep` holds.
void autocast(const Op& op, SmallVector<Tensor*, 8>& inputs, const uint32_t* groups, SmallVector<TensorRef, 4>& keep);

}  // namespace perigee
