import { randomBytes } from "node:crypto";
import { anonymousId } from "../anonymous-id.ts";
import { networkOf } from "./client-address.ts";

/** Client addresses as one process counts them: hashes of their network, under a key that this process alone has. */
export class AddressHash {
  readonly #salt = randomBytes(32).toString("base64url");

  of(address: string): string {
    return anonymousId(this.#salt, "address", networkOf(address));
  }
}
