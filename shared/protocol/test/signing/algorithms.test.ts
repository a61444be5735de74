import { createHmac } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import { fc } from "../../../../test/support/fast-check.ts";
import {
  HmacSecret,
  importSecret,
  importVerifyKey,
  privateKeyOfSeed,
  publicKeyText,
  SIGNATURE_CHARACTERS,
  type SigningKey,
  sign,
  signEd25519,
  type VerifyKey,
  verify,
  verifyEd25519,
} from "../../src/signing/algorithms.ts";

const hex = (text: string) => Buffer.from(text, "hex");
const base64url = (text: string) => hex(text).toString("base64url");
const ed25519Key = (publicKey: string) =>
  importVerifyKey({ key_id: "k", alg: "ed25519", public_key: publicKey, agents: ["agent://a"] });
const hmacKey = (secret: string) => importVerifyKey({ key_id: "k", alg: "hmac-sha256", secret, agents: ["agent://a"] });

/** RFC 8032, section 7.1, TEST 1 to TEST 3. */
const RFC_8032 = [
  {
    name: "TEST 1",
    seed: "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
    publicKey: "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
    message: "",
    sig: "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
  },
  {
    name: "TEST 2",
    seed: "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
    publicKey: "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
    message: "72",
    sig: "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
  },
  {
    name: "TEST 3",
    seed: "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
    publicKey: "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
    message: "af82",
    sig: "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
  },
];
/** The message of TEST 3 is not UTF-8, so it is no text: its key and signature are checked below the text. */
const RFC_8032_TEXTS = RFC_8032.filter(({ name }) => name !== "TEST 3");

/** RFC 4231, sections 4.2, 4.3, 4.7 and 4.8: the cases whose data is text and whose output is not truncated. */
const RFC_4231 = [
  {
    name: "1",
    secret: "0b".repeat(20),
    text: "Hi There",
    sig: "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
  },
  {
    name: "2",
    secret: Buffer.from("Jefe").toString("hex"),
    text: "what do ya want for nothing?",
    sig: "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
  },
  {
    name: "6",
    secret: "aa".repeat(131),
    text: "Test Using Larger Than Block-Size Key - Hash Key First",
    sig: "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
  },
  {
    name: "7",
    secret: "aa".repeat(131),
    text: "This is a test using a larger than block-size key and a larger than block-size data. The key needs to be hashed before being used by the HMAC algorithm.",
    sig: "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2",
  },
];

/** Every encoding of a point of small order: the canonical ones, those above the prime, each with both signs of x. */
const SMALL_ORDER = [
  "0000000000000000000000000000000000000000000000000000000000000000",
  "0100000000000000000000000000000000000000000000000000000000000000",
  "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
  "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
  "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
].flatMap((encoding) => {
  const other = hex(encoding);
  other[31] = (other[31] as number) | 0x80;
  return [encoding, other.toString("hex")];
});

describe("Ed25519 (RFC 8032)", () => {
  test.each(RFC_8032)("section 7.1, $name: the key pair and its signature", ({ seed, publicKey, message, sig }) => {
    const privateKey = privateKeyOfSeed(hex(seed));
    expect(publicKeyText(privateKey)).toBe(base64url(publicKey));
    expect(signEd25519(privateKey, hex(message)).toString("hex")).toBe(sig);
    expect(verifyEd25519(hex(publicKey), hex(message), hex(sig))).toBe(true);
  });

  test.each(RFC_8032_TEXTS)(
    "section 7.1, $name: signing and verifying as text",
    ({ seed, publicKey, message, sig }) => {
      const text = hex(message).toString("utf8");
      expect(sign({ alg: "ed25519", privateKey: privateKeyOfSeed(hex(seed)) }, text)).toBe(base64url(sig));
      expect(verify(ed25519Key(base64url(publicKey)), text, base64url(sig))).toBe(true);
      expect(verify(ed25519Key(base64url(publicKey)), `${text} `, base64url(sig))).toBe(false);
    },
  );

  test.each(SMALL_ORDER)("the small-order key %s is refused", (encoding) => {
    expect(() => ed25519Key(base64url(encoding))).toThrow("small-order");
  });

  test("a second spelling of any point is refused", () => {
    expect(() => ed25519Key(base64url(`f0${"ff".repeat(30)}7f`))).toThrow("non-canonical");
  });
});

describe("HMAC-SHA256 (RFC 4231)", () => {
  test.each(RFC_4231)("test case $name", ({ secret, text, sig }) => {
    const key: SigningKey & VerifyKey = { alg: "hmac-sha256", secret: new HmacSecret(hex(secret)) };
    expect(sign(key, text)).toBe(base64url(sig));
    expect(verify(key, text, base64url(sig))).toBe(true);
    expect(verify(key, `${text} `, base64url(sig))).toBe(false);
  });

  test("is what Node makes of any secret and any text, however long", () => {
    const secrets = fc.uint8Array({ maxLength: 200 });
    const texts = fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom("x".repeat(32_769), "世".repeat(32_768)));
    const isNodes = (secret: Uint8Array, text: string) => {
      const expected = createHmac("sha256", secret).update(text).digest("base64url");
      expect(new HmacSecret(Buffer.from(secret)).sign(text)).toBe(expected);
    };
    fc.assert(fc.property(secrets, texts, isNodes), { numRuns: 500 });
  });
});

describe("Keys of the keys file", () => {
  const good = base64url(RFC_8032[0]?.publicKey as string);

  test.each([
    ["padding", `${good}=`],
    ["the alphabet of plain base64", good.replace(/^../, "+/")],
    ["white space", ` ${good.slice(1)}`],
    ["a trailing line break", `${good}\n`],
    ["stray bits in the last character", `${good.slice(0, -1)}p`],
    ["31 bytes", base64url("11".repeat(31))],
    ["33 bytes", base64url("11".repeat(33))],
    ["nothing", ""],
  ])("a public key with %s is refused, and not quoted", (_, text) => {
    expect(() => ed25519Key(text)).toThrow(/^public_key must be base64url of exactly 32 bytes$/);
  });

  test.each([
    ["padding", `${base64url("11".repeat(32))}=`],
    ["the alphabet of plain base64", `+/${"A".repeat(41)}`],
    ["a length that no bytes have", "A".repeat(45)],
    ["31 bytes", base64url("11".repeat(31))],
  ])("a secret with %s is refused, and not quoted", (_, text) => {
    expect(() => hmacKey(text)).toThrow(/^secret must be base64url of at least 32 bytes$/);
  });

  test("secrets over 32 bytes are taken whole", () => {
    const [long, longer] = ["aa".repeat(131), "aa".repeat(132)].map((secret) => importSecret(base64url(secret)));
    expect(long?.sign("text")).not.toBe(longer?.sign("text"));
  });
});

describe.each([
  { alg: "hmac-sha256" as const, signing: { alg: "hmac-sha256", secret: importSecret("A".repeat(43)) } as const },
  { alg: "ed25519" as const, signing: { alg: "ed25519", privateKey: privateKeyOfSeed(Buffer.alloc(32, 7)) } as const },
])("A signature by $alg", ({ alg, signing }) => {
  const key: VerifyKey = signing.alg === "ed25519" ? ed25519Key(publicKeyText(signing.privateKey)) : signing;
  const text = "Grüße 😂";
  const sig = sign(signing, text);
  const last = sig.slice(-1);
  /** The next character of the alphabet decodes to the same bytes: it differs in the bits that are left over. */
  const stray = String.fromCharCode(last.charCodeAt(0) + 1);

  test("verifies, and has the announced length", () => {
    expect(sig).toHaveLength(SIGNATURE_CHARACTERS[alg]);
    expect(verify(key, text, sig)).toBe(true);
  });

  test.each([
    ["of another text", sign(signing, "other")],
    ["with padding", `${sig}=`],
    ["with padding in place of a character", `${sig.slice(0, -1)}=`],
    ["with a plus sign", `+${sig.slice(1)}`],
    ["with a slash", `/${sig.slice(1)}`],
    ["with white space in front", ` ${sig}`],
    ["with white space inside", `${sig.slice(0, 5)} ${sig.slice(6)}`],
    ["with a line break at the end", `${sig}\n`],
    ["with stray bits at the end", sig.slice(0, -1) + stray],
    ["with a character that folds onto the right one", String.fromCharCode(sig.charCodeAt(0) + 0x100) + sig.slice(1)],
    ["one character short", sig.slice(0, -1)],
    ["one character long", `${sig}A`],
    ["of the other algorithm's length", "A".repeat(alg === "ed25519" ? 43 : 86)],
    ["that is empty", ""],
  ])("%s is refused", (_, wrong) => {
    expect(wrong).not.toBe(sig);
    expect(verify(key, text, wrong)).toBe(false);
  });
});
