-- SPDX-License-Identifier: Apache-2.0
-- Letters as strokes on a grid of 4 x 6 (below the line to 8): lines of points "xy", from the top left. Drawn for this.

local columns = require "perigee.printing.columns"

local letters = {
  [" "] = "", ["!"] = "2024 2626", ['"'] = "1012 3032", ["#"] = "1016 3036 0242 0444",
  ["$"] = "413010010213334445361605 2026", ["%"] = "4006 0111 3545", ["&"] = "46112031 130405163644", ["'"] = "2022",
  ["("] = "30121436", [")"] = "10323416", ["*"] = "2125 0244 0442", ["+"] = "2125 0343", [","] = "252618",
  ["-"] = "0343", ["."] = "2626", ["/"] = "0640", ["0"] = "103041453616050110", ["1"] = "112026 1636",
  ["2"] = "01103041420646",
  ["3"] = "004022324345361605", ["4"] = "36300444", ["5"] = "400002324345361605", ["6"] = "413010010516364543321203",
  ["7"] = "004016", ["8"] = "103041423313020110 1304051636454433", ["9"] = "051636454130100103143443",
  [":"] = "2222 2626", [";"] = "2222 252618", ["<"] = "410345", ["="] = "0242 0444", [">"] = "014305",
  ["?"] = "01103041422324 2626", ["@"] = "34131231344441301001051646", ["["] = "30101636", ["\\"] = "0046",
  ["]"] = "10303616", ["^"] = "022042", ["_"] = "0747", ["`"] = "1021", ["{"] = "30212213242536", ["|"] = "2026",
  ["}"] = "10212233242516", ["~"] = "04133443",
  A = "0602204246 0444", B = "003041423303 334445360600", C = "4130100105163645", D = "00204244260600",
  E = "40000646 0333", F = "400006 0333", G = "41301001051636454323", H = "0006 4046 0343", I = "1030 2026 1636",
  J = "4045361605", K = "0006 4003 0346", L = "000646", M = "0600224046", N = "06004640", O = "103041453616050110",
  P = "06003041423303", Q = "103041453616050110 2446", R = "06003041423303 2346", S = "413010010213334445361605",
  T = "0040 2026", U = "000516364540", V = "002640", W = "0016223640", X = "0046 4006", Y = "002340 2326",
  Z = "00400646",
  a = "12324346 441405163645", b = "0006 0312324345361605", c = "4332120305163645", d = "4046 4332120305163645",
  e = "04444332120305163645", f = "40302126 1232", g = "4247381807 4332120305163645", h = "0006 0312324346",
  i = "2226 2020", j = "22271807 2020", k = "0006 4204 1446", l = "202536", m = "0206 03122326 23324346",
  n = "0206 0312324346", o = "123243453616050312", p = "0208 0312324345361605", q = "4248 4332120305163645",
  r = "0206 03123243", s = "4212031434453606", t = "20253646 0242", u = "0205163645 4246", v = "022642",
  w = "0216243642", x = "0246 4206", y = "0205163645 4247381807", z = "02420646",
  ["ı"] = "2226", ["ȷ"] = "22271807", ["ß"] = "0601103041322334453616", ["Æ"] = "0620 2026 2040 2646 2343 0424",
  ["æ"] = "0212232616050413 2332424424 2646", ["Ø"] = "103041453616050110 0640", ["ø"] = "123243453616050312 0642",
  ["Ð"] = "00204244260600 0323", ["ð"] = "1031444536160504133444 4031", ["Þ"] = "0006 0131424433 0434",
  ["þ"] = "0008 0312324345361605", ["Ł"] = "000646 0422", ["ł"] = "202536 1432", ["Đ"] = "00204244260600 0323",
  ["đ"] = "4046 4332120305163645 3151",
  ["Œ"] = "20100105162026 2040 2646 2343", ["œ"] = "12030516252312 2332424424 2646",
  ["°"] = "2031221120", ["±"] = "2024 0242 0646", ["·"] = "2323", ["×"] = "0246 0642", ["÷"] = "0343 2121 2525",
  ["–"] = "0343", ["—"] = "0343", ["…"] = "0606 2626 4646",
  ["µ"] = "0208 0205163645 4246", ["μ"] = "0208 0205163645 4246",
}
local OTHER = "0040460600" -- a box

-- Marks over and under letters: the combining mark, its strokes at a small letter (whose top is at 2), and the letters
-- that have it, each followed by the one that it stands on.
local MARKS = {
  { "\204\128", "1021", -- grave
    "ÀA ÈE ÌI ÒO ÙU àa èe ìi òo ùu" },
  { "\204\129", "3021", -- acute
    "ÁA ÉE ÍI ÓO ÚU ÝY áa ée íi óo úu ýy ĆC ćc ĹL ĺl ŃN ńn ŔR ŕr ŚS śs ŹZ źz" },
  { "\204\130", "112031", -- circumflex
    "ÂA ÊE ÎI ÔO ÛU âa êe îi ôo ûu ĈC ĉc ĜG ĝg ĤH ĥh ĴJ ĵj ŜS ŝs ŴW ŵw ŶY ŷy" },
  { "\204\131", "01103140", -- tilde
    "ÃA ÑN ÕO ãa ñn õo ĨI ĩi ŨU ũu" },
  { "\204\132", "1030", -- macron
    "ĀA āa ĒE ēe ĪI īi ŌO ōo ŪU ūu" },
  { "\204\134", "10113130", -- breve
    "ĂA ăa ĔE ĕe ĞG ğg ĬI ĭi ŎO ŏo ŬU ŭu" },
  { "\204\135", "2020", -- dot
    "ĊC ċc ĖE ėe ĠG ġg İI ŻZ żz" },
  { "\204\136", "1010 3030", -- diaeresis
    "ÄA ËE ÏI ÖO ÜU äa ëe ïi öo üu ÿy ŸY" },
  { "\204\138", "2031221120", -- ring
    "ÅA åa ŮU ůu" },
  { "\204\139", "2011 4031", -- double acute
    "ŐO őo ŰU űu" },
  { "\204\140", "102130", -- caron
    "ČC čc ĎD ďd ĚE ěe ĽL ľl ŇN ňn ŘR řr ŠS šs ŤT ťt ŽZ žz ǍA ǎa ǏI ǐi ǑO ǒo ǓU ǔu ǦG ǧg ǨK ǩk" },
  { "\204\166", "2718", -- comma
    "ȘS șs ȚT țt" },
  { "\204\167", "26372818", -- cedilla
    "ÇC çc ĢG ģg ĶK ķk ĻL ļl ŅN ņn ŖR ŗr ŞS şs ŢT ţt" },
  { "\204\168", "36273848", -- ogonek
    "ĄA ąa ĘE ęe ĮI įi ŲU ųu" },
}
local RISE = 2 -- of marks over letters that are higher

local strokes_of, parts_of = {}, {} -- of a mark; of a letter: what it stands on, its mark
for _, row in ipairs(MARKS) do
  strokes_of[row[1]] = row[2]
  for letter, base in row[3]:gmatch("([\194-\244][\128-\191]+)(%a)") do parts_of[letter] = { base, row[1] } end
end
local UNDER = { ["\204\166"] = true, ["\204\167"] = true, ["\204\168"] = true }
local DOTLESS = { i = "ı", j = "ȷ" }

local ADVANCE, GAP = 6, 2

-- What a letter is drawn as: one that has strokes, and its mark.
local function parts(letter)
  local found = parts_of[letter]
  return found and found[1] or letter, found and found[2]
end

---Width of a text in units of the grid.
local function width(text)
  local count = 0
  for letter in columns.letters(text) do count = count + (strokes_of[letter] and 0 or 1) end
  return math.max(0, count * ADVANCE - GAP)
end

local function draw(strokes, left, up, stroke)
  for line in strokes:gmatch("%d+") do
    local x0, y0
    for x, y in line:gmatch("(%d)(%d)") do
      if x0 then stroke(left + x0, y0 - up, left + x, y - up) end
      x0, y0 = tonumber(x), tonumber(y)
    end
  end
end

local function draw_mark(mark, base, left, stroke)
  local is_small = base:find("^[acegijmnopqrsuvwxyz]$")
  draw(strokes_of[mark], left, (is_small or UNDER[mark]) and 0 or RISE, stroke)
end

---Calls stroke(x0, y0, x1, y1) for every line of a text, in units from its top left; marks on capitals are above it.
local function strokes(text, stroke)
  local left, last = -ADVANCE, " "
  for letter in columns.letters(text) do
    if strokes_of[letter] then -- behind the letter that it belongs to
      draw_mark(letter, last, left, stroke)
    else
      local base, mark = parts(letter)
      left, last = left + ADVANCE, base
      if mark and not UNDER[mark] then base = DOTLESS[base] or base end
      draw(letters[base] or OTHER, left, 0, stroke)
      if mark then draw_mark(mark, last, left, stroke) end
    end
  end
end

return { width = width, strokes = strokes }
