// SPDX-License-Identifier: Apache-2.0
#include "analysis/operators/operators.h"

#include <algorithm>
#include <map>
#include <random>

#include "analysis/names/operator_names.h"
#include "testing.h"
#include "trace_builder.h"

namespace gpuwhy {
namespace {

struct Interval {
  std::string name;
  std::int64_t start, end;
  std::uint32_t thread = 0;
  OpKind kind = OpKind::kOperator;
};
struct Launch {
  std::int64_t at;  // when the host called
  std::int64_t duration;
  std::uint32_t thread = 0;
};

// A trace whose kernel i was launched by call i, and what is known of it before operators are asked
// for.
struct Case {
  TraceBuilder made;
  Stages stages;
  Attribution attribution;
  std::int64_t whole_ns = 0;

  explicit Case(const std::vector<Launch>& launches) {
    stages.names = {row_name("prefill")};
    stages.is_nested = {false};
    stages.instances.resize(1);
    const std::uint16_t process = made.add_process();
    made.add_thread(process);
    made.add_thread(process);
    const std::uint32_t stream = made.add_stream(process, made.add_device());
    attribution.kernels.call = Column<std::uint32_t>(launches.size());
    attribution.kernels.instance = Column<std::uint32_t>(launches.size());
    for (std::uint32_t i = 0; i < launches.size(); ++i) {
      const Launch& launch = launches[i];
      made.launch(launch.thread, launch.at, stream, 1000, 1000 + launch.duration, "kernel");
      attribution.kernels.call[i] = i;
      attribution.kernels.instance[i] = 0;
      whole_ns += launch.duration;
    }
  }

  Case& with_ops(const std::vector<Interval>& rows) {
    for (const Interval& row : rows) {
      made.op(row.thread, row.start, row.end, row.name, row.kind);
    }
    return *this;
  }

  Case& with_ranges(const std::vector<Interval>& rows) {
    for (const Interval& row : rows) {
      made.range(row.thread, row.start, row.end, row.name);
    }
    return *this;
  }

  std::optional<Operators> result() {
    return summarise_operators(made.finish(), stages, attribution, whole_ns);
  }
};

std::vector<std::string> rows_of(const Operators& operators) {
  std::vector<std::string> texts;
  for (const OperatorRow& row : operators.rows) {
    texts.push_back(row.name + " " + row.stage.text() + " " + std::to_string(row.total_ns) + " " +
                    std::to_string(row.calls) + " " + std::to_string(row.num_kernels));
  }
  return texts;
}

std::vector<std::string> layers_of(const Operators& operators) {
  std::vector<std::string> texts;
  for (const LayerTotal& row : operators.layers) {
    texts.push_back(row.layer + " " + std::to_string(row.total_ns) + " " +
                    std::to_string(row.calls));
  }
  return texts;
}

TEST(Operators, TheInnermostOneOnTheThreadHasTheKernel) {
  const auto operators = Case({{15, 100}, {35, 20}, {16, 7, 1}, {99, 1000}})
                             .with_ops({{"aten::linear", 10, 50},
                                        {"aten::addmm", 12, 20},
                                        {"aten::addmm", 30, 34},
                                        {"other", 0, 90, 1}})
                             .result();
  ASSERT_TRUE(operators);
  EXPECT_THAT(rows_of(*operators),
              ElementsAre("aten::addmm prefill 100 1 1", "aten::linear prefill 20 1 1",
                          "other prefill 7 1 1"));
  EXPECT_EQ(operators->covered_ns, 127);
  EXPECT_EQ(operators->whole_ns, 1127);
  EXPECT_EQ(operators->time_of, OperatorTime::kKernels);
  EXPECT_THAT(operators->layers, IsEmpty());
}

TEST(Operators, KernelsWithoutALaunchOrAStage) {
  Case one({{15, 100}, {16, 20}, {17, 3}});
  one.with_ops({{"a", 10, 50}});
  one.attribution.kernels.call[1] = kNone;
  one.attribution.kernels.instance[2] = kNone;
  EXPECT_THAT(rows_of(*one.result()), ElementsAre("a prefill 100 1 1", "a outside 3 1 1"));
}

TEST(Operators, WholeMicrosecondsLoseNothing) {
  // An operator of no length holds the call of the same microsecond; one that ends there does too,
  // unless another begins.
  const auto operators =
      Case({{10, 1}, {20, 10}, {30, 100}})
          .with_ops({{"empty", 10, 10}, {"ends", 15, 20}, {"before", 25, 30}, {"begins", 30, 40}})
          .result();
  EXPECT_THAT(rows_of(*operators),
              ElementsAre("begins prefill 100 1 1", "ends prefill 10 1 1", "empty prefill 1 1 1"));
}

TEST(Operators, RangesOfPyTorchAreNormalised) {
  const auto operators =
      Case({{11, 5}, {21, 6}, {31, 9}, {41, 50}})
          .with_ranges(
              {{"aten::mm, op_id = 4, sizes = [[8, 64], [64, 8]], input_op_ids = []", 10, 19},
               {"aten::mm, seq = 3, op_id = 5", 20, 29},
               {"my step", 0, 100},
               {"aten::relu_", 30, 39}})
          .result();
  ASSERT_TRUE(operators);
  EXPECT_EQ(operators->source, "operators of NVTX ranges");
  EXPECT_THAT(rows_of(*operators),
              ElementsAre("aten::mm prefill 11 2 2", "aten::relu_ prefill 9 1 1"));
}

TEST(Operators, RangesOfModulesGiveLayers) {
  const auto module = [](const std::string& path) {
    return "{'Module': '" + path + "', 'TrainableParams': {'weight': [8, 8]}, 'Inputs': [[1, 8]]}";
  };
  const auto operators = Case({{11, 5}, {21, 6}, {31, 9}, {105, 2}})
                             .with_ranges({{module("model.layers.0"), 0, 15},
                                           {module("model.layers.0.mlp.up_proj"), 10, 12},
                                           {module("model.layers.10"), 20, 40},
                                           {module("model.layers.10.mlp.up_proj"), 30, 32},
                                           {module("model.layers.2"), 100, 110}})
                             .result();
  ASSERT_TRUE(operators);
  EXPECT_EQ(operators->source, "modules of NVTX ranges");
  EXPECT_THAT(rows_of(*operators), ElementsAre("model.layers.*.mlp.up_proj prefill 14 2 2",
                                               "model.layers.* prefill 8 2 2"));
  EXPECT_THAT(layers_of(*operators), ElementsAre("0 5 1", "2 2 1", "10 15 1"));
}

TEST(Operators, ModulesOfTheProfilerGiveLayers) {
  const auto operators = Case({{11, 5}, {21, 6}, {31, 9}, {3, 40}})
                             .with_ops({{"aten::mm", 0, 90},
                                        {"nn.Module: XModel_0", 0, 100, 0, OpKind::kModule},
                                        {"nn.Module: ViTLayer_0", 1, 5, 0, OpKind::kModule},
                                        {"nn.Module: XDecoderLayer_0", 10, 15, 0, OpKind::kModule},
                                        {"nn.Module: LayerNorm_7", 11, 12, 0, OpKind::kModule},
                                        {"nn.Module: XDecoderLayer_1", 20, 40, 0, OpKind::kModule},
                                        {"nn.Module: MLPBlock_5", 30, 35, 0, OpKind::kModule}})
                             .result();
  ASSERT_TRUE(operators);
  EXPECT_EQ(operators->source, "operators of PyTorch's profiler");
  EXPECT_THAT(rows_of(*operators), ElementsAre("aten::mm prefill 60 1 4"));
  EXPECT_THAT(layers_of(*operators),
              ElementsAre("ViTLayer.0 40 1", "XDecoderLayer.0 5 1", "XDecoderLayer.1 15 1"));
}

TEST(Operators, NoSourceNoTable) {
  EXPECT_FALSE(Case({{11, 5}}).result());
  EXPECT_FALSE(Case({{11, 5}}).with_ranges({{"prefill", 0, 20}}).result());
  EXPECT_FALSE(Case({}).with_ops({{"aten::mm", 0, 20}}).result());
}

TEST(Operators, Names) {
  EXPECT_EQ(operator_name("aten::linear, seq = 12, op_id = 3, sizes = [[8, 64]]"), "aten::linear");
  EXPECT_EQ(operator_name("AddBackward0, op_id = 3, seq = 12"), "AddBackward0");
  EXPECT_EQ(operator_name("plain"), "plain");
  EXPECT_EQ(layer_of("model.model.layers.31.mlp")->index, 31);
  EXPECT_EQ(layer_of("model.model.layers.31.mlp")->stack, "model.model.layers");
  EXPECT_EQ(layer_of("transformer.h.2")->stack, "transformer.h");
  EXPECT_EQ(layer_of("nn.Module: Qwen2DecoderLayer_7")->index, 7);
  for (const char* none : {"", ".", "layers", "layers.", "layers.x", "model.layers.-1",
                           "nn.Module: ", "nn.Module: LayerNorm_3", "nn.Module: Layer_",
                           "lm_head.3", "model.layers.99999999999999999999"}) {
    EXPECT_FALSE(layer_of(none)) << none;
  }
}

// Against the definition itself, by trying all operators for each kernel.
TEST(Operators, RandomNestsAgreeWithTheDefinition) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Interval> ops;
    const auto nest = [&](const auto& self, std::int64_t start, std::int64_t end,
                          std::uint32_t thread) -> void {
      while (start + 4 < end && ops.size() < 60) {
        const std::int64_t from = start + 1 + static_cast<std::int64_t>(random() % 10);
        const std::int64_t to = from + 2 + static_cast<std::int64_t>(random() % 40);
        if (to >= end) {
          return;
        }
        ops.push_back({"op" + std::to_string(random() % 5), from, to, thread});
        self(self, from, to, thread);
        start = to;
      }
    };
    nest(nest, 0, 400, 0);
    nest(nest, 0, 400, 1);
    std::shuffle(ops.begin(), ops.end(), random);
    std::vector<Launch> launches;
    for (int i = 0; i < 50; ++i) {
      launches.push_back({static_cast<std::int64_t>(random() % 400),
                          1 + static_cast<std::int64_t>(random() % 100),
                          random() % 2 == 0 ? 0U : 1U});
    }
    std::map<std::string, std::int64_t> expected;
    std::int64_t covered = 0;
    for (const Launch& launch : launches) {
      const Interval* inner = nullptr;
      for (const Interval& op : ops) {
        const bool holds =
            op.thread == launch.thread && op.start <= launch.at && launch.at <= op.end;
        // Of two that meet at the call, the one that begins there.
        if (holds && (inner == nullptr || op.start > inner->start)) {
          inner = &op;
        }
      }
      if (inner != nullptr) {
        expected[inner->name] += launch.duration;
        covered += launch.duration;
      }
    }
    const auto operators = Case(launches).with_ops(ops).result();
    std::map<std::string, std::int64_t> found;
    for (const OperatorRow& row : operators->rows) {
      found[row.name] += row.total_ns;
    }
    ASSERT_EQ(found, expected) << round;
    ASSERT_EQ(operators->covered_ns, covered);
  }
}

}  // namespace
}  // namespace gpuwhy
