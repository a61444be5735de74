import { afterEach, describe, expect, jest, test } from "@jest/globals";
import { until } from "../../../test/support/until.ts";
import { NEW_KEY } from "../../src/cli/commands/check.ts";
import { LOOK_MS } from "../../src/cli/commands/request.ts";
import { HttpClient } from "../../src/http-client.ts";
import { FIRST_START } from "../../src/limits.ts";
import { shared } from "../fixture.ts";
import { jsonLines } from "../kit.ts";
import { answerLookUps, said, setTime, Waits } from "../times.ts";
import { CommandLine } from "./shell.ts";

/** Agents of one issuer, which the relay knows and all of them pin; their keys stand in no list. */
class IssuedCommandLine extends CommandLine {
  readonly #agents: readonly string[];

  /** @param names of agents below agent://acme.: their key files are called so. */
  constructor(...names: readonly string[]) {
    super("lister");
    this.#agents = names;
  }

  override async start(): Promise<void> {
    await super.start();
    await this.print("acme.record.json", ["issuer", "new", "--issuer", "acme", "--out", "acme.issuer.json"]);
    const issuers = [await this.json("acme.record.json")];
    const { record, apiKeyRecord } = this.stage.agent("lister");
    await this.stage.relay.writeKeys({ signing_keys: [record], api_keys: [apiKeyRecord], issuers });
    for (const name of this.#agents) {
      await this.print(`${name}.public.json`, ["keygen", "--agent", idOf(name), "--out", `${name}.json`]);
      await this.issue(name);
    }
    await this.shut();
    await this.serve();
  }

  /** Puts a new credential into the agent's key file. @param options of `relay issue`. */
  async issue(name: string, ...options: string[]): Promise<void> {
    const key = ["--key", `${name}.public.json`, ...options];
    await this.print("given.credential", ["issue", "--issuer", "acme.issuer.json", "--agent", idOf(name), ...key]);
    const trust = ["--trust", "acme.record.json"];
    await this.print("result", ["credential", "given.credential", "--key", `${name}.json`, ...trust]);
  }

  /** Writes what a command prints to a file. */
  async print(name: string, args: readonly string[]): Promise<void> {
    const { code, stdout, stderr } = await this.run(args);
    if (code !== 0) throw new Error(stderr);
    await this.write(name, stdout);
  }
}

function idOf(name: string): string {
  return `agent://acme.${name}`;
}

const line = shared(new IssuedCommandLine("ann", "bob"));
const BOB = "agent://acme.bob";

afterEach(() => {
  jest.restoreAllMocks();
});

const as = (name: string) => ["--json", "--key", `${name}.json`];

describe("An agent whose key is listed nowhere", () => {
  test("passes check, is heard by another as verified, and says who vouches for it", async () => {
    const checked = await line.run(["check", ...as("ann"), "--register"]);
    expect([checked.code, jsonLines(checked.stdout)[0].ok]).toEqual([0, true]);
    const bob = await line.listen("bob");
    expect((await line.run(["send", ...as("ann"), BOB, '{"n":1}'])).code).toBe(0);
    await bob.prints(1);
    expect(bob.lines[0]).toMatchObject({
      verified: "agent",
      issuer: "acme",
      sealed: false,
      envelope: { payload: { n: 1 } },
    });
  });

  test("passes check though the relay learns of its issuer a moment later", async () => {
    const answers = [
      { code: "invalid_credential", detail: "unknown_issuer: the relay knows no issuer with this iss." },
    ];
    const asked = answerLookUps(async (path, ask) => {
      const refusal = path.endsWith("/self-test") ? answers.pop() : undefined;
      return refusal === undefined ? await ask() : said(refusal, 403);
    });
    const { code, stdout } = await line.run(["check", ...as("ann")]);
    asked.mockRestore();
    expect([code, answers, jsonLines(stdout)[0].ok]).toEqual([0, [], true]);
  });

  test("is vouched for by the relay alone where nobody pinned its issuer, unless --trust does", async () => {
    const unpinned = await line.json("bob.json");
    await line.write("unpinned.json", { ...unpinned, trusted_issuers: [] });
    for (const [options, verified] of [
      [[], "relay_issuer"],
      [["--trust", "acme.record.json"], "agent"],
    ] as const) {
      const bob = await line.listen("unpinned", ...options);
      await line.run(["send", ...as("ann"), BOB, "{}"]);
      await bob.prints(1);
      expect(bob.lines[0]).toMatchObject({ verified, issuer: "acme" });
      await bob.stop();
    }
  });

  test("with --require-verified hears the gateways that --trust names, and no other", async () => {
    const env = { RELAY_AGENT: "agent://lister", RELAY_API_KEY: line.stage.agent("lister").apiKey };
    const sent = async () => await line.run(["send", BOB, '{"message":"Hi."}'], { env });
    const manifest = await fetch(`${line.url}/.well-known/signing-manifest.json`);
    const { gateway_keys } = (await manifest.json()) as { gateway_keys: object[] };
    await line.write("gateways.json", gateway_keys);
    const strict = await line.listen("bob", "--require-verified");
    expect((await sent()).code).toBe(0);
    await strict.wrote("unverified_delivery");
    await strict.stop();
    const bob = await line.listen("bob", "--require-verified", "--trust", "gateways.json");
    expect((await sent()).code).toBe(0);
    await bob.prints(1);
    expect([strict.lines, bob.lines[0].verified]).toEqual([[], "gateway"]);
  });

  test("is told the same by check and by send where the credential is gone from its file", async () => {
    const { credential: _, ...bare } = await line.json("ann.json");
    await line.write("bare.json", bare);
    const asked = jest.spyOn(HttpClient.prototype, "ask");
    const check = line.begin(["check", ...as("bare")]);
    await until("check has asked", () => asked.mock.calls.some(([path]) => path.endsWith("/self-test")));
    setTime(NEW_KEY, "withinMs", 0);
    expect(await check.end()).toBe(7);
    const proxy = await line.stage.proxy(line.url);
    const send = line.begin(["send", ...as("bare"), "--url", proxy.url, BOB, "{}"]);
    await until("send was refused, and asks again", () => proxy.sent.length >= 2);
    setTime(FIRST_START, "unknownKeyMs", 0);
    expect(await send.end()).toBe(7);
    const { ok, steps } = check.lines[0];
    const [told, said] = [steps.at(-1), send.reports.at(-1)];
    expect([ok, told.step, told.code, said.code]).toEqual([false, "signature", "unknown_key", "unknown_key"]);
    expect(said.hint).toBe(told.hint);
    expect(send.stderr).not.toMatch(/payload\.|\?credential=/);
  });

  test("is told by check why the relay does not take its credential", async () => {
    await line.print("eve.public.json", ["keygen", "--agent", "agent://acme.eve", "--out", "eve.json"]);
    await line.issue("eve", "--aud", "elsewhere.example");
    const { code, stdout } = await line.run(["check", ...as("eve")]);
    expect([code, jsonLines(stdout)[0].steps.at(-1)]).toEqual([
      7,
      expect.objectContaining({
        step: "signature",
        code: "invalid_credential",
        message: expect.stringMatching(/^wrong_relay:/),
      }),
    ]);
  });
});

describe("relay send --seal", () => {
  test("lets nobody but the target read the payload, and seals what answers it", async () => {
    const bob = await line.listen("bob", "--exec", "tee got; env > environment", "--reply");
    const ann = await line.listen("ann");
    const wire = await line.run(["send", ...as("ann"), BOB, '{"secret":"opens"}', "--seal"]);
    expect([wire.code, jsonLines(wire.stdout)[0].via]).toEqual([0, "listener"]);
    await bob.prints(1);
    expect(bob.lines[0]).toMatchObject({ sealed: true, verified: "agent", envelope: { payload: { secret: "opens" } } });
    await ann.prints(1);
    expect(ann.lines[0]).toMatchObject({ sealed: true, envelope: { type: "message.reply" } });
    expect((await line.json("got")).payload).toEqual({ secret: "opens" });
  });

  test("is refused for a target that nobody vouches for, and goes not over HTTP", async () => {
    const env = { RELAY_API_KEY: line.stage.agent("lister").apiKey };
    const { code, stderr } = await line.run(["send", ...as("ann"), "agent://lister", "{}", "--seal"], { env });
    expect([code, jsonLines(stderr).at(-1)?.code]).toEqual([7, "recipient_unknown"]);
  });
});

test("relay ask --seal tells of an open reply, and prints the sealed one", async () => {
  const bob = await line.listen("bob", "--stdin");
  const asking = line.begin(["ask", ...as("ann"), BOB, "{}", "--seal"]);
  await bob.prints(1);
  const { from: to, task_id } = bob.lines[0].envelope;
  const reply = (more: object) => {
    const message = { to, task_id, type: "message.reply", ...more };
    bob.stdin.write(`${JSON.stringify(message)}\n`);
  };
  reply({ payload: { open: true } });
  await asking.reported("delivery");
  expect(asking.reports).toMatchObject([{ event: "delivery", sealed: false, envelope: { payload: { open: true } } }]);
  reply({ payload: { open: false }, seal: true });
  expect(await asking.end()).toBe(0);
  expect(asking.lines).toMatchObject([{ ok: true, sealed: true, envelope: { payload: { open: false } } }]);
});

describe("relay receipt", () => {
  test("prints what relay verify holds valid, by either agent", async () => {
    const [ann, bob] = [await line.listen("ann"), await line.listen("bob")];
    const requested = await line.run(["request", ...as("ann"), BOB, "--purpose", "talk"]);
    const { session_id: session } = jsonLines(requested.stdout)[0];
    await bob.prints(1);
    const early = await line.run(["receipt", ...as("bob"), session]);
    expect([early.code, jsonLines(early.stderr).at(-1)?.code]).toEqual([8, "receipt_incomplete"]);
    expect(jsonLines(early.stderr).at(-1)?.message).toContain("decision");
    expect((await line.run(["approve", ...as("bob"), session])).code).toBe(0);
    await ann.prints(1);
    for (const name of ["ann", "bob"]) {
      await line.write("receipt.json", (await line.run(["receipt", ...as(name), session])).stdout);
      const { code, stdout } = await line.run(["verify", "receipt.json", "--json", "--issuer", "acme.record.json"]);
      expect([code, jsonLines(stdout)[0]]).toMatchObject([0, { session_id: session, decision: "approved" }]);
    }
    await Promise.all([ann.stop(), bob.stop()]);
    const late = await line.run(["receipt", ...as("bob"), session]);
    expect([late.code, jsonLines(late.stderr).at(-1)?.code]).toEqual([8, "receipt_incomplete"]);
  });
});

describe("relay request --wait --receipt", () => {
  test.each([
    ["over a connection of its own", false],
    ["through the relay listen of its agent", true],
  ])("writes a receipt that relay verify holds valid, %s", async (_, listens) => {
    const bob = await line.listen("bob");
    const ann = listens ? await line.listen("ann") : undefined;
    const file = `receipt-of-${listens ? "listener" : "own"}.json`;
    const args = ["request", ...as("ann"), BOB, "--purpose", "talk", "--wait", "--receipt", line.file(file)];
    const waits = new Waits();
    const requested = line.run(args);
    await bob.prints(1);
    expect((await line.run(["approve", ...as("bob"), String(bob.lines[0]?.session_id)])).code).toBe(0);
    waits.endBetween(LOOK_MS, LOOK_MS);
    const { code, stdout } = await requested;
    expect([code, jsonLines(stdout)[1]]).toMatchObject([0, { session_status: "approved", receipt: { version: 1 } }]);
    const verify = await line.run(["verify", file, "--json", "--issuer", "acme.record.json"]);
    expect([verify.code, jsonLines(verify.stdout)[0]]).toMatchObject([0, { decision: "approved" }]);
    await Promise.all([bob.stop(), ann?.stop()]);
  });
});

describe("relay request --wait --receipt of a file", () => {
  const request = (file: string) =>
    line.run(["request", ...as("ann"), BOB, "--purpose", "talk", "--wait", "--receipt", line.file(file)]);

  test.each([
    ["that exists, such as a key file,", "bob.json"],
    ["that cannot be written", "nowhere/receipt.json"],
  ])("%s sends nothing, and changes nothing", async (_, file) => {
    const bob = await line.listen("bob");
    const before = await line.json("bob.json");
    const { code, stdout, stderr } = await request(file);
    expect([code, stdout, jsonLines(stderr).at(-1)]).toMatchObject([1, "", { code: "failed", outcome: "refused" }]);
    await line.run(["send", ...as("ann"), BOB, "{}"]);
    await bob.prints(1);
    expect(bob.lines[0]?.envelope.type).toBe("message.send");
    expect(await line.json("bob.json")).toEqual(before);
  });

  test("leaves none where there is no receipt", async () => {
    const { code } = await request("none.json");
    expect(code).toBe(5);
    await expect(line.mode("none.json")).rejects.toThrow("ENOENT");
  });
});

describe("A key file that is replaced", () => {
  test("gives a listener that runs its next credential, and the agent stays online", async () => {
    const bob = await line.listen("bob");
    const before = (await line.json("bob.json")).credential;
    const now = new Date(Math.ceil((Date.now() + 1) / 1000) * 1000);
    await until("another second", () => Date.now() >= now.getTime());
    await line.issue("bob");
    expect((await line.json("bob.json")).credential).not.toBe(before);
    const revoked = [{ agent: BOB, issued_before: now.toISOString() }];
    const record = await line.json("acme.record.json");
    await line.stage.relay.writeKeys({ issuers: [{ ...record, revoked }] });
    await bob.reported("online", 2);
    expect(bob.code).toBeUndefined();
  });

  test("ends a listener whose credential is revoked, and that has no other", async () => {
    const before = await line.json("bob.json");
    const bob = line.begin(["listen", "--key", line.keyFile("bob")]);
    await bob.wrote("is online");
    const record = await line.json("acme.record.json");
    const now = new Date(Math.floor(Date.now() / 1000) * 1000 + 1000);
    await line.stage.relay.writeKeys({
      issuers: [{ ...record, revoked: [{ agent: BOB, issued_before: now.toISOString() }] }],
    });
    expect(await bob.end()).toBe(7);
    expect(bob.stderr).toContain("Checking whether that has changed.");
    expect(bob.stderr).not.toContain("econnecting");
    expect(await line.json("bob.json")).toEqual(before);
  });
});
