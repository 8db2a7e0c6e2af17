// SPDX-License-Identifier: Apache-2.0
// slices: a source. Slices of tensors along their first axis, as fields of the same names; nothing is copied before a
// batch is made.
#include "perigee/data.hpp"

namespace {

struct Slices {
  const pg_tensors* tensors = nullptr;

  void check() const {
    if (tensors->count == 0) pg::fail_argument("tensors has none; at least one is needed");
    const pg_field& first = *tensors->list[0];
    for (uint32_t i = 0; i < tensors->count; i++) {
      const pg_field& t = *tensors->list[i];
      if (t.rank == 0) pg::fail_argument(pg::format("%s has no axes to slice", t.name));
      if (t.shape[0] != first.shape[0])
        pg::fail_argument(pg::format("%s has %lld samples, %s has %lld", first.name,
                                     static_cast<long long>(first.shape[0]), t.name,
                                     static_cast<long long>(t.shape[0])));
    }
  }

  class Open {
   public:
    explicit Open(const Slices& options) : tensors_(*options.tensors) {}
    int64_t count() const { return tensors_.list[0]->shape[0]; }
    void read(int64_t i, pg::FieldSink& out) const {
      for (uint32_t k = 0; k < tensors_.count; k++) out.slice(tensors_.list[k]->name, *tensors_.list[k], i);
    }
    void gather(const int64_t* positions, uint64_t count, pg::FieldSink& out) const {
      for (uint32_t k = 0; k < tensors_.count; k++)
        out.slices(tensors_.list[k]->name, *tensors_.list[k], positions, count);
    }

   private:
    const pg_tensors& tensors_;
  };
};

PG_SOURCE(Slices, "slices", "Slices of tensors along their first axis, as fields of the same names")
    .attr(&Slices::tensors, "tensors", "of as many slices each", PG_ATTR_REQUIRED | PG_ATTR_AS_IS);

}  // namespace
