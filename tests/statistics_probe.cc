// SPDX-License-Identifier: Apache-2.0
//
// JSON interface of src/compare/statistics.cc for test scripts: reads {"cases": [{"a": [...],
// "b": [...]}, ...], "p": [[...], ...]} from standard input, writes what it found to standard
// output.
#include <iostream>
#include <iterator>
#include <limits>

#include "base/json.h"
#include "compare/statistics.h"

namespace {

using llmprof::Json;

Json test_json(const llmprof::RankTest& test) {
  return {{"u", test.u}, {"p", test.p}, {"exact", test.is_exact}};
}

Json case_json(const std::vector<double>& a, const std::vector<double>& b) {
  Json row = Json::object();
  const std::pair<const char*, llmprof::Tail> tails[] = {{"two-sided", llmprof::Tail::kTwoSided},
                                                         {"greater", llmprof::Tail::kGreater},
                                                         {"less", llmprof::Tail::kLess}};
  for (const auto& [name, tail] : tails) {
    row["mann_whitney"][name] = test_json(llmprof::mann_whitney(a, b, tail));
    row["rank_test"][name] = test_json(llmprof::rank_test(a, b, tail));
    row["permutation"][name] = llmprof::number_or_null(llmprof::exact_permutation_p(a, b, tail));
  }
  for (const double confidence : {0.9, 0.95, 0.99}) {
    const llmprof::Shift shift = llmprof::shift_of(a, b, confidence);
    const bool is_bounded = shift.low > -std::numeric_limits<double>::infinity();
    row["shift"].push_back({{"confidence", confidence},
                            {"estimate", shift.estimate},
                            {"low", is_bounded ? Json(shift.low) : Json(nullptr)},
                            {"high", is_bounded ? Json(shift.high) : Json(nullptr)}});
  }
  return row;
}

}  // namespace

int main() {
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  const Json asked = llmprof::parse_json(text, "standard input");
  Json answer = {
      {"cases", Json::array()}, {"adjusted", Json::array()}, {"quantiles", Json::array()}};
  for (const Json& row : asked.at("cases")) {
    answer["cases"].push_back(
        case_json(row.at("a").get<std::vector<double>>(), row.at("b").get<std::vector<double>>()));
  }
  for (const Json& row : asked.at("p")) {
    answer["adjusted"].push_back(llmprof::benjamini_hochberg(row.get<std::vector<double>>()));
  }
  for (const Json& p : asked.at("quantiles")) {
    answer["quantiles"].push_back(llmprof::normal_quantile(p.get<double>()));
  }
  std::cout << llmprof::to_json_line(answer) << "\n";
}
