/* mpi_hello [WHAT]: a program of any MPI, built with MPICH's compiler wrapper. Each rank prints
 * "RANK SIZE LOCAL_RANK LOCAL_SIZE SUM WORD" after an all-reduce over all ranks (the sum of 1 to
 * SIZE) and a broadcast of rank 0's word. WHAT: "abort CODE": rank 1 calls MPI_Abort; "leave": rank 1
 * exits with 0 instead of MPI_Finalize; "part": all take leave of PMI themselves, because MPI_Finalize of MPICH
 * 4.0 over UCX's TCP often waits for ever, under mpirun.mpich as well; "die": rank 1 leaves with 9 before MPI_Init; "wait": all but
 * rank 1 wait in an all-reduce for it, which sleeps. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank_from_environment(void) {
  const char* rank = getenv("RANK");
  return rank == NULL ? -1 : atoi(rank);
}

static void greet(int rank, int size) {
  MPI_Comm node;
  int local_rank, local_size, sum = 0, one = rank + 1;
  char word[16] = "";
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &local_rank);
  MPI_Comm_size(node, &local_size);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) strcpy(word, "together");
  MPI_Bcast(word, sizeof word, MPI_CHAR, 0, MPI_COMM_WORLD);
  printf("%d %d %d %d %d %s\n", rank, size, local_rank, local_size, sum, word);
  fflush(stdout);
}

static void take_leave_of_pmi(void) {
  const char* fd = getenv("PMI_FD");
  char answer[64];
  MPI_Barrier(MPI_COMM_WORLD);
  dprintf(atoi(fd), "cmd=finalize\n");
  _exit(read(atoi(fd), answer, sizeof answer) > 0 ? 0 : 1);
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  int rank, size, mine = 1, sum;
  if (strcmp(what, "die") == 0 && rank_from_environment() == 1) return 9;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  greet(rank, size);
  if (strcmp(what, "abort") == 0 && rank == 1) MPI_Abort(MPI_COMM_WORLD, atoi(argv[2]));
  if (strcmp(what, "leave") == 0 && rank == 1) _exit(0);
  if (strcmp(what, "wait") == 0 && rank == 1) sleep(600);
  if (strcmp(what, "part") == 0) take_leave_of_pmi();
  if (*what != '\0') MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
