-- All kernels end before they start.
-- include analyze-model/run.sqlite.sql
UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = "end", "end" = start;
