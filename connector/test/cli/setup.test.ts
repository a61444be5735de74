import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, jest, test } from "@jest/globals";
import { keysCommand } from "../../../test/local/commands.ts";
import { until } from "../../../test/support/until.ts";
import { Connector } from "../../src/index.ts";
import { shared } from "../fixture.ts";
import { jsonLines, record } from "../kit.ts";
import { CommandLine, nowhere } from "./kit.ts";

const line = shared(new CommandLine("alice", "bob-hmac"));

/** `npm run keys`, on the keys file of the relay. */
const keys = (args: readonly string[], input?: string) => keysCommand(line.stage.relay.keysFile, args, input);

const ALICE = "agent://alice";

interface Step {
  readonly step: string;
  readonly ok: boolean;
  readonly message?: string;
  readonly code?: string;
  readonly hint?: string;
  readonly retry?: string;
}

/** `relay check` with a key file. */
async function check(keyFile: string, ...args: string[]) {
  const { code, stdout, stderr } = await line.run(["check", "--json", "--key", keyFile, ...args]);
  expect(stderr).toBe("");
  const [{ ok, steps }] = jsonLines(stdout) as [{ ok: boolean; steps: Step[] }];
  return { code, ok, steps };
}

const edges: Server[] = [];
afterEach(() => {
  jest.restoreAllMocks();
  for (const server of edges.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

/** The address of an edge that answers everything so, upgrades also. */
async function edge(status: number, headers: Readonly<Record<string, string>> = {}): Promise<string> {
  const server = createServer((_, answer) => void answer.writeHead(status, headers).end("<html>ok</html>"));
  const lines = Object.entries({ ...headers, "content-length": "0" }).map(([name, value]) => `${name}: ${value}\r\n`);
  server.on("upgrade", (_, socket) => {
    // Whoever has read the answer may reset the connection.
    socket.on("error", () => {}).end(`HTTP/1.1 ${status} No\r\n${lines.join("")}\r\n`);
  });
  edges.push(server);
  await once(server.listen(0, "127.0.0.1"), "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Why the relay refused a connector of the key file before it was registered. */
async function refusalsAtStart(keyFile: string) {
  const { agent_id: agent, key_id: keyId, private_key: privateKey } = await line.json(keyFile);
  await using connector = new Connector({ url: line.url, agent, key: { keyId, alg: "ed25519", privateKey } });
  const { errors } = record(connector);
  await connector.start();
  return { refusals: errors };
}

describe("relay keygen", () => {
  test("makes a key that, once its record is added, passes check and listens", async () => {
    const made = await line.run(["keygen", "--agent", "agent://carol"]);
    const secret = (await line.json("carol.json")).private_key;
    expect(made.code).toBe(0);
    expect(made.stdout + made.stderr).not.toContain(secret);
    expect(await line.mode("carol.json")).toBe(0o600);

    const add = ["add", "--url", line.url];
    const stderr = expect.stringContaining("one gateway and one connector were asked");
    expect(await keys(add, made.stdout)).toEqual({ code: 0, stdout: "", stderr });
    const { refusals } = await refusalsAtStart("carol.json");
    expect(refusals).toEqual([]);
    expect(await check("carol.json", "--register")).toMatchObject({ code: 0 });
    await line.listen("carol");
    expect(await keys(add, made.stdout)).toMatchObject({ code: 0 });
  });

  test("adds a key that no relay has yet, and says so by the exit code where one runs that does not get it", async () => {
    const made = await line.run(["keygen", "--agent", "agent://erin"]);
    const elsewhere = ["--file", line.file("other.keys.json")];
    expect(await keys(["add", ...elsewhere, "--url", await nowhere()], made.stdout)).toMatchObject({ code: 0 });
    const again = await line.run(["keygen", "--agent", "agent://frank"]);
    const { code } = await keys(["add", ...elsewhere, "--url", line.url, "--wait", "1"], again.stdout);
    expect(code).toBe(3);
    const { signing_keys } = await line.json("other.keys.json");
    expect(signing_keys).toHaveLength(2);
  });

  test("never prints the record of an HMAC key, which holds the secret, but writes it to a private file", async () => {
    const keygen = ["keygen", "--json", "--agent", "agent://dave", "--alg", "hmac-sha256", "--key-id", "dave-1"];
    const made = await line.run(keygen);
    const { secret } = await line.json("dave.json");
    expect(made).toMatchObject({ code: 0, stdout: "" });
    expect(jsonLines(made.stderr)).toMatchObject([
      { event: "key_file", file: "dave.json", record_file: "dave.record.json" },
      { event: "warning" },
    ]);
    expect(made.stderr).not.toContain(secret);
    expect([await line.mode("dave.json"), await line.mode("dave.record.json")]).toEqual([0o600, 0o600]);
    expect((await keys(["add", line.file("dave.record.json"), "--url", line.url])).code).toBe(0);
    const stored = JSON.parse(await readFile(line.stage.relay.keysFile, "utf8"));
    expect(stored.signing_keys).toContainEqual({
      key_id: "dave-1",
      alg: "hmac-sha256",
      secret,
      agents: ["agent://dave"],
    });
  });

  test("never overwrites a key", async () => {
    await line.run(["keygen", "--agent", "agent://erin"]);
    const before = await line.text("erin.json");
    const others = [
      ["agent://frank"],
      ["agent://erin", "--key-id", "erin-2"],
      ["agent://erin", "--alg", "hmac-sha256"],
    ];
    for (const other of others) {
      const again = await line.run(["keygen", "--json", "--out", "erin.json", "--agent", ...other]);
      expect(again).toMatchObject({ code: 1, stdout: "" });
      expect(jsonLines(again.stderr)).toMatchObject([{ event: "error", code: "failed" }]);
    }
    expect(await line.text("erin.json")).toBe(before);
  });

  test("tells a key file that the shell emptied, since the record was sent to it, from another key", async () => {
    await line.write("fay.json", "");
    const emptied = await line.run(["keygen", "--json", "--agent", "agent://fay"]);
    expect(emptied).toMatchObject({ code: 1, stdout: "" });
    expect(await line.text("fay.json")).toBe("");
    await line.write("fay.json", "{}");
    const taken = await line.run(["keygen", "--json", "--agent", "agent://fay"]);
    expect(taken.code).toBe(1);
    expect(taken.stderr).not.toBe(emptied.stderr);
  });

  test("makes records that keys add refuses when they were tampered with, without quoting them", async () => {
    for (const record of ["no json", '{"key_id":"gateway-x","alg":"hmac-sha256","secret":"c2VjcmV0","agents":[]}']) {
      const { code, stderr } = await keys(["add"], record);
      expect(code).toBe(1);
      expect(stderr).not.toContain("c2VjcmV0");
    }
  });
});

describe("relay check", () => {
  test("finds nothing wrong, step by step, and registers nobody", async () => {
    const { code, ok, steps } = await check(line.keyFile("alice"));
    expect([code, ok]).toEqual([0, true]);
    expect(steps.map(({ step }) => step)).toEqual([
      "key",
      "relay",
      "ready",
      "presence",
      "websocket",
      "clock",
      "signature",
    ]);
    expect(steps.every((step) => step.ok)).toBe(true);
    const text = await line.run(["check", "--key", line.keyFile("alice")]);
    expect(text).toMatchObject({ code: 0, stderr: "" });
    for (const { step } of steps) expect(text.stdout).toMatch(new RegExp(`^ok +${step} `, "m"));
    expect((await line.run(["status", "--json", "agent://alice"])).stdout).toContain('"status":"not_seen"');
  });

  test("says what is wrong with a key that the relay knows by another's name", async () => {
    const { alg: _, ...alice } = await line.json("alice.json");
    await line.write("odd.json", { ...alice, alg: "ed25519", agent_id: "agent://bob-hmac" });
    const { code, ok, steps } = await check("odd.json");
    expect([code, ok]).toEqual([7, false]);
    expect(steps.at(-1)).toMatchObject({ step: "signature", ok: false, code: "key_not_allowed" });
  });

  test("says of a bad signature whether the key or the text is another", async () => {
    const alice = await line.json("alice.json");
    const other = Buffer.alloc(32, 9).toString("base64url");
    await line.write("other.json", { ...alice, private_key: other });
    const { code, steps } = await check("other.json");
    expect(code).toBe(7);
    expect(steps.at(-1)).toMatchObject({ step: "signature", code: "bad_signature", retry: "fix" });
    expect(steps.at(-1)?.hint).toContain("private key");
  });

  test("goes no further than a relay that does not answer", async () => {
    const { code, steps } = await check(line.keyFile("alice"), "--url", await nowhere());
    expect(code).toBe(4);
    expect(steps).toMatchObject([
      { step: "key", ok: true },
      { step: "relay", ok: false, code: "unreachable" },
    ]);
  });

  test("names RELAY_HTTP_URL where its address has the websocket alone, and no relay answers over HTTP", async () => {
    const pod = await line.stage.relay.startWsConnector();
    const edge = createServer((_, response) => response.writeHead(404).end());
    await once(edge.listen(0, "127.0.0.1"), "listening");
    const edgeUrl = `ws://127.0.0.1:${(edge.address() as AddressInfo).port}/ws`;
    const hint = expect.stringContaining("set RELAY_HTTP_URL to the relay's HTTP address");
    const [ofPod, ofEdge, ofNone] = await Promise.all(
      [pod.url, edgeUrl, (await nowhere()).replace("http", "ws")].map((url) =>
        check(line.keyFile("alice"), "--url", url),
      ),
    );
    edge.close();
    expect(ofPod?.steps).toContainEqual(expect.objectContaining({ step: "presence", ok: false, hint }));
    for (const reached of [ofEdge, ofNone])
      expect(reached?.steps.at(-1)).toMatchObject({ step: "relay", ok: false, hint });
  });

  test.each([
    [301, {}],
    [301, { location: "/there" }],
    [401, {}],
    [403, {}],
    [400, {}],
    [503, {}],
  ])("gives the advice of relay listen where an edge answers %d %j in the relay's place", async (status, headers) => {
    const url = await edge(status, headers);
    const listener = line.begin(["listen", "--json", "--key", line.keyFile("alice"), "--url", url]);
    await listener.reported("problem");
    const { steps } = await check(line.keyFile("alice"), "--url", url);
    const { step, code, retry, hint = "", message } = steps.at(-1) as Required<Step>;
    const [problem] = listener.reports.filter(({ event }) => event === "problem");
    expect({ step, code, retry }).toEqual({ step: "relay", code: problem.code, retry: problem.retry });
    expect(problem.message).toContain(hint);
    expect(message).toContain(String(status));
    const relayStatus = await line.run(["status", "--json", "--url", url]);
    expect(jsonLines(relayStatus.stderr)).toMatchObject([{ code, hint, retry }]);
  });

  test("takes no page that is answered with 200 for a relay", async () => {
    const { code, steps } = await check(line.keyFile("alice"), "--url", await edge(200));
    expect(code).toBe(4);
    const message = expect.stringContaining("200");
    expect(steps.at(-1)).toMatchObject({ step: "relay", ok: false, code: "unreachable", retry: "fix", message });
  });

  test("names the proxy that it goes through and the variable, without the password", async () => {
    const env = { ...process.env, NO_PROXY: "", no_proxy: "", http_proxy: "" };
    const proxy = (await nowhere()).replace("http://", "");
    jest.replaceProperty(process, "env", { ...env, HTTP_PROXY: `http://user:secret@${proxy}` });
    const { stdout } = await line.run([
      "check",
      "--json",
      "--key",
      line.keyFile("alice"),
      "--url",
      "http://relay.example",
    ]);
    expect(stdout).not.toContain("secret");
    const [{ steps }] = jsonLines(stdout) as [{ steps: Step[] }];
    const { message } = steps.find(({ step }) => step === "proxy") as Step;
    for (const named of ["relay.example:80", `http://${proxy}`, "HTTP_PROXY"]) expect(message).toContain(named);
    expect(steps.at(-1)).toMatchObject({ step: "relay", ok: false });
  });

  test("says which address the relay's documents name where that is another one than was dialled", async () => {
    const dialled = line.url.replace("127.0.0.1", "localhost");
    const { steps } = await check(line.keyFile("alice"), "--url", dialled);
    const { ok, message } = steps.find(({ step }) => step === "address") as Step;
    expect([ok, message]).toEqual([true, expect.stringContaining(`RELAY_BASE_URL=${dialled}`)]);
    expect(message).toContain(line.url);
  });

  test("names RELAY_HTTP_URL, not --url, where that is the address that does not answer", async () => {
    const env = { RELAY_HTTP_URL: await nowhere() };
    const { stdout } = await line.run(["check", "--json", "--key", line.keyFile("alice")], { env });
    const [{ steps }] = jsonLines(stdout) as [{ steps: Step[] }];
    expect(steps.at(-1)?.hint).toMatch(/Check RELAY_HTTP_URL, which names this address\.$/);
  });

  test("says when the relay has lost its Redis, and still checks the signature", async () => {
    await line.stage.relay.redis.kill();
    const { code, steps } = await check(line.keyFile("alice"));
    await line.stage.relay.redis.start();
    expect(code).toBe(4);
    expect(steps).toContainEqual(
      expect.objectContaining({ step: "ready", ok: false, code: "unavailable", retry: "later" }),
    );
    expect(steps).toContainEqual(
      expect.objectContaining({ step: "presence", ok: false, code: "unavailable", retry: "later" }),
    );
    expect(steps).toContainEqual(expect.objectContaining({ step: "signature", ok: true }));
  });
});

describe("relay status", () => {
  test("shows agents and the relay's counts", async () => {
    await line.listen("alice");
    const status = async (...args: string[]) => (await line.run(["status", ...args, ALICE, "agent://nobody"])).stdout;
    const statuses = async () => jsonLines(await status("--json"))[0];
    await until("alice is online", async () => (await statuses()).agents[0].status === "online");
    expect(await statuses()).toMatchObject({
      ok: true,
      relay: { online_agents: 1, stale_agents: expect.any(Number), offline_agents: 0 },
      agents: [{ agent_id: ALICE }, { agent_id: "agent://nobody", status: "not_seen" }],
    });
    const [alice, nobody, relay] = (await status()).split("\n");
    expect(alice).toMatch(new RegExp(`^${ALICE} +online `));
    expect(nobody).toMatch(/^agent:\/\/nobody +not_seen /);
    expect(relay).toContain(line.url);
  });
});

describe("relay", () => {
  test("explains: every command has help, with exit code 0; an invalid command line ends with 2", async () => {
    const { code, stdout } = await line.run(["--help"]);
    const commands = [...stdout.matchAll(/^ {2}relay (\w+) {2,}[A-Z]/gm)].map(([, name]) => name as string);
    expect(code).toBe(0);
    expect(commands).toEqual([
      ...["keygen", "init", "check", "listen", "send", "ask", "request", "approve", "reject"],
      ...["issuer", "issue", "credential", "inspect", "receipt", "verify", "status", "mcp", "completion"],
    ]);
    for (const name of commands) {
      const help = await line.run([name, "--help"]);
      expect([help.code, help.stdout, help.stderr]).toEqual([
        0,
        expect.stringMatching(new RegExp(`^relay ${name}`)),
        "",
      ]);
      // It stands in a package: who has no clone of the repository can run none of its commands.
      expect(stdout + help.stdout).not.toMatch(/\bnpm |\.local\b/);
    }
    expect(await line.run(["fly"])).toMatchObject({ code: 2, stdout: "" });
    for (const words of [
      ["fly"],
      ["send", "--fly"],
      ["listen", "word"],
      ["listen", "--reply"],
      ["request", "agent://bob"],
    ]) {
      const { code, stdout, stderr } = await line.run([...words, "--json"]);
      expect([code, stdout]).toEqual([2, ""]);
      expect(jsonLines(stderr)).toMatchObject([{ event: "error", code: "usage" }]);
    }
  });

  test("has the exit codes that its README lists", async () => {
    const readme = await readFile(new URL("../../README.md", import.meta.url), "utf8");
    const table = /<!-- exit codes[\s\S]*?<!-- \/exit codes -->/.exec(readme)?.[0] ?? "";
    const { stdout } = await line.run(["--help"]);
    const listed = [...table.matchAll(/^\| (\d+) \| (.*) \|$/gm)].map(([, code, words]) => [code, words]);
    expect(listed.length).toBeGreaterThan(0);
    expect([...stdout.matchAll(/^ {2}(\d+) +(.*)$/gm)].map(([, code, words]) => [code, words])).toEqual(listed);
  });
});
