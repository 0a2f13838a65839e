"""What a script that uses torchpack.distributed does: ranks from mpi4py's world, local ranks from a
split by shared memory, the place to meet from MASTER_HOST, then a broadcast of rank 0's word.
Prints "RANK SIZE LOCAL_RANK LOCAL_SIZE PLACE SUM"."""

import os

from mpi4py import MPI

world = MPI.COMM_WORLD
local = world.Split_type(MPI.COMM_TYPE_SHARED)
place = os.environ.get("MASTER_HOST")
place = "tcp://" + (place or world.bcast(f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"))
total = world.allreduce(world.Get_rank() + 1)
assert world.Get_rank() == int(os.environ["RANK"]) and world.Get_size() == int(os.environ["WORLD_SIZE"])
print(world.Get_rank(), world.Get_size(), local.Get_rank(), local.Get_size(), place, total, flush=True)
