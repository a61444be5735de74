import { z } from "zod";

/** From the text of a setting to its value (`settings-catalogue.ts`); the message of an issue states the rule, never the text. */

export const MAX_TIMER_MS = 2 ** 31 - 1;

export const integer = (min: number, max: number) => {
  const rule = `must be an integer from ${min} to ${max}`;
  return z
    .string()
    .regex(/^(?:0|[1-9][0-9]{0,15})$/, { error: rule, abort: true })
    .transform(Number)
    .refine((value) => value >= min && value <= max, rule);
};
export const text = (rule: string, isGood: (text: string) => boolean) => z.string().refine(isGood, rule);
export const list = (rule: string, isGood: (item: string) => boolean) =>
  z
    .string()
    .transform((value) => value.split(",").map((item) => item.trim()))
    .refine((items) => items.every(isGood), rule);
export const share = (rule: string) =>
  z
    .string()
    .regex(/^(?:0|1|0?\.[0-9]{1,9}|1\.0{1,9})$/, rule)
    .transform(Number);
export const host = text(
  "must be a host name, an IPv4 address, or an IPv6 address without brackets and zone",
  (name) => /^[A-Za-z0-9.:_-]+$/.test(name) && URL.canParse(`http://${name.includes(":") ? `[${name}]` : name}`),
);
export const file = text("must be a file path", (path) => !path.includes("\0"));
export const folder = text("must be a folder path", (path) => !path.includes("\0"));
