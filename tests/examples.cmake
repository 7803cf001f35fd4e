# The example programs, each with its claim: label examples.
if(TARGET oclc AND TARGET digits)
  add_test(NAME "examples: digits compile" COMMAND oclc ${PROJECT_SOURCE_DIR}/examples/digits/model.onnx -o ${PROJECT_BINARY_DIR}/digits.bin)
  set_tests_properties("examples: digits compile" PROPERTIES LABELS examples FIXTURES_SETUP digits_plan)
  add_test(NAME "examples: digits are read" COMMAND digits ${PROJECT_BINARY_DIR}/digits.bin ${PROJECT_SOURCE_DIR}/examples/digits --device cpu)
  set_tests_properties("examples: digits are read" PROPERTIES LABELS examples FIXTURES_REQUIRED digits_plan TIMEOUT 300)
endif()
if(TARGET resnet18 AND TARGET oclrun)
  add_test(NAME "examples: resnet18 is built in C++ and runs" COMMAND resnet18 --index ${CMAKE_CURRENT_SOURCE_DIR}/models/resnet18/weights.json
    --weights ${PROJECT_BINARY_DIR}/models/resnet18/model.weights --output ${PROJECT_BINARY_DIR}/resnet18_cpp.bin --device cpu)
  set_tests_properties("examples: resnet18 is built in C++ and runs" PROPERTIES
    LABELS examples FIXTURES_REQUIRED weights_resnet18 FIXTURES_SETUP resnet18_cpp RUN_SERIAL TRUE TIMEOUT 300)
  add_test(NAME "examples: resnet18 in C++ equals its references"
    COMMAND oclrun ${PROJECT_BINARY_DIR}/resnet18_cpp.bin --device cpu --verify ${CMAKE_CURRENT_SOURCE_DIR}/models/resnet18 --rtol 5e-6)
  set_tests_properties("examples: resnet18 in C++ equals its references" PROPERTIES
    LABELS examples FIXTURES_REQUIRED resnet18_cpp RUN_SERIAL TRUE TIMEOUT 300)
endif()
if(TARGET in_circle)
  add_test(NAME "examples: in_circle learns a circle" COMMAND in_circle --compare 200 --png ${PROJECT_BINARY_DIR}/in_circle.png
    --device cpu)
  add_test(NAME "examples: shared_layers learns" COMMAND shared_layers --scale 50 --rows 1600 --batch 16 --device cpu)
  set_tests_properties("examples: in_circle learns a circle" "examples: shared_layers learns" PROPERTIES LABELS examples TIMEOUT 300)
endif()

# Training: 30 epochs from random weights; the same in two pieces gives the same bytes; the weights go back to ONNX and to a plan.
if(TARGET oclc AND TARGET train_digits)
  set(folder ${PROJECT_SOURCE_DIR}/examples/digits)
  set(files ${PROJECT_BINARY_DIR}/digits_training)
  function(oclc_digits_test name needs gives)
    add_test(NAME "examples: ${name}" COMMAND ${ARGN})
    set_tests_properties("examples: ${name}" PROPERTIES LABELS examples TIMEOUT 300 FIXTURES_REQUIRED "${needs}" FIXTURES_SETUP "${gives}")
  endfunction()
  oclc_digits_test("digits training compiles" "" digits_training_plan oclc ${folder}/model.onnx -o ${files}.bin
    --train cross_entropy,label_smoothing=0.05 --optimizer adamw,weight_decay=0.01)
  oclc_digits_test("digits are learnt" digits_training_plan digits_learnt
    train_digits ${files}.bin ${folder} --save ${files}.state --device cpu)
  oclc_digits_test("digits training stops" digits_training_plan digits_stopped
    train_digits ${files}.bin ${folder} --steps 500 --save ${files}_500.state --device cpu)
  oclc_digits_test("digits training goes on" "digits_training_plan;digits_stopped" digits_resumed
    train_digits ${files}.bin ${folder} --resume ${files}_500.state --save ${files}_resumed.state --device cpu)
  oclc_digits_test("digits training in pieces ends with the same bytes" "digits_learnt;digits_resumed" ""
    ${CMAKE_COMMAND} -E compare_files ${files}.state ${files}_resumed.state)
  foreach(run 1 2)
    oclc_digits_test("digits training, 20 steps, run ${run}" digits_training_plan digits_twenty_${run}
      train_digits ${files}.bin ${folder} --steps 20 --save ${files}_twenty_${run}.state --device cpu)
  endforeach()
  oclc_digits_test("digits training, 20 steps, gives the same bytes twice" "digits_twenty_1;digits_twenty_2" ""
    ${CMAKE_COMMAND} -E compare_files ${files}_twenty_1.state ${files}_twenty_2.state)
  oclc_digits_test("digits learnt become a model" digits_learnt digits_exported
    oclc export-onnx --model ${folder}/model.onnx --state ${files}.state -o ${files}.onnx)
  oclc_digits_test("digits learnt are compiled" digits_exported digits_learnt_plan oclc ${files}.onnx -o ${files}_predict.bin)
  oclc_digits_test("digits learnt are read" digits_learnt_plan "" digits ${files}_predict.bin ${folder} --device cpu)
endif()

# Fine-tuning: the frozen body keeps its bits, a new head learns.
if(TARGET finetune)
  add_test(NAME "examples: finetune learns shapes with a frozen body" COMMAND finetune
    --index ${CMAKE_CURRENT_SOURCE_DIR}/models/resnet18/weights.json --weights ${PROJECT_BINARY_DIR}/models/resnet18/model.weights --device cpu)
  set_tests_properties("examples: finetune learns shapes with a frozen body" PROPERTIES
    LABELS "examples;slow" FIXTURES_REQUIRED weights_resnet18 RUN_SERIAL TRUE TIMEOUT 600)
endif()

# A small language model: below 2.6 nats within 100 steps (a minute of the whole training), a checkpoint, and the same text from it.
if(TARGET tiny_gpt)
  set(tiny_gpt_text ${PROJECT_SOURCE_DIR}/examples/tiny_gpt/alice.txt)
  add_test(NAME "examples: tiny_gpt learns and writes" COMMAND tiny_gpt ${tiny_gpt_text} --steps 100 --until 2.6 --length 100
    --save ${PROJECT_BINARY_DIR}/tiny_gpt.state --device cpu)
  set_tests_properties("examples: tiny_gpt learns and writes" PROPERTIES LABELS examples FIXTURES_SETUP tiny_gpt RUN_SERIAL TRUE TIMEOUT 600)
  add_test(NAME "examples: tiny_gpt writes from its checkpoint" COMMAND tiny_gpt ${tiny_gpt_text} --steps 0 --until 2.6 --length 100
    --load ${PROJECT_BINARY_DIR}/tiny_gpt.state --device cpu)
  set_tests_properties("examples: tiny_gpt writes from its checkpoint" PROPERTIES LABELS examples FIXTURES_REQUIRED tiny_gpt RUN_SERIAL TRUE TIMEOUT 300)
  add_test(NAME "examples: tiny_gpt falls below 1.7 nats" COMMAND tiny_gpt ${tiny_gpt_text} --until 1.7 --device cpu)
  set_tests_properties("examples: tiny_gpt falls below 1.7 nats" PROPERTIES LABELS "examples;slow" RUN_SERIAL TRUE TIMEOUT 900)
endif()

# Spiking neurons: vectors are bound, a square is learnt, and the rules equal their references.
if(TARGET spiking)
  set(spiking_rules ${PROJECT_SOURCE_DIR}/examples/spiking/rules.cl)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/spiking)
  add_test(NAME "examples: spiking neurons convolve and learn" COMMAND spiking --rules ${spiking_rules} --neurons 30 --steps 1000
    --svg ${PROJECT_BINARY_DIR}/spiking --device cpu)
  add_test(NAME "examples: spiking's rules equal their references" COMMAND oclc check-op ${spiking_rules} --device cpu)
  set_tests_properties("examples: spiking neurons convolve and learn" "examples: spiking's rules equal their references" PROPERTIES
    LABELS examples TIMEOUT 300)
endif()

# Arguments that are no numbers.
function(oclc_wrong_argument program text)
  if(TARGET ${program})
    add_test(NAME "examples: ${program} names the argument" COMMAND ${program} ${ARGN})
    set_tests_properties("examples: ${program} names the argument" PROPERTIES LABELS examples PASS_REGULAR_EXPRESSION "${text}")
  endif()
endfunction()
set(digits_folder ${PROJECT_SOURCE_DIR}/examples/digits)
oclc_wrong_argument(train_digits "--batch: wanted a whole number of at least 1, found '0'" none.bin ${digits_folder} --batch 0)
oclc_wrong_argument(in_circle "--steps: wanted a whole number of at least 0, found 'many'" --steps many)
oclc_wrong_argument(spiking "--steps: wanted a whole number of at least 2, found '1'" --rules ${PROJECT_SOURCE_DIR}/examples/spiking/rules.cl
  --neurons 5 --steps 1)
oclc_wrong_argument(shared_layers "--rows: wanted a whole number of at least 0, found '-5'" --rows -5)
oclc_wrong_argument(tiny_gpt "--seed: wanted a whole number of at least 0, found '1.5'" ${PROJECT_SOURCE_DIR}/examples/tiny_gpt/alice.txt --seed 1.5)

# The server, as its clients see it.
if(TARGET serve AND TARGET oclc AND OCLC_PYTHON)
  add_test(NAME "examples: serve answers, batches, takes a new plan and ends without a lost answer"
    COMMAND ${OCLC_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/serve/serve_test.py ${PROJECT_BINARY_DIR}/bin ${PROJECT_BINARY_DIR}/digits.bin)
  set_tests_properties("examples: serve answers, batches, takes a new plan and ends without a lost answer" PROPERTIES
    LABELS examples FIXTURES_REQUIRED digits_plan RUN_SERIAL TRUE TIMEOUT 600)
endif()
