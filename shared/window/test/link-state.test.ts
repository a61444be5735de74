import { expect, test } from "@jest/globals";
import { createLogger } from "runtime/logging.ts";
import { CommandTimeoutError } from "../src/redis/bounded-redis.ts";
import { mostTelling } from "../src/redis/link-down.ts";
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

test("Whoever is told of a link that is down is told when it is up again, and of none that was never down", () => {
  const lines: string[] = [];
  const logger = createLogger({ service: "test", level: "warn" }, { write: (line) => void lines.push(line) });
  const state = new LinkState("test", logger);
  const told = () => lines.splice(0).map((line) => JSON.parse(line).msg);
  state.goUp();
  expect(told()).toEqual([]);
  state.goDown(new CommandTimeoutError());
  state.goDown(new CommandTimeoutError());
  expect(told()).toEqual(["redis link is down"]);
  state.goUp();
  expect(told()).toEqual(["redis link is up"]);
});

test("Of several links that are down the reason is told that somebody has to end, then what a server said, then a silence", () => {
  expect(mostTelling(["refused", null, "timeout", "loading", "auth"])).toBe("auth");
  expect(mostTelling([null, "refused", "slots"])).toBe("slots");
  expect(mostTelling(["timeout", "refused"])).toBe("timeout");
  expect(mostTelling([null, null])).toBeNull();
});
