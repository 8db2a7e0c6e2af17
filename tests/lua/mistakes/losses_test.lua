-- SPDX-License-Identifier: Apache-2.0
-- Losses: a message names the loss, not an operator that it is made of.
-- A row is the code and the message behind "script:1: ".

local here = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or "."
package.path = here .. "/../?.lua;" .. package.path

require("mistakes.check")(test, {
  { 'nn.nll(logits, pg.tensor({1, 5}, {dtype="int64"}))',
    "nll: target 5 at position [2] is out of range; expected 0 to 2" },
  { 'nn.nll(pg.zeros{1, 3, 2}, pg.tensor({{1, -1}}, {dtype="int64"}))',
    "nll: target -1 at position [1, 2] is out of range; expected 0 to 2" },
  { 'nn.focal(logits, pg.tensor({3, 0}, {dtype="int64"}))',
    "focal: target 3 at position [1] is out of range; expected 0 to 2" },
  { 'nn.multi_margin(logits, pg.tensor({3, 0}, {dtype="int64"}))',
    "multi_margin: target 3 at position [1] is out of range; expected 0 to 2" },
  { 'nn.focal(logits, pg.ones{2, 3, dtype="int64"})',
    'focal: the labels {2, 3} are one-hot and int64 (labels:argmax{axis=2} gives classes; ' ..
    'labels:to("float32") are targets of sigmoids)' },
  { 'nn.nll(logits, pg.ones{2, 3, dtype="int64"})',
    "nll: the labels {2, 3} are one-hot and int64 (labels:argmax{axis=2} gives classes)" },
  { "nn.multi_margin(logits, pg.zeros{2})",
    'multi_margin: the labels are float32; classes are integers, counted from 0 (labels:to("int64"))' },
  { 'nn.nll(logits, pg.zeros{2, dtype="bool"})',
    'nll: the labels are bool; expected int64 or int32 (labels:to("int64"))' },
  { 'nn.nll(logits, pg.zeros{3, dtype="int64"})',
    "nll: the labels {3} do not fit the prediction {2, 3}; expected {2}, one class for each position" },
  { "nn.nll(logits, idx, {weight=pg.ones{4}})",
    "nll: weight {4} does not fit; expected {3}, a factor of each class" },
  { "nn.multi_margin(logits, idx, {weight={1, 2, 3}})",
    "multi_margin: weight must be a tensor, got a table (pg.tensor makes one of a table)" },
  { "nn.cross_entropy(logits, logits, {weight=pg.ones{2}})",
    "cross_entropy: weight {2} does not fit; expected {3}, a factor of each class" },
})
