import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { describe, expect, test } from "@jest/globals";
import type Koa from "koa";
import { encodingFor } from "../../src/http/compression.ts";
import { exchange, useServer } from "./kit.ts";

const TEXT = "a sentence that is much like the next one. ".repeat(100);
const BYTES = Buffer.from(TEXT);
const bodies: Record<string, unknown> = { "/text": TEXT, "/json": { TEXT }, "/short": "short", "/bytes": BYTES };
const handler = (ctx: Koa.Context) => {
  if (ctx.path === "/fault") {
    ctx.set({ "Content-Encoding": "br", ETag: '"of another body"' });
    throw new Error("fault");
  }
  if (ctx.path in bodies) ctx.body = bodies[ctx.path];
};

describe("The encoding of an answer", () => {
  test.each([
    ["", "identity"],
    ["br", "br"],
    ["gzip", "gzip"],
    ["GZip", "gzip"],
    ["gzip, deflate, br, zstd", "br"],
    ["br;q=0.5, gzip;q=0.8", "gzip"],
    ["br; q=0, gzip; q=0.001", "gzip"],
    ["br;Q=0.2,gzip;q=0.1", "br"],
    ["gzip;q=0, br;q=0", "identity"],
    ["identity;q=1, gzip;q=0.5", "identity"],
    ["identity;q=0.5, gzip;q=0.5", "gzip"],
    ["*", "br"],
    ["*;q=0.3, br;q=0.1", "gzip"],
    ["*;q=0", "identity"],
    ["deflate, zstd", "identity"],
    ["br;q=2, gzip;q=nonsense", "identity"],
    [",;,;q=", "identity"],
  ])("for Accept-Encoding %j is %s", (accepted, encoding) => {
    expect(encodingFor(accepted)).toBe(encoding);
  });
});

describe("An answer", () => {
  const running = useServer(handler);
  /** The answer as it is on the wire: fetch would decode it. */
  const ask = async (path: string, accepted: string, method = "GET") => {
    const lines = [`${method} ${path} HTTP/1.1`, "Host: relay", `Accept-Encoding: ${accepted}`, "Content-Length: 0"];
    const answer = await exchange(running.server.port, [...lines, "Connection: close", "", ""].join("\r\n"));
    const [head = "", ...rest] = answer.split("\r\n\r\n");
    return { head: head.replace(/^Date: .*\r\n/im, ""), body: Buffer.from(rest.join("\r\n\r\n"), "latin1") };
  };

  test("to a read is sent in the encoding that it asks for, and says so", async () => {
    const [inBr, inGzip, plain] = [
      await ask("/text", "br"),
      await ask("/json", "gzip"),
      await ask("/text", "identity"),
    ];
    expect(inBr.head).toMatch(/^content-encoding: br\r?$/im);
    expect(brotliDecompressSync(inBr.body).toString()).toBe(TEXT);
    expect(inGzip.head).toMatch(/^content-encoding: gzip\r?$/im);
    expect(inGzip.head).toMatch(/^content-type: application\/json/im);
    expect(JSON.parse(gunzipSync(inGzip.body).toString())).toEqual({ TEXT });
    expect(inGzip.body.length).toBeLessThan(TEXT.length / 2);
    expect(plain.head).not.toMatch(/^content-encoding/im);
    expect(plain.body.toString()).toBe(TEXT);
  });

  test("to a read varies with what it asks for, compressed or not, and stays no-store", async () => {
    for (const path of ["/text", "/json", "/short"]) {
      for (const accepted of ["br", "identity"]) {
        const { head } = await ask(path, accepted);
        expect(head).toMatch(/^vary: .*accept-encoding/im);
        expect(head).toMatch(/^cache-control: no-store\r?$/im);
      }
    }
  });

  test("to HEAD has the head of its GET", async () => {
    const [whole, head] = [await ask("/json", "br"), await ask("/json", "br", "HEAD")];
    expect(head.head).toBe(whole.head);
    expect(head.body).toHaveLength(0);
  });

  test("that is short, or consists of bytes, is sent as it is", async () => {
    expect((await ask("/short", "br, gzip")).body.toString()).toBe("short");
    const bytes = await ask("/bytes", "br, gzip");
    expect(bytes.head).not.toMatch(/^content-encoding/im);
    expect(bytes.body.equals(BYTES)).toBe(true);
  });

  test("to a POST is never compressed", async () => {
    const { head, body } = await ask("/text", "br, gzip", "POST");
    expect(head).not.toMatch(/^content-encoding/im);
    expect(body.toString()).toBe(TEXT);
  });

  test("that fails says nothing of the body that is not sent", async () => {
    const { head, body } = await ask("/fault", "br");
    expect(head).toMatch(/^HTTP\/1.1 500/);
    expect(head).not.toMatch(/^(content-encoding|etag)/im);
    expect(JSON.parse(body.toString())).toMatchObject({ code: "internal_error" });
  });
});
