-- Two GPUs for 2 ms, without marks: 16 steps of 125 us. In each a GPU computes and then meets the other in an all-reduce:
-- cuda:0 computes 110 us and cuda:1 60 us, so that cuda:1 waits there.
CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);
INSERT INTO StringIds VALUES (1, 'sm90_gemm_bf16'), (2, 'cudaLaunchKernel_v7000'),
  (3, 'ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)');
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, "end" INTEGER, deviceId INTEGER, contextId INTEGER,
  streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER,
  gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER, "end" INTEGER, globalTid INTEGER, correlationId INTEGER,
  nameId INTEGER);
CREATE TABLE TARGET_INFO_GPU(id INTEGER, name TEXT, totalMemory INTEGER, memoryBandwidth INTEGER, clockRate INTEGER,
  smCount INTEGER, cuDevice INTEGER);
INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H100 80GB HBM3', 85520809984, 3352320000000, 1980000000, 132, 0),
  (1, 'NVIDIA H100 80GB HBM3', 85520809984, 3352320000000, 1980000000, 132, 1);
WITH RECURSIVE step(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM step WHERE n + 1 < 16),
  gpu(id, compute_ns) AS (VALUES (0, 110 * 1000), (1, 60 * 1000))
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL
  SELECT n * 125 * 1000, n * 125 * 1000 + compute_ns, id, id + 1, 7, n * 4 + id * 2 + 1, 16777216, 1, 1, 132, 1, 1, 128, 1, 1
  FROM step, gpu UNION ALL
  SELECT n * 125 * 1000 + compute_ns, (n + 1) * 125 * 1000, id, id + 1, 7, n * 4 + id * 2 + 2, 16777216, 3, 3, 24, 1, 1, 512, 1, 1
  FROM step, gpu;
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME
  SELECT max(0, start - 9000), max(0, start - 9000) + 2000, 16777217 + deviceId, correlationId, 2 FROM CUPTI_ACTIVITY_KIND_KERNEL;
