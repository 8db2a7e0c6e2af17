// SPDX-License-Identifier: Apache-2.0
#include "registry/check.hpp"

#include <algorithm>
#include <cstring>

namespace perigee {

namespace {

// What users write must be what they can write: in Lua as a name, in a device's name before ":".
void check_name(const std::string& name, const std::string& owner, bool capitals) {
  auto fits = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || (capitals && c >= 'A' && c <= 'Z');
  };
  const bool good = !name.empty() && std::all_of(name.begin(), name.end(), fits) && (name[0] < '0' || name[0] > '9');
  if (good) return;
  pg::fail_argument(owner + ": its name is made of " + (capitals ? "letters" : "lower case letters") +
                    ", digits and '_', and begins with no digit");
}

constexpr uint32_t kNoParts = UINT32_MAX;  // all but operators tell no static attributes from runtime ones

struct Packed {
  const pg_attr_info* const* attrs;
  uint32_t attr_count, attr_size, static_size;
  const void* defaults;
  std::string owner;                       // "operator 'add'"
  enum { other, part, codec } of = other;  // options of pg.data: of sources and transforms, of codecs
};

[[noreturn]] void fail_attr(const Packed& p, const pg_attr_info& attr, const std::string& text) {
  pg::fail_argument(p.owner + ": attribute '" + attr.name + "' " + text);
}

void check_place(const Packed& p, const pg_attr_info& attr) {
  const uint32_t bytes = attr_bytes(attr.kind);
  const uint32_t last = p.of == Packed::part ? PG_ATTR_TENSORS : p.of == Packed::codec ? PG_ATTR_TEXT : PG_ATTR_NUMBER;
  const bool known =
      attr.kind <= last && (p.of == Packed::other || (attr.kind != PG_ATTR_SCALAR && attr.kind != PG_ATTR_DIMS));
  if (bytes == 0 || !known) fail_attr(p, attr, pg::format("has the unknown kind %u", attr.kind));
  if (attr.offset > p.attr_size || bytes > p.attr_size - attr.offset) {
    fail_attr(p, attr,
              pg::format("at offset %u, %u bytes, lies outside the struct of %u", attr.offset, bytes, p.attr_size));
  }
  const uint32_t alignment = bytes >= 8 && attr.kind != PG_ATTR_SCALAR ? 8 : 4;
  if (attr.offset % alignment != 0) fail_attr(p, attr, pg::format("at offset %u is not aligned", attr.offset));
  if (p.static_size == kNoParts) return;
  const bool runtime = (attr.flags & PG_ATTR_RUNTIME) != 0;
  if (runtime && attr.offset < p.static_size) {
    fail_attr(p, attr, pg::format("is a runtime one, but lies in the static part of %u bytes", p.static_size));
  }
  if (!runtime && attr.offset + bytes > p.static_size) {
    fail_attr(p, attr, pg::format("is a static one, but lies outside the static part of %u bytes", p.static_size));
  }
}

void check_details(const Packed& p, const pg_attr_info& attr) {
  if (attr.kind == PG_ATTR_CHOICE) {
    if (attr.choices == nullptr || attr.choice_count == 0) fail_attr(p, attr, "is a choice without choices");
    for (uint32_t i = 0; i < attr.choice_count; i++) {
      if (attr.choices[i] == nullptr) fail_attr(p, attr, "has a choice that is NULL");
    }
  }
  if (attr.kind != PG_ATTR_SCALAR) return;
  auto is_partner = [&](const pg_attr_info* other) {
    return other->offset == attr.value && other->kind == PG_ATTR_NUMBER && (other->flags & PG_ATTR_RUNTIME) != 0;
  };
  if (std::none_of(p.attrs, p.attrs + p.attr_count, is_partner)) {
    fail_attr(p, attr, pg::format("needs a runtime attribute of kind NUMBER at offset %u for its number", attr.value));
  }
}

void check_attrs(const Packed& p) {
  if (p.static_size != kNoParts && p.static_size > p.attr_size)
    pg::fail_argument(p.owner + ": static_size is larger than attr_size");
  if (p.attr_size > 0 && p.defaults == nullptr) pg::fail_argument(p.owner + ": required field 'defaults' is missing");
  std::set<std::string> names;
  std::vector<const pg_attr_info*> sorted(p.attrs, p.attrs + p.attr_count);
  for (const pg_attr_info* attr : sorted) {
    if (!names.insert(attr->name).second) fail_attr(p, *attr, "is declared twice");
    check_place(p, *attr);
    check_details(p, *attr);
    if (attr->kind != PG_ATTR_TEXT) continue;
    const char* text;
    std::memcpy(&text, static_cast<const char*>(p.defaults) + attr->offset, sizeof text);
    if (text == nullptr) fail_attr(p, *attr, "is a text whose default is NULL");
  }
  std::sort(sorted.begin(), sorted.end(), [](auto* a, auto* b) { return a->offset < b->offset; });
  for (size_t i = 1; i < sorted.size(); i++) {
    if (sorted[i - 1]->offset + attr_bytes(sorted[i - 1]->kind) > sorted[i]->offset) {
      fail_attr(p, *sorted[i], std::string("overlaps '") + sorted[i - 1]->name + "'");
    }
  }
}

void check_random(const pg_op_info& info, const std::string& owner) {
  if (info.effect != PG_EFFECT_RANDOM) return;
  for (const char* name : {"seed", "offset"}) {
    auto fits = [&](const pg_attr_info* attr) {
      return std::string(attr->name) == name && attr->kind == PG_ATTR_INT && (attr->flags & PG_ATTR_RUNTIME) != 0;
    };
    if (std::none_of(info.attrs, info.attrs + info.attr_count, fits)) {
      pg::fail_argument(owner + ": a random operator needs the runtime attribute '" + name + "' of kind INT");
    }
  }
}

void check_inputs(const pg_op_info& info, const std::string& owner) {
  for (uint32_t i = 0; i < info.input_count; i++) {
    const pg_input_info& input = *info.inputs[i];
    if (input.written_if == nullptr) continue;
    auto fits = [&](const pg_attr_info* attr) {
      return std::string(attr->name) == input.written_if && attr->kind == PG_ATTR_BOOL &&
             (attr->flags & PG_ATTR_RUNTIME) == 0;
    };
    if ((input.flags & PG_INPUT_MUTATES) == 0 || std::none_of(info.attrs, info.attrs + info.attr_count, fits))
      pg::fail_argument(owner + ": input '" + input.name + "' is written if '" + input.written_if +
                        "': needs PG_INPUT_MUTATES and a static attribute of that name and kind BOOL");
  }
}

void check_outputs(const pg_op_info& info, const std::string& owner) {
  bool hidden = false;
  for (uint32_t i = 0; i < info.output_count; i++) {
    const pg_output_info& output = *info.outputs[i];
    const bool is_hidden = (output.flags & PG_OUTPUT_HIDDEN) != 0;
    if (hidden && !is_hidden) pg::fail_argument(owner + ": output '" + output.name + "' stands behind a hidden one");
    hidden = is_hidden;
    if ((output.flags & PG_OUTPUT_VARIADIC) == 0) continue;
    if (output.like >= info.input_count || (info.inputs[output.like]->flags & PG_INPUT_VARIADIC) == 0) {
      pg::fail_argument(owner + ": output '" + output.name + "' must be like a variadic input");
    }
  }
}

}  // namespace

uint32_t attr_bytes(uint32_t kind) {
  switch (kind) {
    case PG_ATTR_BOOL:
    case PG_ATTR_DTYPE:
    case PG_ATTR_CHOICE:
    case PG_ATTR_DEVICE: return 4;
    case PG_ATTR_INT:
    case PG_ATTR_FLOAT:
    case PG_ATTR_TEXT:
    case PG_ATTR_TEXTS:
    case PG_ATTR_TENSOR:
    case PG_ATTR_TENSORS:
    case PG_ATTR_AXIS: return 8;
    case PG_ATTR_SCALAR: return sizeof(pg_scalar);
    case PG_ATTR_NUMBER: return sizeof(pg_number);
    case PG_ATTR_INTS:
    case PG_ATTR_AXES:
    case PG_ATTR_DIMS: return sizeof(pg_ints);
    default: return 0;
  }
}

std::vector<std::string> split_words(const char* text) {
  constexpr const char* kSpace = " \t\n\v\f\r";
  std::vector<std::string> words;
  for (const char* at = text == nullptr ? "" : text; *(at += std::strspn(at, kSpace)) != '\0';) {
    const size_t length = std::strcspn(at, kSpace);
    words.emplace_back(at, length);
    at += length;
  }
  return words;
}

void check_op(const pg_op_info& info) {
  const std::string owner = std::string("operator '") + info.name + "'";
  check_name(info.name, owner, false);
  if (std::string(info.name).ends_with("_")) pg::fail_argument(owner + ": a '_' at the end means an in-place form");
  check_attrs({info.attrs, info.attr_count, info.attr_size, info.static_size, info.defaults, owner});
  for (uint32_t i = 0; i < info.input_count; i++) {
    auto same = [&](const pg_attr_info* attr) { return std::strcmp(attr->name, info.inputs[i]->name) == 0; };
    if (std::any_of(info.attrs, info.attrs + info.attr_count, same)) {
      pg::fail_argument(owner + ": '" + info.inputs[i]->name + "' is an input and an attribute");
    }
  }
  if (info.input_count > 64 || info.output_count > 64) pg::fail_argument(owner + ": more than 64 inputs or outputs");
  check_random(info, owner);
  check_inputs(info, owner);
  check_outputs(info, owner);
  auto outside = [](uint64_t mask, uint32_t count) { return count < 64 && (mask >> count) != 0; };
  if (outside(info.saved_inputs, info.input_count)) pg::fail_argument(owner + ": saves an input it does not have");
  if (outside(info.saved_outputs, info.output_count)) pg::fail_argument(owner + ": saves an output it does not have");
  if ((info.traits & PG_OP_VIEW) != 0 && (info.input_count == 0 || info.output_count == 0)) {
    pg::fail_argument(owner + ": a view needs an input to look at and an output");
  }
  if ((info.traits & PG_OP_VIEW) != 0 && (info.inputs[0]->flags & (PG_INPUT_VARIADIC | PG_INPUT_OPTIONAL)) != 0) {
    pg::fail_argument(owner + ": a view needs one tensor to look at as input 0");
  }
  if ((info.traits & PG_OP_IN_PLACE) != 0 && (info.input_count == 0 || info.output_count == 0)) {
    pg::fail_argument(owner + ": an in-place form needs an input and an output");
  }
  if (info.scalar != nullptr && ((info.traits & PG_OP_ELEMENTWISE) == 0 || info.output_count != 1)) {
    pg::fail_argument(owner + ": only elementwise operators with one output have a scalar expression");
  }
}

void check_kernel(const pg_kernel_info& info) {
  const bool all = std::strcmp(info.op, "*") == 0, scalar = (info.flags & PG_KERNEL_SCALAR) != 0;
  if (all != scalar) {
    pg::fail_argument(std::string("kernel of '") + info.op +
                      "': \"*\" for an operator and PG_KERNEL_SCALAR belong together");
  }
}

void check_layer(const pg_layer_info& info) {
  const std::string owner = std::string("layer '") + info.name + "'";
  check_name(info.name, owner, true);
  check_attrs({info.attrs, info.attr_count, info.attr_size, kNoParts, info.defaults, owner});
  if (info.inferred > info.attr_count) pg::fail_argument(owner + ": 'inferred' names no attribute");
}

void check_optimizer(const pg_optimizer_info& info) {
  const std::string owner = std::string("optimizer '") + info.name + "'";
  check_name(info.name, owner, true);
  check_attrs({info.attrs, info.attr_count, info.attr_size, kNoParts, info.defaults, owner});
  if (info.slot_count > 64) pg::fail_argument(owner + ": more than 64 slots");
}

void check_source(const pg_source_info& info) {
  const std::string owner = std::string("source '") + info.name + "'";
  check_name(info.name, owner, true);
  check_attrs({info.attrs, info.attr_count, info.attr_size, kNoParts, info.defaults, owner, Packed::part});
  if (info.gather != nullptr && (info.flags & PG_SOURCE_IN_ORDER) != 0)
    pg::fail_argument(owner + ": one that is read in order does not gather");
}

void check_transform(const pg_transform_info& info) {
  const std::string owner = std::string("transform '") + info.name + "'";
  check_name(info.name, owner, true);
  check_attrs({info.attrs, info.attr_count, info.attr_size, kNoParts, info.defaults, owner, Packed::part});
}

void check_codec(const pg_codec_info& info) {
  const std::string owner = std::string("codec '") + info.name + "'";
  check_name(info.name, owner, true);
  check_attrs({info.decode_attrs, info.decode_attr_count, info.decode_attr_size, kNoParts, info.decode_defaults, owner,
               Packed::codec});
  check_attrs({info.encode_attrs, info.encode_attr_count, info.encode_attr_size, kNoParts, info.encode_defaults, owner,
               Packed::codec});
}

void check_device_type(const std::string& type) { check_name(type, "device type '" + type + "'", false); }

void NameCheck::add(const std::string& name, const LoadedPlugin* holder) {
  const std::string what = std::string(sort_) + " '" + name + "'";
  if (holder != nullptr)
    pg::fail(PG_E_FAILED_PRECONDITION, what + " is provided by plugin '" + holder->name + "' already");
  if (!names_.insert(name).second) pg::fail_argument(what + " is provided twice");
}

}  // namespace perigee
