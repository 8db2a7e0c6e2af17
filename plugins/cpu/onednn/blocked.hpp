// SPDX-License-Identifier: Apache-2.0
// Copies between row-major tensors [n, c, ...] of 16 or 32 bit floats and oneDNN's layouts of float32 that keep 8 or 16
// channels side by side (nChw8c, nChw16c), or of bfloat16 where the rows are too: at the memory's speed, and with the
// conversion in the same pass.
#pragma once

#include <optional>

#include "onednn/onednn.hpp"

namespace pg::cpu::onednn {

class BlockedCopy {
 public:
  // Nothing where the two layouts are not such a pair, or the channels do not fill their blocks. `relu`, out of blocks:
  // in the same registers, as the operator does it to what has been rounded. `past`: written past the caches even if
  // it is small, being a part of something larger.
  static std::optional<BlockedCopy> make(const Desc& from, const Desc& to, bool relu, bool past);
  // `where`, of which masks() tells whether it may be given: lies like `from`, and what is not above 0 there becomes 0.
  void run(const void* from, void* to, const void* where = nullptr) const;
  bool masks() const { return gathers_ && rows_dtype_ != PG_F16; }

 private:
  template <int64_t kBlock, bool wide, bool activated, class B>
  void run_blocks(char* rows, const char* where, B* blocked, bool past) const;
  uint32_t rows_dtype_ = 0;  // of the row-major side
  int64_t block_ = 0, blocks_ = 0, plane_ = 0;
  bool gathers_ = false;  // into blocks; otherwise out of them
  bool relu_ = false, past_ = false;
  bool narrow_ = false;  // blocks of bfloat16
};

// The same elements in the same places, in another float dtype, one of which is float32.
class DtypeCopy {
 public:
  static std::optional<DtypeCopy> make(const Desc& from, const Desc& to);
  void run(const void* from, void* to) const;

 private:
  uint32_t from_ = 0, to_ = 0;
  int64_t count_ = 0;
};

// Copies from one layout to another, between float dtypes too: by the way above that fits, or by oneDNN.
class Copy {
 public:
  Copy() = default;
  // Throws dnnl::error where nothing does both. `relu` is applied where that costs nothing: activates() tells.
  Copy(const Desc& from, const Desc& to, bool relu = false, bool past = false);
  bool activates() const { return relu_ && blocked_; }
  bool masks() const { return blocked_ && blocked_->masks(); }
  uint64_t workspace() const;
  void run(const void* from, void* to, void* scratch, const void* where = nullptr);

 private:
  std::optional<BlockedCopy> blocked_;
  std::optional<DtypeCopy> convert_;  // before the reorder or behind it, by way of the workspace
  std::optional<Reorder> reorder_;
  bool widens_ = false, relu_ = false;
  uint64_t middle_ = 0;  // bytes between the two
};

}  // namespace pg::cpu::onednn
