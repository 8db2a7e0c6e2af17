// SPDX-License-Identifier: Apache-2.0
#include "stream_source.hpp"

#include <algorithm>
#include <memory>
#include <set>

#include "expression.hpp"
#include "node_text.hpp"
#include "operand_walk.hpp"
#include "perigee/kernels/strided.hpp"

namespace cuda::fused {
namespace {

constexpr uint64_t kStateBytes = 24;  // as reduce_shape.hpp has it
constexpr uint32_t kFewOperands = 6;  // whose elements are all read before the first one is written
constexpr int64_t kPacketBytes = 16;  // at most, of an access

class StreamWriter {
 public:
  StreamWriter(const pg::Region& piece, StreamSource& out)
      : piece_(piece),
        raw_(*piece.raw),
        out_(out),
        source_(out.source),
        text_(piece, out.source.numbers),
        values_(piece.raw->value_count) {
    read_nodes();
    find_operands();
    check_overwrites();
    write();
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Value {
    uint32_t maker = kNone, input = kNone;
    bool number = false;                             // one a line
    bool by_element = false, among_numbers = false;  // who reads it
  };
  struct Node {
    bool lines = false, number = false;
    LineNode line;
  };

  const pg_tensor& tensor(uint32_t value) const { return piece_.value(value); }
  bool is_single(uint32_t value) const { return pg::element_count(tensor(value)) == 1; }
  std::string storage(uint32_t v) const { return storage_name(pg::dtype_of(tensor(v))); }

  // ---- what there is ----

  void read_nodes() {
    const uint32_t count = piece_.node_count();
    nodes_.resize(count);
    for (uint32_t n = 0; n < count; n++) {
      Node& node = nodes_[n];
      node.lines = is_line_operator(piece_, n);
      if (!node.lines) continue;
      read_line_node(piece_, n, node.line);
      if (!node.line.streamed) pg::fail_support("lines that stay in a block");
      take_plan(n, node.line);
    }
    for (uint32_t k = 0; k < raw_.input_count; k++) values_[raw_.inputs[k]].input = k;
    for (uint32_t n = 0; n < count; n++) {
      Node& node = nodes_[n];
      const uint32_t v = piece_.node(n).outputs[0];
      node.number = !node.lines && !pg::same_shape(tensor(v), *full_);
      values_[v].maker = n;
      values_[v].number = node.lines || node.number;
      if (values_[v].number && !holds_numbers(tensor(v), *full_, out_.axes)) pg::fail_support("other lines");
      if (!values_[v].number && !pg::is_contiguous(tensor(v))) pg::fail_support("results with gaps");
      each_input(piece_.node(n), [&](uint32_t x) {
        (node.number ? values_[x].among_numbers : values_[x].by_element) = true;
        if (values_[x].maker != kNone && values_[x].number != node.number)
          pg::fail_support("elements that wait for the end of a line");
      });
    }
  }

  // All reductions take the same elements at a time.
  void take_plan(uint32_t n, const LineNode& line) {
    const pg_tensor& x = tensor(piece_.node(n).inputs[0]);
    const bool columns = line.axes.inner > 1;
    const int together = columns ? line.batch : line.width;
    out_.reductions++;
    if (full_ == nullptr) {
      full_ = &x;
      together_ = together;
      out_.axes = line.axes, out_.grid = line.grid;
      out_.lanes = line.lanes, out_.tiles = line.tiles, out_.parts = line.parts, out_.per_part = line.per_part;
      const RowsPlan end = plan_rows(line.axes.lines(), line.parts, 1, false);
      out_.end_lanes = end.lanes, out_.end_grid = end.grid;
    }
    const bool alike = together == together_ || (columns && std::min(together, together_) == 1);
    if (!pg::same_shape(x, *full_) || line.axes != out_.axes || !alike) pg::fail_support("other lines");
    together_ = std::max(together, together_);
  }

  bool columns() const { return out_.axes.inner > 1; }
  // What elements are read from or written to in the places of the result.
  bool is_flat(uint32_t v) const { return pg::same_shape(tensor(v), *full_) && pg::is_contiguous(tensor(v)); }
  bool in_packets(uint32_t v) const { return pg::dtype_bytes(pg::dtype_of(tensor(v))) * width() <= kPacketBytes; }
  int width() const { return columns() ? 1 : together_; }

  void find_operands() {
    std::vector<const pg_tensor*> tensors;
    for (uint32_t k = 0; k < raw_.input_count; k++) {
      const uint32_t v = raw_.inputs[k];
      const bool walked = values_[v].by_element && !is_flat(v) && !is_single(v);
      tensors.push_back(walked ? &tensor(v) : full_);
      if (values_[v].among_numbers && !is_single(v) &&
          !(pg::is_contiguous(tensor(v)) && holds_numbers(tensor(v), *full_, out_.axes)))
        pg::fail_support("numbers of other lines");
    }
    for (uint32_t k = 0; k < raw_.output_count; k++) tensors.push_back(full_);
    walk_ = std::make_unique<OperandWalk>(*full_, tensors, source_, 0, kPacketBytes);  // element by element
    source_.width = width();
    for (uint32_t k = 0; k < source_.operands.size(); k++) {
      const uint32_t v = k < raw_.input_count ? raw_.inputs[k] : raw_.outputs[k - raw_.input_count];
      source_.operands[k].dtype = pg::dtype_of(tensor(v));
    }
    for (uint32_t n = 0; n < piece_.node_count(); n++) {
      if (!nodes_[n].lines || columns() || nodes_[n].line.width == 1) continue;
      // Its packets may begin elsewhere than those of what is made here.
      if (values_[piece_.node(n).inputs[0]].maker == kNone) pg::fail_support("a line from outside");
    }
    for (uint32_t n = 0; n < piece_.node_count(); n++) {
      if (!nodes_[n].number) continue;
      each_input(piece_.node(n), [&](uint32_t v) {
        if (!is_single(v) && !pg::same_shape(tensor(v), tensor(piece_.node(n).outputs[0])))
          pg::fail_support("numbers of other lines");
      });
    }
  }

  // An element is written by the thread that has read it, and before others have read theirs.
  void check_overwrites() {
    for (uint32_t k = 0; k < raw_.output_count; k++) {
      const bool number = values_[raw_.outputs[k]].number;
      for (uint32_t i = 0; i < raw_.input_count && i < 64; i++) {
        if ((raw_.overwrites[k] >> i & 1u) == 0) continue;
        const Value& read = values_[raw_.inputs[i]];
        const bool safe =
            number ? !read.by_element : !read.among_numbers && (is_flat(raw_.inputs[i]) || !read.by_element);
        if (!safe) pg::fail_support("a result that lies over what is still to be read");
      }
    }
  }

  // ---- the text ----

  std::string take() {
    std::string once, loads, inside, stores, states;
    const bool few = raw_.input_count + raw_.output_count <= kFewOperands;
    text_.body.clear();
    bool walks = false;
    for (uint32_t k = 0; k < raw_.input_count; k++) {
      const uint32_t v = raw_.inputs[k];
      if (!values_[v].by_element) continue;
      const std::string type = storage(v);
      const char* s = type.c_str();
      text_.names[v] = pg::format("x%u", k);
      if (is_single(v)) {
        once += pg::format("    const auto x%u = widen(load_one<%s>(a.data[%u], 0));\n", k, s, k);
      } else if (!is_flat(v)) {
        walks = true;
        inside += pg::format("      const auto x%u = widen(load_one<%s>(a.data[%u], %s));\n", k, s, k,
                             walk_->place(k).c_str());
      } else if (!in_packets(v)) {
        inside += pg::format("      const auto x%u = widen(load_one<%s>(a.data[%u], at));\n", k, s, k);
      } else {
        once += pg::format("    Packet<%s, W> p%u[U];\n", s, k);
        loads += pg::format("      p%u[j] = load<%s, W>(a.data[%u], from, W == 1 || (a.aligned >> %u & 1) != 0, W);\n",
                            k, s, k, k);
        inside += pg::format("      const auto x%u = widen(p%u[j].element[i]);\n", k, k);
      }
    }
    for (uint32_t n = 0; n < piece_.node_count(); n++)
      if (!nodes_[n].lines && !nodes_[n].number) text_.add(n);
    for (uint32_t k = 0; k < raw_.output_count; k++) {
      const uint32_t v = raw_.outputs[k], operand = raw_.input_count + k;
      if (values_[v].number) continue;
      const std::string type = storage(v);
      once += pg::format("    Packet<%s, W> p%u[U];\n", type.c_str(), operand);
      text_.line(pg::format("p%u[j].element[i] = convert<%s>(%s);", operand, type.c_str(), text_.names[v].c_str()));
      const std::string whole = in_packets(v) ? pg::format("W == 1 || (a.aligned >> %u & 1) != 0", operand) : "W == 1";
      stores += pg::format("      store<%s, W>(a.data[%u], from, %s, W, p%u[j]);\n", type.c_str(), operand,
                           whole.c_str(), operand);
    }
    uint32_t r = 0;
    for (uint32_t n = 0; n < piece_.node_count(); n++) {
      if (!nodes_[n].lines) continue;
      const uint32_t x = piece_.node(n).inputs[0];
      once += pg::format("    typename cuda::Access<R%u::Storage>::C e%u[1][U * W];\n", r, r);
      text_.line(
          pg::format("e%u[0][j * W + i] = as_element<R%u, %s>(%s);", r, r, storage(x).c_str(), text_.names[x].c_str()));
      const int together = columns() ? nodes_[n].line.batch : 0;
      states += pg::format("    add_elements<%d>(r%u, s%u, e%u, k, place);\n", together, r, r, r);
      r++;
    }
    const std::string rows =
        "#pragma unroll\n    for (int j = 0; j < U; j++) {\n"
        "      const int64_t from = origin + number(j)" +
        std::string(columns() ? " * a.inner" : "") + ";\n";
    std::string t =
        "    auto take = [&](auto w, auto u, const auto& number) {\n"
        "    constexpr int W = decltype(w)::value, U = decltype(u)::value;\n" +
        once;
    if (few && !loads.empty()) t += rows + loads + "    }\n";
    t += rows + (few ? "" : loads) +
         "#pragma unroll\n    for (int i = 0; i < W; i++) {\n"
         "      const int64_t at = from + i;\n      (void)at;\n" +
         (walks ? walk_->locate("at") : "") + inside + text_.body + "    }\n" + (few ? "" : stores) + "    }\n";
    if (few && !stores.empty()) t += rows + stores + "    }\n";
    return t + "    const auto place = [&](int m) { return number(m / W) + m % W; };\n    (void)place;\n" + states +
           "    };\n";
  }

  // What is made of the states of line k.
  std::string finish() {
    std::string before;
    text_.body.clear();
    for (uint32_t k = 0; k < raw_.input_count; k++) {
      const uint32_t v = raw_.inputs[k];
      if (!values_[v].among_numbers) continue;
      text_.names[v] = pg::format("y%u", k);
      before += pg::format("      const auto y%u = widen(load_one<%s>(a.data[%u], %s));\n", k, storage(v).c_str(), k,
                           is_single(v) ? "0" : "k");
    }
    uint32_t r = 0;
    for (uint32_t n = 0; n < piece_.node_count(); n++) {
      const uint32_t v = piece_.node(n).outputs[0];
      if (nodes_[n].lines) {
        text_.names[v] = pg::format("n%u", n);
        text_.line(pg::format("const auto n%u = widen(finished<%s>(r%u, s%u));", n, storage(v).c_str(), r, r));
        r++;
      } else if (nodes_[n].number) {
        text_.add(n);
      }
    }
    for (uint32_t k = 0; k < raw_.output_count; k++) {
      const uint32_t v = raw_.outputs[k];
      if (values_[v].number)
        text_.line(pg::format("store_one<%s>(a.data[%u], k, %s);", storage(v).c_str(), raw_.input_count + k,
                              text_.names[v].c_str()));
    }
    return before + text_.body;
  }

  // One statement for each reduction; %u is its number.
  std::string each(const char* statement) const {
    std::string all;
    for (uint32_t r = 0; r < out_.reductions; r++)
      for (const char* at = statement; *at != '\0'; at++) all += *at == '@' ? std::to_string(r) : std::string(1, *at);
    return all;
  }

  void write() {
    const std::string elements = take(), numbers = finish();
    std::string reducers;
    uint32_t r = 0;
    for (const Node& node : nodes_) {
      if (!node.lines) continue;
      reducers +=
          pg::format("  using R%u = %s;\n  R%u r%u;\n  {\n    auto& r = r%u;\n    r.dtype = %uu;\n    %s\n  }\n", r,
                     node.line.reducer.c_str(), r, r, r, node.line.result_dtype, node.line.fields.c_str());
      r++;
    }
    std::string parameters;
    for (r = 0; r < out_.reductions; r++) parameters += pg::format(", const typename R%u::State& s%u", r, r);
    std::string arguments;
    for (r = 0; r < out_.reductions; r++) arguments += pg::format(", s%u", r);
    const bool parts = out_.parts > 1;
    const std::string end = parts ? each("        put_state<R@>(a.states[@], blockIdx.y * a.lines + k, s@);\n")
                                  : "        finish(k" + arguments + ");\n";
    std::string& t = source_.text;
    t = "#include \"streams.hpp\"\nusing namespace cuda::fused;\nusing namespace pg::math;\n";
    t += pg::format(
        "struct Arguments {\n  int64_t lines, length, inner, tiles;\n  uint64_t aligned;\n  char* data[%zu];\n"
        "  uint64_t number[%zu];\n",
        source_.operands.size(), std::max<size_t>(source_.numbers.size(), 1));
    t += walk_->members();
    t += pg::format("  int64_t lanes, per_part, parts, end_lanes, second;\n  char* states[%u];\n};\n", out_.reductions);
    t += pg::format("extern \"C\" __global__ void __launch_bounds__(256) %s(const __grid_constant__ Arguments a) {\n",
                    kKernelName);
    t += "  FIND_NUMBERS\n  const int64_t length = a.length;\n  const int thread = static_cast<int>(threadIdx.x);\n" +
         reducers + "  auto finish = [&](int64_t k" + parameters + ") {\n" + numbers + "  };\n";
    if (parts)
      t += "  if (a.second != 0) {\n"
           "    const int lanes = static_cast<int>(a.end_lanes), lane = thread & (lanes - 1), groups = 256 / lanes;\n"
           "    for (int64_t first = int64_t{blockIdx.x} * groups; first < a.lines; first += int64_t{gridDim.x} * "
           "groups) {\n"
           "      const int64_t k = first + thread / lanes;\n      const bool mine = k < a.lines;\n" +
           each("      const auto s@ = merge_parts(r@, a.states[@], k, a.lines, a.parts, lanes, lane, mine);\n") +
           "      if (lane == 0 && mine) finish(k" + arguments + ");\n    }\n    return;\n  }\n";
    t += columns() ? by_columns(elements, end) : by_rows(elements, end);
    t += "}\n";
  }

  std::string by_rows(const std::string& elements, const std::string& end) const {
    return "  const int lanes = static_cast<int>(a.lanes), lane = thread & (lanes - 1), groups = 256 / lanes;\n"
           "  for (int64_t first = int64_t{blockIdx.x} * groups; first < a.lines; first += int64_t{gridDim.x} * "
           "groups) {\n"
           "    cuda::keep_rolled(first);\n"
           "    const int64_t k = first + thread / lanes, origin = k * length;\n" +
           each("    typename R@::State s@;\n    r@.start(s@);\n") + elements +
           pg::format("    if (k < a.lines) walk_row<%d>(k, length, blockIdx.y, a.per_part, lanes, lane, take);\n",
                      width()) +
           each(
               "    s@ = cuda::merge_group(s@, lanes, [&](auto& into, const auto& other) { r@.merge(into, other); "
               "});\n") +
           "    if (lane == 0 && k < a.lines) {\n" + end + "    }\n  }\n";
  }

  std::string by_columns(const std::string& elements, const std::string& end) const {
    return "  const int lanes = static_cast<int>(a.lanes), side = thread & (lanes - 1), row = thread / lanes;\n"
           "  const int64_t tiles = a.lines / a.inner * a.tiles;\n"
           "  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {\n"
           "    cuda::keep_rolled(tile);\n"
           "    const int64_t outer = tile / a.tiles, column = (tile - outer * a.tiles) * lanes + side;\n"
           "    const int64_t k = outer * a.inner + column, origin = outer * length * a.inner + column;\n"
           "    const bool mine = column < a.inner;\n" +
           each("    typename R@::State s@;\n    r@.start(s@);\n") + elements +
           pg::format("    if (mine) walk_column<%d>(length, blockIdx.y, a.per_part, row, 256 / lanes, take);\n",
                      together_) +
           each("    s@ = merge_column(r@, s@, lanes);\n") + "    if (row == 0 && mine) {\n" + end + "    }\n  }\n";
  }

  const pg::Region& piece_;
  const pg_region& raw_;
  StreamSource& out_;
  Source& source_;
  NodeText text_;
  std::vector<Value> values_;
  std::vector<Node> nodes_;
  const pg_tensor* full_ = nullptr;
  std::unique_ptr<OperandWalk> walk_;
  int together_ = 1;  // elements of a packet, or of a column that are taken together
};

}  // namespace

uint64_t StreamSource::state_bytes() const { return static_cast<uint64_t>(parts * axes.lines()) * kStateBytes; }

bool has_streams(const pg::Region& piece) {
  LineNode line;
  for (uint32_t n = 0; n < piece.node_count(); n++) {
    if (!is_line_operator(piece, n)) continue;
    read_line_node(piece, n, line);
    if (line.streamed) return true;
  }
  return false;
}

StreamSource write_streams(const pg::Region& piece) { return write_piece<StreamWriter, StreamSource>(piece); }

}  // namespace cuda::fused
