import { request } from "node:http";
import { text } from "node:stream/consumers";
import { expect, test } from "@jest/globals";
import type { Surface } from "relay-protocol/contract/surface.ts";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import { ERRORS } from "relay-protocol/wire/errors.ts";
import { given } from "../support/use-relay.ts";
import { conformingRelay } from "./conforming.ts";

const relay = conformingRelay();
const pod = given(() => relay.startWhole());

const CATALOGUE: readonly Surface[] = Object.values(SURFACES);
const DOCUMENTS = CATALOGUE.filter(({ method, path }) => method === "GET" && !path.includes("{"));

/** The catalogue's entries at the path of a link; a link may be a template, or an entry's template filled in. */
function surfacesAt(link: string): Surface[] {
  const path = decodeURI(new URL(link.replace(/\{\?[^}]*\}|[?#].*$/, "")).pathname);
  const filledIn = (template: string) => new RegExp(`^${template.replaceAll(/\{[^}]+\}/g, "[^/]+")}$`).test(path);
  return CATALOGUE.filter(({ path: template, aliases }) => [template, ...aliases].includes(path) || filledIn(template));
}

/** What a link may answer when it is read. */
function statusesOf(surfaces: readonly Surface[]): (number | null)[] {
  return surfaces.flatMap(({ method, status, errors }) =>
    method === "GET" ? [status, ...errors.map((code) => ERRORS[code].httpStatus)] : [405],
  );
}

test.each(DOCUMENTS.map(({ path }) => path))(
  "Every link in %s leads to a surface that answers as documented",
  async (path) => {
    const document = await (await fetch(pod.url + path)).text();
    const links = new Set(document.match(new RegExp(`${pod.url}/(?:\\{[\\w?&,]+\\}|[^\\s"'\\\\|)<>,;])*`, "g")));
    for (const link of links) {
      const plain = link.replace(/[.:]+$/, "");
      const surfaces = surfacesAt(plain);
      expect([plain, surfaces.length > 0]).toEqual([plain, true]);
      if (plain.includes("{")) continue;
      const { status } = await fetch(plain);
      expect([plain, statusesOf(surfaces)]).toEqual([plain, expect.arrayContaining([status])]);
    }
  },
);

/** The text of one GET under a host that is not the relay's. */
async function readAs(host: string, path: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const req = request(pod.url + path, {
    headers: { Host: host, "X-Forwarded-Host": host, "X-Forwarded-Proto": "https" },
  });
  req.on("error", reject);
  req.on("response", (response) => text(response).then(resolve, reject));
  req.end();
  return await promise;
}

test("No link is made of the Host that a client names", async () => {
  for (const { path } of DOCUMENTS) {
    expect([path, (await readAs("forged.example", path)).includes("//forged.example/")]).toEqual([path, false]);
  }
});
