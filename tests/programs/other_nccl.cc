// libnccl.so.2 of another version, for a node whose LD_LIBRARY_PATH finds it: nothing but the
// question for its version.
extern "C" int ncclGetVersion(int* version) {
  *version = 22703;
  return 0;
}
