// SPDX-License-Identifier: Apache-2.0
// Sources and transforms that plugins bring (perigee/data.h), as stages.
#pragma once

#include <memory>
#include <string>

#include "data/options.hpp"
#include "data/stage.hpp"

namespace perigee {

// An opened transform. Thread-safe.
class OpenTransform {
 public:
  // `shown`: what messages call it. `number`: which of its pipeline's it is.
  OpenTransform(const pg_transform_info& info, OptionsRef options, std::string shown, uint64_t number);
  ~OpenTransform();
  OpenTransform(const OpenTransform&) = delete;
  OpenTransform& operator=(const OpenTransform&) = delete;
  // `landing`: where tensors of what is made are wanted; null: anywhere.
  Element apply(Element in, uint64_t seed, uint64_t epoch, int64_t position, const Landing* landing = nullptr) const;

 private:
  const pg_transform_info& info_;
  const OptionsRef options_;
  const std::string shown_;
  const uint64_t number_;
  void* self_ = nullptr;
};

// Opens a source; throws what it says of the options.
StageRef source_stage(const pg_source_info& info, OptionsRef options, std::string shown);
StageRef transform_stage(StageRef parent, std::shared_ptr<const OpenTransform> transform, uint64_t seed,
                         uint64_t epoch);

}  // namespace perigee
