// SPDX-License-Identifier: Apache-2.0
#include "perigee/kernel.hpp"

#include "perigee/sdk/attributes.hpp"

namespace pg {

const pg_attr_info& find_attr(const pg_op_info& op, const char* name) {
  for (uint32_t i = 0; i < op.attr_count; i++) {
    if (std::strcmp(op.attrs[i]->name, name) == 0) return *op.attrs[i];
  }
  fail_attr(op, name);
}

void fail_attr_kind(const char* as) {
  fail(PG_E_INTERNAL, std::string("an attribute was read as ") + as + ", which it is not");
}

// ---- KernelCall ----

void KernelCall::fail_absent(const char* what, uint32_t i) const {
  fail(PG_E_INTERNAL, format("%s: %s %u is absent", op(), what, i));
}

void KernelCall::refuse(const char* pattern, ...) const {
  va_list list;
  va_start(list, pattern);
  std::string text = format_list(pattern, list);
  va_end(list);
  fail_support(text + "; got " + arguments());
}

template <class Body>
void KernelCall::each(Body&& body) const {
  for (uint32_t i = 0; i < input_count(); i++)
    if (has(i)) body(in(i));
  for (uint32_t i = 0; i < output_count(); i++)
    if (has_output(i)) body(out(i));
}

void KernelCall::need_dtypes(std::initializer_list<uint32_t> dtypes) const {
  auto taken = [&](const pg_tensor& t) {
    for (uint32_t dtype : dtypes)
      if (dtype_of(t) == dtype) return true;
    return false;
  };
  std::string names;
  for (uint32_t dtype : dtypes) names += (names.empty() ? "" : ", ") + std::string(dtype_name(dtype));
  for (uint32_t i = 0; i < input_count(); i++)
    if (has(i) && !taken(in(i))) refuse("takes %s", names.c_str());
  for (uint32_t i = 0; i < output_count(); i++)
    if (has_output(i) && !taken(out(i)))
      fail_support("makes " + names + "; its result is to be " + dtype_name(dtype_of(out(i))));
}

void KernelCall::need_dense() const {
  each([&](const pg_tensor& t) {
    need(t.class_id == PG_CLASS_DENSE && t.layout == 0 && t.bit_offset == 0, "takes tensors in plain layouts");
    need(is_dense(t), "takes dense tensors");
  });
}

std::string KernelCall::arguments() const {
  std::string text;
  for (uint32_t i = 0; i < input_count(); i++) {
    if (i > 0) text += ", ";
    text += has(i) ? dtype_name(dtype_of(in(i))) + shape_text(in(i)) : std::string("none");
  }
  return text;
}

std::vector<int64_t> KernelCall::list(const char* name) const {
  auto ints = attr<pg_ints>(name);
  return {ints.value, ints.value + ints.count};
}

int64_t KernelCall::axis(const char* name, uint32_t rank) const {
  int64_t axis = attr<int64_t>(name), dims = rank == 0 ? 1 : rank;
  if (axis < -dims || axis >= dims) {
    fail_argument(format("%s: axis %lld is out of range for rank %u", op(), static_cast<long long>(axis), rank));
  }
  return axis < 0 ? axis + dims : axis;
}

uint32_t KernelCall::axis_mask(const char* name, uint32_t rank) const {
  auto axes = attr<pg_ints>(name);
  if (axes.count == 0) return (1u << rank) - 1;
  uint32_t mask = 0;
  for (int64_t i = 0; i < axes.count; i++) {
    int64_t axis = axes.value[i] < 0 ? axes.value[i] + rank : axes.value[i];
    if (rank > 0 && (axis < 0 || axis >= rank)) fail_argument(format("%s: axis out of range", op()));
    if (rank > 0) mask |= 1u << axis;
  }
  return mask;
}

pg_scalar KernelCall::scalar() const {
  for (uint32_t i = 0; i < raw->op->attr_count; i++) {
    const pg_attr_info& info = *raw->op->attrs[i];
    if (info.kind == PG_ATTR_SCALAR) return read_at<pg_scalar>(raw->attrs, info.offset);
  }
  return {PG_SCALAR_NONE, -1};
}

Runtime<pg_number> KernelCall::scalar_value() const {
  for (uint32_t i = 0; i < raw->op->attr_count; i++) {
    if (raw->op->attrs[i]->kind == PG_ATTR_SCALAR) return {PG_ATTR_NUMBER, raw->op->attrs[i]->value};
  }
  return {};
}

std::string describe(const KernelCall& call) { return call.arguments(); }

// ---- Kernel ----

Kernel::~Kernel() = default;
void Kernel::pack(uint32_t, const pg_launch&, pg_address) { fail(PG_E_UNIMPLEMENTED, "this kernel packs nothing"); }

// ---- registration ----

std::vector<KernelEntry>& kernel_entries() {
  static auto* entries = new std::vector<KernelEntry>();  // never destroyed: tables point into it
  return *entries;
}

int add_kernel(const KernelEntry& entry) {
  kernel_entries().push_back(entry);
  return 0;
}

namespace {

int32_t kernel_supports(void*, uint32_t index, const pg_call* call, pg_error* why) noexcept {
  const KernelEntry& entry = kernel_entries()[index];
  return guard(why, entry.info.op, [&] { entry.supports(KernelCall(call)); });
}
int32_t kernel_prepare(void*, uint32_t index, const pg_call* call, pg_prepared* out, pg_error* error) noexcept {
  const KernelEntry& entry = kernel_entries()[index];
  return guard(error, entry.info.op, [&] {
    Plan plan;
    out->kernel = entry.prepare(KernelCall(call), plan);
    out->workspace = plan.workspace;
    std::memcpy(out->pack_bytes, plan.pack_bytes, sizeof plan.pack_bytes);
  });
}
int32_t kernel_launch(void*, uint32_t index, void* kernel, const pg_launch* launch, pg_error* error) noexcept {
  // The common case is one virtual call: the name is looked up only when something was thrown.
  int32_t code = guard(error, nullptr, [&] { static_cast<Kernel*>(kernel)->launch(*launch); });
  if (code != PG_OK && error != nullptr && error->where[0] == '\0') {
    std::snprintf(error->where, sizeof error->where, "%s", kernel_entries()[index].info.op);
  }
  return code;
}
void kernel_release(void*, uint32_t, void* kernel) noexcept { delete static_cast<Kernel*>(kernel); }
int32_t kernel_pack(void*, uint32_t index, void* kernel, uint32_t input, const pg_launch* launch, pg_address target,
                    pg_error* error) noexcept {
  return guard(error, kernel_entries()[index].info.op,
               [&] { static_cast<Kernel*>(kernel)->pack(input, *launch, target); });
}

}  // namespace

const pg_kernels* kernel_table(const char* device_type) {
  static auto* infos = new std::vector<const pg_kernel_info*>();
  static pg_kernels table{};
  infos->clear();
  for (const KernelEntry& entry : kernel_entries()) infos->push_back(&entry.info);
  table = {PG_SIZE(pg_kernels, pack),
           static_cast<uint32_t>(infos->size()),
           device_type,
           infos->data(),
           kernel_supports,
           kernel_prepare,
           kernel_launch,
           kernel_release,
           kernel_pack};
  return &table;
}

}  // namespace pg
