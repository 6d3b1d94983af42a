// SPDX-License-Identifier: Apache-2.0
#include "analysis/structure/structure.h"

#include <algorithm>

#include <fmt/format.h>

#include "analysis/model_trace.h"
#include "analysis/names/rules_json.h"
#include "analysis/structure/layer_map.h"
#include "analysis/structure/model_parts.h"
#include "analysis/structure/slow_layers.h"
#include "analysis/structure/slow_passes.h"
#include "analysis/structure/structure_summary.h"
#include "config/presets.h"
#include "testing.h"
#include "trace_builder.h"

namespace gpuwhy {
namespace {

Rules rules() {
  return rules_from(embedded_yaml("rules/kernels.yaml"), embedded_yaml("rules/stages.yaml"));
}

// Kernels whose layer is not the true one. Those of a pass that was not found count as wrong.
int num_wrong(const ModelTrace& made, const Structure& structure) {
  std::vector<std::optional<int>> found(made.layers.size());
  for (const KernelStream& stream : structure.streams) {
    for (const ModelPass& pass : stream.passes) {
      for (std::uint32_t i = pass.begin; i < pass.end; ++i) {
        found[stream.kernels[i]] = pass.layer_at(i);
      }
    }
  }
  int wrong = 0;
  for (std::size_t row = 0; row < found.size(); ++row) {
    wrong += made.layers[row] && made.layers[row] != found[row] ? 1 : 0;
  }
  return wrong;
}

std::string text_of(const ModelTraceOptions& o) {
  return fmt::format(
      "{} layers, {} passes, {} kinds, {} devices, fused {}, experts {}, comm {}, first norm {}, "
      "autotuned {}, plain {}, stray {}",
      o.num_layers, o.num_passes, o.num_kinds, o.num_devices, o.is_fused_attention, o.has_experts,
      o.has_communication, o.is_first_norm_other, o.has_autotuned_names, o.num_plain_kernels,
      o.stray_share);
}

TEST(Structure, OfRandomModelsIsExactOrNotClaimed) {
  const Rules known = rules();
  int num_found = 0;
  int num_beside_strays = 0;
  int num_wrong_beside_strays = 0;
  const int num_models = 300;
  for (int seed = 0; seed < num_models; ++seed) {
    std::mt19937 random(static_cast<std::uint32_t>(seed));
    const ModelTraceOptions options = random_model(random);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, text_of(options)));
    const ModelTrace made = make_model_trace(options, random);
    const Structure structure = find_structure(made.trace, {made.trace, known});
    if (!structure.is_found()) {
      continue;
    }
    ++num_found;
    ASSERT_EQ(structure.kinds.size(), 1U);
    EXPECT_EQ(structure.kinds[0].num_layers, static_cast<std::uint32_t>(options.num_layers));
    EXPECT_EQ(structure.kinds[0].num_passes,
              static_cast<std::uint32_t>(options.num_passes * options.num_devices));
    EXPECT_GE(structure.kinds[0].signs.size(), 2U);
    if (options.stray_share > 0) {
      num_wrong_beside_strays += num_wrong(made, structure);
      num_beside_strays += static_cast<int>(made.layers.size());
    } else {
      EXPECT_EQ(num_wrong(made, structure), 0);
    }
  }
  EXPECT_EQ(num_found, num_models);
  EXPECT_LE(1000.0 * num_wrong_beside_strays, num_beside_strays) << num_wrong_beside_strays;
}

TEST(Structure, OfShuffledRowsIsTheSame) {
  ModelTraceOptions options;
  options.num_kinds = 2;
  options.num_devices = 2;
  options.has_autotuned_names = true;
  std::vector<std::string> texts;
  for (const bool is_shuffled : {false, true}) {
    std::mt19937 random(1);
    options.has_shuffled_rows = is_shuffled;
    const ModelTrace made = make_model_trace(options, random);
    const StructureSummary summary = summarise_structure(
        made.trace, {made.trace, rules()}, find_structure(made.trace, {made.trace, rules()}));
    ASSERT_EQ(summary.passes.size(), 1U);
    EXPECT_EQ(summary.passes[0].num_layers, 12);
    EXPECT_EQ(summary.passes[0].num_passes, 6);
    EXPECT_EQ(summary.passes[0].layer_kinds, "6 of 12 kernels, 6 of 13 kernels");
    EXPECT_EQ(summary.covered_fraction(), 1.0);
    std::string& text = texts.emplace_back();
    for (const LayerPartRow& part : summary.parts) {
      text += fmt::format("{} {} {} {} {}\n", part.place, part.part, part.kernel_name,
                          part.launches, part.total_ns);
    }
  }
  EXPECT_EQ(texts[0], texts[1]);
}

TEST(Structure, PartsHaveTheirTimes) {
  std::mt19937 random(1);
  const ModelTrace made = make_model_trace({}, random);
  const StructureSummary summary = summarise_structure(
      made.trace, {made.trace, rules()}, find_structure(made.trace, {made.trace, rules()}));
  std::vector<std::string> parts;
  std::int64_t total_ns = 0;
  for (const LayerPartRow& part : summary.parts) {
    parts.push_back(part.place + ": " + part.part);
    total_ns += part.total_ns;
  }
  EXPECT_EQ(parts, (std::vector<std::string>{
                       "prologue 1: other", "prologue 2: embedding", "layer 1: input norm",
                       "layer 2: qkv", "layer 3: elementwise", "layer 4: elementwise",
                       "layer 5: rope", "layer 6: kv store", "layer 7: attention", "layer 8: o",
                       "layer 9: post-attention norm", "layer 10: gate_up", "layer 11: activation",
                       "layer 12: down", "epilogue 1: final norm", "epilogue 2: lm_head",
                       "epilogue 3: sampling"}));
  std::int64_t kernel_ns = 0;
  for (std::size_t i = 0; i < made.trace.kernels.size(); ++i) {
    kernel_ns += made.trace.kernels.end_ns[i] - made.trace.kernels.start_ns[i];
  }
  EXPECT_EQ(total_ns, kernel_ns) << "without stray kernels every nanosecond has a part";
  EXPECT_EQ(summary.passes[0].kernel_ns, kernel_ns);
}

// A kernel of one layer of one pass takes longer: exactly it is named.
TEST(SlowPasses, NameTheKernelThatWasLengthened) {
  const Rules known = rules();
  int num_named = 0;
  for (int seed = 0; seed < 1000; ++seed) {
    std::mt19937 random(static_cast<std::uint32_t>(seed));
    const auto up_to = [&](int least, int most) {
      return std::uniform_int_distribution<int>(least, most)(random);
    };
    ModelTraceOptions options;
    options.num_layers = up_to(4, 12);
    options.num_passes = up_to(5, 8);
    options.num_kinds = up_to(1, 2);
    options.is_fused_attention = up_to(0, 1) == 1;
    options.has_autotuned_names = up_to(0, 1) == 1;
    const Planted planted{up_to(0, options.num_passes - 1), up_to(0, options.num_layers - 1),
                          up_to(0, 10), 1'000'000 + 100'000 * up_to(0, 50)};
    SCOPED_TRACE(fmt::format("seed {}: pass {}, layer {}, position {}: {}", seed, planted.pass,
                             planted.layer, planted.position, text_of(options)));
    const ModelTrace made = make_model_trace(options, random, planted);
    const Structure structure = find_structure(made.trace, {made.trace, known});
    std::vector<std::uint32_t> parts;
    const StructureSummary summary =
        summarise_structure(made.trace, {made.trace, known}, structure, parts);
    const std::vector<SlowPass> slow = find_slow_passes(made.trace, structure, summary, parts);
    if (!structure.is_found()) {
      continue;  // four layers of two kinds can look like one
    }
    ASSERT_FALSE(slow.empty());
    EXPECT_EQ(slow[0].number, planted.pass);
    ASSERT_EQ(slow[0].causes.size(), 1U) << slow[0].why;
    const SlowCause& cause = slow[0].causes[0];
    EXPECT_EQ(cause.first_layer, planted.layer) << slow[0].why;
    EXPECT_EQ(cause.last_layer, planted.layer) << slow[0].why;
    EXPECT_NEAR(static_cast<double>(cause.extra_ns), static_cast<double>(planted.extra_ns), 2'000);
    // The part of the row that was lengthened.
    std::size_t longest = 0;
    for (std::size_t row = 0; row < made.trace.kernels.size(); ++row) {
      const auto time_ns = [&](std::size_t one) {
        return made.trace.kernels.end_ns[one] - made.trace.kernels.start_ns[one];
      };
      longest = time_ns(row) > time_ns(longest) ? row : longest;
    }
    EXPECT_EQ(cause.part, summary.parts[parts[longest]].part);
    ++num_named;
  }
  EXPECT_GE(num_named, 970);
}

TEST(SlowPasses, AreNoneWhereAllTakeTheSame) {
  std::mt19937 random(1);
  ModelTraceOptions options;
  options.num_passes = 20;
  const ModelTrace made = make_model_trace(options, random);
  const Structure structure = find_structure(made.trace, {made.trace, rules()});
  std::vector<std::uint32_t> parts;
  const StructureSummary summary =
      summarise_structure(made.trace, {made.trace, rules()}, structure, parts);
  EXPECT_TRUE(find_slow_passes(made.trace, structure, summary, parts).empty());
}

TEST(SlowLayers, NameTheLayerAndThePartThatWasLengthened) {
  const Rules known = rules();
  for (int seed = 0; seed < 60; ++seed) {
    std::mt19937 random(static_cast<std::uint32_t>(seed));
    ModelTraceOptions options;
    options.num_layers = 8 + seed % 9;
    options.num_passes = 5 + seed % 4;
    options.num_kinds = 1 + seed % 2;
    const Planted planted{-1, 1 + seed % 6, seed % 11, 200'000};
    SCOPED_TRACE(seed);
    const ModelTrace made = make_model_trace(options, random, planted);
    const Structure structure = find_structure(made.trace, {made.trace, known});
    ASSERT_TRUE(structure.is_found());
    std::vector<std::uint32_t> parts;
    const StructureSummary summary =
        summarise_structure(made.trace, {made.trace, known}, structure, parts);
    const std::vector<SlowLayer> slow = find_slow_layers(made.trace, structure, summary, parts);
    ASSERT_EQ(slow.size(), 1U);
    EXPECT_EQ(slow[0].layer, planted.layer);
    EXPECT_NEAR(static_cast<double>(slow[0].median_ns - slow[0].kind_median_ns), 200'000, 3'000);
    EXPECT_NEAR(static_cast<double>(slow[0].part_extra_ns), 200'000, 1'000);
    EXPECT_FALSE(slow[0].part.empty());
  }
}

TEST(SlowLayers, AreNoneWhereAllTakeTheSameOrPassesAreFew) {
  for (const int num_passes : {4, 12}) {
    std::mt19937 random(1);
    ModelTraceOptions options;
    options.num_passes = num_passes;
    const ModelTrace made = num_passes < 5
                                ? make_model_trace(options, random, Planted{-1, 2, 3, 200'000})
                                : make_model_trace(options, random);
    const Structure structure = find_structure(made.trace, {made.trace, rules()});
    std::vector<std::uint32_t> parts;
    const StructureSummary summary =
        summarise_structure(made.trace, {made.trace, rules()}, structure, parts);
    EXPECT_TRUE(find_slow_layers(made.trace, structure, summary, parts).empty());
  }
}

TEST(LayerMaps, ShowTheSlowPassesWithinTheirLimits) {
  std::mt19937 random(3);
  ModelTraceOptions options;
  options.num_passes = 50;
  options.num_kinds = 2;
  options.num_devices = 2;
  const Planted planted{37, 4, 5, 500'000};
  const ModelTrace made = make_model_trace(options, random, planted);
  const Structure structure = find_structure(made.trace, {made.trace, rules()});
  std::vector<std::uint32_t> parts;
  const StructureSummary summary =
      summarise_structure(made.trace, {made.trace, rules()}, structure, parts);
  const LayerMapLimits limits{20, 400, 16};
  const std::vector<LayerMap> maps =
      map_layers(made.trace, structure, summary, parts, 1'000'000, limits);
  ASSERT_EQ(maps.size(), 2U);
  for (const LayerMap& map : maps) {
    EXPECT_EQ(map.num_passes, 50);
    EXPECT_EQ(map.num_layers, 12);
    ASSERT_EQ(map.blocks.size(), 2U);
    EXPECT_LE(map.columns.size(), 16U) << "400 cells, 24 rows";
    EXPECT_GE(map.columns.size(), 12U);
    std::int64_t last = -1;
    bool has_slowest = false;
    for (const LayerColumn& column : map.columns) {
      EXPECT_GT(column.number, last);
      last = column.number;
      ASSERT_EQ(column.layers_ns.size(), 12U);
      if (column.number == planted.pass) {
        has_slowest = true;
        EXPECT_GT(column.layers_ns[4], map.blocks[column.blocks[4]].median_ns + 490'000);
      }
    }
    EXPECT_TRUE(has_slowest);
  }
  EXPECT_EQ(maps[0].columns[0].number, 0);
  EXPECT_GT(maps[0].columns[0].start_ns, 0) << "after the prologue";
}

TEST(LayerMaps, OfAllPassesHoldEveryLayerOnce) {
  std::mt19937 random(4);
  const ModelTrace made = make_model_trace({}, random);
  const Structure structure = find_structure(made.trace, {made.trace, rules()});
  std::vector<std::uint32_t> parts;
  const StructureSummary summary =
      summarise_structure(made.trace, {made.trace, rules()}, structure, parts);
  const std::vector<LayerMap> maps = map_layers(made.trace, structure, summary, parts, 0);
  ASSERT_EQ(maps.size(), 1U);
  ASSERT_EQ(maps[0].columns.size(), 3U);
  for (const LayerColumn& column : maps[0].columns) {
    const ModelPass& pass = structure.streams[0].passes[static_cast<std::size_t>(column.number)];
    std::int64_t sum_ns = 0;
    for (const std::int64_t length_ns : column.layers_ns) {
      sum_ns += length_ns;
    }
    const auto start_of = [&](std::uint32_t position) {
      return made.trace.kernels.start_ns[structure.streams[0].kernels[position]];
    };
    EXPECT_EQ(sum_ns, start_of(pass.layers.back()) - start_of(pass.layers.front()));
    EXPECT_EQ(column.start_ns, start_of(pass.layers.front()));
  }
}

// Kernels of a model in no order at all.
TEST(Structure, IsNotClaimedForChance) {
  const std::vector<std::string_view> names = {"gemm",   "flash_fwd", "rms_norm",
                                               "silu",   "rope",      "softmax",
                                               "argmax", "gather",    "copy_kernel"};
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    std::uniform_int_distribution<std::size_t> choice(0, names.size() - 1);
    TraceBuilder builder;
    const std::uint32_t stream = builder.add_stream(builder.add_process(), builder.add_device());
    for (std::int64_t i = 0; i < 20'000; ++i) {
      builder.kernel(stream, 150 * i, 150 * i + 100, names[choice(random)]);
    }
    const Trace trace = builder.finish();
    EXPECT_FALSE(find_structure(trace, {trace, rules()}).is_found()) << seed;
  }
}

// Blocks that repeat, but are not a model.
TEST(Structure, IsNotClaimedForOtherLoops) {
  const std::vector<std::vector<std::string_view>> loops = {
      {"gemm"},
      {"gemm", "relu_kernel"},
      {"conv2d_kernel", "batch_norm_kernel", "relu_kernel", "conv2d_kernel", "add_kernel"},
      {"stencil", "reduce_kernel", "copy_kernel", "update", "halo", "norm_kernel"},
      {"rms_norm", "gemm", "flash_fwd", "gemm", "rms_norm", "gemm", "silu", "gemm"}};
  for (const auto& loop : loops) {
    TraceBuilder builder;
    const std::uint16_t process = builder.add_process();
    const std::uint32_t stream = builder.add_stream(process, builder.add_device());
    std::int64_t now_ns = 0;
    for (int i = 0; i < 50; ++i) {
      for (const std::string_view name : loop) {
        builder.kernel(stream, now_ns, now_ns + 100, name);
        now_ns += 150;
      }
    }
    const Trace trace = builder.finish();
    const Structure structure = find_structure(trace, {trace, rules()});
    EXPECT_FALSE(structure.is_found()) << loop.front();
    EXPECT_FALSE(structure.reason.empty());
  }
}

}  // namespace
}  // namespace gpuwhy
