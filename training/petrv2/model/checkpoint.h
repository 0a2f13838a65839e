// Activation checkpointing: a block keeps only its inputs and is computed again in the backward
// pass.
#pragma once

#include <functional>

#include "training/torch.h"

namespace hvd::petrv2 {

using Block = std::function<at::Tensor(const torch::autograd::variable_list& inputs)>;

enum class BlockRandomness { kNone, kDropout };

// block(inputs), with the same value and gradients as without checkpointing. The block may use
// parameters beside its inputs: their gradients are added (and their hooks run) in the backward
// pass, so only backward() works, not autograd::grad(). The second run sees the mixed precision of
// the first and, with kDropout, the same random numbers; the generator then goes on as if there had
// been no second run. Without gradients, or when no input needs one, the block simply runs.
[[nodiscard]] at::Tensor checkpoint(const Block& block,
                                    const torch::autograd::variable_list& inputs,
                                    BlockRandomness randomness);

}  // namespace hvd::petrv2
