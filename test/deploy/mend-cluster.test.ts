import { describe, expect, jest, test } from "@jest/globals";
import type { ClusterMember } from "../../deploy/redis/cluster-forming.ts";
import { mendCluster } from "../../deploy/redis/mend-cluster.ts";

const [PRIMARY, OTHER, REPLICA] = ["a", "b", "c"].map((letter) => letter.repeat(40)) as [string, string, string];
const LINES: Readonly<Record<string, string>> = {
  [PRIMARY]: `${PRIMARY} 127.0.0.1:1@11 FLAGS - 0 0 1 connected 0-8191`,
  [OTHER]: `${OTHER} 127.0.0.1:2@12 FLAGS - 0 0 2 connected 8192-16383`,
  [REPLICA]: `${REPLICA} 127.0.0.1:3@13 FLAGS ${PRIMARY} 0 0 1 connected`,
};

/** A node as Redis answers for it. @param knows whom it knows by now. */
function nodeOf(id: string, knows: () => readonly string[], onMeet = () => {}): ClusterMember {
  const flagsOf = (one: string) => [...(one === id ? ["myself"] : []), one === REPLICA ? "slave" : "master"].join(",");
  const nodes = () => knows().map((one) => `${(LINES[one] as string).replace("FLAGS", flagsOf(one))}\n`);
  const answerTo = (command: string) => {
    if (command.startsWith("CLUSTER MEET")) onMeet();
    if (command === "CLUSTER MYID") return `$40\r\n${id}\r\n`;
    if (command === "CLUSTER NODES") return nodes().join("");
    return command === "INFO replication" ? "master_link_status:up\r\n" : "+OK\r\n";
  };
  return { meeting: "127.0.0.1 1 11", ask: async (...commands) => commands.map(answerTo).join("") };
}

test("A mend ends when all nodes know the one that was taken in, not when the first does", async () => {
  const [two, all] = [
    [PRIMARY, OTHER],
    [PRIMARY, OTHER, REPLICA],
  ];
  let hasMet = false;
  let asked = 0;
  const primary = nodeOf(PRIMARY, () => (hasMet ? all : two));
  const other = nodeOf(OTHER, () => {
    if (hasMet) asked += 1;
    return asked > 5 ? all : two;
  });
  const meet = () => {
    hasMet = true;
  };
  await mendCluster([primary, other], [nodeOf(REPLICA, () => (hasMet ? all : [REPLICA]), meet)]);
  expect(asked).toBe(6);
});

test("A mend of a cluster that misses nothing changes nothing, and says so", async () => {
  const two = [PRIMARY, OTHER];
  let hasMet = false;
  const meet = () => {
    hasMet = true;
  };
  const nodes = two.map((id) => nodeOf(id, () => two, meet)) as [ClusterMember, ClusterMember];
  expect([await mendCluster(nodes, []), hasMet]).toEqual(["cluster is whole", false]);
});

describe("A mend of a cluster whose replica was not elected", () => {
  const [GONE, HEIR] = ["d".repeat(40), "e".repeat(40)] as const;

  /** @param others primaries that are here. @returns how many seconds the mend waited until the replica took over. */
  async function waitedS(others: readonly string[], flagsOfGone: string): Promise<number> {
    let seconds = 0;
    let tookOverAt: number | undefined;
    const clock = jest.spyOn(Date, "now").mockImplementation(() => ++seconds * 1000);
    const linesOf = (one: string) => {
      const self = (id: string) => (id === one ? "myself," : "");
      const share = 16_384 / 2 / others.length;
      return [
        ...others.map((id, n) => `${id} :1@11 ${self(id)}master - 0 0 1 connected ${n * share}-${(n + 1) * share - 1}`),
        tookOverAt === undefined
          ? `${GONE} :2@12 master,${flagsOfGone} - 0 0 2 disconnected 8192-16383\n${HEIR} :3@13 ${self(HEIR)}slave ${GONE} 0 0 2 connected`
          : `${HEIR} :3@13 ${self(HEIR)}master - 0 0 3 connected 8192-16383`,
      ].join("\n");
    };
    const answer = (id: string, command: string) => {
      if (command === "CLUSTER FAILOVER TAKEOVER") tookOverAt ??= seconds;
      return command === "CLUSTER MYID" ? `${id}\r\n` : `${command === "CLUSTER NODES" ? linesOf(id) : "+OK"}\n`;
    };
    const members = [...others, HEIR].map((id) => ({
      meeting: "127.0.0.1 1 11",
      ask: async (...commands: readonly string[]) => commands.map((command) => answer(id, command)).join(""),
    }));
    try {
      await mendCluster(members as [ClusterMember, ...ClusterMember[]], []);
    } finally {
      clock.mockRestore();
    }
    return tookOverAt as unknown as number;
  }

  test("waits 20 s for the election, and promotes the replica then", async () => {
    expect(await waitedS([PRIMARY, OTHER], "fail")).toBeGreaterThan(20);
  });

  test.each([
    ["too few primaries are left to elect it", [PRIMARY], "fail"],
    ["an empty node has the address of its primary, which never counts as failed", [PRIMARY, OTHER], "noaddr"],
  ] as const)("promotes the replica at once if %s", async (_why, others, flags) => {
    expect(await waitedS(others, flags)).toBeLessThan(20);
  });
});
