import { membersOf, textOf } from "../../frames.ts";
import { Failure } from "../failure.ts";
import type { RelayHttp } from "../relay-http.ts";

/** A path goes into files that others run. Source: docs/protocol.md#discovery. */
const PATH = /^\/packages\/\w[\w.+-]{0,127}$/;
const INTEGRITY = /^sha512-([A-Za-z0-9+/]{86}==)$/;

/**
 * Where the relay hands out packages, each under the address of its present content: never a name that a registry has; and, as
 * `<key>_sha512`, the digest of that content in hex.
 * @param names by whatever they are called here. @throws {Failure} `not_found`, or as RelayHttp does.
 */
export async function packageAddresses(http: RelayHttp, names: Readonly<Record<string, string>>) {
  const { packages } = await http.get("/connectors");
  const listed = Array.isArray(packages) ? packages.map(membersOf) : [];
  const addresses = Object.entries(names).flatMap(([key, name]) => {
    const { path, integrity } = membersOf(listed.find((one) => one.name === name));
    const [, digest] = INTEGRITY.exec(textOf(integrity) ?? "") ?? [];
    if (typeof path === "string" && PATH.test(path) && digest !== undefined) {
      return [[key, http.baseUrl + path] as const, [`${key}_sha512`, Buffer.from(digest, "base64").toString("hex")]];
    }
    throw new Failure(
      "not_found",
      `The relay at ${http.baseUrl} does not hand out ${name}, which the project needs.`,
      "Name another relay with --url; GET /connectors at a relay lists its packages.",
      { retry: "fix" },
    );
  });
  return Object.fromEntries(addresses);
}
