-- SPDX-License-Identifier: Apache-2.0
-- Each mutant is caught by the check that is there for it, by name; without the mutation that check passes.

local here = debug.getinfo(1, "S").source:match("^@(.*)mutants/[^/]*$") or "../"
package.path = here .. "?.lua;" .. package.path

local pg = require "perigee"
local process = require "process"

local folder, cases = os.getenv("PERIGEE_MUTANTS"), os.getenv("PERIGEE_CASES") or "tests"
-- Slow enough that what does not wait is found out, small enough that what leaks is.
local settings = "PERIGEE_SIM_MEMORY=256MB PERIGEE_SIM_JITTER=%d PERIGEE_SIM_SEED=1 PERIGEE_SIM_DEVICES=%d"

local function conform(t, mutant, words, jitter, library)
  local environment = settings:format(jitter or 0, words:find "collectives" and 2 or 1)
  local text = process.run(("PERIGEE_MUTANT=%s %s '%s' conform '%s/%s.so' --json --cases '%s' %s"):format(
    mutant, environment, process.need_perigee(t), folder, library or "mutant", cases, words))
  local json
  for line in text:gmatch("[^\n]+") do json = line:sub(1, 1) == "{" and line or json end
  if not json then error("conform prints: " .. text, 0) end
  return pg.json.decode(json)
end

local function fails(report, group, name)
  for _, f in ipairs(report.failures) do
    if f.group == group and f.name:find(name, 1, true) == 1 then return f.problem end
  end
end

-- By group: words, microseconds of jitter, and mutants with the beginning of the check's name.
local mutants = {
  { "abi", "--level 0 --group abi", 0,
    any_table = "has no table for what nobody knows", moving_table = "tables stay where they are",
    other_type = "kernels have names, and devices that they are for", alignment = "loads" },
  { "lifecycle", "--level 0 --group lifecycle", 0,
    opens_once = "opens and closes a hundred times", close_fails = "opens and closes a hundred times" },
  { "memory", "--level 1 --group memory", 0,
    no_name = "a device says what it is", properties_overrun = "properties write no more than there is room for",
    same_handle = "blocks have handles of their own", upload_short = "blocks lie apart and keep their bytes",
    exhaustion_code = "what cannot be had is out of memory", exhaustion_silent = "what cannot be had is out of memory",
    leak = "what is freed can be had again", free_memory = "free memory is told",
    any_kind = "an unknown kind of memory is refused", free_anything = "a buffer that is none is refused" },
  { "copies", "--level 1 --group copies", 0,
    upload_offset = "uploads and downloads take offsets", download_offset = "uploads and downloads take offsets",
    upload_nothing = "nothing is copied of nothing", upload_large = "large copies arrive whole",
    copy_source_strides = "a copy follows strides and offsets",
    copy_target_strides = "a copy follows strides and offsets", copy_offset = "a copy follows strides and offsets",
    copy_gaps = "a copy leaves what lies between its elements", fill_strides = "a fill writes its elements alone",
    fill_through_double = "a fill keeps integers whole", fill_bool = "a fill converts",
    copy_broadcast = "a copy repeats a source of stride 0", copy_rounds = "a copy converts",
    copy_no_axes = "tensors without axes", peer_offset = "peers exchange bytes at offsets" },
  { "streams", "--level 2 --group streams", 2000,
    same_stream = "streams and events have handles of their own", upload_elsewhere = "a stream works in order",
    no_sync = "synchronising waits for all", no_wait = "a stream that waits for an event",
    late_wait = "a wait is for the recording at the time of the call",
    record_once = "recording an event again replaces", no_event_sync = "an event keeps the host waiting",
    query_passed = "a query tells", query_busy = "an event that was never recorded",
    time_absolute = "events tell the time", time_zero = "events tell the time" },
  { "threads", "--level 2 --group threads", 0, shared_scratch = "threads have streams of their own" },
  { "kernels", "--level 3 --group kernels --ops add,sub,mul,exp,relu,sum,maximum,matmul,softmax,nonzero,logical_not", 0,
    add_off = "add/", swapped = "sub/", relu_nan = "relu/", exp_infinity = "exp/", sum_short = "sum/",
    maximum_nan = "maximum/", matmul_off = "matmul/", softmax_off = "softmax/", double_as_float = "exp/",
    bfloat16_cut = "mul/", int_wide = "mul/", bool_two = "logical_not/", extents = "nonzero/" },
  { "strides", "--level 3 --group strides --ops mul", 0, input_strides = "mul/" },
  { "orders", "--level 3 --group orders --ops mul", 0, order_ignored = "mul/", order_in_place = "mul/" },
  { "empty", "--level 3 --group empty --ops add", 0, empty_fails = "add/" },
  { "aliases", "--level 3 --group aliases --ops mul", 0, over_input = "mul/" },
  { "repeated", "--level 3 --group repeated --ops matmul,neg", 0, stale = "matmul/", second_call = "neg/" },
  { "gradients", "--level 4 --group gradients --ops relu,add", 0, relu_grad_off = "relu/", sum_like_off = "add/" },
  { "training", "--level 4 --group training", 0,
    matmul_large = "a perceptron learns", step_off = "a perceptron learns" },
  { "errors", "--level 5 --group errors", 0,
    supports_all = "what is not computed with is refused", supports_code = "what is not computed with is refused",
    supports_silent = "what is not computed with is refused",
    failure_lost = "an index out of range", failure_stays = "an index out of range",
    failure_blank = "an index out of range", failure_loses_device = "an index out of range" },
  { "profiler", "--level 5 --group profiler", 0,
    profile_sequence = "work is told by its number", profile_clock = "work is told by its number",
    profile_kind = "work is told by its number", profile_bytes = "work is told by its number",
    profile_backwards = "work is told by its number", profile_overlaps = "work is told by its number",
    profile_again = "what was told is forgotten", profile_little = "the newest activities are kept",
    profile_counts = "the newest activities are kept", profile_oldest = "the newest activities are kept" },
  { "captured", "--level 5 --group captured", 0,
    block_once = "numbers of operators", keeps_numbers = "random numbers",
    plan_once = "an optimizer's numbers", plan_number = "what fails in a plan is told by its number" },
  { "collectives", "--level 5 --group collectives", 0,
    group_twice = "what makes no sense is refused", any_root = "what makes no sense is refused",
    mean_is_sum = "every kind does what it says", root_off = "every kind does what it says",
    reduce_short = "every kind does what it says", one_row = "rows are done in their order",
    sends_nothing = "sends and receives pair up", abort_ignored = "a broken group fails until it is destroyed" },
  { "kernels", "--level 5 --group kernels --ops uniform", 0, uniform_bit = "uniform/" },
}

local count = 0
for _, set in ipairs(mutants) do
  local group, words, jitter = unpack(set, 1, 3)
  for mutant, check in pairs(set) do
    if type(mutant) == "string" then
      count = count + 1
      test(("%s: %s"):format(group, mutant), function(t)
        if not folder then t.skip("PERIGEE_MUTANTS does not say where they are") end
        local report = conform(t, mutant, words, jitter)
        local problem = fails(report, group, check)
        if not problem then
          error(("not caught; it fails %s"):format(pg.json.encode(report.failures)), 0)
        end
        t.ok(report.level < tonumber(words:match("level (%d)")) or mutant == "alignment", "level " .. report.level)
      end)
    end
  end
  test(("%s: nothing wrong, nothing found (%s)"):format(group, words), function(t)
    if not folder then t.skip("PERIGEE_MUTANTS does not say where they are") end
    local report = conform(t, "none", words, jitter)
    t.equal(#report.failures, 0, pg.json.encode(report.failures))
    t.ok(report.groups[group].passed > 0)
  end)
end

test("a library that exports more than its entry is caught", function(t)
  if not folder then t.skip("PERIGEE_MUTANTS does not say where they are") end
  local report = conform(t, "none", "--level 0", 0, "exporter")
  local problem = fails(report, "abi", "exports its entry and nothing else")
  t.ok(problem and problem:find("helper_of_the_exporter", 1, true), pg.json.encode(report.failures))
end)

-- Of parts of pipelines, by group: mutants with the beginning of the check's name.
local parts = {
  sources = {
    negative_count = "squares: any of its elements is read", no_name = "squares: any of its elements is read",
    odd_dtype = "squares: any of its elements is read", remembers = "squares: in any order and again",
    number_changes = "squares: in any order and again", unfilled = "squares: in any order and again",
    shape_changes = "squares: threads at one time", says_more = "steps: its elements are read one after the other",
    field_at_end = "steps: its elements are read one after the other",
    empty_element = "steps: its elements are read one after the other", goes_on = "steps: another pass",
    skips_little = "steps: what is skipped", skip_ends = "steps: what is skipped" },
  transforms = {
    silent_refusal = "shift: what it refuses has a reason", odd_code = "shift: what it refuses has a reason",
    writes_input = "shift: it leaves the row that it is given", own_draws = "shift: of one row and one draw",
    unfilled_transform = "shift: of one row and one draw", shares_state = "shift: threads at one time" },
  codecs = {
    matches_all = "plain_picture: bytes of no kind", noise_code = "plain_picture: bytes of no kind",
    noise_silent = "plain_picture: bytes of no kind", matches_none = "plain_picture: what it encodes, it knows",
    probe_lies = "plain_picture: what it encodes, it knows", other_name = "plain_picture: what it encodes, it knows",
    no_scale_one = "plain_picture: what it encodes, it knows",
    unfilled_codec = "plain_picture: what it encodes, it knows",
    decodes_anew = "plain_picture: what it encodes, it knows", encode_silent = "plain_picture: it encodes something",
    encodes_nothing = "plain_picture: it encodes something", no_limit = "plain_picture: too many pixels",
    any_scale = "plain_picture: scales and parts", scale_cuts = "plain_picture: scales and parts",
    part_is_all = "plain_picture: scales and parts", any_part = "plain_picture: scales and parts",
    takes_short = "plain_picture: bytes that end early", odd_refusal = "plain_picture: changed bytes" },
}
for group, set in pairs(parts) do
  for mutant, check in pairs(set) do
    count = count + 1
    test(("%s: %s"):format(group, mutant), function(t)
      if not folder then t.skip("PERIGEE_MUTANTS does not say where they are") end
      local report = conform(t, mutant, "--group " .. group, 0, "parts")
      if not fails(report, group, check) then
        error(("not caught; it fails %s"):format(pg.json.encode(report.failures)), 0)
      end
    end)
  end
end

test("parts: nothing wrong, nothing found, and what needs options is asked with them", function(t)
  if not folder then t.skip("PERIGEE_MUTANTS does not say where they are") end
  local report = conform(t, "none", "", 0, "parts")
  t.equal(#report.failures, 0, pg.json.encode(report.failures))
  t.equal(report.groups.sources.absent, 1)
  t.ok(report.unasked[1].why:find("named.path", 1, true), report.unasked[1].why)
  t.equal(report.level, nil)
  report = conform(t, "none", "--with named.path=letters --with squares.count=200", 0, "parts")
  t.equal(#report.failures, 0, pg.json.encode(report.failures))
  t.equal(report.groups.sources.absent, 0)
  t.ok(report.groups.codecs.passed > 10 and report.groups.transforms.passed > 3)
end)

test("there are at least forty", function(t) t.ok(count >= 40, count) end)
