import { connector } from "./connector/maker.ts";
import { pythonConnector } from "./python/maker.ts";
import type { Maker } from "./release.ts";

/** Both connectors carry one version: `hello` says it, and each compares its own with it. */
export const connectors: Maker = {
  sources: [...connector.sources, ...pythonConnector.sources],
  make: async () => {
    const [{ number, drafts }, python] = await Promise.all([connector.make(), pythonConnector.make()]);
    return { number, drafts: [...drafts, ...python.drafts] };
  },
};
