// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "ingest/kineto/kineto_event.h"
#include "ingest/simdjson_parser.h"
#include "trace/left_out.h"

namespace gpuwhy {

// Converts a JSON object to an event.
class KinetoEventReader {
 public:
  // Whether to read the module path of operators, which requires parsing all their arguments.
  bool wants_module_paths = false;

  // The last object, if it is wanted. Its texts are valid as long as the document.
  KinetoEvent event;
  bool is_wanted = false;
  std::optional<Unusable> unusable;  // why it is left out, although of a kind we keep

  // False if the text is not valid JSON.
  bool read(simdjson::ondemand::object& object);

 private:
  struct Fields;

  bool read_field(Fields& fields, simdjson::ondemand::field& field);
  bool read_args(simdjson::ondemand::value& value);
  void read_arg(std::string_view key, simdjson::ondemand::value& value);
  bool finish(const Fields& fields);
};

}  // namespace gpuwhy
