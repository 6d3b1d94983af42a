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

using gpuwhy::Json;

Json test_json(const gpuwhy::RankTest& test) {
  return {{"u", test.u}, {"p", test.p}, {"exact", test.is_exact}};
}

Json case_json(const std::vector<double>& a, const std::vector<double>& b) {
  Json row = Json::object();
  const std::pair<const char*, gpuwhy::Tail> tails[] = {{"two-sided", gpuwhy::Tail::kTwoSided},
                                                        {"greater", gpuwhy::Tail::kGreater},
                                                        {"less", gpuwhy::Tail::kLess}};
  for (const auto& [name, tail] : tails) {
    row["mann_whitney"][name] = test_json(gpuwhy::mann_whitney(a, b, tail));
    row["rank_test"][name] = test_json(gpuwhy::rank_test(a, b, tail));
    row["permutation"][name] = gpuwhy::number_or_null(gpuwhy::exact_permutation_p(a, b, tail));
  }
  for (const double confidence : {0.9, 0.95, 0.99}) {
    const gpuwhy::Shift shift = gpuwhy::shift_of(a, b, confidence);
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
  const Json asked = gpuwhy::parse_json(text, "standard input");
  Json answer = {
      {"cases", Json::array()}, {"adjusted", Json::array()}, {"quantiles", Json::array()}};
  for (const Json& row : asked.at("cases")) {
    answer["cases"].push_back(
        case_json(row.at("a").get<std::vector<double>>(), row.at("b").get<std::vector<double>>()));
  }
  for (const Json& row : asked.at("p")) {
    answer["adjusted"].push_back(gpuwhy::benjamini_hochberg(row.get<std::vector<double>>()));
  }
  for (const Json& p : asked.at("quantiles")) {
    answer["quantiles"].push_back(gpuwhy::normal_quantile(p.get<double>()));
  }
  std::cout << gpuwhy::to_json_line(answer) << "\n";
}
