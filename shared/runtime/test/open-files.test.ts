import { describe, expect, test } from "@jest/globals";
import { fitted } from "../src/http/connections.ts";

describe("bounds of connections", () => {
  test("stay as they are while there are descriptors for them", () => {
    expect(fitted({ httpConnections: 2000 }, 2000)).toBeNull();
    expect(fitted({ httpConnections: 2000, maxConnections: 50_000 }, 52_000)).toBeNull();
  });

  test("never ask for more descriptors than there are, and leave some for both kinds", () => {
    for (const httpConnections of [0, 1, 10, 2000]) {
      for (const maxConnections of [1, 100, 50_000]) {
        for (const available of [32, 200, 1000, 20_000]) {
          const bounds = fitted({ httpConnections, maxConnections }, available) ?? { httpConnections, maxConnections };
          const { httpConnections: plain, maxConnections: websockets = 0 } = bounds;
          expect(plain).toBeGreaterThan(0);
          expect(websockets).toBeGreaterThan(0);
          expect(plain + websockets).toBeLessThanOrEqual(available);
        }
      }
    }
  });

  test("of a service without websockets become all that there are", () => {
    expect(fitted({ httpConnections: 0 }, 500)).toEqual({ httpConnections: 500 });
    expect(fitted({ httpConnections: 2000 }, 500)).toEqual({ httpConnections: 500 });
  });

  test("are not lowered for plain HTTP where websockets leave room", () => {
    expect(fitted({ httpConnections: 0, maxConnections: 100 }, 1000)).toEqual({
      httpConnections: 900,
      maxConnections: 100,
    });
  });
});
