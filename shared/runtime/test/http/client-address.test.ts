import { describe, expect, test } from "@jest/globals";
import { clientAddress, networkOf } from "../../src/http/client-address.ts";
import { serve } from "./kit.ts";

describe("the client's address of an upgrade", () => {
  const FORWARDED = [
    undefined,
    "",
    "203.0.113.9",
    "203.0.113.9, 198.51.100.7",
    "203.0.113.9,198.51.100.7 ,10.0.0.1",
    "forged, 203.0.113.9, 198.51.100.7, 10.0.0.1",
    ", 203.0.113.9",
    "203.0.113.9,",
    "2001:db8::1",
  ];

  test.each([0, 1, 2, 3])("is with %d trusted hops the one that the HTTP surfaces see", async (hops) => {
    const seen = await serve((ctx) => {
      ctx.body = { koa: ctx.ip, ours: clientAddress(ctx.req, hops) };
    }, hops);
    for (const forwarded of FORWARDED) {
      const headers: Record<string, string> = forwarded === undefined ? {} : { "X-Forwarded-For": forwarded };
      const { koa, ours } = (await (await fetch(seen.url, { headers })).json()) as { koa: string; ours: string };
      expect({ forwarded, ours }).toEqual({ forwarded, ours: koa });
    }
    await seen.server.stop();
  });

  test("is never one that the client wrote left of what trusted proxies added", async () => {
    const seen = await serve((ctx) => {
      ctx.body = { ours: clientAddress(ctx.req, 1) };
    });
    const answer = await fetch(seen.url, { headers: { "X-Forwarded-For": "203.0.113.9, 198.51.100.7" } });
    expect(await answer.json()).toEqual({ ours: "198.51.100.7" });
    await seen.server.stop();
  });
});

describe("what limits count an address as", () => {
  test.each([
    ["203.0.113.9", "203.0.113.9"],
    ["::ffff:203.0.113.9", "203.0.113.9"],
    ["::FFFF:cb00:7109", "203.0.113.9"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
    ["2001:0DB8:0001:0002::1", "2001:db8:1:2::/64"],
    ["2001:db8::1", "2001:db8:0:0::/64"],
    ["::1", "0:0:0:0::/64"],
    ["::", "0:0:0:0::/64"],
    ["fe80::1%eth0", "fe80:0:0:0::/64"],
    ["64:ff9b::192.0.2.33", "64:ff9b:0:0::/64"],
    ["unknown", "unknown"],
    ["", ""],
  ])("is for '%s' '%s'", (address, network) => {
    expect(networkOf(address)).toBe(network);
  });

  test("is one for all addresses of a /64, and another for its neighbour", () => {
    expect(networkOf("2001:db8:0:7::1")).toBe(networkOf("2001:db8:0:7:ffff:ffff:ffff:ffff"));
    expect(networkOf("2001:db8:0:7::1")).not.toBe(networkOf("2001:db8:0:8::1"));
  });
});
