import { Connectors, PackageBytes } from "../packages.ts";
import { get, type Surface } from "../surface.ts";

/** What the relay hands out, so that nobody needs a registry. Files, not documents: no reading of them is traffic. */
export const PACKAGE_SURFACES = {
  connectors: get({
    path: "/connectors",
    service: "gateway",
    group: "discovery",
    summary: "The packages that this relay hands out: versions, paths, sizes, digests, and how each is used.",
    response: Connectors,
    traffic: false,
  }),
  packageFile: get({
    path: "/packages/{file}",
    service: "gateway",
    group: "discovery",
    summary: "One version of a package; its bytes never change. The paths are listed by /connectors.",
    response: PackageBytes,
    media: "*/*",
    errors: ["not_found"],
    traffic: false,
  }),
  newestConnector: get({
    path: "/connector.tgz",
    service: "gateway",
    group: "discovery",
    summary:
      "The newest connector for npm, for download. Install by the path of a version, as /connectors lists it: npm keeps what an address gave it.",
    response: PackageBytes,
    media: "application/gzip",
    errors: ["not_found"],
    traffic: false,
  }),
} as const satisfies Record<string, Surface>;
