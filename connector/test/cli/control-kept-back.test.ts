import { createInterface } from "node:readline";
import { duplexPair } from "node:stream";
import type { TLSSocket } from "node:tls";
import { afterEach, describe, expect, jest, test } from "@jest/globals";
import { ControlClient } from "../../src/cli/control/client.ts";
import { LiveLines } from "../../src/cli/control/live-lines.ts";
import { shared } from "../fixture.ts";
import { next } from "../kit.ts";
import { ALICE, asker, BOB, ControlSockets, dated, ended } from "./control-kit.ts";
import { CommandLine } from "./kit.ts";

/** Silence that ends a channel, and the look that finds it. Source: docs/security.md#the-control-socket. */
const SILENT_MS = 12_000;

/** Both ends of a channel that a program without the key passes on. */
const channelEnds = () => duplexPair() as unknown as [TLSSocket, TLSSocket];

describe("A channel that a program without the key passes on", () => {
  afterEach(() => {
    jest.useRealTimers();
  });

  test("and then does not keeps nobody waiting for a line", async () => {
    jest.useFakeTimers();
    const [near, far] = channelEnds();
    far.resume();
    const client = new ControlClient(near, "", new AbortController().signal);
    client.write({ receipt: "ses_1" });
    const answer = client.next();
    await jest.advanceTimersByTimeAsync(SILENT_MS);
    expect([near.destroyed, await answer]).toEqual([true, undefined]);
  });

  test("stays open while both ends are there, though they have nothing to say", async () => {
    jest.useFakeTimers();
    const ends = channelEnds();
    const [one, other] = ends.map((end) => new LiveLines(end)) as [LiveLines, LiveLines];
    const told = one.texts[Symbol.asyncIterator]().next();
    await jest.advanceTimersByTimeAsync(10 * SILENT_MS);
    expect(ends.map(({ destroyed }) => destroyed)).toEqual([false, false]);
    other.write("still here");
    await jest.advanceTimersByTimeAsync(0);
    expect(await told).toMatchObject({ value: "still here" });
    for (const end of ends) end.destroy();
  });
});

describe("What a program without the key keeps back", () => {
  const line = shared(new CommandLine("alice", "bob-hmac"));
  const sockets = new ControlSockets(line);
  afterEach(() => sockets.clear());

  test("is not sent later", async () => {
    await line.listen("alice");
    const path = await sockets.of();
    const receiver = await line.stage.online("bob-hmac", line.url);
    const channel = await sockets.dial(path);
    const answers = createInterface({ input: channel })[Symbol.asyncIterator]();
    channel.write(dated(JSON.stringify({ to: BOB, payload: { message: "late" } }), SILENT_MS));
    const answer = String((await answers.next()).value).replace(/^\d+ /, "");
    expect(JSON.parse(answer)).toMatchObject({ event: "refused", outcome: "refused", retry: "later" });
    await ended(channel);
    const hello = { to: BOB, payload: { message: "in time" } };
    expect(await asker(await sockets.dial(path))(hello)).toMatchObject({ event: "accepted" });
    expect(await next(receiver)).toMatchObject({ from: ALICE, payload: hello.payload });
  });
});
