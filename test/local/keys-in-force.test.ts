import { copyFile, mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { beforeAll, describe, expect, test } from "@jest/globals";
import { HttpClient } from "../support/http.ts";
import { until } from "../support/until.ts";
import { given, useRelay } from "../support/use-relay.ts";
import { keysCommand } from "./commands.ts";

const relay = useRelay("alice", "bob-hmac");
const pod = given(() => relay.startWhole());
const http = new HttpClient();

const keyIdOf = (name: string) => (relay.keys.keyFiles.get(name) as { key_id: string }).key_id;
const inFolder = (...names: string[]) => join(dirname(relay.keysFile), ...names);
const keysIn = (file: string, args: string[]) => keysCommand(file, [...args, "--url", pod.url]);

/** A copy of the relay's keys file, which it does not read. */
async function copyOf(name: string): Promise<string> {
  await mkdir(inFolder(name));
  const copy = inFolder(name, "keys.json");
  await copyFile(relay.keysFile, copy);
  return copy;
}

/** Commands, by what a relay does from then on. @param name of what they make. */
const commands = (name: string): readonly (readonly ["accept" | "refuse", string[]])[] => [
  ["accept", ["new", "--listed", "--agent", "agent://eve", "--key-id", `${name}-key`]],
  ["accept", ["new", "--alg", "hmac-sha256", "--agent", "agent://eve.*", "--key-id", `${name}-mac`]],
  ["accept", ["new-api-key", "--agent", "agent://eve", "--key-id", `${name}-api`]],
  ["accept", ["new-issuer", "--issuer", name, "--agents", `agent://${name}.*`, "--out", inFolder(`${name}.issuer`)]],
  ["refuse", ["revoke", keyIdOf("alice")]],
  ["refuse", ["revoke", keyIdOf("bob-hmac")]],
  ["refuse", ["revoke", "--agent", "agent://acme.x", "--issued-before", "now"]],
  ["refuse", ["revoke", "--agent", "*", "--issuer", "globex", "--issued-before", "now"]],
  ["refuse", ["remove-issuer", "initech"]],
  ["refuse", ["revoke", gatewayKeyId]],
];

let gatewayKeyId: string;
beforeAll(async () => {
  const { body } = await http.get(`${pod.url}/.well-known/signing-manifest.json`);
  gatewayKeyId = body.gateway_keys[0].key_id;
  const issuers = ["acme", "globex", "initech"].map(async (name) => {
    const options = ["--agents", `agent://${name}.*`, "--out", inFolder(`${name}.issuer`)];
    expect((await keysIn(relay.keysFile, ["new-issuer", "--issuer", name, ...options])).code).toBe(0);
  });
  await Promise.all(issuers);
});

describe("A command of npm run keys", () => {
  test("prints what it made, and ends with 3, where the relay that runs reads another file", async () => {
    const runs = commands("elsewhere").map(async ([verb, args], n) => {
      const { code, stdout, stderr } = await keysIn(await copyOf(`elsewhere-${n}`), [...args, "--wait", "1"]);
      return [
        args,
        code,
        stdout !== "",
        stderr.includes(`the relay at ${pod.url} does not show after 1 s that it ${verb}s `),
      ];
    });
    expect(await Promise.all(runs)).toEqual(
      commands("elsewhere").map(([, args]) => [args, 3, /^new(?:-api-key)?$/.test(args[0] as string), true]),
    );
  });

  test("ends with 3 where it issues for an issuer that the relay that runs does not know", async () => {
    const copy = await copyOf("issuing");
    const issuer = inFolder("umbrella.issuer");
    await keysIn(copy, [
      "new-issuer",
      "--issuer",
      "umbrella",
      "--agents",
      "agent://u.*",
      "--out",
      issuer,
      "--wait",
      "0",
    ]);
    const issue = ["new", "--agent", "agent://u.a", "--issuer-file", issuer, "--wait", "1"];
    expect((await keysIn(copy, issue)).code).toBe(3);
  });

  test("returns when what it did is in force at the relay that runs", async () => {
    const issue = ["new", "--agent", "agent://acme.x", "--issuer-file", inFolder("acme.issuer")];
    expect(await keysIn(relay.keysFile, issue)).toMatchObject({ code: 0, stdout: "" });
    const runs = commands("here").map(async ([verb, args]) => {
      const { code, stderr } = await keysIn(relay.keysFile, args);
      return [args, code, stderr.includes(`The relay at ${pod.url} ${verb}s `)];
    });
    expect(await Promise.all(runs)).toEqual(commands("here").map(([, args]) => [args, 0, true]));
    const alice = await relay.connect(pod);
    expect(await alice.ask(relay.envelope("alice", "agent.register"))).toMatchObject({ code: "unknown_key" });
  });

  test("says of an API key that was revoked only whether the relay can read its keys file, and ends with 3 where not", async () => {
    const [first, second] = [`${keyIdOf("alice")}-gateway`, `${keyIdOf("bob-hmac")}-gateway`];
    const copy = await copyOf("revoking");
    const revoked = await keysIn(copy, ["revoke", first, "--wait", "1"]);
    expect(revoked.code).toBe(0);
    expect(revoked.stderr).not.toContain(`refuses ${first}`);
    await writeFile(relay.keysFile, "none");
    const isDegraded = async () => (await http.get(`${pod.url}/ready`)).body.degraded?.includes("keys_file") === true;
    await until("the relay says that it cannot", isDegraded);
    expect(await keysIn(copy, ["revoke", second, "--wait", "1"])).toMatchObject({ code: 3 });
  });
});
