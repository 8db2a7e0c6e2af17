-- SPDX-License-Identifier: Apache-2.0
-- A folder of pictures as a source: a folder a class, in the order of the alphabet.

local native = require "perigee.native"
local pipeline = require "perigee.data.pipeline"
