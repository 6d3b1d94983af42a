-- A program was profiled, but no CUDA activity was seen.
CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);
CREATE TABLE DIAGNOSTIC_EVENT(timestamp INTEGER, severity INTEGER, text TEXT);
INSERT INTO DIAGNOSTIC_EVENT VALUES (5, 1, 'Profiling has started.'),
  (7, 2, 'No CUDA events collected. Does the process use CUDA?');
