// A model on some host. Every host gives the same bits for the same bundle.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/thread_team.h"
#include "kernels/row_batch.h"
#include "memory/kv_store.h"
#include "model/spec.h"
#include "sync/timeline.h"

namespace sapwood {

class Model {
 public:
  virtual ~Model() = default;

  virtual const ModelSpec& spec() const = 0;
  virtual std::string_view host() const = 0;  // "native", "onnxruntime", "executorch"

  // The threads it runs on, for a model that takes turns with it to share; null where the host
  // keeps them to itself.
  virtual std::shared_ptr<ThreadTeam> team() const { return nullptr; }

  // The most rows one pass takes; longer prompts come in chunks.
  virtual int max_rows() const = 0;

  // Whether forward() takes a cache of this format. Every host takes float16.
  virtual bool takes(KvFormat format) const { return format == KvFormat::kFloat16; }

  // From the next pass on, hidden_states() holds the outputs of these layers, counted from 1 and
  // ascending; 0 is the embedding. Empty, as at first: none, at no cost. kInvalidArgument for
  // layers the model does not have or out of order, kUnsupported on a host that does not show them.
  virtual Status keep_hidden_states(std::span<const int> layers) {
    if (layers.empty()) return Status::okay();
    return Status(Code::kUnsupported, "the host " + std::string(host()) +
                                          " does not show hidden states; use --host native");
  }

  virtual std::span<const int> kept_layers() const { return {}; }

  // Of every row of the latest pass: [rows][layers kept][hidden_size], before any norm. Valid until
  // the next pass.
  virtual std::span<const float> hidden_states() const { return {}; }

  // Of every later pass: when to give it up, at the next place where that is possible - between two
  // layers, while waiting for a device. forward() then returns kCancelled, and K, V, logits and
  // hidden states of its rows are whatever they are. A pass of one row on our own threads is never
  // given up.
  virtual void set_deadline(Deadline deadline) { static_cast<void>(deadline); }

  // One pass: writes K and V of every row into its slot, and logits
  // [batch.output_rows.size()][vocabulary_size] of the rows asked for. The batch is checked first:
  // a slot out of range, a token out of the vocabulary, or more rows than max_rows is an error and
  // changes nothing.
  virtual Status forward(const RowBatch& batch, KvStore& kv, std::span<float> logits) = 0;

  // Whether keep_hidden_states() takes layers.
  virtual bool shows_hidden_states() const { return false; }
};

}  // namespace sapwood
