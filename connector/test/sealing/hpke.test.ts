import { Aes128Gcm, CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 } from "@hpke/core";
import { describe, expect, test } from "@jest/globals";
import { thumbprintOf } from "../../src/credentials/public-jwk.ts";
import { openBytes, sealBytes } from "../../src/sealing/hpke.ts";
import { newSealingKey, SealingKeys } from "../../src/sealing/sealing-keys.ts";

const hex = (text: string) => Uint8Array.from(Buffer.from(text, "hex"));
const base64url = (text: string) => Buffer.from(text, "hex").toString("base64url");

/** RFC 9180, appendix A.1.1, and its first encryption: the one of a single-shot. */
const VECTOR = {
  info: "4f6465206f6e2061204772656369616e2055726e",
  pkRm: "3948cfe0ad1ddb695d780e59077195da6c56506b027329794ab02bca80815c4d",
  skRm: "4612c550263fc8ad58375df3f557aac531d26850903e55a9f23f21d8534e8ac8",
  skEm: "52c4a758a802cd8b936eceea314432798d5baf2d7e9235dc084ab1b9cfa2f736",
  enc: "37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431",
  pt: "4265617574792069732074727574682c20747275746820626561757479",
  aad: "436f756e742d30",
  ct: "f938558b5d72f1a23810b4be2ab4f84331acc02fc97babc53a52ae8218a355a96d8770ac83d07bea87e13c512a",
};

async function keysOf(publicKey: string, privateKey: string) {
  const keys = await SealingKeys.from([{ publicKey, privateKey }]);
  const pair = keys.get(await thumbprintOf(publicKey, "X25519"));
  if (pair === undefined) throw new Error("no key");
  return pair;
}

describe("RFC 9180, A.1.1", () => {
  const context = { info: hex(VECTOR.info), aad: hex(VECTOR.aad) };
  const ciphertext = { enc: hex(VECTOR.enc), ct: hex(VECTOR.ct) };
  const recipient = () => keysOf(base64url(VECTOR.pkRm), base64url(VECTOR.skRm));

  test("opens", async () => {
    expect(Buffer.from(await openBytes(await recipient(), ciphertext, context)).toString("hex")).toBe(VECTOR.pt);
  });

  test.each([
    ["info", { ...context, info: hex("00") }, ciphertext],
    ["aad", { ...context, aad: hex("436f756e742d31") }, ciphertext],
    ["ct", context, { ...ciphertext, ct: hex(VECTOR.ct.replace("f9", "f8")) }],
    ["enc", context, { ...ciphertext, enc: hex(VECTOR.enc.replace("37", "36")) }],
    ["enc of small order", context, { ...ciphertext, enc: hex("00".repeat(32)) }],
  ])("does not open with another %s", async (_, changed, text) => {
    await expect(openBytes(await recipient(), text, changed)).rejects.toThrow();
  });

  test("seals what the key of the vector opens, each time with another key of its own", async () => {
    const sealed = [1, 2].map(() => sealBytes(hex(VECTOR.pkRm), hex(VECTOR.pt), context));
    const [one, two] = await Promise.all(sealed);
    expect(Buffer.from(await openBytes(await recipient(), one as never, context)).toString("hex")).toBe(VECTOR.pt);
    expect(one?.enc).not.toEqual(two?.enc);
    expect(one?.ct).not.toEqual(two?.ct);
  });
});

describe("Another implementation", () => {
  const suite = new CipherSuite({ kem: new DhkemX25519HkdfSha256(), kdf: new HkdfSha256(), aead: new Aes128Gcm() });
  const info = new TextEncoder().encode("agent-relay sealed payload v1");
  const aad = new TextEncoder().encode('{"from":"agent://a"}');
  const plaintext = new TextEncoder().encode('{"message":"hi"}');

  test("opens what was sealed here", async () => {
    const { publicKey, privateKey } = await newSealingKey();
    const { enc, ct } = await sealBytes(Buffer.from(publicKey, "base64url"), plaintext, { info, aad });
    const key = await suite.kem.importKey("raw", Uint8Array.from(Buffer.from(privateKey, "base64url")), false);
    const opened = await suite.open({ recipientKey: key, enc, info }, ct, aad);
    expect(new Uint8Array(opened)).toEqual(plaintext);
  });

  test("seals what is opened here", async () => {
    const { publicKey, privateKey } = await newSealingKey();
    const recipientPublicKey = await suite.kem.importKey("raw", Uint8Array.from(Buffer.from(publicKey, "base64url")));
    const { enc, ct } = await suite.seal({ recipientPublicKey, info }, plaintext, aad);
    const ciphertext = { enc: new Uint8Array(enc), ct: new Uint8Array(ct) };
    expect(await openBytes(await keysOf(publicKey, privateKey), ciphertext, { info, aad })).toEqual(plaintext);
  });

  test("makes the ciphertext of the vector, which so is one of both", async () => {
    const skE = await suite.kem.importKey("raw", hex(VECTOR.skEm), false);
    const pkE = await suite.kem.importKey("raw", hex(VECTOR.enc));
    const sender = await suite.createSenderContext({
      recipientPublicKey: await suite.kem.importKey("raw", hex(VECTOR.pkRm)),
      info: hex(VECTOR.info),
      ekm: { privateKey: skE, publicKey: pkE },
    });
    expect(Buffer.from(await sender.seal(hex(VECTOR.pt), hex(VECTOR.aad))).toString("hex")).toBe(VECTOR.ct);
  });
});
