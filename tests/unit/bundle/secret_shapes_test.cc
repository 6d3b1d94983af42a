// SPDX-License-Identifier: Apache-2.0
//
// One test per row of conf/rules/secrets.yaml, whatever rows it has.
#include "bundle/secret_shapes.h"

#include "base/error.h"
#include "bundle/scrub.h"
#include "bundle/secrets.h"
#include "testing.h"

namespace gpuwhy {
namespace {

// Letters and digits that begin no other key.
std::string random_text(std::size_t length, bool has_digits) {
  const std::string_view pattern = has_digits ? "Qz7Xw2Vu9Ts4Rq1P" : "QzmXwnVubTscRqdP";
  std::string text;
  while (text.size() < length) {
    text += pattern.substr(0, std::min(pattern.size(), length - text.size()));
  }
  return text;
}

std::string key_of(const KeyShape& shape, std::size_t length, bool has_digits) {
  return shape.prefix + random_text(length - shape.needed.size(), has_digits) + shape.needed;
}

class KeyRow : public testing::TestWithParam<std::size_t> {
 protected:
  const KeyShape& shape() const { return secret_shapes().keys().at(GetParam()); }
};

TEST_P(KeyRow, IsRemovedFromTexts) {
  const std::string key = key_of(shape(), shape().least_rest, true);
  for (const std::string& text : {key, "loading with " + key + ", ok", "(" + key + ")", "my-" + key,
                                  "https://host/x?y=" + key}) {
    EXPECT_THAT(scrub_text(text), Not(HasSubstr(key))) << text;
    EXPECT_THAT(scrub_text(text), HasSubstr(kScrubbed)) << text;
  }
}

TEST_P(KeyRow, IsNotSeenInShorterTexts) {
  const std::string text = key_of(shape(), shape().least_rest - 1, true);
  // Another row may be shorter: sk- and sk_live_ begin alike.
  if (!std::any_of(secret_shapes().keys().begin(), secret_shapes().keys().end(),
                   [&](const KeyShape& other) {
                     return &other != &shape() && text.starts_with(other.prefix);
                   })) {
    EXPECT_EQ(scrub_text(text), text);
  }
}

TEST_P(KeyRow, DigitsAndMarksAreNeededWhereTheRowSaysSo) {
  if (shape().needs_digit) {
    const std::string words = key_of(shape(), shape().least_rest, false);
    EXPECT_EQ(scrub_text(words), words);
  }
  if (!shape().needed.empty()) {
    const std::string without = shape().prefix + random_text(shape().least_rest, true);
    EXPECT_EQ(scrub_text(without), without);
  }
}

INSTANTIATE_TEST_SUITE_P(SecretsYaml, KeyRow,
                         testing::Range<std::size_t>(0, secret_shapes().keys().size()));

TEST(SecretShapes, EveryWordMakesANameASecrets) {
  ASSERT_FALSE(secret_shapes().plain_words().empty());
  for (const std::string& word : secret_shapes().plain_words()) {
    for (const std::string& name : {word, "my_" + word, word + "_2", "app." + word, "--" + word}) {
      EXPECT_TRUE(is_secret_name(name)) << name;
      EXPECT_EQ(scrub_text(name + "=S3cretValue"), name + "=[scrubbed]");
    }
  }
  ASSERT_FALSE(secret_shapes().other_words().empty());
  for (const SecretNameWord& known : secret_shapes().other_words()) {
    if (known.is_ending) {
      EXPECT_TRUE(is_secret_name("pg" + known.word)) << known.word;
    }
    for (const std::string& before : known.after) {
      EXPECT_TRUE(is_secret_name(before + "_" + known.word)) << before << known.word;
      EXPECT_FALSE(is_secret_name("sort_" + known.word)) << known.word;
    }
  }
}

TEST(SecretShapes, FilterOfNamesLosesNone) {
  for (const char* name :
       {"MY_PAT", "patId", "pats", "PATS", "KEYS", "api-key2", "OPENAI_KEY", "keyId", "DB_PASS",
        "BASIC_AUTH", "hfToken", "GHTOKEN", "PWD1", "X_SIG"}) {
    EXPECT_TRUE(secret_shapes().may_name_secret(name)) << name;
  }
  for (const char* name : {"path", "PATH", "steps", "loss", "keyboard", "pattern", ""}) {
    EXPECT_FALSE(secret_shapes().may_name_secret(name)) << name;
  }
}

TEST(SecretShapes, RowsOfUsersAreAdded) {
  SecretShapes shapes;
  shapes.add("rules.yaml", "secrets: [{prefix: acme_, least: 20}, {words: [acmepin]}]");
  EXPECT_TRUE(shapes.starts_like_key("acme_" + random_text(20, true)));
  EXPECT_FALSE(shapes.starts_like_key("acme_" + random_text(19, true)));
  EXPECT_TRUE(shapes.is_secret_word("acmepin", ""));
  EXPECT_TRUE(shapes.may_name_secret("MY_ACMEPIN"));
  shapes.add("rules.yaml", "stages: []");
  EXPECT_EQ(shapes.keys().size(), 1U);
}

TEST(SecretShapes, WrongRowsAreRefusedWithTheirLine) {
  const auto refused = [](const std::string& row, const char* why) {
    SecretShapes shapes;
    expect_error([&] { shapes.add("rules.yaml", "secrets:\n  - " + row); }, ErrorKind::kUsage,
                 testing::AllOf(HasSubstr("rules.yaml: line 2"), HasSubstr(why)),
                 HasSubstr("conf/rules/secrets.yaml"));
  };
  refused("{prefix: a, least: 20}", "three or more");
  refused("{prefix: 'a b c', least: 20}", "three or more");
  refused("{prefix: acme_}", "from 16 to 1000");
  refused("{prefix: acme_, least: 3}", "from 16 to 1000");
  refused("{prefix: acme_, least: 20, digit: maybe}", "true or false");
  refused("{prefix: [acme_, b], least: 20}", "is a list");
  refused("{words: [ab]}", "three or more");
  refused("{service: ACME}", "neither a prefix");
  refused("{prefix: acme_, least: 20, lest: 3}", "not a key of a secret");
}

}  // namespace
}  // namespace gpuwhy
