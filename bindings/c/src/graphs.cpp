// SPDX-License-Identifier: Apache-2.0
// Graphs and sessions.
#include "api.hpp"
#include "graph/control.hpp"
#include "graph/document.hpp"
#include "graph/values.hpp"
#include "plan/session.hpp"

using namespace perigee;
using namespace perigee::api;

namespace {
Graph& graph_of(pgc_graph* g) { return *reinterpret_cast<Graph*>(g); }

// The number of a tensor's value in the body that it must be of.
uint32_t value_in(Graph& body, pgc_tensor* t, const char* what) {
  if (!get(t)->is_graph() || get(t)->graph.get() != &body) pg::fail_argument(std::string(what) + " is not the body's");
  return get(t)->value;
}

Control control_of(const pgc_control_form& f) {
  Control c;
  if (f.kind >= static_cast<uint32_t>(ControlKind::count)) pg::fail_argument("there is no such kind of node");
  c.kind = static_cast<ControlKind>(f.kind);
  c.carries = f.carries;
  c.steps = f.steps;
  c.length = f.length;
  c.most = f.most;
  c.reverse = f.reverse != 0;
  pgc_tensor* const* argument = f.arguments;
  pgc_tensor* const* result = f.results;
  for (uint32_t b = 0; b < f.body_count; b++) {
    Graph& body = graph_of(f.bodies[b]);
    Control::Body& of = c.bodies.emplace_back();
    of.graph = GraphRef::share(&body);
    of.name = f.body_names[b];
    for (uint32_t i = 0; i < f.input_count; i++, argument++)
      of.arguments.push_back(*argument != nullptr ? value_in(body, *argument, "an argument") : Control::none);
    for (uint32_t i = 0; i < f.result_counts[b]; i++, result++) {
      value_in(body, *result, "a result");
      of.results.push_back(graph_value_now(*get(*result)));
      of.linked.push_back(get(*result)->node ? 1 : 0);
    }
  }
  return c;
}
}  // namespace

int32_t pgc_graph_create(pgc_graph** output) {
  return run("graph", [&] {
    settle();
    *output = reinterpret_cast<pgc_graph*>(new Graph());
  });
}
int32_t pgc_graph_set_device(pgc_graph* graph, int32_t number) {
  return run("graph", [&] { graph_of(graph).usual = number < 0 ? nullptr : &device(number); });
}
void pgc_graph_release(pgc_graph* graph) {
  GraphRef held = GraphRef::adopt(&graph_of(graph));
  held->forget_history();
}
int32_t pgc_graph_placeholder(pgc_graph* graph, const char* name, uint32_t dtype, uint32_t rank, const int64_t* shape,
                              const char* const* symbols, pgc_tensor** output) {
  return run("placeholder",
             [&] { *output = give(graph_placeholder(graph_of(graph), name, dtype, rank, shape, symbols)); });
}
int32_t pgc_graph_variable(pgc_graph* graph, const char* name, pgc_tensor* value, pgc_tensor** output) {
  return run("variable", [&] {
    settle();
    *output = give(graph_variable(graph_of(graph), name, eager(value, "the initial value")));
  });
}
int32_t pgc_graph_variable_beside(pgc_graph* graph, const char* name, pgc_tensor* value, pgc_tensor* beside,
                                  pgc_tensor** output) {
  return run("variable", [&] {
    settle();
    Graph& g = root_of(graph_of(graph));
    *output = give(graph_variable(g, name, eager(value, "the initial value"), get(beside)));
  });
}
int32_t pgc_graph_constant(pgc_graph* graph, const char* name, pgc_tensor* value, pgc_tensor** output) {
  return run("constant", [&] {
    settle();

    *output = give(graph_constant(graph_of(graph), name == nullptr ? "" : name, eager(value, "the value")));
  });
}
int32_t pgc_graph_set_name(pgc_graph* graph, pgc_tensor* tensor, const char* name) {
  return run("name", [&] { graph_set_name(graph_of(graph), *get(tensor), name); });
}
int32_t pgc_graph_call(pgc_graph* graph, const char* class_name, uint32_t count, pgc_tensor* const* tensors,
                       const char* const* names) {
  return run("graph", [&] {
    settle();

    std::vector<std::pair<std::string, Tensor*>> held;
    for (uint32_t i = 0; i < count; i++) held.emplace_back(names[i], get(tensors[i]));
    graph_call(root_of(graph_of(graph)), class_name, held);
  });
}
int32_t pgc_graph_variable_of(pgc_graph* graph, pgc_tensor* tensor, pgc_tensor** output) {
  return run("graph", [&] {
    TensorRef found = graph_variable_of(root_of(graph_of(graph)), *get(tensor));
    *output = found ? give(std::move(found)) : nullptr;
  });
}
uint32_t pgc_graph_written(pgc_graph* graph) { return static_cast<uint32_t>(graph_of(graph).written.size()); }
int32_t pgc_graph_after_writes(pgc_graph* graph, pgc_tensor* tensor, uint32_t index, pgc_tensor* also,
                               pgc_tensor** output) {
  return run("graph", [&] {
    *output = give(graph_after_writes(graph_of(graph), *get(tensor), index, also != nullptr ? get(also) : nullptr));
  });
}
void pgc_graph_settle(pgc_graph* graph) { graph_settle(root_of(graph_of(graph))); }
void pgc_graph_forget_writes(pgc_graph* graph, uint32_t index) { graph_forget_writes(graph_of(graph), index); }
uint32_t pgc_graph_node_count(pgc_graph* graph) { return static_cast<uint32_t>(graph_of(graph).nodes.size()); }
int32_t pgc_graph_bind(pgc_graph* graph, uint32_t first, const char* attr, pgc_tensor* value, uint32_t* count) {
  return run("graph",
             [&] { *count = graph_bind(graph_of(graph), first, attr, value != nullptr ? get(value) : nullptr); });
}
int32_t pgc_graph_source_at(pgc_graph* graph, uint32_t index, pgc_tensor** output) {
  return run("graph", [&] {
    TensorRef found = graph_source_at(graph_of(graph), index);
    *output = found ? give(std::move(found)) : nullptr;
  });
}
int32_t pgc_graph_knows(pgc_graph* graph, pgc_tensor* tensor) {
  return graph_knows(root_of(graph_of(graph)), *get(tensor));
}
int32_t pgc_graph_variable_at(pgc_graph* graph, uint32_t index, pgc_tensor** output) {
  return run("graph", [&] {
    TensorRef found = graph_variable_at(graph_of(graph), index);
    *output = found ? give(std::move(found)) : nullptr;
  });
}
uint64_t pgc_graph_revision(pgc_graph* graph) { return graph_of(graph).revision; }
const char* pgc_graph_name(pgc_tensor* tensor) {
  const char* name = nullptr;
  run("name", [&] { name = graph_name(*get(tensor)).c_str(); });
  return name;
}
int32_t pgc_graph_find(pgc_graph* graph, const char* name, pgc_tensor** output) {
  return run("graph", [&] { *output = give(graph_find(graph_of(graph), name)); });
}
const char* pgc_graph_text(pgc_graph* graph) {
  const char* text = nullptr;
  run("graph", [&] { text = keep_text(graph_text(graph_of(graph))); });
  return text;
}
const char* pgc_graph_dot(pgc_graph* graph) {
  const char* text = nullptr;
  run("graph", [&] { text = keep_text(graph_dot(graph_of(graph))); });
  return text;
}
const char* pgc_graph_document(pgc_graph* graph) {
  const char* text = nullptr;
  run("save", [&] { text = keep_text(graph_document(graph_of(graph))); });
  return text;
}
int32_t pgc_graph_read(const char* document, uint32_t count, const char* const* names, pgc_tensor* const* contents,
                       int32_t device_number, const char* shown, pgc_graph** output) {
  return run("load_graph", [&] {
    GraphContents given_contents;
    given_contents.shown = given(shown, "what warnings begin with");
    given_contents.device = device_number < 0 ? nullptr : &device(device_number);
    for (uint32_t i = 0; i < count; i++)
      given_contents.tensors[names[i]] = alias(eager(contents[i], "the contents of a source"));
    try {
      *output = reinterpret_cast<pgc_graph*>(
          read_graph_document(given(document, "the document"), std::move(given_contents)).release());
    } catch (const pg::Error& e) {
      throw pg::Error(e.code, std::string(shown) + ": " + e.what(), e.native, e.flags);
    }
  });
}
int32_t pgc_body_create(pgc_graph* around, pgc_graph** output) {
  return run("graph", [&] { *output = reinterpret_cast<pgc_graph*>(make_body(graph_of(around)).release()); });
}
int32_t pgc_body_argument(pgc_graph* body, const char* name, pgc_tensor* like, int32_t step, int32_t differentiable,
                          pgc_tensor** output, pgc_tensor** twin) {
  return run("graph", [&] {
    TensorRef made = body_argument(graph_of(body), name, *get(like), step != 0, differentiable != 0);
    TensorRef other = alias(*made);
    other->node = made->node;
    *output = give(std::move(made));
    *twin = give(std::move(other));
  });
}
int32_t pgc_body_take(pgc_graph* body, pgc_tensor* tensor, pgc_tensor** output) {
  return run("graph", [&] { *output = give(take_in(graph_of(body), *get(tensor))); });
}
int32_t pgc_body_taken(pgc_graph* body, uint32_t index, pgc_tensor** outer, pgc_tensor** inner) {
  const std::vector<Taken>& taken = graph_of(body).taken;
  *outer = index < taken.size() ? give(taken[index].outer) : nullptr;
  *inner = index < taken.size() ? give(taken[index].inner) : nullptr;
  return PG_OK;
}
const char* pgc_control_name(pgc_graph* graph, const char* wanted) {
  const char* name = nullptr;
  run("graph", [&] { name = keep_text(reserve_name(graph_of(graph), wanted)); });
  return name;
}
int32_t pgc_control(pgc_graph* graph, const pgc_control_form* form, pgc_tensor** outputs, uint32_t* node) {
  return run("graph", [&] {
    std::vector<TensorRef> made;
    *node = add_control(graph_of(graph), control_of(*form), form->name, get(form->inputs), form->input_count, made);
    for (size_t i = 0; i < made.size(); i++) outputs[i] = give(std::move(made[i]));
  });
}
int32_t pgc_control_keep(pgc_graph* graph, uint32_t node, uint32_t body, pgc_tensor* inner, pgc_tensor** output) {
  return run("graph", [&] { *output = give(keep_value(graph_of(graph), node, body, *get(inner))); });
}
int32_t pgc_control_read(pgc_graph* graph, uint32_t node, pgc_control_form* form) {
  return run("graph", [&] {
    const GraphNode& n = graph_of(graph).nodes.at(node);
    const Control& c = *n.control;
    *form = {};
    form->kind = static_cast<uint32_t>(c.kind);
    form->input_count = static_cast<uint32_t>(n.inputs.size());
    form->carries = c.carries;
    form->steps = c.steps;
    form->body_count = static_cast<uint32_t>(c.bodies.size());
    form->reverse = c.reverse ? 1 : 0;
    form->length = c.length;
    form->most = c.most;
    form->name = n.name.c_str();
  });
}
pgc_graph* pgc_control_body(pgc_graph* graph, uint32_t node, uint32_t body, const char** name, uint32_t* results) {
  Control::Body& b = graph_of(graph).nodes[node].control->bodies[body];
  *name = b.name.c_str();
  *results = static_cast<uint32_t>(b.results.size());
  return reinterpret_cast<pgc_graph*>(b.graph.get());
}
int32_t pgc_control_input(pgc_graph* graph, uint32_t node, uint32_t input, pgc_tensor** output) {
  return run("graph", [&] {
    Graph& g = graph_of(graph);
    TensorRef t = tensor_of(g, g.nodes.at(node).inputs.at(input));
    if (!g.nodes[node].control->linked[input]) t->node = nullptr;
    *output = give(std::move(t));
  });
}
int32_t pgc_control_argument(pgc_graph* graph, uint32_t node, uint32_t body, uint32_t input, pgc_tensor** output) {
  return run("graph", [&] {
    Control::Body& b = graph_of(graph).nodes.at(node).control->bodies.at(body);
    const uint32_t id = b.arguments.at(input);
    *output = id == Control::none ? nullptr : give(tensor_of(*b.graph, id));
  });
}
int32_t pgc_control_result(pgc_graph* graph, uint32_t node, uint32_t body, uint32_t index, pgc_tensor** output) {
  return run("graph", [&] {
    Control::Body& b = graph_of(graph).nodes.at(node).control->bodies.at(body);
    *output = nullptr;
    if (index >= b.results.size() || b.results[index] == Control::none) return;
    TensorRef t = tensor_of(*b.graph, b.results[index]);
    if (!b.linked[index]) t->node = nullptr;
    *output = give(std::move(t));
  });
}
int32_t pgc_graph_hung(pgc_graph* graph, uint32_t index, pgc_hung_node* what) {
  const std::vector<HungNode>& hung = graph_of(graph).hung;
  if (index >= hung.size()) return 0;
  const HungNode& h = hung[index];
  const GraphNode& n = h.graph->nodes[h.node];
  *what = {h.number,      reinterpret_cast<pgc_graph*>(h.graph), h.node, h.first, h.count, h.inputs, h.lost ? 1 : 0,
           n.name.c_str()};
  return 1;
}
pgc_graph* pgc_graph_of(pgc_tensor* tensor) { return reinterpret_cast<pgc_graph*>(get(tensor)->graph.get()); }
void pgc_graph_key(pgc_tensor* tensor, uint64_t key[3]) {
  key[0] = reinterpret_cast<uintptr_t>(get(tensor)->graph.get());
  key[1] = get(tensor)->value;
  key[2] = reinterpret_cast<uintptr_t>(get(tensor)->node.get()) + get(tensor)->output;
}
int32_t pgc_graph_after(pgc_graph* graph, pgc_tensor* const* tensors, uint32_t count, uint32_t* before) {
  return run("after", [&] { *before = graph_after(graph_of(graph), get(tensors), count); });
}
void pgc_graph_after_end(pgc_graph* graph, uint32_t before) { graph_of(graph).after.resize(before); }
int32_t pgc_session_create(pgc_graph* graph, uint32_t flags, pgc_session** output) {
  return run("Session", [&] {
    settle();
    *output = reinterpret_cast<pgc_session*>(new Session(
        GraphRef::share(&graph_of(graph)), (flags & PGC_SESSION_SOFT) != 0, (flags & PGC_SESSION_APART) == 0));
  });
}
void pgc_session_release(pgc_session* session) { delete reinterpret_cast<Session*>(session); }
int32_t pgc_session_contents(pgc_session* session, const char* name, pgc_tensor** output) {
  return run("session",
             [&] { *output = give(reinterpret_cast<Session*>(session)->contents(given(name, "the name"))); });
}
const char* pgc_session_placement(pgc_session* session) {
  const char* text = nullptr;
  run("session", [&] { text = keep_text(reinterpret_cast<Session*>(session)->placement()); });
  return text;
}
const char* pgc_session_plan(pgc_session* session) {
  const char* text = nullptr;
  run("plan", [&] { text = keep_text(reinterpret_cast<Session*>(session)->plan()); });
  return text;
}
int32_t pgc_session_assign(pgc_session* session, pgc_tensor* variable, pgc_tensor* value) {
  return run("session", [&] {
    settle();

    eager(value, "what is assigned");
    reinterpret_cast<Session*>(session)->assign(*get(variable), *get(value));
  });
}
int32_t pgc_session_run(pgc_session* session, pgc_tensor* const* fetches, uint32_t fetch_count,
                        pgc_tensor* const* feeds, pgc_tensor* const* values, uint32_t feed_count,
                        pgc_tensor** results) {
  return run("Session:run", [&] {
    settle();

    for (uint32_t i = 0; i < feed_count; i++) eager(values[i], "what is fed");
    std::vector<TensorRef> made(fetch_count);
    reinterpret_cast<Session*>(session)->run(get(fetches), fetch_count, get(feeds), get(values), feed_count,
                                             made.data());
    for (uint32_t i = 0; i < fetch_count; i++) results[i] = give(std::move(made[i]));
  });
}
int32_t pgc_partial_create(pgc_session* session, pgc_tensor* const* fetches, uint32_t fetch_count,
                           pgc_tensor* const* feeds, uint32_t feed_count, pgc_partial** output) {
  return run("Session:partial_run_setup", [&] {
    auto made = reinterpret_cast<Session*>(session)->begin(get(fetches), fetch_count, get(feeds), feed_count);
    *output = reinterpret_cast<pgc_partial*>(made.release());
  });
}
int32_t pgc_partial_run(pgc_partial* partial, pgc_tensor* const* fetches, uint32_t fetch_count,
                        pgc_tensor* const* feeds, pgc_tensor* const* values, uint32_t feed_count,
                        pgc_tensor** results) {
  return run("Session:partial_run", [&] {
    settle();

    for (uint32_t i = 0; i < feed_count; i++) eager(values[i], "what is fed");
    std::vector<TensorRef> made(fetch_count);
    reinterpret_cast<Session::Partial*>(partial)->run(get(fetches), fetch_count, get(feeds), get(values), feed_count,
                                                      made.data());
    for (uint32_t i = 0; i < fetch_count; i++) results[i] = give(std::move(made[i]));
  });
}
void pgc_partial_release(pgc_partial* partial) { delete reinterpret_cast<Session::Partial*>(partial); }
