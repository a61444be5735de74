import { readFileSync } from "node:fs";
import { describe, expect, test } from "@jest/globals";
import { blocksOf, wrappableLines } from "./prose/markdown.ts";
import { bannedIn } from "./prose/patterns.ts";
import { KINDS, placesInEntry, placesInHelp, placesInMarkdown } from "./prose/places.ts";
import { type Change, type Counts, changesOf, countsOf, lowered, recorded, textOf } from "./prose/record.ts";
import { plain, sentencesOf, wordsIn } from "./prose/sentences.ts";
import { readSources } from "./prose/sources.ts";

/** Documents, catalogues and help pages get easier to read, never harder. Source: CONTRIBUTING.md#how-texts-read. */

const sources = await readSources();
const changes = changesOf(recorded(), countsOf(sources));

describe("The texts of this repository", () => {
  test("are no harder to read than recorded", () => {
    const risen = changes.filter(({ recorded, counted }) => counted > recorded);
    expect(risen.map(explained)).toEqual([]);
  });

  test("have each improvement recorded: `npm run prose -- --record`", () => {
    const fallen = changes.filter(({ recorded, counted }) => counted < recorded);
    expect(fallen.map(summary)).toEqual([]);
  });

  test("include documents, catalogues and help pages", () => {
    const names = ["README.md", "docs/protocol.md", "connector/templates/python/README.md"];
    expect([...sources.keys()]).toEqual(expect.arrayContaining([...names, "catalogue: settings", "help: relay send"]));
  });
});

describe("A sentence", () => {
  const sentences = (text: string) =>
    blocksOf(text).flatMap(({ masked }) => sentencesOf(masked).map((s) => plain(s.masked)));

  test("ends at its mark, not at an abbreviation, a number or a file name", () => {
    expect(sentences("It waits 1.5 s, e.g. for redis.md, logs, etc. and ends. (It ends.) ts differs.")).toEqual([
      "It waits 1.5 s, e.g. for redis.md, logs, etc. and ends.",
      "(It ends.)",
      "ts differs.",
    ]);
  });

  test("ends with its paragraph, item, heading or cell, and goes on over lines", () => {
    const document = "# Keys\nA key\nis yours.\n- one\n  two\n- three\n\n| a | b |\n|---|---|\n| c. d | e \\| f |\n";
    expect(sentences(document)).toEqual([
      "Keys",
      "A key is yours.",
      "one two",
      "three",
      "a",
      "b",
      "c.",
      "d",
      "e \\| f",
    ]);
  });

  test("has no word of a code block, a comment or the target of a link", () => {
    const document =
      "Read [the docs](https://relay.example/a_(b).md).\n\n```sh\nnpm start\n```\n<!-- made by\na script -->\nThen go.";
    expect(sentences(document)).toEqual(["Read the docs.", "Then go."]);
  });

  test("counts code as one word, and signs as none", () => {
    const [block] = blocksOf("Run `npm run keys -- new` – or [`relay keygen`](a.md)s: 2 words.");
    expect(wordsIn(block?.masked ?? "")).toBe(6);
  });
});

describe("A place that is hard to read", () => {
  const words = (count: number) => Array.from({ length: count }, () => "word").join(" ");

  test("is a sentence over 25 words, named with its line", () => {
    expect(placesInMarkdown(`${words(25)}.\n${words(26)}.`)).toEqual([
      { kind: "sentences", at: "line 2", text: `${words(26)}.` },
      { kind: "lines", at: "line 1", text: `${words(25)}.` },
      { kind: "lines", at: "line 2", text: `${words(26)}.` },
    ]);
    expect(placesInEntry("rate_limited", words(26))).toEqual([
      { kind: "sentences", at: "rate_limited", text: words(26) },
    ]);
  });

  test("is a paragraph over 80 words", () => {
    const paragraph = Array.from({ length: 10 }, () => `${words(8)}.`);
    expect(placesInMarkdown(paragraph.join("\n"))).toEqual([]);
    expect(placesInMarkdown(`${paragraph.join("\n")}\nword.`).map(({ kind }) => kind)).toEqual(["paragraphs"]);
  });

  test("is a cell over 120 characters, without the targets of its links", () => {
    const row = (length: number) => `| [${"a".repeat(length)}](https://relay.example/) | b |`;
    expect(placesInMarkdown(row(120))).toEqual([]);
    expect(placesInMarkdown(row(121)).map(({ kind }) => kind)).toEqual(["cells"]);
  });

  test("is a line over 120 characters that can be wrapped", () => {
    const long = "a".repeat(121);
    expect(wrappableLines(`${long}\n- ${long}\n| ${long} b |\n~~~\n${long} b\n~~~\n`)).toEqual([]);
    const places = placesInMarkdown(`Run \`npm\nstart\`.\nb ${long}`);
    expect(places.map(({ kind, at }) => `${kind} ${at}`)).toEqual(["lines line 3"]);
  });

  test("is a line of help beyond 80 columns, or beyond the 25th", () => {
    expect(placesInHelp("word\n".repeat(25))).toEqual([]);
    expect(placesInHelp("\n".repeat(25) + "a".repeat(81)).map(({ kind, at }) => `${kind} ${at}`)).toEqual([
      "lines line 26",
      "length line 26",
    ]);
  });

  test("is a long description of an option or a command, without its name", () => {
    const help = (name: string) =>
      `  ${name}  ${words(12)}\n            ${words(13)}\n  --url     ${words(2)}\n${words(24)}\n\n  ${words(30)}\n`;
    const found = (name: string) => placesInHelp(help(name)).filter(({ kind }) => kind === "sentences");
    expect(found("--key F.")).toEqual([]);
    expect(found("--key  word")).toEqual([{ kind: "sentences", at: "line 1", text: `word ${words(25)}` }]);
  });
});

describe("A banned turn of phrase", () => {
  test.each([
    ["Who has a key may send.", "Who "],
    ["**What comes in** waits.", "What "],
    ["Tell whoever asks.", "whoever"],
    ["It waits; what comes in is lost.", "; what "],
    ["Counted is each envelope.", "Counted is"],
    ["Of these, two wait.", "Of "],
    ["It waits, nor need it ask.", ", nor need"],
    ["It waits, should it be late.", ", should it"],
    ["The key stands in the file.", "stands in"],
    ["Keys lie in Redis.", "lie in"],
    ["Send it anew.", "anew"],
    ["It ends, too.", "too"],
    ["An id counts once a sender.", "once a sender"],
    ["It takes one call a pod.", "one call a "],
    ["Its key is that of the agent.", "that of"],
    ["Keep the former.", "the former"],
    ["Its repeat is none.", "is none"],
  ])("is found in: %s", (sentence, found) => {
    expect(bannedIn(plain(sentence), true)).toEqual([found]);
  });

  test.each([
    "Who has the key?",
    "What to do next is in the hint.",
    "What two agents need:",
    "The relay says what it refused, and who sent it.",
    "Of course it may take too long.",
    "A fake can stand in for Redis once a minute.",
    "The relay writes one line a minute.",
    "Remove the former key.",
    "There is none, or the default is none.",
  ])("is not found in: %s", (sentence) => {
    expect(bannedIn(sentence, true)).toEqual([]);
  });

  test("may begin a title or a note", () => {
    const places = placesInMarkdown("# What it does\n\n| Who sends | What it is. |\n");
    expect(places.map(({ text }) => text)).toEqual(['"What" in: What it is.']);
  });
});

describe("The record", () => {
  const BEFORE: Counts = { "a.md": { sentences: 2, cells: 1 }, "gone.md": { lines: 1 } };
  const NOW: Counts = { "a.md": { sentences: 1, patterns: 1, cells: 1 }, "new.md": { sentences: 1 } };

  test("is left by a count that rises or falls, and new texts start at zero", () => {
    expect(changesOf(BEFORE, NOW)).toEqual([
      { source: "a.md", kind: "sentences", recorded: 2, counted: 1 },
      { source: "a.md", kind: "patterns", recorded: 0, counted: 1 },
      { source: "gone.md", kind: "lines", recorded: 1, counted: 0 },
      { source: "new.md", kind: "sentences", recorded: 0, counted: 1 },
    ]);
  });

  test("never rises", () => {
    expect(textOf(lowered(BEFORE, NOW))).toBe('{\n  "a.md": { "sentences": 1, "cells": 1 }\n}\n');
  });

  test("is kept sorted, one line a text, without zeros", () => {
    expect(readFileSync(new URL("prose/recorded.json", import.meta.url), "utf8")).toBe(textOf(recorded()));
    expect(textOf({ "b.md": { cells: 1 }, "a.md": { cells: 2, lines: 0 }, "c.md": {} })).toBe(
      '{\n  "a.md": { "cells": 2 },\n  "b.md": { "cells": 1 }\n}\n',
    );
  });
});

function summary({ source, kind, recorded, counted }: Change): string {
  return `${source}: ${counted} ${KINDS[kind]}, ${recorded} recorded`;
}

/** With the first places; `npm run prose -- <text>` prints all. */
function explained(change: Change): string {
  const places = (sources.get(change.source) ?? []).filter(({ kind }) => kind === change.kind);
  const first = places.slice(0, 5).map(({ at, text }) => `\n  ${at}: ${text.slice(0, 160)}`);
  return `${summary(change)}${first.join("")}\n  all: npm run prose -- "${change.source}"`;
}
