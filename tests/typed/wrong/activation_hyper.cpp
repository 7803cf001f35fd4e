// Does not compile: hyper-parameters of an activation.
#include "frontends/cpp/typed/typed.h"

int main() {
  namespace typed = oclc::typed;
  typed::Sequential<typed::Linear<2, 4>, typed::Relu, typed::Linear<4, 1>> net;
  net.hyper<1>({.learning_rate = 0.1f});
}
