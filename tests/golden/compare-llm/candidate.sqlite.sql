-- The same run, with gemv under another name and faster.
-- include compare-llm/base.sqlite.sql
UPDATE StringIds SET value = 'gemv_fast_kernel' WHERE value = 'gemv_kernel';
UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET "end" = 1900 WHERE start = 1800;
UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET "end" = 3650 WHERE start = 3600;
