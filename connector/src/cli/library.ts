import { type ErrorCode, RelayError } from "../errors.ts";
import type { ConnectorOptions } from "../options.ts";
import { readKeyFile as readSigningAgent } from "./key-file.ts";

/** What the library has for Node alone, under an import path of its own: browsers never load it. */

/** Who the agent of a key file is, what it acts with, and the issuers that the file pins, as a Connector takes it. */
export type KeyFileOptions = Pick<ConnectorOptions, "agent" | "key" | "credential" | "sealingKeys" | "trust">;

/**
 * Reads a key file, as `relay keygen` and `npm start` make it. Its credential is read again whenever one is wanted, so that a file
 * which replaced it counts. Rejects with `invalid_key` or `invalid_credential`, which say what is wrong with the file.
 */
export async function readKeyFile(path: string): Promise<KeyFileOptions> {
  try {
    return await readSigningAgent(path);
  } catch (error) {
    const { code, message, hint } = error as RelayError;
    throw new RelayError(code as ErrorCode, { message, hint });
  }
}
