// SPDX-License-Identifier: Apache-2.0
//
// Composition of the configuration from files, presets and overrides, with the origin of each
// value.
//
// Layers are merged in a fixed order, and each leaf remembers the layer that set it last. The first
// layers (the runner file and the chosen presets) also define which keys exist. Any other key is an
// error, because a mistyped key that is silently accepted costs its user a profiling run. Their
// values double as types by example, so there is no second list of keys to keep in sync. An empty
// mapping is open: it accepts any key. A null accepts any type.
//
// Hydra rejects `+key=value` for an existing key. Here it means "add or set", because users write
// +run.mode=deep for a key of the runner file.
#include "config/compose.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "config/override.h"
#include "config/presets.h"

namespace gpuwhy {
namespace {

// Presets set some variables; a user may set any.
constexpr std::string_view kEnvironmentKey = "workload.environment.";

constexpr std::string_view kModePath = "run.mode";
constexpr std::string_view kTargetPath = "model.target";
constexpr std::string_view kTargetGroup = "model/llm";
constexpr std::string_view kOldFolderPath = "artifacts.stage2_dir";  // now artifacts.dir

std::string joined(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

const char* type_name(const Json& value) {
  if (value.is_boolean()) {
    return "true or false";
  }
  if (value.is_number_integer()) {
    return "a whole number";
  }
  if (value.is_number()) {
    return "a number";
  }
  if (value.is_array()) {
    return "a list";
  }
  return value.is_object() ? "a mapping" : "a text";
}

// A float key accepts integers too; a null key accepts anything.
bool same_type(const Json& known, const Json& given) {
  if (known.is_null()) {
    return true;
  }
  if (known.is_number_float()) {
    return given.is_number();
  }
  return known.type() == given.type();
}

void collect_paths(const Json& tree, const std::string& path, std::vector<std::string>& paths) {
  for (const auto& [key, value] : tree.items()) {
    const std::string key_path = joined(path, key);
    paths.push_back(key_path);
    if (value.is_object()) {
      collect_paths(value, key_path, paths);
    }
  }
}

// Wraps `value` in the nested keys of a dotted path.
Json nested(std::string_view dotted_path, Json value) {
  const auto keys = split(dotted_path, '.');
  for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
    value = Json{{std::string(*key), std::move(value)}};
  }
  return value;
}

bool is_among(const std::string& name, const std::vector<std::string>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// State of one composition: the layers, the tree built so far, and what may be set.
class Composer {
 public:
  Composer(const std::optional<std::filesystem::path>& user_file,
           const std::vector<std::string>& arguments)
      : runner_(runner_declaration()) {
    if (user_file) {
      user_name_ = user_file->string();
      user_ = user_yaml(*user_file);
      if (!user_.is_null() && !user_.is_object()) {
        throw Error(ErrorKind::kUsage, fmt::format("{} is not a mapping of keys", user_name_));
      }
    }
    for (const std::string& argument : arguments) {
      const Override parsed = parse_override(argument);
      (find_group(parsed.key) != nullptr ? group_overrides_ : key_overrides_).push_back(parsed);
    }
  }

  // Everything merged before known_ is taken defines keys; everything after may only set them.
  Config run() {
    merge(runner_.values, "runner/default.yaml", Unknown::kAdd);
    mount_presets();
    known_ = tree_;
    collect_paths(known_, "", known_paths_);
    if (user_.is_object()) {
      user_.erase("defaults");
      with_context(fmt::format("in {}", user_name_),
                   [&] { merge(user_, user_name_, Unknown::kRefuse); });
    }
    for (const Override& given : key_overrides_) {
      apply(given);
    }
    config_.tree = std::make_shared<Json>(std::move(tree_));
    return std::move(config_);
  }

 private:
  enum class Unknown { kAdd, kRefuse };

  const PresetGroup* find_group(std::string_view name) const {
    const auto group = std::find_if(runner_.groups.begin(), runner_.groups.end(),
                                    [&](const PresetGroup& g) { return g.name == name; });
    return group == runner_.groups.end() ? nullptr : &*group;
  }

  // A value that decides which presets are taken, read before the layers are merged. The last layer
  // that has it wins.
  std::optional<std::string> peek(std::string_view path) const {
    std::optional<std::string> text;
    for (const Json* layer : {&runner_.values, &user_}) {
      const Json* value = find_value(*layer, path);
      if (value != nullptr && value->is_string()) {
        text = value->get<std::string>();
      }
    }
    for (const Override& given : key_overrides_) {
      if (given.action == Override::Action::kRemove) {
        text = given.key == path ? std::nullopt : text;
        continue;
      }
      const Json layer = nested(given.key, parse_value(given));
      if (const Json* value = find_value(layer, path)) {
        text = value->is_string() ? std::optional(value->get<std::string>()) : std::nullopt;
      }
    }
    return text;
  }

  struct Choice {
    std::string name;    // empty: none
    std::string reason;  // appended to the origin when the user did not name the preset
  };

  // From weakest to strongest: the default, run.mode, model.target, the user's file, an override.
  Choice choice_of(const PresetGroup& group) const {
    Choice choice{group.default_choice, ""};
    const std::string mode = peek(kModePath).value_or("");
    if (runner_.modes.contains(mode) && runner_.modes[mode].contains(group.name)) {
      choice = {runner_.modes[mode][group.name], fmt::format(" (run.mode={})", mode)};
    }
    if (group.name == kTargetGroup) {
      choice = target_choice(choice);
    }
    if (user_.is_object() && user_.contains("defaults")) {
      choice = user_choice(group, choice);
    }
    for (const Override& given : group_overrides_) {
      if (given.key == group.name) {
        choice = {given.value, ""};
      }
    }
    return choice;
  }

  // model.target=NAME takes the preset of that name if there is one; any other name is only
  // recorded.
  Choice target_choice(Choice otherwise) const {
    const std::string target = peek(kTargetPath).value_or("");
    if (is_among(target, preset_names(kTargetGroup))) {
      return {target, fmt::format(" (model.target={})", target)};
    }
    return otherwise;
  }

  Choice user_choice(const PresetGroup& group, Choice otherwise) const {
    for (const Json& entry : user_["defaults"]) {
      if (!entry.is_object() || entry.size() != 1 || !entry.begin()->is_string() ||
          find_group(entry.items().begin().key()) == nullptr) {
        throw Error(
            ErrorKind::kUsage,
            fmt::format("{}: 'defaults' takes entries like - profiling/ncu: light", user_name_),
            "groups: gpuwhy list presets");
      }
      if (entry.items().begin().key() == group.name) {
        otherwise = {entry.begin()->get<std::string>(), ""};
      }
    }
    return otherwise;
  }

  void mount_presets() {
    for (const PresetGroup& group : runner_.groups) {
      const Choice choice = choice_of(group);
      if (choice.name.empty()) {
        continue;
      }
      const Preset preset = load_preset(group, choice.name);
      check_preset(group, preset);
      merge(nested(group.mount, preset.values), preset.origin + choice.reason, Unknown::kAdd);
    }
    note_unknown_target();
  }

  // A user's preset must have the keys and types of the built-in ones.
  void check_preset(const PresetGroup& group, const Preset& preset) const {
    const std::vector<std::string> names = preset_names(group.name);
    const Json known = embedded_yaml(group.name + "/" + names.at(0) + ".yaml");
    if (!preset.values.is_object()) {
      throw Error(ErrorKind::kUsage, fmt::format("{} is not a mapping of keys", preset.origin),
                  fmt::format("compare it with {}={}", group.name, names.at(0)));
    }
    for (const auto& [key, value] : preset.values.items()) {
      if (!known.contains(key)) {
        std::vector<std::string> keys;
        collect_paths(known, "", keys);
        const auto guess = nearest(key, keys);
        throw Error(ErrorKind::kUsage, fmt::format("{}: unknown key '{}'", preset.origin, key),
                    guess ? fmt::format("did you mean '{}'?", *guess)
                          : fmt::format("keys: {}", fmt::join(keys, ", ")));
      }
      const Json* declared = find_value(runner_.values, group.mount + "." + key);
      const bool is_any = declared != nullptr && declared->is_null();
      if (!value.is_null() && !is_any && !same_type(known.at(key), value)) {
        throw Error(ErrorKind::kUsage, fmt::format("{}: {} takes {}, not {}", preset.origin, key,
                                                   type_name(known.at(key)), to_json_line(value)));
      }
    }
  }

  void note_unknown_target() {
    const std::string target = peek(kTargetPath).value_or("");
    const std::vector<std::string> names = preset_names(kTargetGroup);
    if (!target.empty() && !is_among(target, names)) {
      config_.notes.push_back(fmt::format(
          "model.target={} is not a preset of model/llm ({}): the name is recorded, but "
          "nothing else is known about the model",
          printable(target), fmt::join(names, ", ")));
    }
  }

  void merge(const Json& layer, const std::string& origin, Unknown unknown) {
    merge_into(tree_, layer, "", origin, unknown);
  }

  // Sets the leaves of `layer` below `path`. A mapping replaces a scalar and vice versa, with its
  // origins.
  void merge_into(Json& target, const Json& layer, const std::string& path,
                  const std::string& origin, Unknown unknown) {
    if (!target.is_object()) {
      target = Json::object();
      config_.origins.erase(path);
    }
    for (const auto& [given_key, value] : layer.items()) {
      const std::string key = current_key(path, given_key);
      const std::string key_path = joined(path, key);
      if (key.find('.') != std::string::npos) {
        throw Error(ErrorKind::kUsage, fmt::format("key '{}' has a dot", printable(key_path)),
                    "write it nested, one key per level");
      }
      check_known(key_path, value, unknown);
      Json& slot = target[key];
      if (value.is_object() && !value.empty()) {
        merge_into(slot, value, key_path, origin, unknown);
      } else if (!(value.is_object() && slot.is_object())) {
        forget_origins(key_path);
        slot = value;
        config_.origins[key_path] = origin;
      }
    }
  }

  // Today's name of a key.
  std::string current_key(const std::string& path, const std::string& key) {
    if (joined(path, key) != kOldFolderPath) {
      return key;
    }
    config_.notes.emplace_back("artifacts.stage2_dir is an old name of artifacts.dir");
    return "dir";
  }

  void forget_origins(const std::string& path) {
    std::erase_if(config_.origins, [&](const auto& entry) {
      return entry.first == path || entry.first.starts_with(path + ".");
    });
  }

  // True below a mapping that the presets left empty, below a null, and for environment variables.
  bool is_open(const std::string& path) const {
    if (path.starts_with(kEnvironmentKey)) {
      return true;
    }
    for (std::size_t end = path.rfind('.'); end != std::string::npos && end > 0;
         end = path.rfind('.', end - 1)) {
      const Json* parent = find_value(known_, path.substr(0, end));
      if (parent != nullptr) {
        return parent->is_null() || (parent->is_object() && parent->empty());
      }
    }
    return false;
  }

  void check_known(const std::string& path, const Json& value, Unknown unknown) const {
    const Json* known = find_value(known_, path);
    if (known == nullptr) {
      const bool was_added = find_value(tree_, path) != nullptr;
      if (unknown == Unknown::kRefuse && !was_added && !is_open(path)) {
        throw unknown_key(path);
      }
    } else if (!same_type(*known, value)) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("{} takes {}, not {}", path, type_name(*known),
                              printable(to_json_line(value))),
                  fmt::format("its value is {}", to_json_line(*known)));
    }
  }

  Error unknown_key(const std::string& path) const {
    const auto guess = nearest(path, known_paths_);
    return {ErrorKind::kUsage, fmt::format("unknown key '{}'", printable(path)),
            guess ? fmt::format("did you mean '{}'?", *guess)
                  : "gpuwhy list config prints every key; +key=value adds a new one"};
  }

  Error unknown_group(const std::string& name) const {
    std::vector<std::string> names;
    for (const PresetGroup& group : runner_.groups) {
      names.push_back(group.name);
    }
    const auto guess = nearest(name, names);
    return {ErrorKind::kUsage, fmt::format("there is no preset group '{}'", printable(name)),
            guess ? fmt::format("did you mean '{}'?", *guess)
                  : fmt::format("groups: {}", fmt::join(names, ", "))};
  }

  void apply(const Override& given) {
    if (given.key.find('/') != std::string::npos) {
      throw unknown_group(given.key);
    }
    if (given.action == Override::Action::kRemove) {
      return remove(given);
    }
    const Json value = parse_value(given);
    const Unknown unknown =
        given.action == Override::Action::kAdd ? Unknown::kAdd : Unknown::kRefuse;
    if (unknown == Unknown::kAdd && find_value(tree_, given.key) == nullptr) {
      if (const auto guess = nearest(given.key, known_paths_); guess && !is_open(given.key)) {
        config_.notes.push_back(
            fmt::format("{} is a new key; if '{}' was meant, drop the +", given.key, *guess));
      }
    }
    merge(nested(given.key, value), given.origin(), unknown);
  }

  void remove(const Override& given) {
    if (find_value(tree_, given.key) == nullptr) {
      throw unknown_key(given.key);
    }
    Json* parent = &tree_;
    const auto keys = split(given.key, '.');
    for (std::size_t i = 0; i + 1 < keys.size(); ++i) {
      parent = &(*parent)[std::string(keys[i])];
    }
    parent->erase(std::string(keys.back()));
    forget_origins(given.key);
  }

  RunnerDeclaration runner_;
  std::string user_name_;
  Json user_;
  std::vector<Override> group_overrides_;
  std::vector<Override> key_overrides_;
  Json known_;  // tree without user file and overrides: the keys and types that may be set
  std::vector<std::string> known_paths_;
  Json tree_;  // of the configuration, as it grows
  Config config_;
};

}  // namespace

const Json* find_value(const Json& tree, std::string_view dotted_path) {
  const Json* value = &tree;
  for (const std::string_view key : split(dotted_path, '.')) {
    if (!value->is_object()) {
      return nullptr;
    }
    const auto found = value->find(std::string(key));
    if (found == value->end()) {
      return nullptr;
    }
    value = &*found;
  }
  return value;
}

Config compose(const std::optional<std::filesystem::path>& user_file,
               const std::vector<std::string>& overrides) {
  return Composer(user_file, overrides).run();
}

}  // namespace gpuwhy
