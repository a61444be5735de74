import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { until } from "../../../test/support/until.ts";
import { RelayHttp } from "../../src/cli/relay-http.ts";
import { gatewayTransport } from "../../src/cli/transports/gateway.ts";
import { errorOf } from "../kit.ts";
import { nowhere } from "./kit.ts";

type Answering = (request: IncomingMessage, answer: ServerResponse) => void;

const refusal = (status: number, code: string): Answering => {
  const retry = status === 401 ? "fix" : "later";
  return (_, answer) => void answer.writeHead(status).end(JSON.stringify({ ok: false, code, retry, detail: "No." }));
};
/** An edge says it in the place of the relay. */
const edge =
  (status: number): Answering =>
  (_, answer) =>
    void answer.writeHead(status).end("<html>");
const cutOff: Answering = (request) => void request.socket.destroy();
const accepted: Answering = (_, answer) => {
  const target_delivery = { status: "online", can_deliver_realtime: true };
  answer.writeHead(202).end(JSON.stringify({ ok: true, envelope_id: "e-1", target_delivery }));
};

/** Of each request that came, its Idempotency-Key. */
let keys: unknown[];
let answers: Answering[];
const gateway = createServer((request, answer) => {
  keys.push(request.headers["idempotency-key"]);
  request.resume().on("end", () => answers.shift()?.(request, answer));
});

beforeEach(async () => {
  [keys, answers] = [[], []];
  await once(gateway.listen(0, "127.0.0.1"), "listening");
});
afterEach(async () => {
  gateway.closeAllConnections();
  await new Promise((closed) => gateway.close(closed));
});

const address = () => `http://127.0.0.1:${(gateway.address() as AddressInfo).port}`;

/** Sends a message with an API key. */
function sends(url: string, signal = new AbortController().signal) {
  const transport = gatewayTransport("agent://alice", "rk_x", new RelayHttp(url, { env: {}, signal }), signal);
  return transport.send({ to: "agent://bob", payload: { message: "hi" } });
}

describe("What is sent with an API key", () => {
  test.each<[string, string, Answering[]]>([
    ["no answer comes, twice", "unreachable", [cutOff, cutOff]],
    ["the relay cannot tell", "unavailable", [refusal(503, "unavailable")]],
    ["the relay has failed", "internal_error", [refusal(500, "internal_error")]],
    [
      "the first request is still in progress",
      "idempotency_in_progress",
      [cutOff, refusal(409, "idempotency_in_progress")],
    ],
    ["no answer comes, and then a refusal for the moment", "rate_limited", [cutOff, refusal(429, "rate_limited")]],
    ["an edge fails, twice", "unreachable", [edge(502), edge(504)]],
  ])("has an unknown outcome where %s, and says how to go on", async (_, code, given) => {
    answers = [...given];
    const error = await errorOf(sends(address()));
    expect(error).toMatchObject({ code, outcome: "unknown", retry: "later" });
    expect(error.hint).toContain("ask the target before you send it again");
    expect(keys).toEqual(given.map(() => keys[0]));
  });

  test("has an unknown outcome where it is interrupted while it waits for the answer", async () => {
    const caller = new AbortController();
    const sending = errorOf(sends(address(), caller.signal));
    await until("it is sent", () => keys.length === 1);
    caller.abort();
    expect(await sending).toMatchObject({ code: "aborted", outcome: "unknown" });
  });

  test.each<[string, string, Answering[]]>([
    ["the relay refuses it for the moment", "rate_limited", [refusal(429, "rate_limited")]],
    ["what came to the relay twice is refused for good", "invalid_api_key", [cutOff, refusal(401, "invalid_api_key")]],
    ["an edge lets nobody in", "unreachable", [edge(403), edge(403)]],
  ])("is refused where %s", async (_, code, given) => {
    answers = [...given];
    expect(await errorOf(sends(address()))).toMatchObject({ code, outcome: "refused" });
  });

  test("under one that the relay does not know names the variable, which may not be what was meant", async () => {
    answers = [refusal(401, "invalid_api_key")];
    const hint = expect.stringContaining("RELAY_API_KEY");
    expect(await errorOf(sends(address()))).toMatchObject({ code: "invalid_api_key", outcome: "refused", hint });
  });

  test("is refused where no connection came about", async () => {
    expect(await errorOf(sends(await nowhere()))).toMatchObject({ code: "unreachable", outcome: "refused" });
  });

  test("is accepted once where the first answer was lost: the second request has its Idempotency-Key", async () => {
    answers = [cutOff, accepted];
    expect(await sends(address())).toMatchObject({ envelope_id: "e-1" });
    expect(keys).toEqual([expect.any(String), keys[0]]);
  });
});
