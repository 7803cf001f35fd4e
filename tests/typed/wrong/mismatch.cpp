// Does not compile: 40 values go into a layer of 30.
#include "frontends/cpp/typed/typed.h"

int main() {
  namespace typed = oclc::typed;
  typed::Sequential<typed::Linear<2, 40>, typed::Tanh, typed::Linear<30, 1>, typed::Logit> net;
  return net.predict({0, 0})[0] > 0.5f ? 0 : 1;
}
