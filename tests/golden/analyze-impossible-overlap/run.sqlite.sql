-- Every fifth kernel seems to run since the recording began.
-- include analyze-model/run.sqlite.sql
UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 0 WHERE rowid % 5 = 0;
