-- A prefill and a decode of two steps on one GPU, marked in words of its own. Times in ns.
--
-- host  read prompt 0..1000            answer 1000..5000: tokens 1000..3000 and 3000..5000
-- GPU   gemm 300..900, 900..1500       step 1: gemv 1800..2000, nccl 2100..2300, copy 2250..2400
--       (the second runs into decode)  step 2: gemv 3600..3800 launched after a sync, then nothing
CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);
INSERT INTO StringIds VALUES (1, 'void ns::sm90_gemm<(int)128, float>(float *)'), (2, 'gemv_kernel'),
  (3, 'ncclDevKernel_AllReduce(args)'), (4, 'cudaLaunchKernel_v7000'), (5, 'cudaStreamSynchronize_v3020'),
  (6, 'cudaMemcpyAsync_v3020'), (7, 'odd | name`'), (8, 'app');
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, "end" INTEGER, deviceId INTEGER, contextId INTEGER,
  streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER,
  gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
  (900, 1500, 0, 1, 7, 2, 16777216, 1, 1, 8, 1, 1, 128, 1, 1),
  (300, 900, 0, 1, 7, 1, 16777216, 1, 1, 8, 1, 1, 128, 1, 1),
  (1800, 2000, 0, 1, 7, 3, 16777216, 2, 2, 4, 1, 1, 64, 1, 1),
  (2100, 2300, 0, 1, 7, 4, 16777216, 3, 3, 4, 1, 1, 64, 1, 1),
  (3600, 3800, 0, 1, 7, 7, 16777216, 2, 2, 4, 1, 1, 64, 1, 1),
  (4000, 4010, 0, 1, 7, 99, 16777216, 7, 7, 1, 1, 1, 32, 1, 1);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start INTEGER, "end" INTEGER, deviceId INTEGER, contextId INTEGER,
  streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (2250, 2400, 0, 1, 8, 5, 16777216, 4096, 2);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER, "end" INTEGER, globalTid INTEGER, correlationId INTEGER,
  nameId INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (100, 150, 16777217, 1, 4), (200, 250, 16777217, 2, 4),
  (1600, 1650, 16777217, 3, 4), (1700, 1750, 16777217, 4, 4), (1900, 1950, 16777217, 5, 6),
  (2000, 3100, 16777217, 6, 5), (3500, 3550, 16777217, 7, 4);
CREATE TABLE NVTX_EVENTS(start INTEGER, "end" INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER,
  textId INTEGER, domainId INTEGER, uint64Value INTEGER);
INSERT INTO NVTX_EVENTS VALUES (-5, NULL, 75, NULL, 16777217, 8, 1, NULL),
  (0, 1000, 59, 'read prompt', 16777217, NULL, 1, 512), (1000, 5000, 59, 'answer', 16777217, NULL, 1, NULL),
  (1000, 3000, 59, 'token', 16777217, NULL, 1, 1), (3000, 5000, 59, 'token', 16777217, NULL, 1, 1);
CREATE TABLE TARGET_INFO_GPU(id INTEGER, name TEXT, totalMemory INTEGER, memoryBandwidth INTEGER, clockRate INTEGER,
  smCount INTEGER, cuDevice INTEGER);
INSERT INTO TARGET_INFO_GPU VALUES (0, 'Intel(R) UHD', 0, 0, 0, 0, 0), (3, 'NVIDIA Test', 1024, 3000, 2000, 16, 0);
