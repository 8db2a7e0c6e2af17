-- SPDX-License-Identifier: Apache-2.0
-- Looks through Lua programs for what users of PyTorch write by habit, and what Lua or Perigee take without a word.

local parser = require "perigee.lint.parser"
local syntax = require "perigee.lint.syntax"
local walk = require "perigee.lint.walk"

local M = {}

---@class perigee.lint.Rule
---@field name string
---@field bad string[] programs that it finds something in; x, y, a, b, w are tensors, the rest as in README.md
---@field good string[] programs in which it does not
---@field visit table<string, fun(node: table, lint: perigee.lint.State)> by kinds of nodes

---@class perigee.lint.Finding
---@field line integer
---@field column integer in bytes, from 1
---@field message string
---@field rule string

local rules

---All rules, in the order in which they are listed. The first use loads what Perigee has.
---@return perigee.lint.Rule[]
function M.rules()
  if rules then return rules end
  rules = {}
  for _, file in ipairs { "truth", "counting", "calling", "training", "names" } do
    for _, rule in ipairs(require("perigee.lint.rules." .. file)) do rules[#rules + 1] = rule end
  end
  return rules
end

-- ---- findings ----

---@class perigee.lint.State
---@field types table
---@field program table
---@field globals table<string, boolean> those that have been reported
local State = {}
State.__index = State

-- Line and column of a place in the text.
local function place(text, at)
  local line, start = 1, 0
  for stop in text:sub(1, at - 1):gmatch "()\n" do line, start = line + 1, stop end
  return line, at - start
end

---Notes what the rule in force has found, once a place.
function State:report(at, message)
  local key = self.rule .. at
  if self.seen[key] then return end
  self.seen[key] = true
  local line, column = place(self.text, at)
  if not self.ignored[line] then
    self.findings[#self.findings + 1] = { line = line, column = column, message = message, rule = self.rule, at = at }
  end
end

-- Lines whose comment says "lint: ignore".
local function ignored_lines(text, comments)
  local lines = {}
  for _, comment in ipairs(comments) do
    if comment.text:find "lint:%s*ignore" then lines[place(text, comment.from)] = true end
  end
  return lines
end

-- Functions that are given what is to fail.
local EXPECTS_FAILURE = { pcall = true, xpcall = true, raises = true }

local function expects_failure(node)
  if node.kind ~= "call" then return false end
  local callee = walk.bare(node.callee)
  return EXPECTS_FAILURE[callee.name] or false
end

local function apply(state, program)
  local by_kind = {}
  for _, rule in ipairs(M.rules()) do
    for kind, visit in pairs(rule.visit) do
      by_kind[kind] = by_kind[kind] or {}
      table.insert(by_kind[kind], { rule.name, visit })
    end
  end
  local nodes = {}
  walk.all(program.body, function(node) -- rules look at parents, so all of them are known first
    nodes[#nodes + 1] = node
    return not expects_failure(node)
  end)
  for _, node in ipairs(nodes) do
    for _, row in ipairs(by_kind[node.kind] or {}) do
      state.rule = row[1]
      row[2](node, state)
    end
  end
end

---What is found in a program, in the order of its lines.
---@param text string
---@return perigee.lint.Finding[]
function M.check(text)
  local fn, message = loadstring(text:gsub("^#[^\n]*", ""), "=script")
  if not fn then
    local line, said = syntax.explain(text, message)
    return { { line = line, column = 1, message = said, rule = "syntax" } }
  end
  local read, program = pcall(parser.parse, text)
  if not read then
    return { { line = 1, column = 1, message = "cannot be looked through: " .. tostring(program), rule = "syntax" } }
  end
  local state = setmetatable({ text = text, program = program, types = require("perigee.lint.types").new(program),
                               findings = {}, seen = {}, globals = {},
                               ignored = ignored_lines(text, program.comments) }, State)
  apply(state, program)
  table.sort(state.findings, function(a, b)
    if a.at ~= b.at then return a.at < b.at end
    return a.rule < b.rule
  end)
  return state.findings
end

return M
