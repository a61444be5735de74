import { redisProgram } from "../../deploy/local/redis-program.mjs";

/** The Redis of one relay. */
export interface ProvidedRedis {
  /** REDIS_URL; without it the relay runs a Redis of its own. */
  readonly environment: { readonly REDIS_URL?: string };
  stop(): Promise<void>;
}

/** @throws {Error} that says what to do, where there is none. */
export async function provideRedis(url: string | undefined): Promise<ProvidedRedis> {
  if (url) return { environment: { REDIS_URL: url }, stop: async () => {} };
  requireProgram();
  return { environment: {}, stop: async () => {} };
}

function requireProgram(): void {
  try {
    redisProgram();
  } catch (error) {
    const hint = "Or name a Redis that tests may use in REDIS_URL, such as redis://127.0.0.1:6379.";
    throw new Error(`startRelay: ${(error as Error).message} ${hint}`);
  }
}
