import { readdir } from "node:fs/promises";
import { afterEach, describe, expect, jest, test } from "@jest/globals";
import { shared } from "../fixture.ts";
import { jsonLines, next } from "../kit.ts";
import { Waits } from "../times.ts";
import { BOB, ControlSockets, HELLO } from "./control-kit.ts";
import { CommandLine } from "./kit.ts";

const line = shared(new CommandLine("alice", "bob-hmac"));

const as = (name: string) => ["--key", line.keyFile(name)];
const sockets = new ControlSockets(line);
afterEach(() => {
  jest.restoreAllMocks();
});

const bob = () => line.stage.online("bob-hmac", line.url);

describe("relay send, beside a relay listen of its agent,", () => {
  test("goes through the relay listen of the same agent, which stays online", async () => {
    const receiver = await bob();
    const listener = await line.listen("alice");
    const { code, stdout } = await line.run(["send", "--json", ...as("alice"), BOB, HELLO]);
    expect([code, jsonLines(stdout)[0].via]).toEqual([0, "listener"]);
    expect(await next(receiver)).toMatchObject({ from: "agent://alice", payload: { message: "Hello, Bob." } });
    expect(listener.code).toBeUndefined();

    const refused = await line.run(["send", ...as("alice"), "agent://BOB", HELLO]);
    expect(refused.code).toBe(2);
    expect(await listener.stop()).toBe(0);
    expect(await readdir(line.file(".agent-relay/run"))).toEqual([]);
  });

  test("through a listener says within 3 s that the relay is away, and that nothing was sent", async () => {
    const listener = await line.listen("alice");
    await line.shut();
    await listener.reported("reconnecting");
    const waits = new Waits();
    const sending = [["--json"], []].map((json) => line.run(["send", ...json, ...as("alice"), BOB, HELLO]));
    // Each waits to say what it waits for, and the listener to say that there is no connection.
    await waits.end(2000, 4);
    const [asJson, asText] = await Promise.all(sending);
    expect(asJson).toMatchObject({ code: 4, stdout: "" });
    expect(jsonLines(asJson?.stderr ?? "").at(-1)).toMatchObject({ code: "unreachable", outcome: "refused" });
    expect(asText?.stderr).toContain("Outcome: refused.");
    await line.serve();
    await listener.reported("online", 2);
    expect((await line.run(["send", ...as("alice"), BOB, HELLO])).code).toBe(0);
  });

  test("says within 3 s what it waits for, whether as text or as JSON, and sends it when it can", async () => {
    const network = await line.stage.network(line.url);
    const at = ["--url", `http://${network.host}`, ...as("alice")];
    const listener = line.begin(["listen", "--json", ...at]);
    await listener.reported("online");
    network.hold();
    const waits = new Waits();
    const [asText, asJson] = [[], ["--json"]].map((json) => line.begin(["send", ...json, ...at, BOB, HELLO]));
    await waits.end(2000, 2);
    await Promise.all([asText?.wrote("Waiting for"), asJson?.reported("waiting")]);
    network.letGo();
    expect([await asText?.end(), await asJson?.end()]).toEqual([0, 0]);
    expect(asJson?.reports).toMatchObject([{ event: "waiting" }]);
  });

  test("as text says the outcome, too, where something was to be sent", async () => {
    await line.listen("alice");
    await bob();
    const unknown = await line.run(["ask", ...as("alice"), BOB, HELLO, "--timeout", "1"]);
    const { stderr } = await line.run(["send", ...as("alice"), BOB, "hi"]);
    expect(unknown.stderr).toContain("Outcome: unknown.");
    expect(stderr).not.toContain("utcome");
  });

  test("ignores the control socket that a killed relay listen left behind", async () => {
    await sockets.leave(await sockets.left());
    const { code, stdout } = await line.run(["send", "--json", ...as("alice"), BOB, HELLO]);
    expect([code, jsonLines(stdout)[0].via]).toEqual([0, "connection"]);
  });
});
