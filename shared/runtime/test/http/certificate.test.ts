import { X509Certificate } from "node:crypto";
import { rename, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { EXPIRED, RENEWED, SELF_SIGNED } from "../../../../connector/test/self-signed.ts";
import { seriesIn } from "../../../../test/support/http.ts";
import { markedUtf8, temporaryFolder } from "../../../../test/support/temporary-folder.ts";
import { until } from "../../../../test/support/until.ts";
import { FILE_TIMES } from "../../src/files.ts";
import { Certificate, observeCertificate, type Pair } from "../../src/http/certificate.ts";
import { serveOverHttp } from "../../src/http/http-service.ts";
import { createLogger } from "../../src/logging.ts";
import { ServiceMetrics } from "../../src/metrics/service-metrics.ts";

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let certificate: Certificate;
let errors: object[];
let renewed: Pair[];
let certFile: string;
let keyFile: string;

beforeAll(async () => {
  folder = await temporaryFolder();
  certFile = join(folder.path, "tls.crt");
  keyFile = join(folder.path, "tls.key");
});
afterAll(async () => await folder[Symbol.asyncDispose]());
beforeEach(() => {
  jest.replaceProperty(FILE_TIMES, "pollMs", 2);
  [errors, renewed] = [[], []];
  const logger = { info: () => {}, error: (line: object) => void errors.push(line) };
  certificate = new Certificate({ certFile, keyFile }, logger);
});
afterEach(() => {
  certificate.stop();
  jest.restoreAllMocks();
});

const start = () => certificate.start((pair) => renewed.push(pair));

async function write({ cert, key }: Partial<Pair>): Promise<void> {
  if (key !== undefined) await replace(keyFile, key);
  if (cert !== undefined) await replace(certFile, cert);
}

/** Replaces a file whole: a look must not find half of it. */
async function replace(file: string, text: string | Uint8Array): Promise<void> {
  await writeFile(`${file}.new`, text);
  await rename(`${file}.new`, file);
}

describe("a certificate", () => {
  test.each([
    [
      "a key of another certificate",
      { ...SELF_SIGNED, key: RENEWED.key },
      "RELAY_TLS_KEY_FILE is not the key of the certificate",
    ],
    ["one that has expired", EXPIRED, "RELAY_TLS_CERT_FILE has expired"],
    [
      "a file that is none",
      { ...SELF_SIGNED, cert: "no certificate" },
      "RELAY_TLS_CERT_FILE is not a certificate in PEM",
    ],
    ["a key that is none", { ...SELF_SIGNED, key: SELF_SIGNED.cert }, "RELAY_TLS_KEY_FILE is not a private key in PEM"],
  ])("is refused at start: %s, and nothing of the files is told", async (_what, pair, problem) => {
    await write(pair);
    const error = await start().catch((error) => error);
    expect(error.message).toContain(problem);
    expect(error.message).not.toMatch(/BEGIN|no certificate/);
  });

  test("is taken from files with a byte order mark and the line ends of Windows", async () => {
    await replace(keyFile, markedUtf8(SELF_SIGNED.key));
    await replace(certFile, markedUtf8(SELF_SIGNED.cert));
    expect((await start()).cert).toMatch(/^-----BEGIN CERTIFICATE-----\r\n/);
  });

  test("is refused before it is valid", async () => {
    await write(SELF_SIGNED);
    const now = jest.spyOn(Date, "now").mockReturnValue(0);
    await expect(start()).rejects.toThrow("RELAY_TLS_CERT_FILE is not valid yet");
    now.mockRestore();
  });

  test("is refused at start when a file is missing", async () => {
    const missing = new Certificate({ certFile: "/none", keyFile }, { info: () => {}, error: () => {} });
    await expect(missing.start(() => {})).rejects.toThrow("RELAY_TLS_CERT_FILE cannot be read (ENOENT)");
    missing.stop();
  });

  test("is read again when it is renewed; a pair of which one file is still the old one keeps what was there", async () => {
    await write(SELF_SIGNED);
    expect(await start()).toEqual(SELF_SIGNED);
    await write({ key: RENEWED.key });
    await until("the half pair is refused", () => errors.length > 0);
    expect(errors).toEqual([{ problem: "RELAY_TLS_KEY_FILE is not the key of the certificate" }]);
    expect(renewed).toEqual([]);
    await write({ cert: RENEWED.cert });
    await until("it is renewed", () => renewed.length > 0);
    expect(renewed).toEqual([RENEWED]);
  });

  test("tells when what is shown ends, and nothing before it was read", async () => {
    const endOf = ({ cert }: Pair) => Date.parse(new X509Certificate(cert).validTo);
    const metrics = new ServiceMetrics("gateway");
    observeCertificate(metrics, certificate);
    const shownEnd = async () => seriesIn(await metrics.registry.metrics()).value("relay_certificate_end_time_seconds");
    expect(await shownEnd()).toBeUndefined();
    await write(SELF_SIGNED);
    await start();
    expect(await shownEnd()).toBe(endOf(SELF_SIGNED) / 1000);
    await write({ cert: "no certificate" });
    await until("it is refused", () => errors.length > 0);
    expect(await shownEnd()).toBe(endOf(SELF_SIGNED) / 1000);
    await write(RENEWED);
    await until("it is renewed", () => renewed.length > 0);
    expect(await shownEnd()).toBe(endOf(RENEWED) / 1000);
  });

  test("is in the metrics of the service that shows it", async () => {
    await write(SELF_SIGNED);
    const metrics = new ServiceMetrics("gateway");
    const service = { start: async () => {}, stop: async () => {}, handler: () => {}, limitReached: () => {}, metrics };
    const settings = {
      ...{ host: "127.0.0.1", port: 0, metricsPort: undefined, tlsCertFile: certFile, tlsKeyFile: keyFile },
      ...{ httpConnections: 1, connectionsPerAddress: 1, trustedProxyHops: 0 },
    };
    const served = serveOverHttp(service, settings, createLogger({ service: "test", level: "silent" }));
    await served.start();
    const text = await metrics.registry.metrics();
    await served.stop();
    expect(text).toContain("relay_certificate_end_time_seconds{");
  });

  test("follows a Kubernetes secret, whose folder is a symbolic link that is swapped", async () => {
    const secret = await temporaryFolder();
    const [first, second] = [await temporaryFolder(), await temporaryFolder()];
    for (const [{ path }, { cert, key }] of [
      [first, SELF_SIGNED],
      [second, RENEWED],
    ] as const) {
      await writeFile(join(path, "tls.crt"), cert);
      await writeFile(join(path, "tls.key"), key);
    }
    const data = join(secret.path, "..data");
    await symlink(first.path, data);
    const mounted = new Certificate(
      { certFile: join(data, "tls.crt"), keyFile: join(data, "tls.key") },
      { info: () => {}, error: () => {} },
    );
    await mounted.start((pair) => renewed.push(pair));
    await symlink(second.path, `${data}.new`);
    await rename(`${data}.new`, data);
    await until("it is renewed", () => renewed.length > 0);
    mounted.stop();
    expect(renewed).toEqual([RENEWED]);
    for (const each of [secret, first, second]) await each[Symbol.asyncDispose]();
  });
});
