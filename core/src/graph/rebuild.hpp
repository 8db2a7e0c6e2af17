// SPDX-License-Identifier: Apache-2.0
// Reads a graph of a JSON document: rebuild.cpp the whole and its sources, rebuild_node.cpp calls of operators,
// rebuild_control.cpp nodes that own bodies, each of which has a reader of its own.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "graph/checked_json.hpp"
#include "graph/control.hpp"
#include "graph/document.hpp"
#include "graph/expression.hpp"
#include "graph/values.hpp"

namespace perigee {

class GraphReader {
 public:
  using Json = document::Json;
  GraphReader(const Json& document, GraphContents contents, Graph& g)
      : document_(document), contents_(std::move(contents)), g_(g) {}
  void read();

 private:
  struct Symbol {
    std::string name, node;  // a placeholder's; a node's, with the axis of the output that has it
    uint32_t output = 0, axis = 0;
  };
  struct Variable {
    uint32_t id;
    std::string latest;
  };
  struct Call {
    const Op* op;
    Device* place;
    std::vector<uint32_t> inputs;
    std::vector<uint32_t> groups;
    std::vector<uint8_t> attrs;
    std::vector<TensorRef> held;
    std::vector<Tensor*> pointers;
  };

  GraphReader(const Json& body, GraphReader& around, Graph& g)
      : document_(body), g_(g), symbols_(around.symbols_), around_(&around), depth_(around.depth_ + 1) {}
  GraphReader& whole() { return around_ == nullptr ? *this : around_->whole(); }

  void read_symbols(const Json& list);
  int64_t dimension(const Json& json, const std::string& where) const;
  // A placeholder's axis: its symbol is made with it.
  const Symbol* feed_symbol(const Json& json, const std::string& where) const;
  const Json& shape_list(const Json& json, const std::string& where) const;
  void check_described(uint32_t id, const Json& json, const std::string& where) const;
  void check_symbols() const;
  Device& find_place(const std::string& name);
  void warn_of_devices() const;

  void read_source(const Json& json);
  uint32_t read_placeholder(const Json& json, const std::string& name, Device& place, const std::string& where);
  uint32_t read_contents(const Json& json, const std::string& name, ValueKind kind, Device& place,
                         const std::string& where);
  uint32_t read_description(const Json& json, const std::string& name, Device& place, const std::string& where);
  void bind(const std::string& word, int64_t symbol);  // two axes may have one
  void finish_variables();

  void read_node(const Json& json);
  void take_inputs(std::vector<uint32_t>& ids, std::vector<TensorRef>& held, const Json& json,
                   const std::string& where);
  void read_inputs(Call& c, const Json& json, const std::string& where);
  static void read_groups(Call& c, const Json& json, const std::string& where);
  // A copy to where its input is already: both devices are one here.
  bool copies_nothing(const Call& c, const Json& json) const;
  void pass_through(const Call& c, const std::string& name, const Json& outputs, const Json& json,
                    const std::string& where);
  void record_call(Call& c, const std::string& name, const std::string& where);
  void add_name(const std::string& name, uint32_t id, const std::string& where);
  void name_node(GraphNode& n, const std::string& name, const Json& outputs, const Json& json,
                 const std::string& where);
  void read_writes(GraphNode& n, const Json& json, const std::string& where);
  void read_after(GraphNode& n, const Json& json, const std::string& where);
  void read_bound(GraphNode& n, const Json& json, const std::string& where);
  void take_mark(uint32_t id, const std::string& name, const Json& json, const std::string& what);
  void check_same(uint32_t id, uint32_t source, const std::string& what) const;
  void read_lost(uint32_t id, const Json& json, const std::string& what);

  void read_control(const Json& json);
  void read_numbers(Control& c, const Json& json, const std::string& where);
  Control::Body read_body(const Json& json, const std::string& where);
  void read_inside(Control::Body& body);
  uint32_t read_argument(const Json& json, const std::string& name, Device& place, const std::string& where);
  std::vector<uint32_t> read_values(const Json& list, const char* what, const std::string& where) const;
  void name_outputs(uint32_t index, size_t made_before, const std::string& name, const Json& outputs,
                    const std::string& where);
  void take_sizes(uint32_t id, const Json& json, size_t made_before, const std::string& what);
  void hang(uint32_t index, const std::vector<TensorRef>& held, const Json& outputs);

  template <class Body>
  static auto guarded(const std::string& where, Body&& body) -> decltype(body()) {
    try {
      return body();
    } catch (const pg::Error& e) {
      if (e.code == PG_E_DATA_LOSS || e.code == PG_E_OUT_OF_MEMORY) throw;
      const int32_t code =
          e.code == PG_E_INVALID_ARGUMENT || e.code == PG_E_FAILED_PRECONDITION ? PG_E_DATA_LOSS : e.code;
      throw pg::Error(code, where + ": " + e.what(), e.native, e.flags);
    }
  }

  const Json& document_;
  GraphContents contents_{};
  Graph& g_;
  SymbolNames symbols_{};
  std::map<std::string, Symbol> declared_{};
  std::map<std::tuple<std::string, uint32_t, uint32_t>, std::string> counted_{};  // word of an axis of an output
  std::map<std::string, uint32_t> values_{};                                      // by the document's name
  std::map<std::string, std::string> placed_{};                                   // where it says that each of them is
  std::string place_{};                                                           // and the node that is read
  std::map<std::string, Variable> variables_{};
  std::vector<WrittenValue> written_{};
  std::map<std::string, Device*> devices_{};
  std::string absent_{};
  GraphReader* const around_ = nullptr;  // of a body
  const uint32_t depth_ = 0;
};

}  // namespace perigee
