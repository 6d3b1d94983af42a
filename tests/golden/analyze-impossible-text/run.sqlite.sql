-- Text where kernels have their start.
-- include analyze-model/run.sqlite.sql
UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 'abc' WHERE rowid % 2 = 0;
