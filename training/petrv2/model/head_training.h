// The head from image features to losses: denoising queries, decoder, assignment beside it, terms.
#pragma once

#include <boost/asio/thread_pool.hpp>
#include <vector>

#include "training/petrv2/batch.h"
#include "training/petrv2/model/forward.h"
#include "training/petrv2/model/head.h"

namespace hvd::petrv2 {

// The pool solves the assignments; input.denoising is made here and not looked at.
[[nodiscard]] TrainResult train_head(const Head& head, const HeadInput& input,
                                     const std::vector<Targets>& targets,
                                     const Normalisers& normalisers, const ForwardOptions& options,
                                     boost::asio::thread_pool& pool);

[[nodiscard]] Predictions run_head(const Head& head, const HeadInput& input,
                                   const StageObserver& observer);

}  // namespace hvd::petrv2
