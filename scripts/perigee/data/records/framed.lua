-- SPDX-License-Identifier: Apache-2.0
-- TFRecord files: what a sample is in one, and what a spec asks for. The source of records reads them.

local framing = require "perigee.events.records"
local example = require "perigee.data.records.example"

return {
  name = "tfrecord",
  rules = example.options,
  ---What a file ends with.
  finish = "",
  bytes = function(where, sample, i)
    return framing.frame(type(sample) == "string" and sample or example.bytes(where, sample, i))
  end,
}
