// SPDX-License-Identifier: Apache-2.0
// Places of operators by the machine code that asks for them. A compiler that specialises what it compiles by its
// callers, as LuaJIT's traces are, calls from one address for one line of a script; so the address is the line's name.
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>

#include "api.hpp"
#include "profile_place.hpp"

namespace perigee::api {

namespace {

constexpr size_t kMostSites = 1 << 16;  // layers made anew in every step have numbers of their own

struct Site {
  uintptr_t address = 0;  // 0: none
  int32_t layer = 0;
  bool operator==(const Site&) const = default;
};
struct HashSite {
  size_t operator()(const Site& s) const { return (s.address ^ (s.address >> 7)) + static_cast<size_t>(s.layer) * 61; }
};

class Sites {
 public:
  explicit Sites(const void* interpreter) : interpreter_(to_number(interpreter)) {}

  void set_offer(const char* text) { offer_ = text; }
  void forget_wanted() { wanted_ = {}; }

  void add_code(uintptr_t begin, uint64_t size, bool fixed) {
    // What was here is gone, and code never straddles what is.
    const auto is_inside = [=](uintptr_t address) { return address - begin <= size; };
    std::erase_if(code_, [&](const auto& c) { return is_inside(c.first); });
    std::erase_if(places_, [&](const auto& p) { return is_inside(p.first.address); });
    recent_.fill({});
    if (fixed) code_.insert_or_assign(begin, begin + size);
  }

  const char* find(const void* address, int32_t layer) {
    const Site site{to_number(address), layer};
    const Place& near = recent_[HashSite()(site) % recent_.size()];
    return near.site == site ? near.text : look_up(site);
  }

  // What the interpreter is to be told instead of an answer, once.
  const char* take_offer(const void* address) {
    return to_number(address) == interpreter_ ? std::exchange(offer_, nullptr) : nullptr;
  }

  void remember(const char* text) {
    if (wanted_.address == 0) return;
    if (places_.size() >= kMostSites) places_.clear();
    places_.insert_or_assign(wanted_, text);
    wanted_ = {};
  }

 private:
  struct Place {
    Site site;
    const char* text = nullptr;
  };

  static uintptr_t to_number(const void* address) { return reinterpret_cast<uintptr_t>(address); }

  const char* look_up(const Site& site) {
    wanted_ = {};
    if (const auto place = places_.find(site); place != places_.end()) {
      recent_[HashSite()(site) % recent_.size()] = {site, place->second};
      return place->second;
    }
    const auto behind = code_.upper_bound(site.address);  // a return address lies behind its call
    if (behind != code_.begin() && site.address <= std::prev(behind)->second) wanted_ = site;
    return nullptr;
  }

  uintptr_t interpreter_;
  const char* offer_ = nullptr;
  Site wanted_;
  std::array<Place, 1024> recent_;
  std::unordered_map<Site, const char*, HashSite> places_;
  std::map<uintptr_t, uintptr_t> code_;  // that calls from one place alone: begin, end
};

thread_local std::unique_ptr<Sites> sites;

}  // namespace

void remember_site(const char* known) {
  if (sites != nullptr) sites->remember(known);
}

}  // namespace perigee::api

using namespace perigee::api;

int32_t pgc_profile_sites(int32_t on) {
  const void* interpreter = __builtin_return_address(0);
  return run("profile", [&] { sites = on != 0 ? std::make_unique<Sites>(interpreter) : nullptr; });
}

int32_t pgc_profile_code(const void* begin, uint64_t size, int32_t fixed) {
  return run("profile", [&] {
    if (sites != nullptr) sites->add_code(reinterpret_cast<uintptr_t>(begin), size, fixed != 0);
  });
}

void pgc_profile_offer(const char* known) {
  if (sites != nullptr) sites->set_offer(known);
}

int32_t pgc_profile_site(int32_t layer) {
  if (sites == nullptr) return 0;
  const void* address = __builtin_return_address(0);
  const char* known = sites->find(address, layer);
  if (known == nullptr) known = sites->take_offer(address);
  if (known == nullptr) return 0;
  place_last(known);
  return 1;
}

void pgc_profile_unsure(void) {
  if (sites != nullptr) sites->forget_wanted();
}
