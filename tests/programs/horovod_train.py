"""An ordinary Horovod job for PyTorch on CPUs: a linear model whose steps can be computed by hand.

Every rank has examples of its own; DistributedOptimizer averages the gradients in half precision; parameters and optimiser state
come from rank 0, where alone they are right before. Then rank 0 makes the same steps alone, on all examples at once, and compares.
A process set of the even ranks, added later (HOROVOD_DYNAMIC_PROCESS_SETS=1), must add up their numbers.
"""

import horovod.torch as hvd
import torch

STEPS = 20
FEATURES = 8
EXAMPLES = 16  # of each rank


def examples(rank):
    generator = torch.Generator().manual_seed(100 + rank)
    inputs = torch.randn(EXAMPLES, FEATURES, generator=generator)
    return inputs, inputs.sum(dim=1, keepdim=True) + 0.5


def new_model(seed):
    torch.manual_seed(seed)
    model = torch.nn.Linear(FEATURES, 1)
    return model, torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def step(model, optimizer, inputs, targets):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
    return loss.item()


def train_alone(size):
    model, optimizer = new_model(0)
    inputs, targets = (torch.cat(parts) for parts in zip(*[examples(rank) for rank in range(size)]))
    for _ in range(STEPS):
        step(model, optimizer, inputs, targets)
    return model


def flat(model):
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def main():
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    model, optimizer = new_model(rank)  # different on each rank until the broadcast
    optimizer.param_groups[0]["lr"] *= 1 + rank
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    assert optimizer.param_groups[0]["lr"] == 0.05, optimizer.param_groups[0]["lr"]
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters(),
                                         compression=hvd.Compression.fp16)
    losses = [step(model, optimizer, *examples(rank)) for _ in range(STEPS)]
    assert losses[-1] < losses[0] / 4, losses
    verdict = ""
    if rank == 0:
        difference = (flat(model) - flat(train_alone(size))).abs().max().item()
        assert difference < 5e-3, f"{difference} from what one process computes"
        verdict = "as computed alone"
    evens = hvd.add_process_set(list(range(0, size, 2)))
    total = None
    if rank % 2 == 0:
        total = int(hvd.allreduce(torch.tensor([rank + 1]), op=hvd.Sum, process_set=evens).item())
        assert total == sum(other + 1 for other in range(0, size, 2)), total
    hvd.barrier()
    weights = flat(model).numpy().tobytes().hex()[-32:]
    print(f"rank {rank} of {size} local {hvd.local_rank()} of {hvd.local_size()} cross {hvd.cross_rank()} of "
          f"{hvd.cross_size()} weights {weights} evens {total} {verdict}", flush=True)
    hvd.shutdown()


main()
