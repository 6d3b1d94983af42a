// SPDX-License-Identifier: Apache-2.0
#include "ingest/kineto/graph_annotations.h"

#include "base/error.h"
#include "testing.h"

namespace gpuwhy {
namespace {

TEST(GraphAnnotations, TheInnermostNameOfANodeCounts) {
  const GraphAnnotations names = parse_graph_annotations(R"({
    "42949672961": [{"name": "outer"}, {"name": "inner", "stream": 7}, {"stream": 8}],
    "18446744073709551615": {"module_fqn": "layers.0", "name": "x"},
    "3": "label", "4": ["a", "b"], "5": [], "6": null, "7": [["nested"]], "8": {"name": 3},
    "0": "no node", "-1": "no id", "nine": "no id", "1e3": "no id"})",
                                                         "names.json");
  EXPECT_THAT(names, UnorderedElementsAre(Pair(42949672961U, "inner"), Pair(UINT64_MAX, "layers.0"),
                                          Pair(3, "label"), Pair(4, "b")));
}

TEST(GraphAnnotations, AFileWithoutNamesIsRefused) {
  for (const char* text : {"{}", "[]", "3", R"({"traceEvents": []})", R"({"a": "b"})", "{"}) {
    EXPECT_THROW(parse_graph_annotations(text, "names.json"), Error) << text;
  }
}

}  // namespace
}  // namespace gpuwhy
