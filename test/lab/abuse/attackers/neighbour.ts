import type { Target } from "../target.ts";

/** No attack at all: another process that computes. What it costs bystanders, the machine costs them. */
export async function neighbour({ forMs }: Target) {
  return async () => {
    const end = performance.now() + forMs;
    while (performance.now() < end);
    return { connections: 0, frames: 0, bytes: 0, faults: [] };
  };
}
