// SPDX-License-Identifier: Apache-2.0
//
// Keys here are made up: right in shape, opening nothing. They are put together from parts so that
// no scanner takes this file for a leak.
#include "bundle/scrub.h"

#include <ctime>

#include "base/json.h"
#include "testing.h"

namespace gpuwhy {
namespace {

const std::string kLetters = "AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGhIj";
const std::string kMixed = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0";

struct Form {
  const char* what;
  std::string text;
  std::string secret;  // must not survive
};

std::vector<Form> forms() {
  const std::string secret = "S3cretValue";
  return {
      // by name, in the ways names and values are written
      {"shell assignment", "HF_TOKEN=" + secret, secret},
      {"export", "export OPENAI_API_KEY=" + secret, secret},
      {"long option", "--api-key=" + secret, secret},
      {"option in a line", "serve --hf-token=" + secret + " --port 80", secret},
      {"JSON", R"({"api_key": ")" + secret + R"(", "n": 1})", secret},
      {"JSON without blanks", R"({"password":")" + secret + R"("})", secret},
      {"JSON with an escaped quote", R"({"password": "S3cret\"Value"})", "Value"},
      {"Python dict", "{'client_secret': '" + secret + "'}", secret},
      {"YAML", "password: " + secret, secret},
      {"override", "+env.HF_TOKEN=" + secret, secret},
      {"camel case", "awsSecretAccessKey=" + secret, secret},
      {"dotted", "spark.auth.secret=" + secret, secret},
      {"glued", "PGPASSWORD=" + secret, secret},
      {"glued token", "GHTOKEN=" + secret, secret},
      {"MySQL", "MYSQL_PWD=" + secret, secret},
      {"quoted shell", "DB_PASSWORD='two words'", "two words"},
      {"header", "Authorization: Bearer " + secret, secret},
      {"header with token", "authorization: token " + secret, secret},
      {"basic header", "Authorization: Basic dXNlcjpTM2NyZXQ=", "dXNlcjpTM2NyZXQ"},
      {"cookie", "Cookie: session=" + secret, secret},
      {"query string", "http://host/lab?token=" + secret + "&x=1", secret},
      {"signed URL", "https://b.example/k?X-Amz-Signature=" + secret, secret},
      {"connection string", "AccountName=a;AccountKey=" + secret + ";Suffix=b", secret},
      {"numeric password", "password=12345678", "12345678"},
      // by shape
      {"Hugging Face", "using hf_" + kLetters.substr(0, 34) + " now", kLetters.substr(0, 34)},
      {"OpenAI", "sk-proj-" + kMixed, kMixed},
      {"Anthropic", "sk-ant-api03-" + kMixed, kMixed},
      {"GitHub", "ghp_" + kMixed.substr(0, 36), kMixed.substr(0, 36)},
      {"GitHub fine-grained", "github_pat_" + kMixed, kMixed},
      {"GitLab", "glpat-" + kMixed.substr(0, 20), kMixed.substr(0, 20)},
      {"AWS id", "AKIA" + std::string("IOSFODNN7EXAMPLE"), "IOSFODNN7EXAMPLE"},
      {"Google", "AIza" + kMixed.substr(0, 35), kMixed.substr(0, 35)},
      {"Slack", "xoxb-" + kMixed.substr(0, 24), kMixed.substr(0, 24)},
      {"NVIDIA", "nvapi-" + kMixed, kMixed},
      {"npm", "npm_" + kMixed.substr(0, 36), kMixed.substr(0, 36)},
      {"JSON web token", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0." + kMixed, kMixed},
      {"bearer in prose", "curl -H 'X: Bearer " + kMixed + "'", kMixed},
      {"URL password", "postgres://user:" + secret + "@host:5432/db", secret},
      {"proxy", "http_proxy=http://me:" + secret + "@proxy:3128", secret},
      {"private key",
       "-----BEGIN RSA PRIVATE " + std::string("KEY-----\nMIIE") + kMixed +
           "\n-----END RSA PRIVATE KEY-----\nafter",
       kMixed},
      {"private key cut short", "-----BEGIN PRIVATE " + std::string("KEY-----\nMIIE") + kMixed,
       kMixed},
      {"Groq", "gsk_" + kMixed, kMixed},
      {"flag inside a text", "vllm serve m --api-key " + secret + " --port 80", secret},
      {"lower-case scheme", "authorization: bearer " + secret, secret},
      {"second cookie", "Cookie: a=1; session=" + secret, secret},
      {"assignment with a colon", "api_key := " + secret, secret},
      {"arrow", "api_key => " + secret, secret},
      {"list in JSON", R"("api_key": [")" + secret + R"("])", secret},
      {"escaped JSON", R"({\"api_key\": \")" + secret + R"(\"})", secret},
      {"Python environment", R"(os.environ["HF_TOKEN"] = ")" + secret + "\"", secret},
      {"plural", "API_KEYS=" + secret, secret},
      {"numbered", "password1=" + secret, secret},
      {"capitals with KEY", "OPENAI_KEY=" + secret, secret},
      {"capitals with PASS", "DB_PASS=" + secret, secret},
      {"compiler flag", "-DAPI_KEY=" + secret, secret},
      {"connection string Pwd", "Uid=a;Pwd=" + secret + ";", secret},
      {"numeric token", "?token=12345678", "12345678"},
      {"shape behind a prefix", "my-ghp_" + kMixed.substr(0, 36), kMixed.substr(0, 36)},
      {"base64 tail", "token=" + secret + "/+==", secret},
  };
}

TEST(Scrub, FortyFormsOfSecrets) {
  ASSERT_GE(forms().size(), 40U);
  for (const Form& form : forms()) {
    const std::string clean = scrub_text(form.text);
    EXPECT_THAT(clean, Not(HasSubstr(form.secret))) << form.what;
    EXPECT_THAT(clean, HasSubstr("[scrubbed]")) << form.what;
    EXPECT_EQ(scrub_text(clean), clean) << form.what << ": scrubbing twice changes nothing";
  }
}

TEST(Scrub, WhatStandsAroundASecretStays) {
  EXPECT_EQ(scrub_text("serve --hf-token=abc --port 80"), "serve --hf-token=[scrubbed] --port 80");
  EXPECT_EQ(scrub_text(R"({"api_key": "x", "n": 1})"), R"({"api_key": "[scrubbed]", "n": 1})");
  EXPECT_EQ(scrub_text("postgres://u:p@host/db"), "postgres://[scrubbed]@host/db");
  EXPECT_EQ(scrub_text("http://h/lab?token=abc&x=1"), "http://h/lab?token=[scrubbed]&x=1");
}

TEST(Scrub, OrdinaryWordsOfLlmProgramsSurvive) {
  for (const char* text : {"--max-tokens=128",
                           "--max-num-batched-tokens 8192",
                           "eos_token=</s>",
                           "--pad-token 0",
                           "tokenizer=meta-llama/Llama-3.1-8B",
                           "TOKENIZERS_PARALLELISM=false",
                           "bos_token_id: 1",
                           "num_tokens=5",
                           "tokens_per_s: 93.1",
                           "time_per_token=5",
                           "token_ids=[1, 2]",
                           "--use-auth-token=true",
                           "max_new_token=5",
                           "token: 17",
                           "PWD=/root/work",
                           "author=me",
                           "key=value",
                           "monkey=1",
                           "kernel_id=::regex:gemm:",
                           "scikit-learn",
                           "sk-learn-contrib-tools",
                           "local-rank=0",
                           "path/to/hf_cache",
                           "commit 0123456789abcdef0123456789abcdef01234567",
                           "http://localhost:8000/v1",
                           "git@github.com:a/b.git",
                           "std::vector<int>",
                           "Bearer of news",
                           "passes=3",
                           "--compass=n",
                           "attention: flash",
                           "CUDA_VISIBLE_DEVICES=0,1",
                           "a: b: c",
                           "secretary problem",
                           "signal=9",
                           "design=2",
                           "--tensor-type token_embd=q8_0",
                           "--token-embedding-type q8_0",
                           "--speculative-token-map m.pt",
                           "token_usage: 0.35",
                           "--moe-token-dispatcher-type alltoall",
                           "inter_token_latency_ms: 12.3",
                           "boi_token=<i>",
                           "--use-auth-token serve.py",
                           "Basic authentication failed",
                           "sort_key=a",
                           "hf_quantizer_bitsandbytes_4bit_linear_attention",
                           "sk-gemm-128x128x64-f16-nt-splitk"}) {
    EXPECT_EQ(scrub_text(text), text);
  }
}

TEST(Scrub, ArgumentsAfterASecretFlag) {
  EXPECT_THAT(scrub_arguments({"x", "--token", "abc", "--verbose", "--password", "--port", "80",
                               "--max-tokens", "5", "-H", "Authorization: Bearer abc"}),
              ElementsAre("x", "--token", "[scrubbed]", "--verbose", "--password", "--port", "80",
                          "--max-tokens", "5", "-H", "Authorization: [scrubbed]"));
  EXPECT_THAT(scrub_arguments({"--api-key"}), ElementsAre("--api-key"));
}

TEST(Scrub, AnArgumentIsTheWholeValue) {
  EXPECT_THAT(scrub_arguments({"--password=a b", "HF_TOKEN=x,y", "--api-key", "-S3cretValue", "-v",
                               "--use-auth-token", "serve.py"}),
              ElementsAre("--password=[scrubbed]", "HF_TOKEN=[scrubbed]", "--api-key", "[scrubbed]",
                          "-v", "--use-auth-token", "serve.py"));
}

TEST(Scrub, EverythingUnderASecretName) {
  const Json tree = {{"secrets", {{"a", "S3cret"}, {"b", {"S3cret", 5, true}}}},
                     {"env", {{{"name", "HF_TOKEN"}, {"value", "S3cret"}}}},
                     {"mixed", {"--api-key", "S3cret", 5}},
                     {"tokens", {1, 2, 3}}};
  EXPECT_EQ(to_json_line(scrub_tree(tree)),
            R"({"secrets":{"a":"[scrubbed]","b":["[scrubbed]","[scrubbed]",true]},)"
            R"("env":[{"name":"HF_TOKEN","value":"[scrubbed]"}],)"
            R"("mixed":["--api-key","[scrubbed]",5],"tokens":[1,2,3]})");
}

TEST(Scrub, TreesByKeyAndByShape) {
  const Json tree = {{"token", "abc"},
                     {"max_tokens", 5},
                     {"password", 1234},
                     {"nested", {{"list", {1, "ghp_" + kMixed}}, {"api_key", nullptr}}}};
  EXPECT_EQ(to_json_line(scrub_tree(tree)),
            R"({"token":"[scrubbed]","max_tokens":5,"password":"[scrubbed]",)"
            R"("nested":{"list":[1,"[scrubbed]"],"api_key":null}})");
}

TEST(Scrub, EnvironmentIsAnAllowList) {
  const auto clean = scrub_environment({{"CUDA_HOME", "/usr/local/cuda"},
                                        {"NCCL_DEBUG", "INFO"},
                                        {"HF_TOKEN", "abc"},
                                        {"WANDB_API_KEY", "abc"},
                                        {"SOMETHING", "else"},
                                        {"VLLM_API_KEY", "abc"},
                                        {"LD_LIBRARY_PATH", "/lib"}});
  EXPECT_EQ(clean.size(), 4U);
  EXPECT_EQ(clean.at("CUDA_HOME"), "/usr/local/cuda");
  EXPECT_EQ(clean.at("VLLM_API_KEY"), "[scrubbed]");
}

TEST(Scrub, LongAndOddTextIsLinear) {
  EXPECT_EQ(scrub_text(std::string(2'000'000, 'a')).size(), 2'000'000U);
  EXPECT_EQ(scrub_text(std::string(500'000, '-')).size(), 500'000U);
  std::string colons;
  for (int i = 0; i < 200'000; ++i) {
    colons += "://";
  }
  EXPECT_EQ(scrub_text(colons), colons);
  // A picture inside a prompt.
  std::string base64 = "data:image/png;base64,";
  for (int i = 0; i < 200'000; ++i) {
    base64 += "ab/+c";
  }
  const std::clock_t start = std::clock();  // of the processor: the machine may be busy
  EXPECT_EQ(scrub_text(base64).size(), base64.size());
  EXPECT_LT(std::clock() - start, 5 * CLOCKS_PER_SEC);
  EXPECT_EQ(scrub_text(std::string("\xff\0token", 7)), std::string("\xff\0token", 7));
}

}  // namespace
}  // namespace gpuwhy
