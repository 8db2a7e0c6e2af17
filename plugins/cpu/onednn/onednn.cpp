// SPDX-License-Identifier: Apache-2.0
#include "onednn/onednn.hpp"

#include <omp.h>
#include <oneapi/dnnl/dnnl_debug.h>

#include <cstdlib>
#include <cstring>

namespace pg::cpu::onednn {

// Never destroyed: oneDNN's own globals may be gone by the time a destructor of ours would run.
const dnnl::engine& engine() {
  static const auto* engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

// Processor streams keep no state and run on the calling thread, so one serves all.
static dnnl_stream_t stream() {
  static const auto* stream = new dnnl::stream(engine());
  return stream->get();
}

void check(dnnl_status_t status, const char* what) {
  if (status == dnnl_success) return;
  int32_t code = status == dnnl_out_of_memory       ? PG_E_OUT_OF_MEMORY
                 : status == dnnl_unimplemented     ? PG_E_NOT_SUPPORTED
                 : status == dnnl_invalid_arguments ? PG_E_INVALID_ARGUMENT
                                                    : PG_E_INTERNAL;
  throw Error(code, format("oneDNN: %s failed with %s", what, dnnl_status2str(status)), status);
}

DataType data_type(uint32_t dtype) {
  switch (dtype) {
    case PG_F32: return DataType::f32;
    case PG_BF16: return DataType::bf16;
    case PG_F16: return DataType::f16;
    default: return DataType::undef;
  }
}

Desc strided(const pg_tensor& t) {
  Dims shape(t.shape, t.shape + t.rank), stride(t.stride, t.stride + t.rank);
  return Desc(shape, data_type(dtype_of(t)), stride);
}

Desc dense(const Dims& dims, DataType type) {
  Dims stride(dims.size());
  int64_t step = 1;
  for (size_t i = dims.size(); i-- > 0; step *= dims[i]) stride[i] = step;
  return Desc(dims, type, stride);
}

Desc channels_last(const Dims& dims, DataType type) {
  return Desc(dims, type, dims.size() == 5 ? Tag::ndhwc : Tag::nhwc);
}

Desc any(const Dims& dims, DataType type) { return Desc(dims, type, Tag::any); }

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

bool is_fast(const dnnl::primitive_desc_base& pd) {
  const char* name = pd.impl_info_str();
  return std::strncmp(name, "ref", 3) != 0 && std::strncmp(name, "simple", 6) != 0;
}

static bool has(dnnl::cpu_isa isa) {
  auto wanted = static_cast<unsigned>(isa);  // instruction sets are bits
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & wanted) == wanted;
}

bool computes(uint32_t dtype) {
  static const bool bfloat16 = has(dnnl::cpu_isa::avx512_core_bf16);
  return dtype != PG_BF16 || bfloat16;
}

bool has_avx512() {
  static const bool yes = [] {
    if (const char* isa = std::getenv("PERIGEE_CPU_ISA")) return std::strcmp(isa, "avx512") == 0;
    return has(dnnl::cpu_isa::avx512_core);
  }();
  return yes;
}

OneThread::OneThread(bool wanted) {
  int threads = wanted ? omp_get_max_threads() : 1;
  if (threads == 1) return;
  before_ = threads;
  omp_set_num_threads(1);
}
OneThread::~OneThread() {
  if (before_ > 0) omp_set_num_threads(before_);
}

Step::Memories::Memories(const std::vector<Argument>& described) {
  list.reserve(described.size());
  for (const Argument& argument : described) {
    list.push_back(dnnl::memory(argument.desc, engine(), DNNL_MEMORY_NONE));
    arguments.push_back({argument.id, list.back().get()});
  }
}

void Step::Memories::set(const std::vector<void*>& addresses) {
  for (size_t i = 0; i < addresses.size(); i++)
    check(dnnl_memory_set_data_handle(arguments[i].memory, addresses[i]), "dnnl_memory_set_data_handle");
}

Step::Step(const dnnl::primitive& primitive, const std::vector<Argument>& arguments)
    : primitive_(primitive), arguments_(arguments), memories_(std::make_unique<Memories>(arguments)) {}

void Step::run(const std::vector<void*>& addresses) {
  auto run = [&](Memories& memories) {
    memories.set(addresses);
    check(dnnl_primitive_execute(primitive_.get(), stream(), static_cast<int>(addresses.size()),
                                 memories.arguments.data()),
          "dnnl_primitive_execute");
  };
  if (std::unique_lock lock(*mutex_, std::try_to_lock); lock.owns_lock()) {
    run(*memories_);
  } else {
    Memories own(arguments_);
    run(own);
  }
}

Reorder::Reorder(const Desc& from, const Desc& to) {
  translate("reorder", [&] {
    dnnl::reorder::primitive_desc pd(engine(), from, engine(), to, user_scratchpad());
    scratch_ = pd.scratchpad_desc().get_size();
    step_ = Step(dnnl::reorder(pd),
                 {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}, {DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()}});
  });
}

void Reorder::run(const void* from, void* to, void* scratch) { step_.run({const_cast<void*>(from), to, scratch}); }

}  // namespace pg::cpu::onednn
