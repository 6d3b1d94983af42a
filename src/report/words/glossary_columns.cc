// SPDX-License-Identifier: Apache-2.0
//
// The headings of tables and rows that analyze prints, in plain words.
#include <algorithm>
#include <iterator>

#include "report/words/glossary.h"

namespace gpuwhy {
namespace {

// clang-format off
constexpr Term kColumns[] = {
    {"stage", "column", "A part of the run that was marked: prefill, decode, a step.", "Marks, engine step markers, or --mark and --step.", "docs/marking.md"},
    {"n", "column", "How many times the row occurred.", "Marks that were opened, or values that were measured.", ""},
    {"instances", "column", "How many times the range or stage was entered.", "Its marks in the recording.", ""},
    {"cpu_total", "column", "Sum of the lengths of the stage's marks, on the CPU.", "From the opening of a mark to its end. The GPU may still work on what was launched in it.", ""},
    {"cpu_time", "column", "Sum of the lengths of the range on the CPU.", "From its start to its end.", ""},
    {"own", "column", "CPU time of a range outside the ranges nested in it.", "Ranges of the same thread and domain.", ""},
    {"count", "column", "How many times the range was entered.", "Its marks in the recording.", ""},
    {"longest", "column", "The longest instance of a range, on the CPU.", "From its start to its end.", ""},
    {"at", "column", "When the longest instance began.", "From the first work or mark, as --from counts; negative before it.", ""},
    {"total", "column", "Sum of the times of the row.", "Of kernels and operators: their durations on the GPU. Of ranges: their lengths on the CPU.", ""},
    {"total_ms", "column", "Sum of the times of the row, in milliseconds.", "As total.", ""},
    {"median", "column", "Half of the instances took this long or less.", "Lengths of the marks on the CPU, or durations of launches.", ""},
    {"mean", "column", "Total over calls.", "The sum of the durations, divided by their number.", ""},
    {"mean_ms", "column", "Total over calls, in milliseconds.", "As mean.", ""},
    {"max", "column", "The longest one.", "Lengths of the marks on the CPU, or durations of launches.", ""},
    {"std", "column", "Standard deviation: how much the values differ from their mean.", "n/a of a single value.", ""},
    {"p50", "column", "The median: half of the values are this long or shorter.", "Nearest rank.", ""},
    {"p90", "column", "90 of 100 values are this long or shorter.", "Nearest rank.", ""},
    {"p99", "column", "99 of 100 values are this long or shorter; of fewer than 100 values the longest.", "Nearest rank.", ""},
    {"steady_mean", "column", "Mean length of all instances of a stage but the first, which often warms up.", "n/a where there is only one.", ""},
    {"unprofiled_mean", "column", "Mean length in the pass without a profiler.", "gpuwhy run.", ""},
    {"profiled_mean", "column", "Mean length in the recorded pass.", "gpuwhy run.", ""},
    {"added", "column", "How much longer a stage took under the profiler.", "Profiled mean over unprofiled mean, less 1.", "See profiler_overhead."},
    {"from", "column", "The low end of the interval of 95 % of what the profiler added.", "Student's t over the instances of both passes.", ""},
    {"to", "column", "The high end of the interval of 95 % of what the profiler added.", "Student's t over the instances of both passes.", ""},
    {"kernel", "column", "The kernel's name, shortened; metrics.json and --format csv have the whole one.", "As the profiler recorded it.", ""},
    {"kernel_name", "column", "The kernel's whole name, which nsys and ncu --kernel-name take.", "As the profiler recorded it.", ""},
    {"short_name", "column", "The kernel's name without what all names share.", "kernel_name is the whole one.", ""},
    {"kernels", "column", "Number of kernel launches.", "Those launched inside the row's marks, operator or range.", ""},
    {"kernel_time", "column", "Sum of the durations of the kernels. Kernels that run at once count each, so it may exceed the time that passed.", "Kernels that were launched inside the row's marks.", ""},
    {"its_kernels", "column", "Kernel time of one pass.", "As kernel time, the median of the passes.", ""},
    {"kernels_per_layer", "column", "Kernel launches in one layer of the model.", "The order of kernels: what repeats.", ""},
    {"tokens", "column", "Tokens that the marks of the stage carry, summed.", "Engine step markers, or the payload of NVTX ranges.", ""},
    {"tokens/s", "column", "Tokens over time.", "Marks with token counts.", ""},
    {"gpu", "column", "The GPU, as the recording numbers it: cuda:0, hip:0.", "", ""},
    {"device", "column", "The GPU, as the recording numbers it: cuda:0, hip:0.", "", ""},
    {"shares", "column", "Where the time of the stage went on that GPU, in percent of its window. They sum to 100 %.", "The ledger: each nanosecond is in one bucket.", "gpuwhy explain SHARE, as 'CPU did other work'."},
    {"share", "column", "The row's part of all kernel time, or of the time the table names.", "Its total over the sum.", ""},
    {"calls", "column", "Number of launches of the kernel, or calls of the operator.", "", ""},
    {"launches", "column", "Number of launches.", "", ""},
    {"family", "column", "What a kernel does: gemm, attention, norm, copy, communication and others.", "Its name, by rules that --rules extends.", ""},
    {"operator", "column", "The operator of the framework that launched the kernels, as aten::mm.", "PyTorch's profiler, or NVTX ranges of operators.", ""},
    {"range", "column", "A range that the program or a library marked: domain:text.", "NVTX, or record_function of PyTorch.", ""},
    {"phase", "column", "A range in a step that takes visible CPU time.", "Ranges inside the steps, by time.", ""},
    {"gpu_time", "column", "Time of the GPU work launched inside.", "Durations of its kernels.", ""},
    {"gpu_time_launched", "column", "Durations of the kernels that were launched inside the range, by its own thread and by autograd for it.", "Launch calls between its start and end; the backward pass where the recording has autograd's functions and one thread that waits for them.", ""},
    {"option", "column", "What to type to make this range a stage.", "", "Add it to the command."},
    {"pass", "column", "One trip of the GPU through the layers of the model: forward or backward.", "The order of kernels.", "docs/layers.md"},
    {"passes", "column", "How many of them were found.", "The order of kernels.", ""},
    {"pass_time", "column", "From the first kernel of a pass to the end of its last, median.", "The order of kernels.", ""},
    {"time_per_pass", "column", "Measured time of one pass.", "The window of the stage, without the time before its first recorded GPU work, over its passes.", ""},
    {"minimum_time", "column", "The least time this GPU needs for a pass of this model.", "The larger of FLOPs over peak and bytes over bandwidth.", ""},
    {"period", "column", "From the start of one pass or step on the GPU to the start of the next, median.", "n/a of a single one.", ""},
    {"layers", "column", "Layers of the model in a pass.", "Kernels that come again.", ""},
    {"layer", "column", "A layer of the model, or a module.", "", ""},
    {"one_layer", "column", "Time of one layer, median.", "From the start of one layer to that of the next.", ""},
    {"part", "column", "A part of a layer: qkv, attention, mlp.", "The order and names of kernels.", ""},
    {"place", "column", "Before the first layer, in a layer, or after the last one.", "The order of kernels.", ""},
    {"kind", "column", "Kind of pass or layer, where there are several.", "Different kernels.", ""},
    {"of_pass", "column", "The part's share of the kernel time of a pass.", "", ""},
    {"largest_in", "column", "The layer in which the part takes most time.", "", ""},
    {"its_length", "column", "How long the part takes there.", "", ""},
    {"others", "column", "How long it takes in the other layers, median.", "", ""},
    {"reads", "column", "Bytes of weights that the part must read.", "The model's config.", ""},
    {"reached", "column", "Bytes per second at which it read them.", "Bytes over time.", ""},
    {"of_roof", "column", "That rate over the GPU's memory bandwidth.", "", ""},
    {"above_roof", "column", "Time above the least that the GPU needs for it.", "", ""},
    {"sizes", "column", "Sizes of the inputs, as 4096x4096.", "PyTorch's profiler with record_shapes=True.", ""},
    {"type", "column", "Data type of the inputs.", "PyTorch's profiler with record_shapes=True.", ""},
    {"tflop/s", "column", "FLOPs of the operator over its kernel time.", "From the sizes of its inputs.", ""},
    {"of_peak", "column", "That rate over the dense peak of this GPU for the data type.", "", ""},
    {"of_roofline", "column", "The least time of the stage on this GPU over its measured time.", "See sol.", ""},
    {"while_busy", "column", "The same over the time in which the GPU worked.", "Without idle time.", ""},
    {"flop", "column", "Floating-point operations of a pass.", "The model's config.", ""},
    {"bytes", "column", "Bytes that a pass must move.", "Weights once, keys and values read and written.", ""},
    {"verdict", "column", "What limits the stage.", "Compute, memory, or neither: then the GPU waits.", ""},
    {"sequences", "column", "Sequences in one step.", "Engine step markers.", ""},
    {"steps", "column", "Number of steps.", "", ""},
    {"context", "column", "Mean number of tokens that a step attends to, per sequence.", "Engine step markers.", ""},
    {"bound", "column", "What limits the kernel: compute, memory, latency.", "Counters of Nsight Compute.", ""},
    {"covered", "column", "Share of the kernel's time that the launches measured by ncu stand for.", "Launches of the same kernel and grid.", ""},
    {"potential_saving", "column", "What the kernel would take less at its roof.", "Counters of Nsight Compute.", ""},
    {"cause", "column", "Why a token was late.", "See late_token.", ""},
    {"detail", "column", "More on the cause.", "", ""},
    {"after", "column", "Time since the token before.", "", ""},
    {"request", "column", "Id of the request.", "The file of --requests.", ""},
    {"token", "column", "Number of the token in its request.", "", ""},
    {"step", "column", "Number of the step, or a stage of that name.", "", ""},
    {"joined", "column", "By what a request was matched to the recording.", "", ""},
    {"latency", "column", "Which time of a request.", "", ""},
    {"part_of_ttft", "column", "What the request waited for before its first token.", "", ""},
    {"queue,_busy", "column", "See queue_busy.", "", ""},
    {"queue,_idle", "column", "See queue_idle.", "", ""},
    {"prefill,_gpu", "column", "See prefill_gpu.", "", ""},
    {"prefill,_cpu", "column", "See prefill_host.", "", ""},
    {"name", "column", "The GPU's name.", "As the recording says.", ""},
    {"of_the_capture", "column", "Busy time over the length of the recording.", "", ""},
    {"time", "column", "Sum of the times of the row.", "", ""},
    {"startup", "row", "The time before the model's first step: loading, compiling, warming up.", "Until the first mark, or the first kernel of a model family. It is left out of findings.", ""},
    {"ending", "row", "The time after the model's last work.", "After the last mark, or kernel of a model family. It is left out of findings.", ""},
    {"confidence", "term", "How sure it is that a fix of the named cause saves the named time.", "High: read off the ledger. Medium: rests on a table of GPUs or an assumption that is named. Low: the most that could be gained, seldom reached.", ""},
    {"top_opportunities", "term", "What is worth fixing, the largest saving first; one that is less sure counts less.", "Each has an upper bound on its saving.", "gpuwhy explain FILE 'findings[0]'"},
};
// clang-format on

}  // namespace

const Term* find_column(std::string_view word) {
  const std::string name = term_name(word);
  const auto* found = std::ranges::find(kColumns, std::string_view(name), &Term::name);
  return found == std::end(kColumns) ? nullptr : found;
}

}  // namespace gpuwhy
