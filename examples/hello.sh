#!/bin/bash
# What a rank is told. hvdrun -np 4 examples/hello.sh
echo "rank $RANK of $WORLD_SIZE, local rank $LOCAL_RANK on $(uname -n); rank 0 is at $MASTER_ADDR:$MASTER_PORT"
