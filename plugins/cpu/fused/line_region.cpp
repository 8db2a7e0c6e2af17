// SPDX-License-Identifier: Apache-2.0
#include "line_region.hpp"

#include <algorithm>

#include "../block_loop.hpp"
#include "../first_failure.hpp"
#include "../reduction.hpp"
#include "groups.hpp"
#include "line_run.hpp"

namespace cpu {

namespace {

constexpr int64_t kBlockElements = 8192;  // that go through all stages together

std::unique_ptr<Lines> lines_of(const pg::Region& piece, uint32_t node) {
  const MakeLines make = find_lines(piece.node(node).op->name);
  if (make == nullptr) return nullptr;
  pg::Region::Call call;
  piece.describe(node, call);
  return make(pg::KernelCall(&call.call));
}

}  // namespace

bool LineRegion::is_needed(const pg::Region& piece) {
  const pg_tensor& first = piece.value(piece.node(0).outputs[0]);
  for (uint32_t n = 0; n < piece.node_count(); n++) {
    const pg_node& node = piece.node(n);
    if (find_lines(node.op->name) != nullptr || !pg::same_shape(piece.value(node.outputs[0]), first)) return true;
  }
  return false;
}

LineRegion::LineRegion(const pg::Region& piece, pg::Plan& plan) {
  values_.resize(piece.raw->value_count);
  find_lines_of(piece);
  find_levels(piece);
  make_stages(piece);
  place_values(piece);
  if (folds() || thread_bytes() <= RegionBytes::kNear) return;
  rooms_ = Rooms::count();
  plan.workspace = Rooms::workspace(rooms_, thread_bytes());
}

// ---- what its values are ----

void LineRegion::find_lines_of(const pg::Region& piece) {
  const pg_tensor *full = nullptr, *numbers = nullptr;
  int64_t most = 0, least = INT64_MAX;
  for (uint32_t n = 0; n < piece.node_count(); n++) {
    makers_.push_back(lines_of(piece, n));
    if (const Lines* lines = makers_.back().get()) {
      const pg_tensor& x = piece.value(lines->makes ? piece.node(n).outputs[0] : piece.node(n).inputs[0]);
      length_ = length_of(*lines, x);
      if (lines->leading) way_ = Way::kColumns;
      full = &x;
    }
    const pg_tensor& result = piece.value(piece.node(n).outputs[0]);
    const int64_t count = pg::element_count(result);
    if (count > most) most = count, numbers = &result;
    least = std::min(least, count);
  }
  if (full == nullptr) full = numbers, length_ = most / least;  // what worked on lines is in another piece
  lines_ = pg::element_count(*full) / length_;
  if (way_ != Way::kColumns && length_ > kLongestLine) way_ = Way::kPieces;
  for (uint32_t v = 0; v < values_.size(); v++) {
    const pg_tensor& t = piece.value(v);
    Value& value = values_[v];
    const int64_t count = pg::element_count(t), bytes = kStorageBytes[storage_of(t)];
    value.full = pg::same_shape(t, *full);
    value.numbers = !value.full && count == lines_;
    value.by_line = value.numbers && line_length(t, *full) == length_;
    value.bytes = value.full ? bytes * length_ : value.numbers ? bytes : 0;
  }
}

// Elementwise nodes of a level are one program; what works on lines raises it.
void LineRegion::find_levels(const pg::Region& piece) {
  for (uint32_t n = 0; n < piece.node_count(); n++) {
    const pg_node& node = piece.node(n);
    const bool lines = makers_[n] != nullptr, numbers = !lines && values_[node.outputs[0]].numbers;
    uint32_t level = 0;
    for (uint32_t i = 0; i < node.input_count; i++) {
      if (node.inputs[i] == PG_VALUE_NONE) continue;
      const Value& x = values_[node.inputs[i]];
      if (x.maker == kNone) continue;
      if (lines && makers_[n]->makes) pg::fail_support("a product takes what is made here");
      level = std::max(level, x.level);
      if (lines ? !x.full : numbers ? !x.numbers : !(x.full || x.by_line)) pg::fail_support("it is wanted as a whole");
      if (folds() && !numbers && (!x.full || level > 0)) pg::fail_support("numbers are known at the end only");
    }
    for (uint32_t k = 0; k < node.output_count; k++) {
      if (node.outputs[k] == PG_VALUE_NONE) continue;
      Value& made = values_[node.outputs[k]];
      if (made.bytes == 0) pg::fail_support("a result has no lines");
      made.maker = n;
      made.level = lines ? level + 1 : level;
    }
  }
}

// ---- stages ----

void LineRegion::make_stages(const pg::Region& piece) {
  uint32_t levels = 0;
  for (const Value& v : values_) levels = std::max(levels, v.level);
  std::vector<uint32_t> late_numbers;
  std::vector<uint8_t> works_on_lines;
  for (const auto& maker : makers_) works_on_lines.push_back(maker != nullptr);
  for (uint32_t level = 0; level <= levels; level++) {
    std::vector<uint32_t> full, numbers, lines;
    for (uint32_t n = 0; n < piece.node_count(); n++) {
      const pg_node& node = piece.node(n);
      const Value& made = values_[node.outputs[0]];
      if (works_on_lines[n]) {
        if (made.level == level + 1) lines.push_back(n);
      } else if (made.level == level) {
        (made.numbers ? numbers : full).push_back(n);
      }
    }
    // What reads inputs alone comes first: elementwise results may lie where these do.
    const auto later = std::stable_partition(lines.begin(), lines.end(), [&](uint32_t n) {
      const pg_node& node = piece.node(n);
      return std::all_of(node.inputs, node.inputs + node.input_count,
                         [&](uint32_t v) { return v == PG_VALUE_NONE || values_[v].maker == kNone; });
    });
    for (auto n = lines.begin(); n != later; ++n) add_lines(piece, *n);
    lines.erase(lines.begin(), later);
    if (folds())
      late_numbers.insert(late_numbers.end(), numbers.begin(), numbers.end());
    else
      add_program(piece, numbers, true);
    add_program(piece, full, false);
    for (uint32_t n : lines) add_lines(piece, n);
  }
  std::sort(late_numbers.begin(), late_numbers.end());
  add_program(piece, late_numbers, true);
}

void LineRegion::add_program(const pg::Region& piece, const std::vector<uint32_t>& nodes, bool of_numbers) {
  std::vector<uint8_t> mine(values_.size(), 0), read(values_.size(), 0), wanted(values_.size(), 0);
  for (uint32_t n : nodes) mine[piece.node(n).outputs[0]] = 1;
  for (uint32_t i = 0; i < piece.raw->output_count; i++) wanted[piece.raw->outputs[i]] = 1;
  std::vector<uint8_t> own(piece.node_count(), 0);
  for (uint32_t n : nodes) own[n] = 1;
  Stage stage;
  for (uint32_t n = 0; n < piece.node_count(); n++) {
    const pg_node& node = piece.node(n);
    for (uint32_t i = 0; i < node.input_count; i++) {
      const uint32_t v = node.inputs[i];
      if (v == PG_VALUE_NONE) continue;
      if (!own[n]) {
        wanted[v] = 1;
      } else if (!mine[v] && !read[v]) {
        read[v] = 1;
        stage.inputs.push_back(v);
      }
    }
  }
  for (uint32_t n : nodes)
    if (wanted[piece.node(n).outputs[0]]) stage.outputs.push_back(piece.node(n).outputs[0]);
  if (stage.outputs.empty()) return;
  for (uint32_t n : nodes)
    if (!pg::same_shape(piece.value(piece.node(n).outputs[0]), piece.value(stage.outputs[0])))
      pg::fail_support("results of several shapes");
  std::vector<const pg_node*> pointers;
  for (uint32_t n : nodes) pointers.push_back(piece.raw->nodes[n]);
  std::vector<uint64_t> overwrites;
  for (uint32_t v : stage.outputs) {
    uint64_t mask = 0;
    for (uint32_t k = 0; k < piece.raw->output_count; k++)
      for (uint32_t j = 0; j < stage.inputs.size() && j < 64 && piece.raw->outputs[k] == v; j++)
        for (uint32_t i = 0; i < piece.raw->input_count && i < 64; i++)
          if (piece.raw->inputs[i] == stage.inputs[j] && (piece.raw->overwrites[k] >> i & 1u)) mask |= uint64_t{1} << j;
    overwrites.push_back(mask);
  }
  pg_region part = *piece.raw;
  part.node_count = static_cast<uint32_t>(pointers.size());
  part.nodes = pointers.data();
  part.input_count = static_cast<uint32_t>(stage.inputs.size());
  part.inputs = stage.inputs.data();
  part.output_count = static_cast<uint32_t>(stage.outputs.size());
  part.outputs = stage.outputs.data();
  part.overwrites = overwrites.data();
  stage.of_numbers = of_numbers;
  stage.program = std::make_unique<RegionKernel>(pg::Region(&part));
  if (stage.program->count() != (of_numbers ? lines_ : lines_ * length_)) pg::fail_support("results of other shapes");
  if (!of_numbers) cost_ += stage.program->cost();
  stages_.push_back(std::move(stage));
}

void LineRegion::add_lines(const pg::Region& piece, uint32_t n) {
  const pg_node& node = piece.node(n);
  Stage stage;
  stage.lines = std::move(makers_[n]);
  stage.attrs = node.attrs_offset;
  for (uint32_t i = 0; i < node.input_count; i++) stage.inputs.push_back(node.inputs[i]);
  for (uint32_t k = 0; k < node.output_count; k++) stage.outputs.push_back(node.outputs[k]);
  if (folds() && stage.lines->reduction() == nullptr) pg::fail_support("lines are long");
  cost_ += stage.lines->cost();
  shared_bytes_ += static_cast<int64_t>((stage.lines->shared_bytes() + 127) / 64 * 64);
  stages_.push_back(std::move(stage));
}

// ---- where values lie ----

bool LineRegion::is_read_after(uint32_t value, uint32_t stage) const {
  for (uint32_t s = stage + 1; s < stages_.size(); s++)
    if (std::count(stages_[s].inputs.begin(), stages_[s].inputs.end(), value) > 0) return true;
  return false;
}

// Whether a stage takes of the value what belongs to its lines alone, or nothing.
bool LineRegion::reads_by_line(const Stage& stage, uint32_t value) const {
  if (std::count(stage.inputs.begin(), stage.inputs.end(), value) == 0) return true;
  const Value& x = values_[value];
  if (stage.program == nullptr && stage.lines->makes)
    return x.full && std::count(stage.inputs.begin(), stage.inputs.end(), value) == 1 && stage.inputs[0] == value;
  if (stage.program == nullptr) return x.full;
  return stage.of_numbers ? x.numbers : x.full || x.by_line;
}

void LineRegion::place_output(const pg::Region& piece, uint32_t output, const std::vector<uint32_t>& last_read) {
  const uint32_t v = piece.raw->outputs[output];
  Value& value = values_[v];
  uint32_t made = 0;
  while (std::count(stages_[made].outputs.begin(), stages_[made].outputs.end(), v) == 0) made++;
  bool late = false;
  for (uint32_t i = 0; i < piece.raw->input_count && i < 64; i++) {
    if (!(piece.raw->overwrites[output] >> i & 1u)) continue;
    const uint32_t x = piece.raw->inputs[i];
    if (last_read[x] == kNone) continue;
    for (const Stage& stage : stages_)  // what one block writes must be of no other block's reading
      if (!folds() && !reads_by_line(stage, x)) pg::fail_support("a result lies where all lines read");
    stages_[made].over_input = true;
    late |= last_read[x] > made || (last_read[x] == made && stages_[made].lines != nullptr);
  }
  // What is folded of a strip of columns is known when others still read.
  if (way_ == Way::kColumns) late |= stages_[made].over_input && stages_[made].lines != nullptr;
  if (late && folds() && !(way_ == Way::kColumns && value.numbers))
    pg::fail_support("a result lies where something is read later");
  value.index = output;
  value.kind = late ? Value::kBuffer : Value::kOutput;
  if (late) late_.push_back({v, output});
}

void LineRegion::place_values(const pg::Region& piece) {
  std::vector<uint32_t> last_read(values_.size(), kNone);
  for (uint32_t s = 0; s < stages_.size(); s++)
    for (uint32_t v : stages_[s].inputs)
      if (v != PG_VALUE_NONE) last_read[v] = s;
  for (uint32_t i = 0; i < piece.raw->input_count; i++) {
    Value& value = values_[piece.raw->inputs[i]];
    value.kind = Value::kInput;
    value.index = i;
  }
  for (uint32_t k = 0; k < piece.raw->output_count; k++) place_output(piece, k, last_read);
  for (uint32_t s = 0; s < stages_.size(); s++) {
    Stage& stage = stages_[s];
    for (uint32_t k = 0; k < stage.outputs.size(); k++) {
      const uint32_t v = stage.outputs[k];
      if (v == PG_VALUE_NONE) continue;
      Value& value = values_[v];
      if (value.kind == Value::kUnknown) value.kind = Value::kBuffer;
      if (value.kind == Value::kBuffer) {
        int64_t& bytes = value.numbers ? number_bytes_ : full_bytes_;
        value.offset = bytes;
        bytes += ((folds() && value.full ? value.bytes / length_ : value.bytes) + 7) / 8 * 8;
      }
      const bool near = value.kind == Value::kBuffer || is_read_after(v, s) || stage.over_input;
      if (!near) {
        stage.written += value.bytes * lines_;
      } else if (stage.program != nullptr) {
        stage.program->keep_near(k);
      } else {
        stage.lines->keep_near(k);
      }
    }
  }
  block_ = std::clamp<int64_t>(kBlockElements / length_, 1, lines_);
  // Short lines are worked on as tiles of so many.
  if (block_ >= kMostLines) block_ = block_ / kMostLines * kMostLines;
  int64_t together = 0;
  for (const Stage& stage : stages_)
    if (stage.lines != nullptr) together = std::max(together, stage.lines->together());
  if (together > 0) block_ = std::min(together, lines_);
}

// ---- a launch ----

// Bytes that a thread needs for operators on lines.
int64_t LineRegion::lines_bytes() const {
  int64_t most = 0;
  for (const Stage& stage : stages_)
    if (stage.lines != nullptr) most = std::max(most, static_cast<int64_t>(stage.lines->room_bytes()));
  return most;
}

// And for its blocks too.
int64_t LineRegion::thread_bytes() const {
  return block_ * (full_bytes_ + number_bytes_) + 256 + Programs::room(*this) + lines_bytes();
}

// A thread's blocks of lines.
class LineRegion::Thread {
 public:
  Thread(const LineRegion& region, const Shared& shared)
      : r_(region),
        shared_(shared),
        given_(region.rooms_ > 0 ? std::make_unique<Rooms::Room>(shared.rooms_of_threads) : nullptr),
        room_(region.thread_bytes(), given_ ? given_->at() : nullptr),
        full_(room_.take(region.block_ * region.full_bytes_)),
        numbers_(room_.take(region.block_ * region.number_bytes_)),
        programs_(region, shared, room_) {
    room_of_lines_ = room_.take(region.lines_bytes());
    size_t most = 1;
    for (const Stage& stage : r_.stages_) most = std::max({most, stage.inputs.size(), stage.outputs.size()});
    in_.resize(most);
    out_.resize(most);
  }

  void run(int64_t begin, int64_t end) {
    for (int64_t first = begin; first < end; first += r_.block_) block(first, std::min(first + r_.block_, end));
    simd->stream_fence();
  }

 private:
  // Where all of a value would begin.
  char* base(uint32_t v, int64_t first) const {
    if (v == PG_VALUE_NONE) return nullptr;
    const Value& value = r_.values_[v];
    switch (value.kind) {
      case Value::kInput: return pg::host_pointer<char>(shared_.launch.input[value.index]);
      case Value::kOutput: return pg::host_pointer<char>(shared_.launch.output[value.index]);
      default: return before((value.numbers ? numbers_ : full_) + r_.block_ * value.offset, first * value.bytes);
    }
  }

  void block(int64_t first, int64_t last) {
    for (size_t s = 0; s < r_.stages_.size(); s++) {
      const Stage& stage = r_.stages_[s];
      if (stage.program != nullptr) {
        const int64_t length = stage.of_numbers ? 1 : r_.length_;
        programs_.run(s, stage, first * length, last * length, [&](uint32_t v) { return base(v, first); });
      } else {
        for (size_t i = 0; i < stage.inputs.size(); i++) in_[i] = base(stage.inputs[i], first);
        for (size_t k = 0; k < stage.outputs.size(); k++) out_[k] = base(stage.outputs[k], first);
        pg_launch of_node = shared_.node_launch(stage);
        of_node.workspace = {reinterpret_cast<uint64_t>(room_of_lines_), 0};
        stage.lines->run(of_node, shared_.rooms[s], in_.data(), out_.data(), first, last);
      }
    }
    for (const Copy& copy : r_.late_) {
      const int64_t bytes = r_.values_[copy.value].bytes;
      std::memcpy(pg::host_pointer<char>(shared_.launch.output[copy.output]) + first * bytes,
                  base(copy.value, first) + first * bytes, static_cast<size_t>((last - first) * bytes));
    }
  }

  const LineRegion& r_;
  const Shared& shared_;
  std::unique_ptr<Rooms::Room> given_;
  RegionBytes room_;
  char *full_, *numbers_, *room_of_lines_ = nullptr;
  Programs programs_;
  std::vector<const char*> in_;
  std::vector<char*> out_;
};

void LineRegion::launch(const pg_launch& launch) {
  const Shared shared(*this, launch);
  if (way_ == Way::kPieces) return run_pieces(shared);
  if (way_ == Way::kColumns) return run_columns(shared);
  const int64_t count = lines_ * length_, grain = std::max<int64_t>(kGrain * 2 / (2 + cost_), 2048);
  if (count <= grain) return Thread(*this, shared).run(0, lines_);
  // Threads part where blocks do: so tiles of short lines are whole.
  const int64_t blocks = (lines_ + block_ - 1) / block_;
  FirstFailure failure;
  pg::parallel_for(blocks, std::max<int64_t>(1, grain / (block_ * length_)), [&](int64_t begin, int64_t end) {
    failure.watch([&] { Thread(*this, shared).run(begin * block_, std::min(end * block_, lines_)); });
  });
  failure.raise();
}

}  // namespace cpu
