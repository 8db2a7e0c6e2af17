// SPDX-License-Identifier: Apache-2.0
// What somebody sees who types at the prompt.

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <fstream>
#include <thread>

#include "terminal.hpp"

namespace {

const std::string kInterrupt = "\x03", kEnd = "\x04", kUp = "\x1b[A", kTab = "\t", kEnter = "\r";

// Long enough for a loop to be hot, were it compiled.
void let_it_run() { std::this_thread::sleep_for(std::chrono::milliseconds(400)); }

// Keys, once the prompt is there: what comes earlier meets a terminal in another mode.
void press(Terminal& t, const std::string& keys) {
  CHECK(t.sees("> "));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  t.send(keys);
}

void type(Terminal& t, const std::string& line) { press(t, line + kEnter); }

}  // namespace

TEST_CASE("expressions are shown and locals stay") {
  Folder home;
  Terminal t(home.path);
  type(t, "local a = 20");
  type(t, "a * 2 + 2");
  CHECK(t.sees("\n42\r"));
  type(t, "for i = 1, 2 do");
  type(t, "print(i * 111)");
  type(t, "end");
  CHECK(t.sees("\n111\r"));
  CHECK(t.sees("\n222\r"));
  type(t, "error('that ' .. 'failed')");
  CHECK(t.sees("stdin:1: that failed"));
  type(t, "pg.tensor{1, 2} + 1");
  CHECK(t.sees("tensor([2., 3.])"));
  type(t, "nn.Linear{3, 4}");
  CHECK(t.sees("Linear(inputs=3, out=4)"));
  press(t, kEnd);
  CHECK(t.ends() == 0);
}

TEST_CASE("Tab completes") {
  Folder home;
  Terminal t(home.path);
  type(t, "local x, mine = pg.zeros(2, 3), { wanted = 7001 }");
  SECTION("an operator") {
    press(t, "pg.softma" + kTab + "(pg.zeros(2))" + kEnter);
    CHECK(t.sees("0.5, 0.5"));
  }
  SECTION("a method and a field of a tensor") {
    press(t, "x:resha" + kTab + "(6) + 1" + kEnter);  // reshape_as is there too
    CHECK(t.sees("[1., 1., 1., 1., 1., 1.]"));
    press(t, "x.sha" + kTab + kEnter);
    CHECK(t.sees("\n{2, 3}"));
  }
  SECTION("keys of a table") {
    press(t, "mine.wa" + kTab + " + 1" + kEnter);
    CHECK(t.sees("7002"));
  }
  SECTION("members of a module") {
    press(t, "pg.nn.Conv2" + kTab + "{1, 2, 3}" + kEnter);
    CHECK(t.sees("Conv2d(inputs=1"));
  }
  SECTION("options of the open call") {
    press(t, "pg.nn.Conv2d{1, 2, 3, dilat" + kTab + "5}" + kEnter);
    CHECK(t.sees("dilation={5, 5}"));
  }
  SECTION("several names are listed") {
    press(t, "pg.soft" + kTab + kTab);
    CHECK(t.sees("softmax"));
    CHECK(t.sees("softplus"));
  }
  SECTION("a blank line is indented") {
    type(t, "do");
    press(t, kTab + "print(3 * 1000)" + kEnter + "end" + kEnter);
    CHECK(t.sees("\n3000\r"));
  }
}

TEST_CASE("Ctrl-C stops what runs, and the prompt goes on") {
  Folder home;
  std::ofstream(home.path / "endless.lua") << "return function() local s = 0 while true do s = s + 1 end end\n";
  Terminal t(home.path);
  const std::string program = GENERATE(
      std::string("while true do end"),
      std::string("local function f() local s = 0 while true do s = s + 1 end end f()"),
      std::string("local x = pg.ones(4) while true do x = x * 1 end"),
      std::string("coroutine.wrap(function() while true do end end)()"), std::string("dofile('HOME/endless.lua')()"),
      std::string("package.path = 'HOME/?.lua;' .. package.path require('endless')()"));
  std::string text = program;
  if (const size_t at = text.find("HOME"); at != std::string::npos) text.replace(at, 4, home.path.string());
  INFO(text);
  type(t, text);
  let_it_run();
  t.send(kInterrupt);
  CHECK(t.sees("interrupted (Ctrl-C once more leaves)"));
  type(t, "6 * 7");
  CHECK(t.sees("\n42\r"));
  press(t, kEnd);
  CHECK(t.ends() == 0);
}

TEST_CASE("Ctrl-C stops training") {
  Folder home;
  Terminal t(home.path);
  type(t, "local m, x = pg.nn.Linear{4, 1}, pg.rand(64, 4)");
  type(t,
       "m:fit{ x=x, y=x:sum(2):unsqueeze(2), loss='mse', optimizer=pg.optim.SGD{lr=0.01}, epochs=1000000, verbose=0 }");
  let_it_run();
  let_it_run();
  t.send(kInterrupt);
  CHECK(t.sees("interrupted"));
  type(t, "m.training, 6 * 7");
  CHECK(t.sees("42\r"));
}

TEST_CASE("Ctrl-C twice in a row leaves") {
  Folder home;
  Terminal t(home.path);
  SECTION("at the prompt") {
    press(t, kInterrupt);
    CHECK(t.sees("(Ctrl-C once more, or Ctrl-D, leaves)"));
    press(t, kInterrupt);
    CHECK(t.ends() == 0);
  }
  SECTION("while code runs") {
    type(t, "while true do end");
    let_it_run();
    t.send(kInterrupt);
    CHECK(t.sees("once more leaves"));
    press(t, kInterrupt);
    CHECK(t.ends() == 0);
  }
  SECTION("while code runs that catches the first") {
    type(t, "while true do pcall(function() while true do end end) end");
    let_it_run();
    t.send(kInterrupt);
    let_it_run();
    t.send(kInterrupt);
    CHECK(t.ends() == 130);
  }
  SECTION("while nothing of Lua runs that could stop") {
    type(t, "('a'):rep(40):find(('a?'):rep(40) .. ('a'):rep(40))");
    let_it_run();
    t.send(kInterrupt);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    t.send(kInterrupt);
    CHECK(t.ends() == 130);
  }
  SECTION("what is typed is dropped first") {
    press(t, "garbage(");
    let_it_run();
    t.send(kInterrupt);
    press(t, "garbage(");
    let_it_run();
    t.send(kInterrupt);
    type(t, "6 * 7");
    CHECK(t.sees("\n42\r"));
  }
}

TEST_CASE("lines are remembered by later sessions") {
  Folder home;
  {
    Terminal t(home.path);
    type(t, "11 * 11");
    CHECK(t.sees("\n121\r"));
    press(t, kEnd);
    CHECK(t.ends() == 0);
  }
  CHECK(std::filesystem::exists(home.path / "state" / "perigee" / "history"));
  Terminal t(home.path);
  press(t, kUp + kEnter);
  CHECK(t.sees("\n121\r"));
}

TEST_CASE("an entry of several lines comes back as a whole, here and in later sessions") {
  Folder home;
  {
    Terminal t(home.path);
    type(t, "for i = 1, 2 do");
    type(t, "  print(i * 111)");
    type(t, "end");
    CHECK(t.sees("\n222\r"));
    press(t, kUp + kEnter);
    CHECK(t.sees("\n222\r"));
    press(t, kEnd);
    CHECK(t.ends() == 0);
  }
  Terminal t(home.path);
  press(t, kUp + kEnter);
  CHECK(t.sees("\n111\r"));
  CHECK(t.sees("\n222\r"));
}

TEST_CASE("Ctrl-Left and Ctrl-Right move by words") {
  Folder home;
  Terminal t(home.path);
  const std::string left = "\x1b[1;5D", right = "\x1b[1;5C";
  press(t, "100 + 20" + left + left + "1" + right + "5" + kEnter);  // 1100 becomes 11005
  CHECK(t.sees("\n11025\r"));
}

TEST_CASE("blocks are pasted as they are") {
  Folder home;
  Terminal t(home.path);
  press(t,
        "local x = pg.arange(12)\r  :reshape(3, 4)\r  :sum()\rif x:item() == 66 then\r\tprint('it ' .. 'fits')\relse\r"
        "\tprint('no')\rend\r");
  CHECK(t.sees("it fits\r"));
}

TEST_CASE("help is there") {
  Folder home;
  Terminal t(home.path);
  type(t, "?pg.leaky_relu");
  CHECK(t.sees("negative_slope=0.01"));
  type(t, "help(pg.nn.Linear)");
  CHECK(t.sees("nn.Linear{inputs"));
  type(t, ":help summary");
  CHECK(t.sees("layer:summary("));
  type(t, ":hlep");
  CHECK(t.sees("did you mean :help?"));
}

namespace {

// Columns of the widest line between carriage returns and line ends; a letter is its first byte.
size_t widest(const std::string& text) {
  size_t most = 0, now = 0;
  for (char c : text) {
    if (c == '\r' || c == '\n')
      now = 0;
    else if ((static_cast<unsigned char>(c) & 0xC0) != 0x80)
      most = std::max(most, ++now);
  }
  return most;
}

size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) n++;
  return n;
}

}  // namespace

TEST_CASE("fit's bar keeps to the terminal's width") {
  const unsigned short columns = GENERATE(as<unsigned short>{}, 80, 60, 40, 24);
  CAPTURE(columns);
  Folder home;
  std::ofstream(home.path / "train.lua") << R"(
    local pg = require "perigee"
    local nn, x = pg.nn, pg.rand{400, 2}
    local model = nn.Sequential{ nn.Linear{2, 2} }
    local clock, now = require("perigee.native").clock, 0
    require("perigee.native").clock = function() now = now + 0.05; return now end  -- every batch is drawn
    model:fit{ x = x, y = x:sum{axis=2}:gt(1):to("int64"), loss = "cross_entropy", optimizer = pg.optim.SGD{lr=0.1},
               metrics = {"accuracy"}, epochs = 1, batch_size = 4 }
    require("perigee.native").clock = clock
    print("done " .. "training"))";
  Terminal t(home.path, columns);
  press(t, "dofile('" + (home.path / "train.lua").string() + "')" + kEnter);
  std::string output;
  REQUIRE(t.sees(".lua')"));
  REQUIRE(t.sees("\n"));  // the typed line is behind us
  REQUIRE(t.sees("done training", 20, &output));
  CAPTURE(output);
  const size_t last = output.rfind("\repoch 1/1");  // the epoch's last line may go on in the next
  REQUIRE(last != std::string::npos);
  CHECK(widest(output.substr(0, last)) < columns);
  CHECK(count(output.substr(0, last), "\n") == 0);
  CHECK(count(output.substr(0, last), columns < 40 ? "los" : "loss") > 5);
}

TEST_CASE("help is as wide as the terminal") {
  Folder home;
  Terminal t(home.path, 60);
  type(t, "?pg.cross_entropy");
  std::string output;
  REQUIRE(t.sees("\n> ", 20, &output));
  CHECK(widest(output) <= 60);
}
