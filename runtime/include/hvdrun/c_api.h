/* The C interface of hvdrun's runtime: a rank of a job, and collective operations among its ranks.
 *
 *   hvdrun_runtime* job = NULL;
 *   hvdrun_options options = HVDRUN_OPTIONS_INIT;
 *   int code = hvdrun_init(&options, &job);
 *   if (code != 0) { fprintf(stderr, "%s\n", hvdrun_last_error()); return code; }
 *   code = hvdrun_all_reduce(hvdrun_cpu(job), data, count, HVDRUN_FLOAT32, HVDRUN_SUM, 1.0, NULL);
 *   if (code != 0) hvdrun_leave(job, code, hvdrun_last_error());
 *   code = hvdrun_finalize(job, 30000);
 *
 * Every int result: 0, or the exit code that the process should end with, 1 to 255
 * (docs/runtime.md); hvdrun_last_error() then has the sentence. 2: an argument is wrong (a NULL, a
 * count that no memory holds, a handle of no job); then nothing was begun and nobody is harmed.
 *
 * Threads: one at a time, except hvdrun_leave, hvdrun_abort and hvdrun_last_error, which any thread
 * may call. Handles belong to the library: a communicator lives as long as its runtime.
 *
 * Stable: functions, values and the order of fields stay; what comes later is added at the end, and
 * struct_size tells the library what the program knows.
 */
#ifndef HVDRUN_C_API_H
#define HVDRUN_C_API_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hvdrun_runtime hvdrun_runtime;
typedef struct hvdrun_communicator hvdrun_communicator;

typedef struct hvdrun_options {
  size_t struct_size;       /* sizeof(hvdrun_options) */
  int64_t start_timeout_ms; /* until all ranks are connected; 0: 120 s */
  const char* plan;         /* ranks with another one are refused; NULL: none */
  int device;               /* CUDA ordinal of this rank's GPU; -1: CPU only */
} hvdrun_options;

#define HVDRUN_OPTIONS_INIT \
  { sizeof(hvdrun_options), 0, NULL, -1 }

typedef enum hvdrun_type {
  HVDRUN_FLOAT64 = 0,
  HVDRUN_FLOAT32 = 1,
  HVDRUN_FLOAT16 = 2,
  HVDRUN_BFLOAT16 = 3,
  HVDRUN_INT32 = 4,
  HVDRUN_INT64 = 5,
  HVDRUN_UINT8 = 6
} hvdrun_type;

typedef enum hvdrun_op {
  HVDRUN_SUM = 0,
  HVDRUN_AVERAGE = 1,
  HVDRUN_MIN = 2,
  HVDRUN_MAX = 3
} hvdrun_op;

/* How one call is made; NULL in its place: 10 minutes, the communicator's own stream. */
typedef struct hvdrun_call {
  size_t struct_size; /* sizeof(hvdrun_call) */
  int64_t timeout_ms; /* 0: 10 minutes */
  void* stream;       /* GPU: the cudaStream_t whose work so far comes first; NULL: its own */
} hvdrun_call;

/* The sentence of this thread's last call that did not return 0; "" if there was none. Valid until
 * the thread's next such call. */
const char* hvdrun_last_error(void);

/* By every rank, once in a process's life; a second one is refused (2), and the first job goes on.
 * options may be NULL. *job is set on success only. */
int hvdrun_init(const hvdrun_options* options, hvdrun_runtime** job);

/* Of no job: -1, and "" of the texts. */
int hvdrun_rank(const hvdrun_runtime* job);
int hvdrun_size(const hvdrun_runtime* job);
int hvdrun_local_rank(const hvdrun_runtime* job);
int hvdrun_local_size(const hvdrun_runtime* job);
int hvdrun_cross_rank(const hvdrun_runtime* job);
int hvdrun_cross_size(const hvdrun_runtime* job);
/* "hvdrun", "torchrun", "mpirun", "srun"; "": alone. Valid as long as the job. */
const char* hvdrun_launcher(const hvdrun_runtime* job);
const char* hvdrun_host(const hvdrun_runtime* job);

/* Between the CPUs: a call returns when its operation is complete. NULL: of no job. */
hvdrun_communicator* hvdrun_cpu(hvdrun_runtime* job);
/* Between the GPUs, by every rank; the first call connects them. A call returns when its operation
 * is on the stream; hvdrun_wait returns when it is complete. */
int hvdrun_cuda(hvdrun_runtime* job, hvdrun_communicator** communicator);

/* data: count elements, reduced in place on every rank. Each rank's own are multiplied by prescale
 * first (integers: 1 only). */
int hvdrun_all_reduce(hvdrun_communicator* communicator, void* data, size_t count, hvdrun_type type,
                      hvdrun_op op, double prescale, const hvdrun_call* call);

/* data: count elements of rank root become everybody's. */
int hvdrun_broadcast(hvdrun_communicator* communicator, void* data, size_t count, hvdrun_type type,
                     int root, const hvdrun_call* call);

/* input: count elements; output: size * count, in the order of the ranks. */
int hvdrun_all_gather(hvdrun_communicator* communicator, const void* input, void* output,
                      size_t count, hvdrun_type type, const hvdrun_call* call);

/* input: size * count elements; output: count, this rank's part of the reduced whole. */
int hvdrun_reduce_scatter(hvdrun_communicator* communicator, const void* input, void* output,
                          size_t count, hvdrun_type type, hvdrun_op op, double prescale,
                          const hvdrun_call* call);

/* Returns when all ranks have called it. */
int hvdrun_barrier(hvdrun_communicator* communicator, const hvdrun_call* call);

/* Returns when everything that was handed over is complete. */
int hvdrun_wait(hvdrun_communicator* communicator, const hvdrun_call* call);

/* Ends every operation of the communicator, on all ranks; reason: the end of the sentence "rank 3
 * on node2 aborted: ...". */
void hvdrun_abort(hvdrun_communicator* communicator, const char* reason);

/* Ends the process with `code` because of `reason`: prints it, aborts the communicators. Does not
 * return. */
#if defined(__GNUC__)
__attribute__((noreturn))
#endif
void hvdrun_leave(hvdrun_runtime* job, int code, const char* reason);

/* The regular end, by every rank: returns when all have called it; timeout_ms 0: 30 s. On success
 * the job and its communicators are gone; on failure call hvdrun_leave. */
int hvdrun_finalize(hvdrun_runtime* job, int64_t timeout_ms);

#ifdef __cplusplus
}
#endif

#endif
