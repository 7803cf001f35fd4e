// Does not compile: a logit between layers.
#include "frontends/cpp/typed/typed.h"

int main() {
  namespace typed = oclc::typed;
  typed::Sequential<typed::Linear<2, 4>, typed::Logit, typed::Linear<4, 1>> net;
  return net.predict({0, 0})[0] > 0.5f ? 0 : 1;
}
