import { redisProgram } from "../../deploy/local/redis-program.mjs";
import { borrowDatabase } from "./borrowed-database.ts";

/** The Redis of one relay. */
export interface ProvidedRedis {
  /** Names the Redis; with an empty name the relay runs one of its own. */
  readonly environment: { readonly REDIS_URL: string };
  stop(): Promise<void>;
}

/** @throws {Error} that says what to do, where there is none. */
export async function provideRedis(url: string | undefined): Promise<ProvidedRedis> {
  if (!url) return ownRedis();
  const database = await borrowDatabase(url);
  return { environment: { REDIS_URL: database.url }, stop: () => database.giveBack() };
}

function ownRedis(): ProvidedRedis {
  try {
    redisProgram();
  } catch (error) {
    const or = "Or set REDIS_URL to a Redis that tests may use, such as redis://127.0.0.1:6379.";
    throw new Error(`startRelay: REDIS_URL is not set. ${(error as Error).message} ${or}`);
  }
  return { environment: { REDIS_URL: "" }, stop: async () => {} };
}
