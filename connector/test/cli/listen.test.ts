import { afterEach, describe, expect, jest, test } from "@jest/globals";
import { until } from "../../../test/support/until.ts";
import { RelayError } from "../../src/errors.ts";
import { FIRST_START } from "../../src/limits.ts";
import { shared } from "../fixture.ts";
import { jsonLines, next, untilState } from "../kit.ts";
import { setTime } from "../times.ts";
import { BOB } from "./control-kit.ts";
import { CommandLine, nowhere } from "./kit.ts";

const line = shared(new CommandLine("alice", "bob-hmac"));

afterEach(() => void jest.restoreAllMocks());

const alice = () => line.stage.online("alice", line.url);

describe("relay listen", () => {
  test("prints each delivery as one line of JSON, and all else on stderr, without a colour", async () => {
    const listener = line.begin(["listen", "--key", line.keyFile("bob-hmac")]);
    await listener.wrote(BOB);
    const sender = await alice();
    await sender.send(BOB, { n: 1 });
    await listener.prints(1);
    expect(listener.lines).toEqual([
      {
        event: "delivery",
        envelope: expect.objectContaining({
          from: "agent://alice",
          to: BOB,
          payload: { n: 1 },
          sig: expect.any(String),
        }),
        verified: "unverified",
        sealed: false,
        received_at_iso: expect.stringMatching(/^\d{4}-.*Z$/),
      },
    ]);
    expect(listener.stderr.trim().split("\n")).toHaveLength(1);
    expect(listener.stderr).toContain(`${line.url.replace("http", "ws")}/ws`);
    expect(listener.stderr).not.toContain("\u001b");
  });

  test("says in one line why it reaches no relay", async () => {
    const url = await nowhere();
    const listener = line.begin(["listen", "--key", line.keyFile("bob-hmac"), "--url", url]);
    await listener.wrote(url);
    expect(listener.stderr.trim().split("\n")).toHaveLength(1);
  });

  test("says once what the relay has against its key, while that may pass", async () => {
    await line.run(["keygen", "--agent", "agent://stranger"]);
    const listener = line.begin(["listen", "--json", "--key", line.file("stranger.json")]);
    await listener.reported("reconnecting");
    const [problem, reconnecting] = listener.reports;
    expect([problem, reconnecting]).toMatchObject([{ event: "problem", code: "unknown_key" }, { code: "unknown_key" }]);
    const { message } = new RelayError("unknown_key");
    expect([problem.message, reconnecting.message].map((text) => text.includes(message))).toEqual([true, false]);
  });

  test("ends the agent's connection elsewhere with --take-over alone", async () => {
    const other = await line.stage.online("bob-hmac", line.url);
    const refused = line.begin(["listen", "--json", "--key", line.keyFile("bob-hmac")]);
    expect(await refused.end()).toBe(6);
    expect(refused.reports).toMatchObject([{ event: "error", code: "superseded_elsewhere", retry: "fix" }]);
    expect(other.state.status).toBe("online");
    await line.listen("bob-hmac", "--take-over");
    await untilState(other, "closed");
    expect(other.state).toMatchObject({ error: { code: "superseded" } });
  });

  test("asks where RELAY_HTTP_URL says whether the agent is online, where its address has the websocket alone", async () => {
    const pod = await line.stage.relay.startWsConnector();
    const listener = line.begin(["listen", "--json", "--key", line.keyFile("bob-hmac"), "--url", pod.url], {
      RELAY_HTTP_URL: line.url,
    });
    await until("it is online", () => listener.reports.some(({ event }) => event === "online"));
  });

  test("goes on for as long as something else answers in the relay's place", async () => {
    setTime(FIRST_START, "refusedUpgradeMs", 0);
    const proxy = await line.stage.proxy(line.url);
    proxy.refusesWith = 403;
    const listener = line.begin(["listen", "--json", "--key", line.keyFile("bob-hmac"), "--url", proxy.url]);
    await until("a refusal was told", () => listener.reports.some(({ message }) => message?.includes("403")));
    proxy.refusesWith = undefined;
    await until("it is online", () => listener.reports.some(({ event }) => event === "online"));
  });

  test("neither prints nor runs a program for what a relay kept for an hour, unless --max-age lets it", async () => {
    const proxy = await line.stage.proxy(line.url);
    proxy.toAgent = (frame) =>
      frame.frame === "deliver"
        ? { ...frame, envelope: { ...frame.envelope, ts: frame.envelope.ts - 3_600_000 } }
        : frame;
    const options = ["--url", proxy.url, "--exec", "echo ran >> ran"];
    const strict = await line.listen("bob-hmac", ...options);
    const sender = await alice();
    await sender.send(BOB, {});
    await strict.reported("problem");
    expect(strict.reports.at(-1)).toMatchObject({ code: "stale_delivery" });
    expect([strict.stdout, await line.text("ran")]).toEqual(["", ""]);
    await strict.stop();

    const patient = await line.listen("bob-hmac", ...options, "--max-age", "0");
    await sender.send(BOB, {});
    await until("the program ran", async () => (await line.text("ran")) !== "");
    expect(patient.lines).toHaveLength(1);
    expect(await line.run(["listen", "--key", line.keyFile("bob-hmac"), "--max-age", "soon"])).toMatchObject({
      code: 2,
    });
  });

  test("waits for a relay that is not there yet", async () => {
    await line.shut();
    const listener = line.begin(["listen", "--json", "--key", line.keyFile("bob-hmac")]);
    await listener.reported("reconnecting");
    expect(listener.reports[0]).toMatchObject({ reason: "unreachable" });
    await line.serve();
    await listener.reported("online");
  });

  test("ends with 6 where another process of this user has its agent, and names it", async () => {
    await line.listen("bob-hmac");
    const { code, stderr } = await line.run(["listen", "--json", "--key", line.keyFile("bob-hmac")]);
    expect([code, jsonLines(stderr).at(-1)]).toMatchObject([
      6,
      { code: "superseded_elsewhere", message: expect.stringContaining(`process ${process.pid} `) },
    ]);
  });

  test("ends with 6 when another connection takes its agent over, and with 7 when its key is refused", async () => {
    const listener = await line.listen("bob-hmac");
    await line.stage.online("bob-hmac", line.url, { takeOver: true });
    expect(await listener.end()).toBe(6);
    expect(listener.reports[0]).toMatchObject({ event: "online", agent_id: BOB });
    expect(listener.stderr).not.toContain("Outcome");
    expect(listener.reports.at(-1)).toMatchObject({ event: "error", code: "superseded" });

    const key = await line.json("bob-hmac.json");
    const env = { RELAY_AGENT: "agent://alice", RELAY_KEY_ID: key.key_id, RELAY_SECRET: key.secret };
    const { code, stderr } = await line.run(["listen", "--json"], { env });
    expect(code).toBe(7);
    expect(jsonLines(stderr).at(-1)).toMatchObject({ event: "error", code: "key_not_allowed" });
    expect(stderr).not.toContain(key.secret);
  });
});

describe("relay listen --stdin", () => {
  test("is an agent for a program in any language: control requests in, answers and deliveries out", async () => {
    const listener = await line.listen("bob-hmac", "--stdin");
    const peer = await alice();
    const ask = (request: object) => listener.stdin.write(`${JSON.stringify(request)}\n`);
    ask({ to: "agent://alice", payload: { n: 1 }, ref: "first" });
    await listener.prints(1);
    expect(listener.lines).toMatchObject([
      {
        event: "accepted",
        ref: "first",
        sealed: false,
        target_delivery: { status: "online", can_deliver_realtime: true },
      },
    ]);
    expect((await next(peer)).payload).toEqual({ n: 1 });

    const { sessionId } = await peer.requestSession(BOB, { purpose: "talk" });
    await listener.prints(2);
    expect(listener.lines[1]).toMatchObject({ event: "delivery", session_id: sessionId });
    ask({ to: "agent://alice", approve: sessionId });
    await listener.prints(3);
    expect(listener.lines[2]).toMatchObject({ event: "accepted", ref: 2, session_status: "approved" });

    listener.stdin.write("no json\n");
    ask({ to: "agent://alice", payload: {}, approve: "both" });
    ask({ to: "agent://ALICE", payload: {} });
    await listener.prints(6);
    expect(
      listener.lines
        .slice(3)
        .map(({ event, ref, code }) => [event, ref, code])
        .sort(),
    ).toEqual([
      ["refused", 3, "usage"],
      ["refused", 4, "usage"],
      ["refused", 5, "invalid_envelope"],
    ]);
    listener.stdin.end();
    expect(await listener.end()).toBe(0);
  });

  test("ends with its input only when every request is answered", async () => {
    const requests = Array.from({ length: 300 }, (_, n) => `${JSON.stringify({ to: BOB, payload: { n } })}\n`).join("");
    const { code, stdout } = await line.run(["listen", "--stdin", "--key", line.keyFile("bob-hmac")], {
      stdin: requests,
    });
    const answers = jsonLines(stdout).filter(({ event }) => event === "accepted");
    expect(answers.map(({ ref }) => ref)).toEqual(Array.from({ length: 300 }, (_, n) => n + 1));
    expect(code).toBe(0);
  });
});
