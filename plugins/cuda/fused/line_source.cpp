// SPDX-License-Identifier: Apache-2.0
#include "line_source.hpp"

#include <algorithm>
#include <memory>
#include <set>
#include <span>

#include "expression.hpp"
#include "line_node.hpp"
#include "node_text.hpp"
#include "operand_walk.hpp"
#include "perigee/kernels/strided.hpp"
#include "whole_text.hpp"

namespace cuda::fused {
namespace {

constexpr int64_t kMostShared = 40 << 10;    // bytes: what each block has room for, less what reductions take
constexpr int64_t kElementsTogether = 4096;  // of a tile, about
constexpr int64_t kMostLines = 64;           // of a tile
constexpr int64_t kOwnBytes = 32;            // of a line, for what is known of it where it is made as a whole

// As lines.hpp has it.
int64_t line_pitch(int64_t bytes) { return (bytes + 15) / 16 * 16 + 16; }

class LineWriter {
 public:
  LineWriter(const pg::Region& piece, LineSource& out)
      : piece_(piece),
        out_(out),
        source_(out.source),
        text_(piece, out.source.numbers),
        values_(piece.raw->value_count) {
    read_nodes();
    assign_stages();
    find_operands();
    put_off_stores();
    lay_out();
    write();
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Value {
    bool number = false;                // one a line
    uint32_t maker = kNone, stage = 0;  // from which stage on it is known
    bool read_later = false;            // elements that a reduction or a later stage reads
    uint32_t room = kNone;              // in shared memory
    uint32_t input = kNone, output = kNone;
    uint32_t stored = 0;  // of an output: the stage that it is written in
  };
  struct Node {
    bool lines = false, number = false;
    uint32_t stage = 0;
    LineNode line;
    size_t own = 0;  // where lines are made as a whole: the first of two rooms for what is known of one
    bool whole() const { return lines && line.whole(); }
  };

  const pg_tensor& tensor(uint32_t value) const { return piece_.value(value); }
  uint32_t operand_of_output(uint32_t k) const { return piece_.raw->input_count + k; }

  // ---- what there is ----

  void read_nodes() {
    const uint32_t count = piece_.node_count();
    nodes_.resize(count);
    for (uint32_t n = 0; n < count; n++) {
      nodes_[n].lines = is_line_operator(piece_, n);
      const pg_node& raw = piece_.node(n);
      if (nodes_[n].lines) read_line_node(piece_, n, nodes_[n].line);
      const pg_tensor& shape = tensor(nodes_[n].lines ? raw.inputs[0] : raw.outputs[0]);
      if (full_ == nullptr || pg::element_count(shape) > pg::element_count(*full_)) full_ = &shape;
    }
    for (const Node& node : nodes_)
      if (node.lines) out_.length = node.line.axes.length;
    for (uint32_t n = 0; n < count && out_.length == 0; n++) {
      const int64_t elements = pg::element_count(tensor(piece_.node(n).outputs[0]));
      if (elements > 0 && elements < pg::element_count(*full_)) out_.length = pg::element_count(*full_) / elements;
    }
    if (out_.length < 2 || !pg::is_contiguous(*full_) || !find_axes(*full_, out_.length, axes_))
      pg::fail_support("no lines");
    for (uint32_t n = 0; n < count; n++) {
      Node& node = nodes_[n];
      const pg_node& raw = piece_.node(n);
      node.number = !node.lines && !pg::same_shape(tensor(raw.outputs[0]), *full_);
      if (node.lines &&
          (node.line.streamed || node.line.axes != axes_ || !pg::same_shape(tensor(raw.inputs[0]), *full_)))
        pg::fail_support("other lines");
      each_output(piece_.node(n), [&](uint32_t v) {
        Value& made = values_[v];
        made.maker = n;
        made.number = node.lines ? !node.whole() || v != raw.outputs[0] : node.number;
        if (made.number && !holds_numbers(tensor(v), *full_, axes_)) pg::fail_support("other lines");
      });
    }
  }

  void assign_stages() {
    for (uint32_t n = 0; n < piece_.node_count(); n++) {
      Node& node = nodes_[n];
      each_input(piece_.node(n), [&](uint32_t v) {
        if (values_[v].maker != kNone) node.stage = std::max(node.stage, values_[v].stage);
      });
      const uint32_t known = node.stage + (node.lines ? 1 : 0);
      each_output(piece_.node(n), [&](uint32_t v) { values_[v].stage = known; });
      stages_ = std::max(stages_, known + 1);
    }
    for (uint32_t n = 0; n < piece_.node_count(); n++)
      each_input(piece_.node(n), [&](uint32_t v) {
        Value& read = values_[v];
        if (read.maker == kNone || read.number) return;
        read.read_later = read.read_later || nodes_[n].lines || nodes_[n].stage > read.stage;
      });
  }

  // Operands that are read or written element by element are walked through; others are found by the line's number.
  void find_operands() {
    const pg_region& raw = *piece_.raw;
    std::vector<const pg_tensor*> tensors;
    std::set<uint32_t> by_element;
    for (uint32_t n = 0; n < piece_.node_count(); n++)
      if (nodes_[n].whole() || (!nodes_[n].lines && !nodes_[n].number))
        each_input(piece_.node(n), [&](uint32_t v) { by_element.insert(v); });
    for (uint32_t k = 0; k < raw.input_count; k++) {
      values_[raw.inputs[k]].input = k;
      tensors.push_back(by_element.count(raw.inputs[k]) != 0 ? &tensor(raw.inputs[k]) : full_);
    }
    for (uint32_t k = 0; k < raw.output_count; k++) {
      const Value& made = values_[raw.outputs[k]];
      values_[raw.outputs[k]].output = k;
      if (!made.number && !pg::is_contiguous(tensor(raw.outputs[k]))) pg::fail_support("results with gaps");
      tensors.push_back(full_);
    }
    int64_t widest = 1;
    for (uint32_t v = 0; v < values_.size(); v++)
      if (pg::same_shape(tensor(v), *full_)) widest = std::max(widest, bytes_of(v));
    walk_ = std::make_unique<OperandWalk>(*full_, tensors, source_, out_.length, widest);
    for (uint32_t k = 0; k < source_.operands.size(); k++) {  // of those that stand for others
      const uint32_t v = k < raw.input_count ? raw.inputs[k] : raw.outputs[k - raw.input_count];
      source_.operands[k].dtype = pg::dtype_of(tensor(v));
    }
    // Numbers from outside are read by the lines' numbers.
    for (uint32_t n = 0; n < piece_.node_count(); n++) {
      if (nodes_[n].number)
        each_input(piece_.node(n), [&](uint32_t v) {
          const bool fits =
              pg::element_count(tensor(v)) == 1 ||
              (holds_numbers(tensor(v), *full_, axes_) && pg::same_shape(tensor(v), tensor(piece_.node(n).outputs[0])));
          if (!fits) pg::fail_support("numbers of other lines");
        });
      else if (nodes_[n].whole())
        for (uint32_t i = nodes_[n].line.lines_read(); i < piece_.node(n).input_count; i++) {
          const uint32_t v = piece_.node(n).inputs[i];
          if (is_read(piece_.node(n), i) && values_[v].maker != kNone) pg::fail_support("weights that are made here");
        }
      else if (!nodes_[n].lines)
        each_input(piece_.node(n), [&](uint32_t v) {
          if (values_[v].number && values_[v].maker != kNone && !spreads_numbers(tensor(v), *full_, axes_))
            pg::fail_support("numbers that are not spread over their lines");
        });
    }
  }

  // An output may lie over an input. One that is still to be read then is written behind all stages.
  void put_off_stores() {
    const pg_region& raw = *piece_.raw;
    // Numbers, elements and reductions of a stage follow each other.
    auto numbers = [](uint32_t stage) { return 3 * stage; };
    auto elements = [](uint32_t stage) { return 3 * stage + 1; };
    std::vector<uint32_t> read(raw.input_count, 0);  // last
    for (uint32_t n = 0; n < piece_.node_count(); n++) {
      const Node& node = nodes_[n];
      const uint32_t at = node.whole()  ? elements(node.stage + 1)
                          : node.lines  ? elements(node.stage) + 1
                          : node.number ? numbers(node.stage)
                                        : elements(node.stage);
      each_input(piece_.node(n), [&](uint32_t v) {
        if (values_[v].maker == kNone) read[values_[v].input] = std::max(read[values_[v].input], at);
      });
    }
    bool any = false;
    for (uint32_t k = 0; k < raw.output_count; k++) {
      Value& made = values_[raw.outputs[k]];
      made.stored = made.stage;
      const uint32_t at = made.number ? numbers(made.stage) : elements(made.stage);
      bool late = false;
      for (uint32_t i = 0; i < raw.input_count && i < 64; i++)
        late = late || ((raw.overwrites[k] >> i & 1u) != 0 && read[i] > at);
      if (!late) continue;
      made.stored = stages_, made.read_later = made.read_later || !made.number;
      any = true;
    }
    if (any) stages_++;
  }

  // ---- shared memory ----

  int64_t bytes_of(uint32_t v) const { return pg::dtype_bytes(pg::dtype_of(tensor(v))); }

  void lay_out() {
    const int64_t lines = pg::element_count(*full_) / out_.length;
    int64_t a_line = 0;
    std::vector<uint32_t> kept;
    for (uint32_t v = 0; v < values_.size(); v++) {
      Value& value = values_[v];
      if (value.maker == kNone || (!value.number && !value.read_later)) continue;
      value.room = static_cast<uint32_t>(kept.size());
      kept.push_back(v);
      a_line += value.number ? 16 : line_pitch(out_.length * bytes_of(v));
    }
    for (const Node& node : nodes_) a_line += node.whole() ? kOwnBytes : 0;
    const int64_t fits = kMostShared / std::max<int64_t>(a_line, 1);
    if (fits == 0) pg::fail_support("the region's lines have no room in a block");
    int64_t tile = std::clamp<int64_t>(kElementsTogether / out_.length, 1, kMostLines);
    while (tile > 1 && lines / tile < 512) tile /= 2;  // blocks enough for all of a device
    out_.tile = std::min({tile, fits, lines});
    int64_t at = 0;
    for (uint32_t v : kept) {
      rooms_.push_back(static_cast<uint64_t>(at));
      const int64_t all = out_.tile * (values_[v].number ? bytes_of(v) : line_pitch(out_.length * bytes_of(v)));
      at += (all + 15) / 16 * 16;
    }
    for (Node& node : nodes_) {
      if (!node.whole()) continue;
      node.own = rooms_.size();
      rooms_.push_back(static_cast<uint64_t>(at));
      rooms_.push_back(static_cast<uint64_t>(at + out_.tile * kOwnBytes / 2));
      at += out_.tile * kOwnBytes;
    }
    out_.shared = static_cast<uint32_t>(at);
  }

  std::string room(uint32_t v) const { return pg::format("shared + a.room[%u]", values_[v].room); }
  std::string storage(uint32_t v) const { return storage_name(pg::dtype_of(tensor(v))); }
  std::string line_in(uint32_t v) const {
    return pg::format("line_in<%s>(%s, length, t, first + t)", storage(v).c_str(), room(v).c_str());
  }

  // ---- the text ----

  // What numbers a line are read with, once in each loop.
  std::string number_from_shared(uint32_t v) {
    text_.names[v] = pg::format("s%u", v);
    return pg::format("    const auto s%u = widen(load_one<%s>(%s, t));\n", v, storage(v).c_str(), room(v).c_str());
  }

  std::string numbers_of_stage(uint32_t stage) {
    const pg_region& raw = *piece_.raw;
    std::string before, after;
    std::set<uint32_t> known;
    text_.body.clear();
    auto need = [&](uint32_t v) {
      if (!known.insert(v).second) return;
      if (values_[v].maker != kNone) {
        before += number_from_shared(v);
        return;
      }
      text_.names[v] = pg::format("y%u", values_[v].input);
      before += pg::format("    const auto y%u = widen(load_one<%s>(a.data[%u], %s));\n", values_[v].input,
                           storage(v).c_str(), values_[v].input, pg::element_count(tensor(v)) == 1 ? "0" : "first + t");
    };
    for (uint32_t n = 0; n < piece_.node_count(); n++) {
      if (!nodes_[n].number || nodes_[n].stage != stage) continue;
      each_input(piece_.node(n), need);
      text_.add(n);
      const uint32_t v = piece_.node(n).outputs[0];
      known.insert(v);
      text_.line(pg::format("store_one<%s>(%s, t, %s);", storage(v).c_str(), room(v).c_str(), text_.names[v].c_str()));
    }
    for (uint32_t k = 0; k < raw.output_count; k++) {
      const uint32_t v = raw.outputs[k];
      if (!values_[v].number || values_[v].stored != stage) continue;
      need(v);
      after += pg::format("      store_one<%s>(a.data[%u], first + t, %s);\n", storage(v).c_str(), operand_of_output(k),
                          text_.names[v].c_str());
    }
    if (text_.body.empty() && after.empty()) return "";
    return "    for (int t = static_cast<int>(threadIdx.x); t < lines; t += 256) {\n" + before + text_.body + after +
           "    }\n    __syncthreads();\n";
  }

  std::string elements_of_stage(uint32_t stage) {
    const int width = source_.width;
    std::string before, inside, after;
    std::set<uint32_t> known;
    text_.body.clear();
    auto need = [&](uint32_t v) {
      if (!known.insert(v).second) return;
      const Value& value = values_[v];
      if (value.maker == kNone) {
        const uint32_t k = value.input;
        before += load_text(source_, *walk_, k, "n");
        text_.names[v] = pg::format("x%u", k);
        inside +=
            pg::format("      const auto x%u = widen(p%u%s);\n", k, k, source_.operands[k].splat ? "" : ".element[i]");
      } else if (value.number) {
        before += number_from_shared(v);
      } else {
        before += pg::format("    const Packet<%s, %d> b%u = load<%s, %d>(%s, part * %d, true, n);\n",
                             storage(v).c_str(), width, v, storage(v).c_str(), width, line_in(v).c_str(), width);
        text_.names[v] = pg::format("c%u", v);
        inside += pg::format("      const auto c%u = widen(b%u.element[i]);\n", v, v);
      }
    };
    auto write = [&](uint32_t v) {
      const uint32_t k = operand_of_output(values_[v].output);
      const char* type = storage_name(pg::dtype_of(tensor(v)));
      before += pg::format("    Packet<%s, %d> p%u;\n", type, width, k);
      text_.line(pg::format("p%u.element[i] = convert<%s>(%s);", k, type, text_.names[v].c_str()));
      after += store_text(source_, *walk_, k, "n");
    };
    for (uint32_t n = 0; n < piece_.node_count(); n++) {
      const Node& node = nodes_[n];
      if (node.whole() ? node.stage + 1 != stage : node.lines || node.number || node.stage != stage) continue;
      each_input(piece_.node(n), need);
      if (node.whole())
        before += add_whole(n);
      else
        text_.add(n);
      const uint32_t v = piece_.node(n).outputs[0];
      known.insert(v);
      const char* type = storage_name(pg::dtype_of(tensor(v)));
      if (values_[v].read_later) {
        before += pg::format("    Packet<%s, %d> d%u;\n", type, width, v);
        text_.line(pg::format("d%u.element[i] = convert<%s>(%s);", v, type, text_.names[v].c_str()));
        after +=
            pg::format("    store<%s, %d>(%s, part * %d, true, n, d%u);\n", type, width, line_in(v).c_str(), width, v);
      }
      if (values_[v].output != kNone && values_[v].stored == stage) write(v);
    }
    for (const uint32_t v : std::span(piece_.raw->outputs, piece_.raw->output_count)) {
      if (values_[v].number || values_[v].stored != stage || values_[v].stage == stage) continue;
      need(v);
      write(v);
    }
    if (text_.body.empty()) return "";
    return pg::format(
               "    for (int item = static_cast<int>(threadIdx.x); item < lines * packets; item += 256) {\n"
               "    const int t = item / packets, part = item - t * packets;\n"
               "    const int64_t place = (first + t) * a.packets + part, at = place * %d;\n"
               "    (void)at;\n"
               "    const int n = %d;\n",
               width, width) +
           walk_->locate("place") + before + pg::format("#pragma unroll\n    for (int i = 0; i < %d; i++) {\n", width) +
           inside + text_.body + "    }\n" + after + "    }\n    __syncthreads();\n";
  }

  // ---- softmax, its gradient and layer_norm ----

  WholeText whole_text(uint32_t n) const {
    const Node& node = nodes_[n];
    const pg_node& raw = piece_.node(n);
    WholeText text{node.line, n, {}};
    for (uint32_t k = 0; k < 2; k++) {
      const bool leaves = raw.output_count > k + 1 && raw.outputs[k + 1] != PG_VALUE_NONE;
      text.room[k] = leaves ? room(raw.outputs[k + 1]) : pg::format("shared + a.room[%zu]", node.own + k);
    }
    return text;
  }

  // Answers what the element wants to be known of its line.
  std::string add_whole(uint32_t n) {
    const pg_node& raw = piece_.node(n);
    std::string inputs[3];
    for (uint32_t i = 0; i < raw.input_count; i++)
      if (raw.inputs[i] != PG_VALUE_NONE) inputs[i] = text_.names[raw.inputs[i]];
    const WholeText text = whole_text(n);
    const uint32_t v = raw.outputs[0];
    text_.names[v] = pg::format("v%u", n);
    text_.line(pg::format("const auto v%u = rounded<%s>(%s);", n, storage(v).c_str(), text.element(inputs).c_str()));
    return text.known();
  }

  // Where line t of a value lies.
  std::string line_at(uint32_t v) const {
    const Value& x = values_[v];
    if (x.maker != kNone) return line_in(v);
    return pg::format("a.data[%u] + (first + t) * length * %d", x.input, static_cast<int>(bytes_of(v)));
  }

  std::string find_flows(uint32_t n) const {
    const uint32_t y = piece_.node(n).inputs[0];
    const std::string beyond =
        values_[y].maker != kNone
            ? pg::format("static_cast<uint32_t>((first + t) * length * %d %% 128)", static_cast<int>(bytes_of(y)))
            : pg::format("cuda::Stretch<%s>::beyond_line(%s)", storage(y).c_str(), line_at(y).c_str());
    return whole_text(n).find_flows(line_at(y), line_at(piece_.node(n).inputs[1]), beyond);
  }

  std::string find_whole(uint32_t n) {
    const LineNode& line = nodes_[n].line;
    const pg_node& raw = piece_.node(n);
    if (line.kind == LineNode::kSoftmaxGrad) return find_flows(n);
    std::string aligned[3], number;
    for (uint32_t i = 0; i < 3; i++) {
      const bool outside =
          i < raw.input_count && raw.inputs[i] != PG_VALUE_NONE && values_[raw.inputs[i]].maker == kNone;
      aligned[i] = outside ? pg::format("begins_at_packet(a.data[%u])", values_[raw.inputs[i]].input) : "true";
    }
    if (line.kind == LineNode::kLayerNorm) {
      KernelNumber eps;
      eps.use = KernelNumber::kReal;
      eps.attrs = raw.attrs_offset;
      eps.real = pg::KernelCall(&line.call.call).runtime<double>("eps");
      source_.numbers.push_back(eps);
      number = pg::format("bits_as<double>(NUMBER(%zu))", source_.numbers.size() - 1);
    }
    const std::string text = whole_text(n).find(line_at(raw.inputs[0]), aligned, dealt_.size() / 2, number);
    dealt_.push_back(static_cast<uint64_t>(line.lanes));
    dealt_.push_back(static_cast<uint64_t>(line.single_lanes));
    return text;
  }

  std::string reductions_of_stage(uint32_t stage) {
    std::string all;
    for (uint32_t n = 0; n < piece_.node_count(); n++) {
      const Node& node = nodes_[n];
      if (!node.lines || node.stage != stage) continue;
      const uint32_t from = piece_.node(n).inputs[0], to = piece_.node(n).outputs[0];
      if (node.whole()) {
        all += find_whole(n);
        continue;
      }
      all += pg::format("    {\n      %s r;\n      r.out = %s, r.dtype = %uu;\n      %s\n", node.line.reducer.c_str(),
                        room(to).c_str(), node.line.result_dtype, node.line.fields.c_str());
      all += pg::format(
          "      reduce_lines(r, %uu, static_cast<int>(a.dealt[%zu][0]), a.dealt[%zu][1], length, lines,\n"
          "                   [&](int t) -> const char* { return %s; });\n    }\n",
          node.line.dtype, dealt_.size() / 2, dealt_.size() / 2, line_at(from).c_str());
      dealt_.push_back(static_cast<uint64_t>(node.line.lanes));
      dealt_.push_back(static_cast<uint64_t>(node.line.per_part));
    }
    return all.empty() ? all : all + "    __syncthreads();\n";
  }

  void write() {
    std::string stages;
    for (uint32_t s = 0; s < stages_; s++) {
      stages += numbers_of_stage(s);
      stages += elements_of_stage(s);
      stages += reductions_of_stage(s);
    }
    std::string& t = source_.text;
    t = "#include \"lines.hpp\"\nusing namespace cuda::fused;\nusing namespace pg::math;\n";
    t += pg::format(
        "struct Arguments {\n  int64_t lines, length, tile, packets;\n  uint64_t aligned;\n  char* data[%zu];\n"
        "  uint64_t number[%zu];\n",
        source_.operands.size(), std::max<size_t>(source_.numbers.size(), 1));
    t += walk_->members();
    t += pg::format("  int64_t room[%zu];\n  int64_t dealt[%zu][2];\n};\n", std::max<size_t>(rooms_.size(), 1),
                    std::max<size_t>(dealt_.size() / 2, 1));
    t += pg::format("extern \"C\" __global__ void __launch_bounds__(256) %s(const __grid_constant__ Arguments a) {\n",
                    kKernelName);
    t += "  FIND_NUMBERS\n"
         "  char* const shared = cuda::dynamic_shared<char>();\n"
         "  const int64_t length = a.length;\n"
         "  const int packets = static_cast<int>(a.packets);\n"
         "  for (int64_t first = blockIdx.x * a.tile; first < a.lines; first += gridDim.x * a.tile) {\n"
         "    const int lines = static_cast<int>(a.lines - first < a.tile ? a.lines - first : a.tile);\n" +
         stages + "  }\n}\n";
    if (rooms_.empty()) rooms_.push_back(0);
    if (dealt_.empty()) dealt_ = {0, 0};
    out_.tail = rooms_;
    out_.tail.insert(out_.tail.end(), dealt_.begin(), dealt_.end());
  }

  const pg::Region& piece_;
  LineSource& out_;
  Source& source_;
  NodeText text_;
  std::vector<Value> values_;
  std::vector<Node> nodes_;
  const pg_tensor* full_ = nullptr;
  LineAxes axes_;
  std::unique_ptr<OperandWalk> walk_;
  uint32_t stages_ = 1;
  std::vector<uint64_t> rooms_, dealt_;
};

}  // namespace

bool has_lines(const pg::Region& piece) {
  const pg_tensor& first = piece.value(piece.node(0).outputs[0]);
  for (uint32_t n = 0; n < piece.node_count(); n++)
    if (is_line_operator(piece, n) || !pg::same_shape(piece.value(piece.node(n).outputs[0]), first)) return true;
  return false;
}

LineSource write_lines(const pg::Region& piece) { return write_piece<LineWriter, LineSource>(piece); }

}  // namespace cuda::fused
