import { ADDRESS, CONNECTOR_PACKAGE } from "relay-protocol/contract/packages.ts";
import { type BundleOptions, bundle, notices } from "../bundle.ts";
import type { Draft } from "../release.ts";
import { stamped } from "../version.ts";

/** How the library is bundled for browsers. */
export const FOR_BROWSERS = { platform: "neutral", conditions: ["browser"] } as const satisfies BundleOptions;

/** The library as one ES module, for browsers and whatever else imports by address. */
export async function browserModule(): Promise<Draft> {
  const entries = { connector: "connector/src/index.ts" };
  const { files, bundled } = await bundle(entries, "connector/package.json", FOR_BROWSERS);
  // Within a licence's text nothing may end the comment.
  const licences = (await notices(bundled)).replaceAll("*/", "* /");
  const text = `${files.get("connector.js")}/*! It contains:\n\n${licences}*/\n`;
  return {
    name: "connector",
    media: "text/javascript",
    purpose: "Connects an agent, from a browser: the library of agent-relay-connector as one ES module.",
    needs: "A browser of 2025 or later, or Node 22, Deno or Bun",
    usage: [
      { for: "import in a module of a browser or Deno", line: `import { Connector } from "${ADDRESS}";` },
      { for: "Node imports no address: download it first", line: `curl -fsS ${ADDRESS} -o connector.mjs` },
      { for: "then import the file", line: 'import { Connector } from "./connector.mjs";' },
    ],
    manual: `that of ${CONNECTOR_PACKAGE}`,
    file: (version) => `connector-${version}.js`,
    contents: (version) => Buffer.from(stamped(text, version)),
  };
}
