-- SPDX-License-Identifier: Apache-2.0
-- Writing where there is no room, where somebody else writes too, and where the writer is killed: the old file stays,
-- and nothing beside it.

local tests = (debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or ".") .. "/../.."
package.path = tests .. "/?.lua;" .. package.path

local pg = require "perigee"
local native = require "perigee.native"
local process = require "process"

local function with_folder(fn)
  local folder = os.tmpname()
  os.remove(folder)
  native.make_folder(folder)
  local ok, err = pcall(fn, folder)
  os.execute(("umount '%s/small' 2>/dev/null; rm -rf '%s'"):format(folder, folder))
  if not ok then error(err, 0) end
end

-- Writes small files of all kinds into a folder, then large ones over them, and says what came of each.
local writer = [[
local pg = require "perigee"
local native = require "perigee.native"
local folder = arg[1]
local function files(x, text)
  local image = x:to("uint8"):reshape { -1, 8 }
  local manager = pg.CheckpointManager { folder .. "/checkpoints" }
  return {
    { "a.safetensors", function(path) pg.save(path, { x = x }) end },
    { "a.npy", function(path) x:save_npy(path) end },
    { "a.npz", function(path) pg.save_npz(path, { x = x }) end },
    { "a.png", function(path) pg.save(path, { image = image }) end },
    { "a.txt", function(path) native.write_text(path, text) end },
    { "checkpoints", function() manager:save { step = 1, x = x } end },
  }
end
for _, file in ipairs(files(pg.ones { 8 }, "small")) do file[2](folder .. "/" .. file[1]) end
for _, file in ipairs(files(pg.randn { 2 ^ 17 } * 100, ("large"):rep(2 ^ 17))) do
  local path = folder .. "/" .. file[1]
  local ok, err = pcall(file[2], path)
  print(file[1], not ok and err.code, not ok and err:find(path, 1, true) and "names it", err)
end
print(#pg.load(folder .. "/a.safetensors").x, pg.CheckpointManager { folder .. "/checkpoints" }:restore().x:numel())
]]

local function check_no_room(t, folder, text)
  for _, name in ipairs { "a.safetensors", "a.npy", "a.npz", "a.png", "a.txt", "checkpoints" } do
    t.ok(text:find(name .. "\tout_of_disk\tnames it", 1, true), name .. " in " .. text)
  end
  t.ok(text:find("\n8\t8\n"), text)
  t.equal(native.folder(folder), { "a.npy", "a.npz", "a.png", "a.safetensors", "a.txt", "checkpoints" })
  t.equal(#native.folder(folder .. "/checkpoints"), 1)
end

test("a limit of file sizes is an error that leaves the old files", function(t)
  with_folder(function(folder)
    local script = process.file(writer)
    local text = process.run(("ulimit -f 16; '%s' '%s' '%s'"):format(process.need_perigee(t), script, folder))
    os.remove(script)
    t.ok(text:find("ulimit %-f"), text)
    check_no_room(t, folder, text)
  end)
end)

test("a full disk is an error that leaves the old files", function(t)
  with_folder(function(folder)
    local small, perigee = folder .. "/small", process.need_perigee(t)
    native.make_folder(small)
    local script = process.file(writer)
    local mount = ("mount -t tmpfs -o size=128k none '%s'"):format(small)
    local text, status = process.run(("unshare -m sh -c \"%s\""):format(mount))
    if status ~= 0 then t.skip("no small disk can be made here: " .. text) end
    text = process.run(("unshare -m sh -c \"%s && '%s' '%s' '%s'; cp -a '%s/.' '%s/copy'\""):format(mount, perigee,
                       script, small, small, folder))
    os.remove(script)
    t.ok(text:find("[Nn]o space left"), text)
    check_no_room(t, folder .. "/copy", text)
  end)
end)

-- Whether it is there and has been written to: whoever has only just made it may yet find it gone, and make another.
local function is_begun(path)
  local file = io.open(path)
  local size = file and file:seek "end" or 0
  if file then file:close() end
  return size > 0
end

-- Starts a process that saves large checkpoints, and stops it while it writes a temporary file: its number, the file's
-- name, and the script.
local function stopped_writer(t, folder)
  local script = process.file(([[
    local pg = require "perigee"
    local x = pg.ones { 4 * 2 ^ 20 }
    local manager = pg.CheckpointManager { %q, keep = 1 }
    for step = 1, 1000 do
      local ok, err = pcall(manager.save, manager, { step = step, x = x })
      if not ok then print(err.code, err) os.exit(0) end
    end
  ]]):format(folder))
  os.execute(("'%s' '%s' > '%s.out' 2>&1 & echo $! > '%s.pid'"):format(process.need_perigee(t), script, folder, folder))
  local pid = assert(io.open(folder .. ".pid")):read("*n")
  for _ = 1, 2000 do
    for _, name in ipairs(native.folder(folder)) do
      if name:find("%.tmp%.safetensors$") then
        -- A signal takes a moment to arrive; until then the file may still be given its name.
        local stops = "kill -STOP %d; while ! grep -q '^State:.[TZ]' /proc/%d/status; do sleep 0.002; done"
        os.execute(stops:format(pid, pid))
        if is_begun(folder .. "/" .. name) then return pid, name, script end
        os.execute("kill -CONT " .. pid)
      end
    end
    os.execute("sleep 0.003")
  end
  error("no temporary file was seen")
end

local function output(folder)
  local file = assert(io.open(folder .. ".out"))
  local text = file:read("*a")
  file:close()
  return text
end

local function clear(folder, pid, script)
  os.execute(("kill -9 %d 2>/dev/null; rm -f '%s' '%s.out' '%s.pid'"):format(pid, script, folder, folder))
end

test("what a killed process left is cleared, what a living one writes is not", function(t)
  with_folder(function(folder)
    local names = {}
    for i = 1, 2 do
      local pid, name, script = stopped_writer(t, folder)
      names[i] = name
      t.ok(name:find("^%.step%-%d+%.safetensors%.%x+%.tmp%.safetensors$") and #name:match("(%x+)%.tmp") == 16, name)
      local _ = pg.CheckpointManager { folder }
      t.ok(io.open(folder .. "/" .. name), "it was cleared while it was written")
      os.execute(("kill -9 %d; while kill -0 %d 2>/dev/null; do sleep 0.01; done"):format(pid, pid))
      _ = pg.CheckpointManager { folder }
      t.equal((io.open(folder .. "/" .. name)), nil)
      clear(folder, pid, script)
    end
    t.ok(names[1] ~= names[2], "the name can be foreseen")
  end)
end)

test("a link in the temporary file's place leads nowhere", function(t)
  with_folder(function(folder)
    local victim = folder .. "/victim"
    native.write_text(victim, "mine")
    local pid, name, script = stopped_writer(t, folder)
    os.remove(folder .. "/" .. name)
    os.execute(("ln -s '%s' '%s/%s'; kill -CONT %d"):format(victim, folder, name, pid))
    os.execute(("timeout 60 sh -c 'while kill -0 %d 2>/dev/null; do sleep 0.01; done'"):format(pid))
    local text = output(folder)
    clear(folder, pid, script)
    t.ok(text:find("^failed_precondition\t.*replaced its temporary file") or text:find("symbolic links"), text)
    local file = io.open(victim)
    t.equal(file:read("*a"), "mine")
    file:close()
  end)
end)
