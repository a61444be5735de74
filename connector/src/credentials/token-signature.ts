import { compactVerify } from "jose";
import type { VerifyKey } from "../keys.ts";
import { HEADER } from "./contract.ts";

/** True when the token, in compact form, is signed by the Ed25519 key. Never rejects. Source: RFC 7515, section 5.2. */
export async function isTokenSignedBy({ key }: VerifyKey, token: string): Promise<boolean> {
  try {
    await compactVerify(token, key, { algorithms: [...HEADER.algorithms] });
    return true;
  } catch {
    return false;
  }
}
