// Sessions that a change invalidates are deleted with it: both are stored, or neither is.
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import { SessionList } from "../../../src/auth/session-list.ts";
import { Sessions } from "../../../src/auth/sessions.ts";
import { compileStored } from "../../../src/control/stored.ts";
import { createLog } from "../../../src/log.ts";
import { emptyConfiguration } from "../../../src/store/first-configuration.ts";
import { SessionTable } from "../../../src/store/sessions.ts";
import { openStore, temporaryDirectory } from "../store/fixture.ts";
import { at, changesOf, context, options, recorded } from "../control/fixture.ts";
import { userOf } from "./fixture.ts";

const root = userOf("root", "admin");
const user = userOf("user", "editor");

/** Two sessions of a user over a real database, and what of them is stored whenever a test looks. */
function scene(dataDir: string) {
  const opened = openStore(dataDir);
  const { store } = opened;
  const users = new Map([root, user].map((one) => [one.id, one]));
  store.begin({ ...emptyConfiguration(at), users }, { at, actor: "test", summary: "" });
  const clock = { now: () => Date.parse(at) };
  const log = createLog({ level: "error", format: "json", sink: () => {} });
  const table = store.with((tables) => new SessionTable(tables));
  const current = compileStored(store.load(), context);
  const changes = changesOf({ store, clock, log, current });
  const sessions = new Sessions({ store: table, changes, clock, log });
  const stored = () => {
    using database = new Database(join(dataDir, "sluice.db"), { readonly: true });
    return database
      .query<{ id: string }, []>("SELECT id FROM sessions ORDER BY id")
      .all()
      .map(({ id }) => id);
  };
  const atTheMoment: string[][] = [];
  // This listener runs before the session list's: sessions missing now were deleted with the change.
  changes.onStored(() => void atTheMoment.push(stored()));
  new SessionList({ changes, sessions, audit: { record() {} } });
  const visit = {
    method: "password",
    address: "192.0.2.1",
    userAgent: "",
    isSecure: false,
  } as const;
  const own = [1, 2].map(() => recorded(changes, () => sessions.create(user.id, visit)).session.id);
  const put = (fields: object, by = options.by) =>
    changes.run({
      by,
      dryRun: false,
      mutate: (draft) => draft.put("users", { ...user, ...fields }),
    });
  return {
    changes,
    sessions,
    stored,
    own,
    put,
    atTheMoment,
    store,
    [Symbol.dispose]: () => opened[Symbol.dispose](),
  };
}

test.each([
  ["a new password", { password_hash: "other" }],
  ["a lower role", { role: "viewer" }],
  ["disabling", { enabled: false }],
] as const)("%s deletes them in the same transaction", async (_, fields) => {
  using directory = temporaryDirectory();
  using it = scene(directory.path);
  expect(it.stored().length).toBe(2);
  await it.put(fields);
  expect(it.atTheMoment).toEqual([[]]);
  expect(it.sessions.list(user.id)).toEqual([]);
});

test("the session that changes its password stays, in the store too", async () => {
  using directory = temporaryDirectory();
  using it = scene(directory.path);
  const [mine = ""] = it.own;
  await it.put({ password_hash: "other" }, { ...options.by, sessionId: mine });
  expect(it.atTheMoment).toEqual([[mine]]);
  expect(it.sessions.list(user.id).map(({ id }) => id)).toEqual([mine]);
});

test("a change that could not be stored ends none", async () => {
  using directory = temporaryDirectory();
  using it = scene(directory.path);
  it.changes.addFacts(() => {
    throw new Error("the disk is full");
  });
  const failure = await it.put({ enabled: false }).catch((error: Error) => error.message);
  expect(failure).toContain("nothing was changed");
  expect(it.stored()).toEqual([...it.own].sort());
  expect(it.sessions.list(user.id).length).toBe(2);
  expect(it.store.load().config.users.get(user.id)?.enabled).toBe(true);
});

test("a change of the name ends none", async () => {
  using directory = temporaryDirectory();
  using it = scene(directory.path);
  await it.put({ name: "Other" });
  expect(it.stored().length).toBe(2);
});
