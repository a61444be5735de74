import { access, readFile } from "node:fs/promises";
import { expect, test } from "@jest/globals";
import { sectionsOf } from "../support/documents.ts";
import { sourceFiles } from "../support/sources.ts";

const REPOSITORY = new URL("../../", import.meta.url);
const FILES = await sourceFiles();

/** A document of the repository, mostly with a section of it. */
const LINK = /\b(?:(?:docs|connector)\/[\w-]+|README|CONTRIBUTING|CHANGELOG)\.md(?:#[\w-]+)?/g;

/** Public standards and papers that comments name besides RFCs. */
const STANDARDS = [
  "draft-ietf-httpapi-ratelimit-headers-10",
  "OpenAPI 3.1.0",
  "sitemaps.org, protocol 0.9",
  "Semantic Versioning 2.0.0",
  'POSIX.1-2024, pax, "ustar Interchange Format"',
  "WCAG 2.2",
  'WHATWG URL, "forbidden domain code point"',
  'WHATWG URL, "ends-in-a-number checker"',
  "proc(5)",
  'Redis Cluster specification, "Hash tags"',
  'Cristian, "Probabilistic clock synchronization" (1989)',
  "mulberry32 by Tommy Ettinger, in the public domain",
  "Kubernetes API, NetworkPolicyPeer",
  "Gateway API, HTTPRouteRule",
  "W3C Trace Context, section 3.2",
  "OTLP, ExportTraceServiceRequest",
  "Protocol Buffers, encoding",
  "IANA WebSocket close code registry",
];
const RFC = /^RFC \d+(?:, (?:sections? [\d.]+(?:(?:,| and) [\d.]+)*|appendix [A-Z]))?$/;
/** Where one source ends and the next one begins. */
const NEXT_SOURCE = /; |, (?:and )?(?=docs\/|README|RFC )/;

/** What no reader of the repository can follow. */
const UNKNOWN_WORKS =
  /\bprotocol, sections? \d|\bpitfalls\b|\bthe (?:contract|spec)\b|\bthe design(?:'s|,| says| asks)/i;

async function exists(path: string): Promise<boolean> {
  return await access(new URL(path, REPOSITORY)).then(
    () => true,
    () => false,
  );
}

async function resolves(link: string): Promise<boolean> {
  const [path = "", section] = link.split("#");
  if (!(await exists(path))) return false;
  return section === undefined || sectionsOf(await readFile(new URL(path, REPOSITORY), "utf8")).includes(section);
}

/** True for a link with a section (whether it resolves is another test's), an RFC, a public standard, or a file. */
async function isSource(source: string): Promise<boolean> {
  if (RFC.test(source) || STANDARDS.includes(source)) return true;
  if (/^[\w./-]+\.md#[\w-]+$/.test(source)) return true;
  return /^[\w./-]+$/.test(source) && (await exists(source));
}

/** The sources that a comment names, each `Source:` up to the end of its sentence. */
function sourcesIn(comment: string): string[] {
  const sentences = [...comment.matchAll(/\bSource: (.*?)(?:\.(?=\s|$)|$)/g)].map(([, sentence = ""]) => sentence);
  return sentences.flatMap((sentence) => sentence.split(NEXT_SOURCE));
}

test("every link to a document in the sources leads to a heading that exists", async () => {
  const links = FILES.flatMap(({ path, text }) => [...text.matchAll(LINK)].map(([link]) => ({ path, link })));
  expect(links.length).toBeGreaterThan(50);
  const broken: string[] = [];
  for (const { path, link } of links) if (!(await resolves(link))) broken.push(`${path}: ${link}`);
  expect(broken).toEqual([]);
});

test("every source in a comment is a link with a section, an RFC, a public standard, or a file of the repository", async () => {
  const named = FILES.flatMap(({ path, comments }) => comments.flatMap(sourcesIn).map((source) => ({ path, source })));
  expect(named.length).toBeGreaterThan(50);
  const unknown: string[] = [];
  for (const { path, source } of named) if (!(await isSource(source))) unknown.push(`${path}: ${source}`);
  expect(unknown).toEqual([]);
});

test("no comment refers to a work that is not in the repository", () => {
  const found = FILES.flatMap(({ path, comments }) =>
    comments.flatMap((comment) => (UNKNOWN_WORKS.exec(comment) ?? []).map((words) => `${path}: ${words}`)),
  );
  expect(found).toEqual([]);
});
