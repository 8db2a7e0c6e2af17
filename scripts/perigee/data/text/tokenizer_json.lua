-- SPDX-License-Identifier: Apache-2.0
-- Files of tokenizers: Hugging Face's tokenizer.json, as far as it describes byte-pair encoding over bytes. What would
-- give other ids and is not here is refused by name.

local native = require "perigee.native"
local json = require("perigee").json
local BPE = require "perigee.data.text.bpe"
local letters = require "perigee.data.text.letters"
local pieces = require "perigee.data.text.pieces"
local SPAN = require("perigee.data.text.merge").SPAN

local M = {}
local WHERE = "data.text.bpe"

local function refuse(path, what)
  native.raise("unimplemented", WHERE, ("%s: %s"):format(path, what), "byte-level BPE is what can be read")
end
local function damaged(path, what) native.raise("data_loss", WHERE, ("%s: %s"):format(path, what)) end

local function is_set(v) return v ~= nil and v ~= json.null and v ~= false and v ~= "" end

-- ---- reading ----

-- The steps that cut text into words, added to `steps`; answers whether bytes become letters behind them.
local function read_cutter(path, cutter, steps)
  if cutter.type == "Sequence" then
    local is_byte_level = false
    for _, part in ipairs(cutter.pretokenizers or {}) do
      if is_byte_level then refuse(path, ("pre_tokenizer %s behind ByteLevel"):format(tostring(part.type))) end
      is_byte_level = read_cutter(path, part, steps)
    end
    return is_byte_level
  elseif cutter.type == "ByteLevel" then
    local find = cutter.use_regex ~= false and pieces.compile(pieces.PATTERNS.gpt2, WHERE) or nil
    steps[#steps + 1] = { find = find, drops_gaps = false, prefix = is_set(cutter.add_prefix_space) }
    return true
  elseif cutter.type == "Digits" then
    local pattern = cutter.individual_digits == true and "\\p{N}" or "\\p{N}+"
    steps[#steps + 1] = { find = pieces.compile(pattern, WHERE), drops_gaps = false }
    return false
  elseif cutter.type == "Split" then
    local pattern = cutter.pattern or {}
    local text = pattern.Regex or pattern.String and pieces.any_of { pattern.String }
    local is_inverted, behavior = cutter.invert == true, cutter.behavior
    if type(text) ~= "string" then damaged(path, "pre_tokenizer Split has no pattern") end
    if not (behavior == "Isolated" and not is_inverted or behavior == "Removed" and is_inverted) then
      refuse(path, ("pre_tokenizer Split with behavior %s%s"):format(tostring(behavior), is_inverted and
                                                                      " and invert" or ""))
    end
    steps[#steps + 1] = { find = pieces.compile(text, WHERE), drops_gaps = is_inverted }
    return false
  end
  refuse(path, ("pre_tokenizer %s"):format(tostring(cutter.type)))
end

-- What stands before and behind each text, by a post-processor.
local function read_template(path, processor, prefix, suffix)
  if not is_set(processor) or processor.type == "ByteLevel" then return end
  if processor.type == "Sequence" then
    for _, part in ipairs(processor.processors or {}) do read_template(path, part, prefix, suffix) end
  elseif processor.type == "TemplateProcessing" then
    local target = prefix
    for _, part in ipairs(processor.single or {}) do
      if part.Sequence then
        target = suffix
      else
        local token = part.SpecialToken and (processor.special_tokens or {})[part.SpecialToken.id]
        if not token then damaged(path, "post_processor names a token that it does not have") end
        for _, id in ipairs(token.ids) do target[#target + 1] = id end
      end
    end
  elseif processor.type == "RobertaProcessing" or processor.type == "BertProcessing" then
    prefix[#prefix + 1], suffix[#suffix + 1] = processor.cls[2], processor.sep[2]
  else
    refuse(path, ("post_processor %s"):format(tostring(processor.type)))
  end
end

local function read_vocabulary(path, vocabulary, added)
  local tokens, ids = {}, {}
  for written, id in pairs(vocabulary) do
    local token = letters.read(written)
    if not token and not added[written] then
      refuse(path, ("token %q is not written in bytes"):format(written))
    end
    if type(id) ~= "number" or id < 0 or id ~= math.floor(id) or id >= SPAN then
      damaged(path, ("token %q has the id %s"):format(written, tostring(id)))
    end
    if token and not added[written] then
      if tokens[id] then damaged(path, ("id %d stands twice"):format(id)) end
      tokens[id] = token
    end
    ids[written] = id
  end
  return tokens, ids
end

local function read_added(path, list)
  local added = {}
  for _, entry in ipairs(is_set(list) and list or {}) do
    if type(entry.content) ~= "string" or entry.content == "" or type(entry.id) ~= "number" then
      damaged(path, "an added token has no content or no id")
    end
    for _, name in ipairs { "lstrip", "rstrip", "single_word" } do
      if entry[name] == true then refuse(path, ("added token %q with %s"):format(entry.content, name)) end
    end
    added[entry.content] = { id = entry.id, special = entry.special == true }
  end
  return added
end

---@param path string
---@param document table
---@return perigee.Tokenizer
function M.read(path, document)
  local model = document.model
  if type(model) ~= "table" then damaged(path, "there is no model in it: no tokenizer.json") end
  if model.type ~= nil and model.type ~= "BPE" or type(model.merges) ~= "table" or type(model.vocab) ~= "table" then
    refuse(path, ("model %s"):format(tostring(model.type)))
  end
  for _, name in ipairs { "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
                          "byte_fallback" } do
    if is_set(model[name]) then refuse(path, ("model with %s"):format(name)) end
  end
  if is_set(document.normalizer) then
    refuse(path, ("normalizer %s"):format(tostring(document.normalizer.type)))
  end
  local added, steps, prefix, suffix = read_added(path, document.added_tokens), {}, {}, {}
  if not is_set(document.pre_tokenizer) or not read_cutter(path, document.pre_tokenizer, steps) then
    refuse(path, "a pre_tokenizer without ByteLevel")
  end
  read_template(path, document.post_processor, prefix, suffix)
  local tokens, ids = read_vocabulary(path, model.vocab, added)

  local ranks, results = {}, {}
  for i, merge in ipairs(model.merges) do
    local first, second
    if type(merge) == "string" then
      first, second = merge:match("^([^ ]+) ([^ ]+)$")
    elseif type(merge) == "table" then
      first, second = merge[1], merge[2]
    end
    local a, b, c = ids[first], ids[second], first and second and ids[first .. second]
    if not (a and b and c) then damaged(path, ("merge %d is not of tokens that it has"):format(i)) end
    local pair = a * SPAN + b
    if not ranks[pair] then ranks[pair], results[pair] = i, c end
  end
  return BPE.new {
    tokens = tokens, ranks = ranks, results = results, added = added, steps = steps, prefix = prefix,
    suffix = suffix, whole_words = model.ignore_merges == true, document = document,
  }
end

-- ---- writing ----

---@param bpe perigee.Tokenizer
---@param path string
function M.save(bpe, path)
  if type(path) ~= "string" then
    native.raise("invalid_argument", "tokenizer:save", "path must be a string, got " .. native.describe(path))
  end
  if not bpe.document then
    native.raise("failed_precondition", "tokenizer:save", "a file of ranks has no merges, which a tokenizer.json needs")
  end
  json.save(path, bpe.document)
end

---The contents of a tokenizer.json.
---@param tokens table<integer, string> raw bytes
---@param merges integer[][] pairs of ids
---@param specials string[] their ids are 0, 1, ...
---@param pattern? string nil: GPT-2's
function M.document(tokens, merges, specials, pattern)
  local vocabulary, pairs_, added = {}, json.array {}, json.array {}
  for id, token in pairs(tokens) do vocabulary[letters.written(token)] = id end
  for i, merge in ipairs(merges) do
    pairs_[i] = json.array { letters.written(tokens[merge[1]]), letters.written(tokens[merge[2]]) }
  end
  for i, content in ipairs(specials) do
    vocabulary[content] = i - 1
    added[i] = { id = i - 1, content = content, single_word = false, lstrip = false, rstrip = false,
                 normalized = false, special = true }
  end
  local function byte_level(use_regex)
    return { type = "ByteLevel", add_prefix_space = false, trim_offsets = true, use_regex = use_regex }
  end
  local cutter = byte_level(true)
  if pattern then
    cutter = { type = "Sequence", pretokenizers = json.array {
      { type = "Split", pattern = { Regex = pattern }, behavior = "Isolated", invert = false }, byte_level(false) } }
  end
  return {
    version = "1.0", truncation = json.null, padding = json.null, added_tokens = added, normalizer = json.null,
    pre_tokenizer = cutter, post_processor = json.null, decoder = byte_level(true),
    model = { type = "BPE", dropout = json.null, unk_token = json.null, continuing_subword_prefix = json.null,
              end_of_word_suffix = json.null, fuse_unk = false, byte_fallback = false, ignore_merges = false,
              vocab = vocabulary, merges = pairs_ },
  }
end

return M
