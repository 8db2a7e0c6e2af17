// SPDX-License-Identifier: Apache-2.0
// Creation, random numbers, and reductions across tensors.
#include "perigee/kernels/reference/create.hpp"

#include "../launch.hpp"
#include "perigee/kernels/reference/random.hpp"

namespace sim {
namespace {

namespace reference = pg::reference;

template <int Value>
void constant(const Work& work) {
  reference::fill(pg::make_number(int64_t{Value}), work.out(0));
}
void fill(const Work& work) { reference::fill(work.attr<pg_number>("value"), work.out(0)); }
void arange(const Work& work) { reference::arange(work.attr<double>("start"), work.attr<double>("step"), work.out(0)); }
void spaced(const Work& work) { reference::spaced(work.attr<double>("first"), work.attr<double>("last"), work.out(0)); }

reference::Draw draw(const Work& work) {
  return {static_cast<uint64_t>(work.attr<int64_t>("seed")), static_cast<uint64_t>(work.attr<int64_t>("offset"))};
}

void uniform(const Work& work) {
  reference::uniform(draw(work), work.attr<double>("low"), work.attr<double>("high"), work.out(0));
}
void normal(const Work& work) {
  reference::normal(draw(work), work.attr<double>("mean"), work.attr<double>("std"), work.out(0));
}
void exponential(const Work& work) {
  double rate = work.attr<double>("rate");
  if (!(rate > 0)) pg::fail_argument(pg::format("rate is %g; expected a number above 0", rate));
  reference::exponential(draw(work), rate, work.out(0));
}
void multinomial(const Work& work) {
  reference::multinomial(draw(work), work.in(0), work.attr<int64_t>("num_samples"), work.attr<bool>("replacement"),
                         work.out(0));
}
void randint(const Work& work) {
  auto low = work.attr<int64_t>("low"), high = work.attr<int64_t>("high");
  if (low >= high) {
    pg::fail_argument(
        pg::format("there are no integers in [%lld, %lld)", static_cast<long long>(low), static_cast<long long>(high)));
  }
  reference::randint(draw(work), low, high, work.out(0));
}
void randperm(const Work& work) { reference::randperm(draw(work), work.out(0)); }
void bernoulli(const Work& work) { reference::bernoulli(draw(work), work.in(0), work.out(0)); }
void as_probability(const Work& work) { write(work.out(0), reference::probabilities(work.in(0))); }
void dropout(const Work& work) {
  double p = work.attr<double>("p");
  if (!(p >= 0 && p <= 1)) pg::fail_argument(pg::format("p is %g; expected 0 to 1", p));
  reference::dropout(draw(work), work.in(0), p, work.attr<bool>("training"), work.out(0), work.output(1));
}
void dropout_mask(const Work& work) {
  double p = work.attr<double>("p");
  if (!(p >= 0 && p <= 1)) pg::fail_argument(pg::format("p is %g; expected 0 to 1", p));
  auto key = reference::read<int64_t>(work.in(0));
  reference::dropout_mask({static_cast<uint64_t>(key[0]), static_cast<uint64_t>(key[1])}, p, work.out(0));
}

void all_reduce(const Work& work) { reference::all_reduce(work.group(0), work.choice("op"), work.outputs()); }

PG_SIM_KERNEL("zeros_like", constant<0>, kStored);
PG_SIM_KERNEL("ones_like", constant<1>, kStored);
PG_SIM_KERNEL("fill", fill, kStored);
PG_SIM_KERNEL("filled", fill, kStored);
PG_SIM_KERNEL("arange", arange, kAny);
PG_SIM_KERNEL("spaced", spaced, kAny);
PG_SIM_KERNEL("uniform", uniform, kAny);
PG_SIM_KERNEL("normal", normal, kAny);
PG_SIM_KERNEL("exponential", exponential, kFloats);
PG_SIM_KERNEL("multinomial", multinomial, kAny);
PG_SIM_KERNEL("randint", randint, kAny);
PG_SIM_KERNEL("randperm", randperm, kAny);
PG_SIM_KERNEL("bernoulli", bernoulli, kFloats);
PG_SIM_KERNEL("as_probability", as_probability, kFloats);
PG_SIM_SPARING_KERNEL("dropout", 1u << 1, dropout, kFloats);
PG_SIM_KERNEL("dropout_mask", dropout_mask, kAny);
PG_SIM_KERNEL("all_reduce", all_reduce, kAny);

}  // namespace
}  // namespace sim
