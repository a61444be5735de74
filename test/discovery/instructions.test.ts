import { execFile } from "node:child_process";
import { createHmac } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { CLOSE_CODES, ERRORS } from "@agent-relay/shared/contract/errors.ts";
import type { Surface } from "@agent-relay/shared/contract/surface.ts";
import { SURFACES } from "@agent-relay/shared/contract/surfaces.ts";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { makeApiKey, makeEd25519Key } from "../../deploy/keys/make.ts";
import { canonical } from "../support/agent.ts";
import { codeBlock } from "../support/documents.ts";
import { type Pod, TestRelay } from "../support/relay.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { until } from "../support/until.ts";
import { serveWhole } from "../support/whole-relay.ts";

/** The command as the package has it, by the Node that runs the tests. */
const RELAY = `${process.execPath} ${fileURLToPath(new URL("../../connector/bin/relay.mjs", import.meta.url))}`;

const relay = new TestRelay("bob");
const terms = { id: "carol-1", agents: ["agent://carol"] };
const signingKey = makeEd25519Key(terms);
const apiKey = makeApiKey({ ...terms, id: "carol-gateway" });
let pod: Pod;
let text: string;

beforeAll(async () => {
  await relay.start();
  const { api_keys, signing_keys } = relay.keys.file as { api_keys: object[]; signing_keys: object[] };
  await relay.writeKeys({ api_keys: [...api_keys, apiKey.record], signing_keys: [...signing_keys, signingKey.record] });
  pod = await serveWhole(relay, { RELAY_PUBLIC_REQUESTS_PER_MINUTE: "777", RELAY_PROOF_FRESHNESS_MS: "123456" });
  text = await (await fetch(`${pod.url}/llms.txt`)).text();
});
afterAll(async () => {
  await pod.stop();
  await relay.stop();
});

test("The worked program of llms.txt leads from a key to an approved session, as it is printed", async () => {
  const bob = await relay.online(pod, "bob");
  bob.socket.on("message", (data) => {
    const { frame, envelope, session_id } = JSON.parse(String(data));
    if (frame !== "deliver" || envelope.type !== "session.request") return;
    const decision = { to: envelope.from, payload: { session_id } };
    bob.socket.send(JSON.stringify(relay.envelope("bob", "session.approve", decision)));
  });
  await using folder = await temporaryFolder();
  const program = join(folder.path, "agent.mjs");
  await writeFile(program, codeBlock(text, "js agent.mjs"));
  const env = {
    RELAY: pod.url,
    AGENT_ID: "agent://carol",
    KEY_ID: terms.id,
    PRIVATE_KEY: signingKey.privateKey,
    API_KEY: apiKey.apiKey,
    TARGET_ID: "agent://bob",
    HOLD_MS: "50",
  };
  const { stdout } = await promisify(execFile)(process.execPath, [program], { env });
  // The look-up of the session may overtake the delivery of the decision.
  const lines = stdout.split("\n").filter((line) => line !== "session.approve from agent://bob");
  expect(lines).toEqual([
    "self-test: pass",
    "after the hold: online",
    "target: online",
    "delivered in realtime: true",
    "session: approved",
    "closed with 1005",
    "",
  ]);
});

test("Its short way makes a key, passes the check and sends", async () => {
  await using folder = await temporaryFolder();
  const commands = codeBlock(text, "sh connector").replaceAll(
    "npx --yes --package=@agent-relay/connector relay",
    RELAY,
  );
  const [settings, keygen, check, , send] = commands.split("\n") as [string, string, string, string, string];
  const run = async (command: string) => {
    const options = { cwd: folder.path, env: { PATH: process.env.PATH } };
    return (await promisify(execFile)("sh", ["-ec", `${settings}\n${command}`], options)).stdout;
  };
  const record = JSON.parse(await run(keygen));
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
  expect(await run(send)).toContain("agent://other");
});

test("Its variables are those that it tells to set", () => {
  const command = codeBlock(text, "sh");
  const used = /const \{ (.*) \} = process\.env/.exec(codeBlock(text, "js agent.mjs"))?.[1]?.split(", ") ?? [];
  expect(command).toContain(`RELAY=${pod.url} `);
  for (const name of used.filter((name) => name !== "HOLD_MS")) expect(command).toContain(`${name}=`);
});

test("Its test vectors hold for an implementation that is not the relay's", () => {
  const vectors = [...text.matchAll(/^```json test-vector\n(.*)\n```$/gm)].map(([, json]) =>
    JSON.parse(json as string),
  );
  expect(vectors.map(({ alg }) => alg)).toEqual(["ed25519", "hmac-sha256"]);
  for (const { envelope, canonical: expected } of vectors) expect(canonical(envelope)).toBe(expected);
  const { key, canonical: signedText, sig } = vectors[1];
  expect(createHmac("sha256", Buffer.from(key.secret, "base64url")).update(signedText).digest("base64url")).toBe(sig);
});

test("Its limits are those in force, the settings' included", () => {
  expect(text).toContain("- public_requests_per_minute: 777\n");
  expect(text).toContain("- proof_freshness_window_ms: 123456\n");
  expect(text).toContain("- gateway_requests_per_minute: 30\n");
  expect(text).toContain("- stability_hold_ms: 90000\n");
});

test("It names every error, every close code and every surface", () => {
  for (const [code, { hint }] of Object.entries(ERRORS)) {
    const line = text.split("\n").find((one) => one.startsWith(`| ${code} |`));
    expect(line).toContain(`| ${hint} |`);
  }
  for (const { code, reason } of Object.values(CLOSE_CODES)) expect(text).toContain(`| ${code} | ${reason} |`);
  for (const { method, path, aliases } of Object.values<Surface>(SURFACES)) {
    expect(text).toContain(`- ${method} ${pod.url}${path}: `);
    for (const alias of aliases) expect(text).toContain(alias);
  }
});
