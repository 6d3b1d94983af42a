// SPDX-License-Identifier: Apache-2.0
#include "model/vision.h"

#include "model/llm_goldens.h"
#include "testing.h"

namespace gpuwhy {
namespace {

VisionShape tower(const std::string& model) {
  return golden_llm(model).vision.value();
}

TEST(Vision, DeepSeekOcrHasItsPublishedParts) {
  const VisionParams params = params_of(tower("DeepSeek-OCR"));
  EXPECT_EQ(params.towers, 95'569'152 + 303'177'728 + 2'560);  // SAM, CLIP, newline and separator
  EXPECT_EQ(params.projector, 2'622'720);
}

// SAM at 1024 px is 976.91 GFLOP and a CLIP layer of 257 tokens 6.7382 by torch's own counter.
TEST(Vision, DeepSeekOcrCostsWhatACounterOfItsModulesSays) {
  const VisionShape shape = tower("DeepSeek-OCR");
  const VisionCost base = image_cost(shape, {1024, 1024});
  EXPECT_EQ(base.tower_flops, 976'909'172'736 + 161'715'683'328);
  EXPECT_EQ(base.projector_flops, 1'342'177'280);
  EXPECT_EQ(image_cost(shape, {640, 640}).flops(), 388'149'837'824);
  EXPECT_EQ(image_cost(shape, {1024, 1024, 2, 1}).flops(), 1'916'266'708'992);
  EXPECT_EQ(image_cost(shape, {1024, 1024, 2, 2}).flops(), 2'692'566'384'640);
  EXPECT_EQ(image_cost(shape, {1024, 1024, 3, 2}).flops(), 3'468'866'060'288);
  EXPECT_EQ(image_cost(shape, {1024, 1024, 3, 3}).flops(), 4'633'315'573'760);
}

TEST(Vision, DeepSeekOcrHandsOverItsTokens) {
  const VisionShape shape = tower("DeepSeek-OCR");
  EXPECT_EQ(image_cost(shape, {512, 512}).tokens, 73);
  EXPECT_EQ(image_cost(shape, {640, 640}).tokens, 111);
  EXPECT_EQ(image_cost(shape, {1024, 1024}).tokens, 273);
  EXPECT_EQ(image_cost(shape, {1280, 1280}).tokens, 421);
  EXPECT_EQ(image_cost(shape, {1024, 1024, 2, 1}).tokens, 483);
  EXPECT_EQ(image_cost(shape, {1024, 1024, 2, 2}).tokens, 693);
  EXPECT_EQ(image_cost(shape, {1024, 1024, 3, 3}).tokens, 1203);
}

TEST(Vision, QwenTowersAreExact) {
  const VisionShape two = tower("Qwen2-VL-7B");
  const VisionShape two_five = tower("Qwen2.5-VL-7B");
  EXPECT_EQ(params_of(two).towers + params_of(two).projector, 675'759'104);
  EXPECT_EQ(params_of(two_five).towers + params_of(two_five).projector, 676'550'144);
  EXPECT_EQ(image_cost(two, {1008, 1008}).flops(), 11'057'112'023'040);
  EXPECT_EQ(image_cost(two, {224, 224}).flops(), 339'334'922'240);
  EXPECT_EQ(image_cost(two_five, {1008, 1008}).flops(), 7'260'532'899'840);
  EXPECT_EQ(image_cost(two_five, {224, 224}).flops(), 332'707'921'920);
  EXPECT_EQ(image_cost(two, {1008, 1008}).tokens, 1296);
  EXPECT_EQ(image_cost(two_five, {224, 224}).tokens, 64);
}

// Language model and tower nested as their config.json has them.
Json multimodal(const std::string& type, const std::string& text_model, const Json& vision) {
  Json text = golden_model(text_model).at("config");
  text.erase("model_type");
  return {{"model_type", type}, {"text_config", text}, {"vision_config", vision}};
}

TEST(Vision, TotalsOfNestedModelsAreThoseOfTheCheckpoints) {
  const Json gemma = multimodal("gemma3", "Gemma-3-27B(text)",
                                {{"hidden_size", 1152},
                                 {"num_hidden_layers", 27},
                                 {"intermediate_size", 4304},
                                 {"image_size", 896},
                                 {"patch_size", 14}});
  EXPECT_EQ(params_of(llm_from_config(gemma)).total, 27'432'406'640);
  const Json scout = multimodal("llama4", "Llama-4-Scout(text)", Json::object());
  EXPECT_EQ(params_of(llm_from_config(scout)).total, 108'641'793'536);
  const Json maverick = multimodal("llama4", "Llama-4-Maverick(text)", Json::object());
  EXPECT_EQ(params_of(llm_from_config(maverick)).total, 401'583'781'376);
  EXPECT_EQ(image_cost(*llm_from_config(gemma).vision, {896, 896}).tokens, 256);
  EXPECT_EQ(image_cost(*llm_from_config(scout).vision, {336, 336}).tokens, 144);
}

TEST(Vision, SizesATowerDoesNotTakeAreRefused) {
  const auto refuses = [](const std::string& model, const ImageSize& image, const char* why) {
    expect_error([&] { image_cost(tower(model), image); }, ErrorKind::kUsage, HasSubstr(why), "");
  };
  refuses("DeepSeek-OCR", {1000, 1000}, "multiple of 64");
  refuses("DeepSeek-OCR", {1024, 640}, "square");
  refuses("DeepSeek-OCR", {1024, 1024, 1'000'000, 1'000'000}, "at most 100");
  refuses("Qwen2-VL-7B", {1000, 1008}, "multiples of 28");
  refuses("Qwen2-VL-7B", {-28, 28}, "1 to 65536");
}

}  // namespace
}  // namespace gpuwhy
