-- SPDX-License-Identifier: Apache-2.0
-- pg.json: values as text and back, and what is no JSON.

local pg = require "perigee"
local json = pg.json
local null = json.null

local function temporary() return os.tmpname() .. ".json" end

test("values are read", function(t)
  t.equal(json.decode ' {"a" : [1, -2.5e3, true, false], "b":{"c":"x"}}\r\n', { a = { 1, -2500, true, false },
                                                                                  b = { c = "x" } })
  for text, value in pairs { ["1"] = 1, ['"x"'] = "x", ["true"] = true, ["0"] = 0, ["1E+2"] = 100, ["0.5e-1"] = 0.05,
                             ["\239\187\1917"] = 7, ["1e-999"] = 0 } do
    t.equal(json.decode(text), value)
  end
  t.equal(1 / json.decode "-0", -math.huge)
  t.equal(1 / json.decode "-0.0", -math.huge)
  t.ok(json.decode "null" == null and json.decode("[null]")[1] == null and json.decode('{"a":null}').a == null)
  t.equal(tostring(null), "null")
  t.equal(json.decode '{"":1}', { [""] = 1 })
  t.equal(json.decode '{"1":"one"}', { ["1"] = "one" })
end)

test("text: escapes, surrogate pairs, UTF-8", function(t)
  t.equal(json.decode [["\"\\\/\b\f\n\r\t"]], '"\\/\b\f\n\r\t')
  t.equal(json.decode [["\u0041\u00e9\u20AC\ud83d\ude00\u0000"]], "Aé€😀\0")
  t.equal(json.decode '"é€😀\127"', "é€😀\127")
  for _, text in ipairs { "", "é€😀", '"\\/\b\f\n\r\t\0\1\31\127', "\226\128\168", "\244\143\191\191" } do
    t.equal(json.decode(json.encode(text)), text)
  end
  t.equal(json.encode '"\\/\b\f\n\r\t\1é', [["\"\\/\b\f\n\r\t\u0001é"]])
end)

test("empty arrays and objects stay what they are", function(t)
  local text = '{"a":[],"b":{},"c":[[],{}]}'
  t.equal(json.encode(json.decode(text)), text)
  t.equal(json.encode {}, "{}")
  t.equal(json.encode(json.array()), "[]")
  t.equal(json.encode { json.array {} }, "[[]]")
  local list = json.decode "[1]"
  t.ok(json.is_array(list) and not json.is_array {} and not json.is_array(1) and json.is_array(json.array { 1 }))
  list[1] = nil
  t.equal(json.encode(list), "[]")
  t.equal(json.encode(pg.ones { 2, 3 }.shape), "[2,3]")
  -- An array is a list like any other.
  t.equal(pg.tensor(json.decode "[[1,2],[3,4]]"):totable(), { { 1, 2 }, { 3, 4 } })
  t.equal(pg.zeros(json.decode "[2,3]").shape, { 2, 3 })
  t.raises(function() json.array(3) end, "json.array: needs a list, got number 3")
  t.raises(function() json.array(pg.ones { 1 }.shape) end, "json.array: needs a list")
end)

test("whole numbers that a Lua number would round are int64", function(t)
  for _, text in ipairs { "9007199254740992", "9007199254740993", "-9007199254740993", "9223372036854775807",
                          "-9223372036854775808" } do
    local v = json.decode(text)
    t.equal(type(v), "cdata")
    t.equal(tostring(v), text .. "LL")
    t.equal(json.encode { v }, "[" .. text .. "]")
  end
  t.equal(json.decode "9007199254740991", 2 ^ 53 - 1)
  t.equal(json.decode "-9007199254740991", 1 - 2 ^ 53)
  t.equal(json.encode(5ULL), "5")
  t.raises(function() json.decode "9223372036854775808" end, "a whole number that int64 does not hold")
  t.raises(function() json.decode "-9223372036854775809" end, "int64")
  t.raises(function() json.decode("1" .. ("0"):rep(400)) end, "int64")
  t.raises(function() json.encode { 9223372036854775808ULL } end,
           "json.encode: value%[1%] is 9223372036854775808, which int64 does not hold")
  t.equal(json.decode "1e20", 1e20) -- written as a fraction: a number
end)

test("numbers are written so that the same is read", function(t)
  local state = 1
  for _, v in ipairs { 0, -0.0, 1, -1, 0.1, 1 / 3, 2 ^ 53, -2 ^ 53, 2 ^ 60, 1e15, 1e16, 1e17, 1e20, 1e300, 5e-324,
                       1.7976931348623157e308, 123456789.125, 2 ^ 53 - 1 } do
    local back = json.decode(json.encode(v))
    t.equal(type(back), "number")
    t.ok(back == v and 1 / back == 1 / v, json.encode(v))
  end
  for _ = 1, 300 do
    state = (state * 1103515245 + 12345) % 2 ^ 31
    local v = (state - 2 ^ 30) * 2 ^ (state % 200 - 100)
    t.equal(json.decode(json.encode(v)), v)
  end
  t.equal(json.encode { 1, 1.5, 1e100, 0.1, 1e5 }, "[1,1.5,1e+100,0.1,100000]")
end)

test("what is written is the same every time", function(t)
  local v = { b = { 1, { x = true } }, a = "x", c = null, d = json.array() }
  t.equal(json.encode(v), '{"a":"x","b":[1,{"x":true}],"c":null,"d":[]}')
  t.equal(json.encode(v, { indent = 2 }), [[
{
  "a": "x",
  "b": [
    1,
    {
      "x": true
    }
  ],
  "c": null,
  "d": []
}]])
  t.equal(json.encode({ 1, {} }, { indent = 0 }), "[\n1,\n{}\n]")
  local shared = { 1 }
  t.equal(json.encode { shared, shared }, "[[1],[1]]")
end)

local damaged = { -- text, line, column, what is wrong
  { "", 1, 1, "expected a value, got the end" }, { "  ", 1, 3, "expected a value, got the end" },
  { "[1,2", 1, 5, "expected , or ], got the end" }, { "[1 2]", 1, 4, 'expected , or ], got "2"' },
  { "[1,]", 1, 4, 'expected a value, got "]"' }, { "[,1]", 1, 2, 'expected a value, got ","' },
  { '{"a":1', 1, 7, "expected , or }, got the end" }, { '{"a"1}', 1, 5, 'expected :, got "1"' },
  { '{"a":}', 1, 6, 'expected a value, got "}"' }, { "{a:1}", 1, 2, 'expected a name in quotes, got "a"' },
  { '{"a":1,}', 1, 8, 'expected a name in quotes, got "}"' }, { "{'a':1}", 1, 2, "expected a name in quotes" },
  { '{"a":1, "a":2}', 1, 9, 'the name "a" stands there twice' },
  { '{"a":null,"a":1}', 1, 11, "twice" }, { '{"a":1,"\\u0061":2}', 1, 8, "twice" },
  { "[1] 2", 1, 5, 'expected the end behind the value, got "2"' }, { "[]]", 1, 3, "expected the end" },
  { "nul", 1, 1, 'expected a value, got "nul"' }, { "nullx", 1, 1, 'got "nullx"' }, { "True", 1, 1, 'got "True"' },
  { "NaN", 1, 1, 'got "NaN"' }, { "Infinity", 1, 1, "expected a value" }, { "-Infinity", 1, 1, "expected a value" },
  { "undefined", 1, 1, "expected a value" }, { "// x", 1, 1, "expected a value" },
  { "01", 1, 1, "a number with a 0 in front" }, { "-01", 1, 1, "a 0 in front" }, { "+1", 1, 1, "expected a value" },
  { ".5", 1, 1, "expected a value" }, { "1.", 1, 1, "without digits behind its point" }, { "-", 1, 1, "a value" },
  { "1.e5", 1, 1, "without digits" }, { "1e", 1, 1, "without digits in its exponent" }, { "1e+", 1, 1, "exponent" },
  { "0x10", 1, 2, "expected the end" }, { "1_000", 1, 2, "expected the end" }, { "1e999", 1, 1, "too large" },
  { "[-1e999]", 1, 2, "too large for a double" }, { '"abc', 1, 1, "a string without an end" },
  { '"abc\\"', 1, 1, "without an end" }, { '"a\nb"', 1, 3, "a control character (10) inside a string" },
  { '"a\0b"', 1, 3, "a control character (0)" }, { '"\\x41"', 1, 2, "an unknown escape" },
  { '"\\u12"', 1, 2, "four hexadecimal digits" }, { '"\\u+123"', 1, 2, "four hexadecimal digits" },
  { '"\\ud800"', 1, 2, "half of a surrogate pair" }, { '"\\ud800\\u0041"', 1, 2, "half of a surrogate pair" },
  { '"\\ude00\\ud83d"', 1, 2, "half of a surrogate pair" }, { '"\255"', 1, 2, "a byte that is not UTF-8" },
  { '"é\195"', 1, 3, "not UTF-8" }, { '"\192\128"', 1, 2, "not UTF-8" }, { '"\237\160\128"', 1, 2, "not UTF-8" },
  { '"\240\128\128\128"', 1, 2, "not UTF-8" }, { '"\244\144\128\128"', 1, 2, "not UTF-8" },
  { '"\224\128\128"', 1, 2, "not UTF-8" }, { '\n\n  ["é", x]', 3, 9, 'expected a value, got "x"' },
  { "\r\n{\n\"a\": 1;\n}", 3, 7, 'expected , or }, got ";"' },
  { ("["):rep(1001), 1, 1001, "nested more than 1000 deep" },
  { ('{"a":'):rep(100000), 1, 5001, "nested more than 1000 deep" }, { "\255", 1, 1, "expected a value" },
}

test("what is no JSON: line and column", function(t)
  for _, case in ipairs(damaged) do
    local e = t.raises(function() json.decode(case[1]) end)
    local expected = ("json.decode: line %d, column %d: "):format(case[2], case[3])
    t.ok(e.message:find(expected, 1, true) and e.message:find(case[4], 1, true), e.message)
    t.equal(e.code, "data_loss")
  end
  t.equal(#json.decode(("["):rep(1000) .. ("]"):rep(1000)), 1)
  t.raises(function() json.decode(3) end, "json.decode: text must be a string, got number 3")
  t.raises(function() json.decode() end, "json.decode: text must be a string, got nil")
end)

test("what cannot be written: the place in the value", function(t)
  local cycle, deep = { a = {} }, {}
  cycle.a[1] = cycle
  local inner = deep
  for _ = 1, 1001 do
    inner[1] = {}
    inner = inner[1]
  end
  local cases = {
    { 0 / 0, "value is NaN, which JSON has not (pg.json.null, or a text)" },
    { { loss = { 1, math.huge } }, "value.loss[2] is infinite" },
    { { ["a b"] = -math.huge }, 'value["a b"] is negative' },
    { { 1, nil, 3 }, "value has 2 entries up to position 3 (pg.json.null fills holes)" },
    { { 1, a = 2 }, 'value has the name "a" beside positions' }, { { [0] = 1 }, "value has the key number 0" },
    { { [1.5] = 1 }, "value has the key number 1.5 (keys are texts, or positions from 1)" },
    { { [true] = 1 }, "value has the key" }, { { f = print }, "value.f is a function" },
    { { pg.ones { 2 } }, "value[1] is tensor float32 {2} (t:totable() gives tables of numbers)" },
    { pg.nn.ReLU {}, "of a class (tables without a metatable become JSON)" },
    { cycle, "value.a[1] is a table that it stands in" },
    { { a = "\255" }, "value.a has a byte that is not UTF-8 at position 1" },
    { { ["é\200"] = 1 }, "UTF-8 at position 3" },
    { deep, "is nested more than 1000 deep" }, { json.array { a = 1 }, 'value has the name "a" beside positions' },
    { coroutine.create(print), "value is" },
  }
  for _, case in ipairs(cases) do
    local e = t.raises(function() json.encode(case[1]) end)
    t.ok(e.message:find("json.encode: ", 1, true) and e.message:find(case[2], 1, true), e.message)
    t.equal(e.code, "invalid_argument")
  end
  t.raises(function() json.encode() end, "value is nil %(pg.json.null stands for nothing%)")
  t.raises(function() json.encode(1, { indent = -1 }) end, "indent must be a whole number from 0 to 16, got number %-1")
  t.raises(function() json.encode(1, { indent = "  " }) end, "indent must be")
  t.raises(function() json.encode(1, { indnt = 2 }) end, 'unknown option "indnt" %(options are indent%)')
  t.raises(function() json.encode(1, 2) end, "options must be a table, got number 2")
end)

test("files: what was saved is loaded, whole or not at all", function(t)
  local path = temporary()
  local value = { name = "é", list = { 1, 2.5 }, none = null, empty = json.array() }
  json.save(path, value)
  local file = assert(io.open(path, "rb"))
  t.equal(file:read("*a"), json.encode(value) .. "\n")
  file:close()
  t.equal(json.encode(json.load(path)), json.encode(value))
  t.raises(function() json.save(path, { 0 / 0 }) end, "value%[1%] is NaN")
  json.save(path, value, { indent = 2 })
  t.equal(json.encode(json.load(path)), json.encode(value))
  file = assert(io.open(path, "wb"))
  file:write('{"a":\n  tru}')
  file:close()
  local e = t.raises(function() json.load(path) end)
  t.ok(e.message:find(("json.load: %s: line 2, column 3: expected a value, got \"tru\""):format(path), 1, true))
  t.equal(e.code, "data_loss")
  os.remove(path)
  e = t.raises(function() json.load(path) end, "json.load: there is no file '")
  t.equal(e.code, "not_found")
  t.raises(function() json.load("/") end, "json.load: /: ")
  t.raises(function() json.load(3) end, "path must be a string, got number 3")
  t.raises(function() json.save("", 1) end, "json.save: path must be a string")
  t.raises(function() json.save("/nowhere/at/all.json", 1) end, "nowhere")
end)

test("random damage is an error or another value, never a crash", function(t)
  local text = json.encode({ a = { 1, -2.5e10, "é\n", true, null }, b = { c = json.array(), d = "x" } }, { indent = 1 })
  local state = 12345
  local function draw(n)
    state = (state * 1103515245 + 12345) % 2 ^ 31
    return math.floor(state / 2 ^ 31 * n)
  end
  for _ = 1, 2000 do
    local at, count = draw(#text) + 1, draw(4)
    local ok, err = pcall(json.decode, text:sub(1, at - 1) .. string.char(draw(256)) .. text:sub(at + count))
    t.ok(ok or err.code == "data_loss", tostring(err))
    if ok then t.equal(json.encode(json.decode(json.encode(err))), json.encode(err)) end
  end
end)
