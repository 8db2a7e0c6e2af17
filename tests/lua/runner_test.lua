-- SPDX-License-Identifier: Apache-2.0
-- perigee test, run on files made here.

local function executable()
  local pipe = io.popen("readlink /proc/$PPID/exe 2>/dev/null")
  local path = pipe:read("*l")
  pipe:close()
  return path
end

local function write(path, text)
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
end

test("--absent skips what fails for want of a listed kernel, and nothing else", function(t)
  local perigee = executable()
  if not perigee or not perigee:find "perigee$" then t.skip("not run by perigee") end
  local tests, holes = os.tmpname(), os.tmpname()
  os.remove(tests)
  tests = tests .. ".lua"
  write(tests, [[
    local function lacks(name) error(name .. ": no kernel for float32 [8] on cuda:0; there are kernels on cpu", 0) end
    test("a listed one", function() lacks "median" end)
    test("in place", function() lacks "index_put_" end)
    test("one that is not listed", function() lacks "add" end)
    test("another failure", function() error("median") end)
    test("it passes", function() end)
  ]])
  write(holes, "return { cuda = { median = true, index_put = true } }")
  local function run(options)
    local pipe = assert(io.popen(("'%s' test %s '%s' 2>&1"):format(perigee, options, tests)))
    local text = pipe:read("*a")
    pipe:close()
    return text
  end
  local with, without = run("--absent '" .. holes .. "'"), run("")
  os.remove(tests)
  os.remove(holes)
  t.ok(with:find("SKIP " .. tests .. ": a listed one: median has no kernel on cuda", 1, true), with)
  t.ok(with:find("SKIP " .. tests .. ": in place: index_put has no kernel on cuda", 1, true), with)
  t.ok(with:find("1 passed, 2 failed, 2 skipped", 1, true), with)
  t.ok(without:find("1 passed, 4 failed, 0 skipped", 1, true), without)
end)
