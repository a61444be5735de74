import type { Mutation } from "../mutation.ts";

const KEY = "shared/runtime/src/admin/admin-key.ts";
const KEYS = ["shared/runtime/test/admin/admin-key.test.ts"];
const INTEGRATION = "test/integration/admin.test.ts";

/** Whom the admin listener obeys, what it closes, and what is written of it. */
export const ADMIN_MUTATIONS: readonly Mutation[] = [
  {
    name: "the admin listener is for whoever has its key",
    file: KEY,
    find: "return timingSafeEqual(digestOf(given), this.#digest);",
    replace: "return true;",
    tests: [...KEYS, "shared/runtime/test/admin/admin-server.test.ts", INTEGRATION],
  },
  {
    name: "an admin key that others may read is refused",
    file: KEY,
    find: "if ((mode & (uid === 0 ? OF_OTHERS_BESIDE_ROOT : OF_OTHERS)) !== 0)",
    replace: "if (false)",
    tests: KEYS,
  },
  {
    name: "an admin key is too long to be guessed",
    file: KEY,
    find: "{32,}",
    replace: "{1,}",
    tests: [...KEYS, INTEGRATION],
  },
  {
    name: "who has no admin key has a connection for one request alone",
    file: "shared/runtime/src/admin/admin-server.ts",
    find: 'ctx.set("Connection", "close");',
    replace: "",
    tests: ["shared/runtime/test/admin/admin-server.test.ts"],
  },
  {
    name: "the admin listener is on loopback unless it is told otherwise",
    file: "shared/runtime/src/settings-catalogue.ts",
    find: 'default: "127.0.0.1",\n    description: "Address of that port',
    replace: 'default: "0.0.0.0",\n    description: "Address of that port',
    tests: ["shared/runtime/test/settings.test.ts"],
  },
  {
    name: "a pod with another admin key hides none of the others",
    file: "deploy/admin/answers.ts",
    find: "if (answer.status === 401)",
    replace: "if (false)",
    tests: ["test/local/admin-command.test.ts"],
  },
  {
    name: "a pipe in the place of a file is not waited for",
    file: "shared/runtime/src/files.ts",
    find: "if (!stats.isFile())",
    replace: "if (false)",
    tests: ["shared/runtime/test/files.test.ts", "shared/runtime/test/key-store.test.ts"],
  },
  {
    name: "a stop while the audit log is being opened closes it",
    file: "shared/runtime/src/audit-log.ts",
    find: "await this.#started?.catch(() => {});",
    replace: "",
    tests: ["shared/runtime/test/audit-log.test.ts"],
  },
  {
    name: "what the audit log could not write does not wait without bound",
    file: "shared/runtime/src/audit-log.ts",
    find: "if (this.#waitingBytes + bytes > MOST_WAITING_BYTES)",
    replace: "if (false)",
    tests: ["shared/runtime/test/audit-log.test.ts"],
  },
  {
    name: "an admin key that was written again as it was is no change",
    file: "shared/runtime/src/admin/admin-key.ts",
    find: "if (!isFirst && isAnother)",
    replace: "if (!isFirst)",
    tests: ["shared/runtime/test/admin/admin-key.test.ts"],
  },
];
