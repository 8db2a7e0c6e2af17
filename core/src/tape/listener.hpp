// SPDX-License-Identifier: Apache-2.0
// Who hears of leaves' gradients while a backward pass still computes others.
#pragma once

#include "tape/tape.hpp"

namespace perigee {

// Of passes that collect gradients; one that is asked for some (BackwardCall::inputs) tells nobody.
class GradientListener {
 public:
  // The whole gradient that a pass has for leaf `number`, behind its hooks; it will be added to `own`, unless that is
  // NULL. Not to be changed, nor kept. What is thrown ends the pass.
  virtual void arrived(uint32_t number, Tensor& gradient, Tensor* own) = 0;
  // The pass is over, and this is what the leaf has now.
  virtual void collected(uint32_t number, Tensor& gradient) = 0;

 protected:
  ~GradientListener() = default;
};

// The leaf has its turn as one with a hook does. It and the listener stay where they are until it is told to end.
void listen_to(Node& leaf, GradientListener& who, uint32_t number);
void end_listening(Node& leaf, GradientListener& who);
bool has_listeners();  // whether any leaf has one

}  // namespace perigee
