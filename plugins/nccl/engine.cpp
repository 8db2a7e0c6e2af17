// SPDX-License-Identifier: Apache-2.0
#include "engine.hpp"

#include <utility>

namespace nccl {
namespace {

constexpr auto kTurn = std::chrono::milliseconds(5);
Engine* engine = nullptr;  // of the plugin that is open

}  // namespace

Engine::Engine() { engine = this; }

Engine::~Engine() {
  stop();
  engine = nullptr;
}

void Engine::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  woken_.notify_all();
  if (thread_.joinable()) thread_.join();
}

uint64_t Engine::create(const pg_device_group& info) {
  auto group = std::make_shared<Group>(info, [this](uint32_t device, const pg::Error& error) {
    std::lock_guard lock(mutex_);
    failures_.emplace(device, error);
  });
  watch_exit([] {
    if (engine != nullptr) engine->stop();
  });
  std::lock_guard lock(mutex_);
  if (!thread_.joinable() && !stopping_) thread_ = std::thread([this] { watch(); });
  groups_[++last_] = std::move(group);
  return last_;
}

std::shared_ptr<Group> Engine::find(uint64_t group) {
  std::lock_guard lock(mutex_);
  const auto found = groups_.find(group);
  if (found == groups_.end()) pg::fail_argument(pg::format("no group %llu", static_cast<unsigned long long>(group)));
  return found->second;
}

std::vector<std::shared_ptr<Group>> Engine::groups() {
  std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Group>> list;
  for (const auto& [number, group] : groups_) list.push_back(group);
  return list;
}

void Engine::destroy(uint64_t group) {
  std::shared_ptr<Group> gone = find(group);
  std::lock_guard lock(mutex_);
  groups_.erase(group);
}

void Engine::submit(uint64_t group, uint32_t rows, const pg_collective* const* calls) {
  find(group)->submit(rows, calls);
  {
    std::lock_guard lock(mutex_);
    pending_ = true;
  }
  woken_.notify_all();
}

void Engine::abort(uint64_t group, const char* reason) { find(group)->abort(reason); }

void Engine::take_failure(uint32_t device) {
  for (const std::shared_ptr<Group>& group : groups())
    if (group->has(device)) group->watch();
  std::lock_guard lock(mutex_);
  const auto found = failures_.find(device);
  if (found == failures_.end()) return;
  const pg::Error error = found->second;
  failures_.erase(found);
  throw error;
}

bool Engine::busy() {
  std::lock_guard lock(mutex_);
  return !groups_.empty();
}

void Engine::watch() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      woken_.wait(lock, [&] { return stopping_ || pending_; });
      if (stopping_) return;
      pending_ = false;
      woken_.wait_for(lock, kTurn, [&] { return stopping_; });
      if (stopping_) return;
    }
    bool any = false;
    for (const std::shared_ptr<Group>& group : groups()) any = group->watch() || any;
    std::lock_guard lock(mutex_);
    pending_ = pending_ || any;
  }
}

}  // namespace nccl
