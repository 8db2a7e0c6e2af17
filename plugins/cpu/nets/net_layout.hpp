// SPDX-License-Identifier: Apache-2.0
// The orders in which convolutions leave their results, as own loops and joined tensors need to know them.
#pragma once

#include <optional>

#include "onednn/onednn.hpp"

namespace pg::cpu {

// Rows, pixels (channels last), or blocks of channels.
enum class NetOrder { kRows, kPixels, kEights, kSixteens };

onednn::Desc in_order(const onednn::Dims& dims, NetOrder order, onednn::DataType type);

// [n, c, ...] as images of blocks of channels: element (i, channel, place) lies at
// ((i * blocks + channel / block) * plane + place) * block + channel % block. Channels that fill no block are 0.
struct NetLayout {
  NetOrder order;
  int64_t images, channels, blocks, block, plane;
  // Nothing where a tensor lies in no such order.
  static std::optional<NetLayout> of(const onednn::Desc& desc);
};

}  // namespace pg::cpu
