-- One step less, on another GPU: not comparable.
-- include compare-llm/candidate.sqlite.sql
DELETE FROM NVTX_EVENTS WHERE text = 'decode_step' AND start = 3000;
UPDATE TARGET_INFO_GPU SET name = 'NVIDIA Other' WHERE id = 3;
