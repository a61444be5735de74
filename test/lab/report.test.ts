import { expect, test } from "@jest/globals";
import { insertedInto, isMet, median, percentile, shown } from "./report.ts";

test("An aim is met up to its limit", () => {
  expect(isMet({ name: "cost", value: 1.1, most: 1.1 })).toBe(true);
  expect(isMet({ name: "cost", value: 1.11, most: 1.1 })).toBe(false);
  expect(isMet({ name: "rate", value: 0.79, least: 0.8 })).toBe(false);
  expect(isMet({ name: "nothing measured", value: Number.NaN, most: 1 })).toBe(false);
});

test("A median is the middle of an odd number, and the mean of the two middle ones of an even number", () => {
  expect(median([9, 1, 2])).toBe(2);
  expect(median([4, 1, 2, 9])).toBe(3);
});

test("Percentiles go by the nearest rank", () => {
  const hundred = Array.from({ length: 100 }, (_, n) => 100 - n);
  expect([percentile(hundred, 0.5), percentile(hundred, 0.99), percentile([7], 0.99)]).toEqual([50, 99, 7]);
  expect([percentile(hundred, 0.999), percentile([], 0.5)]).toEqual([100, Number.NaN]);
});

test("Tables show three digits that count", () => {
  expect([12_345.6, 123.4, 12.34, 1.2, 0.1234].map(shown)).toEqual(["12,346", "123", "12.3", "1.2", "0.123"]);
});

test("A part of a document is replaced, and the rest of it left alone", () => {
  const document = "before\n<!-- part: written by a command -->\nold\n<!-- /part -->\nafter\n";
  expect(insertedInto(document, "part", "new")).toBe(document.replace("old\n", "\nnew\n"));
  expect(() => insertedInto(document, "another", "new")).toThrow("no place");
});
