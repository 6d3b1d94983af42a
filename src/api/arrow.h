// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gpuwhy/c.h>

#include "results/columns.h"

namespace gpuwhy {

// Fill in structs of the Arrow C data interface, which the receiver releases: a table is a column
// of structs. Numbers that lie in memory already are not copied. Bytes that are not UTF-8 become
// U+FFFD, as in metrics.json. Throw kInput for a column with more than 2 GiB of text.
void export_schema(const ColumnTable& table, ArrowSchema& schema);
void export_array(const ColumnTable& table, ArrowArray& array);
// One batch.
void export_stream(ColumnTable table, ArrowArrayStream& stream);

}  // namespace gpuwhy
