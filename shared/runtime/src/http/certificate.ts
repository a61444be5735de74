import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { type FileError, FileFollower, readRegularFile } from "../files.ts";
import type { Logger } from "../logging.ts";
import type { ServiceMetrics } from "../metrics/service-metrics.ts";
import { SettingsError } from "../settings.ts";

/** The chain that a server shows, leaf first, and the key of the leaf; PEM. */
export interface Pair {
  readonly cert: string;
  readonly key: string;
}

interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

const MOST_BYTES = 1_048_576;
const SETTING_OF = { certFile: "RELAY_TLS_CERT_FILE", keyFile: "RELAY_TLS_KEY_FILE" } as const;

/**
 * The certificate of a server without an edge. It is read at start, and again when a file changes: the next client sees
 * the renewed one. Source: docs/operations.md#tls.
 */
export class Certificate {
  readonly #files: FileFollower<Pair>;
  readonly #logger: Pick<Logger, "info" | "error">;
  #renewed: (pair: Pair) => void = () => {};
  #pair: Pair | undefined;

  constructor(files: CertificateFiles, logger: Pick<Logger, "info" | "error">) {
    this.#logger = logger;
    this.#files = new FileFollower({
      paths: [files.certFile, files.keyFile],
      read: () => readPair(files),
      loaded: (pair, isFirst) => this.#load(pair, isFirst),
      failed: (error) => this.#report(error),
    });
  }

  /** @param renewed takes each pair after the first. @throws SettingsError when the first cannot be used. */
  async start(renewed: (pair: Pair) => void): Promise<Pair> {
    this.#renewed = renewed;
    await this.#files.start();
    return this.#pair as Pair;
  }

  stop(): void {
    this.#files.stop();
  }

  /** When the leaf that is shown ends, Unix ms; undefined before the first was read. */
  get endsAt(): number | undefined {
    return this.#pair && Date.parse(leafOf(this.#pair.cert).validTo);
  }

  #load(pair: Pair, isFirst: boolean): void {
    this.#pair = pair;
    this.#logger.info(
      { valid_until: new Date(this.endsAt as number).toISOString() },
      isFirst ? "certificate read" : "certificate changed",
    );
    if (!isFirst) this.#renewed(pair);
  }

  /** While one file of a new pair is there and the other is not, they do not match yet. */
  #report(error: unknown): void {
    if (!(error instanceof SettingsError)) throw error;
    this.#logger.error({ problem: error.problems[0] }, "certificate invalid, keeping the current one");
  }
}

/** Of a service with both settings; undefined where TLS ends at an edge, or nowhere. */
export function certificateOf(
  {
    tlsCertFile: certFile,
    tlsKeyFile: keyFile,
  }: { readonly tlsCertFile: string | undefined; readonly tlsKeyFile: string | undefined },
  logger: Logger,
): Certificate | undefined {
  return certFile === undefined || keyFile === undefined ? undefined : new Certificate({ certFile, keyFile }, logger);
}

/** Shows when the certificate ends. A service without a certificate has no such series. */
export function observeCertificate(metrics: ServiceMetrics, certificate: Certificate | undefined): void {
  if (certificate === undefined) return;
  metrics.gauge("relay_certificate_end_time_seconds", () =>
    certificate.endsAt === undefined ? [] : [["", certificate.endsAt / 1000]],
  );
}

async function readPair({ certFile, keyFile }: CertificateFiles): Promise<Pair> {
  const [cert, key] = await Promise.all([textOf("certFile", certFile), textOf("keyFile", keyFile)]);
  const leaf = leafOf(cert);
  if (Date.parse(leaf.validTo) <= Date.now()) throw unusable("certFile", "has expired");
  if (Date.parse(leaf.validFrom) > Date.now()) throw unusable("certFile", "is not valid yet");
  if (!leaf.checkPrivateKey(privateKeyOf(key))) throw unusable("keyFile", "is not the key of the certificate");
  return usable({ cert, key });
}

/** Refuses a pair that TLS itself does not take, as with a cut intermediate certificate. */
function usable(pair: Pair): Pair {
  try {
    createSecureContext(pair);
    return pair;
  } catch {
    throw unusable("certFile", "is not a chain of certificates that TLS can show");
  }
}

function privateKeyOf(key: string): KeyObject {
  try {
    return createPrivateKey(key);
  } catch {
    throw unusable("keyFile", "is not a private key in PEM without passphrase");
  }
}

async function textOf(file: keyof CertificateFiles, path: string): Promise<string> {
  const { text } = await readRegularFile(path, MOST_BYTES).catch((error: FileError) => {
    throw unusable(file, error.message);
  });
  return text;
}

/** The message holds nothing of the files. */
function unusable(file: keyof CertificateFiles, problem: string): SettingsError {
  return new SettingsError([`${SETTING_OF[file]} ${problem}`]);
}

function leafOf(cert: string): X509Certificate {
  try {
    return new X509Certificate(cert);
  } catch {
    throw unusable("certFile", "is not a certificate in PEM");
  }
}
