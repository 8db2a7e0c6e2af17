// SPDX-License-Identifier: Apache-2.0
#include "nets/net_layout.hpp"

namespace pg::cpu {

onednn::Desc in_order(const onednn::Dims& dims, NetOrder order, onednn::DataType type) {
  using onednn::Tag;
  constexpr Tag kTags[][3] = {{Tag::abc, Tag::abcd, Tag::abcde},
                              {Tag::acb, Tag::acdb, Tag::acdeb},
                              {Tag::aBc8b, Tag::aBcd8b, Tag::aBcde8b},
                              {Tag::aBc16b, Tag::aBcd16b, Tag::aBcde16b}};
  return {dims, type, kTags[static_cast<size_t>(order)][dims.size() - 3]};
}

std::optional<NetLayout> NetLayout::of(const onednn::Desc& desc) {
  const onednn::Dims dims = desc.dims();
  if (dims.size() < 3 || dims.size() > 5) return std::nullopt;
  for (NetOrder order : {NetOrder::kRows, NetOrder::kPixels, NetOrder::kEights, NetOrder::kSixteens}) {
    if (desc != in_order(dims, order, desc.data_type())) continue;
    const int64_t block = order == NetOrder::kRows     ? 1
                          : order == NetOrder::kPixels ? dims[1]
                          : order == NetOrder::kEights ? 8
                                                       : 16;
    NetLayout layout{order, dims[0], dims[1], (dims[1] + block - 1) / block, block, 1};
    for (size_t i = 2; i < dims.size(); i++) layout.plane *= dims[i];
    return layout;
  }
  return std::nullopt;
}

}  // namespace pg::cpu
