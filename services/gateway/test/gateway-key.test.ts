import { generateKeyPairSync } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { ENVELOPE_SCHEMAS } from "relay-protocol/contract/envelope.ts";
import { importVerifyKey, verify } from "relay-protocol/signing/algorithms.ts";
import { canonicalText } from "relay-protocol/signing/canonical.ts";
import { KEY_ID_PATTERN, type UnsignedEnvelope } from "relay-protocol/wire/envelope.ts";
import { createGatewaySigner } from "../src/api/gateway-key.ts";

const MESSAGE: Omit<UnsignedEnvelope, "key_id"> = {
  id: "env_1",
  type: "message.send",
  from: "agent://alice",
  to: "agent://bob",
  payload: { message: "Grüße" },
  ts: 1_790_000_000_000,
};
const pem = (type: "ed25519" | "x25519") =>
  generateKeyPairSync(type as "ed25519").privateKey.export({ type: "pkcs8", format: "pem" });

let folder: string;
let keyFile: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "relay-gateway-key-"));
  keyFile = join(folder, "gateway.pem");
});
afterEach(() => rm(folder, { recursive: true }));

describe("The gateway's signer", () => {
  test("signs so that anyone with its public key can check what is forwarded", async () => {
    const signer = await createGatewaySigner(undefined);
    const envelope = { ...MESSAGE, key_id: signer.keyId };
    const { sig, ...forwarded } = JSON.parse(signer.sign(canonicalText(envelope)));
    expect(forwarded).toEqual(envelope);
    expect(ENVELOPE_SCHEMAS.message.safeParse({ ...forwarded, sig }).success).toBe(true);
    const key = importVerifyKey({ key_id: "k", alg: "ed25519", public_key: signer.publicKey, agents: ["agent://a"] });
    expect(verify(key, canonicalText(forwarded), sig)).toBe(true);
  });

  test("has a key id that begins with gateway- and stays the same for the same key file", async () => {
    await writeFile(keyFile, pem("ed25519"));
    const [first, second] = [await createGatewaySigner(keyFile), await createGatewaySigner(keyFile)];
    expect(first.keyId).toMatch(/^gateway-/);
    expect(first.keyId).toMatch(KEY_ID_PATTERN);
    expect([second.keyId, second.publicKey]).toEqual([first.keyId, first.publicKey]);
  });

  test("makes a key of its own when it is given none", async () => {
    const [first, second] = [await createGatewaySigner(undefined), await createGatewaySigner(undefined)];
    expect(second.keyId).not.toBe(first.keyId);
  });

  test.each([
    ["another kind of key", () => pem("x25519")],
    ["no key", () => "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n"],
    ["nothing", () => ""],
  ])("refuses a file that holds %s, and quotes nothing of it", async (_, text) => {
    await writeFile(keyFile, text());
    const error = await createGatewaySigner(keyFile).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(Error);
    expect(String(error)).not.toMatch(/BEGIN|c2VjcmV0/);
  });

  test("refuses to start without the file that it was told to use", async () => {
    await expect(createGatewaySigner(keyFile)).rejects.toThrow("ENOENT");
  });
});
