// SPDX-License-Identifier: Apache-2.0
// Pictures that codecs decoded, as fields of samples.
#pragma once

#include <string>

#include "perigee/data.hpp"

namespace formats {

// What was decoded as the field of that name, uint8 [rows, columns, channels], unless it is that. `channels`: 0: as
// many as it has. `where` stands before what is wrong.
void place_picture(const char* name, const std::string& where, const pg::Decoded& picture, int64_t channels,
                   pg::FieldSink& out);

}  // namespace formats
