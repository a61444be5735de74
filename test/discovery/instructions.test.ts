import { execFile } from "node:child_process";
import { createPublicKey, verify } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { beforeAll, expect, test } from "@jest/globals";
import type { Surface } from "relay-protocol/contract/surface.ts";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import { CLOSE_CODES } from "relay-protocol/wire/close-codes.ts";
import { ERRORS } from "relay-protocol/wire/errors.ts";
import { issue, newAgentKeys } from "../../deploy/keys/issue.ts";
import { makeIssuerFile } from "../../deploy/keys/issuers.ts";
import { makeApiKey, makeEd25519Key } from "../../deploy/keys/make.ts";
import { readRecord } from "../../deploy/keys/store.ts";
import { canonical } from "../support/agent.ts";
import { codeBlock } from "../support/documents.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { until } from "../support/until.ts";
import { given, useRelay } from "../support/use-relay.ts";

/** The command as the package has it, by the Node that runs the tests. */
const RELAY = `${process.execPath} ${fileURLToPath(new URL("../../connector/bin/relay.mjs", import.meta.url))}`;

/** The relay of these tests hands out none. */
const OF_PACKAGES: readonly string[] = [SURFACES.packageFile.path, SURFACES.newestConnector.path];

const relay = useRelay("bob");
const terms = { id: "carol-1", agents: ["agent://carol"] };
const signingKey = makeEd25519Key(terms);
const apiKey = makeApiKey({ ...terms, id: "carol-gateway" });
let text: string;
let program: string;

const ISSUER = makeIssuerFile("acme");
const ISSUER_RECORD = {
  issuer: "acme",
  keys: [{ public_key: ISSUER.public_key }],
  agents: ["agent://dave"],
  revoked: [],
};

function withCarol() {
  const { api_keys, signing_keys } = relay.keys.file as { api_keys: object[]; signing_keys: object[] };
  return {
    api_keys: [...api_keys, apiKey.record],
    signing_keys: [...signing_keys, signingKey.record],
    issuers: [ISSUER_RECORD],
  };
}

const pod = given(async () => {
  await relay.writeKeys(withCarol());
  return await relay.startWhole({
    RELAY_PUBLIC_REQUESTS_PER_MINUTE: "777",
    RELAY_PROOF_FRESHNESS_MS: "123456",
    RELAY_ENVELOPES_PER_SECOND: "100",
    RELAY_BYTES_PER_SECOND: "65536",
  });
});
beforeAll(async () => {
  text = await (await fetch(`${pod.url}/llms.txt`)).text();
  program = await (await fetch(`${pod.url}/examples/agent.mjs`)).text();
});

const LISTED = { agent_id: "agent://carol", key_id: terms.id, private_key: signingKey.privateKey };

/** Runs the program in a folder of its own, as carol; `given` are further variables. */
async function runProgram(given: Readonly<Record<string, string>>, key: object = LISTED) {
  await using folder = await temporaryFolder();
  const file = join(folder.path, "agent.mjs");
  await writeFile(file, program);
  const keyFile = join(folder.path, "you.json");
  await writeFile(keyFile, JSON.stringify(key));
  const env = { RELAY: pod.url, KEY_FILE: keyFile, ...given };
  return await promisify(execFile)(process.execPath, [file], { env });
}

test("Its program leads from a key to an approved session, as it is served, and ends", async () => {
  const bob = await relay.online(pod, "bob");
  bob.socket.on("message", (data) => {
    const { frame, envelope, session_id } = JSON.parse(String(data));
    if (frame !== "deliver" || envelope.type !== "session.request") return;
    const decision = { to: envelope.from, payload: { session_id } };
    bob.socket.send(JSON.stringify(relay.envelope("bob", "session.approve", decision)));
  });
  const { stdout } = await runProgram({ RELAY_API_KEY: apiKey.apiKey, TARGET_ID: "agent://bob", HOLD_MS: "50" });
  // The look-up of the session may overtake the delivery of the decision.
  const lines = stdout.split("\n").filter((line) => line !== "session.approve from agent://bob");
  expect(lines).toEqual([
    "self-test: pass",
    "online; waiting 0.05 s, until the connection counts as stable",
    "after the hold: online",
    "target: online",
    "delivered in realtime: true",
    "session: approved",
    "",
  ]);
});

test("Its program takes a key file whose key stands under a credential, as it takes one that the relay lists", async () => {
  const keys = { api_keys: [], signing_keys: [], issuers: [ISSUER_RECORD] };
  const made = issue(ISSUER, keys, { agent: "agent://dave", days: 1 }, newAgentKeys(), Date.now()).keyFile;
  const running = runProgram({ DECISION: "approve" }, made);
  await until("dave is online", async () => {
    const presence = await fetch(`${pod.url}/api/onboarding/check-online?agent_id=${made.agent_id}`);
    return ((await presence.json()) as { status: string }).status === "online";
  });
  const bob = await relay.online(pod, "bob");
  const ask = { to: made.agent_id, payload: { purpose: "Agree on terms.", ttl_minutes: 5 } };
  bob.socket.send(JSON.stringify(relay.envelope("bob", "session.request", ask)));
  expect((await running).stdout).toContain("session: approved");
});

test.each([
  ["approve", "approved"],
  ["reject", "rejected"],
])("Its program answers who asks: DECISION=%s, then a reply, and it ends", async (decision, status) => {
  const bob = await relay.online(pod, "bob");
  const delivered: string[] = [];
  bob.socket.on("message", (data) => {
    const { frame, envelope } = JSON.parse(String(data));
    if (frame === "deliver") delivered.push(envelope.type);
  });
  const running = runProgram({ DECISION: decision });
  await until("carol is online", async () => {
    const presence = await fetch(`${pod.url}/api/onboarding/check-online?agent_id=agent://carol`);
    return ((await presence.json()) as { status: string }).status === "online";
  });
  const ask = { to: "agent://carol", payload: { purpose: "Agree on terms.", ttl_minutes: 5 } };
  bob.socket.send(JSON.stringify(relay.envelope("bob", "session.request", ask)));
  const { stdout } = await running;
  expect(stdout.split("\n").slice(-4)).toEqual([
    "session.request from agent://bob",
    `session: ${status}`,
    "reply: target online",
    "",
  ]);
  await until("bob has the decision and the reply", () => delivered.length === 2);
  expect(delivered).toEqual([`session.${decision}`, "message.reply"]);
});

test("Its program says in one line which variables, which file or which Node it needs", async () => {
  await expect(runProgram({ KEY_FILE: "", TARGET_ID: "agent://bob" })).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^Set KEY_FILE, RELAY_API_KEY\..*session\.request.*\n$/),
  });
  await expect(runProgram({ KEY_FILE: "/no/such.json" })).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^KEY_FILE .*ENOENT.*\n$/),
  });
  await expect(runProgram({ NODE_OPTIONS: "--no-experimental-websocket" })).rejects.toMatchObject({
    code: 1,
    stderr: `agent.mjs needs Node 22 or later; this is Node ${process.versions.node}.\n`,
  });
});

test("Its short way makes a key, passes the check and sends", async () => {
  await using folder = await temporaryFolder();
  const commandsOf = (name: string) => codeBlock(text, name).replaceAll("npx --no relay", RELAY).split("\n");
  const [settings, keygen] = commandsOf("sh connector") as [string, string];
  const online = commandsOf("sh online");
  const [check] = online as [string];
  const run = async (command: string) => {
    const options = { cwd: folder.path, env: { PATH: process.env.PATH } };
    return (await promisify(execFile)("sh", ["-ec", `${settings}\n${command}`], options)).stdout;
  };
  await run(keygen);
  const record = readRecord(await readFile(join(folder.path, "record.json"), "utf8"));
  const { api_keys, signing_keys } = relay.keys.file as { api_keys: object[]; signing_keys: object[] };
  await relay.writeKeys({
    api_keys: [...api_keys, apiKey.record],
    signing_keys: [...signing_keys, signingKey.record, record],
  });
  await until(
    "the relay knows the key",
    async () =>
      await run(check).then(
        () => true,
        () => false,
      ),
    10_000,
  );
  // As it is pasted: every line is reached, for the listener is in the background.
  expect(await run([...online, "kill $!"].join("\n"))).toContain("agent://other");
});

test("Its variables are those that it tells to set", () => {
  const commands = codeBlock(text, "sh program");
  const used = /const \{ (.*) \} = process\.env/.exec(program)?.[1]?.split(", ") ?? [];
  expect(commands).toContain(`RELAY=${pod.url} `);
  for (const name of used.filter((name) => name !== "HOLD_MS")) expect(commands).toContain(`${name.split(" ")[0]}=`);
});

test("Its test vector holds for an implementation that is not the relay's", () => {
  const { alg, key, canonical: expected, sig } = JSON.parse(codeBlock(text, "json test-vector"));
  expect(alg).toBe("ed25519");
  expect(canonical(JSON.parse(expected))).toBe(expected);
  const publicKey = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: key.public_key }, format: "jwk" });
  expect(verify(null, Buffer.from(expected), publicKey, Buffer.from(sig, "base64url"))).toBe(true);
});

test("Its limits are those in force, the settings' included", () => {
  const limits = new Map(
    codeBlock(text, "text limits")
      .split("\n")
      .map((line) => line.split(": ") as [string, string]),
  );
  expect(Object.fromEntries(limits)).toMatchObject({
    public_requests_per_minute: "777",
    proof_freshness_window_ms: "123456",
    gateway_requests_per_minute: "30",
    stability_hold_ms: "90000",
    envelopes_per_second: "100",
    envelopes_burst: "500",
    bytes_per_second: "65536",
    bytes_burst: "131072",
    max_unacknowledged: "8",
  });
});

test("It names every error by what to do, every close code and every surface but files of pages", () => {
  for (const [code, { retry }] of Object.entries(ERRORS)) {
    const line = text.split("\n").find((one) => one.startsWith(`- ${retry} (`));
    expect(line?.split(/[:,] /)).toContain(code);
  }
  for (const { code, reason, reconnect } of Object.values(CLOSE_CODES)) {
    expect(text).toContain(`- ${[code, reason].join(" ").trim()}: ${reconnect ? "yes" : "no"}, `);
  }
  for (const { method, path, group } of Object.values<Surface>(SURFACES)) {
    if (path.startsWith("/assets/") || OF_PACKAGES.includes(path)) continue;
    const line = text.split("\n").find((one) => one.startsWith(`- ${group}: `)) as string;
    const listed = line.split(/[:;] /).find((one) => one.startsWith(`${method} `));
    expect(listed?.slice(method.length + 1).split(", ")).toContain(path);
  }
});
