// SPDX-License-Identifier: Apache-2.0
//
// Generator of synthetic nsys SQLite exports of any size, with what an analysis of them must
// find.
//
//   make_trace OUT.sqlite KERNELS [--processes N] [--shuffle SEED] [--layers N]
//
// It plants what is hard: several processes whose correlation ids collide, a GPU each; a prefill
// marked by a start/end range that one thread opens while another launches; decode steps made of a
// CUDA graph in node mode, single launches, a copy and a synchronisation; rows in random order.
// Gaps are put between the kernels one by one, each with its cause known, so the truth is a sum of
// what was planted and shares nothing with the code that will be measured. It goes to standard
// output as JSON: nanoseconds by device, stage and bucket.
//
// Kernels are of random kinds. With --layers a prefill and each decode step are a pass through a
// model of that many layers.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <sqlite3.h>

namespace {

using Row = std::vector<std::int64_t>;
constexpr std::int64_t kNull = INT64_MIN;
constexpr std::size_t kMostKept = 1'000'000;  // kernels of a process in memory

// Ids of StringIds.
enum Name : std::int64_t {
  kLaunch = 1,
  kGraphLaunch,
  kSync,
  kCopy,
  kPrefill,
  kDecodeAll,
  kDecodeStep,
  kDomain,
  kFirstKernel,
};
const std::vector<std::string> kNames = {"cudaLaunchKernel_v7000",
                                         "cudaGraphLaunch_v10000",
                                         "cudaStreamSynchronize_v3020",
                                         "cudaMemcpyAsync_v3020",
                                         "prefill",
                                         "decode_all",
                                         "decode_step",
                                         "LLM",
                                         "void ns::gemm_kernel<(int)128>(float *)",
                                         "flash_fwd_kernel",
                                         "rms_norm_kernel",
                                         "ncclDevKernel_AllReduce",
                                         "silu_kernel",
                                         "embedding_kernel",
                                         "rotary_embedding_kernel",
                                         "reshape_and_cache_kernel",
                                         "argmax_kernel"};

// The kernels of a pass, counted from kFirstKernel.
std::vector<int> pass_of(int num_layers) {
  enum Kind { kGemm, kAttention, kNorm, kReduce, kSilu, kEmbedding, kRope, kStore, kSample };
  const std::vector<int> layer = {kNorm,   kGemm, kRope, kStore, kAttention, kGemm,
                                  kReduce, kNorm, kGemm, kSilu,  kGemm,      kReduce};
  std::vector<int> pass = {kEmbedding};
  for (int i = 0; i < num_layers; ++i) {
    pass.insert(pass.end(), layer.begin(), layer.end());
  }
  pass.insert(pass.end(), {kNorm, kGemm, kSample});
  return pass;
}

using Truth = std::map<std::string, std::map<std::string, std::int64_t>>;  // stage -> bucket -> ns

// One process on its GPU: host and GPU clocks that move on as work is laid down.
class Process {
 public:
  Process(int number, std::uint64_t seed, std::vector<int> pass)
      : device_(number), random_(seed), pass_(std::move(pass)) {
    pid_ = (std::int64_t{1} << 48) | (std::int64_t{1000 + number} << 24);
    host_ = 1000 * number;
    gpu_ = host_;
    ranges.push_back({host_ - 50, kNull, 75, main_thread(), kDomain, 1, kNull});
  }

  // A prefill of `prefill_size` kernels and a decode of `num_steps`; of a model, a pass each.
  void request(int prefill_size, int num_steps) {
    prefill_size = pass_.empty() ? prefill_size : static_cast<int>(pass_.size());
    stage_ = "prefill";
    const std::int64_t start = host_;
    open_window(start);
    for (int i = 0; i < prefill_size; ++i) {
      launch(pick(300, 2000), helper_thread());
    }
    synchronise(helper_thread());
    close_window();
    ranges.push_back({start, host_, 60, main_thread(), kPrefill, 1, prefill_size});
    host_ += 100;

    stage_ = "decode";
    const std::int64_t decode = host_;
    open_window(decode);
    for (int step = 0; step < num_steps; ++step) {
      const std::int64_t step_start = host_;
      graph(pass_.empty() ? 8 : static_cast<int>(pass_.size()));
      for (int i = 0; pass_.empty() && i < 6; ++i) {
        launch(pick(100, 900), main_thread());
      }
      copy();
      synchronise(main_thread());
      ranges.push_back({step_start, host_, 59, main_thread(), kDecodeStep, 1, 1});
    }
    close_window();
    ranges.push_back({decode, host_, 59, main_thread(), kDecodeAll, 1, kNull});
    host_ += 100;
  }

  // Rows that are not written yet.
  std::vector<Row> kernels;
  std::vector<Row> calls;
  std::vector<Row> copies;
  std::vector<Row> ranges;
  long long num_kernels = 0;  // of all, also of those that are written
  Truth truth;

 private:
  std::int64_t main_thread() const { return pid_ + 1; }
  std::int64_t helper_thread() const { return pid_ + 2; }
  std::int64_t pick(int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random_);
  }
  void put(const char* bucket, std::int64_t time_ns) { truth[stage_][bucket] += time_ns; }

  // The GPU is idle before each window: synchronise() saw to that. The thread that launches next
  // was not the one that waited, so the idle end of the window before has the cause of a late
  // launch.
  void open_window(std::int64_t start) {
    if (last_tail_ns_ > 0) {
      std::map<std::string, std::int64_t>& buckets = truth[last_stage_];
      buckets["launch_late"] += last_tail_ns_;
      buckets["tail"] -= last_tail_ns_;
      if (buckets["tail"] == 0) {
        buckets.erase("tail");
      }
    }
    idle_from_ = start;
    was_synchronised_ = false;
  }
  void close_window() {
    last_stage_ = stage_;
    last_tail_ns_ = host_ - idle_from_;
    put("tail", last_tail_ns_);
  }

  void call(std::int64_t start, std::int64_t end, std::int64_t thread, Name name) {
    calls.push_back({start, end, thread, correlation_, name});
  }

  void run(std::int64_t start, std::int64_t duration, bool is_node) {
    const int kind = pass_.empty() ? static_cast<int>(pick(0, 4)) : pass_[place_++ % pass_.size()];
    kernels.push_back({start, start + duration, device_, 1, 7, correlation_, pid_,
                       kFirstKernel + kind, pick(1, 64), 128, is_node ? 77 : kNull});
    ++num_kernels;
    put(kind == 3 ? "comm" : "compute", duration);
    gpu_ = start + duration;
    idle_from_ = gpu_;
  }

  // Before the first work the mark is open and the host has not launched. After that the host
  // waits, then it is late until the launch has returned; what was launched before the gap is
  // queued, or inside a graph.
  std::int64_t begin(std::int64_t thread, Name name) {
    host_ += pick(0, 3) == 0 ? pick(2000, 4000) : pick(50, 150);
    const std::int64_t launched = host_;
    call(launched, launched + 40, thread, name);
    host_ += 40;
    const std::int64_t start = std::max(launched + 60, gpu_ + 10);
    if (num_kernels == 0) {
      put("launch_late", start - idle_from_);
    } else if (launched + 40 <= idle_from_) {
      put(name == kGraphLaunch ? "graph" : "queued", start - idle_from_);
    } else {
      const std::int64_t free = was_synchronised_ ? synchronised_until_ : idle_from_;
      if (free > idle_from_) {
        put("sync", free - idle_from_);
      }
      put("launch_late", start - free);
    }
    was_synchronised_ = false;
    return start;
  }

  void launch(std::int64_t duration, std::int64_t thread) {
    run(begin(thread, kLaunch), duration, false);
    ++correlation_;
  }

  void graph(int num_nodes) {
    std::int64_t start = begin(main_thread(), kGraphLaunch);
    for (int i = 0; i < num_nodes; ++i) {
      if (i > 0) {
        start = gpu_ + 25;
        put("graph", 25);
      }
      run(start, pick(80, 400), true);
    }
    ++correlation_;
  }

  void copy() {
    const std::int64_t start = begin(main_thread(), kCopy);
    copies.push_back({start, start + 200, device_, 1, 7, correlation_, pid_, 4096, 2});
    put("copy", 200);
    gpu_ = start + 200;
    idle_from_ = gpu_;
    ++correlation_;
  }

  // The host waits until the GPU has run dry, and a moment longer.
  void synchronise(std::int64_t thread) {
    const std::int64_t end = std::max(host_, gpu_) + 30;
    call(host_, end, thread, kSync);
    ++correlation_;
    // The GPU ran dry inside the call unless it had before.
    was_synchronised_ = host_ <= gpu_;
    host_ = end;
    synchronised_until_ = end;
  }

  int device_;
  std::mt19937_64 random_;
  std::vector<int> pass_;  // kinds of the kernels of a model; empty: at random
  std::size_t place_ = 0;
  std::int64_t pid_ = 0;
  std::int64_t host_ = 0;
  std::int64_t gpu_ = 0;
  std::int64_t idle_from_ = 0;
  std::string last_stage_;         // of the window before
  std::int64_t last_tail_ns_ = 0;  // idle at its end
  bool was_synchronised_ = false;
  std::int64_t synchronised_until_ = 0;
  std::int64_t correlation_ = 1;  // the same ids in every process
  std::string stage_;
};

class Database {
 public:
  explicit Database(const char* path) {
    std::remove(path);
    check(sqlite3_open(path, &connection_));
    execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN");
  }
  ~Database() {
    execute("COMMIT");
    sqlite3_close(connection_);
  }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void execute(const std::string& sql) {
    check(sqlite3_exec(connection_, sql.c_str(), nullptr, nullptr, nullptr));
  }

  void insert(const std::string& table, const std::vector<Row>& rows) {
    if (rows.empty()) {
      return;
    }
    std::string sql = "INSERT INTO " + table + " VALUES (?";
    for (std::size_t i = 1; i < rows[0].size(); ++i) {
      sql += ", ?";
    }
    sqlite3_stmt* statement = nullptr;
    check(sqlite3_prepare_v2(connection_, (sql + ")").c_str(), -1, &statement, nullptr));
    for (const Row& row : rows) {
      for (std::size_t i = 0; i < row.size(); ++i) {
        const int place = static_cast<int>(i) + 1;
        if (row[i] == kNull) {
          sqlite3_bind_null(statement, place);
        } else {
          sqlite3_bind_int64(statement, place, row[i]);
        }
      }
      sqlite3_step(statement);
      check(sqlite3_reset(statement));
    }
    sqlite3_finalize(statement);
  }

 private:
  void check(int code) {
    if (code != SQLITE_OK) {
      std::fprintf(stderr, "make_trace: %s\n", sqlite3_errmsg(connection_));
      std::exit(1);
    }
  }

  sqlite3* connection_ = nullptr;
};

void create_tables(Database& database) {
  // Columns as the exporter of 2022.4 has them, as far as they matter for the size of a row.
  database.execute(
      "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, deviceId INTEGER, "
      "contextId INTEGER,"
      " streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, gridX "
      "INTEGER,"
      " blockX INTEGER, graphNodeId INTEGER);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER, end INTEGER, globalTid INTEGER,"
      " correlationId INTEGER, nameId INTEGER);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start INTEGER, end INTEGER, deviceId INTEGER, "
      "contextId INTEGER,"
      " streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind "
      "INTEGER);"
      "CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER, eventType INTEGER, globalTid INTEGER,"
      " textId INTEGER, domainId INTEGER, uint64Value INTEGER)");
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    database.execute("INSERT INTO StringIds VALUES (" + std::to_string(i + 1) + ", '" + kNames[i] +
                     "')");
  }
}

constexpr std::pair<const char*, std::vector<Row> Process::*> kTables[] = {
    {"CUPTI_ACTIVITY_KIND_KERNEL", &Process::kernels},
    {"CUPTI_ACTIVITY_KIND_RUNTIME", &Process::calls},
    {"CUPTI_ACTIVITY_KIND_MEMCPY", &Process::copies},
    {"NVTX_EVENTS", &Process::ranges}};

// Rows in memory take ten times as much as in the file: they are written from time to time.
void flush(Process& process, Database& database) {
  for (const auto& [table, member] : kTables) {
    database.insert(table, process.*member);
    (process.*member).clear();
  }
}

void write_shuffled(std::vector<Process>& processes, std::mt19937_64& shuffle, Database& database) {
  for (const auto& [table, member] : kTables) {
    std::vector<Row> rows;
    for (Process& process : processes) {
      std::move((process.*member).begin(), (process.*member).end(), std::back_inserter(rows));
    }
    std::shuffle(rows.begin(), rows.end(), shuffle);
    database.insert(table, rows);
  }
}

void print_truth(const std::vector<Process>& processes) {
  std::printf("{");
  for (std::size_t p = 0; p < processes.size(); ++p) {
    std::printf("%s\"cuda:%zu\": {", p == 0 ? "" : ", ", p);
    const char* between_stages = "";
    for (const auto& [stage, buckets] : processes[p].truth) {
      std::printf("%s\"%s\": {", between_stages, stage.c_str());
      const char* between = "";
      for (const auto& [bucket, time_ns] : buckets) {
        std::printf("%s\"%s\": %lld", between, bucket.c_str(), static_cast<long long>(time_ns));
        between = ", ";
      }
      std::printf("}");
      between_stages = ", ";
    }
    std::printf("}");
  }
  std::printf("}\n");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr,
                 "usage: make_trace OUT.sqlite KERNELS [--processes N] [--shuffle SEED] "
                 "[--layers N]\n");
    return 2;
  }
  const long long wanted = std::atoll(argv[2]);
  int num_processes = 2;
  int num_layers = 0;
  std::mt19937_64 shuffle;
  bool is_shuffled = false;
  for (int i = 3; i + 1 < argc; i += 2) {
    if (std::string(argv[i]) == "--processes") {
      num_processes = std::max(1, std::atoi(argv[i + 1]));
    } else if (std::string(argv[i]) == "--layers") {
      num_layers = std::atoi(argv[i + 1]);
    } else if (std::string(argv[i]) == "--shuffle") {
      shuffle.seed(static_cast<std::uint64_t>(std::atoll(argv[i + 1])));
      is_shuffled = true;
    }
  }
  std::vector<Process> processes;
  for (int i = 0; i < num_processes; ++i) {
    processes.emplace_back(i, 20261115 + static_cast<std::uint64_t>(i),
                           num_layers > 0 ? pass_of(num_layers) : std::vector<int>());
  }
  Database database(argv[1]);
  create_tables(database);
  for (Process& process : processes) {
    while (process.num_kernels * num_processes < wanted) {
      process.request(40, 16);
      if (!is_shuffled && process.kernels.size() > kMostKept) {
        flush(process, database);
      }
    }
    if (!is_shuffled) {
      flush(process, database);
    }
  }
  if (is_shuffled) {
    write_shuffled(processes, shuffle, database);
  }
  print_truth(processes);
  return 0;
}
