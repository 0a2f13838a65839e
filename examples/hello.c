/* A rank in C: says who it is, adds up the ranks' numbers, ends.
 *   hvdrun -np 4 build/examples/hello
 */
#include <stdio.h>

#include "hvdrun/c_api.h"

int main(void) {
  hvdrun_runtime* job = NULL;
  const hvdrun_options options = HVDRUN_OPTIONS_INIT;
  int code = hvdrun_init(&options, &job);
  if (code != 0) {
    fprintf(stderr, "hello: %s\n", hvdrun_last_error());
    return code;
  }
  double sum = hvdrun_rank(job) + 1;
  code = hvdrun_all_reduce(hvdrun_cpu(job), &sum, 1, HVDRUN_FLOAT64, HVDRUN_SUM, 1.0, NULL);
  if (code != 0) hvdrun_leave(job, code, hvdrun_last_error());

  printf("rank %d of %d (%d of %d on %s): 1 + ... + %d = %g\n", hvdrun_rank(job), hvdrun_size(job),
         hvdrun_local_rank(job), hvdrun_local_size(job), hvdrun_host(job), hvdrun_size(job), sum);
  code = hvdrun_finalize(job, 0);
  if (code != 0) hvdrun_leave(job, code, hvdrun_last_error());
  return 0;
}
