// SPDX-License-Identifier: Apache-2.0
#include "capture/mark_module.h"

#include "base/file.h"
#include "temporary.h"
#include "testing.h"

namespace gpuwhy {
namespace {

TEST(MarkModule, AnUnknownNameIsRefusedWithTheKnownOnes) {
  EXPECT_THAT(mark_modules(), Contains("transformers"));
  check_mark_modules({"transformers"});
  check_mark_modules({});
  for (const char* name : {"nosuch", "", "Transformers", "../transformers"}) {
    expect_error(
        [&] {
          check_mark_modules({"transformers", name});
        },
        ErrorKind::kUsage, HasSubstr("known: llama_cpp, transformers"),
        HasSubstr("--mark transformers"));
  }
}

TEST(MarkModule, TheFolderHoldsAllThatPythonLoads) {
  const TemporaryDirectory directory;
  const auto folder = directory.path() / "run" / "marks";
  write_mark_modules(folder);
  for (const char* name : {"sitecustomize.py", "gpuwhy_marks.py", "gpuwhy_mark_transformers.py"}) {
    EXPECT_THAT(read_file(folder / name), HasSubstr("SPDX")) << name;
  }
  EXPECT_EQ(read_file(folder / "libgpuwhy_marks.so").substr(1, 3), "ELF");
}

TEST(MarkModule, TheUsersPythonPathComesAfterIt) {
  std::map<std::string, std::string> environment = {{"HOME", "/home/a"}};
  add_mark_environment("/run/marks", {}, environment);
  EXPECT_THAT(environment, ElementsAre(Pair("HOME", "/home/a"))) << "nothing is asked for";
  add_mark_environment("/run/marks", {"transformers"}, environment);
  EXPECT_EQ(environment["PYTHONPATH"], "/run/marks");
  EXPECT_EQ(environment["GPUWHY_MARK"], "transformers");
  EXPECT_EQ(environment["GPUWHY_MARK_NOTES"], "/run/marks/notes.txt");
  environment["PYTHONPATH"] = "/mine:/yours";
  add_mark_environment("/run/marks", {"transformers"}, environment);
  EXPECT_EQ(environment["PYTHONPATH"], "/run/marks:/mine:/yours");
}

TEST(MarkModule, NotesAreReadOnce) {
  const TemporaryDirectory directory;
  EXPECT_FALSE(take_mark_notes(directory.path()).is_marked) << "there is no file";
  directory.add("notes.txt", "no one thing\nok marked\nno one thing\n\nno \nother words\nno two");
  const MarkNotes notes = take_mark_notes(directory.path());
  EXPECT_TRUE(notes.is_marked);
  EXPECT_THAT(notes.not_done, ElementsAre("one thing", "two"));
  EXPECT_THAT(take_mark_notes(directory.path()).not_done, IsEmpty()) << "of the pass before";
  std::string many;
  for (int i = 0; i < 1000; ++i) {
    many += "no thing " + std::to_string(i) + "\n";
  }
  directory.add("notes.txt", many);
  EXPECT_EQ(take_mark_notes(directory.path()).not_done.size(), 20);
}

}  // namespace
}  // namespace gpuwhy
