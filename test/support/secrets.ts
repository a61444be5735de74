import { createHash } from "node:crypto";

/** Texts that must not be found where they do not belong, each under a name that says what it is. */
export class Secrets {
  readonly #spellings: readonly { readonly name: string; readonly texts: readonly string[] }[];

  constructor(secrets: Readonly<Record<string, string>>) {
    this.#spellings = Object.entries(secrets).map(([name, secret]) => ({ name, texts: spellingsOf(secret) }));
  }

  /** Names of the secrets that a text holds, in any usual spelling. */
  in(text: string): string[] {
    return this.#spellings.filter(({ texts }) => texts.some((one) => text.includes(one))).map(({ name }) => name);
  }
}

/** A hash without a key gives a guessed address or key away as well as the text itself. */
function spellingsOf(secret: string): string[] {
  const bytes = Buffer.from(secret);
  const digest = createHash("sha256").update(secret).digest();
  return [
    secret,
    encodeURIComponent(secret),
    JSON.stringify(secret).slice(1, -1),
    bytes.toString("base64").replace(/=+$/, ""),
    bytes.toString("base64url"),
    bytes.toString("hex"),
    digest.toString("hex"),
    digest.toString("base64url"),
  ];
}
