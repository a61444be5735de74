import { once } from "node:events";
import http from "node:http";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { describe, expect, test } from "@jest/globals";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import { useGateway, useGatewayKit } from "./kit.ts";

const DOCUMENTS = [SURFACES.instructions, SURFACES.openapi, SURFACES.asyncapi, SURFACES.relayManifest];
const PATHS = DOCUMENTS.flatMap(({ path, aliases }) => [path, ...aliases]);
const DECODE = { br: brotliDecompressSync, gzip: gunzipSync, identity: (bytes: Buffer) => bytes } as const;
const ENCODINGS = ["br", "gzip", "identity"] as const;

const gateway = useGateway(useGatewayKit());

/** The answer as it is on the wire: fetch would decode it, and add fields of its own. */
async function ask(path: string, headers: http.OutgoingHttpHeaders = {}, method = "GET") {
  const request = http.request(gateway.url + path, { headers, method, agent: false }).end();
  const [answer] = (await once(request, "response")) as [http.IncomingMessage];
  const body = Buffer.concat(await answer.toArray());
  return { status: answer.statusCode, headers: answer.headers, body };
}
const inEncoding = (encoding: string) => ({ "Accept-Encoding": encoding });

describe.each(PATHS)("The static document %s", (path) => {
  test("says the same in each encoding, under a strong tag of its own, and may be kept by caches that ask again", async () => {
    const tags = new Set<string>();
    const plain = await ask(path);
    for (const encoding of ENCODINGS) {
      const { status, headers, body } = await ask(path, inEncoding(encoding));
      expect([status, headers["cache-control"]]).toEqual([200, "no-cache"]);
      expect(headers["content-encoding"] ?? "identity").toBe(encoding);
      expect(headers["content-type"]).toBe(plain.headers["content-type"]);
      expect(headers["content-length"]).toBe(String(body.length));
      expect(headers.vary).toMatch(/accept-encoding/i);
      expect(headers.etag).toMatch(/^"[!#-~]+"$/);
      expect(DECODE[encoding](body).equals(plain.body)).toBe(true);
      tags.add(headers.etag as string);
    }
    expect(tags.size).toBe(ENCODINGS.length);
  });

  test("is answered 304 without a body to a cache that has it", async () => {
    for (const encoding of ENCODINGS) {
      const { headers: whole } = await ask(path, inEncoding(encoding));
      const { etag } = whole;
      const known = [etag, `W/${etag}`, `"other", W/"more" ,${etag}`, "*", ` * `];
      for (const [method, tags] of ["GET", "HEAD"].flatMap((one) => known.map((tag) => [one, tag] as const))) {
        const headers = { ...inEncoding(encoding), "If-None-Match": tags, "Cache-Control": "no-cache" };
        const answer = await ask(path, headers, method);
        expect([method, tags, answer.status, answer.body.length]).toEqual([method, tags, 304, 0]);
        expect(answer.headers).toMatchObject({ etag, vary: whole.vary, "cache-control": "no-cache" });
        expect(Object.keys(answer.headers)).not.toEqual(
          expect.arrayContaining([expect.stringMatching(/^content-(?!sec)/)]),
        );
      }
    }
  });

  test("is sent whole to a cache that has something else, another encoding of it included", async () => {
    const { headers } = await ask(path, inEncoding("gzip"));
    const unquoted = headers.etag?.slice(1, -1);
    for (const tags of [headers.etag, '"other"', unquoted, "", '"*"', "W/"]) {
      const { status, body } = await ask(path, { ...inEncoding("br"), "If-None-Match": tags });
      expect([tags, status, body.length > 0]).toEqual([tags, 200, true]);
    }
  });

  test("has the head of its GET for HEAD", async () => {
    const head = async (method: string) => {
      const { date: _, ...headers } = (await ask(path, inEncoding("br"), method)).headers;
      return headers;
    };
    expect(await head("HEAD")).toEqual(await head("GET"));
  });
});

test("A document that lists keys or shows the window is kept by no cache and has no tag, whatever a cache asks", async () => {
  for (const path of [SURFACES.signingManifest.path, SURFACES.agentManifest.path, SURFACES.onlineAgents.path]) {
    const { status, headers } = await ask(path, { "If-None-Match": "*", "Accept-Encoding": "br" });
    expect([path, status, headers["cache-control"], headers.etag]).toEqual([path, 200, "no-store", undefined]);
  }
});
