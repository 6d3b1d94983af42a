-- A graph of four nodes, captured inside ranges of two layers, instantiated as copies and launched twice. Node 23 was captured
-- outside the layers; the original of node 24 is not in the tables, and its own row is that of the copy.
CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);
INSERT INTO StringIds VALUES (1, 'gemm_kernel'), (2, 'silu_kernel'), (3, 'norm_kernel'), (4, 'copy_kernel'),
  (5, 'cudaGraphLaunch_v10000'), (6, 'Graph Node Creation');
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, "end" INTEGER, deviceId INTEGER, correlationId INTEGER,
  globalPid INTEGER, demangledName INTEGER, graphNodeId INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
  (20000, 24000, 0, 8, 16777216, 1, 21), (24100, 26100, 0, 8, 16777216, 1, 22),
  (26200, 27200, 0, 8, 16777216, 3, 23), (27300, 27800, 0, 8, 16777216, 4, 24),
  (30000, 34000, 0, 9, 16777216, 1, 21), (34100, 36100, 0, 9, 16777216, 1, 22),
  (36200, 37200, 0, 9, 16777216, 3, 23), (37300, 37800, 0, 9, 16777216, 4, 24);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER, "end" INTEGER, globalTid INTEGER, correlationId INTEGER,
  nameId INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (19000, 19500, 16777217, 8, 5), (29000, 29500, 16777217, 9, 5);
CREATE TABLE CUDA_GRAPH_NODE_EVENTS(start INTEGER, "end" INTEGER, eventClass INTEGER, globalTid INTEGER, nameId INTEGER,
  graphNodeId INTEGER, originalGraphNodeId INTEGER);
INSERT INTO CUDA_GRAPH_NODE_EVENTS VALUES
  (-8500, -8500, 96, 16777217, 6, 11, NULL), (-6500, -6500, 96, 16777217, 6, 12, NULL),
  (-4500, -4500, 96, 16777217, 6, 13, NULL),
  (-3000, -3000, 96, 16777217, 6, 21, 11), (-2900, -2900, 96, 16777217, 6, 22, 12),
  (-2800, -2800, 96, 16777217, 6, 23, 13), (-2700, -2700, 96, 16777217, 6, 24, 99);
CREATE TABLE NVTX_EVENTS(start INTEGER, "end" INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER, domainId INTEGER);
INSERT INTO NVTX_EVENTS VALUES
  (-10000, -2000, 59, 'capture_model', 16777217, 0),
  (-9000, -7500, 59, '{''Module'': ''model.layers.0.mlp'', ''Inputs'': [[2, 64]]}', 16777217, 0),
  (-7000, -6000, 59, '{''Module'': ''model.layers.1.mlp'', ''Inputs'': [[2, 64]]}', 16777217, 0),
  (18000, 20000, 59, 'execute_context_0(0)_generation_2(2)', 16777217, 0),
  (28000, 30000, 59, 'execute_context_0(0)_generation_2(2)', 16777217, 0);
