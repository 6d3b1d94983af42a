# SPDX-License-Identifier: Apache-2.0
"""A real ClickHouse cluster of two shards with two replicas each, and ZooKeeper, in a folder of its own on loopback.

Every process dies with the one that started it, whatever way that ends, and is ended by its own id."""
import ctypes
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

ZOOKEEPER_JAR = pathlib.Path("/usr/share/java/zookeeper.jar")
NODES = {1: (1, "a"), 2: (1, "b"), 3: (2, "a"), 4: (2, "b")}  # node -> shard, replica

CONFIG = """<?xml version="1.0"?>
<yandex>
  <logger><level>warning</level><log>{d}/server.log</log><errorlog>{d}/error.log</errorlog></logger>
  <listen_host>127.0.0.1</listen_host>
  <http_port>{http}</http_port><tcp_port>{tcp}</tcp_port>
  <interserver_http_port>{inter}</interserver_http_port><interserver_http_host>127.0.0.1</interserver_http_host>
  <max_connections>256</max_connections><max_concurrent_queries>100</max_concurrent_queries>
  <uncompressed_cache_size>0</uncompressed_cache_size><mark_cache_size>67108864</mark_cache_size>
  <path>{d}/data/</path><tmp_path>{d}/tmp/</tmp_path><user_files_path>{d}/files/</user_files_path>
  <format_schema_path>{d}/schemas/</format_schema_path>
  <users_config>{d}/users.xml</users_config><default_profile>default</default_profile>
  <default_database>default</default_database><timezone>UTC</timezone><mlock_executable>false</mlock_executable>
  <remote_servers><fleet>{shards}</fleet></remote_servers>
  <zookeeper><node><host>127.0.0.1</host><port>{zookeeper}</port></node>
    <session_timeout_ms>4000</session_timeout_ms></zookeeper>
  <macros><shard>{shard}</shard><replica>{replica}</replica></macros>
  <distributed_ddl><path>/clickhouse/task_queue/ddl</path></distributed_ddl>
  <!-- A node that is killed right after its first inserts has more parts that ZooKeeper does not know than others, and would not start. -->
  <merge_tree><replicated_max_ratio_of_wrong_parts>1</replicated_max_ratio_of_wrong_parts></merge_tree>
</yandex>
"""
USERS = """<?xml version="1.0"?>
<yandex>
  <profiles><default><max_memory_usage>4000000000</max_memory_usage><load_balancing>random</load_balancing></default></profiles>
  <users>
    <default><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default>
    <guarded><password>{secret}</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></guarded>
  </users>
  <quotas><default><interval><duration>3600</duration><queries>0</queries><errors>0</errors><result_rows>0</result_rows>
    <read_rows>0</read_rows><execution_time>0</execution_time></interval></default></quotas>
</yandex>
"""
SECRET = "s3cret-of-the-test"


def missing():
    """What this test needs and the machine does not have, or nothing."""
    if not shutil.which("clickhouse-server"):
        return "clickhouse-server"
    if not shutil.which("java") or not ZOOKEEPER_JAR.exists():
        return "ZooKeeper"
    return ""


def die_with_parent():
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def free_ports(count):
    """Below those that the system gives to outgoing connections: a node that was killed wants its port again."""
    ports = []
    while len(ports) < count:
        port = random.randrange(12000, 32000)
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in ports:
            ports.append(port)
    return ports


class Cluster:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        ports = free_ports(13)
        self.zookeeper_port = ports[12]
        self.http = {n: ports[n - 1] for n in NODES}
        self.tcp = {n: ports[n + 3] for n in NODES}
        inter = {n: ports[n + 7] for n in NODES}
        self.running = {}
        shards = "".join(
            "<shard><internal_replication>true</internal_replication>" + "".join(
                f"<replica><host>127.0.0.1</host><port>{self.tcp[n]}</port></replica>"
                for n, (s, _) in NODES.items() if s == shard) + "</shard>" for shard in (1, 2))
        for n, (shard, replica) in NODES.items():
            d = self.folder / f"n{n}"
            for name in ("data", "tmp", "files", "schemas"):
                (d / name).mkdir(parents=True)
            (d / "config.xml").write_text(CONFIG.format(d=d, http=self.http[n], tcp=self.tcp[n], inter=inter[n],
                                                        shards=shards, zookeeper=self.zookeeper_port,
                                                        shard=shard, replica=replica))
            (d / "users.xml").write_text(USERS.format(secret=SECRET))

    def url(self, n):
        return f"http://127.0.0.1:{self.http[n]}"

    def urls(self, *order):
        return ",".join(self.url(n) for n in (order or NODES))

    def spawn(self, name, command):
        log = open(self.folder / f"{name}.out", "ab")
        self.running[name] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder,
                                              preexec_fn=die_with_parent)
        log.close()

    def start_zookeeper(self):
        data = self.folder / "zookeeper"
        data.mkdir(exist_ok=True)
        config = self.folder / "zoo.cfg"
        config.write_text(f"tickTime=500\ndataDir={data}\nclientPort={self.zookeeper_port}\n"
                          "clientPortAddress=127.0.0.1\nadmin.enableServer=false\nmaxClientCnxns=0\n")
        self.spawn("zookeeper", ["java", "-Xmx256m", "-cp", f"/etc/zookeeper/conf:{ZOOKEEPER_JAR}",
                                 "-Dzookeeper.log.dir=" + str(self.folder), "-Dzookeeper.root.logger=WARN,CONSOLE",
                                 "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(config)])
        self.until(150, "ZooKeeper", lambda: socket.create_connection(("127.0.0.1", self.zookeeper_port), 1).close())

    def start(self, n):
        self.spawn(f"n{n}", ["clickhouse-server", f"--config-file={self.folder}/n{n}/config.xml"])

    def wait_up(self, n):
        def probe():
            if self.running[f"n{n}"].poll() is not None:
                self.start(n)  # somebody's outgoing connection may have had its port for a moment
            urllib.request.urlopen(self.url(n) + "/ping", timeout=2).read()
        self.until(150, f"node {n}", probe)

    def has_session(self, n):
        try:
            urllib.request.urlopen(self.url(n) + "/", data=b"SELECT count() FROM system.zookeeper WHERE path = '/clickhouse/task_queue/ddl'", timeout=5).read()
        except urllib.error.HTTPError as error:
            raise ConnectionError(error.read().decode()[:200]) from error

    def until(self, seconds, what, probe):
        deadline = time.monotonic() + seconds
        while True:
            try:
                probe()
                return
            except OSError:
                if time.monotonic() > deadline:
                    logs = "".join(log.read_text(errors="replace")[-1500:] for log in self.folder.glob("*/error.log"))
                    raise AssertionError(f"{what} does not come up: {logs}")
                time.sleep(0.1)

    def kill(self, name):
        process = self.running.pop(name)
        process.kill()
        process.wait()

    def __enter__(self):
        try:
            self.start_zookeeper()
            for n in NODES:
                self.start(n)
            for n in NODES:
                self.wait_up(n)
            # 18.16 dies of a statement for the cluster that comes before its first session with ZooKeeper (zkutil::ZooKeeper::createImpl).
            for n in NODES:
                self.until(60, f"ZooKeeper's session of node {n}", lambda n=n: self.has_session(n))
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self):
        for name in list(self.running):
            self.kill(name)

    def __exit__(self, *_):
        self.stop()

    def query(self, n, sql, timeout=60):
        try:
            return urllib.request.urlopen(self.url(n) + "/", data=sql.encode(), timeout=timeout).read().decode()
        except urllib.error.HTTPError as error:
            raise AssertionError(f"node {n}: {sql[:200]}: {error.read().decode()[:500]}") from error

    def synced(self, n, table):
        """Waits until a replica has all that its shard has; its session with ZooKeeper may still be on its way back."""
        deadline = time.monotonic() + 60
        while True:
            try:
                self.query(n, f"SYSTEM SYNC REPLICA {table}", timeout=60)
                return
            except AssertionError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)
