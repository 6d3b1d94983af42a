-- The recording of analyze-llm, marked in words of its own: "read prompt", "answer" and "token" in domain app.
-- include analyze-llm/run.sqlite.sql
UPDATE StringIds SET value = 'app' WHERE value = 'LLM';
DELETE FROM NVTX_EVENTS WHERE domainId = 0;
UPDATE NVTX_EVENTS SET text = 'read prompt' WHERE text = 'prefill';
UPDATE NVTX_EVENTS SET text = 'answer' WHERE text = 'decode_all';
UPDATE NVTX_EVENTS SET text = 'token' WHERE text = 'decode_step';
