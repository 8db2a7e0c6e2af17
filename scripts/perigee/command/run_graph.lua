-- SPDX-License-Identifier: Apache-2.0
-- perigee run-graph: runs a graph file on arrays in files, without a script; main.lua says with which options.

local function refuse(message)
  io.stderr:write("perigee run-graph: ", message, "\n")
  return 2
end

-- "NAME=FILE" or "NAME=FILE:MEMBER".
local function read_feed(word)
  local name, path = word:match "^([^=]+)=(.+)$"
  if not name then return nil, ("--feed %s: NAME=FILE is expected"):format(word) end
  local file, member = path:match "^(.+%.%w+):([^/:]+)$"
  return { name = name, path = file or path, member = member }
end

local TAKES = { ["--feed"] = true, ["--fetch"] = true, ["--out"] = true, ["--device"] = true, ["--seed"] = true }

-- The words as options, or nil and what is wrong.
local function read_words(...)
  local o, words, at = { feeds = {}, fetches = {} }, { ... }, 1
  while at <= #words do
    local word, value = words[at], words[at + 1]
    if TAKES[word] and (value == nil or value == "") then return nil, word .. " needs a value" end
    if word == "--print" then
      o.print = true
    elseif word == "--feed" then
      local feed, problem = read_feed(value)
      if not feed then return nil, problem end
      o.feeds[#o.feeds + 1] = feed
    elseif word == "--fetch" then
      for name in value:gmatch "[^,]+" do o.fetches[#o.fetches + 1] = name end
    elseif TAKES[word] then
      if o[word:sub(3)] then return nil, word .. " stands there twice" end
      o[word:sub(3)] = value
    elseif word:sub(1, 1) == "-" then
      return nil, "unknown option " .. word
    elseif o.path then
      return nil, ("one graph at a time: %s and %s"):format(o.path, word)
    else
      o.path = word
    end
    at = at + (TAKES[word] and 2 or 1)
  end
  if not o.path then return nil, "which graph? perigee run-graph FILE.pgraph" end
  if o.seed and not tonumber(o.seed) then return nil, "--seed needs a number, got " .. o.seed end
  return o
end

local function names_of(list)
  local names = {}
  for name in pairs(list) do names[#names + 1] = tostring(name) end
  table.sort(names)
  return names
end

-- The tensor of a feed: of a file with several the member, by default that of the feed's name.
local function read_tensor(pg, feed)
  local tensors = pg.load(feed.path)
  local names = names_of(tensors)
  local member = feed.member or (tensors[feed.name] and feed.name) or (#names == 1 and names[1]) or nil
  if not member or not tensors[member] then
    error({ message = ("%s has no %s; it has %s"):format(feed.path, member or feed.name, table.concat(names, ", ")) })
  end
  return tensors[member]
end

local function write(pg, path, names, results)
  if path:find "%.npy$" then
    if #names ~= 1 then
      error({ message = ("a .npy file holds one array, and %d were fetched: --out FILE.npz"):format(#names) })
    end
    return results[names[1]]:save_npy(path)
  end
  local tensors = {}
  for _, name in ipairs(names) do tensors[name] = results[name] end
  if path:find "%.npz$" then return pg.save_npz(path, tensors) end
  pg.save(path, tensors)
end

local function signature_text(g)
  local lines = {}
  for _, side in ipairs { "inputs", "outputs" } do
    for _, name in ipairs(names_of(g[side])) do
      local t = g[side][name] or g[side][tonumber(name)]
      lines[#lines + 1] = ("%s %s: %s %s"):format(side:sub(1, -2), name, t.dtype, tostring(t.shape))
    end
  end
  return table.concat(lines, "\n")
end

-- Fetches by name; a number is a position where no result is called so.
local function fetch_names(g, o)
  local list = #o.fetches > 0 and o.fetches or names_of(g.outputs)
  local wanted = {}
  for i, name in ipairs(list) do
    wanted[name] = (g.results[name] == nil and g.results[tonumber(name) or name]) and tonumber(name) or list[i]
  end
  return list, wanted
end

-- Whether anything but the text of the graph is asked for.
local function is_run(o) return not o.print or #o.fetches > 0 or #o.feeds > 0 or o.out ~= nil end

local function run(o)
  local pg = require "perigee"
  local g = pg.load_graph(o.path, { device = o.device })
  if o.print then print(g:text() .. signature_text(g)) end
  if not is_run(o) then return end
  local feeds = {}
  for _, feed in ipairs(o.feeds) do
    if feeds[feed.name] then error({ message = ("%s is fed twice"):format(feed.name) }) end
    feeds[feed.name] = read_tensor(pg, feed)
  end
  local missing = {}
  for _, name in ipairs(#o.fetches == 0 and names_of(g.inputs) or {}) do
    if not feeds[name] then missing[#missing + 1] = "--feed " .. name .. "=FILE" end
  end
  if #missing > 0 then error({ message = "the outputs need " .. table.concat(missing, " ") }) end
  if o.seed then pg.manual_seed(tonumber(o.seed)) end
  local names, wanted = fetch_names(g, o)
  local results = pg.Session { g }:run(wanted, feeds)
  for _, name in ipairs(names) do
    print(("%s: %s %s"):format(name, results[name].dtype, tostring(results[name].shape)))
  end
  if o.out then write(pg, o.out, names, results) end
end

---@param ... string words
---@return integer status
return function(...)
  local o, problem = read_words(...)
  if not o then return refuse(problem) end
  local ok, e = pcall(run, o)
  if ok then return 0 end
  io.stderr:write("perigee run-graph: ", type(e) == "table" and e.message or tostring(e), "\n")
  return 1
end
