// SPDX-License-Identifier: Apache-2.0
// perigee/layer.hpp: how a layer is written: a plain struct of attributes with their defaults, and two functions.
//
// clang-format off
//   struct Linear {
//     int64_t inputs = 0, out = 0;
//     pg::Bool bias = true;
//     void parameters(pg::Params& p) {                     // check and infer attributes, describe the parameters
//       p.positive(out, "out");
//       p.infer(inputs, "inputs", -1);
//       double bound = 1 / std::sqrt(double(inputs));
//       p.uniform(0, pg::make_ints({out, inputs}), bound); // 0: "weight", the first of params below
//       if (bias) p.uniform(1, pg::make_ints({out}), bound);   // what is not described is not there
//     }
//     pg::Value build(const pg::LayerCall& c) const {      // emit operators
//       static constinit pg::OpRef op("linear");
//       return c.call(op).input(c.input()).input(c.param(0)).input(c.param(1)).emit();
//     }
//   };
//   PG_LAYER(Linear, "Linear", "y = x weight^T + bias")    // nn.Linear in Lua
//       .inferred(&Linear::inputs, "inputs", "size of the input's last axis")
//       .attr(&Linear::out, "out", "size of the output's last axis", PG_ATTR_REQUIRED)
//       .attr(&Linear::bias, "bias", "whether to add a bias [out]")
//       .params({"weight", "bias"});
// clang-format on
//
// The file registers itself. The struct is the packed attribute struct of the C table, so it must be trivially
// copyable, and its fields are pg::Bool, int64_t, double or pg_ints; int32_t for a choice. Attributes are declared in
// the order of positional arguments. `.inputs(2)` makes a layer of two inputs, c.input(0) and c.input(1); a build that
// returns std::array<pg::Value, 2> one of two outputs. Both functions may run on any thread, and build emits the same
// where attributes, training and the descriptions of what it is given are: a compiled function then repeats it without
// asking. A plugin is, or has in its pg::Provides, a pg::LayerTable.
#pragma once

#include <array>
#include <vector>

#include "perigee/emit.hpp"

namespace pg {

// A boolean attribute, in the C table's width.
struct Bool {
  constexpr Bool(bool on = false) : value(on) {}
  constexpr operator bool() const { return value != 0; }
  int32_t value;
};

// ---- the attribute list of a struct, shared by layers and optimizers ----

class AttrList {
 public:
  template <class T, class Field>
  pg_attr_info& add(Field T::*field, uint32_t kind, const char* name, const char* doc, uint32_t flags) {
    static_assert(std::is_trivially_copyable_v<T>);
    static const T probe{};
    auto at = reinterpret_cast<const char*>(&(probe.*field)) - reinterpret_cast<const char*>(&probe);
    return add(static_cast<uint32_t>(at), kind, name, doc, flags);
  }
  template <class Field>
  static constexpr uint32_t kind_of() {
    if constexpr (std::is_same_v<Field, Bool>) return PG_ATTR_BOOL;
    if constexpr (std::is_same_v<Field, int64_t>) return PG_ATTR_INT;
    if constexpr (std::is_same_v<Field, double>) return PG_ATTR_FLOAT;
    if constexpr (std::is_same_v<Field, pg_ints>) return PG_ATTR_INTS;
    static_assert(std::is_same_v<Field, Bool> || std::is_same_v<Field, int64_t> || std::is_same_v<Field, double> ||
                      std::is_same_v<Field, pg_ints>,
                  "an attribute is pg::Bool, int64_t, double or pg_ints; a choice is declared with `choice`");
    return 0;
  }
  uint32_t count() const { return static_cast<uint32_t>(raw_.size()); }
  const pg_attr_info* const* data() const { return raw_.data(); }

 private:
  pg_attr_info& add(uint32_t offset, uint32_t kind, const char* name, const char* doc, uint32_t flags);
  std::vector<const pg_attr_info*> raw_;  // for as long as the process lives, as their schemas
};

// ---- describing parameters ----

class Params {
 public:
  Params(const char* layer, const pg_tensor* input, pg_param* const* params, uint32_t count);
  const char* const layer;
  const pg_tensor* const input;  // the first one; NULL when nothing is to infer

  // Fills `value` with the input's size along `axis` (negative: from the end) if it is not known yet.
  void infer(int64_t& value, const char* name, int axis) const;
  static void positive(int64_t value, const char* name);
  static void positive(const pg_ints& list, const char* name);
  static void not_negative(const pg_ints& list, const char* name);

  // What a parameter is and begins with. `index` is its place in LayerSchema::params; the dtype is the default one.
  // Values uniform in [-bound, bound).
  void uniform(uint32_t index, const pg_ints& shape, double bound);
  void normal(uint32_t index, const pg_ints& shape, double mean, double std);
  void constant(uint32_t index, const pg_ints& shape, double value);
  // State that is not trained.
  void buffer(uint32_t index, const pg_ints& shape, double value);

 private:
  void set(uint32_t index, const pg_ints& shape, uint32_t init, double a, double b);
  pg_param* const* params_;
  uint32_t count_;
};

// ---- a call ----

class LayerCall {
 public:
  LayerCall(const pg_layer_build* raw, const void* extra) : raw_(raw), extra_(extra) {}
  bool training() const { return raw_->training != 0; }
  Value input(uint32_t index = 0) const { return {raw_->builder, raw_->inputs[index]}; }
  // Absent where `parameters` did not describe it.
  Value param(uint32_t index) const { return {raw_->builder, raw_->params[index]}; }
  Call call(const OpRef& op) const { return Call(raw_->builder, op); }
  // What registration passed along: the row of a family.
  template <class T>
  const T& extra() const {
    return *static_cast<const T*>(extra_);
  }

 private:
  const pg_layer_build* raw_;
  const void* extra_;
};

// ---- registration ----

void add_layer(const pg_layer_info& info);

namespace detail {

inline void put_outputs(Value value, pg_value* outputs) { outputs[0] = value.id; }
template <size_t N>
void put_outputs(const std::array<Value, N>& values, pg_value* outputs) {
  for (size_t i = 0; i < N; i++) outputs[i] = values[i].id;
}
template <class Built>
constexpr uint32_t output_count() {
  if constexpr (std::is_same_v<Built, Value>) {
    return 1;
  } else {
    return static_cast<uint32_t>(std::tuple_size_v<Built>);
  }
}

}  // namespace detail

template <class T>
class LayerSchema {
  using Built = decltype(std::declval<const T&>().build(std::declval<const LayerCall&>()));

 public:
  LayerSchema(const char* name, const char* doc, const void* extra = nullptr) : extra_(extra) {
    static_assert(std::is_trivially_copyable_v<T>, "the struct is copied as bytes");
    info_.size = PG_SIZE(pg_layer_info, build);
    info_.input_count = 1;
    info_.output_count = detail::output_count<Built>();
    info_.attr_size = std::is_empty_v<T> ? 0 : static_cast<uint32_t>(sizeof(T));
    info_.name = name, info_.doc = doc;
    info_.defaults = &defaults_;
    info_.user = this;
    info_.parameters = parameters;
    info_.build = build;
    add_layer(info_);
  }
  LayerSchema(const LayerSchema&) = delete;

  // The next attribute; its kind follows from the field's type.
  template <class Field>
  LayerSchema& attr(Field T::*field, const char* name, const char* doc, uint32_t flags = 0) {
    return add(field, AttrList::kind_of<Field>(), name, doc, flags);
  }
  LayerSchema& axis(int64_t T::*field, const char* name, const char* doc) {
    return add(field, PG_ATTR_AXIS, name, doc, 0);
  }
  LayerSchema& pair(pg_ints T::*field, const char* name, const char* doc, uint32_t flags = 0) {
    return add(field, PG_ATTR_INTS, name, doc, flags | PG_ATTR_PAIR);
  }
  template <size_t N>
  LayerSchema& choice(int32_t T::*field, const char* name, const char* doc, const char* const (&choices)[N]) {
    pg_attr_info& info = attrs_.add(field, PG_ATTR_CHOICE, name, doc, 0);
    info.choices = choices, info.choice_count = N;
    return publish();
  }
  // The attribute that names the input's size: the first call may fill it in. 0 is "not known yet".
  LayerSchema& inferred(int64_t T::*field, const char* name, const char* doc) {
    add(field, PG_ATTR_INT, name, doc, PG_ATTR_REQUIRED);
    info_.inferred = attrs_.count();
    return *this;
  }
  LayerSchema& inputs(uint32_t count) {
    info_.input_count = count;
    return *this;
  }
  LayerSchema& params(std::initializer_list<const char*> names) {
    names_ = names;
    info_.param_count = static_cast<uint32_t>(names_.size());
    info_.param_names = names_.data();
    return *this;
  }

 private:
  template <class Field>
  LayerSchema& add(Field T::*field, uint32_t kind, const char* name, const char* doc, uint32_t flags) {
    attrs_.add(field, kind, name, doc, flags);
    return publish();
  }
  LayerSchema& publish() {
    info_.attrs = attrs_.data();
    info_.attr_count = attrs_.count();
    return *this;
  }

  static int32_t parameters(void* user, void* attrs, const pg_tensor* input, pg_param* const* params,
                            pg_error* error) noexcept {
    auto& self = *static_cast<LayerSchema*>(user);
    return guard(error, self.info_.name, [&] {
      Params description(self.info_.name, input, params, self.info_.param_count);
      static_cast<T*>(attrs)->parameters(description);
    });
  }
  static int32_t build(void* user, const pg_layer_build* call, pg_error* error) noexcept {
    auto& self = *static_cast<LayerSchema*>(user);
    return guard(error, self.info_.name, [&] {
      static const T none{};
      const T& attrs = call->attrs == nullptr ? none : *static_cast<const T*>(call->attrs);
      detail::put_outputs(attrs.build(LayerCall(call, self.extra_)), call->outputs);
    });
  }

  T defaults_{};
  pg_layer_info info_{};
  AttrList attrs_;
  std::vector<const char*> names_;
  const void* extra_;
};

// The schema lives as long as the process: the table points into it.
template <class T>
LayerSchema<T>& add_layer(const char* name, const char* doc, const void* extra = nullptr) {
  return *new LayerSchema<T>(name, doc, extra);
}

const pg_layers* layer_table();

struct LayerTable {
  static constexpr const char* id = PG_IFACE_LAYERS;
  template <class Plugin>
  const void* table() const {
    return layer_table();
  }
};

}  // namespace pg

#define PG_LAYER(Type, name, doc) [[maybe_unused]] static auto& pg_layer_##Type = pg::add_layer<Type>(name, doc)
