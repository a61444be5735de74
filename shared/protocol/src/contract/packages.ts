import { z } from "zod";

/** Packages that a relay offers. Source: docs/protocol.md#discovery. */

/** The npm package of the connector for Node, which documents refer to. */
export const CONNECTOR_PACKAGE = "agent-relay-connector";

/** File name of a package: one segment of a path, which never leads out of its folder. */
export const PackageFile = z
  .string()
  .regex(/^[A-Za-z0-9_][A-Za-z0-9._+-]{0,127}$/)
  .meta({ id: "PackageFile", examples: ["agent-relay-connector-1.0.0-b0123456789ab.tgz"] });

/** In a line of `usage`: place of the package's address. */
export const ADDRESS = "{url}";

/** In a line of `usage` and in a first program: place of the relay's base address. */
export const RELAY_ADDRESS = "{relay}";

/** Description of one package by its maker. */
export const PackageRecord = z.strictObject({
  name: z.string().meta({ examples: [CONNECTOR_PACKAGE] }),
  version: z.string().meta({
    description: "Changes whenever the content does: no path ever gives two contents.",
    examples: ["1.0.0-b0123456789ab"],
  }),
  file: PackageFile,
  media: z.string().meta({ examples: ["application/gzip"] }),
  bytes: z.int().min(1),
  integrity: z
    .string()
    .regex(/^sha512-[A-Za-z0-9+/]{86}==$/)
    .meta({
      description: "SHA-512 of the bytes, as npm and W3C Subresource Integrity write it.",
      examples: [`sha512-${"A".repeat(86)}==`],
    }),
  purpose: z.string().meta({ examples: ["Connects an agent, from Node: library, command and MCP server."] }),
  needs: z.string().meta({ examples: ["Node 22 or later"] }),
  usage: z
    .array(z.strictObject({ for: z.string(), line: z.string() }))
    .meta({ examples: [[{ for: "the command", line: "npx --yes --package=https://relay.example/… relay --help" }]] }),
  first_program: z
    .string()
    .optional()
    .meta({ description: "A whole agent in a few lines, with the key file of relay keygen.", examples: ["import …"] }),
  manual: z.string().meta({
    description: "Where its manual is.",
    examples: [`node_modules/${CONNECTOR_PACKAGE}/README.md, once installed`],
  }),
});
export type PackageRecord = z.infer<typeof PackageRecord>;

/** `index.json` of a folder of packages. `sources` is the digest of their sources. */
export const PackageIndex = z.strictObject({ sources: z.string(), packages: z.array(PackageRecord) });
export type PackageIndex = z.infer<typeof PackageIndex>;

/** Version of the connector in the index. Undefined if it has no connector. */
export function connectorVersionIn({ packages }: PackageIndex): string | undefined {
  return packages.find(({ name }) => name === CONNECTOR_PACKAGE)?.version;
}

/** GET /connectors. */
export const Connectors = z
  .strictObject({
    ok: z.literal(true),
    service: z.literal("agent-relay"),
    base_url: z.string(),
    packages: z.array(PackageRecord.omit({ file: true }).extend({ path: z.string(), url: z.string() })),
    note: z.string().meta({ description: "What the list means; what to do when it is empty." }),
  })
  .meta({ id: "Connectors" });
export type Connectors = z.infer<typeof Connectors>;

/** Bytes of a package. JSON Schema has no word for bytes. */
export const PackageBytes = z.unknown().meta({ description: "The package's bytes." });
