// busy: computes for ever, writes nothing, sleeps never.
int main() {
  volatile unsigned long count = 0;
  while (true) count = count + 1;
}
