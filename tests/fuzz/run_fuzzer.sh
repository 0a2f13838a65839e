#!/bin/sh
# run_fuzzer.sh PROGRAM FOUND CORPUS: libFuzzer for $FUZZ_SECONDS seconds (600), beginning with CORPUS;
# new inputs go to FOUND, one that crashes, hangs or eats memory to FOUND-bad-*.
exec "$1" -max_total_time="${FUZZ_SECONDS:-600}" -timeout=10 -rss_limit_mb=2048 -max_len=4096 \
  -print_final_stats=1 -verbosity=1 -artifact_prefix="$2-bad-" "$2" "$3"
