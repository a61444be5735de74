import type { Pod, TestRelay } from "./relay.ts";

/** The three services behind one address, as `npm start` serves them; they end with the relay at the latest. */
export async function serveWhole(relay: TestRelay, overrides: Record<string, string> = {}): Promise<Pod> {
  return await relay.startWhole(overrides);
}
