-- SPDX-License-Identifier: Apache-2.0
-- float8_e4m3fn and float8_e5m2: conversions as PyTorch's (tests/float8), bit for bit; what moves elements; what does
-- not compute with them.

local pg = require "perigee"

local PATH = debug.getinfo(1, "S").source:match("^@(.*)lua/[^/]*/[^/]*$") .. "float8/data/float8.safetensors"
local tensors = pg.load(PATH)
local FORMATS, TYPES = { "float8_e4m3fn", "float8_e5m2" }, { "float32", "float64", "float16", "bfloat16" }
local EXTREMES = { float8_e4m3fn = { 448, 2 ^ -9 }, float8_e5m2 = { 57344, 2 ^ -16 } }

-- The bytes of float8, as they lie in a file.
local function bytes(x)
  local path = os.tmpname() .. ".safetensors"
  pg.save(path, { x = x })
  local file = assert(io.open(path, "rb"))
  local all = file:read("*a")
  file:close()
  os.remove(path)
  return all:sub(-x:numel())
end

-- Equal numbers of equal signs, or both NaN.
local function same(a, b)
  a, b = a:to("float64"), b:to("float64")
  local one = pg.ones_like(a)
  local equal = a:eq(b):logical_and(one:copysign(a):eq(one:copysign(b)))
  return equal:logical_or(a:isnan():logical_and(b:isnan())):all():item()
end

local function codes(format) return tensors[format .. ".codes"] end

for _, format in ipairs(FORMATS) do
  test(format .. ": all codes as other floats, and back", function(t)
    t.equal(codes(format).dtype, format)
    for _, dtype in ipairs(TYPES) do
      local wide = codes(format):to(dtype)
      t.equal(wide.dtype, dtype)
      t.ok(same(wide, tensors[format .. ".codes." .. dtype]), "to " .. dtype)
    end
    -- Of NaN there is one code of each sign to go back to.
    local there = codes(format):to("float32"):to(format)
    local numbers = codes(format):to("float32"):isnan():logical_not()
    t.equal(bytes(there[numbers]), bytes(codes(format)[numbers]))
    t.equal(pg.tensor({ 1e9, -1e9 }, { dtype = format }):totable(), format:find "e5" and { math.huge, -math.huge } or
      { 448, -448 })
    t.ok(there:to("float32"):isnan():eq(numbers:logical_not()):all():item(), "NaN stays NaN")
  end)

  test(format .. ": what numbers become", function(t)
    for _, dtype in ipairs(TYPES) do
      local x, expected = tensors[dtype .. ".numbers"], tensors[format .. ".of." .. dtype]
      t.equal(bytes(x:to(format)), bytes(expected))
      local strided = pg.stack { x, x, axis = 2 }:select(2, 2):to(format) -- element by element
      t.equal(bytes(strided:contiguous()), bytes(expected))
      t.equal(bytes(x[{ { 1, 3 } }]:to(format)), bytes(expected[{ { 1, 3 } }]))
    end
    local other = format == FORMATS[1] and FORMATS[2] or FORMATS[1]
    t.equal(bytes(codes(other):to(format)), bytes(codes(other):to("float32"):to(format)))
    t.equal(pg.tensor({ -3, 0, 7 }, { dtype = "int64" }):to(format):totable(), { -3, 0, 7 })
    t.equal(pg.tensor({ true, false }):to(format):totable(), { 1, 0 })
    t.equal(pg.tensor({ 2.75, -1.5 }, { dtype = format }):to("int32"):totable(), { format:find "e5" and 3 or 2, -1 })
    t.equal(pg.tensor({ 0, -0.0, 0.5 }, { dtype = format }):to("bool"):totable(), { false, false, true })
  end)

  test(format .. ": making, reading, printing", function(t)
    local most, least = unpack(EXTREMES[format])
    local x = pg.tensor({ { 1, -0.5 }, { most, least } }, { dtype = format })
    t.equal(x.dtype, format)
    t.equal(x:totable(), { { 1, -0.5 }, { most, least } })
    t.equal(x[{ 2, 1 }]:item(), most)
    t.equal(tostring(pg.tensor({ 1, 0.25, -2 }, { dtype = format })), ("tensor([ 1.00,  0.25, -2.00], dtype=%s)")
      :format(format))
    t.equal(pg.zeros { 3, dtype = format }:totable(), { 0, 0, 0 })
    t.equal(pg.full({ 2 }, 0.3, { dtype = format }):totable(),
            pg.full({ 2 }, 0.3):to(format):to("float32"):totable())
    t.equal(pg.ones_like(x):to("float32"):sum():item(), 4)
    t.equal(pg.zeros({ 0, 3 }, { dtype = format }):to("float32").shape, pg.zeros { 0, 3 }.shape)
    t.equal(x:to(format == "float8_e5m2" and "f8e5m2" or "f8e4m3fn").dtype, format)
  end)

  test(format .. ": what moves elements", function(t)
    local x = codes(format):reshape(16, 16)
    local wide = x:to("float32")
    local mask = pg.arange(256):reshape(16, 16):remainder(3):eq(0)
    local index = pg.tensor({ 3, 0, 15, 3 }, { dtype = "int64" })
    local places = pg.randint(0, 16, { 16, 4 })
    local ways = {
      clone = function(v) return v:clone() end,
      transpose = function(v) return v:t():contiguous() end,
      part = function(v) return v[{ { 3, 14, 2 }, { 2, 9 } }] end,
      expand = function(v) return v:unsqueeze(1):expand(3, 16, 16):contiguous() end,
      cat = function(v) return pg.cat { v, v[{ { 1, 2 } }], axis = 1 } end,
      stack = function(v) return pg.stack { v, v:t(), axis = 3 } end,
      flip = function(v) return v:flip { 2 } end,
      roll = function(v) return v:roll(3, 1) end,
      pad = function(v) return pg.pad(v, { 1, 2 }, { value = 0.5 }) end,
      reflect = function(v) return pg.pad(v, { 3, 2 }, { mode = "reflect" }) end,
      index = function(v) return v[index] end,
      index_select = function(v) return v:index_select(2, index) end,
      gather = function(v) return v:gather(2, places) end,
      masked_select = function(v) return v[mask] end,
      where = function(v) return pg.where(mask, v, v:t()) end,
      where_number = function(v) return pg.where(mask, v, 1.5) end,
      masked_fill = function(v) return v:masked_fill(mask, -2) end,
      tril = function(v) return v:tril() end,
      unfold = function(v) return v:unfold(1, 3, 2):contiguous() end,
      diagonal = function(v) return v:diagonal():contiguous() end,
      repeated = function(v) return v:tile { 2, 1 } end,
      scatter = function(v) return v:scatter(2, places, v[{ {}, { 1, 4 } }]) end,
      index_put = function(v)
        local y = v:clone()
        y[index] = v[{ { 1, 4 } }]
        return y
      end,
      write_part = function(v)
        local y = v:clone()
        y[{ {}, 3 }] = 2
        y[{ 1, {} }] = v[{ 2, {} }]
        return y
      end,
      fill = function(v) return v:clone():fill_(3) end,
      copy = function(v) return pg.empty(v.shape, { dtype = v.dtype }):copy_(v:t()) end,
    }
    for name, way in pairs(ways) do
      local y = way(x)
      t.equal({ name, y.dtype }, { name, format })
      t.ok(same(y:to("float32"), way(wide):to(format):to("float32")), name)
    end
    -- NaN keeps its bits where nothing converts.
    for _, name in ipairs { "clone", "transpose", "cat", "index", "gather", "where" } do
      t.equal({ name, bytes(ways[name](x):contiguous()) },
              { name, bytes(ways[name](x:clone()):contiguous()) })
    end
    t.equal(bytes(x:t():t():clone()), bytes(x))
    t.equal(bytes(pg.cat { x[{ { 1, 7 } }], x[{ { 8, 16 } }], axis = 1 }), bytes(x))
  end)

  test(format .. ": no arithmetic", function(t)
    local x = pg.ones({ 2, 2 }, { dtype = format })
    local hint = "float8 is for storage: convert it first, x:to(\"float32\")"
    for name, fn in pairs {
      add = function() return x + x end, add_number = function() return x + 1 end,
      mul = function() return x * pg.ones { 2, 2 } end, matmul = function() return x:matmul(x) end,
      sum = function() return x:sum() end, exp = function() return x:exp() end,
      relu = function() return x:relu() end, amax = function() return x:amax() end,
      softmax = function() return x:softmax(1) end, eq = function() return x:eq(x) end,
      sort = function() return x:sort() end, linear = function() return pg.linear(x, x) end,
      cat = function() return pg.cat { x, pg.ones { 2, 2 } } end,
    } do
      local ok, message = pcall(fn)
      t.ok(not ok and message:find(format, 1, true) and message:find(hint, 1, true), name .. ": " .. tostring(message))
    end
    t.raises(function() return pg.arange { 4, dtype = format } end, "nothing is computed in " .. format)
    t.raises(function() return pg.rand { 4, dtype = format } end, format)
    x[pg.tensor({ 0 }, { dtype = "int64" })] = pg.full({ 1, 2 }, 2)
    t.equal(x:totable(), { { 2, 2 }, { 1, 1 } })
    t.raises(function() pg.set_default_dtype(format) end, format)
    t.raises(function() pg.nn.Linear { 2, 2 }:to(format) end, "floating")
    t.raises(function() x.requires_grad = true end, format)
  end)

  test(format .. ": files", function(t)
    local path = os.tmpname() .. ".safetensors"
    pg.save(path, { a = codes(format):reshape(2, 128):t(), b = pg.ones { 3 } })
    local back = pg.load(path)
    os.remove(path)
    t.equal({ back.a.dtype, back.a.shape[1], back.b.dtype }, { format, 128, "float32" })
    t.equal(bytes(back.a:t():contiguous()), bytes(codes(format)))
    t.raises(function() codes(format):save_npy(os.tmpname() .. ".npy") end, format)
  end)

  test(format .. ": other devices, graphs and compiled functions", function(t)
    local x = tensors["float32.numbers"]
    local y = x:to("sim:0"):to(format)
    t.equal(bytes(y:cpu()), bytes(x:to(format)))
    t.ok(same(y:to("float32"):cpu(), x:to(format):to("float32")), "sim")
    local joined = pg.cat { y[{ { 1, 5 } }], y:flip { 1 } }
    local expected = pg.cat { x[{ { 1, 5 } }], x:flip { 1 } }:to(format):to("float32")
    t.ok(same(joined:cpu():to("float32"), expected), "cat on sim")
    local fn = pg.compile(function(v)
      local low = (v * 2):to(format)
      return pg.where(v:gt(0), low, low:flip { 1 }):to("float32") + 1
    end)
    local function plain(v)
      local low = (v * 2):to(format)
      return pg.where(v:gt(0), low, low:flip { 1 }):to("float32") + 1
    end
    for _ = 1, 3 do t.ok(same(fn(x), plain(x)), "compiled") end
    local g = pg.graph(function(g)
      local v = g:placeholder { "v", shape = { "n" }, dtype = "float32" }
      return { y = v:to(format):to("float32") }
    end)
    t.ok(same(pg.Session { g }:run("y", { v = x }), x:to(format):to("float32")), "graph")
  end)
end
