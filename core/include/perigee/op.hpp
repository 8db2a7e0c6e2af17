// SPDX-License-Identifier: Apache-2.0
// perigee/op.hpp: how operators are declared. At namespace scope of a plugin's source, with `using namespace pg`:
//
//   PG_OP("softmax")
//       .category("neural")
//       .doc("Exponentials scaled to sum to 1 along `axis`.")
//       .input("x", kFloating, "[...]")
//       .attr<Axis>("axis", -1, "axis to normalise")
//       .output("y", "shape of x")
//       .shape([](ShapeContext& c) { c.check_axis("axis", 0); c.out(0) = c.in(0); })
//       .saves("y")                                    // all that backward may use the contents of
//       .grad([](GradContext& g) {
//         if (g.needed(0)) g.din(0) = ...;             // of the input's shape and dtype; dout(0) is absent where
//       });                                            // nothing flowed back
//
// and once a plugin: pg::Provides<pg::OpTable, ...>, or an OpTable as a member of the plugin's class, whose iface
// answers PG_IFACE_OPS with its iface(). Tables are built, and schemas checked, in OpTable's constructor, which then
// runs in open(): a faulty schema is an error of the load, by name. (At namespace scope it would run, and throw, while
// the library is being mapped.)
//
// Positions in rules count from 0, in the order of declaration. Rules run on any thread and keep no state.
#pragma once

#include <string_view>
#include <vector>

#include "perigee/op_context.hpp"

namespace pg {

// Dtype masks of inputs.
inline constexpr uint32_t kBool = PG_M_BOOL, kFloating = PG_M_FLOAT, kInteger = PG_M_INT;
inline constexpr uint32_t kReal = PG_M_INT | PG_M_FLOAT, kRealOrBool = kReal | PG_M_BOOL, kAnyDtype = PG_M_ANY;
// Of what only moves or converts elements: float8, too.
inline constexpr uint32_t kStored = kAnyDtype | PG_M_FLOAT8, kStoredReal = kRealOrBool | PG_M_FLOAT8;
// "integer or floating"
std::string dtype_mask_text(uint32_t mask);

// What a schema holds of a rule: a function, or a lambda that captures plain data. (A std::function, without what that
// costs to compile in every file.)
template <class Context>
class Rule {
 public:
  Rule() = default;
  template <class Callable>
  Rule(Callable callable)
      : call_([](const char* state, Context& context) { (*reinterpret_cast<const Callable*>(state))(context); }) {
    static_assert(std::is_trivially_copyable_v<Callable> && sizeof(Callable) <= sizeof state_,
                  "a rule captures at most 32 bytes, of numbers, pointers and references");
    std::memcpy(state_, &callable, sizeof callable);
  }
  explicit operator bool() const { return call_ != nullptr; }
  void operator()(Context& context) const { call_(state_, context); }

 private:
  void (*call_)(const char* state, Context& context) = nullptr;
  alignas(8) char state_[32] = {};
};

class OpBuilder {
 public:
  explicit OpBuilder(std::string_view name);
  OpBuilder(const OpBuilder&) = delete;
  ~OpBuilder();

  OpBuilder& doc(std::string_view text);
  OpBuilder& category(const char* chapter) { return category_ = chapter, *this; }
  OpBuilder& role(const char* role) { return role_ = role, *this; }
  // Raised when a call that was written down before would mean something else (pg_op_info.version); 1 at first.
  OpBuilder& version(uint32_t number) { return info_.version = number, *this; }
  OpBuilder& traits(uint32_t traits) { return traits_ |= traits, *this; }
  OpBuilder& numeric(uint32_t numeric) { return numeric_ = numeric, *this; }
  OpBuilder& ordered() { return effect_ = PG_EFFECT_ORDERED, *this; }
  // Draws random numbers; the host fills the attributes "seed" and "offset".
  OpBuilder& random();

  // flags: PG_INPUT_*
  OpBuilder& input(const char* name, uint32_t dtypes, const char* doc, uint32_t flags = 0);
  // The last input, a PG_INPUT_MUTATES one, is written to only where this static bool attribute is true.
  OpBuilder& written_if(const char* attr);
  // flags: PG_OUTPUT_*; `like`: the input group that a variadic output follows
  OpBuilder& output(const char* name, const char* doc, uint32_t flags = 0, uint32_t like = 0);
  OpBuilder& hidden(const char* name, const char* doc) { return output(name, doc, PG_OUTPUT_HIDDEN); }

  // ---- attributes. T: bool int double pg_number Axis Axes Ints Dims Dtype DeviceNumber. Modifiers: of the last one
  // ----
  template <class T>
  OpBuilder& attr(const char* name, typename AttrKind<T>::type value, const char* doc) {
    typename AttrKind<T>::stored stored = static_cast<typename AttrKind<T>::stored>(value);
    return add_attr(AttrKind<T>::kind, name, &stored, sizeof stored, doc);
  }
  OpBuilder& choice(const char* name, std::initializer_list<const char*> names, int32_t value, const char* doc);
  // A Lua number in place of one of the inputs: static attribute "scalar" and the runtime number "value".
  OpBuilder& scalar();
  // What an elementwise operator computes, over the primitives of perigee/kernels/primitives.hpp (pg_op_info.scalar).
  OpBuilder& expression(const char* text) { return expression_ = text, *this; }
  OpBuilder& runtime() { return flag(PG_ATTR_RUNTIME); }
  OpBuilder& required() { return flag(PG_ATTR_REQUIRED); }
  OpBuilder& pair() { return flag(PG_ATTR_PAIR); }
  OpBuilder& internal() { return flag(PG_ATTR_INTERNAL); }

  // ---- rules ----
  OpBuilder& shape(const Rule<ShapeContext>& rule) { return shape_ = rule, *this; }
  OpBuilder& grad(const Rule<GradContext>& rule) { return grad_ = rule, *this; }
  OpBuilder& decompose(const Rule<ExpandContext>& rule) { return decompose_ = rule, *this; }
  OpBuilder& write_back(const Rule<ExpandContext>& rule) { return write_back_ = rule, *this; }
  // Inputs and outputs that grad uses the contents of.
  template <class... Names>
  OpBuilder& saves(Names... names) {
    return add_saved({names...});
  }

  // Lays the attributes out and fills the C tables. Throws on what is inconsistent.
  const pg_op_info* build();

 private:
  struct Attr {
    pg_attr_info info;
    uint32_t bytes;
    alignas(8) char value[sizeof(pg_ints)];
    std::vector<const char*> choices;
  };
  OpBuilder& add_attr(uint32_t kind, const char* name, const void* value, uint32_t bytes, const char* doc);
  OpBuilder& add_saved(std::initializer_list<const char*> names);
  OpBuilder& flag(uint32_t flag);
  void lay_out();
  void resolve_saved();
  void check() const;
  [[noreturn]] void bad(const std::string& what) const;

  static int32_t infer(const pg_infer* call, pg_error* error) noexcept;
  static int32_t run_grad(const pg_grad* call, pg_error* error) noexcept;
  static int32_t run_decompose(const pg_expand* call, pg_error* error) noexcept;
  static int32_t run_write_back(const pg_expand* call, pg_error* error) noexcept;
  void check_inputs(const ShapeContext& c) const;

  std::string name_, doc_;
  const char *category_ = "other", *role_ = nullptr, *expression_ = nullptr;
  uint32_t traits_ = 0, effect_ = PG_EFFECT_NONE, numeric_ = PG_NUMERIC_KEEP;
  std::vector<pg_input_info> inputs_;
  std::vector<pg_output_info> outputs_;
  std::vector<Attr> attrs_;
  std::vector<const char*> saved_;
  Rule<ShapeContext> shape_;
  Rule<GradContext> grad_;
  Rule<ExpandContext> decompose_, write_back_;

  pg_op_info info_{};
  std::vector<const pg_input_info*> input_table_;
  std::vector<const pg_output_info*> output_table_;
  std::vector<const pg_attr_info*> attr_table_;
  std::vector<uint64_t> defaults_;
};

// An operator of this plugin; tables keep the order of declaration.
OpBuilder& declare_op(std::string_view name);

#define PG_OP_JOIN2(a, b) a##b
#define PG_OP_JOIN(a, b) PG_OP_JOIN2(a, b)
#define PG_OP(name) \
  [[maybe_unused]] static ::pg::OpBuilder& PG_OP_JOIN(pg_declared_op_, __COUNTER__) = ::pg::declare_op(name)

// The plugin's pg.ops interface. Neither copied nor moved once it has been asked for.
class OpTable {
 public:
  OpTable();
  const pg_ops* iface() const { return &table_; }

  static constexpr const char* id = PG_IFACE_OPS;
  template <class Plugin>
  const void* table() const {
    return iface();
  }

 private:
  std::vector<const pg_op_info*> infos_;
  pg_ops table_;
};

}  // namespace pg
