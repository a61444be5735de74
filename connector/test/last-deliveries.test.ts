import { describe, expect, test } from "@jest/globals";
import { HttpClient } from "../../test/support/http.ts";
import { until } from "../../test/support/until.ts";
import type { RelayError } from "../src/errors.ts";
import type { Connector } from "../src/index.ts";
import { untilState } from "./kit.ts";
import { holdWaits, Waits } from "./times.ts";
import { useVerificationScene } from "./verification-scene.ts";

const scene = useVerificationScene();
const { stage, bobTrusts, deliver } = scene;
const http = new HttpClient();

/** Both are checked until the test says otherwise: the relay has no answer on whose keys they are. */
async function sendTwo(): Promise<() => void> {
  const answer = Promise.withResolvers<string>();
  scene.proxy.manifest = () => answer.promise;
  for (const message of ["one", "two"]) {
    const body = { from: "agent://alice", to: "agent://bob", message };
    const accepted = await http.post(`${stage.url}/v1/messages/send`, body, {
      "x-api-key": stage.agent("alice").apiKey,
    });
    expect(accepted).toMatchObject({ body: { target_delivery: { can_deliver_realtime: true } } });
  }
  return () => answer.resolve("{}");
}

/** What bob is told, in its order. */
function told(bob: Connector): unknown[] {
  const all: unknown[] = [];
  bob.on("delivery", ({ payload }) => all.push(payload.message));
  bob.on("notice", ({ kind }) => all.push(kind));
  bob.on("state", ({ status }) => all.push(status));
  return all;
}

/** What a reader gets until its loop ends, and what with. */
async function read(bob: Connector): Promise<unknown[]> {
  const all: unknown[] = [];
  try {
    for await (const { payload } of bob) all.push(payload.message);
    all.push("end");
  } catch (error) {
    all.push((error as RelayError).code);
  }
  return all;
}

/** Both came in. @returns ends their check. */
async function cameIn(): Promise<() => void> {
  let frames = 0;
  scene.proxy.toAgent = (frame) => {
    if (frame.frame === "deliver") frames += 1;
    return frame;
  };
  const check = await sendTwo();
  await until("both came in", () => frames === 2);
  return check;
}

describe("What was promised to an agent is handed over, in order, before it is told that its connection ended", () => {
  test("since another connection took it over", async () => {
    await bobTrusts({});
    const [events, loop] = [told(scene.bob), read(scene.bob)];
    const check = await cameIn();
    await stage.online("bob", stage.url, { takeOver: true });
    await scene.proxy.left();
    check();
    expect(await loop).toEqual(["one", "two", "superseded"]);
    expect(events).toEqual(["one", "two", "superseded", "closed"]);
  });

  test.each([
    [4403, "key_revoked"],
    [1008, "policy"],
  ])("with %d", async (closeCode, code) => {
    await bobTrusts({});
    const [events, loop] = [told(scene.bob), read(scene.bob)];
    const check = await cameIn();
    scene.proxy.closeAgents(closeCode);
    await scene.proxy.left();
    check();
    expect(await loop).toEqual(["one", "two", code]);
    expect(events).toEqual(["one", "two", "closed"]);
  });

  test.each([1001, 1011])("with %d, after which it reconnects", async (closeCode) => {
    await bobTrusts({});
    const events = told(scene.bob);
    const check = await cameIn();
    scene.proxy.closeAgents(closeCode);
    await untilState(scene.bob, "reconnecting");
    check();
    await until("both are handed over", () => events.includes("two"));
    expect(events.filter((event) => event === "one" || event === "two")).toEqual(["one", "two"]);
  });

  test("by itself: its loop ends behind them, and close() resolves when they are handed over", async () => {
    await bobTrusts({});
    const check = await cameIn();
    scene.proxy.tell({ frame: "error", code: "rate_limited", message: "", hint: "", retry_after_ms: 1 });
    await until("it has read all of it", () => scene.heard.errors.length === 1);
    const [events, loop] = [told(scene.bob), read(scene.bob)];
    const closed = scene.bob.close();
    await scene.proxy.left();
    check();
    await closed;
    expect(events).toEqual(["one", "two", "closed"]);
    expect(await loop).toEqual(["one", "two", "end"]);
  });
});

/** Deliveries under keys, each another one, whose credentials the relay says nothing of when it is asked. */
function underKeysThatAreLookedUp() {
  let [frames, lookUps] = [0, 0];
  scene.proxy.lookUp = () => {
    lookUps += 1;
    return new Promise(() => {});
  };
  deliver(() => {
    frames += 1;
    return { key_id: `jkt-${String(frames).padStart(43, "A")}` };
  });
  return { cameIn: () => frames, lookedUp: () => lookUps };
}

test("A reply that came before the end is the answer to its question, whatever ended the connection", async () => {
  await bobTrusts({});
  scene.alice.on("delivery", (question) => question.reply({ message: "yes" }));
  const { lookedUp } = underKeysThatAreLookedUp();
  const timeIsOver = holdWaits();
  const reply = scene.bob.ask("agent://alice", {});
  await until("who replied is looked up", () => lookedUp() === 1);
  scene.proxy.closeAgents(4409);
  await scene.proxy.left();
  timeIsOver();
  expect(await reply).toMatchObject({ payload: { message: "yes" } });
});

test("A relay that has look-ups wait holds up no end for longer than two seconds", async () => {
  await bobTrusts({});
  const waits = new Waits();
  const { cameIn } = underKeysThatAreLookedUp();
  for (let n = 0; n < 40; n += 1) await scene.alice.send("agent://bob", { n });
  await until("all came in", () => cameIn() === 40);
  scene.proxy.closeAgents(4409);
  await scene.proxy.left();
  await waits.end(2000);
  await untilState(scene.bob, "closed");
  expect(scene.heard.deliveries).toHaveLength(40);
});
