import { freePorts } from "../../deploy/local/free-ports.ts";

/** A port that nobody listened on a moment ago, for settings that do not take 0. */
export async function freePort(): Promise<number> {
  const [port] = await freePorts(1);
  return port as number;
}
