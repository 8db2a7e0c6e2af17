// SPDX-License-Identifier: Apache-2.0
// A compiled function. Each call is a stream of items: operators, backward passes, changes of gradients. While they are
// those of a plan, tensors without contents are handed out and nothing runs; where the stretch ends the plan's launches
// run. Where an item differs, those so far are called eagerly, which is recorded as another plan.
#pragma once

#include <map>
#include <tuple>

#include "call/autocast.hpp"
#include "compile/plan.hpp"
#include "tensor/watch.hpp"

namespace perigee {

// A call that is known from its arguments on.
struct Frozen {
  std::unique_ptr<Plan> plan;
  std::vector<uint32_t> arguments, results;  // numbers; no_number: not in the plan, or made by no operator of it
  std::vector<TensorRef> outside;            // by number, of tensors that are no arguments
  uint64_t generation = 0;                   // of signatures
};

// A call of a plugin's layer. What it is given is as the plugin says, absent tensors among it.
struct LayerCall {
  uint32_t id;
  bool training;
  const uint8_t* attrs;
  uint32_t attr_size;
  Tensor* const* params;
  uint32_t param_count;
  Tensor* const* inputs;
  uint32_t input_count, output_count;
};

// Where the building of a layer began.
struct LayerStart {
  uint32_t stretch = 0;
  size_t item = 0, tensors = 0;
  uint64_t apart = 0;  // calls that were no items so far
};

class Compiled final : public ItemLog, public LaunchLog {
 public:
  // ---- a call: between begin and end the function listens (ambient().items) but where `listen` says otherwise ----
  void begin();
  void end();    // launches what is left; throws what that throws
  void abort();  // the script has raised an error: leaves what eager code would have left
  bool running() const { return mode_ != Mode::off; }
  void set_fuse(bool fuse) { fuse_ = fuse; }              // whether plans made from now on may join launches
  void set_capture(bool capture) { capture_ = capture; }  // whether plans are captured where the device can
  // ---- frozen.cpp: calls without the function ----
  // Calls from now on end with freeze. layouts: whether their regions may compute what differs by rounding
  // (PG_REGION_FROZEN).
  void set_freeze(bool layouts) { freezes_ = true, freezes_layouts_ = layouts; }
  // Ends a call, as `end` does, that has been given those arguments and answers with those results; `made`: by result,
  // whether a frozen call gives it. NULL: after the first call, which is not recorded. Throws where the same call may
  // not be made without the function. What it answers lives until it is released.
  Frozen* freeze(Tensor* const* arguments, uint32_t argument_count, Tensor* const* results, uint32_t result_count,
                 uint8_t* made);
  // False, and nothing has happened, where the arguments are described otherwise. Gives the results that are made.
  bool run(Frozen& frozen, Tensor* const* arguments, TensorRef* results);
  void release(const Frozen* frozen);
  ItemLog* listener() { return mode_ == Mode::recording || mode_ == Mode::matching ? this : nullptr; }

  // ---- items ----
  bool call(const Op& op, Tensor* const* inputs, uint32_t input_count, const uint32_t* groups, const void* attrs,
            uint32_t flags, TensorRef* outputs, uint32_t output_count) override;
  // Gives a new reference to each output, NULL to one that is absent. False: the layer is to be built, between the
  // other two, which note it for the next time. Counts and sizes are looked at by end_layer alone.
  bool layer(const LayerCall& call, Tensor** outputs);
  LayerStart begin_layer() const;
  void end_layer(const LayerStart& start, const LayerCall& call, Tensor* const* outputs);
  // False: make it as if nobody listened, with what is answered.
  bool backward(const BackwardCall& call, PassRef& paused);
  // The outputs, of which aliases take the places, hang on a node whose gradient the front end computes from what it is
  // shown alone. False: do it as if nobody listened.
  bool custom(Tensor* const* inputs, uint32_t input_count, TensorRef* outputs, uint32_t output_count, uint64_t& number);
  bool in_pass() const { return open_ != nullptr; }  // which has stopped, and is part of what is recorded
  PassRef go_on(PassRef pass, Tensor* const* gradients, Tensor** results);
  void abandon_pass();
  void clear_grads(Tensor* const* tensors, uint32_t count);
  void set_grad(Tensor& x, Tensor* gradient);  // that it may be set has been checked
  TensorRef detach(Tensor& x);
  // Something comes that is no item and may look at tensors: the stretch ends.
  void settle();
  void settle(const Tensor& x);  // where it belongs to the call
  std::string text() const;      // JSON: what :stats() shows

 private:
  enum class Mode : uint8_t { off, eager, recording, matching };
  using Plans = std::list<std::unique_ptr<Plan>>;
  struct OpenPass {
    Item item;
    std::vector<TensorRef> leaves, before;  // what may get gradients, and the gradients that they have had
  };
  struct Undo {
    uint32_t item;
    TensorRef leaf, before;
  };

  // ---- match.cpp ----
  // What is asked for, before it is known to be an item of a plan.
  struct Asked {
    ItemKind kind;
    const Op* op;
    uint32_t flags;
    Tensor* const* inputs;
    uint32_t input_count;
    const uint32_t* groups;
    const void* attrs;
    uint32_t output_count;
  };
  static uint64_t next_serial();
  void begin_stretch();
  void begin_eager();
  bool end_stretch();              // whether it had items, all of which have been carried out
  bool match(const Asked& asked);  // false: it is to be recorded, or called
  bool match_with(const Plan& plan, const Asked& asked, std::string* why);
  bool match_input(const Plan& plan, uint32_t number, Tensor* x, std::string* why);
  bool match_numbers(const Plan& plan, const Asked& asked, const Item& item, std::string* why);
  static bool same_scope(const Plan& plan, const Surroundings& around);  // of autocast, where there is one
  bool match_layer(const LayerPlan& layer, const LayerCall& call);
  void accept(const Asked& asked);
  void move_to_plan(Plan& plan);
  void forget_from(uint32_t number);
  Tensor& hand_out(uint32_t number, const Item& item);
  void hand_out_made(const Item& item);
  void put_gradient(Tensor& leaf, TensorRef gradient);
  uint32_t scope_index();
  Surroundings surroundings();

  // ---- launch.cpp ----
  bool complete();                        // whether a plan ends where the stretch is now
  bool finish();                          // false: it was called eagerly instead
  bool find_outliving(const Plan& plan);  // false: somebody holds a tensor that only eager code could have made
  bool replay_outliving();                // false
  void forget_customs();
  void allocate_for(Plan& plan, const std::vector<uint8_t>& outliving);
  void run_launches(Plan& plan);
  void undo_gradients(uint32_t from);
  void replay(const std::string& why);
  void call_again(const Plan& plan, const Item& item, const std::vector<TensorRef>& tensors,
                  const std::vector<AutocastRef>& scopes, uint64_t custom);

  std::vector<uint32_t> numbers_of(Tensor* const* tensors, uint32_t count) const;
  bool hand_out_all(const Frozen& frozen, Tensor* const* arguments);

  // ---- passes.cpp ----
  bool is_again(const std::vector<Tensor*>& inputs, uint32_t flags) const;
  bool finish_pass();  // false: the pass is to be recorded
  void record_backward(const BackwardCall& call, PassRef& paused);
  template <class Run>
  PassRef listen_to_pass(Run&& run);
  void end_pass(const PassRef& paused);
  void give_up_pass(const std::string& why);
  // all: inputs, and behind them outputs. number: 0, or what it is to be.
  void record_custom_node(const std::vector<Tensor*>& all, uint32_t input_count, TensorRef* outputs, uint64_t& number);

  // ---- histories.cpp ----
  void find_histories();
  void find_exact_histories(const std::vector<NodeRef>& nodes);
  void give_history(const Item& item, Tensor* const* inputs, uint32_t input_count);

  // ---- record.cpp ----
  void start_recording();
  uint32_t number_of(Tensor& x);
  void refuse_derived(const std::vector<uint32_t>& numbers);
  uint32_t add_made(Tensor& x, bool view);
  MemoryPlace place_of(const Tensor& x);
  uint32_t operand_of(Tensor* x);
  bool record_call(const Op& op, Tensor* const* inputs, uint32_t input_count, const uint32_t* groups, const void* attrs,
                   uint32_t flags, TensorRef* outputs, uint32_t output_count);
  Item& add_item(const Asked& asked);
  void add_workspaces();
  void end_recording();
  void allocated(Storage& storage) override;
  void launched(Signature& s, Tensor* const* inputs, uint32_t input_count, Tensor* const* outputs,
                uint32_t output_count, const void* attrs) override;
  void copied(Tensor& target, Tensor& source) override;
  void kept(Tensor& x, Tensor& cast) override;
  void raised(Tensor& tensor) override;
  void refuse(const std::string& why) override;
  static const char* why_watched();  // NULL: operators are not looked at one by one
  static const char* not_an_item(const Op& op, Tensor* const* inputs, uint32_t input_count);

  bool is_mine(uint64_t mark) const { return mark >> 24 == serial_; }
  void note(const std::string& why) { why_[why_.size() < 32 || why_.count(why) != 0 ? why : "others"]++; }

  Mode mode_ = Mode::off;
  bool fuse_ = false, capture_ = false;
  uint64_t serial_ = 0;  // of the stretch; marks begin with it
  uint64_t calls_ = 0, hits_ = 0, recorded_ = 0, replayed_ = 0, eager_ = 0;
  uint64_t generation_ = 0;  // of signatures
  std::map<std::string, uint64_t> why_;
  Plans plans_;
  Plans* list_ = nullptr;             // of the stretch
  Plan* plan_ = nullptr;              // that is matched
  size_t at_ = 0;                     // items matched so far
  uint32_t stretches_ = 0;            // begun in this call
  uint64_t apart_ = 0;                // operators called so far that were no items
  std::vector<TensorRef> tensors_;    // while matching, by number
  std::vector<StorageRef> storages_;  // by slot
  std::vector<AutocastRef> scopes_;   // in the order met
  std::vector<uint8_t> outliving_;    // by slot, while it is finished
  std::vector<Undo> undo_;
  std::vector<uint64_t> customs_;  // numbers of nodes that were matched, in their order
  std::unique_ptr<OpenPass> open_;
  std::unique_ptr<Plan> recording_;
  uint64_t live_before_ = 0;       // bytes, when it began
  std::vector<int64_t> offsets_;   // while recording, of tensors from outside
  std::vector<TensorRef> leaves_;  // from outside, that require gradients, in the order of their numbers
  std::map<std::tuple<uint32_t, bool, int64_t, const Meta*>, uint32_t> known_operands_;
  std::string barred_;
  std::vector<uint32_t> casts_;  // of the item that is recorded
  bool freezes_ = false, freezes_layouts_ = false;
  std::vector<std::pair<uint32_t, TensorRef>> met_;  // while a call is recorded to be frozen: from outside, by number
  std::vector<std::unique_ptr<Frozen>> frozen_;
  std::string last_why_;  // of a call: what ended a stretch of it
};

// The compiled function that listens now, or NULL.
inline Compiled* compiled_now() { return static_cast<Compiled*>(ambient().items); }

}  // namespace perigee
