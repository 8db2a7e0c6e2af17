// SPDX-License-Identifier: Apache-2.0
// What a step of a bench model cannot be much faster than: the sum of the best times of its products, convolutions,
// batch norms and poolings as oneDNN's primitives, in layouts that they choose and without the reorders to them, plus
// the bytes that all other operators move over the memory's bandwidth. `model_floor ITEM [DTYPE]` prints nanoseconds:
// wall and processor time of the floor, then the processor time's two parts. With DTYPE bfloat16 what autocast makes so
// and copies of the weights take two bytes, and of each primitive the faster of bfloat16's and float32's counts.
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <string>

#include "floor_primitives.hpp"

namespace {

using bench::Seconds;

struct Model {
  bench::Primitives best;
  bool low;  // bfloat16 under autocast
  bool training;
  std::vector<bench::Body> chain;
  double bytes = 0, parameters = 0;

  Model(bool low_precision, bool trains) : best(low_precision), low(low_precision), training(trains) {}

  void pass(double elements, double arrays) { bytes += elements * arrays * (low ? 2 : 4); }
  void pass_wide(double elements, double arrays) { bytes += elements * arrays * 4; }

  // y = x w^T + b, and where it trains dw, db and (if x needs one) dx.
  void linear(int64_t rows, int64_t in, int64_t out, bool input_gradient = true) {
    parameters += static_cast<double>(in * out + out);
    chain.push_back(best.product(1, rows, out, in));
    if (!training) return;
    chain.push_back(best.product(1, out, in, rows));
    if (input_gradient) chain.push_back(best.product(1, rows, in, out));
    pass(static_cast<double>(rows * out), 1);  // db
  }
  void convolution(const bench::Convolution& c, bool input_gradient = true) {
    parameters += static_cast<double>(c.o * c.c * c.kernel * c.kernel);
    chain.push_back(best.convolution(c, bench::Pass::kForward));
    if (!training) return;
    chain.push_back(best.convolution(c, bench::Pass::kWeights));
    if (input_gradient) chain.push_back(best.convolution(c, bench::Pass::kData));
  }
  void batch_norm(int64_t n, int64_t c, int64_t side) {
    parameters += static_cast<double>(2 * c);
    chain.push_back(best.batch_norm(n, c, side, training, false));
    if (training) chain.push_back(best.batch_norm(n, c, side, true, true));
  }
  void max_pool(int64_t n, int64_t c, int64_t side, int64_t kernel, int64_t stride, int64_t padding) {
    chain.push_back(best.max_pool({n, c, c, side, kernel, stride, padding}, training, false));
    if (training) chain.push_back(best.max_pool({n, c, c, side, kernel, stride, padding}, true, true));
  }
  void relu(double elements) {
    pass(elements, 2);
    if (training) pass(elements, 3);  // reads dy and y, writes dx
  }
  void add(double elements) {
    pass(elements, 3);
    if (training) pass(elements, 3);  // two gradients meet
  }
  // softmax and log of it, read once more for the loss; the gradient.
  void cross_entropy(double elements) {
    if (training) pass(elements, 3);
  }
  // `arrays` of float32 that the update touches: Adam reads p, g, m, v and writes p, m, v.
  void finish(double arrays) {
    if (training) bytes += parameters * arrays * 4;
    if (low && training) bytes += parameters * (6 + 6);  // weights to bfloat16, gradients back
  }
};

void mlp(Model& m, int64_t batch) {
  int64_t widths[] = {784, 2048, 1024, 512};
  for (int i = 0; i < 3; i++) {
    int64_t out = widths[i + 1];
    auto elements = static_cast<double>(batch * out);
    m.linear(batch, widths[i], out, i > 0);
    m.batch_norm(batch, out, 1);
    m.relu(elements);
    if (m.training) m.pass(elements, 2 + 2), m.bytes += 2 * elements;  // dropout and its mask of bytes
  }
  m.linear(batch, 512, 10);
  m.cross_entropy(static_cast<double>(batch * 10));
  m.finish(7);
}

void convnet(Model& m, int64_t batch) {
  auto side = [&](int64_t channels) { return static_cast<double>(batch * channels * 28 * 28); };
  m.convolution({batch, 1, 32, 28, 3, 1, 1}, false), m.relu(side(32));
  m.convolution({batch, 32, 64, 28, 3, 1, 1}), m.relu(side(64));
  m.max_pool(batch, 64, 28, 2, 2, 0);
  m.linear(batch, 12544, 128), m.relu(static_cast<double>(batch * 128));
  m.linear(batch, 128, 10), m.cross_entropy(static_cast<double>(batch * 10));
  m.finish(7);
}

void resnet(Model& m, int64_t batch) {
  auto elements = [&](int64_t c, int64_t side) { return static_cast<double>(batch * c * side * side); };
  m.convolution({batch, 3, 64, 224, 7, 2, 3}, false), m.batch_norm(batch, 64, 112), m.relu(elements(64, 112));
  m.max_pool(batch, 64, 112, 3, 2, 1);
  int64_t in = 64, side = 56;
  for (int64_t out : {64, 128, 256, 512}) {
    for (int block = 0; block < 2; block++) {
      int64_t stride = out > 64 && block == 0 ? 2 : 1;
      m.convolution({batch, in, out, side, 3, stride, 1});
      if (in != out) m.convolution({batch, in, out, side, 1, stride, 0}), m.batch_norm(batch, out, side / stride);
      side /= stride;
      m.batch_norm(batch, out, side), m.relu(elements(out, side));
      m.convolution({batch, out, out, side, 3, 1, 1}), m.batch_norm(batch, out, side);
      m.add(elements(out, side)), m.relu(elements(out, side));
      in = out;
    }
  }
  m.pass(elements(512, 7), m.training ? 2 : 1);
  m.linear(batch, 512, 1000), m.cross_entropy(static_cast<double>(batch * 1000));
  m.finish(5);
}

void gpt(Model& m, int64_t batch) {
  int64_t length = 256, width = 384, heads = 6, rows = batch * length, pairs = batch * heads;
  auto tokens = static_cast<double>(rows * width), scores = static_cast<double>(pairs * length * length);
  // Autocast leaves the embeddings, the sums of the residuals and the norms in float32, as PyTorch's does: a norm's
  // result is cast for the product behind it, and the gradient cast back.
  auto norm = [&] {
    m.pass_wide(tokens, m.training ? 2 + 3 : 2), m.parameters += 768;
    if (m.low) m.bytes += tokens * (4 + 2) * (m.training ? 2 : 1);
  };
  auto residual = [&] {
    m.pass_wide(tokens, m.training ? 3 + 3 : 3);
    if (m.low) m.bytes -= 2 * tokens;  // what is added comes from a product
  };
  m.pass_wide(tokens, m.training ? 5 : 3), m.parameters += 2 * 256 * 384;  // embeddings and their sum
  for (int layer = 0; layer < 6; layer++) {
    norm();
    m.linear(rows, width, 3 * width);
    m.chain.push_back(m.best.product(pairs, length, length, 64));
    m.chain.push_back(m.best.product(pairs, length, 64, length));
    m.pass(scores, 2);  // softmax
    if (m.training) {
      for (int i = 0; i < 3; i++) m.chain.push_back(m.best.product(pairs, length, 64, length));  // dv, dq, dk
      m.chain.push_back(m.best.product(pairs, length, length, 64));
      m.pass(scores, 3);
    }
    m.linear(rows, width, width);
    residual();
    norm();
    m.linear(rows, width, 4 * width);
    m.pass(4 * tokens, m.training ? 2 + 3 : 2);  // gelu
    m.linear(rows, 4 * width, width);
    residual();
  }
  norm();
  m.linear(rows, width, 256), m.cross_entropy(static_cast<double>(rows * 256));
  m.finish(7);
}

// Two layers of 256 states over 100 steps: a product of all inputs by the weights, and one a step of the states before.
void lstm(Model& m, int64_t batch) {
  const int64_t steps = 100, width = 256, gates = 4 * width, rows = batch * steps;
  for (int64_t in : {int64_t{64}, width}) {
    m.linear(rows, in, gates, in == width);
    m.parameters += static_cast<double>(gates * width + gates);
    m.chain.insert(m.chain.end(), steps, m.best.product(1, batch, gates, width));
    const auto of_gates = static_cast<double>(rows * gates), states = static_cast<double>(rows * width);
    m.pass(of_gates, 2), m.pass(states, 3);  // what both products have added up; the cells before, states and cells
    if (!m.training) continue;
    m.chain.insert(m.chain.end(), steps, m.best.product(1, batch, width, gates));
    m.chain.push_back(m.best.product(1, gates, width, rows));
    m.pass(of_gates, 3), m.pass(states, 3);
  }
  m.linear(batch, width, 10), m.cross_entropy(static_cast<double>(batch * 10));
  m.finish(7);
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, std::pair<bool, std::function<void(Model&)>>> items = {
      {"mlp_step", {true, [](Model& m) { mlp(m, 64); }}},
      {"mlp_step_512", {true, [](Model& m) { mlp(m, 512); }}},
      {"mlp_infer", {false, [](Model& m) { mlp(m, 1); }}},
      {"convnet_step", {true, [](Model& m) { convnet(m, 64); }}},
      {"convnet_infer", {false, [](Model& m) { convnet(m, 1); }}},
      {"resnet_step", {true, [](Model& m) { resnet(m, 16); }}},
      {"resnet_infer", {false, [](Model& m) { resnet(m, 1); }}},
      {"gpt_step", {true, [](Model& m) { gpt(m, 8); }}},
      {"gpt_infer", {false, [](Model& m) { gpt(m, 1); }}},
      {"lstm_step", {true, [](Model& m) { lstm(m, 32); }}},
      {"lstm_infer", {false, [](Model& m) { lstm(m, 1); }}},
  };
  auto item = items.find(argc > 1 ? argv[1] : "");
  if (item == items.end()) {
    std::fprintf(stderr, "model_floor needs an item: mlp_step, ... (see the end of model_floor.cpp)\n");
    return 1;
  }
  Model model(argc > 2 && std::strcmp(argv[2], "bfloat16") == 0, item->second.first);
  item->second.second(model);
  Seconds primitives = bench::time_chain(model.chain), memory = bench::seconds_a_byte() * model.bytes;
  std::printf("%.1f %.1f %.1f %.1f\n", (primitives.wall + memory.wall) * 1e9, (primitives.cpu + memory.cpu) * 1e9,
              primitives.cpu * 1e9, memory.cpu * 1e9);
}
