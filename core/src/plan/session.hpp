// SPDX-License-Identifier: Apache-2.0
// Runs a graph: the nodes that the fetched values need, once each, in the order they were recorded.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "plan/run.hpp"

namespace perigee {

// Several threads may run one session at once. Runs that update variables go one after the other; those that only read
// them wait for nobody, and see what variables held when they began. While something is recorded into the graph, no
// run may be under way.
class Session {
 public:
  // Decides where everything runs: throws, naming all of it, where the script wishes what is impossible, or moves that
  // and says so in the log (`soft`). `fuses`: whether nodes may be launched as one kernel, where a compiler can.
  Session(GraphRef graph, bool soft, bool fuses);
  // fetches and feeds are tensors of the graph. A variable that is fetched is what it holds after the run, and does not
  // ask for its updates; its updated value does. Variables take their last values when the run has succeeded; a run
  // that fails leaves them as they were.
  void run(Tensor* const* fetches, uint32_t fetch_count, Tensor* const* feeds, Tensor* const* values,
           uint32_t feed_count, TensorRef* results);
  // A run in parts: what is fetched and fed is told at first, what has been computed is kept between the parts, and
  // every node is computed once. Variables are what they were at the beginning, but for what the parts write; effects
  // happen with what needs them. For one thread at a time; a part that fails has not happened.
  class Partial {
   public:
    void run(Tensor* const* fetches, uint32_t fetch_count, Tensor* const* feeds, Tensor* const* values,
             uint32_t feed_count, TensorRef* results);

   private:
    friend class Session;
    explicit Partial(Session& session) : session_(session) {}
    Session& session_;  // must outlive it
    std::vector<uint32_t> fetches_, feeds_;
    std::map<uint32_t, TensorRef> known_;  // values of the graph
  };
  std::unique_ptr<Partial> begin(Tensor* const* fetches, uint32_t fetch_count, Tensor* const* feeds,
                                 uint32_t feed_count);
  // What a variable holds from now on: a copy of a value of its shape and dtype.
  void assign(Tensor& variable, Tensor& value);
  // What a variable holds now, or a constant: the very tensor. Throws for other names.
  TensorRef contents(const std::string& name);
  // Where everything runs now, what was moved included (placement_text).
  std::string placement();
  // What the run that was asked for last does (Runner::text).
  std::string plan();

 private:
  // A pair of fetches and feeds that has been run.
  struct Prepared {
    std::vector<uint32_t> fetches, feeds;
    uint64_t revision;  // of the graph then
    std::shared_ptr<Runner> runner;
  };
  std::vector<uint32_t> fetched(Tensor* const* fetches, uint32_t count) const;
  std::vector<uint32_t> fed(Tensor* const* feeds, uint32_t count) const;
  std::shared_ptr<Runner> find_runner(std::vector<uint32_t> fetches, std::vector<uint32_t> feeds);
  void run(Runner& runner, Tensor* const* feeds, TensorRef* results);
  void take_in();  // what was recorded since
  std::shared_ptr<const Placement> placed();

  GraphRef graph_;
  const bool soft_, fuses_;
  std::mutex updating_;  // held by a run that writes variables
  std::mutex mutex_;     // of what follows, never while something is computed
  std::shared_ptr<Placement> placement_;
  uint64_t placed_ = 0;  // the graph's revision then
  std::unordered_map<uint32_t, TensorRef> variables_;
  std::list<Prepared> prepared_;  // the last one used stands first
};

}  // namespace perigee
