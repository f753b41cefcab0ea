// A test tool: imports models and evaluates their graphs in f64. Each line of standard input is a request in JSON:
//   {"path", "batch"?, "seq"?, "dims"?, "loss"?, "decay"?, "asExported"?, "keepDropout"?, "inputs"?: {name: [numbers]},
//   "stripped"?: path}
// and each line of standard output its answer:
//   {"error": "..."}, or {"ledger": [...], "inputs": [...], "splice": [...], "module": text, "outputs"?: [{name, role,
//   shape, values}]}.
// "outputs" are there when "inputs" were given; numbers that JSON lacks are the strings "nan", "inf", "-inf".
#include "frontend/OnnxImporter.h"
#include "ir/Interpreter.h"

#include <cmath>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

using json = nlohmann::json;

namespace llmc {

static json numberOf(double value) {
  if (std::isfinite(value))
    return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}
static double doubleOf(const json &value) {
  return value.is_string() ? std::strtod(value.get<std::string>().c_str(), nullptr) : value.get<double>();
}

static HostTensor tensorOf(const json &values, mlir::RankedTensorType type) {
  HostTensor tensor = HostTensor::zeros(type);
  if (values.size() != size_t(tensor.size()))
    throw std::runtime_error("an input has " + std::to_string(values.size()) + " values for " +
                             std::to_string(tensor.size()));
  for (size_t i = 0; i < values.size(); ++i)
    if (tensor.isFloat())
      tensor.floats[i] = doubleOf(values[i]);
    else
      tensor.integers[i] = values[i].get<int64_t>();
  return tensor;
}

static std::string attributeOf(mlir::Attribute attribute) {
  return mlir::cast<mlir::StringAttr>(attribute).getValue().str();
}

static json evaluate(ProgramOp program, mlir::ModuleOp module, const json &inputs) {
  Interpreter interpreter;
  for (auto variable : module.getOps<VariableOp>())
    interpreter.variables[variable.getSymName()] = *HostTensor::fromAttribute(*variable.getValue());
  for (const char *name : {"seed_lo", "seed_hi", "step"})
    interpreter.scalars[name] = 1;
  llvm::SmallVector<HostTensor> arguments;
  for (auto [i, type] : llvm::enumerate(program.getArgumentTypes()))
    arguments.push_back(
        tensorOf(inputs.at(attributeOf(program.getArgAttr(i, "llmc.name"))), mlir::cast<mlir::RankedTensorType>(type)));
  auto results = interpreter.run(program, arguments);
  if (failed(results))
    throw std::runtime_error("the graph cannot be evaluated");
  json outputs = json::array();
  for (auto [i, tensor] : llvm::enumerate(*results)) {
    json values = json::array();
    for (int64_t k = 0; k < tensor.size(); ++k)
      values.push_back(tensor.isFloat() ? numberOf(tensor.floats[k]) : json(tensor.integers[k]));
    outputs.push_back({{"name", attributeOf(program.getResultAttr(i, "llmc.name"))},
                       {"role", attributeOf(program.getResultAttr(i, "llmc.role"))},
                       {"shape", std::vector<int64_t>(tensor.type.getShape())},
                       {"values", values}});
  }
  return outputs;
}

static ImportOptions optionsOf(const json &request) {
  ImportOptions options;
  options.path = request.at("path");
  if (request.contains("batch"))
    options.batch = request["batch"];
  if (request.contains("seq"))
    options.seq = request["seq"];
  options.dims = request.value("dims", std::map<std::string, int64_t>());
  options.lossOutput = request.value("loss", "");
  options.decayRule = request.value("decay", "matrices");
  options.asExported = request.value("asExported", false);
  options.keepDropout = request.value("keepDropout", true);
  return options;
}

static json describe(ImportedModel &model, ProgramOp program) {
  json answer = {{"ledger", json::array()}, {"inputs", json::array()}, {"splice", json::array()}};
  for (const LedgerEntry &entry : model.ledger.entries)
    answer["ledger"].push_back({{"name", entry.name},
                                {"shape", entry.shape},
                                {"type", entry.storedType},
                                {"trains", entry.trains},
                                {"decays", entry.decays},
                                {"reason", entry.reason},
                                {"uses", entry.uses}});
  for (auto [i, input] : llvm::enumerate(model.ledger.inputs)) {
    auto type = mlir::cast<mlir::RankedTensorType>(program.getArgumentTypes()[i]);
    auto vocabulary = program.getArgAttrOfType<mlir::IntegerAttr>(i, "llmc.vocabulary");
    answer["inputs"].push_back({{"name", input.name},
                                {"role", input.role},
                                {"shape", std::vector<int64_t>(type.getShape())},
                                {"vocabulary", vocabulary ? vocabulary.getInt() : 0}});
  }
  for (const Splice &splice : model.splice)
    answer["splice"].push_back(
        {{"parameter", splice.parameter}, {"offset", splice.modelOffset}, {"bytes", splice.bytes}});
  std::string text;
  llvm::raw_string_ostream stream(text);
  mlir::OpPrintingFlags flags;
  flags.elideLargeElementsAttrs(8).elideLargeResourceString(8).enableDebugInfo();
  model.module->print(stream, flags);
  answer["module"] = text;
  return answer;
}

static json answerTo(const json &request) {
  mlir::MLIRContext context;
  std::string error;
  context.getDiagEngine().registerHandler([&](mlir::Diagnostic &diagnostic) {
    error += (error.empty() ? "" : "\n") + diagnostic.str();
    return mlir::success();
  });
  auto model = importOnnx(context, optionsOf(request));
  if (failed(model))
    return {{"error", error}};
  ProgramOp program = *model->module->getOps<ProgramOp>().begin();
  json answer = describe(*model, program);
  if (request.contains("inputs"))
    answer["outputs"] = evaluate(program, *model->module, request["inputs"]);
  if (request.contains("stripped"))
    std::ofstream(request["stripped"].get<std::string>(), std::ios::binary)
        .write(reinterpret_cast<const char *>(model->strippedModel.data()),
               std::streamsize(model->strippedModel.size()));
  if (!error.empty())
    answer["noise"] = error;
  return answer;
}

} // namespace llmc

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    json answer;
    try {
      answer = llmc::answerTo(json::parse(line));
    } catch (const std::exception &failure) {
      answer = {{"failure", failure.what()}};
    }
    std::cout << answer.dump(-1, ' ', true, json::error_handler_t::replace) << std::endl;
  }
}
