"""Host lists and hostfiles on real hosts: ranges, what holds for one host only, GPUs, rank order."""

import os

import harness
import lab

TELL = ["sh", "-c", "echo $RANK $(hostname) $LOCAL_RANK/$LOCAL_WORLD_SIZE $HOROVOD_CROSS_RANK/"
        "$HOROVOD_CROSS_SIZE $GROUP_RANK gpus=${CUDA_VISIBLE_DEVICES-none} only=${ONLY-none}"]


class Hosts(harness.EndToEnd):
    NODES = 3

    def known_hosts(self, name, *hosts):
        """The testbed's known_hosts with its one key for further names."""
        text = lab.read_text(f"{self.bed.folder}/known_hosts")
        key = " ".join(text.split()[1:3])
        return self.script(text + "".join(f"{host} {key}\n" for host in hosts), name)

    def told(self, *arguments, env=None):
        run = self.hvdrun(*arguments, *TELL, env=env)
        self.assert_code(run, 0)
        return [run.rank_lines()[rank][0] for rank in range(len(run.rank_lines()))]

    def test_hostfile_with_what_holds_for_one_host(self):
        """A user, a port, a key and a variable of one host; a range; GPUs; cyclic ranks."""
        self.bed.set_sshd("node3", ["Port 2222"])
        self.addCleanup(self.bed.set_sshd, "node3", [])
        known = self.known_hosts("known_port", "[node3]:2222")
        key = os.path.join(self.bed.folder, "key")
        # Without the hostfile's own words nobody gets into node3.
        config = self.script(
            f"Host node3\n  User nobody-here\n  UserKnownHostsFile {known}\n"
            f"Host *\n  IdentityFile /nowhere/key\n  User root\n  UserKnownHostsFile {known}\n"
            "  GlobalKnownHostsFile /dev/null\n", "ssh_config")
        hostfile = self.script(
            f"# ranks go round\r\nnode[1-2] slots=2 key={key}\r\n"
            f"node3 gpus=4,6 user=root port=2222 key={key} env.ONLY='of node3'\r\n", "hostfile")
        self.assertEqual(
            self.told("--ssh-config", config, "--hostfile", hostfile, "--rank-order", "cyclic",
                      "-x", "ONLY=all", env={"CUDA_VISIBLE_DEVICES": "7"}),
            ["0 node1 0/2 0/3 0 gpus=7 only=all", "1 node2 0/2 1/3 1 gpus=7 only=all",
             "2 node3 0/2 2/3 2 gpus=4,6 only=of node3", "3 node1 1/2 0/3 0 gpus=7 only=all",
             "4 node2 1/2 1/3 1 gpus=7 only=all", "5 node3 1/2 2/3 2 gpus=4,6 only=of node3"])

    def test_one_gpu_for_each_rank(self):
        self.assertEqual(
            self.told("-H", "node1:4,6,node2:1", "--one-gpu-per-rank",
                      env={"CUDA_VISIBLE_DEVICES": "GPU-3a,MIG-1"}),
            ["0 node1 0/2 0/2 0 gpus=4 only=none", "1 node1 0/2 0/1 0 gpus=6 only=none",
             "2 node2 0/1 1/2 1 gpus=GPU-3a only=none"])

    def test_too_few_gpus_name_the_host(self):
        run = self.hvdrun("-H", "node1:0,1,node2:2", "--one-gpu-per-rank", "true",
                          env={"CUDA_VISIBLE_DEVICES": "0,-1,1"})
        self.assert_code(run, 2)
        self.assert_says(run, "node2: .*2 ranks.*CUDA_VISIBLE_DEVICES=")

    def test_two_names_of_one_machine_are_two_nodes_and_a_warning(self):
        run = self.hvdrun("-H", "node1:1,NODE1:1,node2:1", "hostname")
        self.assert_code(run, 0)
        self.assertEqual(run.rank_lines(), {0: ["node1"], 1: ["node1"], 2: ["node2"]})
        self.assert_says(run, "node1 and NODE1 are one machine")

    def test_a_user_before_a_host_is_for_ssh_alone(self):
        envs = self.environments("-H", "root@node1:1,node2:1")
        self.assertEqual(self.values(envs, "MASTER_ADDR"), ["10.77.0.1"] * 2)
        self.assertEqual(self.values(envs, "HOROVOD_HOSTNAME"), ["node1", "node2"])

    def test_slots_that_stay_empty_are_told(self):
        run = self.hvdrun("-np", 3, "-H", "node1:2,node2:2", "hostname")
        self.assertEqual(run.rank_lines(), {0: ["node1"], 1: ["node1"], 2: ["node2"]})
        self.assert_says(run, "hvdrun: -np 3 of 4 slots: node1 x2, node2 x1\n")

    def test_include_and_exclude_leave_the_others_alone(self):
        self.assertEqual(
            self.told("-H", "node[1-3]:2,nowhere:2", "--include", "node*", "--exclude",
                      "node2@node3:0"),
            ["0 node1 0/2 0/2 0 gpus=none only=none", "1 node1 1/2 0/1 0 gpus=none only=none",
             "2 node3 0/1 1/2 1 gpus=1 only=none"])

    def test_hosts_of_a_scheduler_are_found(self):
        """Names of a PBS job, reached by ssh; -H wins over them."""
        nodes = self.script("node2\nnode1\nnode2\n", "nodes")
        pbs = {"PBS_NODEFILE": nodes, "PBS_JOBID": "9.server"}
        run = self.hvdrun("hostname", env=pbs)
        self.assert_code(run, 0)
        self.assertEqual(run.rank_lines(), {0: ["node2"], 1: ["node2"], 2: ["node1"]})
        self.assert_says(run, r"hosts of PBS job 9.server \(PBS_NODEFILE\): node2:2,node1:1")
        run = self.hvdrun("-np", 4, "hostname", env=pbs)
        self.assert_code(run, 2)
        self.assert_says(run, "3 slots of PBS job 9.server")
        run = self.hvdrun("-H", "node3:1", "hostname", env=pbs)
        self.assertEqual(run.rank_lines(), {0: ["node3"]})

    def test_names_are_used_as_they_are_written(self):
        """Two names that differ after the first dot are two hosts."""
        path = f"{self.bed.folder}/{harness.LAUNCHER}/hosts"  # is its /etc/hosts
        before = lab.read_text(path)
        self.addCleanup(lab.write_text, path, before)
        lab.write_text(path, before + "10.77.0.1 w.1.test\n10.77.0.2 w.2.test\n")
        known = self.known_hosts("known_dotted", "w.1.test", "w.2.test")
        config = self.script(f"Host *\n  User root\n  IdentityFile {self.bed.folder}/key\n"
                             f"  UserKnownHostsFile {known}\n", "dotted_config")
        run = self.hvdrun("--ssh-config", config, "-H", "w.1.test:2,w.2.test:2", "sh", "-c",
                          "echo $(hostname) $HOROVOD_HOSTNAME")
        self.assert_code(run, 0)
        self.assertEqual([lines[0] for _, lines in sorted(run.rank_lines().items())],
                         ["node1 w.1.test", "node1 w.1.test", "node2 w.2.test", "node2 w.2.test"])


if __name__ == "__main__":
    harness.main()
