import { createPublicKey, verify } from "node:crypto";
import { readFile } from "node:fs/promises";
import { describe, expect, test } from "@jest/globals";
import { testVectors } from "relay-protocol/signing/test-vectors.ts";
import { rowsBetween } from "../../test/support/documents.ts";
import { relayAddress } from "../src/address.ts";
import { backoffMs, jitteredMs } from "../src/backoff.ts";
import { decodeBase64url, encodeBase64url } from "../src/base64url.ts";
import { BoundedQueue } from "../src/bounded-queue.ts";
import { signedPart } from "../src/canonical.ts";
import { Clock } from "../src/clock.ts";
import { CONNECTOR_ERRORS, finalClose, RELAY_ERRORS } from "../src/errors.ts";
import { readFrame } from "../src/frames.ts";
import { HttpClient } from "../src/http-client.ts";
import { importSigningKey } from "../src/keys.ts";
import { Peers } from "../src/peers.ts";
import type { AgentKey, Envelope, TrustedKey } from "../src/types.ts";
import { testAgent } from "./kit.ts";

const readme = await readFile(new URL("../README.md", import.meta.url), "utf8");
const addresses = JSON.parse(
  await readFile(new URL("../../connector-python/tests/addresses.json", import.meta.url), "utf8"),
);
const protocol = await readFile(new URL("../../docs/protocol.md", import.meta.url), "utf8");

describe("Signing", () => {
  test.each(testVectors())(
    "agrees with the relay's test vector of $alg",
    async ({ alg, key, envelope, canonical, sig }) => {
      const signed = { ...envelope, sig } as Envelope;
      expect(signedPart(signed)).toBe(canonical);
      const keyId = envelope.key_id;
      const [agentKey, trusted] = (
        alg === "ed25519"
          ? [
              { keyId, alg, privateKey: key.private_key },
              { keyId, alg, publicKey: key.public_key },
            ]
          : [
              { keyId, alg, secret: key.secret },
              { keyId, alg, secret: key.secret },
            ]
      ) as [AgentKey, TrustedKey];
      const name = alg === "ed25519" ? "Ed25519" : "HMAC";
      const bytes = await crypto.subtle.sign(
        name,
        await importSigningKey(agentKey),
        new TextEncoder().encode(canonical),
      );
      expect(encodeBase64url(new Uint8Array(bytes))).toBe(sig);

      const http = new HttpClient("http://127.0.0.1:1", false);
      const trust = { [signed.from]: [trusted] };
      const peers = new Peers({ trust, http, relay: "127.0.0.1:1", clock: new Clock() });
      await peers.start();
      const { verifier } = peers;
      expect(await verifier.check(signed)).toEqual({ verified: "agent" });
      expect(await verifier.check({ ...signed, payload: { n: "\ud800" } })).toBe("forged");
    },
  );

  test("with an Ed25519 seed makes what node:crypto verifies", async () => {
    const { key, trusted } = testAgent("alice");
    const text = new TextEncoder().encode("any text");
    const sig = await crypto.subtle.sign("Ed25519", await importSigningKey(key), text);
    const jwk = { kty: "OKP", crv: "Ed25519", x: (trusted as { publicKey: string }).publicKey };
    expect(verify(null, text, createPublicKey({ key: jwk, format: "jwk" }), Buffer.from(sig))).toBe(true);
  });
});

describe("base64url", () => {
  test.each([[""], ["AA"], ["AAA"], ["_-8"], ["AAAA"]])("%j is read and written back", (text) => {
    expect(encodeBase64url(decodeBase64url(text) as Uint8Array)).toBe(text);
  });

  test.each([["A"], ["AB"], ["AAA="], ["+/8"], ["AA A"], ["AA\n"]])("%j is no base64url", (text) => {
    expect(decodeBase64url(text)).toBeUndefined();
  });
});

test("A notice to slow down says what the relay reads of one connection", () => {
  const notice = { notice: "slow_down", envelopes_per_second: 200, bytes_per_second: 524_288 };
  expect(readFrame(JSON.stringify({ frame: "notice", ...notice }))).toEqual({
    frame: "notice",
    notice: { kind: "slow_down", envelopesPerSecond: 200, bytesPerSecond: 524_288 },
  });
});

describe("The address", () => {
  test.each([
    ["http://127.0.0.1:8080", "ws://127.0.0.1:8080/ws", "http://127.0.0.1:8080", "127.0.0.1:8080"],
    ["https://Relay.example:443/", "wss://relay.example/ws", "https://relay.example", "relay.example"],
    ["https://relay.example/base/", "wss://relay.example/base/ws", "https://relay.example/base", "relay.example"],
    ["ws://relay.example:80", "ws://relay.example/ws", "http://relay.example", "relay.example"],
    ["wss://relay.example:80/relay", "wss://relay.example:80/relay", "https://relay.example:80", "relay.example:80"],
    ["ws://relay.example/agents/live", "ws://relay.example/agents/live", "http://relay.example", "relay.example"],
    ["ws://relay.example/base/ws", "ws://relay.example/base/ws", "http://relay.example/base", "relay.example"],
  ])("%s leads to %s", (given, websocket, base, host) => {
    const address = { websocket, base, host };
    expect(relayAddress(given)).toEqual(address);
    expect(relayAddress(new URL(given))).toEqual(address);
  });

  describe("of the table that the connector for Python and npm run keys are held to", () => {
    test("has the host and the path of the URL standard", () => {
      for (const [url, host] of Object.entries(addresses.hosts)) {
        expect([url, relayAddress(url).host]).toEqual([url, host]);
      }
      for (const [url, websocket] of Object.entries(addresses.paths)) {
        expect([url, relayAddress(url).websocket]).toEqual([url, websocket]);
      }
    });

    test.each(Object.entries<string[]>(addresses.refused).flatMap(([told, urls]) => urls.map((url) => [url, told])))(
      "%j is refused, and the error says what to write",
      (url, told) => {
        expect(() => relayAddress(url as string)).toThrow(new TypeError(`url: ${told}`));
      },
    );
  });

  test("that is refused over HTTP is named, and neither its password nor its query", () => {
    const users = ["user:secret", "user:/secret", "user:1/secret", "user:1?secret", "user:1#secret", "user:\\secret"];
    const addresses = users.map((user) => `http://${user}@relay.example`);
    for (const http of [...addresses, new URL("http://relay.example?token=secret")]) {
      expect(() => relayAddress("http://relay.example", http)).toThrow(/^httpUrl: (?!.*secret)/);
    }
  });

  test("over HTTP is another one where that is told", () => {
    expect(relayAddress("ws://127.0.0.1:8082/ws", "https://relay.example/base/")).toEqual({
      websocket: "ws://127.0.0.1:8082/ws",
      base: "https://relay.example/base",
      host: "127.0.0.1:8082",
    });
  });
});

describe("Waits between attempts", () => {
  test("are random, up to a bound that doubles until five seconds", () => {
    expect([0, 1, 2, 3, 4, 5, 20].map((attempt) => backoffMs(attempt, 1))).toEqual([
      250, 500, 1000, 2000, 4000, 5000, 5000,
    ]);
    expect(backoffMs(3, 0)).toBe(0);
    expect(backoffMs(2, 0.5)).toBe(500);
  });

  test("that the relay asked for are kept, and at most half as long again", () => {
    expect([jitteredMs(1000, 0), jitteredMs(1000, 1)]).toEqual([1000, 1500]);
  });
});

describe("The bounded queue", () => {
  test("drops nothing of others for the sender with the most", async () => {
    const queue = new BoundedQueue<string>(3, ([sender]) => sender as string);
    for (const item of ["a1", "b1", "b2", "b3", "b4", "c1"]) queue.push(item);
    expect([await queue.take(), await queue.take(), await queue.take()]).toEqual(["a1", "b4", "c1"]);
  });

  test("gives what is left after the end, then ends; readers that wait end at once", async () => {
    const queue = new BoundedQueue<number>(2, () => "one");
    const waits = queue.take();
    queue.push(1);
    queue.push(2);
    expect(await waits).toBe(1);
    queue.end();
    queue.push(3);
    expect([await queue.take(), await queue.take()]).toEqual([2, undefined]);
  });

  test("throws what ended it, after what is left", async () => {
    const queue = new BoundedQueue<number>(2, () => "one");
    queue.push(1);
    queue.end(new Error("why"));
    expect(await queue.take()).toBe(1);
    await expect(queue.take()).rejects.toThrow("why");
  });
});

describe("The catalogue of errors", () => {
  test("has every code that the relay sends over the websocket", () => {
    const sent = rowsBetween(protocol, "errors").filter(([, , websocket]) => websocket === "yes");
    expect(Object.keys(RELAY_ERRORS).sort()).toEqual(sent.map(([code = ""]) => code.slice(1, -1)).sort());
  });

  test("ends for good after the closes that the protocol names, and no other", () => {
    for (const [code, , reconnect] of rowsBetween(protocol, "close codes")) {
      expect([code, finalClose(Number(code)) === undefined ? "yes" : "no"]).toEqual([code, reconnect]);
    }
    expect(finalClose(1006)).toBeUndefined();
  });

  test("stands in the README as it is", () => {
    const entries = Object.entries(CONNECTOR_ERRORS);
    const expected = entries.map(([code, { retry, message, hint }]) => [`\`${code}\``, retry, message, hint]);
    expect(rowsBetween(readme, "connector errors")).toEqual(expected);
  });

  test("has each code once", () => {
    const codes = [...Object.keys(RELAY_ERRORS), ...Object.keys(CONNECTOR_ERRORS)];
    expect(new Set(codes).size).toBe(codes.length);
  });
});
