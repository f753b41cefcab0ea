"""What llmc-inspect --json prints, checked from outside: its form against the schema, and a plan's memory against nothing but the
numbers themselves. None of the project's code is used."""
import json
import os

SCHEMA = os.path.join(os.path.dirname(__file__), "..", "..", "tools", "report", "plan.schema.json")
ALIGNMENT = 64
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float)}


def schema_errors(value, schema, root=None, where="$"):
    """What breaks the schema, for the words of JSON Schema that ours uses."""
    root = root or schema
    if "$ref" in schema:
        target = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        return schema_errors(value, target, root, where)
    if "const" in schema and value != schema["const"]:
        return [f"{where}: {value!r} is not {schema['const']!r}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{where}: {value!r} is none of {schema['enum']}"]
    kind = schema.get("type")
    if kind and (not isinstance(value, TYPES[kind]) or (isinstance(value, bool) and kind != "boolean")):
        return [f"{where}: {value!r} is no {kind}"]
    errors = []
    if isinstance(value, dict):
        known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        errors += [f"{where}: {name} is missing" for name in schema.get("required", []) if name not in value]
        for name, member in value.items():
            if name in known:
                errors += schema_errors(member, known[name], root, f"{where}.{name}")
            elif others is False:
                errors.append(f"{where}: {name} is not in the schema")
            elif isinstance(others, dict):
                errors += schema_errors(member, others, root, f"{where}.{name}")
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            errors += schema_errors(item, schema["items"], root, f"{where}[{index}]")
    return errors


def plan_schema():
    with open(SCHEMA) as file:
        return json.load(file)


def largest_live_sum(program, size):
    """The largest sum of size(bytes) over the values that live at one launch."""
    changes = {}
    for value in program["values"]:
        changes[value["first_launch"]] = changes.get(value["first_launch"], 0) + size(value["bytes"])
        changes[value["last_launch"] + 1] = changes.get(value["last_launch"] + 1, 0) - size(value["bytes"])
    live = largest = 0
    for launch in sorted(changes):
        live += changes[launch]
        largest = max(largest, live)
    return largest


def with_messages(program):
    """The program's values with the parts of each message as one: it has its room from the first part's first launch on, since its parts must
    lie one behind the other, until the last of them is read for the last time."""
    values, messages = list(program["values"]), []
    for number, launch in enumerate(program["launches"]):
        if launch["kernel"] != "all_reduce_start":
            continue
        places = {(operand["offset"], operand["bytes"]) for operand in launch["operands"] if operand["space"] == "arena"}
        parts = [value for value in values if (value["offset"], value["bytes"]) in places and value["first_launch"] <= number <= value["last_launch"]]
        values = [value for value in values if value not in parts]
        if parts:
            messages.append(dict(name=launch["name"], bytes=sum(padded(part["bytes"]) for part in parts), offset=min(part["offset"] for part in parts),
                                 first_launch=min(part["first_launch"] for part in parts), last_launch=max(part["last_launch"] for part in parts)))
    return dict(program, values=values + messages)


def padded(size):
    return (size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


def overlaps(program):
    """Pairs of values that live at one time and share a byte."""
    found, live = [], []
    for value in sorted(program["values"], key=lambda value: value["first_launch"]):
        live = [other for other in live if other["last_launch"] >= value["first_launch"]]
        for other in live:
            if other["offset"] < value["offset"] + value["bytes"] and value["offset"] < other["offset"] + other["bytes"]:
                found.append((other["name"], value["name"]))
        live.append(value)
    return found


def homeless(program):
    """Operands in the arena that lie in no value alive at their launch."""
    found = []
    starts = {}
    for value in program["values"]:
        for launch in range(value["first_launch"], value["last_launch"] + 1):
            starts.setdefault(launch, []).append((value["offset"], value["offset"] + value["bytes"]))
    for number, launch in enumerate(program["launches"]):
        for operand in launch["operands"]:
            begin, end = operand["offset"], operand["offset"] + operand["bytes"]
            if operand["space"] == "arena" and not any(first <= begin and end <= last for first, last in starts.get(number, [])):
                found.append((number, launch["name"], operand["name"]))
    return found


def memory_errors(plan):
    """What does not hold of the memory of any of the plan's programs."""
    errors = []
    for target in plan["targets"]:
        for program in target["programs"]:
            where = f"{target['isa']} {program['kind']}"
            bound, padded_bound = largest_live_sum(program, lambda size: size), largest_live_sum(program, padded)
            if bound != program["arena_lower_bound_bytes"]:
                errors.append(f"{where}: the largest live sum is {bound}, the plan says {program['arena_lower_bound_bytes']}")
            if padded_bound != program["arena_padded_lower_bound_bytes"]:
                errors.append(f"{where}: padded, the largest live sum is {padded_bound}, not {program['arena_padded_lower_bound_bytes']}")
            if any(value["offset"] + value["bytes"] > program["arena_bytes"] for value in program["values"]):
                errors.append(f"{where}: a value lies beyond the arena")
            errors += [f"{where}: {a} and {b} share memory while both live" for a, b in overlaps(program)]
            errors += [f"{where}: launch {number} {name}: operand {operand} lies in no live value" for number, name, operand in homeless(program)]
    return errors
