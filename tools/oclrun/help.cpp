#include "tools/oclrun/help.h"

namespace oclc::oclrun {

const std::string_view kHelp = R"(usage: oclrun PLAN [options]
Executes a plan that oclc compiled: once, timed, against references, or as consecutive steps.

  oclrun digits.bin --input image=images.npy --print 1          classes of a file of images
  oclrun resnet.bin --random --dim N=8 --warmup 3 --runs 50     latency of batches of eight
  oclrun resnet.bin --random --dim N=8 --profile                where the time goes
  oclrun model.bin --verify test_data_set_0                     compare with ONNX's test data
  oclrun cell.bin --steps 1000 --input x=chunks.npy --output y=y.npy    a plan whose outputs feed its inputs
  oclrun train.bin --steps 500 --batch 32 --data x=x.npy --data labels=y.npy --save-state s.bin

Plan and device
  --entry NAME            entry point (default: predict, or the only one; with --steps train_step)
  -d, --device SEL        index | P:D | part of its name | cpu | gpu (default: OCLC_DEVICE, else as the plan was compiled for)
  --any-device            run a plan for CPUs on a GPU, whose compiler may take hours for it, instead of refusing
  --dim N=4               value of a symbolic dimension that no input gives (repeatable)
Data
  --input x=FILE          from a .npy file, or a .pb with an ONNX tensor; the first value of one that an output feeds (repeatable)
  --inputs DIR            inputs from input_*.pb of an ONNX test_data_set
  --random[=SEED]         random inputs: floats in [-1, 1), integers 0 or 1
  --output y=FILE         write an output to a .npy file (repeatable)
  --print[=K]             print outputs: the first elements, or the largest K of each row
  --load-state FILE, --save-state FILE    start from a checkpoint; write one of the state at the end
Training
  --steps N               run an entry point so many times, feeding batches, or values along the first axis of --input
  --data x=FILE           samples of an input, along the first axis of a .npy or .pb file (repeatable)
  --batch N, --seed N, --no-shuffle    samples in a batch; seed of their order (default: 0); as they come in the files
  --set lr=RULE           hyper-parameter: NUMBER | step:NUMBER,every=STEPS,factor=F | cosine:NUMBER,steps=STEPS[,end=NUMBER] |
                          linear:.. as cosine | exponential:NUMBER,factor=F[,every=STEPS] | onecycle:NUMBER,steps=STEPS, each
                          with [,warmup=STEPS] (repeatable)
  --scale x=FACTOR[,OFFSET]   values of --data x are taken times FACTOR, as 1/255, plus OFFSET; of any number type
  --save-every K          write the checkpoint after every K steps too
  --eval-data x=FILE      held-out samples for the entry point eval_step (repeatable): loss, and accuracy in percent
  --save-best FILE        write a checkpoint whenever their loss is the lowest so far
  --eval-every K, --patience K    look at them after every K steps too; stop when K evaluations in turn have not lowered it
  --log FILE              loss of each step as FILE.csv or FILE.json
  --state-to-onnx FILE, --model FILE    write with the trained weights the ONNX model that the plan was compiled from
Verification
  --verify DIR, --case K  compare with output_*.pb of an ONNX test_data_set, or with cases.json, or its case K alone
  --atol E, --rtol E      absolute tolerance, and relative to the largest reference value
  --check-nan             run launch by launch; stop at the first NaN, naming the node that made it
Timing
  --warmup N, --runs N    runs before the timed ones, timed runs
  --time S, --percentiles 50,90,99    repeat for at least so many seconds; further percentiles of the latency
  --streams K, --batch-sweep N=1,2,4    throughput of K sessions at once beside one's, of each size of a dimension
  --profile[=table|json|csv]    time per launch
  --trace FILE            launches of one run as Chrome/Perfetto JSON
  --explain-start         where the time to the first results goes
  --wait-for-optimized      no first run with quickly compiled kernels (options that time, verify or train imply it)
  --use-binaries          take the driver's binaries that the plan holds (machine code: of plans of your own alone)
  --write-binaries FILE   as --warm, then write the plan with this device's binaries to FILE
  --warm                  fill the caches: run every entry point once on made-up inputs, so that no later start compiles
Limits
  --memory-limit BYTES, --max-host-steps N    most bytes on the device; most launches, trips of loops and steps of the host in a run
Messages
  --json                  one JSON document on standard output
  -v, --verbose; -q, --quiet    device, memory and start-up times; no progress, no notes
  --color auto|always|never     colour of errors and warnings (auto: on a terminal, unless NO_COLOR is set)
  --progress auto|none|json     auto: a line on a terminal for what takes more than a second; json: an object a line
  --man, --completion bash|zsh|fish    this as a man page, or a script for a shell
  --version, -h, --help
)";

}  // namespace oclc::oclrun
