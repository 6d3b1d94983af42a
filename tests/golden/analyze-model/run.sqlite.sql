-- DeepSeek-OCR on an RTX 5090, run eagerly: 818 tokens read, then 64 steps in 707.379 ms, one token each. Times in ns.
-- The lengths are those of a published run of that model and card; each step is told here by four kernels with gaps
-- between them, busy for 30 % of the step. Each step is
-- 100 ns longer than the one before, and step 40 is stretched by 8 ms that steps 41 to 44 give back.
CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);
INSERT INTO StringIds VALUES (1, 'gemv_kernel'), (2, 'cudaLaunchKernel_v7000'), (3, 'LLM'), (4, 'sm120_gemm'),
  (5, 'cudaStreamSynchronize_v3020');
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, "end" INTEGER, deviceId INTEGER, contextId INTEGER,
  streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER,
  gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER, "end" INTEGER, globalTid INTEGER, correlationId INTEGER,
  nameId INTEGER);
CREATE TABLE NVTX_EVENTS(start INTEGER, "end" INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER,
  textId INTEGER, domainId INTEGER, uint64Value INTEGER);
CREATE TABLE TARGET_INFO_GPU(id INTEGER, name TEXT, totalMemory INTEGER, memoryBandwidth INTEGER, clockRate INTEGER,
  smCount INTEGER, cuDevice INTEGER);
INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA GeForce RTX 5090', 34190917632, 1792000000000, 2407000000, 170, 0);
CREATE TEMP TABLE steps AS WITH RECURSIVE step(i, start, "end") AS (SELECT 0, 60000000, 71049702 UNION ALL
  SELECT i + 1, "end", "end" + 11049746 + 100 * i + CASE WHEN i = 39 THEN 8000000 WHEN i BETWEEN 40 AND 43 THEN -2000000 ELSE 0 END
  FROM step WHERE i < 63) SELECT * FROM step;
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1000000, 21000000, 0, 1, 7, 1, 16777216, 4, 4, 64, 1, 1, 128, 1, 1);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT start + 120000 + 2210559 * value, start + 948959 + 2210559 * value, 0, 1, 7,
  4 * i + value + 2, 16777216, 1, 1, 4, 1, 1, 64, 1, 1 FROM steps, json_each('[0, 1, 2, 3]') ORDER BY 1;
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (500000, 510000, 16777217, 1, 2);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT start - 20000, start - 10000, 16777217, correlationId, 2
  FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE correlationId > 1;
INSERT INTO NVTX_EVENTS VALUES
  (-5, NULL, 75, NULL, 16777217, 3, 1, NULL),
  (0, 60000000, 59, 'prefill', 16777217, NULL, 1, 818),
  (60000000, 767379000, 59, 'decode_all', 16777217, NULL, 1, NULL);
INSERT INTO NVTX_EVENTS SELECT start, "end", 59, 'decode_step', 16777217, NULL, 1, 1 FROM steps;
