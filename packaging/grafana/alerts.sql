-- Alerts as queries: each returns a row for what deserves attention, and none otherwise. For ClickHouse 20.3 or later, in the database
-- gpuwhy. Any scheduler can run them: gpuwhy fleet sql "$(...)" --to URL --json.

-- incomplete_runs: ranks are missing an hour after the first one began.
SELECT run_id, count() AS ranks, max(num_ranks) AS expected
FROM gpuwhy.ranks FINAL
GROUP BY run_id, attempt
HAVING ranks < expected AND min(started_unix_s) < toUnixTimestamp(now()) - 3600
ORDER BY run_id;

-- slow_ranks: more than 5 % above the median compute time of the run.
SELECT run_id, rank, node, compute_s, compute_s / median_s - 1 AS slower
FROM (SELECT run_key, rank, sum(buckets_ns[1]) / 1e9 AS compute_s FROM gpuwhy.stages FINAL
      WHERE window_ns > 0 AND content GLOBAL IN (SELECT content FROM gpuwhy.ranks FINAL) GROUP BY run_key, rank) AS r
ANY LEFT JOIN (SELECT run_key, quantileExact(0.5)(one_s) AS median_s
      FROM (SELECT run_key, rank, sum(buckets_ns[1]) / 1e9 AS one_s FROM gpuwhy.stages FINAL
            WHERE window_ns > 0 AND content GLOBAL IN (SELECT content FROM gpuwhy.ranks FINAL) GROUP BY run_key, rank) AS m
      GROUP BY run_key) AS q USING (run_key)
ANY LEFT JOIN (SELECT run_key, rank, run_id, node FROM gpuwhy.ranks FINAL) AS i USING (run_key, rank)
WHERE slower > 0.05
ORDER BY slower DESC, run_id, rank
LIMIT 100;

-- low_mfu: stages of the last day with less than 80 % of the MFU of the 30 days before.
SELECT name AS stage, recent / earlier AS ratio
FROM (SELECT stage_key AS name_key,
             sumIf(toFloat64(model_flops), day >= yesterday()) / sumIf(toFloat64(peak_flops), day >= yesterday()) AS recent,
             sumIf(toFloat64(model_flops), day < yesterday()) / sumIf(toFloat64(peak_flops), day < yesterday()) AS earlier
      FROM gpuwhy.stages FINAL
      WHERE peak_flops > 0 AND day >= today() - 31 AND content GLOBAL IN (SELECT content FROM gpuwhy.ranks FINAL)
      GROUP BY stage_key) AS s
ANY LEFT JOIN (SELECT name_key, name FROM gpuwhy.names) AS n USING (name_key)
WHERE recent < 0.8 * earlier
ORDER BY ratio;
