// Does not compile: nothing says how many values come in.
#include "frontends/cpp/typed/typed.h"

int main() {
  namespace typed = oclc::typed;
  typed::Sequential<typed::Relu, typed::Linear<4, 1>> net;
  return net.predict({0, 0, 0, 0})[0] > 0.5f ? 0 : 1;
}
