import { expect, test } from "@jest/globals";
import { CommandTimeoutError } from "../src/redis/bounded-redis.ts";
import { LinkState } from "../src/redis/link-state.ts";
import { LOGGER } from "./kit.ts";

const refused = (text: string) => Object.assign(new Error(text), { name: "ReplyError" });

test("What Redis refused for its settings is not hidden by a silence, and ends with another answer", () => {
  const state = new LinkState("test", LOGGER);
  const kindAfter = (cause: Error) => {
    state.goDown(cause);
    return state.down?.kind;
  };
  expect(kindAfter(refused("WRONGPASS invalid username-password pair"))).toBe("auth");
  expect(kindAfter(new CommandTimeoutError())).toBe("auth");
  expect(kindAfter(refused("LOADING Redis is loading the dataset in memory"))).toBe("loading");
  expect(kindAfter(new CommandTimeoutError())).toBe("timeout");
});
