import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, expect, test } from "@jest/globals";
import { mergedNoise } from "../../deploy/admin/answers.ts";
import { AdminClient } from "../support/admin.ts";
import { freePort } from "../support/free-port.ts";
import { given, useRelay } from "../support/use-relay.ts";
import { adminCommand } from "./commands.ts";

/** `npm run admin`, against two pods. */

const relay = useRelay("alice", "bob");
const first = given(() => AdminClient.make(`${relay.keysFile}.admin`));
const second = given(() => AdminClient.make(first.keyFile, first.key));
const replaced = given(() => AdminClient.make(`${relay.keysFile}.replaced`));
const pods = given(
  async () => [await relay.startWsConnector(first.settings), await relay.startWsConnector(second.settings)] as const,
);
const agents = given(() => relay.allOnline(pods, ["alice", "bob"]));

/** All that the command printed: no key of a pod. */
let printed = "";
const runAt = async (urls: string, ...args: string[]) => {
  const answer = await adminCommand([...args, "--url", urls], { RELAY_ADMIN_KEY_FILE: first.keyFile });
  printed += answer.stdout + answer.stderr;
  return answer;
};
afterAll(() => {
  for (const { key } of [first, replaced]) expect(printed).not.toContain(key);
});
const runAtBoth = (...args: string[]) => runAt(`${first.url},${second.url}/`, ...args);
const run = async (...args: string[]) => {
  const { code, stdout, stderr } = await runAtBoth(...args);
  expect([code, stderr]).toEqual([0, ""]);
  return stdout;
};
const json = async (...args: string[]) => JSON.parse(await run(...args, "--json"));

test("counts shows the window once, and each pod", async () => {
  expect(agents.size).toBe(2);
  const shown = await run("counts");
  expect(shown).toMatch(/^window \S+ since \S+Z\nagents 2 online, 0 stale, 0 offline\n\nPOD +CONNECTIONS +REGISTERED/);
  expect(shown.trimEnd().split("\n")).toHaveLength(6);
  const { pods: each, ...ofWindow } = await json("counts");
  expect(each.map(({ connections }: { connections: number }) => connections)).toEqual([1, 1]);
  expect(ofWindow).toMatchObject({ window: { id: await relay.view().windowId() }, agents: { online: 2 } });
});

test("agents shows those of a key, with presence", async () => {
  const { key_id } = relay.envelope("bob", "agent.heartbeat");
  expect(await run("agents", "--key", key_id)).toMatch(
    /^key \S+: 1 agent\n\nAGENT +PRESENCE +LAST SEEN +ONLINE SINCE\nagent:\/\/bob +online +\S+Z +\S+Z\n$/,
  );
});

test("noisiest adds up what a key sent to each pod", async () => {
  const [alice, moved] = [agents.get("alice"), await relay.connect(pods[1])];
  for (let n = 0; n < 3; n += 1) await alice?.ask(relay.envelope("alice", "agent.heartbeat"));
  await moved.ask(relay.envelope("alice", "agent.register"));
  for (let n = 0; n < 4; n += 1) await moved.ask(relay.envelope("alice", "agent.heartbeat"));
  const { key_id } = relay.envelope("alice", "agent.heartbeat");
  const { pods: asked, by_envelopes } = await json("noisiest", "--limit", "1");
  expect(asked).toHaveLength(2);
  expect(by_envelopes).toEqual([{ kind: "key", id: key_id, envelopes: 7, bytes: expect.any(Number) }]);
  expect(await run("noisiest")).toMatch(
    /^Sent to pod_\S+, pod_\S+ in \d+ s, by envelopes\nKIND +ID +ENVELOPES +BYTES\n/,
  );
});

test("disconnect closes the connection of an agent on whatever pod, and says so when there is none", async () => {
  expect(await run("disconnect", "bob")).toContain("The connection of agent://bob is being closed.");
  expect(await agents.get("bob")?.untilClosed()).toBe(1001);
  expect(await runAtBoth("disconnect", "agent://nobody")).toEqual({
    ...{ code: 1, stdout: "" },
    stderr: expect.stringMatching(/answers 404: No pod has a connection/),
  });
});

test("A pod that does not answer hides none of the others, and is named", async () => {
  const dead = `http://127.0.0.1:${await freePort()}`;
  const commands = [["counts"], ["noisiest"], ["agents", "--key", relay.envelope("bob", "agent.heartbeat").key_id]];
  for (const command of commands) {
    const { code, stdout, stderr } = await runAt(`${dead},${second.url}`, ...command);
    expect(stdout).toMatch(/\bpod_|agent:\/\/bob/);
    // Where one pod says it all, no other is missed.
    const missed = `No pod answers at ${dead} (ECONNREFUSED): --url or ADMIN_PORT says where.\n`;
    expect([code, stderr]).toEqual(command[0] === "agents" ? [0, ""] : [1, missed]);
  }
  expect(await runAt(dead, "counts")).toMatchObject({
    code: 1,
    stdout: "",
    stderr: expect.stringMatching(/^No pod answers/),
  });
});

test("A pod with another key hides none of the others, as while a key is being replaced, and what is no admin listener is told from one", async () => {
  await relay.startWsConnector(replaced.settings);
  expect(await runAt(`${replaced.url},${first.url}`, "counts")).toEqual({
    ...{ code: 1, stdout: expect.stringMatching(/^window /) },
    stderr: `${replaced.url} answers 401: the key file holds another key than the pod's.\n`,
  });
  expect((await runAt(replaced.url, "counts")).code).toBe(1);

  const gateway = await relay.startGateway();
  for (const command of [["counts"], ["disconnect", "bob"]]) {
    expect((await runAt(gateway.url, ...command)).stderr).toMatch(/is no admin listener|answers 404/);
  }
  const page = createServer((_, response) => response.end("{}"));
  await once(page.listen(0, "127.0.0.1"), "listening");
  const { port } = page.address() as AddressInfo;
  expect((await runAt(`http://127.0.0.1:${port}`, "disconnect", "bob")).stderr).toMatch(/\(200\) is no admin listener/);
  page.close();

  const other = `${relay.keysFile}.two-lines`;
  await writeFile(other, "two\nlines\n");
  expect((await runAt(first.url, "counts", "--key-file", other)).stderr).toMatch(/must hold one line/);
});

test("What is wrong with a command line is said before anything is asked", async () => {
  for (const args of [
    ["ban", "agent://bob"],
    ["disconect", "bob"],
    ["counts", "more"],
    ["agents"],
    ["agents", "--key", "a", "--issuer", "b"],
    ["disconnect"],
    ["disconnect", "Bob"],
    ["noisiest", "--limit", "0"],
    ["counts", "--unknown"],
    ["counts", "--url", "localhost:9092"],
    ["counts", "--url", "http://user:secret@127.0.0.1:9092"],
    ["counts", "--url", "http://user:1/secret@127.0.0.1:9092"],
    ["counts", "--url", "http://127.0.0.1:9092?key=secret"],
  ]) {
    const { code, stderr } = await adminCommand(args, { RELAY_ADMIN_KEY_FILE: "/none" });
    expect([code, stderr]).toEqual([2, expect.stringContaining("See npm run admin -- --help.")]);
    expect(stderr).not.toContain("secret");
  }
  expect(await adminCommand(["counts"], {})).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^--key-file is required/),
  });
});

test("The help names the commands", async () => {
  expect(await adminCommand(["--help"], {})).toMatchObject({ code: 0, stdout: expect.stringContaining("noisiest") });
});

test("Of several pods a sender counts once for each, whichever lists name it", () => {
  const sender = { kind: "key", id: "k", envelopes: 2, bytes: 10 };
  const answer = {
    ...{ pod: "pod_a", span_seconds: 60, by_envelopes: [sender], by_bytes: [sender] },
    refusals: { since: "2027-01-02", by_sender: [{ kind: "key", id: "k", times: 1 }], by_code: [] },
  };
  const other = { ...answer, pod: "pod_b", by_envelopes: [], span_seconds: 90 };
  expect(mergedNoise([answer, other], 10)).toMatchObject({
    ...{ pods: ["pod_a", "pod_b"], span_seconds: 90 },
    by_envelopes: [{ ...sender, envelopes: 4, bytes: 20 }],
    refusals: { by_sender: [{ kind: "key", id: "k", times: 2 }] },
  });
});
