import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect, test } from "@jest/globals";
import { UsageError } from "../../deploy/admin/command-line.ts";
import { runAdminCommand } from "../../deploy/admin/commands.ts";
import { mergedNoise } from "../../deploy/admin/merge.ts";
import { AdminClient } from "../support/admin.ts";
import { freePort } from "../support/free-port.ts";
import { given, useRelay } from "../support/use-relay.ts";

/** `npm run admin`, against two pods. */

const PROGRAM = fileURLToPath(new URL("../../deploy/admin.ts", import.meta.url));
const relay = useRelay("alice", "bob");
const first = given(() => AdminClient.make(`${relay.keysFile}.admin`));
const second = given(() => AdminClient.make(first.keyFile, first.key));
const pods = given(
  async () => [await relay.startWsConnector(first.settings), await relay.startWsConnector(second.settings)] as const,
);
const agents = given(() => relay.allOnline(pods, ["alice", "bob"]));

const runAt = (urls: string, ...args: string[]) =>
  runAdminCommand([...args, "--url", urls], { RELAY_ADMIN_KEY_FILE: first.keyFile });
const run = async (...args: string[]) => {
  const { text, unanswered } = await runAt(`${first.url},${second.url}/`, ...args);
  expect(unanswered).toEqual([]);
  return text;
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
  await expect(run("disconnect", "agent://nobody")).rejects.toThrow(/answers 404: No pod has a connection/);
});

test("A pod that does not answer hides none of the others, and is named", async () => {
  const dead = `http://127.0.0.1:${await freePort()}`;
  const commands = [["counts"], ["noisiest"], ["agents", "--key", relay.envelope("bob", "agent.heartbeat").key_id]];
  for (const command of commands) {
    const { text: shown, unanswered } = await runAt(`${dead},${second.url}`, ...command);
    expect(shown).toMatch(/\bpod_|agent:\/\/bob/);
    // Where one pod says it all, no other is missed.
    const missed = command[0] === "agents" ? [] : [expect.stringContaining(`No pod answers at ${dead} (ECONNREFUSED)`)];
    expect(unanswered).toEqual(missed);
  }
  await expect(runAt(dead, "counts")).rejects.toThrow(/No pod answers/);
});

test("A pod with another key hides none of the others, as while a key is being replaced, and what is no admin listener is told from one", async () => {
  const [replaced, other] = [await AdminClient.make(`${relay.keysFile}.replaced`), `${relay.keysFile}.two-lines`];
  await relay.startWsConnector(replaced.settings);
  const { text: shown, unanswered } = await runAt(`${replaced.url},${first.url}`, "counts");
  expect(shown).toMatch(/^window /);
  expect(unanswered).toEqual([`${replaced.url} answers 401: the key file holds another key than the pod's.`]);

  const gateway = await relay.startGateway();
  for (const command of [["counts"], ["disconnect", "bob"]]) {
    await expect(runAt(gateway.url, ...command)).rejects.toThrow(/is no admin listener|answers 404/);
  }
  const page = createServer((_, response) => response.end("{}"));
  await once(page.listen(0, "127.0.0.1"), "listening");
  const { port } = page.address() as AddressInfo;
  await expect(runAt(`http://127.0.0.1:${port}`, "disconnect", "bob")).rejects.toThrow(/\(200\) is no admin listener/);
  page.close();

  await writeFile(other, "two\nlines\n");
  await expect(runAt(first.url, "counts", "--key-file", other)).rejects.toThrow(/must hold one line/);
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
  ]) {
    await expect(runAdminCommand(args, { RELAY_ADMIN_KEY_FILE: "/none" })).rejects.toThrow(UsageError);
  }
  await expect(runAdminCommand(["counts"], {})).rejects.toThrow(/--key-file is required/);
});

test("It ends with 0, with 1 when it is refused or a pod does not answer, and with 2 for an invalid command line", async () => {
  const wrong = await AdminClient.make(`${relay.keysFile}.wrong`);
  const at = (client: AdminClient, url = client.url) => ["--url", url, "--key-file", client.keyFile];
  const ends = await Promise.all([
    command("counts", ...at(first)),
    command("counts", ...at(wrong, first.url)),
    command("counts", ...at(first, `http://127.0.0.1:${await freePort()}`)),
    command("count", ...at(first)),
    command("--help"),
    command("counts", ...at(first, `${first.url},http://127.0.0.1:${await freePort()}`)),
  ]);
  expect(ends.map(({ code }) => code)).toEqual([0, 1, 1, 2, 0, 1]);
  expect(ends.at(-1)?.stdout).toMatch(/^window /);
  expect(ends.map(({ stderr }) => stderr.split("\n")[0])).toEqual([
    "",
    expect.stringMatching(/answers 401: /),
    expect.stringMatching(/^No pod answers at \S+ \(ECONNREFUSED\): --url or ADMIN_PORT says where\.$/),
    "There is no command count: there are counts, agents, disconnect, noisiest.",
    "",
    expect.stringMatching(/^No pod answers at /),
  ]);
  const printed = ends.map(({ stdout, stderr }) => stdout + stderr).join("");
  for (const { key } of [first, wrong]) expect(printed).not.toContain(key);
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

async function command(...args: string[]) {
  const child = spawn(process.execPath, [PROGRAM, ...args], { env: process.env });
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  return { code: code as number | null, stdout, stderr };
}
