// Plan's structs to and from the Protobuf message of the file. Private to the plan file's reader and writer.
#pragma once

#include "runtime/Plan.h"

namespace llmc {
namespace proto {
class Plan;
}

/// Fills an empty message.
void planToProto(const Plan &plan, proto::Plan &message);
/// Reads a message; an enumeration value this build does not know is an error. Nothing else is checked: see
/// PlanCheck.h.
Result<Plan> planFromProto(const proto::Plan &message);

} // namespace llmc
