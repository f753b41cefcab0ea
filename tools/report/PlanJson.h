// A plan as JSON: everything a report shows and everything that its memory can be checked by. The form is described in
// plan.schema.json beside this file; names only ever join it.
#pragma once

#include "tools/report/PlanView.h"

#include <nlohmann/json.hpp>

namespace llmc {

using OrderedJson = nlohmann::ordered_json;

/// The whole view as one object.
OrderedJson planJson(const PlanView &view);
/// A JSON text; what is no UTF-8 in a name is replaced.
std::string jsonText(const OrderedJson &json, int indent = -1);

} // namespace llmc
