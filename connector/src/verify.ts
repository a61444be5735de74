import type { IssuerRecord } from "./credentials/contract.ts";
import { Issuers } from "./credentials/issuers.ts";
import type { ReceiptVerdict } from "./receipts/contract.ts";
import { verifyReceipt as verifyBy } from "./receipts/verify-receipt.ts";

/**
 * Checks a receipt by the records of issuers alone: no relay is asked. It shows that both keys signed; not when, not that a
 * relay accepted it, and not that there is no other decision. Rejects with `invalid_issuer`.
 * @param receipt its JSON text or bytes in UTF-8, with a byte order mark or without.
 */
export async function verifyReceipt(
  receipt: string | Uint8Array,
  issuers: readonly IssuerRecord[],
): Promise<ReceiptVerdict> {
  return await verifyBy(receipt, await Issuers.from(issuers));
}
