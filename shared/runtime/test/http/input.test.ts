import { once } from "node:events";
import net from "node:net";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "@jest/globals";
import { SimpleSendRequest } from "relay-protocol/contract/requests.ts";
import type { Problem } from "relay-protocol/contract/responses.ts";
import { HTTP_LIMITS } from "relay-protocol/wire/limits.ts";
import { readBody, readJson } from "../../src/http/input.ts";
import { exchange, useServer } from "./kit.ts";

const good = { from: "agent://alice", to: "agent://bob", message: "hi" };

describe("a JSON body", () => {
  const running = useServer(async (ctx) => {
    if (ctx.path === "/raw") ctx.body = await readJson(ctx);
    else ctx.body = { read: await readBody(ctx, SimpleSendRequest) };
  });

  const post = (body: string | Uint8Array, headers: Record<string, string> = {}, path = "/") =>
    fetch(running.url + path, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: body as string,
    });
  const codeOf = async (response: Response) => `${response.status} ${((await response.json()) as Problem).code}`;
  const bodyOf = (bytes: number) => JSON.stringify({ ...good, message: "" }).replace('""', `"${"x".repeat(bytes)}"`);

  test("is handed on as its schema has it", async () => {
    const response = await post(JSON.stringify(good), { "content-type": 'Application/JSON; charset="UTF-8"' });
    expect(await response.json()).toEqual({ read: good });
  });

  test("can be had as it came, text and value", async () => {
    const text = ' {"a": "\u00e9\ud83d\ude00"} ';
    expect(await (await post(text, {}, "/raw")).json()).toEqual({ text, value: { a: "é😀" } });
  });

  test.each([
    ["text/plain"],
    ["application/x-www-form-urlencoded"],
    ["application/json; charset=latin1"],
    ["application/jsonx"],
    ["application/problem+json"],
    ["application/json, text/plain"],
    [";"],
  ])("is refused as %s", async (type) => {
    expect(await codeOf(await post(JSON.stringify(good), { "content-type": type }))).toBe("415 unsupported_media_type");
  });

  test("is refused without a content type", async () => {
    const answer = await exchange(
      running.server.port,
      "POST / HTTP/1.1\r\nHost: relay\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}",
    );
    expect(answer).toMatch(/^HTTP\/1\.1 415 /);
  });

  test.each(["gzip", "br", "deflate", "x-unknown", "identity, gzip"])(
    "is refused with content encoding %s",
    async (encoding) => {
      const response = await post(gzipSync(JSON.stringify(good)), { "content-encoding": encoding });
      expect(await codeOf(response)).toBe("415 unsupported_media_type");
    },
  );

  test("is refused when its gzip is broken", async () => {
    expect(await codeOf(await post("not gzip", { "content-encoding": "gzip" }))).toBe("415 unsupported_media_type");
  });

  test.each([
    ["empty", ""],
    ["blank", "  "],
    ["cut off", '{"from":'],
    ["trailed by text", "{} {}"],
    ["led by a byte order mark", "\ufeff{}"],
  ])("is malformed when it is %s", async (_, body) => {
    expect(await codeOf(await post(body))).toBe("400 malformed_json");
  });

  test("is malformed when it is not UTF-8", async () => {
    const body = Buffer.concat([Buffer.from('{"message":"'), Buffer.from([0xff, 0xc0]), Buffer.from('"}')]);
    expect(await codeOf(await post(body))).toBe("400 malformed_json");
  });

  test("is read up to 32768 bytes and refused beyond", async () => {
    const frame = bodyOf(0).length;
    const whole = await post(bodyOf(HTTP_LIMITS.maxBodyBytes - frame), {}, "/raw");
    expect(whole.status).toBe(200);
    expect(await codeOf(await post(bodyOf(HTTP_LIMITS.maxBodyBytes - frame + 1), {}, "/raw"))).toBe(
      "413 body_too_large",
    );
  });

  test("is refused in the middle of an endless chunked one, and the connection serves on", async () => {
    const socket = net.connect(running.server.port, "127.0.0.1");
    const chunk = `4000\r\n${"x".repeat(0x4000)}\r\n`;
    socket.write(
      "POST / HTTP/1.1\r\nHost: relay\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    socket.write(chunk.repeat(3));
    const [refusal] = await once(socket, "data");
    expect(refusal.toString()).toMatch(/^HTTP\/1\.1 413 /);

    socket.write(chunk.repeat(100));
    socket.write("0\r\n\r\nGET /after HTTP/1.1\r\nHost: relay\r\nConnection: close\r\n\r\n");
    const [next] = await once(socket, "data");
    expect(next.toString()).toMatch(/^HTTP\/1\.1 415 /);
    socket.destroy();
  });

  test("is refused by its announced length alone", async () => {
    const socket = net.connect(running.server.port, "127.0.0.1");
    socket.write(
      "POST / HTTP/1.1\r\nHost: relay\r\nContent-Type: application/json\r\nContent-Length: 99999999\r\n\r\n{",
    );
    const [refusal] = await once(socket, "data");
    expect(refusal.toString()).toMatch(/^HTTP\/1\.1 413 /);
    socket.destroy();
  });

  test.each([
    ["a bomb of brackets", "[".repeat(15_000) + "]".repeat(15_000)],
    ["a member named __proto__", '{"__proto__":{"from":"agent://alice"}}'],
    ["a lone surrogate", '{"message":"\\ud800"}'],
    ["an endless number", '{"message":1e400}'],
  ])("is invalid with %s", async (_, body) => {
    expect(await codeOf(await post(body))).toBe("400 invalid_request");
  });

  test("is answered with the invalid fields, and with nothing that was sent but the name of an unknown one", async () => {
    const body = { from: "SECRET-from", to: "agent://bob", api_key: "SECRET-key", mesage: 1, rk_SECRET: 1 };
    const response = await post(JSON.stringify(body));
    const text = await response.text();
    expect(response.status).toBe(400);
    expect(text).not.toContain("SECRET");
    const fields = (JSON.parse(text) as Problem).errors?.map(({ field }) => field);
    expect(fields).toEqual(expect.arrayContaining(["from", "message", "api_key", "mesage", "unknown field"]));
    expect(running.log.join("")).not.toMatch(/SECRET|mesage/);
  });
});
