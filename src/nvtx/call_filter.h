// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gpuwhy {

// A program may install a system call filter that kills it for opening a file. Notes the filters
// that it has now.
void note_filters();

// Around a fork, in the parent and in the child.
void note_filters_before_fork();
void note_filters_after_fork();

// True if no filter was installed since the first note, by this process or those it was forked
// from. Opens nothing. False where that is not known.
bool may_open_files();

}  // namespace gpuwhy
