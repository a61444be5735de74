import { describe, expect, test } from "@jest/globals";
import { createLogger, type Logger } from "../src/logging.ts";

const SECRET = "SECRET-4711";

const logged = (write: (logger: Logger) => void): string => {
  const lines: string[] = [];
  write(createLogger({ service: "gateway", level: "trace" }, { write: (line) => lines.push(line) }));
  return lines.join("");
};

describe("the log", () => {
  test("has one JSON object a line, with service, level and text", () => {
    const line = logged((logger) => logger.warn({ connections: 3 }, "near capacity"));
    expect(JSON.parse(line)).toMatchObject({
      service: "gateway",
      level: "warn",
      connections: 3,
      msg: "near capacity",
    });
  });

  test("is silent below its level", () => {
    const lines: string[] = [];
    createLogger({ service: "gateway", level: "warn" }, { write: (line) => lines.push(line) }).info("hello");
    expect(lines).toEqual([]);
  });

  test.each([
    ...["authorization", "Authorization", "x-api-key", "X-API-Key", "cookie", "user-agent", "x-forwarded-for"],
    ...["sig", "signature", "payload", "api_key", "apiKey", "secret", "private_key", "body", "rawBody", "headers"],
    ...["remoteAddress", "ip", "userAgent", "envelope", "feedback", "req", "url"],
  ])("never shows what stands under %s, however deep", (name) => {
    const output = logged((logger) => {
      logger.info({ [name]: SECRET }, "top");
      logger.info({ [name]: { deep: SECRET } }, "whole");
      logger.info({ a: { b: [{ [name]: SECRET }] } }, "nested");
      logger.child({ [name]: SECRET, inner: { [name]: SECRET } }).info("child");
      logger
        .child({ pod: "p1" })
        .child({ [name]: SECRET })
        .info("grandchild");
    });
    expect(output.split("\n").filter(Boolean)).toHaveLength(5);
    expect(output).not.toContain(SECRET);
  });

  test("never shows bytes, nor what is nested beyond its depth", () => {
    const output = logged((logger) => {
      logger.info({ bytes: Buffer.from(SECRET) }, "bytes");
      logger.info({ a: { b: { c: { d: { e: { f: SECRET } } } } } }, "deep");
    });
    expect(output).not.toContain(SECRET);
    expect(output).not.toContain(String([...Buffer.from(SECRET)]));
  });

  test("survives a circle", () => {
    const circle: { self?: unknown } = {};
    circle.self = circle;
    expect(() => logged((logger) => logger.info(circle, "circle"))).not.toThrow();
  });

  test("keeps of an error its type, message, code and stack alone, wherever it stands", () => {
    const fault = Object.assign(new TypeError("went wrong"), {
      code: "E_FAULT",
      body: SECRET,
      command: { args: [SECRET] },
    });
    const output = logged((logger) => {
      logger.error(fault);
      logger.error({ err: fault }, "with text");
      logger.error({ outcome: { reason: fault } }, "nested");
    });
    expect(output).not.toContain(SECRET);
    const [bare, , nested] = output.split("\n");
    const kept = { type: "TypeError", message: "went wrong", code: "E_FAULT", stack: expect.any(String) };
    expect(JSON.parse(bare ?? "").err).toEqual(kept);
    expect(JSON.parse(nested ?? "").outcome.reason).toEqual(kept);
  });

  test("never shows the text that a JSON parser choked on", () => {
    const output = logged((logger) => {
      try {
        JSON.parse(SECRET);
      } catch (err) {
        logger.error(err);
        logger.error({ err });
        logger.error({ err }, "keys file refused");
      }
    });
    expect(output).toContain("SyntaxError");
    expect(output).not.toMatch(/SECRET/);
  });
});
