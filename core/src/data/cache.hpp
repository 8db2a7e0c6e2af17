// SPDX-License-Identifier: Apache-2.0
// Elements of a pipeline that are kept: in memory, or in a file that appears under its name once it has all of them.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <string>

#include "data/stage.hpp"

namespace perigee {

// Thread-safe. `identity` says which pipeline's elements they are, a line a stage.
class Cache {
 public:
  virtual ~Cache() = default;
  Cache() = default;
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  virtual bool get(int64_t i, Element& out) = 0;            // false: not there
  virtual bool put(int64_t i, const Element& element) = 0;  // false: it was there
  // There are so many elements, and all of them have been put.
  virtual void finish(int64_t count) = 0;
  int64_t count() const { return count_.load(); }  // -1: not all of them are there

  // Element i of a pipeline, which is kept where it was not; false: it has no such element.
  bool fill(const Stage& parent, int64_t i, Element& out);
  // The element of a pipeline of `count`; one without a layout: it has only i elements or fewer.
  void keep(int64_t i, int64_t count, const Element& element);

 protected:
  std::atomic<int64_t> count_{-1};

 private:
  std::mutex mutex_;
  int64_t put_ = 0, end_ = kUnknown;  // elements that were put; of them all
};
using CacheRef = std::shared_ptr<Cache>;

CacheRef memory_cache();
// Of a file, if it is there. Throws PG_E_DATA_LOSS of a damaged one, PG_E_FAILED_PRECONDITION of another pipeline's.
CacheRef file_cache(const std::string& path, const std::string& identity);
// The parent's elements, each computed once.
StageRef cache_stage(StageRef parent, CacheRef cache);

}  // namespace perigee
