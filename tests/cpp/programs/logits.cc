// logits BUNDLE TOKEN...: the logits after every token, [tokens][vocabulary] of float32, on
// standard output: what the native host computes on this processor, to be compared with another's.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <vector>

#include "memory/kv_store.h"
#include "model/bundle.h"
#include "model/native.h"

namespace sapwood {
namespace {

Status print_logits(const char* folder, const std::vector<int32_t>& tokens) {
  Result<Bundle> bundle = Bundle::open(folder);
  if (!bundle.ok()) return bundle.status();
  const int rows = static_cast<int>(tokens.size());
  Result<std::unique_ptr<Model>> model =
      open_native_model(std::make_shared<Bundle>(std::move(bundle).value()), {.max_rows = rows});
  if (!model.ok()) return model.status();
  const ModelSpec& spec = model.value()->spec();
  auto kv = KvStore::create(spec.layers, spec.kv_heads, spec.head_dim, rows);
  if (!kv.ok()) return kv.status();

  std::vector<int32_t> places(tokens.size());  // positions, slots and the rows wanted are alike
  std::iota(places.begin(), places.end(), 0);
  const std::vector<int32_t> path_begin(tokens.size(), 0);
  std::vector<int32_t> path_end(tokens.size());
  std::iota(path_end.begin(), path_end.end(), 1);
  std::vector<float> logits(tokens.size() * static_cast<size_t>(spec.vocabulary_size));
  SAPWOOD_TRY(model.value()->forward(
      {tokens, places, places, {}, places, path_begin, path_end, places}, *kv.value(), logits));
  if (std::fwrite(logits.data(), sizeof(float), logits.size(), stdout) != logits.size()) {
    return Status(Code::kInvalidArgument, "standard output: cannot be written");
  }
  return Status::okay();
}

}  // namespace
}  // namespace sapwood

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: logits BUNDLE TOKEN...\n", stderr);
    return 2;
  }
  std::vector<int32_t> tokens;
  for (int i = 2; i < argc; ++i) tokens.push_back(std::atoi(argv[i]));
  const sapwood::Status status = sapwood::print_logits(argv[1], tokens);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok() ? 0 : 2;
}
