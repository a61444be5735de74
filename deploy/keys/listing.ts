import type { IssuerRecord, KeysFile } from "relay-protocol/contract/keys-file.ts";
import { thumbprintOf } from "relay-protocol/signing/credentials.ts";

type Row = readonly [id: string, kind: string, agents: string, valid: string];

/** One line for each key and each revocation, without secrets. */
export function describe(keys: KeysFile, now: number): string {
  const listed = [
    ...keys.api_keys.map((key) => ({ ...key, alg: "api-key" })),
    ...keys.signing_keys.map((key) => ({ ...key, id: key.key_id })),
  ].map((key): Row => [key.id, key.alg, key.agents.join(" "), validity(key.not_before, key.expires_at, now)]);
  const rows = [
    ...listed,
    ...keys.issuers.flatMap((record) => rowsOfIssuer(record, now)),
    ...(keys.removed_issuers ?? []).flatMap(({ issuer, revoked }) =>
      rowsOfRevoked(`removed issuer ${issuer}`, revoked),
    ),
    ...(keys.revoked_gateway_keys ?? []).map((id): Row => [id, "gateway", "-", "revoked"]),
  ];
  if (rows.length === 0) return "No keys yet.\n";

  const table = [["ID", "KIND", "AGENTS", "VALID"], ...rows];
  const widths = [0, 1, 2].map((column) => Math.max(...table.map((row) => row[column]?.length ?? 0)));
  return table.map((row) => `${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ")}\n`).join("");
}

/** An issuer's key by its thumbprint, as the credentials name it. */
function rowsOfIssuer({ issuer, keys, agents, revoked }: IssuerRecord, now: number): Row[] {
  const kind = `issuer ${issuer}`;
  return [
    ...keys.map(
      (key): Row => [
        thumbprintOf(key.public_key, "Ed25519"),
        kind,
        agents.join(" "),
        validity(key.not_before, key.expires_at, now),
      ],
    ),
    ...rowsOfRevoked(kind, revoked),
  ];
}

function rowsOfRevoked(kind: string, revoked: IssuerRecord["revoked"]): Row[] {
  return revoked.map(({ agent, issued_before }) => ["-", kind, agent, `revoked if issued before ${issued_before}`]);
}

function validity(notBefore: string | undefined, expiresAt: string | undefined, now: number): string {
  if (expiresAt !== undefined && Date.parse(expiresAt) <= now) return `expired ${expiresAt}`;
  if (notBefore !== undefined && Date.parse(notBefore) > now) return `from ${notBefore}`;
  return expiresAt === undefined ? "until revoked" : `until ${expiresAt}`;
}
