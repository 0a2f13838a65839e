/* Every function of the C interface, by 2 ranks or more: each result is checked. Ends with 0, or
 * with the number of the line that was wrong on standard error and 1. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "hvdrun/c_api.h"

#define EXPECT(condition)                                                               \
  do {                                                                                  \
    if (!(condition)) {                                                                 \
      fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #condition, hvdrun_last_error()); \
      return 1;                                                                         \
    }                                                                                   \
  } while (0)

enum { kMaxRanks = 8 };

static int check_collectives(hvdrun_communicator* ranks, int rank, int size) {
  const hvdrun_call call = {sizeof(hvdrun_call), 20000, NULL};
  float values[2] = {(float)rank, 1};
  int32_t all[kMaxRanks];
  int32_t part = 0;
  const int32_t own = 10 * rank;
  int64_t told = rank == 1 ? 42 : 0;
  int i;

  EXPECT(hvdrun_all_reduce(ranks, values, 2, HVDRUN_FLOAT32, HVDRUN_SUM, 0.5, &call) == 0);
  EXPECT(values[0] == (float)(size * (size - 1)) / 4 && values[1] == (float)size / 2);
  values[0] = (float)rank;
  EXPECT(hvdrun_all_reduce(ranks, values, 1, HVDRUN_FLOAT32, HVDRUN_MAX, 1, NULL) == 0);
  EXPECT(values[0] == (float)(size - 1));
  EXPECT(hvdrun_broadcast(ranks, &told, 1, HVDRUN_INT64, 1, &call) == 0);
  EXPECT(told == 42);
  EXPECT(hvdrun_all_gather(ranks, &own, all, 1, HVDRUN_INT32, &call) == 0);
  for (i = 0; i < size; ++i) EXPECT(all[i] == 10 * i);
  EXPECT(hvdrun_reduce_scatter(ranks, all, &part, 1, HVDRUN_INT32, HVDRUN_SUM, 1, &call) == 0);
  EXPECT(part == 10 * rank * size);
  EXPECT(hvdrun_barrier(ranks, &call) == 0);
  EXPECT(hvdrun_wait(ranks, &call) == 0);
  return 0;
}

static int check_refusals(hvdrun_runtime* job) {
  hvdrun_communicator* gpus = NULL;
  float value = 0;
  EXPECT(hvdrun_init(NULL, NULL) == 2);
  EXPECT(hvdrun_barrier(NULL, NULL) == 2);
  EXPECT(hvdrun_all_reduce(hvdrun_cpu(job), &value, 1, (hvdrun_type)99, HVDRUN_SUM, 1, NULL) == 2);
  EXPECT(strstr(hvdrun_last_error(), "no such type") != NULL);
  EXPECT(hvdrun_cuda(job, &gpus) == 2 && gpus == NULL);
  EXPECT(strstr(hvdrun_last_error(), "without a GPU") != NULL);
  EXPECT(hvdrun_finalize(NULL, 0) == 2);
  return 0;
}

/* On one rank only, as a mistake of a program is; the others notice nothing of it. */
static int check_mistakes(hvdrun_runtime* job) {
  hvdrun_communicator* const ranks = hvdrun_cpu(job);
  hvdrun_runtime* second = NULL;
  int32_t value = 7;
  int32_t all[kMaxRanks] = {0};

  EXPECT(hvdrun_init(NULL, &second) == 2 && second == NULL);
  EXPECT(strstr(hvdrun_last_error(), "a rank already") != NULL);
  EXPECT(hvdrun_all_reduce(ranks, NULL, 1, HVDRUN_INT32, HVDRUN_SUM, 1, NULL) == 2);
  EXPECT(strstr(hvdrun_last_error(), "hvdrun_all_reduce: 1 elements, but the pointer") != NULL);
  EXPECT(hvdrun_all_reduce(ranks, &value, 1, HVDRUN_INT32, HVDRUN_SUM, 0.5, NULL) == 2);
  EXPECT(hvdrun_all_reduce(ranks, &value, SIZE_MAX, HVDRUN_INT32, HVDRUN_SUM, 1, NULL) == 2);
  EXPECT(strstr(hvdrun_last_error(), "more than memory can hold") != NULL);
  EXPECT(hvdrun_broadcast(ranks, NULL, 1, HVDRUN_INT32, 0, NULL) == 2);
  EXPECT(hvdrun_broadcast(ranks, &value, 1, HVDRUN_INT32, -1, NULL) == 2);
  EXPECT(hvdrun_broadcast(ranks, &value, 1, HVDRUN_INT32, hvdrun_size(job), NULL) == 2);
  EXPECT(strstr(hvdrun_last_error(), "hvdrun_broadcast: there is no rank") != NULL);
  EXPECT(hvdrun_broadcast(ranks, &value, SIZE_MAX / 4 + 2, HVDRUN_INT32, 0, NULL) == 2);
  EXPECT(hvdrun_all_gather(ranks, &value, NULL, 1, HVDRUN_INT32, NULL) == 2);
  EXPECT(hvdrun_all_gather(ranks, NULL, all, 1, HVDRUN_INT32, NULL) == 2);
  /* Fits for one rank, not for all of them. */
  EXPECT(hvdrun_all_gather(ranks, &value, all, SIZE_MAX / 8, HVDRUN_INT32, NULL) == 2);
  EXPECT(hvdrun_reduce_scatter(ranks, NULL, &value, 1, HVDRUN_INT32, HVDRUN_SUM, 1, NULL) == 2);
  EXPECT(hvdrun_reduce_scatter(ranks, all, &value, SIZE_MAX / 8, HVDRUN_INT32, HVDRUN_SUM, 1,
                               NULL) == 2);
  EXPECT(hvdrun_rank(NULL) == -1 && hvdrun_cross_size(NULL) == -1 && hvdrun_cpu(NULL) == NULL);
  EXPECT(strcmp(hvdrun_host(NULL), "") == 0 && strcmp(hvdrun_launcher(NULL), "") == 0);
  EXPECT(hvdrun_cuda(NULL, NULL) == 2);
  hvdrun_abort(NULL, "of nobody");
  EXPECT(value == 7);
  return 0;
}

/* Handles of a job that has ended. */
static int check_after_the_end(hvdrun_runtime* job, hvdrun_communicator* ranks) {
  hvdrun_runtime* second = NULL;
  EXPECT(hvdrun_rank(job) == -1);
  EXPECT(hvdrun_barrier(ranks, NULL) == 2);
  EXPECT(hvdrun_finalize(job, 0) == 2);
  EXPECT(strstr(hvdrun_last_error(), "finalized already") != NULL);
  EXPECT(hvdrun_init(NULL, &second) == 2 && second == NULL);
  return 0;
}

/* Rank 0 aborts once all are in the barriers; each rank's own then ends. */
static int check_abort(hvdrun_runtime* job) {
  hvdrun_communicator* const ranks = hvdrun_cpu(job);
  int code = 0;
  if (hvdrun_rank(job) == 0) {
    EXPECT(hvdrun_barrier(ranks, NULL) == 0);
    EXPECT(hvdrun_barrier(ranks, NULL) == 0);
    hvdrun_abort(ranks, "the test wants it");
  }
  while (code == 0) code = hvdrun_barrier(ranks, NULL);
  EXPECT(code == 71 && strstr(hvdrun_last_error(), "the test wants it") != NULL);
  hvdrun_leave(job, 75, "after an abort");
}

int main(int argc, char** argv) {
  hvdrun_runtime* job = NULL;
  hvdrun_communicator* ranks = NULL;
  hvdrun_options options = HVDRUN_OPTIONS_INIT;
  int code;
  options.start_timeout_ms = 60000;
  options.plan = "of the test in C";
  EXPECT(strcmp(hvdrun_last_error(), "") == 0);
  if (argc > 1 && strcmp(argv[1], "leave") == 0) hvdrun_leave(NULL, 74, "before a job");
  code = hvdrun_init(&options, &job);
  if (code != 0) {
    fprintf(stderr, "%s\n", hvdrun_last_error());
    return code;
  }
  EXPECT(hvdrun_size(job) >= 2 && hvdrun_size(job) <= kMaxRanks);
  EXPECT(hvdrun_local_rank(job) == hvdrun_rank(job) && hvdrun_local_size(job) == hvdrun_size(job));
  EXPECT(hvdrun_cross_rank(job) == 0 && hvdrun_cross_size(job) == 1);
  EXPECT(strcmp(hvdrun_launcher(job), "torchrun") == 0 && strlen(hvdrun_host(job)) > 0);
  if (argc > 1 && strcmp(argv[1], "abort") == 0) return check_abort(job);
  if (check_collectives(hvdrun_cpu(job), hvdrun_rank(job), hvdrun_size(job)) != 0) return 1;
  if (check_refusals(job) != 0) return 1;
  if (hvdrun_rank(job) == 1 && check_mistakes(job) != 0) return 1;
  if (check_collectives(hvdrun_cpu(job), hvdrun_rank(job), hvdrun_size(job)) != 0) return 1;
  ranks = hvdrun_cpu(job);
  EXPECT(hvdrun_finalize(job, 20000) == 0);
  return check_after_the_end(job, ranks);
}
