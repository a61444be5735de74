import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, jest, test } from "@jest/globals";
import { keysCommand } from "../../../test/local/commands.ts";
import { until } from "../../../test/support/until.ts";
import { shared } from "../fixture.ts";
import { jsonLines } from "../kit.ts";
import { SELF_SIGNED } from "../self-signed.ts";
import { CommandLine, nowhere } from "./shell.ts";

/** What commands say of the way to a relay, and of the relay. */

const line = shared(new CommandLine("alice", "bob-hmac"));

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

const servers: Server[] = [];
afterEach(() => {
  jest.restoreAllMocks();
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

/** @returns its port. */
async function listening(server: Server): Promise<number> {
  servers.push(server);
  await once(server.listen(0, "127.0.0.1"), "listening");
  return (server.address() as AddressInfo).port;
}

async function serving(answer: RequestListener): Promise<string> {
  return `http://127.0.0.1:${await listening(createServer(answer))}`;
}

/** The address of an edge that answers everything so, upgrades also. */
async function edge(status: number, headers: Readonly<Record<string, string>> = {}): Promise<string> {
  const server = createServer((_, answer) => void answer.writeHead(status, headers).end("<html>ok</html>"));
  const lines = Object.entries({ ...headers, "content-length": "0" }).map(([name, value]) => `${name}: ${value}\r\n`);
  server.on("upgrade", (_, socket) => {
    // Whoever has read the answer may reset the connection.
    socket.on("error", () => {}).end(`HTTP/1.1 ${status} No\r\n${lines.join("")}\r\n`);
  });
  return `http://127.0.0.1:${await listening(server)}`;
}

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

  test("finds nothing wrong with a key that relay keygen made, once its record is added, and --register", async () => {
    const { stdout } = await line.run(["keygen", "--agent", "agent://carol"]);
    const added = await keysCommand(line.stage.relay.keysFile, ["add", "--url", line.url], stdout);
    expect(added).toMatchObject({ code: 0, stdout: "" });
    expect(await check("carol.json", "--register")).toMatchObject({ code: 0 });
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
    const edgeUrl = `${(await edge(404)).replace("http", "ws")}/ws`;
    const hint = expect.stringContaining("set RELAY_HTTP_URL to the relay's HTTP address");
    const [ofPod, ofEdge, ofNone] = await Promise.all(
      [pod.url, edgeUrl, (await nowhere()).replace("http", "ws")].map((url) =>
        check(line.keyFile("alice"), "--url", url),
      ),
    );
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
    expect(steps.at(-1)?.hint).toMatch(/RELAY_HTTP_URL(?!.*--url)/);
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

  const COUNTS = { ok: true, online_agents: 1, stale_agents: 0, offline_agents: 0, complete: false };
  const UNAVAILABLE = {
    ok: false,
    code: "unavailable",
    detail: "Partition 3 is out of reach.",
    hint: "Later.",
    retry: "later",
  };

  /** `relay status` of a relay of which a part is out of reach: that of these agents, or of the counts. */
  async function partial(...away: string[]) {
    const url = await serving((request, response) => {
      const agent_id = new URL(request.url ?? "", "http://relay").searchParams.get("agent_id");
      const isAway = away.includes(agent_id ?? "counts");
      const answer = agent_id === null ? COUNTS : { ok: true, agent_id, status: "online", stale_ms: 1000 };
      response.writeHead(isAway ? 503 : 200).end(JSON.stringify(isAway ? UNAVAILABLE : answer));
    });
    return async (...words: string[]) => await line.run(["status", "--url", url, ...words]);
  }

  test("tells of the agents that it can, and of the others why not, and ends with that error's code", async () => {
    const status = await partial("agent://bob");
    const told = await status("alice", "bob", "carol", "--json");
    const { code, hint, retry, detail: message } = UNAVAILABLE;
    expect([told.code, jsonLines(told.stdout)]).toEqual([
      4,
      [
        {
          ok: false,
          relay: COUNTS,
          agents: [
            expect.objectContaining({ agent_id: "agent://alice", status: "online" }),
            { ok: false, agent_id: "agent://bob", code, message, hint, retry },
            expect.objectContaining({ agent_id: "agent://carol", status: "online" }),
          ],
        },
      ],
    ]);
    const text = await status("alice", "bob", "carol");
    const lines = text.stdout.trimEnd().split("\n");
    expect([text.code, lines.length]).toEqual([4, 4]);
    expect(lines[0]).toMatch(/alice.*online/);
    expect(lines[1]).toMatch(/bob.*unavailable/);
  });

  test("tells of agents where the counts cannot be had", async () => {
    const status = await partial("counts");
    const told = await status("alice", "--json");
    expect([told.code, jsonLines(told.stdout)]).toMatchObject([
      4,
      [{ ok: false, relay: { ok: false, code: "unavailable" }, agents: [{ status: "online" }] }],
    ]);
  });

  test("fails as a whole where nothing can be told", async () => {
    const status = await partial("counts", "agent://alice");
    const failed = await status("alice", "--json");
    expect([failed.code, failed.stdout, jsonLines(failed.stderr)]).toMatchObject([4, "", [{ code: "unavailable" }]]);
  });
});

describe("Where nobody vouches for the relay's certificate", () => {
  async function untrusted(): Promise<string[]> {
    const server = createTlsServer(SELF_SIGNED) as unknown as Server;
    return ["--json", "--key", line.keyFile("alice"), "--url", `https://localhost:${await listening(server)}`];
  }

  /** The environment of this process, which Node read when it began, has this value. */
  function setAuthorities(file: string | undefined): void {
    const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env;
    jest.replaceProperty(process, "env", file === undefined ? env : { ...env, NODE_EXTRA_CA_CERTS: file });
  }

  const UNSET = "its certificate is self-signed. NODE_EXTRA_CA_CERTS is not set in this process's environment.";
  const told = {
    message: expect.stringContaining(UNSET),
    hint: expect.stringContaining("in the env member of the MCP configuration"),
  };

  test("NODE_EXTRA_CA_CERTS is told to be missing, and where to set it, by relay check, and by relay listen once", async () => {
    setAuthorities(undefined);
    const checked = await line.run(["check", ...(await untrusted())]);
    expect(checked.code).not.toBe(0);
    const step = expect.objectContaining({ step: "relay", code: "unreachable", ...told });
    expect(jsonLines(checked.stdout)[0].steps).toContainEqual(step);
    const listened = await line.run(["listen", ...(await untrusted())]);
    expect(listened.code).not.toBe(0);
    expect(jsonLines(listened.stderr)).toMatchObject([{ event: "error", ...told }]);
  });

  test.each([
    ["does not exist", "nowhere/other.pem", "cannot be read (ENOENT)"],
    ["is another's", fileURLToPath(import.meta.url), "does not vouch for that certificate"],
  ])("that the file of NODE_EXTRA_CA_CERTS %s is told with its name", async (_, file, why) => {
    setAuthorities(file);
    const { stderr } = await line.run(["listen", ...(await untrusted())]);
    expect(jsonLines(stderr).at(-1).message).toContain(`${file}, which NODE_EXTRA_CA_CERTS names, ${why}`);
  });
});
