import { ServiceError } from "relay-protocol/contract/refusals.ts";
import type { PACKAGE_SURFACES } from "relay-protocol/contract/surfaces.ts";
import type { Handlers } from "relay-runtime/http/router.ts";
import { connectorOf, connectorsDocument, type Packages } from "./packages.ts";

type PackageHandlers = Pick<Handlers<"gateway">, keyof typeof PACKAGE_SURFACES>;

interface Parts {
  readonly packages: Packages;
  readonly settings: { readonly baseUrl: string };
}

const FOR_EVER = "public, max-age=31536000, immutable";
const ASK_AGAIN = "no-cache";

/** The packages that the relay hands out. Source: docs/protocol.md#discovery. */
export function packageEndpoints({ packages, settings }: Parts): PackageHandlers {
  const connectors = connectorsDocument(packages, settings.baseUrl);
  const newest = connectorOf(packages);
  return {
    connectors: () => connectors,
    packageFile: (ctx) => {
      const found = packages.get(ctx.params.file ?? "");
      if (found === undefined) throw unknownPackage();
      ctx.set("Cache-Control", FOR_EVER);
      ctx.type = found.media;
      return found.content;
    },
    // The content rather than a redirect: a download that follows none (curl -O) would save an empty file.
    newestConnector: (ctx) => {
      if (newest === undefined) throw unknownPackage();
      ctx.set("Cache-Control", ASK_AGAIN);
      // Saved under its own name, a download tells its version.
      ctx.set("Content-Disposition", `attachment; filename="${newest.file}"`);
      return newest.content;
    },
  };
}

function unknownPackage(): ServiceError {
  return new ServiceError("not_found", { detail: "This relay hands out no such package; GET /connectors lists them." });
}
